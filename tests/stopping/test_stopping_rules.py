"""Stopping rules: what each says path by path, that arrays say the same, and that neither labels nor arrival matter."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import blocks
from scipy.special import betainc

from demur.errors import InvalidValue
from demur.stopping import Beta, Stopping, agreement, beta, fixed, parse_rule, parse_stopping, stopping_of

ANSWERS = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=20)
RULES = [fixed(), agreement(2, wave=1), agreement(3), agreement(4), beta(0.95), beta(0.8, wave=3), beta("2/3", wave=1)]


def literally(stopping: Stopping, keys: list[str | None]) -> int | None:
    """The definition read aloud, with the beta law from scipy."""
    most = stopping.most or 0
    for drawn in range(1, len(keys) + 1):
        some = keys[:drawn]
        if drawn == most:
            return drawn
        if drawn % stopping.wave:
            continue
        name, _, number = stopping.rule.spec.partition(":")
        if name == "agreement@1":
            last = some[-int(number) :]
            if len(last) == int(number) and None not in last and len(set(last)) == 1:
                return drawn
        if name == "beta@1":
            counts = sorted((some.count(key) for key in {"a", "b", "c"}), reverse=True)
            stays = betainc(counts[1] + 1, counts[0] + 1, 0.5)
            if stays >= float(Fraction(number)) - 1e-12:
                return drawn
    return None


@pytest.mark.parametrize("stopping", RULES, ids=str)
@given(keys=ANSWERS, most=st.integers(1, 20))
def test_a_pool_ends_where_the_definition_ends_it(stopping, keys, most):
    rule = stopping.at_most(most)
    assert rule.size(keys) == literally(rule, keys)


@pytest.mark.parametrize("stopping", RULES, ids=str)
@pytest.mark.parametrize("most", [1, 3, 10, 16])
def test_arrays_end_every_pool_where_the_rule_does_path_by_path(stopping, most):
    rng = np.random.default_rng(most)
    codes = np.where(rng.random((400, 16)) < rng.random((400, 1)), 0, rng.integers(-1, 4, (400, 16)))
    paths = rng.integers(1, 17, 400)
    rule = stopping.at_most(most)
    one_by_one = [
        rule.size([None if code < 0 else code for code in row[:size]]) or 0
        for row, size in zip(codes.tolist(), paths.tolist(), strict=True)
    ]
    assert rule.sizes(codes, paths).tolist() == one_by_one


@pytest.mark.parametrize("level", ["0.6", "0.9", "0.95", "0.99", "2/3"])
def test_the_beta_rule_is_the_beta_law_at_one_half_exactly(level):
    needed = beta(level).rule.needed(30)
    for second in range(31):
        stays = [betainc(second + 1, first + 1, 0.5) for first in range(60)]
        by_law = next(first for first, p in enumerate(stays) if p >= float(Fraction(level)) - 1e-12)
        assert needed[second] == by_law


def test_a_level_that_is_reached_exactly_is_reached():
    """Three of three stay in front with probability 15/16: in floats, that might be less."""
    assert beta("15/16").rule.enough(["a"] * 3)
    assert beta("0.9375").rule.enough(["a"] * 3)
    assert not beta("0.93750001").rule.enough(["a"] * 3)


def test_by_hand():
    four = ["a"] * 4
    assert beta(0.95).at_most(16).size(four) == 4  # 31/32
    assert beta(0.99).at_most(16).size(four) is None
    assert beta(0.95).at_most(16).size(["a", "a", "a", "b", *four]) == 8
    assert agreement(4).at_most(16).size(["b", "b", "b", "a", *four]) == 8
    assert agreement(4).at_most(16).size(["b", *four, "a", "a", "a"]) == 8  # a wave later: the window is the last four
    assert agreement(4).at_most(16).size(["b", *four, "b", "a", "a"]) is None
    assert fixed().at_most(4).size(four) == 4


def test_paths_without_an_answer_are_for_nobody():
    """They are in no agreement and on neither side of the beta law; a pool of nothing else has all its paths."""
    assert agreement(2, wave=1).at_most(8).size([None] * 8) == 8
    assert agreement(2, wave=1).at_most(8).size(["a", None, "a", "a"]) == 4
    assert beta(0.95, wave=4).at_most(8).size([None] * 8) == 8
    assert beta(0.95, wave=5).at_most(8).size(["a", "a", "a", "a", None]) == 5
    assert beta(0.95, wave=4).at_most(8).size(["a", "a", "a", None]) is None


def test_a_tie_never_stops_the_beta_rule():
    assert all(not beta("0.501", wave=1).rule.enough(["a"] * k + ["b"] * k) for k in range(1, 12))


@given(keys=ANSWERS, more=ANSWERS)
def test_what_comes_behind_the_end_changes_nothing_and_replay_is_its_own_end(keys, more):
    for stopping in RULES:
        rule = stopping.at_most(12)
        if (size := rule.size(keys)) is not None:
            assert rule.size([*keys[:size], *more]) == size == rule.size(keys[:size])


@given(st.lists(st.sampled_from(["a", "b", None]), min_size=12, max_size=12), st.randoms())
def test_drawing_wave_by_wave_ends_where_replay_does_whatever_arrives_first(keys, random):
    """Paths that were there already and arrivals in any order lead to the same pool."""
    for stopping in RULES:
        rule, there = stopping.at_most(12), {}
        if random.random() < 0.5:
            there = {place: keys[place] for place in random.sample(range(rule.size(keys)), k=rule.size(keys) // 2)}
        while wanted := rule.wanted(there):
            assert not set(wanted) & set(there)
            random.shuffle(wanted)
            there |= {place: keys[place] for place in wanted}
        assert sorted(there) == list(range(rule.size(keys)))


def test_names_are_read_back_and_other_spellings_of_a_level_are_the_same():
    for stopping in RULES:
        rule = stopping.at_most(16)
        assert Stopping.of(rule.describe()) == rule
        assert parse_rule(rule.rule.spec) == rule.rule
    assert beta(0.95) == beta(".950") == beta("19/20") == parse_stopping("beta:0.95")
    assert beta("19/20").rule.spec == "beta@1:0.95"
    assert stopping_of({}) is None


@pytest.mark.parametrize(
    "text",
    ["beta", "beta:", "beta:x", "beta:0.5", "beta:1", "beta:nan", "beta:9e999999999", "beta:1/0", "beta@2:0.95",
     "agreement", "agreement:1", "agreement:-3", "agreement:2.5", "agreement:٣", "fixed:3", "doubling:2", "",
     "curtail"],
)  # fmt: skip
def test_what_is_no_rule_is_refused_in_one_line(text):
    with pytest.raises(InvalidValue) as refused:
        parse_rule(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("wave", [0, -1, 2.5, True, None])
def test_a_wave_has_paths(wave):
    with pytest.raises(InvalidValue, match="a wave has a whole number of paths"):
        Stopping(beta(0.95).rule, wave)


@pytest.mark.parametrize(
    "document", [[], "beta:0.95", {"rule": "beta:0.95"}, {"rule": 3, "wave": 4, "most": 16},
                 {"rule": "beta:0.95", "wave": 4, "most": None}, {"rule": "beta:0.95", "wave": 4, "most": 0}],
)  # fmt: skip
def test_a_description_that_tells_of_no_rule_is_refused(document):
    with pytest.raises(InvalidValue):
        Stopping.of(document)


def test_which_rules_are_greedy():
    """Those that end pools where the answer in front would often not stay there."""
    assert [stopping.rule.greedy for stopping in (beta(0.95), beta(0.89), agreement(3), agreement(2), fixed())] == [
        False, True, False, True, False,
    ]  # fmt: skip


def test_a_level_in_floats_is_refused_by_the_rule_itself():
    """It is exact, or equality would not count as it is written."""
    with pytest.raises(InvalidValue, match=r"is a Fraction, got 0\.95"):
        Beta(0.95)


def test_what_the_page_shows_in_python_runs():
    page = Path(__file__).resolve().parents[2] / "docs" / "stopping.md"
    names: dict[str, object] = {}
    for block in blocks(page):
        if block.language == "python":
            exec(compile(block.text, str(page), "exec"), names)
    assert set(names["policy"].sizes) == {4, 8, 12, 16}
