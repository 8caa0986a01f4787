"""Density ratios: a known shift is found, no shift is seen where there is none, and files are checked."""

from __future__ import annotations

import json

import numpy as np
import pytest

import demur as dm
from demur.descriptions import digest
from demur.errors import InvalidValue, ShiftFileError
from demur.questions.fitting import area

SUMS = ["apples", "coins", "pencils", "marbles", "stamps"]
PLACES = ["France", "Peru", "Kenya", "Norway", "Japan"]


def ask(rng, share, n):
    """Questions of which this share is about capitals, and the rest sums; and which are which."""
    about_places = rng.random(n) < share
    texts = [
        f"What is the capital of {rng.choice(PLACES)}, and which river number {rng.integers(10**6)} flows there?"
        if place
        else f"Ann has {rng.integers(10**6)} {rng.choice(SUMS)} and buys {rng.integers(99)} more. How many has she?"
        for place in about_places
    ]
    return texts, about_places


@pytest.fixture(scope="module")
def ratio():
    rng = np.random.default_rng(1)
    return dm.fit_shift(ask(rng, 0.7, 600)[0], ask(rng, 0.2, 600)[0])


def test_a_known_shift_is_found_to_within_a_quarter(ratio):
    texts, about_places = ask(np.random.default_rng(2), 0.5, 400)
    weights = ratio.weights(texts)
    assert weights[about_places].mean() == pytest.approx(0.7 / 0.2, rel=0.25)
    assert weights[~about_places].mean() == pytest.approx(0.3 / 0.8, rel=0.25)
    assert ratio.shift_seen
    assert ratio.auroc == pytest.approx(0.5 + 0.5 * 0.5, abs=0.05)  # half the difference of the shares
    assert "no shift" not in " ".join(ratio.told())
    assert ratio.weight(texts[0]) == weights[0]


def test_where_there_is_no_shift_none_is_seen_and_weights_are_near_1():
    rng = np.random.default_rng(3)
    ratio = dm.fit_shift(ask(rng, 0.4, 300)[0], ask(rng, 0.4, 300)[0])
    assert not ratio.shift_seen
    assert "no shift to see" in ratio.told()[-1]
    assert ratio.weights(ask(rng, 0.5, 100)[0]) == pytest.approx(1, abs=0.35)
    assert ratio.effective_share > 0.9


def test_the_order_of_questions_and_doubles_change_nothing():
    rng = np.random.default_rng(4)
    traffic, reference = ask(rng, 0.7, 60)[0], ask(rng, 0.2, 60)[0]
    first = dm.fit_shift(traffic, reference)
    again = dm.fit_shift([*traffic[::-1], *traffic[:9]], [f"  {text} " for text in reference[::-1]])
    assert first.coefficients == pytest.approx(again.coefficients, abs=1e-4)
    assert first.fitted_on == again.fitted_on


def test_weights_are_cut_and_it_is_said_how_many():
    rng = np.random.default_rng(5)
    traffic, reference = ask(rng, 0.98, 200)[0], ask(rng, 0.02, 200)[0]
    ratio = dm.fit_shift(traffic, reference, clip=2)
    assert ratio.weights(traffic).max() == 2
    assert ratio.clipped_traffic > 0.8
    assert "above 2 are cut" in ratio.told()[1]


@pytest.mark.parametrize(
    ("traffic", "reference", "told"),
    [
        (["one"] * 50, ["two"] * 50, "holds 1 different questions, and 20 are needed"),
        ("one text", ["two"], "many questions, got the one text"),
        ([None], ["two"], "question 0 of the traffic has no text"),
        ([f"a {n}" for n in range(30)], [f"a {n}" for n in range(29, 60)], "1 questions are in the traffic and in"),
    ],
)
def test_questions_that_nothing_can_be_fitted_on_are_refused(traffic, reference, told):
    with pytest.raises(InvalidValue, match=told):
        dm.fit_shift(traffic, reference)


@pytest.mark.parametrize("clip", [0.5, np.nan, "10", True, 1e9])
def test_a_clip_that_is_none_is_refused(clip):
    with pytest.raises(InvalidValue, match="clip must be a number from 1 to 1e6"):
        dm.fit_shift(["a"], ["b"], clip=clip)


def test_the_area_and_its_error_are_those_of_pairs_counted_one_by_one():
    rng = np.random.default_rng(6)
    low, high = rng.integers(0, 5, 30).astype(float), rng.integers(1, 7, 40).astype(float)
    pairs = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    auroc, error = area(low, high)
    assert auroc == pytest.approx(pairs.mean())
    assert error == pytest.approx(
        np.sqrt(pairs.mean(axis=1).var(ddof=1) / 40 + pairs.mean(axis=0).var(ddof=1) / 30), rel=1e-9
    )


# --- files -------------------------------------------------------------------------------------------------------


def test_a_file_gives_the_same_weights_back(ratio, tmp_path):
    dm.write_shift(ratio, tmp_path / "shift.json")
    read = dm.read_shift(tmp_path / "shift.json")
    texts, _ = ask(np.random.default_rng(7), 0.5, 50)
    assert (read.weights(texts) == ratio.weights(texts)).all()
    assert read.fingerprint == ratio.fingerprint


def test_files_that_are_foreign_newer_damaged_or_edited_are_refused(ratio, tmp_path):
    place = tmp_path / "shift.json"
    dm.write_shift(ratio, place)
    document = json.loads(place.read_text())

    def written(**changes):
        changed = {**document, **changes}
        changed.pop("digest")
        place.write_text(json.dumps({**changed, "digest": digest(changed)}))
        return place

    for text, told in (("[", "is not JSON"), ("{}", "is not a fitted shift")):
        place.write_text(text)
        with pytest.raises(ShiftFileError, match=told):
            dm.read_shift(place)
    place.write_text(json.dumps({**document, "ratio": {**document["ratio"], "clip": 5}}))
    with pytest.raises(ShiftFileError, match="was changed after it was written"):
        dm.read_shift(place)
    with pytest.raises(ShiftFileError, match="schema 2"):
        dm.read_shift(written(schema=2))
    for name, value, told in (
        ("clip", "ten", "clip of a density ratio must be a number"),
        ("clip", 0, "clip must be a number from 1"),
        ("coefficients", [1.0], "coefficients"),
        ("coefficients", [True] * 512, "coefficients"),
        ("features", 2, "version 2"),
        ("fitted_on", [1], "digests"),
        ("traffic", -3, "number of questions"),
        ("auroc", 3, "auroc must lie in"),
    ):
        with pytest.raises(ShiftFileError, match=told):
            dm.read_shift(written(ratio={**document["ratio"], name: value}))
