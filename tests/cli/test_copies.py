"""Every way from a run through a file: a policy calibrated on the copy is that of the run, and is used as that is."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from asked_over_http import decided
from demur.answers.relations import mathematics
from demur.backends import Completion, Scripted, weights
from inspect_logs import sample, write_archive
from serving import listening


def said(prompt, wanted):
    """Sums that get harder with their size, said in the way of the data set."""
    asked = prompt.text or prompt.messages[-1]["content"]
    first, second = map(int, re.findall(r"What is (\d+) \+ (\d+)", asked)[-1])
    rng = random.Random(f"{first} {second} {wanted.path}")
    right = rng.random() > (first + second) / 60
    sure = (-0.2 if right else -rng.random(),)
    if "yes or no" in asked:
        return Completion(wanted.path, f"So it is {'yes' if right else 'no'}.", "stop", sure)
    value = first + second + (0 if right else rng.choice((1, 1, 10)))
    return Completion(wanted.path, f"{rng.choice(('My answer: {}', 'The answer is {}.'))}".format(value), "stop", sure)


QUESTION = {
    "sums": {"question": "What is {} + {}?", "task": "math"},
    "verdicts": {"question": "What is {} + {}? Is it small, yes or no?", "task": "mc"},
    "talks": {"messages": "What is {} + {}?", "task": "math"},
}
RUNS = {
    "plain": ("sums",),
    "expression": ("sums", "--extract", r"is (\d+)"),
    "marker": ("sums", "--answer-marker", "My answer:"),
    "labels": ("verdicts", "--labels", "yes,no", "--prompt", "open-question"),
    "talks": ("talks", "--prompt", "conversation"),
    "stopped": ("sums", "--stop", "beta:0.9", "--wave", 3),
}
COPIES = ("c.jsonl", "c.jsonl.gz", "c.csv", "c.tsv.gz", "folder/c.parquet")
READ = {"kept": (), "again": ("--from-texts",)}


def line(kind, k):
    """A problem of a data set."""
    first, second = k % 20, k // 2
    known = {
        "id": f"q{k}",
        "gold": "yes" if kind == "verdicts" else str(first + second),
        "task": QUESTION[kind]["task"],
    }
    if kind == "talks":
        system = {"role": "system", "content": "You add."}
        return known | {
            "messages": [system, {"role": "user", "content": QUESTION[kind]["messages"].format(first, second)}]
        }
    return known | {"question": QUESTION[kind]["question"].format(first, second)}


@pytest.fixture
def sampled(demur, monkeypatch, tmp_path):
    """Samples a run by its name."""
    monkeypatch.setattr("demur.pipeline.config.Config.backend", lambda *_: Scripted(said, model=weights.DEFAULT))
    (tmp_path / "folder").mkdir()

    def sample(name):
        kind, *flags = RUNS[name]
        (tmp_path / "asked.jsonl").write_text("\n".join(json.dumps(line(kind, k)) for k in range(40)))
        assert done(demur("sample", "asked.jsonl", "-m", 5, *flags, "-o", "run.db"))
        return kind

    return sample


def done(ran):
    assert ran.code == 0, ran.err
    return ran


def calibrated(demur, place, *run):
    """The policy of a run or a copy."""
    named = ("--run", *run) if run else ()
    done(demur("calibrate", place, *named, "--score", "perplexity", "--alpha", 0.3, "-o", "policy.json"))
    return json.loads(Path("policy.json").read_text())


def decisions(demur, place):
    """What the policy of the run or copy that was last calibrated decides."""
    return done(demur("decide", place, "--policy", "policy.json", "--json")).json["decisions"]


def used(demur, kind, monkeypatch):
    """What `ask` and `serve` decide on a new question by the policy that was last calibrated."""
    messages = line(kind, 1).get("messages") or [{"role": "user", "content": line(kind, 1)["question"]}]
    Path("talk.json").write_text(json.dumps(messages))
    asked = ("--messages", "talk.json") if kind == "talks" else (messages[0]["content"],)
    ran = demur("ask", *asked, "--policy", "policy.json", "--json")
    assert ran.code in (0, 3), ran.err
    served = {}

    def serve_here(app, *_):
        with listening(app) as address:
            served.update(decided(address, model="policy", messages=messages))

    monkeypatch.setattr("demur.server.running.serve_here", serve_here)
    done(demur("serve", "--policy", "policy.json", "--no-log", "--port", 0))
    return ran.json["decision"], served["decision"]


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("name", RUNS)
def test_a_policy_of_a_copy_is_that_of_the_run_and_is_used_as_that_is(demur, sampled, monkeypatch, name, read):
    kind = sampled(name)
    of_run, expected, reply = calibrated(demur, "run.db"), decisions(demur, "run.db"), used(demur, kind, monkeypatch)
    flags = RUNS[name][1:] if (name, read) == ("expression", "again") else READ[read]
    for copy in COPIES:
        done(demur("answers", "run.db", *flags, "-o", copy))
        place = str(Path(copy).parent) if "/" in copy else copy
        assert calibrated(demur, place) == of_run, copy
        assert decisions(demur, "run.db") == decisions(demur, place) == expected
        done(demur("import", place, "-o", "again.db", "--run", f"of-{Path(copy).name}"))
        assert calibrated(demur, "again.db", f"of-{Path(copy).name}") == of_run, copy
    assert used(demur, kind, monkeypatch) == reply


def test_what_a_run_of_another_extractor_left_without_answer_stays_so(demur, sampled):
    sampled("expression")
    done(demur("answers", "run.db", "-o", "c.jsonl"))
    paths = [path for pool in lines("c.jsonl")[1:] for path in pool["paths"]]
    assert {path["answer"] is None for path in paths if "My answer" in path["text"]} == {True}
    done(demur("answers", "run.db", "--from-texts", "-o", "c.jsonl"))
    assert None not in [path["answer"] for pool in lines("c.jsonl")[1:] for path in pool["paths"]]
    assert lines("c.jsonl")[0]["pipeline"]["answers"] == {"task": "math", "extract": mathematics.spec}


def lines(file):
    return list(map(json.loads, Path(file).read_text().splitlines()))


def test_a_copy_whose_answers_were_read_in_two_ways_does_not_say_one(demur, sampled):
    sampled("expression")
    done(demur("answers", "run.db", "--answer-marker", "My answer:", "-o", "c.jsonl"))
    assert "answers" not in lines("c.jsonl")[0]["pipeline"]


def test_a_policy_that_does_not_say_how_answers_were_read_says_the_way_out(demur, sampled):
    """As policies are that were calibrated on copies of before. A task alone does not say how answers were read."""
    kind = sampled("plain")
    done(demur("answers", "run.db", "-o", "c.jsonl"))
    known, *rest = lines("c.jsonl")
    known["pipeline"].pop("answers")
    Path("c.jsonl").write_text("\n".join(map(json.dumps, [known, *rest])))
    calibrated(demur, "c.jsonl")
    ask = ("ask", line(kind, 1)["question"], "--policy", "policy.json")
    for command in (ask, (*ask, "--task", "math"), ("serve", "--policy", "policy.json", "--no-log", "--port", 0)):
        ran = demur(*command)
        assert (ran.code, "on a copy that `demur answers` writes of it now" in ran.err) == (2, True)


def test_the_task_of_a_policy_is_not_replaced(demur, sampled):
    kind = sampled("plain")
    calibrated(demur, "run.db")
    ask = ("ask", line(kind, 1)["question"], "--policy", "policy.json")
    assert demur(*ask, "--task", "gsm8k").code in (0, 3)  # another name of the same
    ran = demur(*ask, "--task", "qa")
    assert (ran.code, "the policy's task is 'math', not 'qa'; leave --task out" in ran.err) == (2, True)


@pytest.fixture
def log(tmp_path):
    samples = [
        sample(k, epoch, f"The answer is {4 if (k + epoch) % 3 else 5}.") for epoch in (1, 2, 3) for k in range(40)
    ]
    return write_archive(tmp_path / "log.eval", samples)


@pytest.mark.parametrize("copy", COPIES)
def test_copies_of_a_log_and_of_its_run_say_the_same_and_keep_the_task_that_was_given(demur, log, tmp_path, copy):
    (tmp_path / "folder").mkdir()
    place = str(Path(copy).parent) if "/" in copy else copy
    done(demur("import", log, "-o", "run.db"))
    done(demur("answers", "run.db", "--task", "math", "-o", "first.jsonl"))
    done(demur("answers", log, "--task", "math", "-o", copy))
    policies = []
    for file in ("first.jsonl", place):
        done(demur("calibrate", file, "--alpha", 0.5, "-o", "policy.json"))
        policies.append(Path("policy.json").read_bytes())
    assert policies[0] == policies[1]
    said = json.loads(policies[0])["pipeline"]["answers"]
    assert (said["task"], said["extract"], said["relation"]) == (
        "math",
        mathematics.spec,
        f"by-task({mathematics.spec})",
    )
    assert decisions(demur, "first.jsonl") == decisions(demur, place)
    ran = demur("decide", "run.db", "--policy", "policy.json")
    assert "read them off those first: demur answers FILE -o COPY" in ran.err
    asked = demur("ask", "What is 1 + 3?", "--policy", "policy.json")
    assert "on a file that does not say how its paths were sampled; calibrate on a run of `demur sample`" in asked.err


def test_rows_of_several_runs_are_refused(demur, sampled):
    sampled("plain")
    done(demur("answers", "run.db", "-o", "c.csv"))
    header, *rows = Path("c.csv").read_text().splitlines(keepends=True)
    others = [row.replace('""max_tokens"": ', '""max_tokens"": 1').replace("q", "other", 1) for row in rows]
    Path("both.csv").write_text("".join([header, *rows, *others]))
    ran = demur("calibrate", "both.csv", "--alpha", 0.3)
    assert (ran.code, "the column 'demur' tells of several runs; keep them apart" in ran.err) == (2, True)


def test_a_column_of_that_name_in_a_table_of_another_program_is_a_field(demur):
    Path("c.csv").write_text("id,answer,gold,demur\n" + "".join(f"q{k},1,1,hm\n" for k in range(20)))
    done(demur("answers", "c.csv", "-o", "c.jsonl"))
    assert lines("c.jsonl")[0]["paths"][0]["demur"] == "hm"
