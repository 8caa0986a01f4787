"""Logs of other programs on the command line: imported, read, and calibrated on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demur.store import Store
from inspect_logs import ZSTANDARD, header, sample, write_archive, write_entries, write_json


def log_of(name="log.eval", questions=60, epochs=5, **changes):
    """Sums, right by most epochs where the question is even."""
    samples = [
        sample(f"q{k}", e, f"So it is \\boxed{{{k + 3 if k % 2 == 0 or e == 1 else 1000}}}.", target=str(k + 3),
               value="C" if k % 2 == 0 or e == 1 else "I", input=f"What is {k} + 3?", **changes)
        for e in range(1, epochs + 1) for k in range(questions)
    ]  # fmt: skip
    return write_archive(Path(name), samples, method=ZSTANDARD)


def test_a_log_is_imported_read_and_calibrated_on(demur):
    log_of()
    ran = demur("import", "log.eval", "-o", "run.db")
    assert ran.code == 0, ran.err
    assert "60 problems, 300 new paths" in ran.out
    assert "demur answers run.db -o" in ran.out
    assert demur("answers", "run.db", "--task", "math", "-o", "pools.jsonl").code == 0
    ran = demur("calibrate", "pools.jsonl", "--alpha", 0.1, "-o", "p.json", "--task", "math", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["pipeline"]["sampling"]["model"] == "openai/small"
    # The same from the log itself, without a run between.
    assert demur("answers", "log.eval", "--task", "math", "-o", "direct.jsonl").code == 0
    direct = demur("calibrate", "direct.jsonl", "--alpha", 0.1, "-o", "d.json", "--task", "math", "--json")
    assert direct.json["points"] == ran.json["points"]


def test_a_score_labels_paths_only_where_it_is_named(demur):
    log_of()
    assert demur("import", "log.eval", "-o", "run.db", "--labels-by", "match").code == 0
    assert demur("answers", "run.db", "--task", "math", "-o", "pools.jsonl").code == 0
    fields = ("--task", "math", "--alpha", 0.1, "--json")
    named = demur("calibrate", "pools.jsonl", "--correct", "correct", "-o", "p.json", *fields)
    by_gold = demur("calibrate", "pools.jsonl", "-o", "g.json", *fields)
    thresholds = [[(point["k"], point["threshold"]) for point in ran.json["points"]] for ran in (named, by_gold)]
    assert thresholds[0] == thresholds[1]
    for score in (".labels.match.value", ".correct", "match"):
        assert demur("calibrate", "pools.jsonl", "--score", score, "-o", "x.json", *fields).code == 2
    assert demur("import", "log.eval", "-o", "plain.db").code == 0
    with Store("plain.db") as store:
        assert all("correct" not in path.extra for pool in store.run().pools() for path in pool.paths)


def test_importing_again_adds_nothing_and_another_evaluation_is_not_mixed_in(demur):
    log_of()
    assert demur("import", "log.eval", "-o", "run.db").code == 0
    assert "0 new paths" in demur("import", "log.eval", "-o", "run.db").out
    other = [sample(f"q{k}", e, "other words", input=f"What is {k} + 3?") for e in range(1, 6) for k in range(3)]
    write_archive(Path("other.eval"), other)
    ran = demur("import", "other.eval", "-o", "run.db")
    assert ran.code == 2
    assert "with other paths; choose another --run" in ran.err
    write_archive(Path("fewer.eval"), [one for one in other if one["epoch"] < 4])
    ran = demur("import", "fewer.eval", "-o", "run.db")
    assert ran.code == 2
    assert "more than the 3 asked for" in ran.err


def test_verdicts_that_were_changed_since_are_refused_and_never_left_as_they_were(demur):
    """A score edited in the log, one that is named as the label only now, and one that is no number."""
    samples = [sample(f"q{k}", value="C", input=f"What is {k} + 3?") for k in range(3)]
    for each in samples:
        each["scores"]["unscored"] = {"value": float("nan")}
    write_archive(Path("log.eval"), samples)
    assert demur("import", "log.eval", "-o", "run.db", "--labels-by", "match").code == 0
    assert "0 new paths" in demur("import", "log.eval", "-o", "run.db", "--labels-by", "match").out
    samples[1]["scores"]["match"] |= {"value": "I"}
    write_archive(Path("edited.eval"), samples)
    for command in (("edited.eval", "--labels-by", "match"), ("edited.eval",), ("log.eval",)):
        ran = demur("import", *command, "-o", "run.db")
        assert (ran.code, ran.err.count("\n")) == (2, 1), command
        assert "is in the run 'run' with other scores; choose another --run" in ran.err


def test_samples_that_failed_leave_pools_that_lack_paths(demur):
    """What is missing is known to be missing: figures without it are refused, unless asked for."""
    good = [sample(k, e, "So \\boxed{4}.") for k in range(8) for e in (1, 2)]
    good[3]["error"] = {"message": "RateLimit"}
    write_archive(Path("log.eval"), good)
    ran = demur("import", "log.eval", "-o", "run.db")
    assert "1 samples hold no path: RateLimit" in ran.out
    assert "1 problems lack paths" in ran.out
    ran = demur("evaluate", "run.db", "--alpha", 0.3)
    assert ran.code == 2
    assert "1 of 8 problems" in ran.err
    # The log of a retry brings the rest, under the epoch it was asked for.
    write_archive(Path("retry.eval"), [sample(1, 1, "So \\boxed{4}."), sample(1, 2, "So \\boxed{4}.")])
    assert "1 new paths" in demur("import", "retry.eval", "-o", "run.db").out


def test_a_problem_whose_epochs_all_failed_is_known_to_lack_them(demur):
    """Hard questions fail most: left out without a word, figures would hold for the easy ones alone."""
    failed = {"error": {"message": "RateLimit"}}
    good = [sample(k, e, "So \\boxed{4}.", **(failed if k in (0, 5) else {})) for k in range(8) for e in (1, 2)]
    write_archive(Path("log.eval"), good)
    ran = demur("import", "log.eval", "-o", "run.db", "--json")
    assert (ran.json["problems"], ran.json["lacking"], ran.json["new_paths"]) == (8, 2, 12)
    ran = demur("evaluate", "run.db", "--alpha", 0.3)
    assert ran.code == 2
    assert "2 of 8 problems" in ran.err
    write_archive(Path("retry.eval"), [sample(k, e, "So \\boxed{4}.") for k in (0, 5) for e in (1, 2)])
    assert demur("import", "retry.eval", "-o", "run.db", "--json").json["new_paths"] == 4
    write_archive(Path("none.eval"), [one for one in good if "error" in one])
    ran = demur("import", "none.eval", "-o", "none.db")
    assert "holds no sample that a model answered: 4 × RateLimit" in ran.err
    assert not Path("none.db").exists()


def test_a_log_that_was_cut_off_is_refused_or_recovered(demur):
    whole = log_of().read_bytes()
    Path("log.eval").write_bytes(whole[: len(whole) // 2])
    ran = demur("import", "log.eval", "-o", "run.db")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "log.eval is cut off" in ran.err
    assert "--recover" in ran.err
    assert not Path("run.db").exists()
    ran = demur("import", "log.eval", "-o", "run.db", "--recover", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["cut_off"]
    assert 0 < ran.json["new_paths"] < 300
    Path("log.eval").write_bytes(whole)  # the whole copy, later, adds what was missing
    ran = demur("import", "log.eval", "-o", "run.db", "--json")
    assert ran.json["new_paths"] > 0
    with Store("run.db") as store:
        assert store.run().summary()["paths"] == 300


def test_an_unfinished_log_says_how_much_of_its_data_set_it_holds(demur):
    stopped = header(ids=range(9), status="cancelled")
    write_entries(Path("log.eval"), [("samples/1_epoch_1.json", sample()), ("header.json", stopped)])
    ran = demur("import", "log.eval", "-o", "run.db")
    assert "holds 1 of the 9 samples of its data set (its status: cancelled)" in ran.out


def test_problems_that_a_stopped_log_never_came_to_are_known_to_lack_their_paths(demur):
    """The quick ones come first: figures for those alone are refused, of the run and of the log read in place."""
    done = [sample(k, e, "So \\boxed{4}.") for k in range(6) for e in (1, 2)]
    entries = [(f"samples/{one['id']}_epoch_{one['epoch']}.json", one) for one in done[:8]]
    stopped = [*entries, ("header.json", header(2, range(6), status="cancelled"))]
    write_entries(Path("stopped.eval"), stopped)
    ran = demur("import", "stopped.eval", "-o", "run.db")
    assert "4 problems, 8 new paths" in ran.out
    assert "2 problems lack paths: import the log of a retry, or leave them out by --partial" in ran.out
    for place in ("run.db", "stopped.eval"):
        ran = demur("answers", place, "-o", "x.jsonl")
        assert ran.code == 2
        assert "2 of 6 problems" in ran.err
        assert "the log of a retry" in ran.err
        assert "demur sample" not in ran.err
    assert demur("answers", "run.db", "--partial", "-o", "x.jsonl").code == 0
    assert "0 new paths" in demur("import", "stopped.eval", "-o", "run.db").out
    write_archive(Path("retry.eval"), done)
    assert "4 new paths" in demur("import", "retry.eval", "-o", "run.db").out
    assert demur("answers", "run.db", "-o", "y.jsonl").code == 0
    assert '"question": "What is 5 + 3?"' in Path("y.jsonl").read_text()


def test_several_files_are_imported_one_after_another(demur):
    write_json(Path("one.json"), [sample("a")])
    write_json(Path("two.json"), [sample("b")])
    assert demur("import", "one.json", "two.json", "-o", "run.db").code == 0
    with Store("run.db") as store:
        assert set(store.run().numbers()) == {"a", "b"}


@pytest.mark.parametrize("flags", [("--labels-by", "match"), ("--recover",)])
def test_flags_of_logs_are_refused_elsewhere(demur, pools, flags):
    ran = demur("import", pools, "-o", "run.db", *flags)
    assert ran.code == 2
    assert "for logs of inspect" in ran.err


def test_repeats_of_lm_eval_and_results_of_uqlm_become_runs(demur):
    record = {"doc_id": 0, "doc": {"question": "2 + 2?"}, "target": "4", "arguments": {"gen_args_0": {"arg_0": "2 + 2?",
              "arg_1": {"temperature": 1.0}}}, "resps": [["4", "5"]], "filtered_resps": [["4", "5"]], "filter": "none",
              "metrics": ["exact_match"], "exact_match": 0.0}  # fmt: skip
    Path("samples_sums.jsonl").write_text(json.dumps(record) + "\n")
    ran = demur("import", "samples_sums.jsonl", "-o", "lm.db", "--json")
    assert (ran.json["problems"], ran.json["new_paths"], ran.json["scores"]) == (1, 2, [])
    data = {"prompts": ["a?"], "responses": ["1"], "sampled_responses": [["2"]]}
    Path("result.json").write_text(json.dumps({"data": data}))
    ran = demur("import", "result.json", "-o", "uq.db", "--json")
    assert (ran.json["problems"], ran.json["new_paths"]) == (1, 2)
