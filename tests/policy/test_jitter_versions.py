"""What jitter is drawn from: the folded question, and in older policies the question as it is written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import demur as dm
from demur.errors import PipelineMismatch
from demur.policy.curtail import Curtailment
from demur.pools.files import write_pools
from demur.records import Path as SampledPath
from demur.records import folded

OLDER = json.loads((Path(__file__).parent / "jitter_of_version_2.json").read_text())
"""A policy as it was written before jitter had version 3, the keys that it gave, and what they were given for."""
QUESTION = "What is 11 + 4?"
SPELLINGS = (
    "what is 11 + 4", "  What  is\t11 + 4 ?", "WHAT IS 11 + 4??", "What is 11 + 4?!", "What is 11 + 4.",
    "What is 11 + 4…", "What is 11 + 4？", "What is 11 + 4。", "What is 11 + 4؟", "What is 11 + 4 ।",
    "What is 11 + 4 ? ! .", "What is 11 + 4 \n",
)  # fmt: skip
OTHERS = (
    "What is 1 + 14?", "What is 11 - 4?", "What is 114?", "What is 11 +4?", "What is 11 + 4!", "What is -11 + 4?",
    "What is 11. + 4?", "What is 1.1 + 4?", "What? is 11 + 4?", "Whát is 11 + 4?", "What is 11 + 4)?",
    "¿What is 11 + 4?",
)  # fmt: skip


def votes_on(questions, **how):
    return dm.vote([["a", "b", "a", "a"]] * len(questions), questions=questions, **how)


@pytest.fixture(scope="module")
def policy():
    votes = votes_on([f"Which letter is number {k} of {k + 7}?" for k in range(60)])
    return dm.calibrate(votes, np.arange(60) % 5 != 0, alpha=0.15)


@pytest.fixture
def older(tmp_path):
    place = tmp_path / "older.json"
    place.write_text(json.dumps(OLDER["policy"]))
    return dm.Policy.load(place)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_spelling_that_leaves_the_question_the_same_draws_the_same(policy, spelling):
    assert folded(spelling) == folded(QUESTION) == "what is 11 + 4"
    first, second = (policy.decide(["a", "b", "a", "a"], question=asked) for asked in (QUESTION, spelling))
    assert first.key == second.key
    assert votes_on([QUESTION, spelling]).key[:, 1].tolist() == [first.key[1]] * 2


@pytest.mark.parametrize("other", OTHERS)
def test_other_questions_draw_others(policy, other):
    first, second = (policy.decide(["a", "b", "a", "a"], question=asked).key for asked in (QUESTION, other))
    assert first != second


@pytest.mark.parametrize(
    ("one", "other"),
    [("3.5", "35"), ("5!", "5"), ("5!?", "5?"), ("5!!", "5"), ("-3", "3"), ("3,5", "35"), ("a.b", "ab"),
     ("x = 2", "x - 2"), ("Maße", "Masse"), ("10 %", "10"), ("(a)", "(a"), ("x'", "x"), ("x²", "x2")],
)  # fmt: skip
def test_signs_digits_and_the_punctuation_within_stay(one, other):
    assert folded(one) != folded(other)


@pytest.mark.parametrize("text", ["?", "...", "", "。"])
def test_what_is_nothing_but_punctuation_stays_as_it_is(text):
    assert folded(text) == text


def test_a_long_run_of_punctuation_is_folded_in_linear_time():
    assert folded("Why" + "?! " * 200_000) == "why"


def test_the_digest_of_a_problem_is_that_of_the_question_as_it_is_written():
    problems = [dm.Problem("a", asked) for asked in (QUESTION, *SPELLINGS)]
    assert len({problem.digest for problem in problems}) > 10
    assert len({problem.folded_digest for problem in problems}) == 1


def test_options_and_messages_tell_questions_apart_and_messages_are_folded():
    def conversation(*contents):
        return dm.Problem("a", "x", extra={"messages": [{"role": "user", "content": text} for text in contents]})

    assert conversation("Hi", "And 3 + 4?").folded_digest == conversation("hi", "And 3  + 4 ??").folded_digest
    assert conversation("Hi", "And 3 + 4?").folded_digest != conversation("Hi", "And 3 + 5?").folded_digest
    assert conversation("Hi", "And 3 + 4?").digest != conversation("hi", "And 3 + 4?").digest
    options = [dm.Problem("a", "Which?", extra={"options": names}) for names in (["x", "y"], ["x", "z"])]
    assert options[0].folded_digest != options[1].folded_digest


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "frame"])
def test_files_of_every_kind_draw_as_one_question_does(tmp_path, kind):
    asked = [QUESTION, *SPELLINGS, *OTHERS]
    problems = [dm.Problem(f"q{row}", text) for row, text in enumerate(asked)]
    source = dm.PoolSource([dm.Pool(problem, tuple(map(SampledPath, "abaa"))) for problem in problems])
    if kind == "frame":
        source = dm.read_pools(source.to_frame())
    else:
        write_pools(source, tmp_path / f"pools.{kind}")
        source = dm.read_pools(tmp_path / f"pools.{kind}")
    voted = dm.vote_pools(source, labelled=False)
    expected = votes_on(asked).key[:, 1]
    assert voted.votes.key[:, 1].tolist() == expected.tolist()
    assert voted.take(np.array([3, 0, 14])).votes.key[:, 1].tolist() == expected[[3, 0, 14]].tolist()


def test_a_decision_that_is_certain_early_has_the_jitter_of_the_whole_pool(policy):
    spelled = [Curtailment(policy, question=asked)._ties for asked in (QUESTION, SPELLINGS[0])]
    whole = policy.decide(["a", "b", "a", "a"], question=QUESTION).key[1]
    assert spelled == [[(whole, whole)]] * 2


def test_an_older_policy_keeps_its_jitter_and_its_fingerprint_bit_by_bit(older):
    assert older.fingerprint == OLDER["fingerprint"] == OLDER["policy"]["fingerprint"]
    for asked, key in OLDER["keys"].items():
        assert older.decide([1, 1, 2, 1], question=asked).key == tuple(key)
    assert len({tuple(key) for key in OLDER["keys"].values()}) == len(OLDER["keys"])  # of spellings, too
    document = json.loads(json.dumps(OLDER["policy"]))
    assert older.recipe.describe() == document["pipeline"]["vote"]


def test_votes_for_an_older_policy_are_made_with_its_version(older):
    asked = list(OLDER["keys"])
    answers = np.array([[1, 1, 2, 1]] * len(asked))
    with pytest.raises(PipelineMismatch, match=r"jitter@2:0' in the policy, 'jitter@3:0' here"):
        older.decide_votes(dm.vote(answers, questions=asked))
    votes = dm.vote(answers, questions=asked, tie_break="jitter@2:0")
    assert older.decide_votes(votes).votes.key.tolist() == list(OLDER["keys"].values())


def test_a_new_policy_says_which_version_it_has(policy):
    assert policy.pipeline["vote"]["tie_break"] == "jitter@3:0"
