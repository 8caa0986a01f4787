"""What a question says of how its answers are written: its options or labels, its language, what a prompt asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demur.answers.languages import checked_language
from demur.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Asked:
    """The part of a question that reading and comparing its answers may depend on. Never gold."""

    options: tuple[str, ...] = ()
    """What may be chosen, in order: the first is A."""
    labels: tuple[str, ...] = ()
    """Names that are chosen themselves, without letters: yes and no, True, False and Uncertain."""
    language: str | None = None
    """How numbers are written: a code such as `de` or `pt-BR`; None: as in English."""
    markers: tuple[str, ...] = ()
    """Words behind which the prompt asked for the answer."""
    question: str | None = None
    """Its text; None where it is not known."""

    @classmethod
    def of(
        cls,
        options: Any = None,
        labels: Sequence[str] = (),
        language: Any = None,
        markers: Sequence[str] = (),
        question: str | None = None,
    ) -> Asked:
        """From the fields of a problem, and what was said of all problems; raises where that makes no sense."""
        chosen, named = _texts(options, "options"), _texts(labels, "labels")
        return cls(chosen, named, checked_language(language), _markers(markers), question)


NOTHING_SAID = Asked()


def _texts(values: Any, name: str) -> tuple[str, ...]:
    """Distinct texts; a mapping of letters to texts is as good as a list of texts."""
    if values is None:
        return ()
    if isinstance(values, dict):
        values = [values[letter] for letter in sorted(values)]
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InvalidValue(f"{name} must be a list of texts, got {values!r:.60}")
    texts = tuple(str(value).strip() for value in values)
    folded = [text.casefold() for text in texts]
    if name == "labels":
        if repeated := next((text for at, text in enumerate(texts) if folded[at] in folded[:at]), None):
            raise InvalidValue(f"the label {repeated!r} is given twice")
        if "" in texts:
            raise InvalidValue("a label must not be blank")
    return texts


def _markers(values: Sequence[str]) -> tuple[str, ...]:
    if any(not value.strip() for value in values):
        raise InvalidValue("an answer marker must not be blank")
    return tuple(" ".join(value.split()) for value in values)
