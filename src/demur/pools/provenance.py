"""What a file of pools says of how they came to be: the run's description, and what each score is.

    {"format": "demur-pools", "version": 1, "pipeline": {"sampling": {…}, "answers": {…}}, "scores": {"judge": {…}}}

Where a table holds classes of answers, `keys` says how they were made (see `pools.answer_keys`). Where it was made of a
sampling that was not finished, `left_out` says how many problems lacked paths then.
JSON lines have it as a line of its own, Parquet as metadata of the table. A file's claims are data: they are compared,
fingerprinted and shown, and nothing is loaded or run because of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from demur.descriptions import Description
from demur.errors import InvalidValue, PoolFileError
from demur.files.headers import POOLS, is_header
from demur.files.strict_json import as_json, is_deep
from demur.records import Pool
from demur.stopping import stopping_of

VERSION = 1
_TEXTS = ("labels", "markers")
"""Parts of the stage `answers` by which answers are read."""


@dataclass(frozen=True)
class Provenance:
    """How pools came to be, as far as their file says."""

    description: Description = field(default_factory=Description)
    scorers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The identity of each score that demur computed."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """How the answers were compared whose classes the file holds, where it holds any: see `pools.answer_keys`."""
    left_out: int = 0
    """Problems that lacked paths when the file was written, and are not in it."""

    def document(self) -> dict[str, Any]:
        """As plain values; nothing where nothing is known."""
        pipeline, scores = self.description.document(), {name: dict(who) for name, who in self.scorers.items()}
        anything = pipeline or scores or self.keys or self.left_out
        known: dict[str, Any] = {"pipeline": pipeline, "scores": scores} if anything else {}
        known |= {"keys": dict(self.keys)} if self.keys else {}
        known |= {"left_out": self.left_out} if self.left_out else {}
        return {"format": POOLS, "version": VERSION, **known} if known else {}

    def text(self) -> str | None:
        """As one line of JSON, where anything is known."""
        document = self.document()
        return as_json(document) if document else None

    @classmethod
    def of(cls, document: Any, where: str) -> Self:
        """From plain values; an error says where they stand, and what is wrong with them."""
        if not is_header(document):
            raise PoolFileError(f"{where}: expected an object of the format {POOLS!r}")
        if document.get("version") != VERSION:
            told = f"this demur reads version {VERSION} of pool files, not {document.get('version')!r:.20}"
            raise PoolFileError(f"{where}: {told}", "read it with a newer one")
        unknown = sorted(set(document) - {"format", "version", "pipeline", "scores", "keys", "left_out"})
        if unknown:
            raise PoolFileError(f"{where}: what tells of the whole file has no field {unknown[0]!r:.60}")
        try:
            keys, left_out = _keys(document.get("keys", {})), _count(document.get("left_out", 0))
            return cls(_description(document.get("pipeline", {})), _scorers(document.get("scores", {})), keys, left_out)
        except InvalidValue as error:
            raise PoolFileError(f"{where}: {error}") from None


@dataclass(frozen=True)
class PoolFile:
    """What a file holds."""

    pools: Sequence[Pool]
    provenance: Provenance = field(default_factory=Provenance)


def _description(document: Any) -> Description:
    if is_deep(document):
        raise InvalidValue("its pipeline is nested too deeply")
    description = Description.of(document)
    stopping_of(description.sampling)  # raises where it is no rule
    for name in _TEXTS:
        texts = description.answers.get(name, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise InvalidValue(f"answers.{name} must be a list of texts, got {texts!r:.60}")
    return description


def _scorers(document: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(document, dict) or is_deep(document):
        raise InvalidValue(f"`scores` must be an object of objects, got {type(document).__name__}")
    for name, identity in document.items():
        if not isinstance(identity, dict):
            raise InvalidValue(f"the identity of the score {name!r:.60} must be an object, got {identity!r:.60}")
        normaliser = identity.get("normaliser", "none")
        if not isinstance(normaliser, str):
            raise InvalidValue(f"the normaliser of the score {name!r:.60} must be a text, got {normaliser!r:.60}")
    return document


def _keys(document: Any) -> dict[str, Any]:
    """What a file says of its keys, which must name the field and the relations."""
    if not isinstance(document, dict) or is_deep(document):
        raise InvalidValue(f"`keys` must be an object, got {type(document).__name__}")
    for name in ("field", "relation"):
        if document and not isinstance(document.get(name), str):
            raise InvalidValue(f"keys.{name} must be a text, got {document.get(name)!r:.60}")
    return document


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidValue(f"`left_out` must be a count, got {value!r:.60}")
    return value
