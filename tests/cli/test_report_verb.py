"""`demur report` on files and runs."""

from __future__ import annotations

import webbrowser

import pytest


def test_a_page_from_a_file_without_a_policy(demur, pools):
    ran = demur("report", pools, "--score", "simulated", "-o", "r.html", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["questions"] == 400
    assert ran.json["n_test"] == 200
    assert (pools.parent / "r.html").stat().st_size == ran.json["bytes"]


def test_a_page_about_a_policy(demur, pools):
    assert demur("calibrate", pools, "--score", "simulated", "--hold-out", 0.5, "-o", "p.json").code == 0
    ran = demur("report", pools, "--policy", "p.json", "-o", "r.html")
    assert ran.code == 0, ran.err
    assert "calibrated on 200, shown on 200 others" in ran.out


def test_a_page_of_a_run_has_its_texts(demur, pools):
    assert demur("import", pools, "-o", "run.db").code == 0
    assert demur("report", "run.db", "--score", "simulated", "-o", "r.html").code == 0


def test_bad_input_gets_one_line(demur, pools):
    demur("calibrate", pools, "--score", "simulated", "-o", "p.json")
    for arguments, said in (
        ((pools, "--score", "nope"), "no pool has the score 'nope'"),
        ((pools, "--policy", "p.json", "--score", "simulated"), "--score and --policy exclude each other"),
        ((pools, "--score", "simulated", "-o", pools), "is an input of this command"),
        (("nowhere.jsonl",), "nowhere.jsonl"),
    ):
        ran = demur("report", *arguments)
        assert ran.code == 2, ran.out
        assert said in ran.err
        assert ran.err.count("\n") == 1


@pytest.mark.parametrize("opens", [True, False, webbrowser.Error("no browser"), OSError("no display")])
def test_the_page_is_opened_where_there_is_a_browser_and_written_where_there_is_none(
    demur, pools, tmp_path, monkeypatch, opens
):
    asked = []

    def stand_in(address):
        asked.append(address)
        if isinstance(opens, Exception):
            raise opens
        return opens

    monkeypatch.setattr(webbrowser, "open", stand_in)
    ran = demur("report", pools, "--score", "simulated", "-o", "a page.html", "--open")
    assert ran.code == 0
    page = tmp_path / "a page.html"
    assert asked == [page.as_uri()]
    assert page.exists()
    assert (f"no browser could be opened here; the page is {page}" in " ".join(ran.err.split())) == (opens is not True)
    assert demur("report", pools, "--score", "simulated", "-o", "b.html", "--open", "--json").json["report"] == "b.html"
    asked.clear()
    assert demur("report", pools, "--score", "simulated", "-o", "c.html").code == 0
    assert asked == []
