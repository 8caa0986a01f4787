"""What a cascade decides: who answers, what it cost, and which stage has still to be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import InvalidValue
from demur.policy.cascade_problems import matched
from demur.policy.decisions import Decisions
from demur.policy.explanations import NOT_PROMISED
from demur.pools.voted_pools import VotedPools
from demur.records import Decision
from demur.shown.frames import frame_of
from demur.shown.html import MOST_ROWS, html_of_columns
from demur.voting.votes import Votes

if TYPE_CHECKING:
    from demur.policy.cascade import Cascade

Rows = NDArray[np.intp]
NOBODY = -1


@dataclass(frozen=True)
class CascadeDecision:
    """What a cascade says about one question."""

    decisions: Mapping[str, Decision]
    """Of the stages that were asked, by name, in order."""
    alpha: float
    cost: float
    """Of the stages that were asked."""
    promise: str
    needs: str | None = None
    """The stage that has to be asked next and was not; None where all is decided."""
    id: str | None = None
    feasible: bool = True
    """False where there are too few calibration questions for any stage to answer."""

    @property
    def last(self) -> Decision | None:
        """Of the last stage that was asked."""
        return list(self.decisions.values())[-1] if self.decisions else None

    @property
    def answer(self) -> Any:
        """The answer, or None: no stage answers, or one has still to be asked."""
        return None if self.last is None else self.last.answer

    @property
    def stage(self) -> str | None:
        """The stage that answers; None where none does."""
        return None if self.abstained else list(self.decisions)[-1]

    @property
    def abstained(self) -> bool:
        return self.answer is None

    @property
    def explanation(self) -> str:
        """What was decided, what is promised and what is not."""
        told = "; ".join(f"{name}: {_compared(decision)}" for name, decision in self.decisions.items())
        if not self.feasible:
            head = "For a person: there are too few calibration questions for any stage to answer"
        elif self.needs is not None:
            head = f"Needs the stage {self.needs!r}"
        else:
            head = "For a person: no stage answers" if self.abstained else f"Answered by {self.stage!r}"
        return f"{head}{f' ({told})' if told else ''}. {self.promise} {NOT_PROMISED}"

    def document(self) -> dict[str, Any]:
        """As plain values."""
        stages = [
            {
                "stage": name,
                **{part: getattr(one, part) for part in ("answer", "confidence", "key", "threshold", "threshold_key")},
                "support": dict(one.support),
                "n_paths": one.n_paths,
            }
            for name, one in self.decisions.items()
        ]
        decided = "needs" if self.needs is not None else "person" if self.abstained else "answer"
        return {
            "id": self.id,
            "decision": decided,
            "answer": self.answer,
            "stage": self.stage,
            "needs": self.needs,
            "alpha": self.alpha,
            "cost": self.cost,
            "stages": stages,
            "explanation": self.explanation,
        }

    def __repr__(self) -> str:
        who = f"needs {self.needs!r}" if self.needs else "a person" if self.abstained else f"by {self.stage!r}"
        return f"CascadeDecision({who}, answer={self.answer!r:.60}, cost={self.cost:g}, alpha={self.alpha:g})"


def _compared(decision: Decision) -> str:
    """What a stage's key was compared with: its first number, or the one that breaks the tie."""
    beyond = "not above" if decision.abstained else "above"
    key, threshold = decision.key, decision.threshold_key
    if len(key) > 1 and key[0] == threshold[0] > 0:
        at = next((at for at, bound in enumerate(threshold) if key[at] != bound), len(threshold) - 1)
        tie = f"{key[at]:.4g} behind it is {beyond} {threshold[at]:.4g}"
        return f"confidence {key[0]:.4g} ties with the threshold, and {tie}"
    return f"confidence {key[0] if key else decision.confidence:.4g} is {beyond} {decision.threshold:.4g}"


@dataclass(frozen=True, eq=False)
class CascadeDecisions:
    """What a cascade says about many questions, one row per vote of its first stage."""

    cascade: Cascade
    ids: Sequence[str] | None
    by_stage: tuple[Decisions | None, ...]
    """What each stage alone would say; None where it has no votes."""
    rows: tuple[Rows, ...]
    """Where each question is among the votes of each stage; −1 where it is not."""
    answered_by: Rows
    """The number of the stage that answers; −1: none does."""
    needs: Rows
    """The number of the stage that has to be asked next; −1: none."""

    def __len__(self) -> int:
        return len(self.answered_by)

    def __repr__(self) -> str:
        counts = {name: int((self.answered_by == at).sum()) for at, name in enumerate(self._names)}
        told = ", ".join(f"{count} by {name}" for name, count in counts.items())
        return f"CascadeDecisions({len(self):,} questions: {told}, {int((self.needs >= 0).sum())} undecided)"

    def _repr_html_(self) -> str:
        columns = {name: column[:MOST_ROWS] for name, column in self.columns().items()}
        return html_of_columns(repr(self), columns, more=len(self) - MOST_ROWS, note=self.cascade.promise)

    @property
    def _names(self) -> list[str]:
        return [stage.name for stage in self.cascade.stages]

    @property
    def answered(self) -> NDArray[np.bool_]:
        return np.asarray(self.answered_by >= 0)

    @property
    def cost(self) -> NDArray[np.float64]:
        """Of the stages that were asked, of each question."""
        cost = np.zeros(len(self))
        for at, stage in enumerate(self.cascade.stages):
            if stage.asked:
                cost[self._asked[at]] += stage.cost
        return cost

    @cached_property
    def _asked(self) -> list[NDArray[np.bool_]]:
        """Which questions each stage was asked: those that get there and have votes there."""
        asked = []
        for at, rows in enumerate(self.rows):
            gets_there = (self.answered_by < 0) | (self.answered_by >= at)
            asked.append(gets_there & (rows >= 0) & ((self.needs < 0) | (self.needs > at)) & ~self._stopped_before(at))
        return asked

    def _stopped_before(self, at: int) -> NDArray[np.bool_]:
        """Questions whose pool at an earlier stage has a size that calibration did not see."""
        stopped = np.zeros(len(self), dtype=np.bool_)
        for stage, decided, rows in zip(self.cascade.stages[:at], self.by_stage, self.rows, strict=False):
            if stage.asked and decided is not None:
                stopped |= np.append(decided.of_rare_size, False)[rows]
        return stopped

    def needing(self, stage: str) -> list[str]:
        """The ids of questions that have to be sampled for a stage; row numbers where problems have no names."""
        number = self._names.index(self.cascade.stage(stage).name)
        rows = np.flatnonzero(self.needs == number).tolist()
        return [str(row) if self.ids is None else self.ids[row] for row in rows]

    def columns(self) -> dict[str, Any]:
        """One entry per question, by name; the answer is None where no stage gives one."""
        answers = np.full(len(self), None, dtype=object)
        for at, (decided, rows) in enumerate(zip(self.by_stage, self.rows, strict=True)):
            mine = self.answered_by == at
            if decided is not None and mine.any():
                answers[mine] = decided.votes.answer[rows[mine]]
        names = np.array([*self._names, None], dtype=object)  # −1 is the last
        columns: dict[str, Any] = {} if self.ids is None else {"id": list(self.ids)}
        told = {"answer": answers, "stage": names[self.answered_by], "needs": names[self.needs], "cost": self.cost}
        return columns | told

    def to_frame(self, library: str | None = None) -> Any:
        """One row per question, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    def __getitem__(self, row: int) -> CascadeDecision:
        decisions = {}
        for at, (stage, decided, rows) in enumerate(zip(self.cascade.stages, self.by_stage, self.rows, strict=True)):
            if stage.asked and decided is not None and self._asked[at][row]:
                decisions[stage.name] = decided[int(rows[row])]
        needs = int(self.needs[row])
        named = None if self.ids is None else self.ids[row]
        return self.cascade.conclude(decisions, needs=None if needs < 0 else self._names[needs], id=named)

    def __iter__(self) -> Iterator[CascadeDecision]:
        return (self[row] for row in range(len(self)))

    def notes(self) -> list[str]:
        """What is not answered for another reason than its confidence, in words."""
        notes = []
        for stage, decided in zip(self.cascade.stages, self.by_stage, strict=True):
            if decided is None:
                continue
            if rare := int(decided.of_rare_size.sum()):
                notes.append(f"{rare} pools of stage {stage.name!r} have a number of paths that calibration did not "
                             "see: these questions are for a person")  # fmt: skip
            if decided.size_shift:
                notes.append(f"stage {stage.name!r}: {decided.size_shift}")
            if nothing := int((decided.votes.confidence == 0).sum()):
                notes.append(f"{nothing} pools of stage {stage.name!r} have no vote to go by, and go on to the next")
        return notes


def decide_table(cascade: Cascade, votes: Sequence[Votes | VotedPools]) -> CascadeDecisions:
    """Decide on many questions; see `Cascade.decide_votes`."""
    if isinstance(votes, (Votes, VotedPools)) or not 1 <= len(votes) <= len(cascade.stages):
        names = ", ".join(stage.name for stage in cascade.stages)
        raise InvalidValue(f"give the votes of each stage in order, up to {len(cascade.stages)} tables: {names}")
    tables = [VotedPools.of(table) for table in votes]
    n, first = len(tables[0]), tables[0]
    answered_by, needs = np.full(n, NOBODY, dtype=np.intp), np.full(n, NOBODY, dtype=np.intp)
    left = np.ones(n, dtype=np.bool_)
    by_stage: list[Decisions | None] = []
    places: list[Rows] = []
    for at, stage in enumerate(cascade.stages):
        if at >= len(tables):
            by_stage.append(None)
            places.append(np.full(n, NOBODY, dtype=np.intp))
        else:
            rows = matched(first, tables[at], (cascade.stages[0].name, stage.name))
            by_stage.append(stage.policy.decide_votes(tables[at].votes))
            places.append(rows)
        if not stage.asked:
            continue
        rows, decided = places[-1], by_stage[-1]
        lacking = left & (rows < 0)
        needs[lacking] = at
        here = left & ~lacking
        if decided is not None:
            answered = np.append(decided.answered, False)[rows] & here
            answered_by[answered] = at
            # A pool of a size that calibration did not see is not exchangeable: no later stage may have it.
            left = here & ~answered & ~np.append(decided.of_rare_size, False)[rows]
        else:
            left = here
    return CascadeDecisions(cascade, first.votes.ids, tuple(by_stage), tuple(places), answered_by, needs)
