"""Alarms read together, sentence by sentence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from demur.errors import InvalidValue
from demur.monitoring import diagnose

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER, LAST = NOON + timedelta(days=1), NOON + timedelta(days=2)
DOUBT = "The promise is in doubt since 2026-03-01 12:00+00:00. "
MODEL = "Model or server changed (canary alarm of {})."
ALONE = "Questions changed (drift alarm of {}): 40 canaries of that time show no change of the model."
UNKNOWN = "Questions changed, or the model did (drift alarm of {}): no canary was asked that would tell."
FEW = "Questions changed, or the model did (drift alarm of {}): 11 canaries of that time are too few to tell."
TOO = "Keys of the traffic drifted too (drift alarm of {}), which the changed model alone can explain."
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
        ({"drift_since": NOON, "canaries": 40}, [(ALONE, NOON)], ["questions"]),
        ({"drift_since": NOON}, [(UNKNOWN, NOON)], ["model or questions"]),
        ({"drift_since": NOON, "canaries": 11}, [(FEW, NOON)], ["model or questions"]),
        ({"errors_since": NOON}, [(ERRORS, NOON)], ["errors"]),
        (
            {"canary_since": NOON, "drift_since": LATER, "canaries": 40},
            [(MODEL, NOON), (TOO, LATER)],
            ["model", "model or questions"],
        ),
        (
            {"canary_since": LATER, "drift_since": NOON, "canaries": 40},
            [(TOO, NOON), (MODEL, LATER)],
            ["model or questions", "model"],
        ),
        (
            {"drift_since": NOON, "errors_since": LATER, "canaries": 40},
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
            {"canary_since": NOON, "drift_since": LATER, "errors_since": LAST, "canaries": 40},
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
    for canaries in (0, 40):
        found = diagnose(canaries=canaries)
        assert (found.doubts, found.since) == ((), None)
        assert found.sentence == "No alarm: nothing speaks against the promise."


@pytest.mark.parametrize("name", ["canary_since", "drift_since", "errors_since"])
@pytest.mark.parametrize("since", ["yesterday", 12.5, datetime(2026, 3, 1)])
def test_a_time_without_its_zone_is_refused(name, since):
    with pytest.raises(InvalidValue, match=f"{name} must be a time with its time zone, got"):
        diagnose(**{name: since})
