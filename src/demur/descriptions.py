"""How votes come to be, described stage by stage: one description, stored in run and policy, compared here alone.

    sampling    backend, model, prompt, temperature, …     how paths are drawn
    answers     task, extraction, relation, …              how an answer is read off a path, and when two are the same
    score       name, scorer                               what a path's number is
    vote        weight, normaliser, tie rule, …            how numbers become a vote
    then        another description                        the next stage of a cascade, with a model of its own

A stage holds plain values only. A run knows the first two; a policy knows all four.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from demur.errors import InvalidValue
from demur.files.strict_json import as_json

Stage = Mapping[str, Any]
_IF_KNOWN = (("sampling", "model"), ("sampling", "temperature"))
"""Parts that not every file names: compared only where both sides do."""


@dataclass(frozen=True)
class Description:
    """What decides a vote, by stage."""

    sampling: Stage = field(default_factory=dict)
    answers: Stage = field(default_factory=dict)
    score: Stage = field(default_factory=dict)
    vote: Stage = field(default_factory=dict)
    then: Description | None = None

    def document(self) -> dict[str, Any]:
        """As plain values in one order, whichever they came in, without stages of which nothing is known."""
        stages = {name: _ordered(stage) for name, stage in self._stages() if stage}
        return stages if self.then is None else {**stages, "then": self.then.document()}

    @classmethod
    def of(cls, document: Any) -> Self:
        """From plain values; ValueError where they are no description."""
        if not isinstance(document, dict):
            raise InvalidValue(f"a description must be an object of stages, got {document!r:.60}")
        known = [part.name for part in fields(cls)]
        for name, stage in document.items():
            if name not in known:
                raise InvalidValue(
                    f"a description has no stage {name!r}, expected {', '.join(known)}",
                    "it is newer than this demur, or was made by another program",
                )
            if not isinstance(stage, dict):
                raise InvalidValue(f"the stage {name!r} of a description must be an object, got {stage!r:.60}")
        return cls(**document | ({"then": cls.of(document["then"])} if "then" in document else {}))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its canonical form."""
        return digest(self.document())

    def updated(self, other: Description) -> Description:
        """This, with all that another says in its place."""
        theirs = dict(other._stages())
        stages = {name: {**stage, **theirs[name]} for name, stage in self._stages()}
        return type(self)(**stages, then=other.then or self.then)

    def differences(self, other: Description, here: str = "the policy", there: str = "here") -> list[str]:
        """What `other` has another way, in words; nothing where the two make the same votes."""
        told = []
        mine, theirs = dict(self._parts()), dict(other._parts())
        for part in dict.fromkeys([*mine, *theirs]):
            a, b = mine.get(part), theirs.get(part)
            if a != b and not (part[-2:] in _IF_KNOWN and None in (a, b)):
                told.append(f"{'.'.join(part)} is {a!r:.200} in {here}, {b!r:.200} {there}")
        return told

    def _stages(self) -> Iterator[tuple[str, Stage]]:
        return ((stage.name, getattr(self, stage.name)) for stage in fields(self) if stage.name != "then")

    def _parts(self) -> Iterator[tuple[tuple[str, ...], Any]]:
        for name, stage in self._stages():
            for key, value in stage.items():
                if isinstance(value, Mapping):
                    yield from (((name, key, inner), part) for inner, part in value.items())
                else:
                    yield (name, key), value
        if self.then is not None:
            yield from ((("then", *part), value) for part, value in self.then._parts())


def _ordered(value: Any) -> Any:
    """A plain value whose objects have their keys in the order of the alphabet."""
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return list(map(_ordered, value)) if isinstance(value, (list, tuple)) else value


def digest(document: Any) -> str:
    """SHA-256 of a document's canonical form."""
    return "sha256:" + hashlib.sha256(canonical(document)).hexdigest()


def canonical(document: Any) -> bytes:
    """The one way to write a document of plain values."""
    return as_json(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, finite=True).encode()
