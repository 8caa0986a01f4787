"""From files to columns and labels: the right field, or an error that says which there are."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue, PoolFileError
from demur.pools.fields import FieldChoice, named_sampling, read_row, read_table
from demur.pools.labels import read_labels, refuse_labels_as_score
from demur.pools.scores import read_column, read_scores
from demur.records import Path, Pool, Problem


def pool(name, *paths, gold=(), **problem):
    return Pool(Problem(id=name, gold=gold, **problem), tuple(paths))


def test_answers_become_keys_and_missing_spellings_vanish():
    pools = [
        pool("q", Path(answer="6.0"), Path(answer=6), Path(answer=" "), Path(answer="None"), Path(answer="No answer!"))
    ]
    table = read_table(pools, FieldChoice(missing=("None", " No answer! ")))
    assert table.answers == [["n:6", "n:6", None, None, None]]
    assert read_table(pools, FieldChoice()).answers == [["n:6", "n:6", None, "p:none", "p:no answer"]]


def test_one_and_true_and_1_0_are_told_apart_where_they_should_be():
    pools = [pool("q", Path(answer=True), Path(answer=1), Path(answer=1.0), Path(answer="1"))]
    assert read_table(pools, FieldChoice()).answers == [["p:true", "n:1", "n:1", "n:1"]]


def test_another_answer_field_is_read_and_an_absent_one_refused_with_what_there_is():
    bare = {"has_answer_field": False}
    pools = [pool("q", Path(extra={"answer_x": "5"}, **bare), Path(**bare))]
    assert read_table(pools, FieldChoice("answer_x")).answers == [["n:5", None]]
    with pytest.raises(
        PoolFileError, match=r"in the field 'answer'; did you mean 'answer_x'\? there is: answer_x; name one as"
    ):
        read_table(pools, FieldChoice())
    with pytest.raises(PoolFileError, match="in the field 'other'"):
        read_table(pools, FieldChoice("other"))


@pytest.mark.parametrize("answer", [["4"], {"a": 1}, float("inf")])
def test_answers_that_are_no_strings_or_numbers_are_refused(answer):
    with pytest.raises(PoolFileError, match="problem 'q', path 1: an answer must be a string or a number"):
        read_table([pool("q", Path(answer="4"), Path(answer=answer))], FieldChoice())


def test_scores_by_name_by_dotted_name_and_by_a_name_with_a_dot_in_it():
    path = Path(answer="a", scores={"judge": 1, "v2.5": 0.25}, extra={"logprob": -0.5, "meta": {"length": 7}})
    pools = [pool("q", path)]
    assert read_scores(pools, "judge") == [[1.0]]
    assert read_scores(pools, ".logprob") == [[-0.5]]
    assert read_scores(pools, "meta.length") == [[7.0]]
    assert read_scores(pools, "v2.5") == [[0.25]]


def test_a_missing_score_names_the_problem_and_what_there_is():
    pools = [pool("q", Path(answer="a", scores={"judge": 1.0}, extra={"logprob": -1.0, "src": "x"}))]
    with pytest.raises(
        PoolFileError, match=r"no pool has the score 'reward' in all its paths; there is: judge, .logprob"
    ):
        read_scores(pools, "reward")
    partial = [*pools, pool("r", Path(answer="a"))]
    with pytest.raises(PoolFileError, match="1 of 2 pools lack the score 'judge' in some path: 'r'"):
        read_scores(partial, "judge")


@pytest.mark.parametrize("value", ["high", [1], 10**400])
def test_scores_that_are_not_finite_numbers_are_refused(value):
    with pytest.raises(PoolFileError, match="problem 'q', path 0: the score 'judge' must be a finite number"):
        read_scores([pool("q", Path(answer="a", scores={"judge": value}))], "judge")


@pytest.mark.parametrize("name", ["answer_confidence", "target_logprob", "right_prob", "p_correct", "gold_free"])
def test_fields_that_only_sound_like_labels_are_scores(name):
    if name == "gold_free":
        with pytest.raises(InvalidValue, match="give the field another name"):
            read_scores([pool("q", Path(answer="a", scores={name: 1.0}))], name)
    else:
        assert read_scores([pool("q", Path(answer="a", scores={name: 1.0}))], name) == [[1.0]]


def test_fields_named_like_labels_are_refused_as_answers_and_as_tie_breakers():
    pools = [pool(f"q{i}", Path(answer="a", extra={"correct_src": True}), extra={"correct": 1}) for i in range(30)]
    with pytest.raises(InvalidValue, match="names labels"):
        read_table(pools, FieldChoice("correct_src"))
    with pytest.raises(InvalidValue, match="names labels"):
        read_column(pools, "correct")


def test_an_answer_of_null_everywhere_is_no_answer_and_no_error():
    assert read_table([pool("q", Path(answer=None))], FieldChoice()).answers == [[None]]
    assert read_table([pool("q", Path(text="5"))], FieldChoice("text")).answers == [["n:5"]]


def test_spellings_that_look_like_no_answer_are_pointed_out_and_unused_ones_too():
    pools = [pool("q", Path(answer="None"), Path(answer="None"), Path(answer="___"), Path(answer="4"))]
    table = read_table(pools, FieldChoice())
    assert table.suspects == {"None": 2, "___": 1}
    known = read_table(pools, FieldChoice(missing=("None", "nothing")))
    assert known.suspects == {"___": 1}
    assert known.unused_missing == ("nothing",)


def test_model_and_temperature_are_read_and_a_mixture_is_its_own_pipeline():
    one = [pool(f"q{i}", Path(answer="a"), extra={"model": "m", "temperature": i}) for i in range(2)]
    assert named_sampling(one) == {"model": "m", "temperature": ["0", "1"]}


@pytest.mark.parametrize("name", [".correct", ".correct_src", ".is_correct", ".label", "meta.gold", "correct"])
def test_fields_named_like_labels_are_refused_as_a_score(name):
    path = Path(
        answer="a", scores={"correct": 1.0}, extra={"correct": 1, "correct_src": 1, "label": 1, "meta": {"gold": 1}}
    )
    with pytest.raises(InvalidValue, match="labels cannot be a score"):
        read_scores([pool("q", path)], name)


def test_true_and_false_are_labels_whatever_their_name():
    with pytest.raises(InvalidValue, match="true and false"):
        read_scores([pool("q", Path(answer="a", extra={"quality": True}))], ".quality")


def test_a_score_that_is_the_label_in_disguise_is_refused():
    def table(scores):
        paths = [Path(answer=a, scores={"s": s}) for a, s in zip("aab", scores, strict=True)]
        pools = [pool(f"q{i}", *paths, gold=("a",)) for i in range(10)]
        found = read_table(pools, FieldChoice(score="s"))
        return found, read_labels(pools, found)

    with pytest.raises(InvalidValue, match="is the label itself"):
        refuse_labels_as_score(*table([1.0, 1.0, 0.0]))
    refuse_labels_as_score(*table([1.0, 0.9, 0.0]))
    refuse_labels_as_score(*table([1.0, 1.0, 1.0]))


def test_columns_of_the_problem():
    pools = [pool("q", Path(answer="a"), extra={"margin": 2})]
    assert read_column(pools, "margin") == [2.0]
    with pytest.raises(PoolFileError, match="'q' has nothing in the field 'other'"):
        read_column(pools, "other")


def test_gold_may_be_a_list_and_is_compared_like_answers():
    pools = [
        pool("q", Path(answer="6.0"), Path(answer="7"), gold=("5", 6)),
        pool("r", Path(answer="x"), gold=(" x ",)),
        pool("s", Path(answer=None), gold=("x",)),
    ]
    table = read_table(pools, FieldChoice())
    labels = read_labels(pools, table)
    assert labels.of_paths(table) == [[True, False], [True], [False]]
    assert labels.of_votes(dm.vote(table.answers)).tolist() == [True, True, False]


def test_a_problem_without_gold_is_named():
    pools = [
        pool("q", Path(answer="a"), gold=("a",)),
        pool("r", Path(answer="a")),
        pool("s", Path(answer="a"), gold=(" ",)),
    ]
    with pytest.raises(
        PoolFileError, match=r"problem 'r' has no gold answer \(2 of 3 have none\).*name ready-made labels as correct"
    ):
        read_labels(pools, read_table(pools, FieldChoice()))


def test_ready_made_labels_go_with_the_answer_and_conflicts_count_as_wrong():
    pools = [
        pool("q", *(Path(answer=a, extra={"ok": ok}) for a, ok in [("a", True), ("a", True), ("b", False)])),
        pool("r", *(Path(answer=a, extra={"ok": ok}) for a, ok in [("a", True), ("a", False)])),
        pool("s", Path(answer=None, extra={})),
    ]
    table = read_table(pools, FieldChoice())
    labels = read_labels(pools, table, "ok")
    assert labels.conflicts == 1
    assert labels.of_votes(dm.vote(table.answers)).tolist() == [True, False, False]


@pytest.mark.parametrize("label", [2, "maybe", None])
def test_ready_made_labels_must_be_labels(label):
    pools = [pool("q", Path(answer="a", extra={} if label is None else {"ok": label}))]
    with pytest.raises(PoolFileError, match="problem 'q', path 0: the label 'ok' must be true or false"):
        read_labels(pools, read_table(pools, FieldChoice()), "ok")


def test_labels_never_change_a_vote():
    """The same pools with any gold at all vote the same: nothing upstream of the labels reads it."""
    rng = np.random.default_rng(0)
    answers = rng.integers(0, 3, (50, 5)).astype(str).tolist()
    votes = []
    for golds in (["0"] * 50, rng.integers(0, 3, 50).astype(str).tolist()):
        pools = [
            pool(f"q{i}", *(Path(answer=a, scores={"s": float(j)}) for j, a in enumerate(row)), gold=(g,))
            for i, (row, g) in enumerate(zip(answers, golds, strict=True))
        ]
        table = read_table(pools, FieldChoice(score="s"))
        votes.append(dm.vote(table.answers, table.scores))
    np.testing.assert_array_equal(votes[0].answer, votes[1].answer)
    np.testing.assert_array_equal(votes[0].confidence, votes[1].confidence)


def test_one_pool_read_alone_is_the_row_of_a_table():
    pools = [
        pool("a", *(Path(answer, scores={"s": 0.5}) for answer in (" 1/2", "0.5", None, "?", 3, 0.25, ""))),
        pool("b", *(Path(answer, scores={"s": 1.0}) for answer in ("x", "X ", True)), extra={"task": "qa"}),
    ]
    for fields in (FieldChoice(), FieldChoice(score="s", missing=("?",)), FieldChoice(relation="plain")):
        for one in pools:
            table, row = read_table([one], fields), read_row(one, fields)
            scores = None if table.scores is None else table.scores[0]
            assert (row.answers, row.written, row.scores) == (table.answers[0], table.written[0], scores)
