"""`demur answers`: a classed copy, what changed, and why two answers are the same."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def file(tmp_path):
    texts = ["so \\boxed{\\frac12}", "The answer is 0.5.", "\\boxed{3}", "I give up"]
    pools = [
        {"id": f"q{i}", "task": "math", "gold": "1/2", "paths": [{"text": t, "finish_reason": "stop"} for t in texts]}
        for i in range(30)
    ]
    pools[0]["paths"][2]["finish_reason"] = "length"
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(pool) + "\n" for pool in pools))
    return path


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_texts_become_answers_with_method_and_key_in_a_copy(demur, file, tmp_path):
    before = file.read_bytes()
    ran = demur("answers", file, "-o", "classed.jsonl", "--json")
    assert ran.json["methods"] == {"boxed": 59, "answer is": 30, "none": 30, "truncated": 1}
    assert ran.json["classes"] == 59
    first = read(tmp_path / "classed.jsonl")[0]["paths"]
    assert [p["answer"] for p in first] == ["\\frac12", "0.5", None, None]
    assert [p["key"] for p in first] == ["n:1/2", "n:1/2", None, None]
    assert [p["extraction"] for p in first] == ["boxed", "answer is", "truncated", "none"]
    assert file.read_bytes() == before
    text = demur("answers", file, "-o", "again.jsonl").out
    assert "spellings in 30 problems" in text
    assert "the same: 0.5, \\frac12" in text


def test_the_core_commands_class_answers_by_task_and_show_them_as_written(demur, file):
    demur("answers", file, "-o", "classed.jsonl")
    facts = demur("calibrate", "classed.jsonl", "--alpha", 0.2, "-o", "policy.json", "--json").json
    assert facts["vote_accuracy"] == 1.0  # two spellings of one half outvote 3
    decision = demur("decide", "classed.jsonl", "--policy", "policy.json", "--json").json["decisions"][0]
    assert decision["answer"] == "0.5"
    assert decision["key"] == "n:1/2"
    assert decision["support"] == {"0.5": 2}
    apart = demur("calibrate", "classed.jsonl", "--alpha", 0.2, "--relation", "plain", "--json").json
    assert apart["vote_accuracy"] == 0.0


def test_extraction_and_relation_of_your_own(demur, file, tmp_path):
    demur("answers", file, "-o", "x.jsonl", "--extract", "boxed.(.)", "--relation", "plain")
    assert [p["answer"] for p in read(tmp_path / "x.jsonl")[1]["paths"]] == ["\\", None, "3", None]


def test_the_slow_path_gives_an_answer_the_spelling_it_is_equal_to(demur, tmp_path):
    pool = {"id": "q", "task": "math", "gold": "6", "paths": [{"answer": "\\sum_{k=1}^{3} k"}, {"answer": "6"}]}
    (tmp_path / "s.jsonl").write_text(json.dumps(pool) + "\n")
    assert demur("answers", "s.jsonl", "-o", "slow.jsonl", "--slow", "verdicts.json").code == 0
    paths = read(tmp_path / "slow.jsonl")[0]["paths"]
    assert [p["answer"] for p in paths] == ["6", "6"]
    assert paths[0]["answer_written"] == "\\sum_{k=1}^{3} k"
    assert (tmp_path / "verdicts.json").exists()


def test_two_answers_explained(demur):
    assert "The same by mathematics@2" in demur("answers", "--explain", "1/2", "0.50").out
    facts = demur("answers", "--explain", "4t", "4", "--json").json
    assert facts["same"] is False
    assert "text@2" in demur("answers", "--explain", "The Beatles", "beatles", "--relation", "text").out


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [([], "give a pool file and -o FILE"), (["texts.jsonl"], "give a pool file and -o FILE"),
     (["texts.jsonl", "-o", "texts.jsonl"], "is an input of this command"),
     (["texts.jsonl", "-o", "x.jsonl", "--relation", "maths"], "unknown relation 'maths'"),
     (["texts.jsonl", "-o", "x.jsonl", "--extract", "("], "nor a regular expression"),
     (["texts.jsonl", "-o", "x.jsonl", "--extract", "no.such:fn"], "No module named")],
)  # fmt: skip
def test_bad_input_is_one_line(demur, file, flags, complaint):
    ran = demur("answers", *flags)
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert complaint in ran.err
