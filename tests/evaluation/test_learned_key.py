"""Fitting a learned key: what it gains, when it is offered, and that the promise holds as it does for the share."""

from __future__ import annotations

import gzip
import json
import math

import numpy as np
import pytest

import demur as dm
from demur.errors import CalibrationLeak, InvalidValue
from demur.pools.source import PoolSource
from demur.records import Path, Pool, Problem

GOOD, WEAK = 0.85, 0.35


def world(rng, n, *, good=3, weak=9, noise=0):
    """Answers of some good and many weak sources, which often share a wrong answer, and the right ones."""
    skill = np.repeat([GOOD, WEAK], [good, weak])
    odds = np.log(skill / (1 - skill)) + rng.normal(size=(n, 1))
    right = rng.random((n, good + weak)) < 1 / (1 + np.exp(-odds))
    lone, common = rng.integers(1, 4, right.shape), rng.integers(1, 4, (n, 1))
    wrong = np.where(rng.random(right.shape) < 0.5, common, lone)
    drawn = np.concatenate([np.where(right, 0, wrong), rng.integers(0, 4, (n, noise))], axis=1)
    gold = rng.integers(0, 4, n)  # ties fall to the smaller key, which must not tell
    return (drawn + gold[:, None]) % 4, gold


def voted(drawn, key=None, first=0):
    answers, gold = drawn
    origins = [[f"source {j}" for j in range(answers.shape[1])]] * len(answers)
    votes = dm.vote(answers, ids=[f"q{first + row}" for row in range(len(answers))], origins=origins, confidence=key)
    return dm.VotedPools.of(votes, votes.answer == gold)


def without_memory(key):
    """The same key, as though it had been fitted on nothing: what a leak would look like."""
    return dm.Learned(key.intercept, key.weights, key.origin, key.sources)


def rates(rng, repeats, *, leak=False, alpha=0.1, n_cal=60, **how):
    """Mean error and yield on new questions of a learned key and of the share; each with the error's standard error."""
    errors, yields = [], []
    for _ in range(repeats):
        tune, cal, new = (world(rng, n, **how) for n in (100, n_cal, 300))
        key = without_memory(dm.fit_learned(voted(cal if leak else tune)).key)
        both = [dm.calibrate(voted(cal, one), alpha=alpha).decide_votes(voted(new, one).votes) for one in (key, None)]
        errors.append([(each.answered & (each.votes.answer != new[1])).mean() for each in both])
        yields.append([each.answered.mean() for each in both])
    spread = np.std(errors, axis=0) / math.sqrt(repeats)
    return np.mean(errors, axis=0), np.mean(yields, axis=0), spread


def test_the_promise_holds_and_far_more_is_answered_where_sources_differ():
    error, answered, spread = rates(np.random.default_rng(2), 60)
    assert error[0] <= 0.1 + 4 * spread[0]
    assert answered[0] > answered[1] + 0.15  # abstaining always would fail this
    assert error[0] > 0.05


def test_a_key_fitted_on_the_calibration_labels_violates_the_promise():
    error, _, spread = rates(np.random.default_rng(3), 40, leak=True, noise=30)
    assert error[0] > 0.1 + 8 * spread[0]
    assert error[1] <= 0.1 + 4 * spread[1]


@pytest.mark.parametrize("seed", range(3))
def test_each_vote_of_a_bag_in_turn_is_answered_wrongly_no_more_often_than_allowed(seed):
    rng = np.random.default_rng(seed)
    key = dm.fit_learned(voted(world(rng, 120), first=1000)).key
    bag = voted(world(rng, 81), key)
    for alpha in (0.05, 0.1, 0.3):
        wrong = 0
        for row in range(len(bag)):
            others = np.arange(len(bag)) != row
            policy = dm.calibrate(bag.take(others), alpha=alpha)
            wrong += bool(policy.decide_votes(bag.votes.take([row])).answered[0]) and not bag.correct[row]
        assert wrong <= math.floor(alpha * len(bag))
        assert wrong > 0


def test_the_verdict_has_the_figures_and_the_key_is_better_where_it_is():
    fit = dm.fit_learned(voted(world(np.random.default_rng(4), 200)))
    assert fit.better
    assert fit.gain > fit.standard_error > 0
    assert fit.auroc > fit.share_auroc
    assert "each left out in turn" in fit.verdict
    assert fit.verdict.endswith("it is better.")
    assert len(fit.left_out) == fit.n == 200
    best, worst = max(fit.key.sources, key=fit.key.sources.get), min(fit.key.sources, key=fit.key.sources.get)
    assert best in {"source 0", "source 1", "source 2"}
    assert worst not in {"source 0", "source 1", "source 2"}


def test_where_there_is_nothing_to_learn_it_is_seldom_better():
    rng = np.random.default_rng(6)
    alike = [dm.fit_learned(voted(world(rng, 150, good=0, weak=6))).better for _ in range(40)]
    assert np.mean(alike) < 0.5


def test_only_what_is_weighed_is_needed_in_use():
    rng, keys = np.random.default_rng(7), []
    for _ in range(8):
        answers, gold = world(rng, 150)
        origins, lengths = [[str(j) for j in range(12)]] * 150, rng.random((150, 12))
        votes = dm.vote(answers, ids=range(150), origins=origins, columns={"length": lengths})
        keys.append(dm.fit_learned(dm.VotedPools.of(votes, votes.answer == gold)).key)
    bare = [key for key in keys if set(key.weights) == {"confidence"}]
    assert bare
    assert all(key.needs == () for key in bare)
    assert all(key.needs == ("length",) for key in keys if key not in bare)


def test_the_problems_of_the_tune_split_may_not_calibrate_by_id_or_by_question():
    rng = np.random.default_rng(8)
    texts = [f"What is {row}?" for row in range(300)]
    answers, gold = world(rng, 300)

    def asked(rows, ids, key=None):
        votes = dm.vote(answers[rows], ids=ids, questions=[texts[row] for row in rows], confidence=key)
        return dm.VotedPools.of(votes, votes.answer == gold[list(rows)])

    key = dm.fit_learned(asked(range(100), [f"t{row}" for row in range(100)])).key
    for rows, ids in ((range(99, 300), range(99, 300)), (range(100, 300), ["t3", *range(101, 300)])):
        with pytest.raises(CalibrationLeak, match="fitted on 1 of the calibration problems"):
            dm.calibrate(asked(rows, list(ids), key), alpha=0.1)
    dm.calibrate(asked(range(100, 300), list(range(100, 300)), key), alpha=0.1)


def test_a_confidence_that_never_differs_is_no_label():
    sources = [["one", "two", "three"] if row % 2 else ["one", "three", "two"] for row in range(100)]
    right = np.arange(100) % 2 == 0
    right[:10] = ~right[:10]
    fit = dm.fit_learned(dm.VotedPools.of(dm.vote([["a", "a", "b"]] * 100, ids=range(100), origins=sources), right))
    assert fit.better


def test_labels_dressed_as_a_score_are_refused():
    answers, gold = world(np.random.default_rng(9), 100)
    right = dm.vote(answers).answer == gold
    leaked = np.repeat(right[:, None].astype(float), answers.shape[1], axis=1)
    votes = dm.vote(answers, ids=range(100), columns={"innocent": leaked})
    with pytest.raises(InvalidValue, match="mean_score:innocent is the label itself"):
        dm.fit_learned(dm.VotedPools.of(votes, right))


def test_too_few_labels_votes_without_ids_and_partly_labelled_ones_are_refused():
    answers, gold = world(np.random.default_rng(10), 60)
    few = voted((answers, gold))
    with pytest.raises(InvalidValue, match="at least 5 right and 5 wrong votes, and the tune split has 0 wrong"):
        dm.fit_learned(few.take(np.flatnonzero(few.correct)))
    nameless = dm.vote(answers)
    with pytest.raises(InvalidValue, match="needs votes with ids"):
        dm.fit_learned(dm.VotedPools.of(nameless, nameless.answer == gold))
    partly = dm.VotedPools.of(few.votes, [None, *few.correct[1:]], partly_labelled=True)
    with pytest.raises(InvalidValue, match="have no label"):
        dm.fit_learned(partly)


def pools_of(drawn, first=0):
    """The same as pools of a file: texts, a second score, and the source of each path."""
    rng = np.random.default_rng(first)
    made = []
    for row, (codes, gold) in enumerate(zip(*drawn, strict=True)):
        paths = tuple(
            Path(str(code), "x" * int(rng.integers(1, 50)), {"judge": float(rng.random())}, {"src": f"model {j}"})
            for j, code in enumerate(codes)
        )
        made.append(Pool(Problem(f"p{first + row}", f"Question {first + row}?", gold=(str(gold),)), paths))
    return PoolSource(made)


def test_a_policy_with_a_learned_key_is_saved_loaded_and_decides_pools_and_single_ones_alike(tmp_path):
    rng = np.random.default_rng(11)
    tune, cal, new = (pools_of(world(rng, n), first) for n, first in ((150, 0), (100, 1000), (40, 2000)))
    recipe = tune.recipe(tie_break="jitter:0")
    fit = dm.fit_learned(dm.vote_pools(tune, recipe=recipe))
    assert fit.key.origin == "src"
    policy = dm.calibrate(dm.vote_pools(cal, recipe=recipe.led_by(fit.key)), alpha=0.1)
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    assert loaded.fingerprint == policy.fingerprint
    assert loaded.recipe.key[0].fitted_on.ids == {pool.problem.id for pool in tune.pools}
    decided = loaded.decide_votes(loaded.vote(new).votes)
    assert 0 < decided.answered.sum() < len(new.pools)
    for row, pool in enumerate(new.pools):
        single = loaded.decide(
            [path.answer for path in pool.paths],
            columns={
                "length": [len(path.text) for path in pool.paths],
                "judge": [path.scores["judge"] for path in pool.paths],
            },
            origins=[path.extra["src"] for path in pool.paths],
            question=pool.problem,
            id=pool.problem.id,
        )
        assert single == decided[row]
        assert "learned confidence" in single.explanation
        assert "share of the vote" in single.explanation


def test_a_policy_file_whose_weights_were_changed_does_not_load(tmp_path):
    rng = np.random.default_rng(12)
    key = dm.fit_learned(voted(world(rng, 150), first=1000)).key
    path = tmp_path / "policy.json"
    dm.calibrate(voted(world(rng, 100), key), alpha=0.1).save(path)
    document = json.loads(path.read_text())
    document["pipeline"]["vote"]["confidence"]["weights"]["confidence"] += 1
    path.write_text(json.dumps(document))
    with pytest.raises(dm.DemurError):
        dm.Policy.load(path)


def test_a_column_with_gaps_is_not_looked_at():
    rng = np.random.default_rng(13)
    answers, gold = world(rng, 120)
    columns = {"length": [[None, *rng.random(11)] for _ in range(120)]}
    votes = dm.vote(answers, ids=range(120), columns=columns)
    assert dm.fit_learned(dm.VotedPools.of(votes, votes.answer == gold)).key.needs == ()


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("file", "at_least"),
    [("mmlupro_text_1in8", 0.05), ("faithfulcot_gsm8k_pool", 0.01), ("openai_gsm8k_examples", -0.01)],
)
def test_half_the_labels_learn_more_than_they_cost_on_pools_of_several_sources(
    recorded_pools, tmp_path, file, at_least
):
    with gzip.open(recorded_pools / f"{file}.jsonl.gz", "rt", encoding="utf-8") as stream:
        (tmp_path / "pools.jsonl").write_text("".join(stream), encoding="utf-8")
    source = dm.read_pools(tmp_path / "pools.jsonl")
    fields = dm.FieldChoice(missing=("None",))
    recipe = source.recipe(tie_break="jitter:0")
    plain = dm.vote_pools(source, fields, recipe)
    rng, gained = np.random.default_rng(0), []
    for _ in range(12):
        order = rng.permutation(plain.counted)
        tune, cal, new = order[:200], order[200:400], order[400:]
        key = dm.fit_learned(plain.take(tune)).key
        counted = plain.votes.counted(key.needs, key.origin)
        learned = np.stack([key.of(counted), plain.votes.key[:, -1]], axis=1)
        gained.append(
            _yield(learned, plain.correct, cal, new) - _yield(plain.votes.key, plain.correct, order[:400], new)
        )
    assert np.mean(gained) > at_least


def _yield(key, right, cal, new, alpha=0.1):
    wrong = sorted((tuple(one) for one in key[cal][~right[cal]]), reverse=True)
    k = math.floor((len(cal) + 1) * alpha)
    bound = wrong[k - 1] if len(wrong) >= k else (0.0, -math.inf)
    return np.mean([tuple(one) > bound for one in key[new]])
