"""Results of uqlm, read as pools: as `to_dict` and `to_df` have them, saved as people save them."""

from __future__ import annotations

import csv
import json

import pandas as pd
import pytest

from demur.errors import PoolFileError
from demur.pools.fields import FieldChoice
from demur.pools.files import source_of_file
from demur.pools.source import vote_pools
from demur.records import blinded

DATA = {
    "prompts": ["What is 2 + 2?", "What is 3 + 3?"],
    "responses": ["4", "6"],
    "sampled_responses": [["4", "5"], ["6", "6"]],
    "semantic_negentropy": [0.4, 1.0],
    "noncontradiction": [0.5, 0.9],
}
METADATA = {"temperature": 0.0, "sampling_temperature": 1.0, "num_responses": 2, "scorers": ["noncontradiction"]}
RESULT = {"data": DATA, "metadata": METADATA}
FRAME = pd.DataFrame(DATA).rename(columns={"prompts": "prompt", "responses": "response"})  # as `to_df` names them


def texts(source):
    return [[path.text for path in pool.paths] for pool in source.pools]


SAVED = {
    "dict.json": lambda path: path.write_text(json.dumps(RESULT)),
    "indented.json": lambda path: path.write_text(json.dumps(RESULT, indent=2)),
    "lines.jsonl": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "records.json": lambda path: FRAME.to_json(path, orient="records"),
    "columns.json": lambda path: FRAME.to_json(path),
    "table.csv": lambda path: FRAME.to_csv(path),
    "bare.csv": lambda path: FRAME.to_csv(path, index=False),
    "quoted.csv": lambda path: FRAME.to_csv(path, index=False, quoting=csv.QUOTE_ALL),
}


@pytest.mark.parametrize("name", SAVED)
def test_the_response_and_those_sampled_beside_it_are_paths_however_it_was_saved(tmp_path, name):
    SAVED[name](tmp_path / name)
    source = source_of_file(tmp_path / name)
    assert texts(source) == [["4", "4", "5"], ["6", "6", "6"]]
    assert [pool.problem.question for pool in source.pools] == DATA["prompts"]
    assert [pool.problem.id for pool in source.pools] == ["0", "1"]
    scored = [pool.problem.extra for pool in source.pools]
    assert scored == [
        {"semantic_negentropy": 0.4, "noncontradiction": 0.5},
        {"semantic_negentropy": 1.0, "noncontradiction": 0.9},
    ]
    assert source.score_names == []


def test_how_responses_were_sampled_is_told(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps(RESULT))
    assert dict(source_of_file(tmp_path / "r.json").description.sampling) == {"backend": "uqlm", "temperature": 1.0}


def test_a_score_of_uqlm_may_break_ties(tmp_path):
    rows = [
        {"prompt": "a?", "response": "1", "sampled_responses": ["1"], "raw_response": "So 1",
         "raw_sampled_responses": ["Then 1"], "noncontradiction": 0.2, "gold": "1"},
        {"prompt": "b?", "response": "2", "sampled_responses": ["3"], "raw_response": "So 2",
         "raw_sampled_responses": ["Then 3"], "noncontradiction": 0.7, "gold": ["2", "two"]},
    ]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = source_of_file(tmp_path / "r.jsonl")
    assert [(path.answer, path.text) for path in source.pools[0].paths] == [("1", "So 1"), ("1", "Then 1")]
    recipe = source.recipe(tie_break="column:noncontradiction")
    voted = vote_pools(source, FieldChoice(), recipe)
    assert voted.votes.key[:, 1].tolist() == [0.2, 0.7]
    assert source.pools[1].problem.gold == ("2", "two")


GRADED = {
    "response_correct": [True, False],  # as uqlm's own examples grade a result
    "is_right": [False, True],
    "answer_correctness": [1, 0],
    "answer": ["004", "1e1"],
    "best_answer": ["four", "six"],
    "discrete_confidence_scores": [0.5, 0.25],
    "remark": ["a", "b"],
}


@pytest.mark.parametrize("name", SAVED)
def test_what_users_wrote_of_right_and_wrong_is_a_label_and_their_answers_are_hidden(tmp_path, monkeypatch, name):
    data = DATA | GRADED
    short = {"prompts": "prompt", "responses": "response", "discrete_confidence_scores": "discrete_confidence_score"}
    monkeypatch.setitem(globals(), "FRAME", pd.DataFrame(data).rename(columns=short))
    monkeypatch.setitem(RESULT, "data", data)
    SAVED[name](tmp_path / name)
    source = source_of_file(tmp_path / name)
    assert [pool.problem.extra for pool in source.pools] == [
        {"semantic_negentropy": 0.4, "noncontradiction": 0.5, "gold_answer": "004", "gold_best_answer": "four",
         "discrete_confidence_score": 0.5, "remark": "a",
         "labels": {"response_correct": True, "is_right": False, "answer_correctness": 1}},
        {"semantic_negentropy": 1.0, "noncontradiction": 0.9, "gold_answer": "1e1", "gold_best_answer": "six",
         "discrete_confidence_score": 0.25, "remark": "b",
         "labels": {"response_correct": False, "is_right": True, "answer_correctness": 0}},
    ]  # fmt: skip
    seen = blinded(source.pools[0]).problem.extra
    assert list(seen) == ["semantic_negentropy", "noncontradiction", "discrete_confidence_score", "remark"]


def test_right_answers_of_a_whole_result_are_gold_as_those_of_its_table_are(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps({"data": DATA | {"ground_truths": ["4", "6"]}}))
    assert [pool.problem.gold for pool in source_of_file(tmp_path / "r.json").pools] == [("4",), ("6",)]


def test_log_probabilities_are_those_of_each_response(tmp_path):
    tokens = [[{"token": "a", "logprob": -0.1}], [{"token": "b", "logprob": -0.5}]]
    row = {"prompt": "a?", "response": "1", "sampled_responses": ["2"]}
    row |= {"logprob": tokens[0], "sampled_logprob": [tokens[1]]}
    (tmp_path / "r.json").write_text(json.dumps([row]))
    (pool,) = source_of_file(tmp_path / "r.json").pools
    assert [path.extra["logprob_mean"] for path in pool.paths] == [-0.1, -0.5]


def test_a_prompt_of_messages_is_a_conversation(tmp_path):
    said = (("user", "2?"), ("assistant", "3"), ("user", "No."))
    talk = [{"role": role, "content": content} for role, content in said]
    (tmp_path / "r.json").write_text(json.dumps([{"prompt": talk, "response": "1", "sampled_responses": ["1"]}]))
    assert source_of_file(tmp_path / "r.json").pools[0].problem.extra["messages"] == talk


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"data": {"responses": ["a"], "prompts": ["x", "y"]}}', "columns of one length"),
        ('{"prompt": {"0": "a"}}', "columns of one length"),
        ('[{"response": 7}]', "must be texts"),
        ('[{"response": "a", "sampled_responses": ["b", null]}]', "must be texts"),
        ('[{"response": "a", "raw_response": "b", "raw_sampled_responses": ["c"]}]', "1 responses and 2 raw ones"),
        ('{"response": "a"}\n{"response": ', "line 2"),
        ('[{"response": "a"}, 3]', "every row must be an object"),
    ],
)
def test_what_is_no_result_is_refused_in_one_line(tmp_path, content, told):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(PoolFileError) as refused:
        source_of_file(tmp_path / "r.json")
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "r.csv",
            "prompt,response,sampled_responses\na?,1,\"['1']\"\nb?,1,\"['1', '2\"\n",
            "row 1: `sampled_responses`",
        ),
        ("r.csv", "prompt,response,sampled_responses\na?,1,some text\n", "got 'some text'"),
        ("r.jsonl", '{"response": "1"}\n{"response": "1", "sampled_responses": "2"}', "row 1: `sampled_responses`"),
        ("r.json", '[{"prompt": "a?", "response": "1", "sampled_responses": {"0": "2"}}]', "got {'0': '2'}"),
        ("r.json", '{"data": {"prompts": ["a?"], "responses": ["1"], "sampled_responses": "2"}}', "got '2'"),
        ("r.json", '[{"prompt": "a?", "response": "1", "raw_response": "1", "raw_sampled_responses": 5}]', "got 5"),
    ],
)
def test_sampled_responses_that_cannot_be_read_are_refused_and_never_dropped(tmp_path, name, content, told):
    (tmp_path / name).write_text(content)
    with pytest.raises(PoolFileError, match="must be a list") as refused:
        source_of_file(tmp_path / name)
    assert told in str(refused.value)
    assert name in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.csv", "prompt,response,sampled_responses\na?,1,\n"),
        ("r.json", '[{"prompt": "a?", "response": "1", "sampled_responses": null}]'),
        ("r.json", '{"data": {"prompts": ["a?"], "responses": ["1"], "sampled_responses": null}}'),
        ("r.json", '{"data": {"prompts": ["a?"], "responses": ["1"], "sampled_responses": [[]]}}'),
    ],
)
def test_where_nothing_was_sampled_beside_it_the_response_is_the_only_path(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert texts(source_of_file(tmp_path / name)) == [["1"]]
