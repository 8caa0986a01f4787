"""How much the holder of a key may ask for: paths and tokens in a minute and a day, and requests at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from demur.errors import StoreError


@dataclass(frozen=True)
class Limits:
    """The limits of a key; None: no limit."""

    paths_per_minute: int | None = None
    paths_per_day: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    at_once: int | None = None
    """Requests under way at once, on each replica."""

    @classmethod
    def of(cls, stored: Mapping[str, int]) -> Limits:
        """The limits as the store has them; one that is not known here is not passed over."""
        unknown = sorted(set(stored) - {field.name for field in fields(cls)})
        if unknown:
            raise StoreError(f"a key has a limit that this version does not know: {unknown[0]!r:.60}")
        return cls(**stored)

    def given(self) -> dict[str, int]:
        """Those there are, as the store takes them."""
        return {name: value for name, value in asdict(self).items() if value is not None}


UNLIMITED = Limits()
