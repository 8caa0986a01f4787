"""Progress, as it is told where there is no terminal."""

from __future__ import annotations

from demur.cli import progress as shown
from demur.cli.progress import Meter, duration
from demur.engine.sample import SamplingProgress as Progress


def test_plain_lines_tell_rate_failures_retries_and_time_left(monkeypatch, capsys):
    monkeypatch.setattr(shown, "_SECONDS_BETWEEN_LINES", 0.0)
    state = Progress(
        wanted=100, problems=10, saved=50, tokens=500, failed={"q": "no"}, retries=3, trouble="busy \x1b[31m"
    )
    Meter()(state)
    line = capsys.readouterr().err
    assert line.startswith("50 of 100 paths; ")
    for part in ("paths/s", "tokens/s", "1 problems failed", "3 requests tried again (last: busy", "left"):
        assert part in line
    assert "\x1b" not in line
    Meter(quiet=True)(state)
    assert capsys.readouterr().err == ""


def test_lines_are_not_told_too_often(capsys):
    meter = Meter()
    for _ in range(100):
        meter(Progress(wanted=10, problems=1))
    assert capsys.readouterr().err == ""


def test_durations_read_as_people_say_them():
    assert [duration(s) for s in (5, 600, 7200)] == ["5 s", "10 min", "2.0 h"]
