"""The key: what ranks votes, component by component, and what it is made of where nobody says."""

from __future__ import annotations

import json

import numpy as np
import pytest

import demur as dm
from demur.descriptions import digest
from demur.errors import CalibrationLeak, InvalidValue, PipelineMismatch, PoolFileError
from demur.pools.source import PoolSource
from demur.records import Path, Pool, Problem
from demur.voting.key import Component, Counted, Share, key_of, parse_component
from demur.voting.problems import Problems

IDS = [f"q{row}" for row in range(200)]


def names(votes):
    return votes.recipe.names


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, ("share",)),
        ({"ids": ["x", "y"]}, ("share", "jitter")),
        ({"questions": ["Why?", "How?"]}, ("share", "jitter")),
        ({"questions": [None, " "]}, ("share",)),
        ({"ids": ["x", "y"], "tie_break": "none"}, ("share",)),
        ({"ids": ["x", "y"], "tie_break": dm.jitter(3)}, ("share", "jitter")),
        ({"ids": ["x", "y"], "tie_break": [0.1, 0.2]}, ("share", "column", "jitter")),
        ({"tie_break": [0.1, 0.2]}, ("share", "column")),
        ({"ids": ["x", "y"], "tie_break": (dm.jitter(3),)}, ("share", "jitter")),
    ],
)
def test_every_key_ends_in_jitter_where_problems_can_be_told_apart(how, expected):
    assert names(dm.vote([["a", "a"], ["a", "b"]], **how)) == expected


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, ("share", "jitter")),
        ({"weight": dm.uniform()}, ("share", "mean_score", "jitter")),
        ({"tie_break": "mean_score"}, ("share", "mean_score", "jitter")),
        ({"tie_break": dm.mean_score()}, ("share", "mean_score", "jitter")),
        ({"tie_break": "mean_score,none"}, ("share", "mean_score")),
        ({"tie_break": "mean_score, jitter:9"}, ("share", "mean_score", "jitter")),
        ({"tie_break": (dm.mean_score(), "none")}, ("share", "mean_score")),
        ({"weight": dm.uniform(), "tie_break": "none"}, ("share",)),
        ({"weight": dm.uniform(), "tie_break": "jitter"}, ("share", "jitter")),
    ],
)
def test_a_score_that_is_no_weight_breaks_ties_before_the_draw_where_nothing_else_is_named(how, expected):
    votes = dm.vote([["a", "a"], ["a", "b"]], [[1.0, 2.0], [3.0, 4.0]], ids=["x", "y"], **how)
    assert names(votes) == expected
    assert votes.key.shape == (2, len(expected))
    assert votes.key[:, 0].tolist() == votes.confidence.tolist()


def unanimous(right, scores=None):
    """200 unanimous pools, the first so many of which are right."""
    votes = dm.vote([["a", "a"]] * 200, scores, weight=dm.uniform(), ids=IDS)
    return votes, np.arange(200) < right


def test_ties_at_full_confidence_are_answered_in_part():
    """Of 200 unanimous votes 30 are wrong: without jitter none can be answered at 0.1, with it most are."""
    votes, right = unanimous(170)
    plain = dm.vote([["a", "a"]] * 200, ids=IDS, tie_break="none")
    assert dm.calibrate(plain, right, alpha=0.1).forecast().answered == 0
    policy = dm.calibrate(votes, right, alpha=0.1)
    assert 0.4 < policy.forecast().answered < 0.95
    assert (policy.threshold, len(policy.point().threshold_key)) == (1.0, 2)
    assert policy.forecast().confident_error <= 0.1
    assert policy.tie_note(policy.point()) == ""
    assert "Ties leave" in dm.calibrate(plain, right, alpha=0.1).tie_note(dm.calibrate(plain, right, alpha=0.1).point())


def test_the_threshold_of_the_confidence_is_the_same_with_jitter_and_never_less_is_answered():
    for seed in range(20):
        drawn = dm.simulate_pools(200, n_paths=4, seed=seed)
        ids = [f"{seed}-{row}" for row in range(200)]
        plain, jittered = (dm.vote(drawn.answers, ids=ids, tie_break=tie) for tie in ("none", None))
        right = plain.answer == drawn.gold
        for alpha in (0.05, 0.1, 0.2):
            one, other = (dm.calibrate(votes, right, alpha=alpha) for votes in (plain, jittered))
            assert one.threshold == other.threshold
            assert one.forecast().answered <= other.forecast().answered


def test_another_score_breaks_ties_by_name_and_is_asked_for_again_in_use(tmp_path):
    judge = np.linspace(0, 1, 200)
    columns = {"judge": np.repeat(judge[:, None], 2, axis=1)}
    votes = dm.vote([["a", "a"]] * 200, tie_break="mean_score:judge", columns=columns, ids=IDS)
    assert names(votes) == ("share", "mean_score:judge", "jitter")
    assert np.allclose(votes.key[:, 1], judge)
    dm.calibrate(votes, judge > 0.15, alpha=0.1).save(tmp_path / "p.json")
    policy = dm.Policy.load(tmp_path / "p.json")
    assert policy.recipe.needs == ("judge",)
    high, low = (policy.decide(["a", "a"], columns={"judge": [value] * 2}, id="n") for value in (0.9, 0.01))
    assert (high.abstained, low.abstained) == (False, True)
    assert "its mean score:judge 0.9 is above" in high.explanation
    with pytest.raises(InvalidValue, match=r"needs 'judge' of every path, and it is not given; give it in columns"):
        policy.decide(["a", "a"], id="n")


def test_paths_without_the_other_score_do_not_count_in_its_mean_and_none_comes_last():
    columns = {"judge": [[1.0, None, 9.0], [None, None, 5.0]]}
    votes = dm.vote([["a", "a", "b"], ["a", "a", "b"]], tie_break="mean_score:judge", columns=columns)
    assert votes.key[:, 1].tolist() == [1.0, -np.inf]


def test_labels_cannot_break_ties_under_the_name_of_another_score():
    right = np.arange(60) % 3 > 0
    columns = {"judge": np.repeat(right[:, None] * 1.0, 2, axis=1)}
    votes = dm.vote([["a", "a"]] * 60, tie_break="mean_score:judge", columns=columns)
    with pytest.raises(InvalidValue, match="is the label itself"):
        dm.calibrate(votes, right, alpha=0.2)


def scored_pools(n=60):
    return [
        Pool(
            Problem(f"p{k}", f"Question {k}?", ("a",)),
            tuple(Path(answer, scores={"one": k / n, "two": -k / n}) for answer in ("a", "a", "b" if k % 4 else "a")),
        )
        for k in range(n)
    ]


def test_ties_are_not_broken_by_a_score_that_no_path_has():
    source = PoolSource(scored_pools())
    with pytest.raises(PoolFileError, match=r"no path has the score 'twoo', which ties .* did you mean 'two'?"):
        dm.vote_pools(source, recipe=source.recipe(None, tie_break="mean_score:twoo"))


def test_a_file_with_two_scores_makes_one_key_of_both(tmp_path):
    source = PoolSource(scored_pools(), scorers={"two": {"scorer": "reward@1"}})
    voted = dm.vote_pools(source, dm.FieldChoice(score="one"), source.recipe("one", tie_break="mean_score:two"))
    assert names(voted.votes) == ("share", "mean_score:two", "jitter")
    assert voted.votes.upstream.score["others"] == {"two": {"scorer": "reward@1"}}
    policy = dm.calibrate(voted, alpha=0.2)
    policy.save(tmp_path / "p.json")
    loaded = dm.Policy.load(tmp_path / "p.json")
    again = loaded.vote(source)
    assert np.array_equal(again.votes.key, voted.votes.key)
    decided = loaded.decide_votes(again.votes)
    pool = source.pools[7]
    scores = {name: [path.scores[name] for path in pool.paths] for name in ("one", "two")}
    alone = loaded.decide(
        [path.answer for path in pool.paths], scores["one"], columns=scores, id="p7", question=pool.problem
    )
    assert alone == decided[7]
    another = PoolSource(source.pools, scorers={"two": {"scorer": "reward@2"}})
    with pytest.raises(PipelineMismatch, match=r"score\.others\.two is \{'scorer': 'reward@1'\} in the policy"):
        loaded.decide_votes(loaded.vote(another).votes)


class Fitted(Component):
    """A component that was fitted on some problems."""

    name, spec = "fitted", "fitted@1"

    def __init__(self, fitted_on):
        self.fitted_on = fitted_on

    def of(self, counted: Counted):
        return np.linspace(0, 1, len(counted.table))


@pytest.mark.parametrize(
    "fitted_on",
    [Problems.of(["p7"]), Problems.of([], ["digest-8"]), Problems.of([], None, ["cluster"])],
)
def test_one_check_finds_leaks_by_id_by_question_and_by_cluster(fitted_on):
    votes = dm.vote([["a", "a"]] * 60, tie_break=Fitted(fitted_on), ids=[f"p{row}" for row in range(60)])
    digests = [f"digest-{row}" for row in range(60)]
    clusters = ["cluster" if row == 9 else None for row in range(60)]
    voted = dm.VotedPools(votes, np.arange(60) > 5, digests, clusters)
    for use in (dm.calibrate, dm.evaluate):
        with pytest.raises(CalibrationLeak, match=r"fitted on 1 of the calibration problems \(the first is 'p[789]'\)"):
            use(voted, alpha=0.2)
    elsewhere = dm.vote([["a", "a"]] * 60, tie_break=Fitted(Problems.of(["other"])), ids=IDS[:60])
    assert "other" in dm.calibrate(elsewhere, np.arange(60) > 5, alpha=0.2).seen.ids


def test_policies_of_the_second_schema_load_as_they_were(tmp_path):
    """One tie-break or none, as text or null."""
    for tie, at in (("none", None), (("mean_score", "none"), "mean_score@1"), (dm.jitter(4), "jitter@3:4")):
        votes, right = dm.vote([["a", "a"]] * 200, [[1.0, 2.0]] * 200, ids=IDS, tie_break=tie), np.arange(200) < 190
        policy = dm.calibrate(votes, right, alpha=0.1)
        policy.save(tmp_path / "p.json")
        document = json.loads((tmp_path / "p.json").read_text())
        assert document["pipeline"]["vote"]["tie_break"] == at
        assert "confidence" not in document["pipeline"]["vote"]
        document |= {"schema": 2}
        document.pop("digest")
        (tmp_path / "p.json").write_text(json.dumps({**document, "digest": digest(document)}))
        loaded = dm.Policy.load(tmp_path / "p.json")
        assert loaded.fingerprint == policy.fingerprint
        assert loaded.points == policy.points


def test_nonsense_in_a_file_is_named():
    for document, said in (
        ({"component": "magic"}, "unknown component of a key 'magic'"),
        ({"component": 3}, "unknown component of a key 3"),
        (3, "must be a string or an object, got 3"),
        ("magic", "unknown tie-break 'magic'"),
    ):
        with pytest.raises(InvalidValue, match=said):
            parse_component(document)


def test_a_component_must_give_one_number_per_pool():
    class Wrong(Component):
        name, spec = "wrong", "wrong@1"

        def __init__(self, given):
            self.given = given

        def of(self, counted):
            return self.given

    for given in (np.zeros(2), np.full(3, np.nan), np.full(3, np.inf), np.zeros((3, 1))):
        with pytest.raises(InvalidValue, match="wrong must give one number per pool, 3 of them"):
            dm.vote([["a"]] * 3, tie_break=Wrong(given))


@pytest.mark.parametrize("scores", [[1e300, 1e300], [1.7e308, 1.7e308], [-1.7e308, -1.7e308], [1.7e308, -1.7e308]])
def test_the_mean_of_any_finite_scores_is_finite_and_minus_infinity_says_that_there_is_no_answer(scores):
    votes = dm.vote([["a", "a"], [None, None]], [scores, scores], tie_break="mean_score,none", weight=dm.uniform())
    [[_, mean], none] = votes.key.tolist()
    assert mean == pytest.approx(sum(score / 2 for score in scores))
    assert none == [0.0, -np.inf]


def test_the_key_of_a_vote_is_made_in_one_place():
    assert [part.spec for part in key_of(None, idle_score=True, told_apart=True)] == [
        "share@1", "mean_score@1", "jitter@3:0",
    ]  # fmt: skip
    assert [type(part) for part in key_of("none", idle_score=True, told_apart=True)] == [Share]
