"""Whatever is wrong: one line on standard error that names it, exit code 2, no traceback, nothing lost."""

from __future__ import annotations

import json

import pytest

GOOD = [
    {
        "id": f"q{i}",
        "gold": "a",
        "paths": [{"answer": a, "scores": {"s": i - 9 * (a == "b")}, "ok": a == "a"} for a in "ab"],
    }
    for i in range(30)
]


@pytest.fixture
def file(tmp_path):
    def write(change=None, raw=None):
        records = json.loads(json.dumps(GOOD))
        if change:
            change(records)
        path = tmp_path / "pools.jsonl"
        path.write_text("".join(json.dumps(r) + "\n" for r in records) if raw is None else raw)
        return path

    return write


def score_of(record, path, value):
    record["paths"][path]["scores"]["s"] = value


def refused(ran, complaint):
    assert ran.code == 2, ran.out
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
    assert complaint in ran.err


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--alpha", "0"], "alpha must lie strictly between 0 and 1, got 0"),
        (["--alpha", "1.5"], "alpha must lie strictly between 0 and 1, got 1.5"),
        (["--alpha", "nan"], "'nan' is neither a number nor a fraction such as 1/3"),
        (["--alpha", "1/0"], "alpha must be a number strictly between 0 and 1"),
        (["--alpha", "0.1", "--alpha", "0.1"], "alpha = 0.1 occurs twice"),
        (["--alpha", "0.1", "--delta", "0"], "delta must lie strictly between"),
        (["--delta", "0.1", "--smoothed"], "choose one"),
        (["--score", "nope"], "no pool has the score 'nope' in all its paths; there is: s"),
        (["--score", ".ok"], "true and false"),
        (["--score", "s", "--weight", "linear"], "pool_minmax or rank"),
        (["--score", "s", "--weight", "cubic"], "unknown weight 'cubic'"),
        (["--score", "s", "--weight", "exponential:x"], "weight 'exponential:x'"),
        (["--weight", "exponential"], "exponential weights need scores"),
        (["--score", "s", "--normaliser", "zz"], "unknown normaliser 'zz'"),
        (["--tie-break", "coin"], "unknown tie-break 'coin'"),
        (["--tie-break", "mean_score"], "mean_score needs scores"),
        (["--tie-break", "column:margin"], "has nothing in the field 'margin'"),
        (["--answer-field", "answer_y"], "no path in the file has an answer in the field 'answer_y'"),
        (["--correct", "scores"], "must be true or false"),
        (["--hold-out", "1"], "leave some for calibration"),
        (["-o", "no/such/folder/policy.json"], "cannot write no/such/folder/policy.json"),
    ],
)
def test_flags(demur, file, flags, complaint):
    refused(demur("calibrate", file(), *flags), complaint)


@pytest.mark.parametrize(
    ("change", "flags", "complaint"),
    [
        (lambda r: score_of(r[3], 1, float("nan")), ["--score", "s"], "'q3'; null, NaN and infinite numbers"),
        (lambda r: score_of(r[3], 0, float("inf")), ["--score", "s"], "lack the score 's' in some path: 'q3'; "),
        (lambda r: r[3]["paths"][0]["scores"].clear(), ["--score", "s"], "lack the score 's' in some path: 'q3'; "),
        (lambda r: r[4].pop("gold"), [], "problem 'q4' has no gold answer (1 of 30 have none); labels are needed "
         "here; add gold, name ready-made labels as --correct, or leave those problems out with "
         "--drop-unreadable; to count their votes as wrong, calibrate with --partly-labelled"),
        (lambda r: r[5].update(id="q1"), [], "line 6: the id 'q1' already stands in line 2"),
        (lambda r: r[5].update(paths=[]), [], "line 6: `paths` must be a list of at least one path"),
        (lambda r: [p.update(answer="") for x in r for p in x["paths"]], [], "vote"),
        (lambda r: r[7]["paths"][0].update(ok="yess"), ["--correct", "ok"], "'q7', path 0: the label 'ok' must be"),
        (lambda r: r[7]["paths"][0].update(ok="yes"), ["--correct", "ok"], "'ok' holds labels in several ways"),
    ],
)  # fmt: skip
def test_file_contents(demur, file, change, flags, complaint):
    ran = demur("calibrate", file(change), *flags)
    if complaint == "vote":  # all blank is valid: nothing can be answered, and nothing is
        assert ran.code == 0
        assert "–" in ran.out
        return
    refused(ran, complaint)


@pytest.mark.parametrize("raw", ["", "\n\n", "{", '{"id": "q"', "[]", "\x00\x01"])
def test_files_that_are_no_pools(demur, file, raw):
    refused(demur("calibrate", file(raw=raw)), "pools.jsonl")


def test_absent_files_and_policies(demur, file):
    refused(demur("calibrate", "none.jsonl"), "there is no file none.jsonl")
    refused(demur("decide", file(), "--policy", "none.json"), "there is no file none.json")


def test_policies_newer_edited_or_of_another_kind(demur, file, tmp_path):
    source = file()
    demur("calibrate", source, "--alpha", 0.2, "-o", "policy.json")
    policy = tmp_path / "policy.json"
    whole = policy.read_text()
    policy.write_text(whole.replace('"schema": 3', '"schema": 5'))
    refused(demur("decide", source, "--policy", "policy.json"), "schema 5")
    policy.write_text(whole.replace('"k": 6', '"k": 9'))
    refused(demur("decide", source, "--policy", "policy.json"), "changed after it was written")
    policy.write_text(whole[:-200])
    refused(demur("decide", source, "--policy", "policy.json"), "is not JSON")
    refused(demur("decide", source, "--policy", source), "pools.jsonl is not JSON")


def test_pools_of_another_size_or_without_the_score(demur, file, tmp_path):
    demur("calibrate", file(), "--score", "s", "--alpha", 0.2, "-o", "policy.json")
    longer = file(lambda r: [x["paths"].append({"answer": "c", "scores": {"s": 0}}) for x in r])
    refused(demur("decide", longer, "--policy", "policy.json"), "n_paths is 2 in the policy, 3 in pool 'q0'")
    without = file(lambda r: [p.pop("scores") for x in r for p in x["paths"]])
    refused(demur("decide", without, "--policy", "policy.json"), "the score 's'")
    refused(demur("decide", file(), "--policy", "policy.json", "--alpha", 0.3), "it holds 0.2")


def test_calibration_problems_cannot_test_the_policy_by_id_or_by_question(demur, file):
    def asked(records):
        for record in records:
            record["question"] = f"What is {record['id']}?"

    source = file(asked)
    demur("calibrate", source, "--alpha", 0.2, "-o", "policy.json")
    refused(demur("audit", source, "--policy", "policy.json"), "30 of 30 problems calibrated this policy")

    def renamed(records):
        asked(records)
        for record in records:
            record["id"] += "-copy"

    refused(demur("audit", file(renamed), "--policy", "policy.json"), "the first is 'q0-copy'")


def test_flags_that_contradict_a_policy_are_refused(demur, file):
    source = file()
    demur("calibrate", source, "--alpha", 0.2, "--hold-out", 0.5, "-o", "policy.json")
    refused(
        demur("report", source, "--policy", "policy.json", "--score", "s", "--alpha", 0.1),
        "--alpha, --score and --policy exclude each other",
    )
    refused(
        demur("audit", source, "--policy", "policy.json", "--alpha", 0.1),
        "this policy was not calibrated for alpha = 0.1; it holds 0.2 (marginal)",
    )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--errors", 3], "--errors and --of go together"),
        (["--of", 3], "--errors and --of go together"),
        (["--errors", 4, "--of", 3], "errors must lie between 0 and the number of questions, got 4 of 3"),
        (["--errors", 1, "--of", 3, "--policy", "p.json"], "name the policy alone"),
        (["--errors", 1, "--of", 3, "--alpha", 0.3], "not calibrated for alpha = 0.3"),
        ([], "name the policy with --policy, or give --errors and --of"),
    ],
)
def test_an_audit_wants_pools_or_two_numbers(demur, file, flags, said):
    demur("calibrate", file(), "--alpha", 0.2, "-o", "policy.json")
    refused(demur("audit", "policy.json", *flags), said)


def test_splits_that_cannot_be_made(demur, file):
    refused(demur("evaluate", file(), "--n-cal", 30), "n_cal must leave at least one row")
    refused(demur("evaluate", file(), "--splits", 0), "splits must be at least 1")


def test_a_policy_made_in_python_on_codes_says_why_it_cannot_read_a_file(demur, file, tmp_path):
    import numpy as np

    import demur as dm

    policy = dm.calibrate(dm.vote(np.zeros((30, 2), int)), np.ones(30, bool), alpha=0.2)
    policy.save(tmp_path / "coded.json")
    refused(demur("decide", file(), "--policy", "coded.json"), "calibrated on a table in Python")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["launch"], "launch"),
        (["calibrate", "x", "--no-such"], "--no-such"),
        (["calibrate"], "POOLS"),
        (["calibrate", "x", "--alpha", "5%"], "--alpha"),
        (["evaluate", "x", "--seed", "-1"], "--seed"),
        (["simulate", "-o", "."], "is not a file name"),
        (["simulate", "-o", "x.jsonl", "--separation", "nan"], "finite separation"),
    ],
)
def test_complaints_of_the_parser_are_one_line_too(demur, arguments, complaint):
    refused(demur(*arguments), complaint)


def test_flags_that_would_do_nothing_are_refused(demur, file):
    refused(
        demur("calibrate", file(), "--normaliser", "pool_z"),
        "a normaliser does nothing without a score; name one as --score",
    )
    demur("calibrate", file(), "--alpha", 0.2, "--hold-out", 0.5, "-o", "policy.json")
    for flags in (["--seed", 1], ["--delta", 0.1]):
        refused(demur("report", file(), "--policy", "policy.json", *flags), f"{flags[0]} and --policy exclude")
    for flags in (["--n-cal", 0], ["--splits", 3]):
        refused(demur("audit", file(), "--policy", "policy.json", *flags), f"No such option: {flags[0]}")


def test_evaluating_a_policy_is_an_audit_now(demur, file):
    demur("calibrate", file(), "--alpha", 0.2, "--hold-out", 0.5, "-o", "policy.json")
    for more in ([], ["--json"], ["--alpha", 0.2, "--splits", 3]):
        refused(demur("evaluate", file(), "--policy", "policy.json", *more), "demur audit POOLS --policy POLICY")
    assert "--policy" not in demur("evaluate", "--help").out


def test_nothing_written_in_an_answer_commands_the_terminal(demur, file):
    def hostile(records):
        for record in records:
            record["gold"] = record["paths"][0]["answer"] = "\x1b[31mred\x1b]0;x\x07\nnext"

    source = file(hostile)
    demur("calibrate", source, "--score", "s", "--alpha", 0.2, "-o", "policy.json")
    shown = demur("decide", source, "--policy", "policy.json").out
    assert "red" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_an_output_never_takes_the_place_of_an_input(demur, file):
    source = file()
    before = source.read_bytes()
    refused(demur("calibrate", source, "--alpha", 0.2, "-o", source), "is an input of this command")
    demur("calibrate", source, "--alpha", 0.2, "-o", "policy.json")
    for target in (source, "policy.json"):
        refused(demur("decide", source, "--policy", "policy.json", "-o", target), "is an input of this command")
    assert source.read_bytes() == before


def test_half_a_surrogate_pair_and_numbers_beyond_floats_are_survived(demur, file):
    def broken(records):
        records[0]["id"] = records[0]["question"] = records[0]["paths"][0]["answer"] = "x\ud800"

    source = file(broken)
    assert demur("calibrate", source, "--score", "s", "--alpha", 0.2, "--hold-out", 0.3, "-o", "policy.json").code == 0
    for out in ("decisions.jsonl", "decisions.parquet"):
        assert demur("decide", source, "--policy", "policy.json", "-o", out, "--json").code == 0
    assert demur("answers", source, "-o", "keyed.parquet").code == 0
    assert demur("calibrate", "keyed.parquet", "--score", "s", "--alpha", 0.2).code == 0
    refused(
        demur("calibrate", file(lambda r: score_of(r[3], 0, 10**400)), "--score", "s"), "'s' must be a finite number"
    )
