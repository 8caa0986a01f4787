"""A way to vote that was chosen on a part of the labelled problems, which then may not calibrate.

    tuned = dm.tune(pools, alpha=0.1)                        ranks ways to vote on a part of the problems
    dm.calibrate(tuned.vote(pools), alpha=0.1, tuned=tuned)  calibrates on the others

The file holds how to vote, the table it was chosen by, and which problems that took: data only, checked when read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.calibration import CLUSTER, QUESTION
from demur.descriptions import Description
from demur.errors import CalibrationLeak, InvalidValue, TunedFileError
from demur.policy.sealed import Document, Kind
from demur.pools.voted_pools import VotedPools
from demur.shown.frames import frame_of
from demur.shown.html import html_of_columns
from demur.version import __version__
from demur.voting.problems import Problems
from demur.voting.recipe import Recipe

if TYPE_CHECKING:
    from demur.pools.label_rule import LabelRule
    from demur.pools.source import PoolSource

_KIND = Kind(
    "demur-tuned",
    1,
    "a file of a tuned vote",
    "`demur tune … -o tuned.json` writes one",
    "tune again instead of editing it",
    TunedFileError,
)
_KNOWN_BY = ("ids", "questions", "clusters")


@dataclass(frozen=True)
class TunedRow:
    """One way to vote, and its expected yield by the labels of the tune split."""

    name: str
    answered: float
    """Mean over the alphas, of a calibration as large as the rest of the problems; exact over calibration sets drawn
    from the tune split."""
    standard_error: float
    over_default: float
    """`answered` less that of the first row."""
    over_default_error: float
    """The standard error of that difference, on the same questions."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """A way to vote, how it was chosen, and on which problems."""

    description: Description
    """How votes are to be made: all stages."""
    problems: Problems
    """The problems it was chosen on."""
    rows: tuple[TunedRow, ...]
    """What was compared, the default first."""
    chosen: int
    """The row that was chosen."""
    n: int
    """Questions, or clusters of them, that it was chosen on; those that share one count once."""
    n_cal: int
    """As many as are left to calibrate on."""
    unit: str
    alphas: tuple[float, ...]
    share: float
    seed: int
    skipped: tuple[str, ...] = ()
    """Ways to vote that these pools do not allow, and why."""

    def __repr__(self) -> str:
        return f"Tuned({self.best.name!r}, chosen from {len(self.rows)} on {self.n:,} {self.unit}s)"

    def _repr_html_(self) -> str:
        return html_of_columns(repr(self), self.columns(), note=self.sentence)

    def columns(self) -> dict[str, list[Any]]:
        """One entry per way to vote, by name."""
        rows = [asdict(row) for row in self.rows]
        chosen = [at == self.chosen for at in range(len(rows))]
        return {**{name: [row[name] for row in rows] for name in rows[0]}, "chosen": chosen}

    def to_frame(self, library: str | None = None) -> Any:
        """One row per way to vote, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    @property
    def best(self) -> TunedRow:
        """The row that was chosen."""
        return self.rows[self.chosen]

    @property
    def sentence(self) -> str:
        """On which problems the ways to vote were ranked, and what follows from that."""
        ranked = "1 way to vote was" if len(self.rows) == 1 else f"{len(self.rows)} ways to vote were"
        return (
            f"{ranked} ranked by the labels of {self.n} {self.unit}s; to calibrate on the "
            f"same ones would break the promise, so they are left out, and {self.n_cal} are left to calibrate on. A "
            "simpler way is chosen where a better one is within one standard error of it."
        )

    @property
    def recipe(self) -> Recipe:
        return Recipe.of(self.description.vote)

    def vote(
        self,
        source: PoolSource,
        *,
        labelled: bool = True,
        partly_labelled: bool = False,
        correct: str | LabelRule | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> VotedPools:
        """Vote on pools the way that was chosen, the problems it was chosen on among them.

        The votes know which those are, and nothing calibrates on them: `calibrate(…, tuned=…)` leaves them out.
        """
        from demur.pools.fields import FieldChoice
        from demur.pools.source import vote_pools

        fields = replace(FieldChoice.of(self.description), in_use=False)
        how: dict[str, Any] = {"labelled": labelled, "partly_labelled": partly_labelled, "correct": correct}
        return vote_pools(source, fields, self.recipe, fitted_on=self.problems, say=say, **how)

    def rest(self, voted: VotedPools) -> VotedPools:
        """Voted pools without the problems that the way to vote was chosen on: what may calibrate.

        Raises where others share a question or a cluster with one of those, or were voted on another way.
        """
        if differences := self.description.differences(voted.votes.description, "what was tuned"):
            raise InvalidValue(f"these votes were not made the way that was chosen: {'; '.join(differences)}")
        if voted.votes.ids is None:
            raise InvalidValue("problems without names cannot be told from those tuned on", "vote with {ids}")
        left = voted.take(np.array([name not in self.problems.ids for name in voted.votes.ids], dtype=np.bool_))
        if not len(left):
            raise CalibrationLeak(
                f"the way to vote was chosen on all {len(voted)} of these problems, so that none may calibrate it",
                "give others, or the file that was tuned on",
            )
        if shared := self.problems.rows(left.names, left.questions, left.clusters):
            raise CalibrationLeak(
                f"the problem {left.names[shared[0]]!r} shares its question or cluster with one that the way to vote "
                f"was chosen on ({len(shared)} of {len(left)} do), so that it cannot calibrate",
                "leave it out, or tune again on pools that hold both",
            )
        return left

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON."""
        problems = {name: sorted(getattr(self.problems, name)) for name in _KNOWN_BY}
        known = {name: getattr(self, name) for name in ("chosen", "n", "n_cal", "unit", "share", "seed")}
        rows = [asdict(row) for row in self.rows]
        table = {"rows": rows, "alphas": list(self.alphas), "skipped": list(self.skipped)}
        pipeline = {"pipeline": self.description.document(), "fingerprint": self.description.fingerprint}
        _KIND.write({"demur": __version__, **known, **table, **pipeline, "tuned_on": problems}, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tuned:
        """Read what `save` wrote, and check each of its values."""
        document = _KIND.read(path)
        try:
            return _of_document(document)
        except ValueError as error:
            raise TunedFileError(f"{path} is not a usable file of a tuned vote: {error}") from None


def _of_document(document: Document) -> Tuned:
    description = Description.of(document.get("pipeline"))
    if description.fingerprint != document.get("fingerprint"):
        raise ValueError("its fingerprint does not match its pipeline")
    Recipe.of(description.vote)
    seen = document.get("tuned_on")
    if not isinstance(seen, dict) or not all(_are_texts(seen.get(name)) for name in _KNOWN_BY) or not seen["ids"]:
        raise ValueError(f"tuned_on must list ids, questions and clusters, got {seen!r:.60}")
    rows = document.get("rows")
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"it needs rows of what was compared, got {rows!r:.60}")
    compared = tuple(map(_row, rows))
    counts = {name: document.get(name) for name in ("chosen", "n", "n_cal", "seed")}
    for name, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{name} must be a whole number >= 0, got {value!r:.60}")
    if counts["chosen"] >= len(rows):  # type: ignore[operator]
        raise ValueError(f"chosen must be one of its {len(rows)} rows, got {counts['chosen']}")
    alphas, share, unit = document.get("alphas"), document.get("share"), document.get("unit")
    if not isinstance(alphas, list) or not alphas or not all(_is_number(a) and 0 < a < 1 for a in [*alphas, share]):
        raise ValueError(f"alphas and share must lie strictly between 0 and 1, got {alphas!r:.60} and {share!r:.60}")
    skipped = document.get("skipped")
    if unit not in (QUESTION, CLUSTER) or not isinstance(skipped, list) or not _are_texts(skipped):
        raise ValueError(f"it needs a unit and what was skipped, got {unit!r:.60} and {skipped!r:.60}")
    ids, questions, clusters = (frozenset(seen[name]) for name in _KNOWN_BY)
    told: dict[str, Any] = {"unit": unit, "share": share, "skipped": tuple(skipped), **counts}
    return Tuned(description, Problems(ids, questions, clusters), compared, alphas=tuple(alphas), **told)


def _row(stored: Any) -> TunedRow:
    names = ("answered", "standard_error", "over_default", "over_default_error")
    if not isinstance(stored, dict) or set(stored) != {"name", *names} or not isinstance(stored["name"], str):
        raise ValueError(f"a row must hold name, {', '.join(names)}, got {stored!r:.60}")
    if not all(_is_number(stored[name]) and abs(stored[name]) <= 1 for name in names):
        raise ValueError(f"yields and their errors must lie within 1, got {stored!r:.60}")
    return TunedRow(**stored)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
