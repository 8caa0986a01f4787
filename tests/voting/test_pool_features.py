"""Features of pools, against their definitions read literally, pool by pool."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue
from demur.voting.features import agreement, columns_of, feature_names, features_of, is_feature

RNG = np.random.default_rng(5)
SIZES = RNG.integers(1, 9, 120)
POOLS = [[None if RNG.random() < 0.2 else str(RNG.integers(4)) for _ in range(size)] for size in SIZES]
SCORES = [RNG.normal(size=size).round(3).tolist() for size in SIZES]
COLUMNS = {
    "length": [RNG.integers(0, 400, size).astype(float).tolist() for size in SIZES],
    "judge": [RNG.random(size).round(3).tolist() for size in SIZES],
}
ORIGINS = [RNG.choice(["a", "b", "c"], size).tolist() for size in SIZES]
NAMES = feature_names(COLUMNS, scores=True)


def counted(rows=slice(None), order=None):
    def some(table):
        chosen = list(table)[rows]
        return chosen if order is None else [[pool[at] for at in order(len(pool))] for pool in chosen]

    columns = {name: some(column) for name, column in COLUMNS.items()}
    votes = dm.vote(some(POOLS), some(SCORES), columns=columns, origins=some(ORIGINS))
    return votes, votes.counted(tuple(COLUMNS), "origin")


def literal(name, row, winner, confidence):
    """The definition of a feature."""
    answers, width = POOLS[row], len(POOLS[row])
    if winner is None:
        return 0.0
    times = Counter(answer for answer in answers if answer is not None)
    won = [answer == winner for answer in answers]
    kind, _, column = name.partition(":")
    values = SCORES[row] if not column else COLUMNS[column][row]
    if kind.startswith("length"):
        values = [math.log1p(value) for value in COLUMNS["length"][row]]

    def mean(side):
        chosen = [value for value, gave in zip(values, won, strict=True) if gave is side]
        return sum(chosen) / len(chosen)

    if kind == "share" and column:
        centre = sum(values) / width
        spread = math.sqrt(sum((value - centre) ** 2 for value in values) / width)
        weights = [math.exp((value - centre) / spread) if spread > 1e-12 else 1.0 for value in values]
        return sum(weight for weight, gave in zip(weights, won, strict=True) if gave) / sum(weights)
    shares = [many / sum(times.values()) for many in times.values()]
    return {
        "confidence": lambda: confidence,
        "share": lambda: times[winner] / width,
        "margin": lambda: (times[winner] - max([many for key, many in times.items() if key != winner] or [0])) / width,
        "entropy": lambda: -sum(share * math.log(share) for share in shares),
        "distinct": lambda: math.log1p(len(times)),
        "missing": lambda: answers.count(None) / width,
        "unanimous": lambda: float(all(won)),
        "mean_score": lambda: mean(True),
        "best_score": lambda: max(value for value, gave in zip(values, won, strict=True) if gave),
        "score_lead": lambda: 0.0 if all(won) else mean(True) - mean(False),
        "length": lambda: mean(True),
        "length_lead": lambda: 0.0 if all(won) else mean(True) - mean(False),
    }[kind]()


@pytest.mark.parametrize("name", NAMES)
def test_each_feature_is_what_its_definition_says(name):
    votes, known = counted()
    expected = [literal(name, row, votes.answer[row], votes.confidence[row]) for row in range(len(POOLS))]
    assert features_of(known, [name])[:, 0] == pytest.approx(expected, abs=1e-9)


def test_features_do_not_depend_on_the_order_of_paths_nor_on_the_other_pools():
    _, known = counted()
    together = features_of(known, NAMES)
    _, turned = counted(order=lambda size: range(size - 1, -1, -1))
    assert np.array_equal(features_of(turned, NAMES), together)
    assert np.array_equal(agreement(turned, ["c", "a", "b"]), agreement(known, ["c", "a", "b"]))
    for row in (0, 17, 63):
        _, alone = counted(slice(row, row + 1))
        assert np.array_equal(features_of(alone, NAMES)[0], together[row])


def test_a_source_agrees_with_the_winner_as_far_as_its_paths_do():
    pools, origins = [["x", "x", "y", None], ["y", "y", "y", "x"]], [["a", "a", "b", "b"], ["a", "a", "c", "a"]]
    known = dm.vote(pools, origins=origins).counted((), "origin")
    assert agreement(known, ["a", "b", "unheard of"]).tolist() == [[1.0, -1.0, 0.0], [pytest.approx(1 / 3), 0.0, 0.0]]


def test_a_pool_from_nowhere_that_is_known_is_refused_by_its_number():
    known = dm.vote([["x", "x"], ["y", "y"]], origins=[["a", "b"], ["c", None]]).counted((), "origin")
    with pytest.raises(InvalidValue, match=r"pool 1 has no path from any of the 2 sources that the learned key knows"):
        agreement(known, ["a", "b"])
    with pytest.raises(InvalidValue, match="looks at where paths come from"):
        agreement(dm.vote([["x"]]).counted(), ["a"])


def test_a_path_without_a_value_is_named():
    known = dm.vote([["x", "x"], ["y", "y"]], columns={"length": [[3, 4], [5, None]]}).counted(("length",))
    with pytest.raises(InvalidValue, match="looks at the length of every path, and path 1 of pool 1 has none"):
        features_of(known, ["length"])
    with pytest.raises(InvalidValue, match="looks at mean_score, and the vote has no scores"):
        features_of(known, ["mean_score"])
    with pytest.raises(InvalidValue, match="looks at the judge of paths, and these pools have none"):
        features_of(known, ["best_score:judge"])


def test_features_are_known_by_name():
    assert all(map(is_feature, NAMES))
    assert not any(map(is_feature, ["", "colour", "margin:judge", "share:", "length:judge", "mean_score:length"]))
    assert set(columns_of(NAMES)) == set(COLUMNS)
    assert columns_of(["confidence", "best_score"]) == ()
