"""`demur judge-labels` against a judge on loopback, and its verdicts as labels of the other verbs."""

from __future__ import annotations

import json
import math
import random
import signal
import subprocess
import sys
import time

import pytest

from loopback import Doled, choice, error, reply
from patience import wait_until
from processes import PATIENT, Process

PROBLEMS = 60


def line(number):
    """Votes for Paris in several wordings, sure in most problems."""
    answers = [["Paris", "city of light", "Rome"][(number + path // 4) % 3] for path in range(6)]
    paths = [{"answer": answer, "ok": answer != "Rome"} for answer in answers]
    asked = {"id": f"q{number}", "task": "qa", "question": f"Where is painting {number}?"}
    return json.dumps({**asked, "gold": "Paris", "paths": paths})


@pytest.fixture
def qa(tmp_path):
    """Two files of open questions: to calibrate on, and to audit."""
    (tmp_path / "qa.jsonl").write_text("".join(f"{line(number)}\n" for number in range(PROBLEMS)))
    (tmp_path / "new.jsonl").write_text("".join(f"{line(number)}\n" for number in range(1000, 1000 + PROBLEMS)))
    return tmp_path / "qa.jsonl"


def sensible(number, body, request):
    asked = body["messages"][0]["content"]
    return reply(choice("yes" if "Given: five" in asked or "Given: city of light" in asked else "no"))


@pytest.fixture
def judge(server):
    server.behave = sensible
    return ["--model", "j", "--base-url", server.url]


def given(body):
    return body["messages"][0]["content"].split("Given: ")[1].split("\n")[0]


def test_every_answer_that_rules_leave_open_is_asked_about_once(demur, qa, server, judge):
    ran = demur("judge-labels", qa, *judge, "-o", "verdicts.jsonl", "--json")
    assert ran.code == 0, ran.err
    facts = ran.json
    assert facts["judge"] == "openai:j agreement@1"
    assert facts["wanted"] == facts["saved"] == facts["agree"] + facts["disagree"]
    assert (facts["neither"], facts["failed"], facts["interrupted"]) == (0, {}, False)
    asked = [given(body) for body in server.requests[2:]]
    assert len(asked) == facts["wanted"]
    assert set(asked) == {"city of light", "Rome"}
    assert {body["temperature"] for body in server.requests} == {0}
    again = demur("judge-labels", qa, *judge, "-o", "verdicts.jsonl", "--json")
    assert again.json["wanted"] == 0
    assert len(server.requests) == facts["wanted"] + 2
    shown = demur("judge-labels", qa, *judge, "-o", "verdicts.jsonl")
    assert "Every answer that needs a verdict has one" in shown.out


def test_its_verdicts_are_labels_of_the_other_verbs_and_part_of_the_policy(demur, qa, judge):
    for pools in ("qa.jsonl", "new.jsonl"):
        assert demur("judge-labels", pools, *judge, "-o", "verdicts.jsonl").code == 0
    by_judge = ["--label-verdicts", "verdicts.jsonl"]
    plain = demur("evaluate", qa, "--alpha", 0.3, "--n-cal", 30, "--json").json
    lenient = demur("evaluate", qa, "--alpha", 0.3, "--n-cal", 30, *by_judge, "--json").json
    assert plain["labels"] == {"gold": "relation"}
    assert lenient["labels"]["judge"] == {"name": "openai:j agreement@1", "confirmed": 0, "checked": 0}
    assert lenient["accuracy"]["majority_vote"] > plain["accuracy"]["majority_vote"]
    assert lenient["points"][0]["answered"]["mean"] > plain["points"][0]["answered"]["mean"]
    made = demur("calibrate", qa, "--alpha", 0.3, *by_judge, "-o", "policy.json")
    assert made.code == 0, made.err
    assert "wrong by the judge openai:j agreement@1 (unchecked)" in made.out
    assert "are about other questions, and change nothing" in made.err
    refused = demur("audit", "new.jsonl", "--policy", "policy.json")
    assert refused.code == 2
    assert "label these with --label-verdicts FILE by openai:j agreement@1, or calibrate again" in refused.err
    assert refused.err.count("\n") == 1
    audited = demur("audit", "new.jsonl", "--policy", "policy.json", *by_judge)
    assert audited.code == 0, audited.err
    decided = demur("decide", "new.jsonl", "--policy", "policy.json")
    assert "wrong by the judge openai:j agreement@1 (unchecked)" in decided.out


def test_people_check_a_random_part_and_the_promise_says_so(demur, qa, judge, tmp_path):
    demur("judge-labels", qa, *judge, "-o", "verdicts.jsonl")
    drawn = demur("judge-labels", "verdicts.jsonl", "--check", 20, "-o", "sheet.txt")
    assert drawn.code == 0, drawn.err
    assert "20 verdicts to check" in drawn.out
    sheet = tmp_path / "sheet.txt"
    entries = sheet.read_text().split("\n\n")
    right = [entry.replace("agrees: ", f"agrees: {'no' if 'Rome' in entry else 'yes'}") for entry in entries]
    right[1] = right[1].replace("agrees: no", "agrees: NO ").replace("agrees: yes", "agrees: unsure")
    sheet.write_text("\n\n".join(right))
    unsure = sum("unsure" in entry for entry in right[1:])
    read = demur("judge-labels", "verdicts.jsonl", "--checked", "sheet.txt", "--json").json
    assert (read["checked"], read["confirmed"], read["overruled"]) == (20, 20 - unsure, 0)
    low, high = read["agreement_interval"]
    assert 0.7 < low < read["agreement"] <= high == 1.0 or unsure
    made = demur("calibrate", qa, "--alpha", 0.3, "--label-verdicts", "verdicts.jsonl")
    assert f"which people confirmed on {20 - unsure} of 20 verdicts checked at random" in made.out
    more = demur("judge-labels", "verdicts.jsonl", "--check", 20)
    assert "So many were drawn and checked already" in more.out
    printed = demur("judge-labels", "verdicts.jsonl", "--check", 22)
    assert printed.out.count("agrees:") - printed.out.count("`agrees:`") == 2


def test_a_person_overrules_the_judge_in_the_file(demur, qa, judge, tmp_path):
    demur("judge-labels", qa, *judge, "-o", "verdicts.jsonl")
    before = demur("evaluate", qa, "--alpha", 0.3, "--n-cal", 30, "--label-verdicts", "verdicts.jsonl", "--json").json
    file = tmp_path / "verdicts.jsonl"
    rows = [json.loads(row) for row in file.read_text().splitlines()]
    file.write_text("".join(json.dumps({**row, "person": False}) + "\n" for row in rows))
    after = demur("evaluate", qa, "--alpha", 0.3, "--n-cal", 30, "--label-verdicts", "verdicts.jsonl", "--json").json
    plain = demur("evaluate", qa, "--alpha", 0.3, "--n-cal", 30, "--json").json
    assert after["accuracy"] == plain["accuracy"] != before["accuracy"]


def test_verdicts_for_other_pools_are_no_labels_of_these(demur, qa, judge, tmp_path):
    demur("judge-labels", "new.jsonl", *judge, "-o", "verdicts.jsonl")
    ran = demur("evaluate", qa, "--alpha", 0.3, "--n-cal", 30, "--label-verdicts", "verdicts.jsonl", "--json")
    assert ran.code == 2
    assert "verdicts are about other questions, and change nothing" in ran.err
    assert "error: no verdict is about an answer in this file; ask for them with `demur judge-labels`" in ran.err
    (tmp_path / "empty.jsonl").write_text("")
    ran = demur("evaluate", qa, "--alpha", 0.3, "--n-cal", 30, "--label-verdicts", "empty.jsonl")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "empty.jsonl holds no verdicts" in ran.err


def test_lenient_gold_is_flags_and_the_audit_names_them(demur, qa):
    flags = ["--gold-tolerance", "0.01", "--gold-containment"]
    made = demur("calibrate", qa, "--alpha", 0.3, *flags, "-o", "policy.json", "--json").json
    assert made["labels"] == {"gold": "relation", "tolerance": "1/100", "containment": 1}
    refused = demur("audit", "new.jsonl", "--policy", "policy.json")
    assert "label these with --gold-tolerance 0.01 and --gold-containment, or calibrate again" in refused.err
    assert demur("audit", "new.jsonl", "--policy", "policy.json", *flags).code == 0
    assert demur("report", "new.jsonl", "--policy", "policy.json").code == 2
    assert demur("report", "new.jsonl", "--policy", "policy.json", *flags).code == 0


def test_the_page_shows_the_verdicts(demur, qa, judge, tmp_path):
    demur("judge-labels", qa, *judge, "-o", "verdicts.jsonl")
    ran = demur("report", qa, "--alpha", 0.3, "--label-verdicts", "verdicts.jsonl", "-o", "report.html")
    assert ran.code == 0, ran.err
    data = (tmp_path / "report.html").read_text().split('id="data">')[1].split("</script>")[0]
    labels = json.loads(data)["labels"]
    assert labels["wrong"] == "Wrong means wrong by the judge openai:j agreement@1 (unchecked)."
    assert labels["judged"]["agree"] > 0
    assert labels["judged"]["without"] == 0
    assert labels["judged"]["shown"][0]["judge"] is True


def test_it_says_how_answers_are_compared_and_that_it_waits_for_a_server_in_trouble(
    demur, qa, server, judge, monkeypatch
):
    monkeypatch.setattr("demur.cli.progress._SECONDS_BETWEEN_LINES", 0.5)
    server.behave = lambda *_: error(500, "oops")
    ran = demur("judge-labels", qa, *judge, "--patience", 4, "-o", "verdicts.jsonl")
    assert ran.code != 0
    assert ran.err.count("Answers are compared by ") == 1
    assert "requests tried again (last: the endpoint answered 500" in ran.err


def test_a_judge_that_says_neither_is_one_line(demur, qa, server, judge):
    server.behave = lambda *_: reply(choice("Well, that depends."))
    ran = demur("judge-labels", qa, *judge, "-o", "verdicts.jsonl")
    assert ran.code == 2
    assert "the judge says neither yes nor no: its answer is 'Well, that depends.'" in ran.err
    assert "--max-tokens" in ran.err


def test_one_answer_without_a_verdict_is_counted_and_said(demur, qa, server, judge):
    def silent_on_rome(number, body, request):
        return reply(choice("Hm.")) if given(body) == "Rome" else sensible(number, body, request)

    server.behave = silent_on_rome
    ran = demur("judge-labels", qa, *judge, "-o", "verdicts.jsonl")
    assert ran.code == 0
    assert "An answer with neither counts as wrong" in ran.out
    made = demur("calibrate", qa, "--alpha", 0.3, "--label-verdicts", "verdicts.jsonl")
    assert "the judge said neither yes nor no on" in made.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["qa.jsonl", "--model", "j"], "name the file of verdicts with -o"),
        (["qa.jsonl", "-o", "v.jsonl"], "name the judge with --model"),
        (["qa.jsonl", "-o", "qa.jsonl", "--model", "j"], "is an input of this command"),
        (["qa.jsonl", "-o", "new.jsonl", "--model", "j", "--base-url", "http://127.0.0.1:9"], "line 1 is no verdict"),
        (["qa.jsonl", "-o", "v.jsonl", "--model", "j"], "needs an endpoint"),
        (["qa.jsonl", "--check", "5"], "line 1 is no verdict"),
        (["v.jsonl", "--check", "5"], "there is no file v.jsonl"),
        (["v.jsonl", "--check", "5", "--checked", "s"], "choose one"),
        (["v.jsonl", "--check", "5", "--model", "j"], "ask no model"),
        (["qa.jsonl", "-o", "v.jsonl", "--model", "j", "--gold-tolerance", "2"], "strictly between 0 and 1"),
        (["qa.jsonl", "-o", "v.jsonl", "--model", "j", "--gold-tolerance", "x"], "neither a number nor a fraction"),
    ],
)
def test_bad_input_is_one_line(demur, qa, monkeypatch, arguments, said):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    ran = demur("judge-labels", *arguments)
    assert ran.code == 2
    assert said in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("flags", [["--gold-containment"], ["--gold-tolerance", "0.1"]])
def test_ready_made_labels_leave_nothing_for_gold_to_say(demur, qa, flags):
    ran = demur("calibrate", qa, "--correct", "ok", *flags)
    assert ran.code == 2
    assert "leave --correct out, or --gold-tolerance, --gold-containment and --label-verdicts" in ran.err


def test_a_killed_judge_goes_on_where_it_was(qa, server, judge, tmp_path):
    server.behave = Doled(0, server.behave)
    out = tmp_path / "verdicts.jsonl"
    command = [sys.executable, "-m", "demur", "judge-labels", str(qa), *judge, "--concurrency", "2", "-o", str(out)]
    rng, stored = random.Random(4), []
    for _ in range(4):
        running = Process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server.behave.answered = len(server.requests) + 6
        wait_until(lambda: len(server.requests) > server.behave.answered)
        time.sleep(rng.uniform(0.0, 0.3))
        running.send_signal(signal.SIGKILL)
        running.wait()
        now = out.read_text().splitlines()
        assert now[: len(stored)] == stored, "a verdict that was stored is gone or another"
        stored = now
    server.behave.answered = math.inf
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    rows = [json.loads(row) for row in out.read_text().splitlines()]
    assert len({(row["id"], row["answer"]) for row in rows}) == len(rows), "no verdict is there twice"
    asked = len(server.requests)
    assert subprocess.run(command, capture_output=True, timeout=300).returncode == 0
    assert len(server.requests) == asked


def test_being_interrupted_ends_cleanly_after_saving(qa, server, judge, tmp_path):
    server.behave = Doled(8, server.behave)
    out = tmp_path / "verdicts.jsonl"
    command = [*PATIENT, "judge-labels", str(qa), *judge, "--concurrency", "2", "-o", str(out)]
    running = Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(server.requests) > 8)
    running.send_signal(signal.SIGINT)
    told, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert "Run the same command again to go on." in told
    assert 0 < len(out.read_text().splitlines()) < 2 * PROBLEMS
