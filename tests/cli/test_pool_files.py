"""Every verb that takes pools takes them from any kind of file, and a score stays what it is on its way."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from demur.store import Store
from demur.store.rows import PathScore

JUDGE = {"scorer": "judge", "model": "small-judge", "route": "chat", "normaliser": "pool_z"}


@pytest.fixture
def judged(demur, pools):
    """A run whose score is a judge's, with a few flagged values."""
    assert demur("import", "pools.jsonl", "-o", "run.db").code == 0
    with Store("run.db") as store:
        run = store.run()
        numbers = run.numbers()
        scores = [
            PathScore(numbers[pool.problem.id], place, path.scores["simulated"], "floor" if place == 3 else None)
            for pool in run.pools()
            for place, path in enumerate(pool.paths)
        ]
        run.save_scores("judge", JUDGE, scores)
    return "run.db"


@pytest.fixture
def files(demur, judged):
    """The run, and the same as files and as a run again."""
    for name in ("out.jsonl", "out.jsonl.gz", "out.parquet"):
        assert demur("export", judged, "-o", name).code == 0
    assert demur("import", "out.parquet", "-o", "back.db").code == 0
    return [judged, "out.jsonl", "out.jsonl.gz", "out.parquet", "back.db"]


def test_a_policy_is_the_same_from_a_run_and_from_what_was_exported_of_it(demur, files):
    told = [demur("calibrate", file, "--score", "judge", "--alpha", 0.1, "--json").json for file in files]
    assert {(facts["fingerprint"], facts["points"][0]["threshold"]) for facts in told} == {
        (told[0]["fingerprint"], told[0]["points"][0]["threshold"])
    }
    assert told[0]["pipeline"]["score"]["scorer"] == JUDGE
    assert told[0]["pipeline"]["vote"]["normaliser"].startswith("pool_z")
    assert told[0]["points"][0]["forecast"]["answered"] > 0


def test_flags_of_scores_are_counted_from_files_too(demur, files):
    listed = [demur("score", file, "--list", "--json").json["scores"] for file in files]
    assert all(rows == listed[0] for rows in listed)
    assert next(row for row in listed[0] if row["name"] == "judge")["flags"] == {"floor": 400}
    assert next(row for row in listed[0] if row["name"] == "judge")["identity"] == JUDGE


def test_importing_what_was_exported_changes_nothing(demur, files):
    before = demur("runs", "back.db", "--json").json["runs"][0]
    for name in files[1:4]:
        assert demur("import", name, "-o", "back.db").code == 0
    assert demur("runs", "back.db", "--json").json["runs"][0] == before
    with Store("run.db") as first, Store("back.db") as second:
        one, two = first.run(), second.run()
        assert [pool.paths for pool in one.pools()] == [pool.paths for pool in two.pools()]
        assert (one.flags(), one.scorers()) == (two.flags(), two.scorers())
        assert one.description == two.description


def test_a_plain_file_and_the_run_it_is_imported_into_make_one_policy(demur, pools):
    assert demur("import", "pools.jsonl", "-o", "plain.db").code == 0
    told = [demur("calibrate", file, "--score", "simulated", "--json").json for file in ("pools.jsonl", "plain.db")]
    assert told[0]["fingerprint"] == told[1]["fingerprint"]


def test_a_claim_of_another_score_is_not_the_policys(demur, files):
    """What a file says is compared, as what a run says is."""
    assert demur("calibrate", "run.db", "--score", "judge", "-o", "policy.json").code == 0
    lines = Path("out.jsonl").read_text().splitlines()
    header = json.loads(lines[0])
    header["scores"]["judge"]["model"] = "another"
    Path("other.jsonl").write_text("\n".join([json.dumps(header), *lines[1:]]))
    ran = demur("decide", "other.jsonl", "--policy", "policy.json")
    assert (ran.code, "'small-judge' in the policy, 'another' here" in ran.err) == (2, True)
    assert demur("decide", "out.parquet", "--policy", "policy.json").code == 0


@pytest.mark.parametrize("name", ["pools.parquet", "pools.csv"])
def test_every_verb_that_takes_pools_takes_tables(demur, pools, tmp_path, name):
    table = tmp_path / name
    if name.endswith(".csv"):
        write_csv(pools, table)
    else:
        assert demur("import", "pools.jsonl", "-o", "run.db").code == 0
        assert demur("export", "run.db", "-o", name).code == 0
    verbs = {
        "calibrate": ["--score", "simulated", "--alpha", 0.1],
        "evaluate": ["--score", "simulated", "--alpha", 0.1, "--splits", 3],
        "score": ["--list"],
    }
    for verb, flags in verbs.items():
        one, two = demur(verb, "pools.jsonl", *flags, "--json"), demur(verb, name, *flags, "--json")
        assert two.code == 0, two.err
        assert one.json == two.json
    assert demur("calibrate", "pools.jsonl", "--score", "simulated", "--hold-out", 0.5, "-o", "policy.json").code == 0
    for verb, flags in {
        "audit": ["--policy", "policy.json"],
        "decide": ["--policy", "policy.json"],
        "answers": [],
        "import": ["-o", "imported.db"],
    }.items():
        one, two = demur(verb, "pools.jsonl", *flags, "--json"), demur(verb, name, *flags, "--json")
        assert two.code == 0, two.err
        if verb != "import":
            assert one.json == two.json
    assert demur("report", name, "--policy", "policy.json", "-o", "page.html").code == 0
    assert demur("answers", name, "-o", "copy.parquet").code == 0
    assert demur("calibrate", "copy.parquet", "--score", "simulated").code == 0
    (tmp_path / "study.toml").write_text(
        f'[study]\nname = "s"\n[[cells]]\ndataset = "d"\nmodel = "m"\npools = "{name}"\n'
    )
    ran = demur("study", "study.toml", "--no-figures", "-o", "results", "--json")
    assert ran.code == 0, ran.err


def write_csv(pools: Path, table: Path) -> None:
    with table.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "question", "gold", "answer", "score.simulated"])
        for line in pools.read_text().splitlines():
            record = json.loads(line)
            gold = json.dumps(record["gold"] if isinstance(record["gold"], list) else [record["gold"]])
            for path in record["paths"]:
                writer.writerow(
                    [record["id"], record.get("question"), gold, path["answer"], path["scores"]["simulated"]]
                )


def test_a_damaged_table_is_one_line(demur, files, tmp_path):
    whole = (tmp_path / "out.parquet").read_bytes()
    for damaged in (b"PAR1", whole[: len(whole) // 2], whole[:-1], b"PAR1" + b"\0" * 100 + b"PAR1"):
        (tmp_path / "bad.parquet").write_bytes(damaged)
        ran = demur("calibrate", "bad.parquet", "--score", "judge")
        assert (ran.code, ran.out) == (2, "")
        assert "bad.parquet" in ran.err
        assert len(ran.err.splitlines()) == 1
    ran = demur("calibrate", "nowhere.parquet")
    assert (ran.code, ran.err) == (2, "error: there is no file nowhere.parquet\n")


def test_questions_of_an_exported_file_can_be_sampled_again(demur, files):
    from demur.datasets import load

    assert len(load("out.jsonl")) == 400


def test_a_file_with_a_header_names_problems_that_a_score_was_fitted_on(demur, files):
    ran = demur("calibrate", "out.jsonl", "--score", "judge", "--fitted-on", "out.jsonl")
    assert ran.code == 2
    assert "of the calibration problems (the first is" in ran.err


def test_pools_with_a_header_are_not_replaced_by_a_policy(demur, files):
    ran = demur("calibrate", "run.db", "--score", "judge", "-o", "out.jsonl")
    assert (ran.code, "holds pools" in ran.err) == (2, True)
