"""Files of monitors: they belong to one policy, are data only, and what is wrong with one is said in a line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sqlalchemy import create_engine, text

import demur as dm
from demur.descriptions import digest
from demur.errors import DemurError, MonitorFileError
from demur.files import atomic
from demur.monitoring import CanaryMonitor, DriftMonitor, ErrorMonitor, OnlineThreshold
from monitored import drawn, keys, policy_of, same

POLICY = policy_of(*drawn(0))
KINDS = (DriftMonitor, CanaryMonitor, ErrorMonitor, OnlineThreshold)


def begun(kind):
    monitor = kind(POLICY)
    if kind is DriftMonitor:
        return monitor.update(keys(np.random.default_rng(0).random(20)))
    if kind is ErrorMonitor:
        return monitor.update(np.arange(20) % 9 == 0)
    if kind is CanaryMonitor:
        for number in range(20):
            monitor.update((1.0, 0.5), (1.0, number / 20), id=f"q{number}", old_answers=["a"], new_answers=["a"])
        return monitor
    for second in np.linspace(0, 1, 20):
        monitor.decide((1.0, second))
    return monitor


@pytest.fixture(params=KINDS)
def saved(request, tmp_path):
    path = tmp_path / "monitor.json"
    begun(request.param).save(path)
    return request.param, path


def reseal(path, change):
    """Change a file the way someone who knows about the digest would."""
    document = json.loads(path.read_text())
    change(document)
    document.pop("digest")
    document["digest"] = digest(document)
    path.write_text(json.dumps(document))


def refused(kind, path, policy=POLICY):
    with pytest.raises(MonitorFileError) as caught:
        kind.load(path, policy)
    told = str(caught.value)
    assert "\n" not in told
    assert str(path) in told
    return told


def test_a_monitor_goes_on_with_its_policy_also_when_that_was_saved(saved, tmp_path):
    kind, path = saved
    POLICY.save(tmp_path / "policy.json")
    assert same(kind.load(path, dm.Policy.load(tmp_path / "policy.json")), begun(kind))


def test_a_monitor_of_another_pipeline_is_refused(saved):
    kind, path = saved
    votes = dm.vote([["a", "a"]] * 100, ids=range(100))
    other = dm.calibrate(votes, np.arange(100) % 30 > 0, alpha=0.1)
    told = refused(kind, path, other)
    assert f"its fingerprint is {POLICY.fingerprint[:20]}…, this policy's {other.fingerprint[:20]}…" in told
    assert told.endswith("load it with its own policy, or begin a monitor anew")


def with_another_low_key():
    """A policy of the same thresholds, whose evidence differs in one key far below them."""
    second, right = drawn(0)
    second[second.argmin()] /= 2
    return policy_of(second, right)


OTHERS = [policy_of(*drawn(1)), policy_of(*drawn(0), alpha=[0.1, 0.2]), with_another_low_key()]


@pytest.mark.parametrize("other", OTHERS)
def test_a_monitor_of_another_policy_of_the_same_pipeline_is_refused_too(saved, other):
    assert other.fingerprint == POLICY.fingerprint
    assert "watches another policy of the same pipeline" in refused(*saved, other)


def test_a_file_that_was_cut_anywhere_is_refused(saved):
    kind, path = saved
    whole = path.read_bytes()
    for length in (0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:length])
        assert "is cut off or damaged: line 1" in refused(kind, path)


def test_a_file_that_was_edited_is_refused(saved):
    kind, path = saved
    path.write_text(path.read_text().replace('"alarm_at": null', '"alarm_at": 1').replace('"n": 20', '"n": 21'))
    assert "was changed after it was written" in refused(kind, path)


def test_a_file_of_something_else_is_refused(saved, tmp_path):
    kind, path = saved
    POLICY.save(tmp_path / "policy.json")
    assert "is not a file of a monitor" in refused(kind, tmp_path / "policy.json")
    assert "there is no file" in refused(kind, tmp_path / "nowhere.json")
    (tmp_path / "list.json").write_text("[]")
    assert "is not a file of a monitor" in refused(kind, tmp_path / "list.json")
    for other in KINDS:
        if other is not kind:
            assert "load it as the class that saved it" in refused(other, path)


@pytest.mark.parametrize(
    ("schema", "said"),
    [(2, "has schema 2, and this demur reads up to 1; upgrade demur"), (0, "has schema 0"), ("1", "has schema '1'")],
)
def test_a_schema_that_is_not_known_is_refused(saved, schema, said):
    kind, path = saved
    reseal(path, lambda document: document.update(schema=schema))
    assert said in refused(kind, path)


def test_a_threshold_of_nan_is_refused(tmp_path):
    path = tmp_path / "monitor.json"
    begun(OnlineThreshold).save(path)
    path.write_text(path.read_text().replace('"threshold": ', '"threshold": NaN, "was": '))
    assert "NaN is not JSON" in refused(OnlineThreshold, path)
    begun(OnlineThreshold).save(path)
    path.write_text(path.read_text().replace('"threshold": ', '"threshold": 1e999, "was": '))
    assert "was changed after it was written" in refused(OnlineThreshold, path)


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (OnlineThreshold, {"threshold": None}, "threshold must be a finite number, got None"),
        (OnlineThreshold, {"threshold": "NaN"}, "threshold must be a finite number, got 'NaN'"),
        (OnlineThreshold, {"threshold": True}, "threshold must be a finite number, got True"),
        (OnlineThreshold, {"n": -1}, "n must be a count"),
        (OnlineThreshold, {"errors": 3}, "its counts do not fit each other"),
        (OnlineThreshold, {"awaited": [5, 3]}, "its counts do not fit each other"),
        (OnlineThreshold, {"awaited": "all"}, "awaited must be a list of question numbers"),
        (OnlineThreshold, {"step": 2}, "step must be a number strictly between 0 and 1"),
        (OnlineThreshold, {"alpha": 0.3}, "was not calibrated for alpha = 0.3"),
        (OnlineThreshold, {"alpha": [0.1]}, "alpha must be a number"),
        (OnlineThreshold, {"guarantee": "none"}, "was not calibrated for"),
        (OnlineThreshold, {"seed": "x"}, "a seed must be a whole number"),
        (ErrorMonitor, {"errors": 21}, "errors must be among the audited questions, got 21 of 20"),
        (ErrorMonitor, {"errors": 2.0}, "errors must be a count"),
        (ErrorMonitor, {"stakes": None}, "its stakes must be an object"),
        (ErrorMonitor, {"delta": 0}, "delta must be a number strictly between 0 and 1"),
        (ErrorMonitor, {"more": 0}, "its state must hold alpha, delta, errors, guarantee, stakes, got"),
        (CanaryMonitor, {"higher": 21}, "its counts do not fit each other"),
        (CanaryMonitor, {"higher": -1}, "higher must be a count"),
        (CanaryMonitor, {"lower": "1"}, "lower must be a count"),
        (CanaryMonitor, {"asked": ["b", "a"]}, "its counts do not fit each other"),
        (CanaryMonitor, {"asked": ["a", "a"]}, "was asked again before"),
        (CanaryMonitor, {"asked": [f"q{number:02}" for number in range(21)]}, "its counts do not fit each other"),
        (CanaryMonitor, {"asked": [1]}, "an id must be a text, got 1"),
        (CanaryMonitor, {"asked": "q1"}, "its stakes must be an object, and the questions asked a list"),
        (CanaryMonitor, {"stakes": []}, "its stakes must be an object, and the questions asked a list"),
        (DriftMonitor, {"cells": []}, "its stakes and its cells must be objects"),
        (DriftMonitor, {"cells": {}}, "its cells must be those of pools of 0 paths, got []"),
        (DriftMonitor, {"cells": {"4": [0] * 201}}, "its cells must be those of pools of 0 paths, got ['4']"),
        (DriftMonitor, {"cells": {"0": [0] * 201}}, "it has seen 20 keys, and its cells hold 0"),
        (DriftMonitor, {"cells": {"0": [1] * 201}}, "it has seen 20 keys, and its cells hold 201"),
        (DriftMonitor, {"cells": {"0": [20]}}, "its counts must be 201 numbers, one per cell, got [20]"),
        (DriftMonitor, {"cells": {"0": 20}}, "its counts must be 201 numbers, one per cell, got 20"),
        (DriftMonitor, {"cells": {"0": [None] * 201}}, "a cell's count must be a count"),
        (DriftMonitor, {"cells": {"0": [21, -1] + [0] * 199}}, "a cell's count must be a count"),
        (DriftMonitor, {"seed": 1.5}, "a seed must be a whole number"),
    ],
)
def test_a_state_that_cannot_be_is_refused_though_sealed(kind, change, said, tmp_path):
    path = tmp_path / "monitor.json"
    begun(kind).save(path)
    reseal(path, lambda document: document["state"].update(change))
    assert said in refused(kind, path)


def test_a_state_that_is_none_is_refused(saved):
    kind, path = saved
    reseal(path, lambda document: document.update(state=[]))
    assert "`state` must be an object, got []" in refused(kind, path)


def test_a_document_goes_through_a_database_and_comes_back_to_the_last_bit(saved, postgres_url):
    """Replicas keep it in one row; a database may order its names anew."""
    kind, _ = saved
    engine = create_engine(postgres_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        for column in ("json", "jsonb"):
            sent = {"row": json.dumps(begun(kind).document())}
            row = connection.execute(text(f"SELECT CAST(:row AS {column})"), sent).scalar_one()
            assert same(kind.of_document(row, POLICY), begun(kind))
    engine.dispose()


def test_a_document_that_is_wrong_is_refused_by_the_name_of_its_place(saved):
    kind, _ = saved
    document = begun(kind).document() | {"fingerprint": "sha256:0"}
    with pytest.raises(MonitorFileError, match="row 7 watches a policy of another pipeline"):
        kind.of_document(document, POLICY, "row 7")


def test_an_interrupted_write_leaves_the_old_file(saved, monkeypatch):
    kind, path = saved
    before = path.read_bytes()

    def interrupted(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "replace", interrupted)
    with pytest.raises(MonitorFileError, match=r"cannot write .*: No space left on device"):
        begun(kind).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_keys_without_a_secondary_number_come_back(tmp_path):
    monitor = DriftMonitor(POLICY).update([[0.0, -np.inf], [1.0, 0.5]])
    monitor.save(tmp_path / "monitor.json")
    assert same(DriftMonitor.load(tmp_path / "monitor.json", POLICY), monitor)


def test_a_day_without_anything_changes_nothing():
    assert same(DriftMonitor(POLICY).update([]), DriftMonitor(POLICY))
    assert same(ErrorMonitor(POLICY).update([]), ErrorMonitor(POLICY))


def test_it_is_one_of_the_family_and_reached_from_the_root():
    assert issubclass(MonitorFileError, DemurError)
    assert dm.monitoring.DriftMonitor is DriftMonitor
