"""What counts as right: gold by the relation, and more by declared rules. What counts as the same stays as it was."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import demur as dm
from demur.errors import InvalidValue, PoolFileError
from demur.pools.fields import FieldChoice, read_table
from demur.pools.gold import accepted_texts, number_of
from demur.pools.labels import labelled_rows, read_labels
from demur.pools.verdicts import Verdict, Verdicts
from demur.prompts.templates import NAMED
from demur.records import Path, Pool, Problem, blinded, names_labels


def pool(answers, gold, *, task="qa", name="q", question="What?", **extra):
    golds = tuple(gold) if isinstance(gold, (list, tuple)) else (gold,)
    return Pool(Problem(name, question, golds, extra={"task": task, **extra}), tuple(Path(one) for one in answers))


def right(pools, rule=None, fields=FieldChoice()):  # noqa: B008 - frozen
    """Whether each path is right, pool by pool."""
    pools = pools if isinstance(pools, list) else [pools]
    table = read_table(pools, fields)
    labels = read_labels(pools, table, rule)
    return labels.of_paths(table) if len(pools) > 1 else labels.of_paths(table)[0]


def within(share):
    return dm.LabelRule(tolerance=share)


def test_aliases_are_accepted_like_gold_and_by_the_same_relation():
    asked = pool(["JFK", "john f. kennedy", "Nixon"], "John F. Kennedy", aliases=["JFK", "Jack Kennedy"])
    assert right(asked) == [True, True, False]
    assert accepted_texts(asked.problem) == ("John F. Kennedy", "JFK", "Jack Kennedy")


def test_a_problem_with_aliases_alone_is_labelled():
    asked = Pool(Problem("q", "What?", extra={"task": "qa", "aliases": ["JFK"]}), (Path("jfk"), Path("Nixon")))
    assert labelled_rows([asked]) == [0]
    assert right(asked) == [True, False]


@pytest.mark.parametrize("aliases", [{"a": 1}, [["JFK"]], [None], [True], 5])
def test_aliases_that_are_no_texts_are_refused_with_the_problem(aliases):
    with pytest.raises(PoolFileError, match="problem 'q': `aliases` must be a list of texts or numbers"):
        right(pool(["JFK"], "Kennedy", aliases=aliases))


@pytest.mark.parametrize("name", ["aliases", "alias", "answer_aliases", "gold_aliases", "accepted_answers", "accepted"])
def test_no_scorer_sees_aliases_nor_may_they_be_a_score(name):
    asked = pool(["JFK"], "Kennedy", **{name: ["secret"]})
    assert names_labels(name)
    assert "secret" not in repr(blinded(asked))
    with pytest.raises(InvalidValue, match="names labels"):
        dm.vote_pools(dm.PoolSource([asked]), FieldChoice(score=name))


@pytest.mark.parametrize("kind", ["lines", "frame", "scores of a frame"])
@pytest.mark.parametrize("name", ["labels.match.value", ".labels.match.value", "graded.labels.match"])
def test_no_score_is_read_out_of_labels_however_deep_it_stands(tmp_path, kind, name):
    """What a neighbour's scorer said is kept in `labels`: neither a score nor a tie-break may look into it."""
    said = {"labels": {"match": {"value": 1.0}}, "graded": {"labels": {"match": 1.0}, "length": 2.0}}
    if kind == "lines":
        paths = [{"answer": answer, "scores": {"judge": 0.5}, **said} for answer in "aab"]
        source = tmp_path / "n.jsonl"
        source.write_text(json.dumps({"id": "q", "gold": "a", "paths": paths}))
    else:
        column = f"score.{name}" if kind == "scores of a frame" else name.removeprefix(".")
        source = [{"id": "q", "gold": "a", "answer": answer, "score.judge": 0.5, column: 1.0} for answer in "aab"]
    source = dm.read_pools(source)
    with pytest.raises(InvalidValue, match="names labels"):
        dm.vote_pools(source, FieldChoice(score=name))
    with pytest.raises(InvalidValue, match="names labels"):
        dm.vote_pools(source, FieldChoice(score="judge"), source.recipe(tie_break=f"mean_score:{name}"))
    assert len(dm.vote_pools(source, FieldChoice(score="judge"))) == 1
    if kind == "lines":
        assert len(dm.vote_pools(source, FieldChoice(score="graded.length"))) == 1


def test_no_prompt_shows_gold_or_aliases():
    beside = {"options": ["x", "y"], "passages": ["p"], "aliases": ["secret"]}
    problem = Problem("q", "What?", ("hidden",), extra={"task": "qa", **beside})
    for template in NAMED.values():
        assert "secret" not in repr(template.render(problem))
        assert "hidden" not in repr(template.render(problem))
    chat = dm.tasks.task_of(problem).judge(problem).render(problem, "a draft")
    assert "secret" not in repr(chat)


def test_aliases_of_a_table_belong_to_the_problem():
    rows = [{"id": "q", "answer": answer, "gold": "Kennedy", "aliases": '["JFK"]', "task": "qa"} for answer in "ab"]
    source = dm.read_pools(rows)
    assert source.pools[0].problem.extra["aliases"] == ["JFK"]
    assert "aliases" not in source.pools[0].paths[0].extra


@pytest.mark.parametrize(
    ("answer", "gold", "share", "expected"),
    [
        ("101", "100", "0.01", True),
        ("99", "100", "0.01", True),
        ("101.0000001", "100", "0.01", False),
        ("102", "100", "0.01", False),
        ("-100", "100", "0.01", False),
        ("-101", "-100", "0.01", True),
        ("0.0101", "0.01", "0.01", True),
        ("1/3", "0.333", "0.01", True),
        ("0.3", "1/3", "0.01", False),
        ("\\sqrt{2}", "1.41", "0.01", True),
        ("3.14", "\\pi", "0.001", True),
        ("3.1", "\\pi", "0.001", False),
        ("0.01", "0", "0.01", True),
        ("0.011", "0", "0.01", False),
        ("0.0000001", "0", "0.01", True),
        ("1000001", "1000000", "1/1000000", True),
        ("1000002", "1000000", "1/1000000", False),
        ("(1.001, 2)", "(1, 2)", "0.01", False),
        ("x + 1.001", "x + 1", "0.01", False),
        ("1, 2.001", "1, 2", "0.01", False),
        ("2.001 i", "2 i", "0.01", False),
    ],
)
def test_a_tolerance_is_a_share_of_gold_in_exact_arithmetic(answer, gold, share, expected):
    assert right(pool([answer], gold, task="math"), within(share)) == [expected]


@pytest.mark.parametrize(("task", "relation"), [("math", None), ("qa", None), (None, "plain"), (None, "text")])
def test_numbers_of_every_relation_have_a_tolerance(task, relation):
    asked = pool(["1000", "1009", "1011", "many"], "1000", task=task)
    fields = FieldChoice(relation=relation)
    assert right(asked, None, fields) == [True, False, False, False]
    assert right(asked, within("0.01"), fields) == [True, True, False, False]


def test_the_bound_is_met_exactly_where_floats_would_miss_it():
    assert right(pool(["0.33"], "0.3", task="math"), within("0.1")) == [True]  # 0.33 - 0.3 > 0.1 * 0.3 in floats
    assert right(pool(["0.3300001"], "0.3", task="math"), within("0.1")) == [False]


def test_a_tolerance_never_merges_votes():
    asked = pool(["100", "101", "100.5", "7"], "100", task="math")
    strict, lenient = (dm.vote_pools(dm.PoolSource([asked]), correct=rule) for rule in (None, within("0.01")))
    assert strict.votes.answer.tolist() == lenient.votes.answer.tolist()
    assert strict.votes[0].support == lenient.votes[0].support
    assert len(lenient.votes[0].support) == 4
    assert lenient.labels.of_paths(lenient.table) == [[True, True, True, False]]


def test_any_of_several_golds_may_be_near():
    assert right(pool(["10.05", "20.1", "15"], ["10", "20"], task="math"), within("0.01")) == [True, True, False]


@pytest.mark.parametrize("share", ["0", "1", "-0.1", "2", "abc", "1/0", "nan", "1e-3000000", "0." + "1" * 60])
def test_a_tolerance_that_is_no_share_is_refused(share):
    with pytest.raises(InvalidValue, match="strictly between 0 and 1"):
        within(share)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n:5", Fraction(5)),
        ("n:-1/3", Fraction(-1, 3)),
        ("c:1.41421356237310", Fraction("1.4142135623731")),
        ("c:1.0e-7", Fraction(1, 10**7)),
        ("p:3.5", Fraction(7, 2)),
        ("-6.25", Fraction(-25, 4)),
        ("c:1.0+2.0i", None),
        ("p:3 apples", None),
        ("t:(n:1,n:2,n:3)", None),
        ("o:A", None),
        ("w:x", None),
        ("{n:1|n:2}", None),
        ("i:(n:1,n:2)", None),
        ("d:2020-01-01", None),
        ("r:3:00", None),
        ("n:1/0", None),
        ("c:1e999999999", None),
        ("inf", None),
        ("", None),
    ],
)
def test_only_keys_of_one_real_number_have_a_value(key, value):
    assert number_of(key) == value


def test_containment_is_for_open_answers_only():
    rule = dm.LabelRule(containment=True)
    assert right(pool(["It was William Shakespeare", "not Shakespeare"], "Shakespeare"), rule) == [True, False]
    assert right(pool(["Shakespeare himself"], "Shakespeare")) == [False]
    assert right(pool(["x + 3", "y + x + 3"], "x + 3", task="math"), rule) == [True, False]
    assert right(pool(["somewhere in Paris"], "Paris", task="mc", options=["Rome", "Paris"]), rule) == [False]


def test_several_answers_of_one_pool_may_be_right_and_stay_several():
    asked = pool(["Shakespeare", "William Shakespeare", "Marlowe"], "Shakespeare")
    rule = dm.LabelRule(containment=True)
    voted = dm.vote_pools(dm.PoolSource([asked]), correct=rule)
    assert voted.labels.of_paths(voted.table) == [[True, True, False]]
    assert len(set(voted.table.answers[0])) == 3


def test_ready_made_labels_and_rules_for_gold_exclude_each_other():
    for more in ({"tolerance": "0.1"}, {"containment": True}, {"verdicts": Verdicts([])}):
        with pytest.raises(InvalidValue, match="ready-made from the field 'ok'"):
            dm.LabelRule("ok", **more)


# Verdicts


def verdict(asked, answer, agrees=True, *, accepted=None, **more):
    known = accepted_texts(asked.problem) if accepted is None else accepted
    return Verdict(asked.problem.digest, asked.problem.question, answer, known, agrees, "judge@1", **more)


def judged(*verdicts):
    return dm.LabelRule(verdicts=Verdicts(verdicts))


ASKED = pool(["the Bard of Avon", "Marlowe", "Shakespeare", "bard of avon!"], "Shakespeare")


def test_a_verdict_labels_every_spelling_of_its_answer():
    assert right(ASKED, judged(verdict(ASKED, "Bard of Avon"))) == [True, False, True, True]


def test_a_verdict_of_no_or_of_neither_leaves_the_answer_wrong():
    for said in (False, None):
        assert right(ASKED, judged(verdict(ASKED, "Bard of Avon", said))) == [False, False, True, False]


def test_a_persons_word_overrules_the_judge_both_ways():
    overruled = judged(
        verdict(ASKED, "Bard of Avon", True, person=False), verdict(ASKED, "Marlowe", False, person=True)
    )
    assert right(ASKED, overruled) == [False, True, True, False]


def test_a_persons_word_overrules_lenient_rules_but_not_gold_itself():
    asked = pool(["Shakespeare Hotel", "Shakespeare"], "Shakespeare")
    said = [verdict(asked, answer, None, person=False) for answer in ("Shakespeare Hotel", "Shakespeare")]
    rule = dm.LabelRule(containment=True, verdicts=Verdicts(said))
    assert right(asked, dm.LabelRule(containment=True)) == [True, True]
    assert right(asked, rule) == [False, True]


def test_of_several_rows_the_last_says_and_the_last_person_stands():
    rows = [
        verdict(ASKED, "Marlowe", True),
        verdict(ASKED, "Marlowe", None, person=True),
        verdict(ASKED, "Marlowe", None, person=False),
        verdict(ASKED, "Marlowe", True),
    ]
    merged = list(Verdicts(rows))
    assert len(merged) == 1
    assert (merged[0].agrees, merged[0].person, merged[0].right) == (True, False, False)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"accepted": ("Bacon",)}, "another gold of these questions"),
        ({"accepted": ("Shakespeare", "Bacon")}, "another gold of these questions"),
        ({"question": "Who?"}, "other questions"),
        ({"options": ["a", "b"]}, "other questions"),
    ],
)
def test_verdicts_on_another_gold_or_question_change_nothing_and_that_is_said(other, said):
    accepted = other.get("accepted")
    elsewhere = pool([], "Shakespeare", **{name: value for name, value in other.items() if name != "accepted"})
    rule = judged(*(verdict(elsewhere, answer, accepted=accepted) for answer in ("Bard of Avon", "Marlowe")))
    told = []
    voted = dm.vote_pools(dm.PoolSource([ASKED]), correct=rule, say=told.append)
    assert voted.labels.of_paths(voted.table) == [right(ASKED)]
    assert f"note: 2 of 2 verdicts are about {said}, and change nothing" in told
    assert any("2 of 2 answers that need a verdict have none yet" in line for line in told)


def test_the_order_of_accepted_answers_does_not_matter():
    asked = pool(["the Bard"], ["Shakespeare", "W. S."])
    assert right(asked, judged(verdict(asked, "Bard", accepted=("W. S.", "Shakespeare")))) == [True]


def test_what_the_judge_left_open_is_counted_and_said():
    told = []
    dm.vote_pools(dm.PoolSource([ASKED]), correct=judged(verdict(ASKED, "Marlowe", None)), say=told.append)
    assert "note: the judge said neither yes nor no on 1 answers, which count as wrong" in told


def test_verdicts_of_two_judges_are_no_label():
    with pytest.raises(InvalidValue, match="by 2 judges"):
        Verdicts(Verdict("d", "q", f"by {by}", ("b",), True, by) for by in ("one", "two"))


def test_labels_of_some_rows_keep_their_verdicts():
    pools = [pool(["x", "y"], "g", name=f"q{n}", question=f"What {n}?") for n in range(3)]
    rule = judged(*(verdict(one, "x") for one in pools))
    table = read_table(pools, FieldChoice())
    labels = read_labels(pools, table, rule)
    some = labels.take([2, 0])
    assert some.of_paths(table.take([2, 0])) == [[True, False]] * 2
    assert some.judged == [labels.judged[2], labels.judged[0]]
    assert some.rule is rule


def test_a_rule_read_from_a_policy_cannot_label_without_its_verdicts():
    rule = dm.LabelRule.of(judged(verdict(ASKED, "x")).describe())
    with pytest.raises(InvalidValue, match="need the verdicts of the judge judge@1"):
        right(ASKED, rule)
