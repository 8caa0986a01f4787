"""What a user says of a scorer: where its model is, and how it is asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from demur.backends.addresses import file_address
from demur.errors import InvalidValue
from demur.typed_toml import typed_fields


@dataclass(frozen=True)
class ScorerSettings:
    """What was said of one scorer; None where nothing was."""

    kind: str | None = None
    """Its family, where its name does not say."""
    model: str | None = None
    base_url: str | None = None
    route: str | None = None
    prompt: Any = None
    """A TOML file, or a prompt as an identity has it."""
    revision: str | None = None
    device: str | None = None
    batch: int | None = None
    concurrency: int | None = None
    patience: float | None = None
    answer_seconds: float | None = None
    too_long: str | None = None
    raw: bool | None = None
    """Rewards that lie between 0 and 1 are what the model gives, not sigmoids."""

    mixed_models: bool | None = None
    """Take replies that name several models, for one requested."""

    def __post_init__(self) -> None:
        for name, least in (("batch", 1), ("concurrency", 1), ("patience", 0), ("answer_seconds", 0.001)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise InvalidValue(f"{name} must be at least {least}, got {value}")

    @classmethod
    def of(cls, section: Any, where: str) -> ScorerSettings:
        """From a section of a file or from flags, where all is text; unknown ones are refused."""
        return cls(**typed_fields(cls, section, where, as_text=True))

    @classmethod
    def of_file(cls, section: Any, where: str, trust_address: Collection[str] = ()) -> ScorerSettings:
        """From a section of a file: its address gets no key, unless it is among those that the user trusts."""
        settings = cls.of(section, where)
        return replace(settings, base_url=file_address(settings.base_url, trust_address))

    def over(self, other: ScorerSettings) -> ScorerSettings:
        """The other's settings, with everything that is said here in their place."""
        return replace(other, **self.said())

    def said(self) -> dict[str, Any]:
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}


def base_name(name: str) -> str:
    """The name that a scorer was asked for by, where a run has numbered it: judge for judge-2."""
    return re.sub(r"-\d+$", "", name)


def settings_for(
    name: str, shared: str, known: Mapping[str, ScorerSettings], flags: Mapping[str, Mapping[str, str]] | None = None
) -> ScorerSettings:
    """What was said of a scorer, under its name in a run, the name it was asked for by, or that of its family."""
    asked = base_name(name)  # a run calls the second judge judge-2
    settings = known.get(name) or known.get(asked) or known.get(shared) or ScorerSettings()
    given = {key: value for said in (shared, asked, name) for key, value in (flags or {}).get(said, {}).items()}
    return ScorerSettings.of(given, name).over(settings)
