"""Plans: friendly sizes in exact fractions, drawn calibration sets, other questions, and what is refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue
from demur.evaluation.friendly_sizes import friendly_n, is_friendly, ranks_of
from demur.evaluation.guessed_votes import guessed_evidence
from demur.pools.fields import FieldChoice, read_table
from demur.pools.jsonl import read_pools
from demur.pools.labels import read_labels
from demur.pools.splits import one_per_unit, units

ALPHAS = ["1/20", "1/10", "1/3", "3/100", "7/100", "37/1000", "9/10"]


def pilot_of(n, *, seed=0, n_paths=8, tie_break=True, **how):
    pools = dm.simulate_pools(n, n_paths=n_paths, seed=seed, **how)
    votes = dm.vote(pools.answers, pools.scores, tie_break=dm.mean_score() if tie_break else None)
    return votes, votes.answer == pools.gold


@pytest.mark.parametrize("alpha", ALPHAS)
def test_an_n_is_friendly_to_marginal_where_a_rank_has_just_been_won(alpha):
    level, marginal = Fraction(alpha), dm.Marginal(alpha)
    friendly = [n for n in range(1, 1200) if math.floor((n + 1) * level) > math.floor(n * level)]
    assert [n for n in range(1, 1200) if is_friendly(marginal, n)] == friendly
    whole = [n for n in range(1, 1200) if ((n + 1) * level).denominator == 1]
    assert set(whole) <= set(friendly)
    assert level.numerator > 1 or whole == friendly
    for near in (1, 5, 20, 99, 100, 101, 200, 500, 1000):
        best = min(abs(n - near) for n in friendly)
        assert abs(friendly_n(marginal, near) - near) == best
        assert friendly_n(marginal, near) in friendly


@pytest.mark.parametrize("alpha", ["1/20", "1/10", "3/100"])
def test_an_n_is_friendly_to_a_high_probability_where_its_rank_rises(alpha):
    promise = dm.HighProbability(alpha, 0.1)
    ranks = [promise.rank(n) for n in range(601)]
    friendly = [n for n in range(1, 601) if ranks[n] > ranks[n - 1]]
    for near in (1, 50, 100, 199, 300, 500):
        found = friendly_n(promise, near)
        assert found in friendly
        assert abs(found - near) == min(abs(n - near) for n in friendly)


@pytest.mark.parametrize(
    "guarantee",
    [dm.Marginal("1/20"), dm.Marginal("37/1000"), dm.Marginal(0.1, choices=4), dm.HighProbability(0.1, 0.1),
     dm.HighProbability(0.05, 0.01, choices=3), dm.HighProbability(0.5, 0.25)],
)  # fmt: skip
def test_the_smallest_n_of_a_rank_is_where_the_rank_is_first_reached(guarantee):
    ranks = [guarantee.rank(n) for n in range(400)]
    for k in range(1, ranks[-1] + 1):
        first = next(n for n, rank in enumerate(ranks) if rank >= k)
        assert {guarantee.n_of_rank(k, near) for near in (1, first, 399)} == {first}
        assert (guarantee.reaches(k, first), guarantee.reaches(k, first - 1)) == (True, False)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_what_rounding_loses_is_exact_and_nothing_where_n_plus_1_alpha_is_whole(alpha):
    level, sizes = Fraction(alpha), range(1, 300)
    for row in dm.plan(alpha=alpha, n=list(sizes)).rows:
        k = math.floor((row.n + 1) * level)
        assert row.k == k
        assert row.unspent == float(level - Fraction(k, row.n + 1))
        assert (row.unspent == 0) == (((row.n + 1) * level).denominator == 1)
        assert row.feasible == (k > 0)


def test_by_default_rows_are_friendly_and_begin_with_the_least():
    rows = dm.plan(alpha=0.05, delta=0.1).rows
    assert [row.n for row in rows if row.guarantee.name == "marginal"] == [19, 99, 199, 499, 999]
    assert next(row.n for row in rows if row.guarantee.name == "high_probability") == 45
    assert all(row.friendly and row.feasible for row in rows)
    assert all(math.isnan(row.expected.answered) for row in rows)
    assert [row.n for row in dm.plan(alpha=0.001).rows] == [999]


def test_a_plan_does_not_depend_on_the_order_of_rows_nor_on_ids():
    votes, right = pilot_of(120)
    order = np.random.default_rng(0).permutation(120)
    one, other = dm.plan(votes, right, alpha=0.1), dm.plan(votes.take(order), right[order], alpha=0.1)
    assert one.document() == other.document()


def test_a_smoothed_rank_is_planned_over_its_draw_whatever_the_seed():
    votes, right = pilot_of(150)
    plans = [dm.plan(votes, right, guarantee=dm.Smoothed(0.05, seed), n=49).rows[0] for seed in range(4)]
    assert len({row.expected.answered for row in plans}) == 1
    assert ranks_of(dm.Smoothed(0.05, 0), 49) == {2: 0.5, 3: 0.5}
    (row,) = plans[:1]
    assert row.spent == pytest.approx(0.05)
    assert (row.unspent, row.friendly) == (0, True)
    low, high = (dm.plan(votes, right, alpha=a, n=49).rows[0].expected for a in (Fraction(2, 50), Fraction(3, 50)))
    assert row.expected.answered == pytest.approx((low.answered + high.answered) / 2)
    assert row.price < 0  # it answers more than the marginal promise


def test_the_price_of_a_high_probability_is_the_yield_it_gives_up():
    votes, right = pilot_of(400)
    rows = dm.plan(votes, right, alpha=0.1, delta=0.1, n=[99, 499]).rows
    marginal, sure = rows[:2], rows[2:]
    for one, other in zip(marginal, sure, strict=True):
        assert one.price == 0
        assert other.price == pytest.approx(one.expected.answered - other.expected.answered)
        assert other.price > 0
        assert other.expected.labels < one.expected.labels
    assert sure[1].price < sure[0].price  # more labels make it cheaper


class Foreign:
    """A guarantee by its protocol alone, that happens to promise what `Marginal` does."""

    def __init__(self, alpha):
        self._plain = dm.Marginal(alpha)

    name = "foreign"

    def __getattr__(self, name):
        if name == "rank":
            raise AttributeError(name)
        return getattr(self._plain, name)

    alpha = property(lambda self: self._plain.alpha)
    level = property(lambda self: self._plain.level)


for _name in ("settle", "settle_many", "law", "law_over_splits", "n_needed", "parameters", "promise"):
    setattr(Foreign, _name, lambda self, *given, _name=_name: getattr(self._plain, _name)(*given))


def test_a_guarantee_that_is_no_rank_is_planned_by_drawn_calibration_sets():
    votes, right = pilot_of(2000)
    foreign = dm.plan(votes, right, guarantee=Foreign(0.1), n=199).rows[0]
    exact = dm.plan(votes, right, alpha=0.1, n=199).rows[0]
    assert foreign.k is None
    assert math.isnan(foreign.expected.labels)
    error = exact.expected.answered_sd / math.sqrt(200)
    assert abs(foreign.expected.answered - exact.expected.answered) < 4 * error
    assert foreign.expected.answered_sd == pytest.approx(exact.expected.answered_sd, rel=0.2)
    assert foreign.price == pytest.approx(exact.expected.answered - foreign.expected.answered)
    again = dm.plan(votes, right, guarantee=Foreign(0.1), n=199).rows[0]
    assert again.expected.answered == foreign.expected.answered  # a seeded draw


def test_the_pilots_standard_error_is_about_that_of_other_pilots():
    told, means = [], []
    for seed in range(60):
        row = dm.plan(*pilot_of(300, seed=seed), alpha=0.1, n=199).rows[0]
        told.append(row.standard_error)
        means.append(row.expected.answered)
    assert np.mean(told) == pytest.approx(np.std(means, ddof=1), rel=0.35)


def test_pilots_are_not_biased():
    """The mean of many small pilots' plans is what a large one says."""
    plans = [dm.plan(*pilot_of(200, seed=seed), alpha=0.1, n=99).rows[0].expected for seed in range(200)]
    truth = dm.plan(*pilot_of(40_000, seed=1000), alpha=0.1, n=99).rows[0].expected
    for name in ("answered", "labels"):
        values = [getattr(one, name) for one in plans]
        assert abs(np.mean(values) - getattr(truth, name)) < 4 * np.std(values) / math.sqrt(200), name


def test_an_alpha_below_what_is_unanimous_and_wrong_has_no_threshold():
    pools = [["a"] * 4] * 90 + [["b"] * 4] * 10
    votes, right = dm.vote(pools), np.arange(100) < 90
    planned = dm.plan(votes, right, alpha=[0.05, 0.2], n=99)
    strict, loose = planned.feasibility
    assert (strict.feasible, strict.answered, strict.unanimous_wrong.estimate) == (False, 0, 0.1)
    assert "no threshold can answer" in strict.sentence
    assert any(change.startswith("break ties") for change in strict.changes)
    assert "alpha above 0.1," in strict.changes[-1]
    assert (loose.feasible, loose.answered) == (True, 1)
    assert "smaller alpha" in loose.changes[0]
    assert planned.rows[0].expected.answered < 0.05
    broken = dm.vote(pools, tie_break=dm.jitter(0), ids=[str(row) for row in range(100)])
    assert dm.plan(broken, right, alpha=0.05).feasibility[0].feasible


def test_no_confidence_answers_more_than_accuracy_and_alpha_allow():
    for seed in range(10):
        votes, right = pilot_of(200, seed=seed)
        planned = dm.plan(votes, right, alpha=[0.02, 0.05, 0.2])
        for at in planned.feasibility:
            assert at.answered <= at.answered_at_most + 1e-12
            assert at.answered_at_most == min(1, right.mean() + at.alpha)
        assert all(row.expected.answered <= min(1, right.mean() + row.alpha) + 1e-9 for row in planned.rows)


def test_votes_that_confidence_does_not_tell_apart_need_a_better_score_not_more_labels():
    rng = np.random.default_rng(0)
    votes = dm.vote([["a"]] * 300, tie_break=rng.random(300))
    (at,) = dm.plan(votes, rng.random(300) < 0.6, alpha=0.05).feasibility
    assert any("more labels alone do not help" in change for change in at.changes)


@pytest.mark.parametrize("accuracy", [0.02, 0.3, 0.8, 0.97])
def test_a_guess_is_as_accurate_as_it_was_guessed_and_called_a_guess(accuracy):
    assert guessed_evidence(accuracy).vote_accuracy == pytest.approx(accuracy, abs=0.02)
    planned = dm.plan(alpha=0.05, accuracy=accuracy)
    assert planned.source == "guess"
    assert "guess" in planned.notes[0]
    assert all(math.isnan(row.standard_error) for row in planned.rows)


def test_a_guess_with_a_far_better_score_answers_more():
    """At the same accuracy of the vote a somewhat better score hardly does: questions must be harder then."""
    poor, good = (dm.plan(alpha=0.05, accuracy=0.8, separation=d, n=199).rows[0].expected for d in (0.0, 4.0))
    assert good.answered > poor.answered + 0.03


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"alpha": 0}, "alpha must lie strictly between 0 and 1, got 0"),
        ({"alpha": 1.5}, "alpha must lie strictly between 0 and 1, got 1.5"),
        ({"alpha": 0.1, "delta": 1}, "delta must lie strictly between 0 and 1, got 1"),
        ({"alpha": 0.1, "delta": "x"}, "delta must be a number strictly between 0 and 1"),
        ({"alpha": 0.1, "accuracy": 1}, "accuracy must lie strictly between 0 and 1, got 1; guess"),
        ({"alpha": 0.1, "accuracy": -0.2}, "accuracy must lie strictly between 0 and 1, got -0.2"),
        ({"alpha": 0.1, "accuracy": math.nan}, "accuracy must lie strictly between 0 and 1, got nan"),
        ({"alpha": 0.1, "n": 0}, "n must be at least 1, got 0"),
        ({"alpha": 0.1, "n": [99, -3]}, "n must be at least 1, got -3"),
        ({"alpha": 0.1, "accuracy": 0.8, "n_paths": 0}, "n_paths must be at least 1, got 0; give n_paths"),
        ({}, "give either alpha or guarantee"),
        ({"guarantee": dm.Marginal(0.1), "delta": 0.1}, "delta = 0.1 goes with alpha"),
    ],
)
def test_bad_input_is_named_in_one_line(how, said):
    with pytest.raises(InvalidValue, match=r"^[^\n]*$") as raised:
        dm.plan(**how)
    assert said in str(raised.value)


def test_a_pilot_too_small_for_alpha_is_refused_with_a_way_out():
    votes, right = pilot_of(60)
    with pytest.raises(
        InvalidValue, match=r"a pilot of 60 labelled votes is too small .* alpha = 0.01: it takes 100; lab"
    ):
        dm.plan(votes, right, alpha=[0.01, 0.1])
    with pytest.raises(InvalidValue, match=r"a pilot of 12 .* it takes 20"):
        dm.plan(votes.take(np.arange(12)), right[:12], alpha=0.5)
    assert dm.plan(votes, right, alpha=0.05).pilot == 60
    with pytest.raises(InvalidValue, match="no labels"):
        dm.plan(votes, alpha=0.05)
    with pytest.raises(InvalidValue, match=r"a guessed accuracy of 0\.8 and a pilot are two ways"):
        dm.plan(votes, right, alpha=0.05, accuracy=0.8)


def test_one_row_of_each_cluster_is_a_vote_of_the_pilot():
    pools = dm.simulate_pools(200, n_paths=4)
    votes = dm.vote(pools.answers)
    voted = dm.VotedPools.of(votes, votes.answer == pools.gold, clusters=[str(row // 2) for row in range(200)],
                             questions=[f"Q{row}?" for row in range(200)])  # fmt: skip
    planned = dm.plan(voted, alpha=0.1)
    assert (planned.pilot, planned.unit) == (100, "cluster")


def test_a_plan_can_be_shown_and_stored():
    planned = dm.plan(*pilot_of(100), alpha=0.1, delta=0.1)
    document = json.loads(json.dumps(planned.document(), allow_nan=False))
    assert len(document["rows"]) == len(planned.rows) == len(planned.columns()["n"])
    assert "may not calibrate as well" in document["notes"][0]
    assert "<table>" in planned._repr_html_()
    assert repr(planned) == f"Plan({len(planned.rows)} rows, 100 questions as a pilot)"
    assert list(planned.to_frame()["n"]) == planned.columns()["n"]


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("mmlupro_answers_all", "answer"),
        ("mmlupro_text_1in8", "answer"),
        ("faithfulcot_gsm8k_pool", "answer"),
        ("zeroeval_gsm8k", "answer_x"),
        ("zeroeval_math_l5", "answer_x"),
    ],
)
@pytest.mark.parametrize("jittered", [True, False])
def test_one_half_of_recorded_pools_foretells_the_other(recorded_pools, name, field, jittered):
    pools = read_pools(recorded_pools / f"{name}.jsonl.gz")
    table = read_table(pools, FieldChoice(field, None, ("None", "No answer!", "___")))
    rows = one_per_unit(table.ids, units(table.ids, table.clusters, table.questions))
    votes = dm.vote(table.answers, ids=table.ids, tie_break=dm.jitter(1) if jittered else None)
    votes, right = votes.take(rows), read_labels(pools, table).of_votes(votes)[rows]
    rng = np.random.default_rng(2)
    first, second = np.array_split(rng.permutation(len(rows)), 2)
    n = 99 if len(second) >= 300 else 49
    for row in dm.plan(votes.take(first), right[first], alpha=[0.05, 0.1], n=n).rows:
        answered, labels = [], []
        for _ in range(300):
            order = rng.permutation(second)
            cal, new = order[:n], order[n:]
            rule = dm.Marginal(row.alpha).settle(dm.Evidence.of(votes.key[cal], right[cal]))
            answered.append(rule.answers(votes.cases.take(new)).mean())
            errors = np.flatnonzero(~right[cal][np.lexsort(votes.key[cal].T[::-1])[::-1]])
            labels.append(errors[row.k - 1] + 1 if len(errors) >= row.k else n)
        # Either half is a sample, with about the standard error that the plan tells of its own.
        error = math.sqrt(2) * row.standard_error + np.std(answered) / math.sqrt(300)
        assert abs(np.mean(answered) - row.expected.answered) < 3 * error + 0.005, (name, row.alpha)
        assert abs(np.mean(labels) - row.expected.labels) < n * (3 * error + 0.02), (name, row.alpha)
