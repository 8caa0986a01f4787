"""Policy files on disk: versioned JSON that is data only, sealed with a digest, written all at once.

Long lists of calibration problems go to a sidecar beside the policy, tied to it by its SHA-256. The seal stops
accidents; against forgers a policy is signed with a key.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
from pathlib import Path
from typing import Any

from demur.descriptions import digest
from demur.errors import PolicyFileError
from demur.files import strict_json
from demur.files.atomic import written_whole
from demur.files.inputs import open_file, text_of
from demur.files.strict_json import as_json
from demur.policy.sidecar import MARK, is_packed, pack, unpacked
from demur.policy.signature import Key, check_signature, checked_key, signature_of

FORMAT, CASCADE = "demur-policy", "demur-cascade"
SCHEMAS = {FORMAT: 4, CASCADE: 1}
_MADE_BY = {
    FORMAT: "not a demur policy file; `demur calibrate … -o policy.json` writes one",
    CASCADE: "not a file of a demur cascade; `demur cascade … -o cascade.json` writes one",
}
_OTHER = {FORMAT: ". This one is a policy", CASCADE: ". This one is a cascade"}
INLINE_LIMIT = 100_000
COLUMNS = "columns"
"""The name of packed columns of evidence. A policy without them has schema 3, which an older demur reads."""

Document = dict[str, Any]


def write(document: Document, path: str | os.PathLike[str], key: Key | None = None, kind: str = FORMAT) -> None:
    """Seal, sign where there is a key, and write; an interrupted write leaves the old file as it was."""
    target = Path(path)
    if key is not None:
        checked_key(key)  # before a sidecar is written
    sealed: Document = {"format": kind, "schema": schema_of(document, kind), **document}
    if is_packed(sealed["calibration"]) or len(sealed["calibration"]["ids"]) > INLINE_LIMIT:
        content = pack(sealed["calibration"])
        sha256 = hashlib.sha256(content).hexdigest()
        sidecar = target.with_name(f"{target.name}.{sha256[:12]}.calibration")
        _write_sidecar(sidecar, content)
        sealed["calibration"] = {"file": sidecar.name, "sha256": sha256}
    sealed["digest"] = digest(sealed)
    if key is not None:
        sealed["signature"] = signature_of(sealed, key)
    _write_whole(target, (as_json(sealed, indent=1, finite=True) + "\n").encode())
    _remove_others(target, sealed["calibration"].get("file"))


def read(path: str | os.PathLike[str], key: Key | None = None, kind: str = FORMAT) -> Document:
    """Read and verify the seal and, with a key, the signature; nothing in the file is ever executed."""
    source = Path(path)
    if key is not None:
        checked_key(key)
    document: Document = _parse(source, _read_text(source))
    found = document.get("format") if isinstance(document, dict) else None
    if isinstance(found, str) and found != FORMAT and found.endswith("-policy") and "evidence" in document:
        raise PolicyFileError(
            f"{source} was written by {found.removesuffix('-policy')}, which this program was called before",
            "calibrate again, on the same pools",
        )
    if found != kind:
        raise PolicyFileError(f"{source} is {_MADE_BY[kind]}{_OTHER.get(str(found), '')}")
    schema, newest = document.get("schema"), SCHEMAS[kind]
    if not isinstance(schema, int) or schema < 1:
        raise PolicyFileError(f"{source} has schema {schema!r}, expected a whole number from 1 to {newest}")
    if schema > newest:
        raise PolicyFileError(
            f"{source} has schema {schema}, and this demur reads up to {newest}; upgrade demur to use it"
        )
    try:
        signature = document.pop("signature", None)
        if key is not None:
            check_signature(document, signature, key, source)
        seal = str(document.pop("digest", None))
        intact = hmac.compare_digest(seal.encode(), digest(document).encode())
    except ValueError:  # a number that JSON cannot hold, such as 1e999
        intact = False
    if not intact:
        raise PolicyFileError(
            f"{source} was changed after it was written (its digest does not match); "
            "calibrate again instead of editing it"
        )
    calibration = document.get("calibration")
    if isinstance(calibration, dict) and "file" in calibration:
        document["calibration"] = _read_sidecar(source, calibration)
    return document


def schema_of(document: Document, kind: str = FORMAT) -> int:
    """The oldest schema that a document can be written in."""
    parts = [document.get(name) for name in ("evidence", "every_question", "missed")]
    return SCHEMAS[kind] - (kind == FORMAT and not any(map(_is_packed, parts)))


def _is_packed(part: Any) -> bool:
    """Whether evidence, or a stratum of it, stands in packed columns."""
    if isinstance(part, list):
        return any(_is_packed(stratum) for stratum in part if isinstance(stratum, dict))
    return isinstance(part, dict) and (COLUMNS in part or any(map(_is_packed, part.values())))


def _write_sidecar(sidecar: Path, content: bytes) -> None:
    """Beside the one that the policy has so far, which is not touched: until the policy is written, that one counts."""
    if sidecar.exists() and not (sidecar.is_file() and sidecar.read_bytes() == content):
        raise PolicyFileError(f"{sidecar} is there already and is something else", "remove it, or choose another name")
    _write_whole(sidecar, content)


def _remove_others(policy: Path, kept: str | None) -> None:
    """Let go of the sidecars of policies that this one replaced."""
    mine = re.compile(re.escape(policy.name) + r"\.[0-9a-f]{12}\.calibration")
    with contextlib.suppress(OSError):  # what stays behind does no harm
        for other in policy.parent.iterdir():
            if mine.fullmatch(other.name) and other.name != kept:
                other.unlink()


def _read_sidecar(policy: Path, reference: Document) -> Any:
    name = str(reference.get("file"))
    if not name or "\0" in name or Path(name).name != name:
        raise PolicyFileError(f"{policy} names a sidecar outside its folder: {name!r}")
    sidecar = policy.with_name(name)
    if not sidecar.exists():
        raise PolicyFileError(f"there is no file {sidecar}, which {policy} needs", "copy it there with the policy")
    content = _read_bytes(sidecar)
    found = hashlib.sha256(content).hexdigest()
    if not hmac.compare_digest(found.encode(), str(reference.get("sha256")).encode()):
        raise PolicyFileError(f"{sidecar} does not belong to {policy} (its SHA-256 differs); calibrate again")
    try:
        return unpacked(content) if content.startswith(MARK) else _parse(sidecar, content.decode())
    except ValueError as error:
        raise PolicyFileError(f"{sidecar} cannot be read: {error}; calibrate again") from None


def _read_bytes(path: Path) -> bytes:
    try:
        with open_file(path) as stream:
            return stream.read()
    except OSError:
        return _read_text(path).encode()  # which says what is the matter


def _read_text(path: Path) -> str:
    return text_of(path, PolicyFileError)


def _parse(path: Path, text: str) -> Any:
    try:
        return strict_json.parse(text, finite=True)
    except strict_json.RepeatedKey as error:
        raise PolicyFileError(f"{path}, line {error.line}: {error}", "calibrate again instead of editing it") from None
    except strict_json.NotJson as error:
        raise PolicyFileError(f"{path} is not JSON: line {error.line}: {error}") from None


def _write_whole(path: Path, content: bytes) -> None:
    with written_whole(path, PolicyFileError) as unfinished:
        unfinished.write_bytes(content)
