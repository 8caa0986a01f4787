"""Alarms read together, sentence by sentence."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from demur.errors import InvalidValue
from demur.monitoring import Moved, diagnose

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER, LAST = NOON + timedelta(days=1), NOON + timedelta(days=2)
DOUBT = "The promise is in doubt since 2026-03-01 12:00+00:00. "
MODEL = "Model or server changed (canary alarm of {})."
SINCE = "of 40 canaries asked since then, the keys of {} are higher and of {} lower"
ALONE = (
    f"Questions changed (drift alarm of {{}}): {SINCE.format(12, 3)}, so that the model did not change in the same way."
)
OPEN = "Questions changed, or the model did (drift alarm of {}): not known yet which"
UNKNOWN = f"{OPEN}, because no canary was asked since then."
FEW = f"{OPEN}; {SINCE.format(9, 5)}, which is too little to tell."
NEVER = f"{OPEN}; {SINCE.format(12, 3)}, and canaries cannot tell when keys of the traffic are drawn together."
TOO = "Keys of the traffic drifted too (drift alarm of {}), which the changed model alone can explain."
QUIET = {"drift_change": "lower", "canaries": Moved(12, 3, 25)}
ERRORS = (
    "Errors above the promise: more audited questions are or were answered wrongly than calibration allows "
    "(alarm of {})."
)


def told(sentence, when):
    return sentence.format(when.isoformat(sep=" ", timespec="minutes"))


@pytest.mark.parametrize(
    ("alarms", "sentences", "what"),
    [
        ({"canary_since": NOON}, [(MODEL, NOON)], ["model"]),
        ({"drift_since": NOON, **QUIET}, [(ALONE, NOON)], ["questions"]),
        ({"drift_since": NOON}, [(UNKNOWN, NOON)], ["model or questions"]),
        ({"drift_since": NOON, "drift_change": "lower"}, [(UNKNOWN, NOON)], ["model or questions"]),
        ({"drift_since": NOON, **QUIET, "canaries": Moved(9, 5, 26)}, [(FEW, NOON)], ["model or questions"]),
        ({"drift_since": NOON, **QUIET, "drift_change": "drawn together"}, [(NEVER, NOON)], ["model or questions"]),
        ({"errors_since": NOON}, [(ERRORS, NOON)], ["errors"]),
        (
            {"canary_since": NOON, "drift_since": LATER, **QUIET},
            [(MODEL, NOON), (TOO, LATER)],
            ["model", "model or questions"],
        ),
        (
            {"canary_since": LATER, "drift_since": NOON, **QUIET},
            [(TOO, NOON), (MODEL, LATER)],
            ["model or questions", "model"],
        ),
        (
            {"drift_since": NOON, "errors_since": LATER, **QUIET},
            [(ALONE, NOON), (ERRORS, LATER)],
            ["questions", "errors"],
        ),
        (
            {"errors_since": NOON, "drift_since": LATER},
            [(ERRORS, NOON), (UNKNOWN, LATER)],
            ["errors", "model or questions"],
        ),
        ({"canary_since": NOON, "errors_since": LATER}, [(MODEL, NOON), (ERRORS, LATER)], ["model", "errors"]),
        (
            {"canary_since": NOON, "drift_since": LATER, "errors_since": LAST, **QUIET},
            [(MODEL, NOON), (TOO, LATER), (ERRORS, LAST)],
            ["model", "model or questions", "errors"],
        ),
    ],
)
def test_what_is_in_doubt_and_since_when(alarms, sentences, what):
    found = diagnose(**alarms)
    assert found.since == NOON
    assert [doubt.what for doubt in found.doubts] == what
    assert [doubt.since for doubt in found.doubts] == [when for _, when in sentences]
    assert found.sentence == DOUBT + " ".join(told(*sentence) for sentence in sentences)


def test_without_an_alarm_nothing_is_in_doubt():
    for canaries in (Moved(), QUIET["canaries"]):
        found = diagnose(canaries=canaries)
        assert (found.doubts, found.since) == ((), None)
        assert found.sentence == "No alarm: nothing speaks against the promise."


def test_when_the_drift_probably_began_is_said():
    found = diagnose(drift_since=LATER, drift_from=NOON, **QUIET)
    assert "(drift alarm of 2026-03-02 12:00+00:00, probably from 2026-03-01 12:00+00:00 on)" in found.sentence
    assert found.since == LATER  # the alarm is what is known


def test_canaries_speak_for_the_model_at_odds_of_twenty():
    """(½ / ⅔)ˣ (½ / ⅓)ʸ in fractions, each way; those that stayed equal say nothing."""
    for higher, lower in itertools.product(range(40), repeat=2):
        odds = Fraction(3, 4) ** higher * Fraction(3, 2) ** lower
        assert Moved(higher, lower, 7).speaks_against("higher") == (odds >= 20)
        assert Moved(lower, higher).speaks_against("lower") == (odds >= 20)
        assert not Moved(higher, lower).speaks_against("spread out")
    assert Moved(100_000, 100_000).speaks_against("lower")


def test_a_model_that_changed_with_the_traffic_is_taken_for_its_questions_as_rarely_as_stated():
    """Of canaries whose keys move, two in three move with the traffic; one looks after each of 400."""
    rng, wrong, runs = np.random.default_rng(0), 0, 2000
    along = np.cumsum(rng.random((runs, 400)) < 2 / 3, axis=1)
    for row in along:
        wrong += any(Moved(int(x), n - int(x)).speaks_against("higher") for n, x in enumerate(row, 1))
    assert 0 < wrong <= stats.binom.isf(1e-6, runs, 1 / 20)


@pytest.mark.parametrize("name", ["canary_since", "drift_since", "errors_since", "drift_from"])
@pytest.mark.parametrize("since", ["yesterday", 12.5, datetime(2026, 3, 1)])
def test_a_time_without_its_zone_is_refused(name, since):
    with pytest.raises(InvalidValue, match=f"{name} must be a time with its time zone, got"):
        diagnose(**{name: since})
