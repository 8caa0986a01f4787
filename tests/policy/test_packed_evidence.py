"""Claim: packed columns hold the same evidence as rows, bit for bit, and damaged ones are refused in one line."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

import demur as dm
from demur.descriptions import digest
from demur.errors import PolicyFileError
from demur.evidence.counts import Evidence
from demur.policy.evidence_document import evidence_of, rows_of

MOST_ROWS = "demur.policy.evidence_document.MOST_ROWS"


def voted(seed=0, n=300, **how):
    rng = np.random.default_rng(seed)
    pools = rng.choice(["1", "2", "3"], size=(n, 5), p=[0.6, 0.3, 0.1]).tolist()
    scores, ids = rng.standard_normal((n, 5)), [f"{seed}/{row}" for row in range(n)]
    votes = dm.vote(pools, scores, tie_break=dm.jitter(0), ids=ids, **how)
    return votes, np.array([answer == "1" for answer in votes.answer])


@pytest.fixture
def policy():
    return dm.calibrate(*voted(), alpha=0.1)


@pytest.fixture
def packed(policy, tmp_path, monkeypatch):
    """The file of a policy whose evidence is packed."""
    monkeypatch.setattr(MOST_ROWS, 20)
    policy.save(tmp_path / "policy.json")
    return tmp_path / "policy.json"


def columns_of(document):
    return document["evidence"]["5"]["columns"]


def reseal(path, change):
    document = json.loads(path.read_text())
    change(document)
    document.pop("digest")
    path.write_text(json.dumps(document | {"digest": digest(document)}))


def test_a_packed_policy_decides_as_it_did_to_the_last_bit(policy, packed):
    loaded, (votes, _) = dm.Policy.load(packed), voted(1)
    for name in ("levels", "right", "wrong"):
        before, after = getattr(policy.evidence, name), getattr(loaded.evidence, name)
        assert (before.dtype, before.tobytes()) == (after.dtype, after.tobytes())
    assert loaded.points[0].threshold_key == policy.points[0].threshold_key
    before, after = policy.decide_votes(votes), loaded.decide_votes(votes)
    assert before.p_value.tobytes() == after.p_value.tobytes()
    assert list(before) == list(after)
    assert loaded.document() == policy.document()


def test_counts_take_as_few_bytes_as_the_largest_needs(monkeypatch):
    monkeypatch.setattr(MOST_ROWS, 1)
    for highest, size in ((255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32 - 1, 4), (2**32, 8), (2**62, 8)):
        evidence = Evidence(np.array([[0.2], [0.7]]), np.array([1, highest]), np.array([0, 1]), np.array([0, highest]))
        stored = json.loads(json.dumps(rows_of(evidence)))
        assert [len(base64.b64decode(column)) for column in stored["columns"]] == [16, 2 * size, 2, 2 * size]
        read = evidence_of(stored, width=1)
        assert [read.right.tolist(), read.unlabelled.tolist()] == [[1, highest], [0, highest]]
        assert read.right.dtype == np.int64


def test_only_packed_policies_have_the_newest_schema(policy, packed, tmp_path, monkeypatch):
    assert (json.loads(packed.read_text())["schema"], policy.document()["schema"]) == (4, 4)
    monkeypatch.undo()
    policy.save(tmp_path / "small.json")
    small = json.loads((tmp_path / "small.json").read_text())
    assert (small["schema"], policy.document()["schema"]) == (3, 3)
    assert isinstance(small["evidence"]["5"], list)
    assert dm.Policy.load(tmp_path / "small.json").document() == policy.document()
    monkeypatch.setattr("demur.policy.file.SCHEMAS", {"demur-policy": 3})  # an older demur
    assert dm.Policy.load(tmp_path / "small.json")
    with pytest.raises(PolicyFileError, match=r"^\S+ has schema 4, and this demur reads up to 3; upgrade demur"):
        dm.Policy.load(packed)


def test_columns_of_before_with_eight_bytes_for_each_count_are_read(policy, packed):
    def as_before(document):
        columns, document["schema"] = columns_of(document), 3
        for at in (1, 2):
            narrow = np.frombuffer(base64.b64decode(columns[at]), dtype="u1")
            columns[at] = base64.b64encode(narrow.astype("<i8").tobytes()).decode()

    reseal(packed, as_before)
    assert dm.Policy.load(packed).document() == policy.document()


def test_weights_are_packed_with_the_rows_that_they_belong_to(tmp_path, monkeypatch):
    weights = np.random.default_rng(3).random(300)
    votes, right = voted(importance=weights)
    made = dm.calibrate(votes, right, guarantee=dm.Marginal(0.1))
    monkeypatch.setattr(MOST_ROWS, 20)
    made.save(tmp_path / "policy.json")
    document = json.loads((tmp_path / "policy.json").read_text())
    assert set(document["evidence"][0]["weights"]) == {"columns"}
    loaded = dm.Policy.load(tmp_path / "policy.json")
    for name in ("right_weight", "not_right_weight", "squared_weight"):
        assert getattr(loaded.evidence, name).tobytes() == getattr(made.evidence, name).tobytes()
    for column, complaint in (
        (base64.b64encode(b"12345678").decode(), "a number for each of"),
        (floats([np.nan] * 300), "none of them negative"),
        (floats([-1.0] * 300), "none of them negative"),
        ("=", "columns of weights are damaged"),
    ):
        reseal(
            tmp_path / "policy.json",
            lambda d, column=column: d["evidence"][0]["weights"]["columns"].__setitem__(0, column),
        )
        with pytest.raises(PolicyFileError, match=complaint):
            dm.Policy.load(tmp_path / "policy.json")


def floats(values):
    return base64.b64encode(np.array(values, dtype="<f8").tobytes()).decode()


def with_levels(change):
    """What changes the keys of packed evidence."""

    def edit(columns):
        levels = np.frombuffer(base64.b64decode(columns[0]), dtype="<f8").reshape(-1, 2).copy()
        columns[0] = floats(change(levels))

    return edit


def nan(place):
    def edit(levels):
        levels[place] = np.nan
        return levels

    return edit


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda c: c.pop(), "must be rows, or 3 or 4 packed columns"),
        (lambda c: c.extend(["", ""]), "must be rows, or 3 or 4 packed columns"),
        (lambda c: c.__setitem__(1, 7), "must be rows, or 3 or 4 packed columns"),
        (lambda c: c.__setitem__(0, c[0][:-1]), "columns of its evidence are damaged"),
        (lambda c: c.__setitem__(0, "é" + c[0]), "columns of its evidence are damaged"),
        (lambda c: c.__setitem__(0, c[0][:8] + "\n" + c[0][8:]), "columns of its evidence are damaged"),
        (lambda c: c.__setitem__(0, base64.b64encode(bytes(24)).decode()), "columns of its evidence are damaged"),
        (lambda c: c.__setitem__(0, ""), "must be of one length"),
        (lambda c: c.__setitem__(1, ""), "must be of one length"),
        (lambda c: c.__setitem__(1, c[1] + c[1] + c[1]), "must be of one length|are damaged"),
        (lambda c: c.__setitem__(1, c[2]), "counts [0-9]+ votes, and it says n|not all 0"),
        (with_levels(lambda levels: levels[::-1]), "each level once and in order"),
        (with_levels(lambda levels: levels * 2), r"must lie in \[0, 1\]"),
        (with_levels(nan((0, 0))), r"must lie in \[0, 1\]"),
        (with_levels(nan((0, 1))), "tie-breaks of its evidence must be numbers"),
    ],
)
def test_damaged_columns_are_refused_even_with_a_fresh_digest(packed, change, complaint):
    reseal(packed, lambda document: change(columns_of(document)))
    with pytest.raises(PolicyFileError, match=complaint) as caught:
        dm.Policy.load(packed)
    assert "\n" not in str(caught.value)
