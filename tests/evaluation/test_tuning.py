"""Choosing how to vote on problems that then do not calibrate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import demur as dm
from demur.descriptions import digest
from demur.errors import CalibrationLeak, InvalidValue, PoolFileError, TunedFileError
from demur.evaluation.candidates import Configuration, configurations
from demur.evaluation.resampling import LabelledVotes
from demur.evaluation.tuning import Ranking
from demur.evidence.yield_law import YieldLaw
from demur.records import Path as SampledPath


def pools(n=200, m=6, seed=0, **scores):
    """Pools of two answers; a path is right more often on easy questions. Scores are functions of (right, rng)."""
    rng, made = np.random.default_rng(seed), []
    for row in range(n):
        right = rng.random(m) < rng.uniform(0.2, 1)
        paths = tuple(
            SampledPath(answer="yes" if one else "no", scores={k: float(f(one, rng)) for k, f in scores.items()})
            for one in right
        )
        problem = dm.Problem(f"p{seed}-{row}", question=f"question {seed} {row}", gold=("yes",))
        made.append(dm.Pool(problem, paths))
    return dm.PoolSource(made)


def good(right, rng):
    return rng.normal(1.5 * right)


def noise(right, rng):
    return rng.normal()


@pytest.fixture(scope="module")
def source():
    return pools(300, good=good, noise=noise)


@pytest.fixture(scope="module")
def tuned(source):
    return dm.tune(source, alpha=0.1)


# --- what is chosen ----------------------------------------------------------------------------------------------


def test_a_score_that_tells_right_from_wrong_is_chosen_and_noise_is_not(source, tuned):
    assert tuned.best.name.startswith("good, ")
    assert tuned.best.over_default > tuned.best.over_default_error > 0
    assert any(row.name.startswith("noise, ") for row in tuned.rows)


def test_a_score_that_says_nothing_changes_nothing():
    found = dm.tune(pools(150, same=lambda right, rng: 1.0), alpha=0.1)
    assert [row.name for row in found.rows] == ["majority vote"]  # all others put votes in the same order


def test_yields_are_those_of_the_exact_law_at_the_size_that_is_left(source, tuned):
    rows = dm.split([pool.problem.id for pool in source.pools], seed=0, tune=0.3).tune
    part = replace(source, pools=[source.pools[row] for row in rows])
    voted = dm.vote_pools(part)
    law = YieldLaw.of(dm.Evidence.of(voted.votes.key, voted.labelled))
    (expected,) = law.expect([(dm.Marginal(0.1).rank(210), 210)])
    assert (tuned.n, tuned.n_cal, tuned.rows[0].name) == (90, 210, "majority vote")
    assert tuned.rows[0].answered == pytest.approx(expected.answered)
    assert tuned.problems.ids == {source.pools[row].problem.id for row in rows}


def test_the_first_row_is_the_default_and_has_no_difference_to_itself(tuned):
    assert (tuned.rows[0].over_default, tuned.rows[0].over_default_error) == (0, 0)
    assert all(row.standard_error > 0 for row in tuned.rows)
    assert sum(tuned.columns()["chosen"]) == 1


def test_one_way_to_vote_is_told_in_the_singular(tuned):
    alone = replace(tuned, rows=tuned.rows[:1], chosen=0)
    assert alone.sentence.startswith("1 way to vote was ranked by the labels of ")
    assert tuned.sentence.startswith(f"{len(tuned.rows)} ways to vote were ranked by the labels of ")


def test_the_simplest_within_one_error_of_the_best_is_chosen():
    close = Ranking(
        np.array([0.50, 0.52, 0.525]), np.array([[0.49, 0.50, 0.52], [0.51, 0.54, 0.53], [0.5, 0.52, 0.52]])
    )
    assert close.choose([0, 1, 2]) == 1
    apart = Ranking(np.array([0.5, 0.6]), np.array([[0.5, 0.6], [0.501, 0.601]]))
    assert apart.choose([0, 3]) == 1
    alike = Ranking(np.array([0.5, 0.5]), np.full((4, 2), 0.5))
    assert alike.choose([0, 3]) == 0


def test_standard_errors_are_about_the_spread_over_new_tune_splits():
    """The jackknife's error of the default's yield, against 40 tune splits of other questions."""
    found = [dm.tune(pools(200, seed=seed), alpha=0.2, share=0.5).rows[0] for seed in range(1, 41)]
    spread = np.std([row.answered for row in found], ddof=1)
    assert 0.6 < np.mean([row.standard_error for row in found]) / spread < 1.6


def test_what_is_given_is_not_varied(source):
    one = dm.tune(source, dm.FieldChoice(score="noise"), alpha=0.1, weight="exponential:2", normaliser="pool_z")
    assert {row.name.partition(",")[0] for row in one.rows} == {"majority vote", "noise"}
    assert all("exponential:2 of pool_z" in row.name for row in one.rows[1:])
    names = [each.name for each in configurations(source, tie_break="jitter:0")]
    assert not any("mean_score" in name for name in names)


def test_every_configuration_has_a_name_of_its_own(source):
    names = [each.name for each in configurations(source)]
    assert len(set(names)) == len(names)
    assert [Configuration().distance, Configuration("a", "exponential:1").distance] == [0, 1]


def test_what_pools_do_not_allow_is_skipped_and_said(source, tuned):
    assert any(told.startswith("good, linear: linear weights need scores >= 0") for told in tuned.skipped)
    first = source.pools[0]
    gap = replace(first, paths=(replace(first.paths[0], scores={"good": 1.0}), *first.paths[1:]))
    said = []
    found = dm.tune(replace(source, pools=[gap, *source.pools[1:]]), alpha=0.1, say=said.append)
    assert "note: not compared: noise: 1 pools have a path without it" in said
    assert not any(row.name.startswith("noise") for row in found.rows)


def test_another_candidate_is_compared_beside_the_others():
    class Oracle:
        name, distance = "oracle", 9

        def ranked(self, pools):
            voted = Configuration().chosen(pools)
            right = voted.labelled[voted.in_order]
            return LabelledVotes.of((np.where(right, 0.6, 0.1) + np.arange(len(right)) / 1000)[:, None], right)

        def chosen(self, pools):
            return Configuration().chosen(pools)

    found = dm.tune(pools(200), alpha=0.1, candidates=[Oracle()])
    assert found.best.name == "oracle"


def of_several_sources(n=400, seed=0):
    """Pools whose first source is nearly always right, and whose other four guess alike: the share is misled."""
    rng, made = np.random.default_rng(seed), []
    for row in range(n):
        good, common = rng.random() < 0.95, rng.random() < 0.6
        right = [good, *(rng.random(4) < (0.9 if common else 0.1))]
        paths = tuple(SampledPath("yes" if one else "no", extra={"src": f"s{at}"}) for at, one in enumerate(right))
        made.append(dm.Pool(dm.Problem(f"p{row}", question=f"question {row}", gold=("yes",)), paths))
    return dm.PoolSource(made)


def test_a_learned_key_is_chosen_where_it_is_better_and_lives_in_the_files(tmp_path):
    several = of_several_sources()
    found = dm.tune(several, alpha=0.1)
    assert found.best.name == "learned key of majority vote"
    assert found.best.over_default > found.best.over_default_error
    found.save(tmp_path / "tuned.json")
    loaded = dm.Tuned.load(tmp_path / "tuned.json")
    policy = dm.calibrate(loaded.vote(several), alpha=0.1, tuned=loaded)
    assert policy.n == found.n_cal == 280
    assert policy.forecast().answered > dm.calibrate(dm.vote_pools(several), alpha=0.1).forecast().answered
    policy.save(tmp_path / "policy.json")
    assert dm.Policy.load(tmp_path / "policy.json").points == policy.points


def test_a_learned_key_that_is_no_better_is_not_compared_and_that_is_said(source, tuned):
    assert not any(row.name.startswith("learned") for row in tuned.rows) or tuned.best.over_default > 0
    plain = dm.tune(pools(200), alpha=0.1)
    assert plain.best.name == "majority vote"
    given = dm.tune(source, alpha=0.1, weight="exponential:1")
    assert not any("learned" in told for told in (*given.skipped, *(row.name for row in given.rows)))


def test_clusters_and_questions_stay_on_one_side(source):
    doubled = [
        replace(pool, problem=replace(pool.problem, id=f"{pool.problem.id}-{copy}", cluster=f"c{row // 3}"))
        for copy in "ab"
        for row, pool in enumerate(source.pools)
    ]
    found = dm.tune(replace(source, pools=doubled), alpha=0.1)
    assert (found.unit, found.n, found.n_cal) == ("cluster", 30, 70)
    assert len(found.problems.ids) == 180
    voted = found.vote(replace(source, pools=doubled))
    assert len(found.rest(voted)) == 420


# --- calibrating with it -----------------------------------------------------------------------------------------


def test_problems_that_were_tuned_on_never_calibrate_nor_audit(source, tuned):
    voted = tuned.vote(source)
    policy = dm.calibrate(voted, alpha=0.1, tuned=tuned)
    assert policy.n == 210
    assert policy.seen.ids == {pool.problem.id for pool in source.pools}
    tune_part = voted.take(np.array([name in tuned.problems.ids for name in voted.ids]))
    with pytest.raises(CalibrationLeak, match="90 of 90 problems calibrated"):
        policy.refuse_voted(tune_part)
    with pytest.raises(CalibrationLeak, match="chosen on all 90 of these problems"):
        dm.calibrate(tune_part, alpha=0.1, tuned=tuned)
    kept = dm.calibrate(voted, alpha=0.1, tuned=tuned, hold_out=0.5)
    assert kept.n == 105


def test_votes_remember_the_problems_that_they_were_chosen_by(source, tuned):
    """Whoever forgets to say so, or has no way to, as in a cascade, calibrates on none of them all the same."""
    voted = tuned.vote(source)
    with pytest.raises(CalibrationLeak, match="way to vote was chosen or fitted on 90 of the calibration problems"):
        dm.calibrate(voted, alpha=0.1)
    stages = [dm.Stage("cheap", dm.vote_pools(source)), dm.Stage("strong", voted)]
    with pytest.raises(CalibrationLeak, match="way to vote was chosen or fitted on 90 of the calibration problems"):
        dm.calibrate_cascade(stages, alpha=0.1)
    rest = tuned.rest(voted)
    assert dm.calibrate(rest, alpha=0.1).points == dm.calibrate(voted, alpha=0.1, tuned=tuned).points
    assert dm.calibrate(rest, alpha=0.1).seen.ids >= tuned.problems.ids


def test_another_file_may_calibrate_what_was_tuned_on_this_one(tuned):
    policy = dm.calibrate(tuned.vote(pools(100, seed=5, good=good, noise=noise)), alpha=0.1, tuned=tuned)
    assert policy.n == 100
    assert len(policy.seen.ids) == 190


@pytest.mark.parametrize("what", ["question", "cluster"])
def test_a_problem_that_shares_a_question_or_cluster_with_a_tuned_one_is_named(source, what):
    clustered = [
        replace(pool, problem=replace(pool.problem, cluster=f"c{row}")) for row, pool in enumerate(source.pools)
    ]
    found = dm.tune(replace(source, pools=clustered), alpha=0.1)
    seen = next(pool for pool in clustered if pool.problem.id in found.problems.ids)
    other = {"cluster": None, "question": "another"} | {what: getattr(seen.problem, what)}
    copy = replace(seen, problem=replace(seen.problem, id="copy", **other))
    voted = found.vote(replace(source, pools=[*clustered, copy]))
    with pytest.raises(CalibrationLeak, match="the problem 'copy' shares its question or cluster"):
        dm.calibrate(voted, alpha=0.1, tuned=found)


def test_votes_made_another_way_are_refused(source, tuned):
    with pytest.raises(InvalidValue, match=r"not made the way that was chosen: score.name is 'good' in what was tuned"):
        dm.calibrate(dm.vote_pools(source), alpha=0.1, tuned=tuned)
    with pytest.raises(PoolFileError, match="no pool has the score 'good'"):
        tuned.vote(pools(50, noise=noise))


# --- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0, 1, -0.2, 1.5, float("nan")])
def test_a_share_must_leave_something_on_both_sides(source, share):
    with pytest.raises(InvalidValue, match="share must lie strictly between 0 and 1"):
        dm.tune(source, alpha=0.1, share=share)


def test_too_few_labels_to_split_point_to_the_other_way(source):
    few = replace(source, pools=source.pools[:60])
    with pytest.raises(
        InvalidValue, match=r"60 labelled questions are too few to split: 18 to choose on.*chosen_from=J"
    ):
        dm.tune(few, alpha=0.1)
    with pytest.raises(InvalidValue, match=r"210 to calibrate on, of at least 999 at alpha = 0.001"):
        dm.tune(source, alpha=0.001)


def test_a_promise_that_is_no_rank_is_not_tuned_for(source):
    with pytest.raises(InvalidValue, match="selective"):
        dm.tune(source, guarantee=dm.Selective(0.1, 0.1))


def test_pools_without_gold_are_refused(source):
    bare = [replace(pool, problem=replace(pool.problem, gold=())) for pool in source.pools]
    with pytest.raises(PoolFileError, match="has no gold answer"):
        dm.tune(replace(source, pools=bare), alpha=0.1)


# --- the file ----------------------------------------------------------------------------------------------------


def test_a_file_brings_everything_back(tuned, tmp_path):
    tuned.save(tmp_path / "tuned.json")
    loaded = dm.Tuned.load(tmp_path / "tuned.json")
    assert vars(loaded) == vars(tuned)


def test_an_edited_file_is_refused(tuned, tmp_path):
    path = tmp_path / "tuned.json"
    tuned.save(path)
    path.write_text(path.read_text().replace('"chosen": ', '"chosen": 1'))
    with pytest.raises(TunedFileError, match=r"was changed after it was written.*tune again"):
        dm.Tuned.load(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "tuned.json"
    for text, said in (
        ("{", "damaged"),
        ('{"format": "demur-policy"}', "is not a file of a tuned vote"),
        ("[]", "is not"),
    ):
        path.write_text(text)
        with pytest.raises(TunedFileError, match=said):
            dm.Tuned.load(path)
    with pytest.raises(TunedFileError):
        dm.Tuned.load(Path(tmp_path / "absent.json"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chosen": 10**6}, "chosen must be one of its"),
        ({"chosen": -1}, "chosen must be a whole number"),
        ({"n": "90"}, "n must be a whole number"),
        ({"rows": []}, "it needs rows"),
        ({"rows": [{"name": "x"}]}, "a row must hold"),
        ({"alphas": [2]}, "alphas and share must lie"),
        ({"share": None}, "alphas and share must lie"),
        ({"unit": "pool"}, "it needs a unit"),
        ({"skipped": [1]}, "it needs a unit and what was skipped"),
        ({"tuned_on": {"ids": [], "questions": [], "clusters": []}}, "tuned_on must list"),
        ({"tuned_on": {"ids": [3], "questions": [], "clusters": []}}, "tuned_on must list"),
        ({"pipeline": {"vote": {}}}, "fingerprint"),
        ({"fingerprint": "sha256:0"}, "fingerprint"),
    ],
)
def test_every_value_of_a_file_is_checked(change, said, tuned, tmp_path):
    path = tmp_path / "tuned.json"
    tuned.save(path)
    document = json.loads(path.read_text()) | change
    document.pop("digest")
    path.write_text(json.dumps({**document, "digest": digest(document)}))
    with pytest.raises(TunedFileError, match=said):
        dm.Tuned.load(path)
