"""Signed policies: only who holds the key can make or change one."""

from __future__ import annotations

import hmac
import json
import secrets

import pytest

import demur as dm
from demur.descriptions import digest
from demur.errors import InvalidValue, PolicyFileError
from demur.policy import file as policy_file

KEY = secrets.token_bytes(32)


@pytest.fixture
def policy():
    drawn = dm.simulate_pools(200, n_paths=4, seed=1)
    votes = dm.vote(drawn.answers, drawn.scores, ids=range(200))
    return dm.calibrate(votes, votes.answer == drawn.gold, alpha=0.1)


@pytest.fixture
def path(policy, tmp_path):
    policy.save(tmp_path / "policy.json", key=KEY)
    return tmp_path / "policy.json"


def rewrite(path, change, *, reseal=True):
    document = json.loads(path.read_text())
    signature = document.pop("signature", None)
    change(document)
    if reseal:
        document.pop("digest", None)
        document["digest"] = digest(document)
    if signature is not None:
        document["signature"] = signature
    path.write_text(json.dumps(document))


def test_a_signed_policy_is_the_policy(policy, path):
    assert dm.Policy.load(path, key=KEY).threshold == policy.threshold
    assert dm.Policy.load(path).threshold == policy.threshold


def test_a_key_may_be_text(policy, path):
    policy.save(path, key="a key of thirty-two or more letters")
    assert dm.Policy.load(path, key=b"a key of thirty-two or more letters").n == policy.n


@pytest.mark.parametrize("reseal", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(demur="9"),
        lambda document: document["calibration"].update(ids=[]),
        lambda document: document.update(more=None),
        lambda document: document["points"][0].update(threshold=[0.0]),
    ],
)
def test_whatever_is_changed_no_longer_carries_the_signature(path, change, reseal):
    rewrite(path, change, reseal=reseal)
    with pytest.raises(PolicyFileError, match="was not signed with this key, or was changed"):
        dm.Policy.load(path, key=KEY)


@pytest.mark.parametrize("signature", [None, "", 7, [], {}, "hmac-sha256:", "hmac-sha256:" + "0" * 64, "é"])
def test_no_other_signature_passes(path, signature):
    document = json.loads(path.read_text())
    document["signature"] = signature
    path.write_text(json.dumps(document))
    with pytest.raises(PolicyFileError, match="signed"):
        dm.Policy.load(path, key=KEY)


def test_an_unsigned_policy_and_another_key_are_refused(policy, path):
    with pytest.raises(PolicyFileError, match="was not signed with this key"):
        dm.Policy.load(path, key=secrets.token_bytes(32))
    policy.save(path)
    with pytest.raises(PolicyFileError, match="is not signed"):
        dm.Policy.load(path, key=KEY)


def test_the_signature_covers_the_sidecar(policy, tmp_path, monkeypatch):
    monkeypatch.setattr(policy_file, "INLINE_LIMIT", 10)
    path = tmp_path / "long.json"
    policy.save(path, key=KEY)
    (sidecar,) = tmp_path.glob("long.json.*.calibration")
    assert dm.Policy.load(path, key=KEY).seen == policy.seen
    shorter = json.dumps(json.loads(sidecar.read_text()) | {"ids": []})
    sidecar.write_text(shorter)
    with pytest.raises(PolicyFileError, match="SHA-256 differs"):
        dm.Policy.load(path, key=KEY)
    import hashlib

    rewrite(path, lambda document: document["calibration"].update(sha256=hashlib.sha256(shorter.encode()).hexdigest()))
    assert not dm.Policy.load(path).seen.ids  # the seal alone does not stop it
    with pytest.raises(PolicyFileError, match="was not signed with this key, or was changed"):
        dm.Policy.load(path, key=KEY)


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 31, b" " * 64, "", "hunter2", b"x" * 70_000])
def test_what_is_no_key_is_refused_and_never_repeated(policy, path, key):
    for use in (lambda: policy.save(path, key=key), lambda: dm.Policy.load(path, key=key)):
        with pytest.raises(InvalidValue, match="must hold 32 to") as told:
            use()
        assert not key.strip() or str(key) not in str(told.value)


def test_a_key_files_last_line_end_is_no_part_of_the_key(tmp_path):
    text = secrets.token_hex(32)
    for written in (text, text + "\n", text + "\r\n"):
        (tmp_path / "key").write_bytes(written.encode())
        assert dm.read_key(tmp_path / "key") == text.encode()
    (tmp_path / "key").write_bytes(b"\xff" * 31 + b"\n")
    assert len(dm.read_key(tmp_path / "key")) == 32


@pytest.mark.parametrize("content", [b"", b"\n", b"hunter2\n", b"\0" * 10])
def test_a_key_file_that_holds_none_is_refused(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(InvalidValue, match=r"key file .* must hold 32") as told:
        dm.read_key(tmp_path / "key")
    assert "hunter2" not in str(told.value)
    with pytest.raises(InvalidValue, match="cannot be read"):
        dm.read_key(tmp_path / "none")
    with pytest.raises(InvalidValue, match="cannot be read"):
        dm.read_key(tmp_path)


def test_anybody_who_holds_the_key_can_check_a_signature_by_hand(path):
    document = json.loads(path.read_text())
    signature = document.pop("signature")
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    tag = hmac.new(KEY, b"demur-policy hmac-sha256\n" + canonical.encode(), "sha256").hexdigest()
    assert signature == f"hmac-sha256:{tag}"


def test_the_longest_key_and_its_file_are_taken_whole_and_one_byte_more_is_refused(policy, tmp_path):
    longest = secrets.token_bytes(1 << 15).hex().encode()  # 65536 letters
    policy.save(tmp_path / "p.json", key=longest)
    for end in (b"", b"\n", b"\r\n"):
        (tmp_path / "key").write_bytes(longest + end)
        assert dm.read_key(tmp_path / "key") == longest
    assert dm.Policy.load(tmp_path / "p.json", key=dm.read_key(tmp_path / "key")).n == policy.n
    for longer in (longest + b"x", longest * 2):
        (tmp_path / "key").write_bytes(longer)
        with pytest.raises(InvalidValue, match=r"key file .* must hold 32 to 65536 bytes"):
            dm.read_key(tmp_path / "key")
        with pytest.raises(
            InvalidValue, match=r"^key must hold 32 to 65536 bytes that are not blank; make one with: openssl"
        ):
            policy.save(tmp_path / "p.json", key=longer)


def test_only_the_end_of_the_line_is_left_off_a_key(tmp_path):
    for key in (b"a key that ends with an X, and thirty-two bytes: X", b" a key that ends with a blank one: XX \t "):
        (tmp_path / "key").write_bytes(key + b"\n")
        assert dm.read_key(tmp_path / "key") == key


def test_who_is_refused_is_told_the_way_out(policy, path):
    policy.save(path)
    with pytest.raises(
        PolicyFileError, match="is not signed, and a key was given to check it with; sign it when calib"
    ):
        dm.Policy.load(path, key=KEY)
