"""`demur answers`: a classed copy, what changed, and why two answers are the same."""

from __future__ import annotations

import json

import pytest

from demur.pools.fields import FieldChoice, read_table
from demur.pools.jsonl import read_pools
from demur.pools.labels import read_labels


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
    assert list(decision["key"]) == ["share", "jitter"]
    assert decision["support"] == {"0.5": 2}
    apart = demur("calibrate", "classed.jsonl", "--alpha", 0.2, "--relation", "plain", "--json").json
    assert apart["vote_accuracy"] == 0.0


def test_extraction_and_relation_of_your_own(demur, file, tmp_path):
    demur("answers", file, "-o", "x.jsonl", "--extract", "boxed.(.)", "--relation", "plain")
    assert [p["answer"] for p in read(tmp_path / "x.jsonl")[1]["paths"]] == ["\\", None, "3", None]


def right_paths(file):
    """Whether each path of a file is right, by its gold."""
    pools = list(read_pools(file))
    table = read_table(pools, FieldChoice())
    return read_labels(pools, table).of_paths(table)


def test_the_slow_path_gives_an_answer_the_spelling_it_is_equal_to(demur, tmp_path):
    pool = {"id": "q", "task": "math", "gold": "6", "paths": [{"answer": "\\sum_{k=1}^{3} k"}, {"answer": "6"}]}
    (tmp_path / "s.jsonl").write_text(json.dumps(pool) + "\n")
    ran = demur("answers", "s.jsonl", "-o", "slow.jsonl", "--slow", "verdicts.json")
    assert ran.code == 0
    assert "asked math-verify 1 times and gave 1 answers the spelling they are equal to" in ran.out
    [classed] = read(tmp_path / "slow.jsonl")
    assert [p["answer"] for p in classed["paths"]] == ["6", "6"]
    assert classed["paths"][0]["answer_written"] == "\\sum_{k=1}^{3} k"
    assert "answer_written" not in classed["paths"][1]
    assert classed["gold"] == "6"
    again = demur("answers", "s.jsonl", "-o", "again.jsonl", "--slow", "verdicts.json", "--json").json
    assert again["slow"] == {"respelled": 1, "disputed": 0, "asked": 0, "killed": 0, "restarted": 0}


HALF, SIX = "\\int_0^1 x dx", "\\sum_{k=1}^{3} k"


def test_with_the_slow_path_every_right_path_stays_right_whatever_gold_is(demur, tmp_path):
    pools = [
        ("C", ["C", "C", "C", '"C"', "\\sum_{k=1}^{1} C"], [True] * 5),
        ("6", [SIX, "6", "6.0", "7", "\\sum_{j=1}^{3} j"], [True, True, True, False, True]),
        (SIX, [SIX, "6", "7", "\\frac{6}{1"], [True, True, False, False]),  # gold that only the slow path can read
        (["7", SIX], ["6", SIX, "7", "\\sum_{k=1}^{7} 1"], [True, True, True, True]),
        (HALF, [HALF, HALF.replace("x", "t"), "2"], [True, True, False]),  # and nothing that the rules can
        ("1/2", [HALF, "2"], [False, False]),  # nobody wrote it as the rules read it, and gold tells nobody
    ]
    records = [
        {"id": f"q{number}", "task": "math", "gold": gold, "paths": [{"answer": answer} for answer in answers]}
        for number, (gold, answers, _) in enumerate(pools)
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert demur("answers", "s.jsonl", "-o", "slow.jsonl", "--slow", "verdicts.json").code == 0
    before, after = right_paths(tmp_path / "s.jsonl"), right_paths(tmp_path / "slow.jsonl")
    assert after == [right for _, _, right in pools]
    for was, now in zip(before, after, strict=True):
        assert all(right for right, was_right in zip(now, was, strict=True) if was_right)


def test_gold_changes_no_answer_of_a_classed_file(demur, tmp_path):
    paths = [{"answer": answer} for answer in (SIX, "6", "7", HALF)]
    classed = []
    for gold in ("6", SIX, "7", HALF, "1/2", ["x", SIX]):
        (tmp_path / "g.jsonl").write_text(json.dumps({"id": "q", "task": "math", "gold": gold, "paths": paths}) + "\n")
        assert demur("answers", "g.jsonl", "-o", "classed.jsonl", "--slow", "verdicts.json").code == 0
        [pool] = read(tmp_path / "classed.jsonl")
        classed.append(pool["paths"])
    assert all(same == classed[0] for same in classed)


def test_the_vote_of_a_classed_file_counts_merged_answers_together(demur, tmp_path):
    answers = [SIX, "6", "7", "7", "\\sum_{j=1}^{3} j"]
    pools = [{"id": f"q{i}", "task": "math", "gold": "6", "paths": [{"answer": a} for a in answers]} for i in range(20)]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(pool) + "\n" for pool in pools))
    demur("answers", "s.jsonl", "-o", "slow.jsonl", "--slow", "verdicts.json")
    apart, together = (demur("calibrate", f"{name}.jsonl", "--alpha", 0.2, "--json").json for name in ("s", "slow"))
    assert (apart["vote_accuracy"], together["vote_accuracy"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    "content",
    ["", "no JSON", '{"format": "demur-verdicts", "verdicts": []}', '{"format": "demur-policy", "version": 2}'],
)
def test_a_verdict_file_that_is_none_is_refused_in_one_line_and_left_alone(demur, file, tmp_path, content):
    (tmp_path / "v.json").write_text(content)
    ran = demur("answers", file, "-o", "x.jsonl", "--slow", "v.json")
    assert ran.code == 2
    assert "cannot be read as verdicts" in ran.err
    assert "name another file" in ran.err
    assert ran.err.count("\n") == 1
    assert (tmp_path / "v.json").read_text() == content


def test_two_answers_explained(demur):
    assert "The same by auto@2" in demur("answers", "--explain", "1/2", "0.50").out
    facts = demur("answers", "--explain", "4t", "4", "--json").json
    assert facts["same"] is False
    assert "text@3" in demur("answers", "--explain", "The Beatles", "beatles", "--relation", "text").out


def test_the_whole_way_from_a_text_to_its_key_is_explained(demur, file):
    told = demur("answers", "--explain", "We add. So the answer is 0.50.", "1/2", "--task", "math").out
    assert "by its 'answer is' at (25, 29): '0.50' is read as the number 1/2  [n:1/2]" in told
    assert "The same by mathematics@3." in told
    told = demur("answers", file, "--explain").out
    assert "q0, path 0: found by boxed, by mathematics@3\n  text    so \\boxed{⟦\\frac12⟧}" in told
    assert "  key     n:1/2: the number 1/2" in told
    assert told.count("found by boxed") == 1
    assert demur("answers", file, "--explain", "--problem", "q3").out.count("found by") == 4


def test_a_file_is_looked_at_without_writing_one(demur, file, tmp_path):
    before = sorted(tmp_path.iterdir())
    told = demur("answers", file).out
    assert "How answers were found" in told
    assert "31 of 120 paths (26%) have no answer" in told
    assert "ways out: --answer-marker TEXT, --labels A,B,C, --task NAME, --extract SPEC" in told
    assert sorted(tmp_path.iterdir()) == before


def test_texts_are_read_whatever_answers_there_are(demur, tmp_path):
    path = {"answer": "7", "text": "My verdict: 8"}
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "q", "task": "math", "paths": [path]}) + "\n")
    assert demur("answers", "a.jsonl", "--json").json["methods"] == {"given": 1}
    demur("answers", "a.jsonl", "--from-texts", "--answer-marker", "my verdict:", "-o", "b.jsonl")
    read_again = read(tmp_path / "b.jsonl")[0]["paths"][0]
    assert (read_again["answer"], read_again["extraction"], read_again["found_at"]) == ("8", "marker", [12, 13])


def test_classes_of_what_looks_different_are_warned_of(demur, tmp_path):
    paths = [{"answer": "5 dollars"}, {"answer": "5 euros"}, {"answer": "5"}]
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "q", "task": "math", "paths": paths}) + "\n")
    warned = demur("answers", "a.jsonl", "--json").json["warnings"]
    assert warned == ["in 1 of 1 problems one class holds what looks different: n:5 holds '5 dollars' and '5 euros'"]


def test_labels_without_letters(demur, tmp_path):
    paths = [{"text": "Thus it is uncertain."}, {"text": "The answer is True."}, {"text": "It is true or false."}]
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "q", "gold": "Uncertain", "paths": paths}) + "\n")
    flags = ["--task", "mc", "--labels", "True,False,Uncertain"]
    demur("answers", "a.jsonl", *flags, "-o", "b.jsonl")
    assert [path["answer"] for path in read(tmp_path / "b.jsonl")[0]["paths"]] == ["Uncertain", "True", None]
    told = demur("calibrate", "b.jsonl", *flags, "--alpha", 0.5, "--json")
    assert told.json["notes"][0].startswith("Answers are compared by choice@3: ")


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [([], "give one pool file or run, or --explain and texts"), (["--explain"], "give the texts or answers to explain"),
     (["texts.jsonl", "x.jsonl"], "give one pool file or run"), (["none.jsonl"], "there is no file none.jsonl"),
     (["texts.jsonl", "--answer-marker", "My verdict:"], "no path has the answer marker 'My verdict:'"),
     (["texts.jsonl", "--answer-marker", " "], "an answer marker must not be blank"),
     (["texts.jsonl", "--task", "sums"], "the task 'sums' is not known; known are math (mathematics, maths, gsm8k"),
     (["texts.jsonl", "--labels", "yes,Yes"], "the label 'Yes' is given twice"),
     (["texts.jsonl", "--labels", "yes,,no"], "a label must not be blank"),
     (["texts.jsonl", "--explain", "--problem", "q99"], "no problem has the id 'q99'"),
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


READY = [
    {
        "id": "q1",
        "question": "How many?",
        "gold": "3",
        "paths": [{"text": f"So {n}.", "answer": n} for n in ("3", "4")],
    },
    {"id": "q2", "question": "How many?", "gold": "5", "paths": [{"text": "So 5.", "answer": "5"}] * 2},
]


def written(place, *rows):
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place.name


def test_a_marker_for_texts_that_are_not_read_is_said_to_be_ignored(demur, tmp_path):
    file = written(tmp_path / "ready.jsonl", *READY)
    ran = demur("answers", file, "--answer-marker", "So")
    assert ran.code == 0
    assert ran.err.count("--answer-marker is ignored: all paths have answers already; --from-texts reads") == 1
    assert "ignored" not in demur("answers", file, "--answer-marker", "So", "--from-texts").err
    half = [READY[0], {**READY[1], "paths": [{"text": "So 5."}, {"text": "So 5."}]}]
    told = demur("answers", written(tmp_path / "half.jsonl", *half), "--answer-marker", "So").err
    assert "is ignored: 2 of 4 paths have answers already" in told


def test_a_tolerance_below_zero_is_told_what_a_tolerance_is(demur, tmp_path):
    file = written(tmp_path / "ready.jsonl", *READY)
    for share in ("-1", "1.5", "0"):
        ran = demur("evaluate", file, "--gold-tolerance", share)
        assert ran.code == 2
        assert f"strictly between 0 and 1, such as 0.01; got '{share}'" in ran.err


def test_a_task_that_nobody_knows_is_named_with_its_problem_in_one_line(demur, tmp_path):
    ran = demur("evaluate", written(tmp_path / "odd.jsonl", READY[0], {**READY[1], "task": "sums"}))
    assert ran.code == 2
    assert ran.err.startswith("error: problem 'q2': the task 'sums' is not known; known are math (mathematics, ")
    assert "gsm8k" in ran.err
    assert ran.err.rstrip().endswith("name one as --task")
    assert ran.err.count("\n") == 1


def test_gold_that_is_no_answer_is_named_with_its_problem_and_the_way_out(demur, tmp_path):
    paths = [{"answer": '{"total": 3}'}, {"answer": '{"total": 4}'}]
    golds = {"q1": {"total": 3}, "q2": "Paris is it"}
    rows = [{"id": name, "question": "?", "gold": gold, "paths": paths} for name, gold in golds.items()]
    ran = demur("evaluate", written(tmp_path / "orders.jsonl", *rows), "--relation", "json")
    assert ran.code == 2
    assert "the gold of problem 'q2' is no JSON value" in ran.err
    assert (
        "'Paris is it'; correct it, leave such problems out with --drop-unreadable, compare by another --relation"
        in ran.err
    )


def test_rules_for_parts_that_no_answer_has_are_all_named(demur, tmp_path):
    rows = [{"id": "q1", "question": "?", "gold": {"a": 3}, "paths": [{"answer": '{"a": 3}'}]}]
    (tmp_path / "rules.json").write_text('{"ignore": ["/id"], "unordered": ["/tags"]}')
    for verb in ("answers", "evaluate"):
        ran = demur(verb, written(tmp_path / "orders.jsonl", *rows), "--relation", "json:rules.json")
        assert "the rules for answers name '/id', '/tags', and no answer has that" in ran.err


def test_another_task_than_the_policys_names_the_way_out(demur, tmp_path):
    file = written(tmp_path / "ready.jsonl", *READY)
    demur("calibrate", file, "--alpha", "0.9", "-o", "policy.json")
    ran = demur("decide", file, "--policy", "policy.json", "--task", "qa")
    assert ran.code != 0
    assert "leave --task out, or give the one that the policy was calibrated with" in ran.err
