"""Sample logs of lm-evaluation-harness, read as pools: lines in the form that its 0.4 versions write."""

from __future__ import annotations

import json

import pytest

from demur.errors import PoolFileError
from demur.pools.fields import FieldChoice
from demur.pools.files import source_of_file
from demur.pools.source import vote_pools
from demur.records import blinded


def line(doc=0, texts=("So 18", "I say 18", "19"), filtered=("18", "18", "[invalid]"), **changes):
    record = {
        "doc_id": doc,
        "doc": {"question": f"Question {doc}?", "answer": "9 * 2 = 18\n#### 18", "level": "easy"},
        "target": "9 * 2 = 18\n#### 18",
        "arguments": {"gen_args_0": {"arg_0": f"Q: Question {doc}?\nA:", "arg_1": {
            "until": ["Q:"], "do_sample": True, "temperature": 0.8, "max_gen_toks": 64}}},
        "resps": [list(texts)],
        "filtered_resps": [list(filtered) if isinstance(filtered, tuple) else filtered],
        "filter": "strict-match",
        "metrics": ["exact_match"],
        "doc_hash": "d", "prompt_hash": "p", "target_hash": "t",
        "exact_match": 1.0,
    }  # fmt: skip
    return record | changes


def read(tmp_path, *records, name="samples_gsm8k_2026-01-01T00-00-00.jsonl"):
    file = tmp_path / name
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return source_of_file(file)


def test_repeats_are_paths_and_a_filter_that_reads_each_gives_their_answers(tmp_path):
    source = read(tmp_path, line(0), line(1))
    pool = source.pools[0]
    assert [(path.answer, path.text) for path in pool.paths] == [("18", "So 18"), ("18", "I say 18"), (None, "19")]
    assert all(path.has_answer_field for path in pool.paths)
    assert (pool.problem.id, pool.problem.question, pool.problem.gold) == ("0", "Question 0?", ("18",))
    assert dict(source.description.sampling) == {
        "backend": "lm-eval", "temperature": 0.8, "max_tokens": 64, "stop": ["Q:"],
    }  # fmt: skip
    assert vote_pools(source, FieldChoice(relation="mathematics")).correct.tolist() == [True, True]


def test_metrics_and_answers_of_the_data_set_are_labels_that_no_scorer_sees(tmp_path):
    pool = read(tmp_path, line()).pools[0]
    extra = pool.problem.extra
    assert extra["labels"] == {"strict-match": {"exact_match": 1.0}}
    assert (extra["level"], extra["prompt"], extra["doc_hash"]) == ("easy", "Q: Question 0?\nA:", "d")
    assert not {"labels", "gold_answer"} & set(blinded(pool).problem.extra)
    assert not any(path.scores for path in pool.paths)


def test_a_majority_is_no_answer_of_a_path(tmp_path):
    paths = read(tmp_path, line(filtered="18", filter="maj@3")).pools[0].paths
    assert [(path.answer, path.has_answer_field) for path in paths] == [(None, False)] * 3


def test_of_several_filters_each_is_kept_under_its_name(tmp_path):
    records = [line(doc, filter=name, filtered=found) for name, found in
               (("strict", ("18", "18", "[invalid]")), ("flexible", ("18", "18", "19"))) for doc in (0, 1)]  # fmt: skip
    source = read(tmp_path, *records)
    assert len(source.pools) == 2
    assert source.pools[1].paths[2].extra == {"answer_strict": None, "answer_flexible": "19"}
    assert not source.pools[1].paths[2].has_answer_field
    voted = vote_pools(source, FieldChoice(answer_field="answer_flexible", relation="mathematics"))
    assert voted.votes.confidence.tolist() == pytest.approx([2 / 3, 2 / 3])


def test_one_repeat_is_one_path(tmp_path):
    assert read(tmp_path, line(texts=("So 18",), filtered="18")).pools[0].paths[0].answer == "18"


def test_older_logs_have_arguments_as_lists(tmp_path):
    old = line(arguments=[["Q: old?\nA:", {"until": ["\n"], "temperature": 0.5}]]) | {"doc": "a text"}
    source = read(tmp_path, old)
    assert source.pools[0].problem.question == "Q: old?\nA:"
    assert source.description.sampling["temperature"] == 0.5


def test_whatever_metrics_an_older_log_has_are_labels_though_it_does_not_name_them(tmp_path):
    old = {name: value for name, value in line().items() if name != "metrics"}
    pool = read(tmp_path, old | {"math_verify": 1, "pass@1": 0.0, "prompt_level_strict_acc": True}).pools[0]
    told = {"exact_match": 1.0, "math_verify": 1, "pass@1": 0.0, "prompt_level_strict_acc": True}
    assert pool.problem.extra["labels"] == {"strict-match": told}
    assert set(blinded(pool).problem.extra) == {"level", "prompt", "doc_hash", "prompt_hash", "target_hash"}


@pytest.mark.parametrize("texts", [("So 18", "I say 18"), ("So 18",)])
def test_a_filter_that_leaves_texts_as_they_are_gives_no_answers(tmp_path, texts):
    found = texts if len(texts) > 1 else texts[0]
    paths = read(tmp_path, line(texts=texts, filtered=found, filter="none")).pools[0].paths
    assert [(path.answer, path.has_answer_field) for path in paths] == [(None, False)] * len(texts)


def test_a_filter_that_reads_some_texts_has_read_those_that_are_answers_already(tmp_path):
    source = read(tmp_path, line(0), line(1, texts=("18", "18", "19"), filtered=("18", "18", "19")))
    assert [[path.answer for path in pool.paths] for pool in source.pools] == [["18", "18", None], ["18", "18", "19"]]


def test_a_log_whose_later_filters_lack_questions_was_cut_off(tmp_path):
    """Read as it is, one question would have its answers under a name, and the next as its answers."""
    whole = [line(doc, filter=name) for name in ("strict", "flexible") for doc in (0, 1)]
    with pytest.raises(PoolFileError, match=r"'1' has no line of the filter 'flexible', .* cut off"):
        read(tmp_path, *whole[:3])


def test_a_right_answer_that_is_a_list_is_no_choice_of_answers(tmp_path):
    """The data set itself says it as a text: to take either entry for right would call wrong answers right."""
    said = line(target="['a', 'b']") | {"doc": {"question": "Sorted?", "output": "['a', 'b']"}}
    assert read(tmp_path, said).pools[0].problem.gold == ("['a', 'b']",)


def test_right_answers_of_the_data_set_are_hidden_whatever_kind_of_answers_they_are_called(tmp_path):
    doc = {"question": "Q?", "best_answer": "18", "Correct Answers": ["18"], "answer_type": "number", "labels": [1, 0]}
    pool = read(tmp_path, line(doc=0) | {"doc": doc}).pools[0]
    assert (pool.problem.extra["gold_best_answer"], pool.problem.extra["gold_Correct Answers"]) == ("18", ["18"])
    assert (pool.problem.extra["gold_labels"], pool.problem.extra["labels"]) == (
        [1, 0],
        {"strict-match": {"exact_match": 1}},
    )
    assert {"level", "answer_type"} & set(blinded(pool).problem.extra) == {"answer_type"}


def test_a_log_that_was_saved_with_a_byte_order_mark_is_known(tmp_path):
    file = tmp_path / "samples.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(line()).encode() + b"\r\n" + json.dumps(line(1)).encode())
    assert [pool.problem.id for pool in source_of_file(file).pools] == ["0", "1"]


@pytest.mark.parametrize(
    ("target", "gold"),
    [("18", ("18",)), ("1,234 and so\n#### 1,234", ("1234",)), ("['a', 'b']", ("a", "b")), ("[1, 2]", ("[1, 2]",)),
     ("[not a list", ("[not a list",)), ("", ()), (7, (7,))],
)  # fmt: skip
def test_targets_are_gold(tmp_path, target, gold):
    assert read(tmp_path, line(target=target)).pools[0].problem.gold == gold


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"resps": [[["-1.5", "True"]], [["-2.5", "False"]]]}, "log-likelihoods of given answers are no paths"),
        ({"resps": []}, "one list of sampled texts"),
        ({"resps": [[]]}, "one list of sampled texts"),
        ({"resps": [[1, 2]]}, "one list of sampled texts"),
        ({"doc_id": None}, "`doc_id` must be"),
    ],
)
def test_what_holds_no_sampled_texts_is_refused_with_its_line(tmp_path, changes, told):
    with pytest.raises(PoolFileError, match="line 2") as refused:
        read(tmp_path, line(0), line(1) | changes)
    assert told in str(refused.value)


def test_two_evaluations_in_one_file_are_not_mixed(tmp_path):
    for again in (line(0), line(0, filter="other", texts=("a", "b", "c"))):
        with pytest.raises(PoolFileError, match="stands there before"):
            read(tmp_path, line(0), again)


def test_a_file_that_was_cut_is_named_with_its_line(tmp_path):
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps(line(0)) + "\n" + json.dumps(line(1))[:50])
    with pytest.raises(PoolFileError, match=r"line 2: expected one whole JSON object"):
        source_of_file(file)
