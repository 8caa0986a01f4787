"""Answer sets against their definition, against all splits of small bags, and by simulation."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import ceil, inf

import numpy as np
import pytest

import demur as dm
from demur.calibration import Marginal
from demur.calibration.answer_sets import SetEvidence, SetRule, right_places
from demur.errors import InvalidValue
from demur.evidence import Evidence
from demur.evidence.laws import ErrorLaw
from demur.voting.cases import Cases

PATHS = 6


def literal_places(pool, accepted):
    """The places of all answers of a pool and of OTHER, in fractions, and that of what is right."""
    counts = Counter(answer for answer in pool if answer is not None)
    top, answered = max(counts.values(), default=1), sum(counts.values())
    novelty = Fraction(sum(n for n in counts.values() if n == 1) + sum(a is None for a in pool), len(pool))
    places = {answer: Fraction(n * n, top * answered) if n < top else Fraction(1) for answer, n in counts.items()}
    right = [places[answer] for answer in places if answer in accepted]
    return places, novelty - 2, max(right, default=novelty - 2)


def literal_set(calibration, pool, alpha):
    """Nonconformity is minus the place; the cut is the ⌈(n + 1)(1 − α)⌉-th smallest of it, infinite beyond n."""
    scores = sorted(-right for _, _, right in (literal_places(*question) for question in calibration))
    place = ceil((len(scores) + 1) * (1 - alpha))
    cut = scores[place - 1] if place <= len(scores) else inf
    if cut == inf:
        return None
    places, other, _ = literal_places(pool, ())
    held = {answer for answer, at in places.items() if -at <= cut}
    return held | ({dm.OTHER} if -other <= cut else set())


def random_pools(rng, n, answers=4):
    drawn = rng.integers(-1, answers, size=(n, PATHS))
    return [[None if a < 0 else f"a{a}" for a in row] for row in drawn.tolist()]


@pytest.mark.parametrize("seed", range(40))
def test_a_set_is_what_its_definition_says_ties_and_missing_answers_included(seed):
    rng = np.random.default_rng(seed)
    pools, alpha = random_pools(rng, 60), Fraction(int(rng.integers(5, 60)), 100)
    gold = [
        [f"a{g}" for g in rng.choice(5, size=rng.integers(1, 3), replace=False)] for _ in pools
    ]  # a4 is never given
    voted = dm.VotedPools.of(dm.vote(pools), gold=gold)
    rule = dm.calibrate(voted, alpha=0.1).point()
    sets = dm.AnswerSets(alpha).settle(voted, rule, by_chance=False)
    abstained = np.flatnonzero(~rule.answers(voted.votes.cases)).tolist()
    calibration = [(pools[row], gold[row]) for row in abstained]
    for row in abstained:
        found = sets.of(voted.votes[row])
        wanted = literal_set(calibration, pools[row], alpha)
        assert (None if found is None else set(found)) == wanted
        assert found is None or found[-1] is dm.OTHER or dm.OTHER not in found
    literal = [float(literal_places(*question)[2]) for question in calibration]
    assert right_places(voted, np.array(abstained)) == pytest.approx(literal)


def test_a_case_by_hand():
    """Nine questions are just enough for alpha 0.1: the set reaches down to the lowest of them."""
    places = np.array([1.0, 1.0, 1.0, 0.5, 1.0, 0.75, 1.0, 0.1, 1.0])
    sets = SetRule(Fraction(1, 10), {8: SetEvidence.of(places)}, 20)
    assert sets.needed == 9
    assert sets.cut_of(8) == 0.1
    assert sets.law_of(8) == ErrorLaw(1, 9)
    tied = dm.vote([["x"] * 4 + ["y"] * 2 + ["z", None], ["x"] * 5 + ["y", "z", "z"]])
    # y has 2/4 of the winner's votes and 2/7 of all, z 1/4 and 1/7; then z has 2/5 and 2/8, which is the cut.
    assert [sets.of(vote) for vote in tied] == [("x", "y"), ("x", "z")]
    assert sets.of(dm.vote([["x"] * 8])[0]) == ("x",)
    assert sets.of(dm.vote([[None] * 8])[0]) == ()
    assert sets.covers(np.array([0.1, 0.09, -1.5]), np.array([8, 8, 8])).tolist() == [True, False, False]


def test_one_question_fewer_promises_nothing_and_says_how_many_are_needed():
    sets = SetRule(Fraction(1, 10), {8: SetEvidence.of(np.ones(8))}, 20)
    assert sets.cut_of(8) is None
    assert sets.of(dm.vote([["x"] * 8])[0]) is None
    assert sets.promise(8) == (
        "No answer set: of the 20 calibration questions kept for sets the policy abstained from 8, and sets at alpha = "
        "0.1 need 9."
    )
    assert not sets.covers(np.ones(3), np.array([8, 8, 8])).any()


def test_where_too_many_have_no_right_answer_sets_hold_other_wherever_the_vote_is_scattered():
    """Three of nine have no right answer; at alpha 0.2 two may be missed, those whose votes are least scattered."""
    places = np.array([1.0, 1.0, 0.5, 0.5, 1.0, 1.0, 0.25 - 2, 0.5 - 2, 0.75 - 2])
    sets = SetRule(Fraction(1, 5), {8: SetEvidence.of(places)}, 9)
    assert sets.cut_of(8) == 0.5 - 2
    few, half, all_new = dm.vote([list("xxxxxxyz"), list("xxxxyzvw"), list("abcdefgh")])
    assert sets.of(few) == ("x", "y", "z")  # a quarter of the vote is for answers that one path gave
    assert sets.of(half) == ("x", "v", "w", "y", "z", dm.OTHER)
    assert sets.of(all_new)[-1] is dm.OTHER
    assert sets.of(dm.vote([[None] * 8])[0]) == (dm.OTHER,)
    assert "or OTHER where no path gave one, is at least 0.8" in sets.promise(8)
    assert sets.remark(8).startswith("To 3 of those 9 no path gave a right answer, more than alpha allows")
    assert sets.told([sets.of(half)], 1) == (
        "1 of 1 questions abstained from have an answer set; 1 hold all answers of their pool and OTHER, so that they "
        "rule nothing out."
    )


# --- all splits of small bags ------------------------------------------------------------------------------------


class Bag:
    """A few questions: the confidence of their votes, whether those are right, and where what is right stands."""

    def __init__(self, rng, n=7):
        self.keys = rng.integers(1, 8, n) / 8  # with ties
        self.right = rng.random(n) < 0.5
        below = np.where(rng.random(n) < 0.3, rng.integers(0, 4, n) / 4 - 2, rng.integers(0, 5, n) / 5)
        self.places = np.where(self.right, 1.0, below)

    def abstains(self, thresholds, rows):
        evidence = Evidence.of(self.keys[list(thresholds)], self.right[list(thresholds)])
        rule, rows = Marginal(0.3).settle(evidence), list(rows)
        asked = Cases(self.keys[rows][:, None], np.full(len(rows), PATHS))
        return [row for row, answered in zip(rows, rule.answers(asked).tolist(), strict=True) if not answered]

    def misses(self, calibration, new, alpha):
        sets = SetRule(alpha, {PATHS: SetEvidence.of(self.places[list(calibration)])}, len(self.keys))
        if sets.cut_of(PATHS) is None:
            return 0
        return int(not sets.covers(self.places[[new]], np.array([PATHS]))[0])


def missed_share(bag, alpha, thresholds, *, apart=True, only_abstained=True):
    """Misses among the questions abstained from, over every way to draw thresholds, sets and the new question."""
    misses, abstained, rows = 0, 0, set(range(len(bag.keys)))
    for chosen in combinations(sorted(rows), thresholds):
        rest = rows - set(chosen)
        for new in rest:
            if not bag.abstains(chosen, [new]):
                continue
            pool = rest - {new} if apart else set(chosen)
            calibration = bag.abstains(chosen, pool) if only_abstained else pool
            abstained += 1
            misses += bag.misses(calibration, new, alpha)
    return Fraction(misses, abstained) if abstained else Fraction(0)


def test_over_all_splits_of_any_bag_no_more_than_alpha_of_the_sets_miss():
    rng = np.random.default_rng(0)
    for alpha in (Fraction(1, 4), Fraction(1, 3), Fraction(1, 2)):
        shares = [missed_share(Bag(rng), alpha, 3) for _ in range(30)]
        assert max(shares) <= alpha
        assert max(shares) > alpha / 2  # sets that hold everything would miss nothing


@pytest.mark.parametrize(
    "mistake", [{"only_abstained": False}, {"apart": False}], ids=["on all questions", "on those that set thresholds"]
)
def test_sets_calibrated_on_other_questions_than_they_should_be_miss_more_in_some_bags(mistake):
    rng = np.random.default_rng(0)
    bags = [Bag(rng) for _ in range(30)]
    thresholds = 6 if "apart" in mistake else 3
    assert max(missed_share(bag, Fraction(1, 4), thresholds, **mistake) for bag in bags) > Fraction(1, 4)


# --- by simulation -----------------------------------------------------------------------------------------------

REPEATS, LEVEL = 150, 0.2


def simulated(seed, n=500):
    pools = dm.simulate_pools(n, n_paths=24, seed=seed)
    return dm.VotedPools.of(dm.vote(pools.answers, pools.scores), gold=pools.gold)


@pytest.fixture(scope="module")
def coverages():
    """Shares of sets that cover, given that the policy abstains, and sizes: as they should be, and with a mistake."""
    found = {name: [] for name in ("sets", "all questions", "same questions")}
    sizes, every, n = [], [], []
    for seed in range(REPEATS):
        voted, new = simulated(2 * seed), simulated(2 * seed + 1)
        wanted = dm.AnswerSets(LEVEL, share=0.4)
        policy = dm.calibrate(voted, alpha=0.05, answer_sets=wanted, seed=seed)
        rule = policy.point()
        rows = np.flatnonzero(~rule.answers(new.votes.cases))
        places, paths = right_places(new, rows), new.votes.n_paths[rows]
        never = dm.calibrate(voted, alpha=0.0001).point()  # it abstains from all questions
        whole = dm.calibrate(voted, alpha=0.05).point()
        kept = np.flatnonzero(~whole.answers(new.votes.cases))
        found["sets"].append(policy.sets[0].covers(places, paths).mean())
        found["all questions"].append(wanted.settle(voted, never, by_chance=False).covers(places, paths).mean())
        same = wanted.settle(voted, whole, by_chance=False)
        found["same questions"].append(same.covers(right_places(new, kept), new.votes.n_paths[kept]).mean())
        sets = [policy.sets[0].of(new.votes[row]) for row in rows.tolist()[:20]]
        sizes += [len(held) for held in sets]
        every += [len(new.votes[row].tally) for row in rows.tolist()[:20]]
        n.append(policy.sets[0].n)
    return {name: np.array(values) for name, values in found.items()}, np.mean(sizes), np.mean(every), np.mean(n)


@pytest.mark.filterwarnings("ignore::demur.errors.InfeasibleWarning")
def test_given_abstention_sets_cover_as_promised_and_are_far_smaller_than_the_pool(coverages):
    found, size, every, n = coverages
    # One calibration covers with a spread of √(α(1 − α)/n); the mean over repeats is that much closer.
    tolerance = 4 * np.sqrt(LEVEL * (1 - LEVEL) / n / REPEATS)
    assert found["sets"].mean() >= 1 - LEVEL - tolerance
    assert found["sets"].mean() <= 1 - LEVEL / 2  # not by holding everything
    assert size < 0.7 * every


@pytest.mark.filterwarnings("ignore::demur.errors.InfeasibleWarning")
def test_sets_calibrated_on_all_questions_do_not_cover_those_abstained_from(coverages):
    found, *_ = coverages
    assert found["all questions"].mean() < 1 - LEVEL - 0.1


@pytest.mark.filterwarnings("ignore::demur.errors.InfeasibleWarning")
def test_on_the_questions_that_set_the_threshold_the_mistake_is_too_small_to_be_seen_at_this_size(coverages):
    """A marginal threshold adds one wrong vote to the abstained ones; only bags of a few questions show it."""
    found, _, _, n = coverages
    tolerance = 4 * np.sqrt(LEVEL * (1 - LEVEL) / n / REPEATS)
    assert found["same questions"].mean() >= 1 - LEVEL - tolerance


# --- what is asked for -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, "x", float("nan"), None])
def test_a_level_outside_zero_and_one_is_refused(alpha):
    with pytest.raises(InvalidValue, match="the alpha of answer sets must"):
        dm.AnswerSets(alpha)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, "0.3", float("nan"), True])
def test_a_share_outside_zero_and_one_is_refused(share):
    with pytest.raises(InvalidValue, match="the share of questions that calibrate answer sets must lie strictly"):
        dm.AnswerSets(0.1, share)


def test_levels_are_exact():
    assert dm.AnswerSets(0.1).level == Fraction(1, 10)
    assert dm.AnswerSets(Fraction(1, 3)).level == Fraction(1, 3)
    assert SetRule(Fraction(1, 10), {4: SetEvidence.of(np.ones(9))}, 9).law_of(4).k == 1
