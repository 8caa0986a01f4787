"""`demur serve` and its alarms: what is wrong with the flags is said before anything listens."""

from __future__ import annotations

import pytest

from demur.cli.serve import _runs
from demur.errors import InvalidValue
from demur.server.settings import ServiceSettings


def test_with_one_policy_its_name_may_be_left_out():
    assert _runs(["run.db"], {"sums": None}, no_log=False) == {"sums": "run.db"}
    assert _runs(["sums=run.db"], {"sums": None}, no_log=False) == {"sums": "run.db"}
    assert _runs(["a=x.db", "b=y.db"], {"a": None, "b": None}, no_log=False) == {"a": "x.db", "b": "y.db"}


@pytest.mark.parametrize(
    ("given", "files", "no_log", "told"),
    [
        (["run.db"], {"sums": None}, True, "--canaries needs a store"),
        (["run.db"], {"a": None, "b": None}, False, "--canaries takes NAME=VALUE"),
        (["c=run.db"], {"a": None, "b": None}, False, "--canaries names 'c', and the policies are a, b"),
    ],
)
def test_what_cannot_be_asked_again_is_refused(given, files, no_log, told):
    with pytest.raises(InvalidValue, match=told):
        _runs(given, files, no_log=no_log)


@pytest.mark.parametrize(
    "wrong", [{"on_alarm": "panic"}, {"canaries_per_day": 0}, {"label_days": -1}, {"label_days": float("nan")}]
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(InvalidValue, match=str(next(iter(wrong.values())))):
        ServiceSettings(**wrong)
