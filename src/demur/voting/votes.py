"""Score-weighted voting: from a table of answers and scores to (ŷ, ν), one vote per pool.

Notation (paper §3.1):
    answers      a(T⁽ʲ⁾)   one per path; none where no answer could be extracted
    scores       q_j        one per path, of paths without an answer too
    weight       w          uniform, linear or exponential(β), applied after the normaliser
    tally        V_y        Σ_j w(q_j) 1[a(T⁽ʲ⁾) = y]
    answer       ŷ          argmax_y V_y; the tie rule is that of `_tally`
    confidence   ν          V_ŷ / Σ_j w(q_j): paths without an answer count below the line (departure N)

Nothing here sees a label. ν is invariant to the order of paths, to the last bit, and to the scale of the weights.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.descriptions import Description
from demur.errors import InvalidValue, NoJitterWarning
from demur.questions.outliers import OutlierGate
from demur.records import Vote, question_digest
from demur.shown.frames import frame_of
from demur.shown.html import MOST_ROWS, html_of_columns
from demur.stopping import Stopping, stopping_of
from demur.voting import normalisers
from demur.voting._exact_sums import Floats, grid, on_grid
from demur.voting.cases import Cases, GroupColumn, questions_known
from demur.voting.codes import CodedAnswers, code_answers, taken
from demur.voting.key import Beside, Component, Counted, Share, TieBreak, key_of, keys_of
from demur.voting.normalisers import Normaliser
from demur.voting.one_pool import as_written
from demur.voting.path_scores import as_scores
from demur.voting.problems import Problems
from demur.voting.recipe import Recipe
from demur.voting.rows import KeyRows
from demur.voting.sources import Sources, sources_of
from demur.voting.standings import Standings, standings
from demur.voting.stopped import Stopped, described
from demur.voting.weights import Exponential, Uniform, Weight
from demur.voting.winners import winners_of

_AT_ONCE = 256  # votes that are made records together; of more, the garbage collector goes through the lists again
_NO_JITTER = (
    "{} pools have neither a question nor an id to draw jitter from: they come last among their equals, and cannot "
    "calibrate; give questions, or ids that are the problems' own"
)


@dataclass(frozen=True, eq=False)
class Votes:
    """One vote per pool, as columns. `votes[i]` is one of them as a record.

    The table of answers and scores is kept by reference, for tallies; it is not copied.
    """

    winners: NDArray[Any]
    """ŷ: keys, None where a pool has no answer at all (codes and −1, where the table was coded)."""
    confidence: Floats
    unanimous: NDArray[np.bool_]
    key: Floats
    """What is calibrated, a column per component of the recipe's key (n × c); by itself, the confidence."""
    ids: Sequence[str] | None
    recipe: Recipe
    upstream: Description
    """What is known of the stages before the vote: model, prompt, extraction, score."""
    _answers: CodedAnswers = field(repr=False)
    _scores: Floats | None = field(repr=False)
    _fitted_on: Problems = field(default=Problems(), repr=False)
    questions: Sources | None = field(default=None, repr=False)
    """Digests of what was asked, where that is known."""
    folded: Sources | None = field(default=None, repr=False)
    """Digests of the folded questions, which jitter is drawn from; None where they are not known."""
    unscored: NDArray[np.bool_] | None = field(default=None, repr=False)
    """Pools that cast no vote because a path of theirs has no score; None where there are none."""
    written: Sequence[Mapping[Any, str]] | None = field(default=None, repr=False)
    """For each pool, how the answer behind a key is written; None where answers are their own keys."""
    groups: GroupColumn | None = field(default=None, repr=False)
    """The groups of each question; None where they are not known."""
    importance: Floats | None = field(default=None, repr=False)
    """How much each question counts; None where all count alike."""
    beside: Beside = field(default=Beside(), repr=False)
    """What else is known of the pools."""

    def __len__(self) -> int:
        return len(self.confidence)

    def __repr__(self) -> str:
        fewest, most = (int(edge(self.n_paths)) for edge in (np.min, np.max)) if len(self) else (0, 0)
        sizes = f"{most}" if fewest == most else f"{fewest} to {most}"
        mean = f", mean confidence {self.confidence.mean():.3g}" if len(self) else ""
        return f"Votes({len(self):,} pools of {sizes} paths, {self.recipe.weight.spec}{mean})"

    def _repr_html_(self) -> str:
        some = self.take(np.arange(min(len(self), MOST_ROWS)))
        return html_of_columns(repr(self), some.columns(), more=len(self) - len(some))

    def columns(self) -> dict[str, Any]:
        """One entry per vote, by name."""
        columns: dict[str, Any] = {} if self.ids is None else {"id": list(self.ids)}
        columns |= {"answer": self.answer, "confidence": self.confidence, "unanimous": self.unanimous}
        columns |= {part.name: self.key[:, at] for at, part in enumerate(self.recipe.key) if at or part.name != "share"}
        return columns | {"n_paths": np.asarray(self.n_paths)}

    def to_frame(self, library: str | None = None) -> Any:
        """One row per vote, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    def __getitem__(self, row: int) -> Vote:
        if not -len(self) <= row < len(self):
            raise IndexError(f"vote {row} of {len(self)}")
        row %= len(self)
        return next(self._made(row, row + 1))

    def __iter__(self) -> Iterator[Vote]:
        starts = range(0, len(self), _AT_ONCE)
        return chain.from_iterable(self._made(start, min(start + _AT_ONCE, len(self))) for start in starts)

    def _made(self, start: int, end: int) -> Iterator[Vote]:
        """Some votes as records; what needs no loop over them is made for all at once."""
        rows, coded = slice(start, end), self.recipe.coded
        columns = (self.winners, self.confidence, self.unanimous, self.n_paths, self.key, self._answers.codes)
        listed = zip(*(column[rows].tolist() for column in columns), strict=True)
        beside, nothing = (self.ids, self.unscored, self._answers.pools, self.written), [None] * (end - start)
        every = (nothing if column is None else column[rows] for column in beside)
        for row, whole, own, left_out, pool, spelled in zip(listed, self._on_grid(start, end), *every, strict=True):
            winner, confidence, unanimous, width, key, codes = row
            tally, support = as_written(codes[:width] if pool is None else pool, codes[:width], whole, winner, spelled)
            answer = None if winner is None or (coded and winner < 0) else spelled[winner] if spelled else winner
            answer = answer.item() if isinstance(answer, np.generic) else answer
            known = (confidence, unanimous, tally, support, sum(whole) / grid(width), width, tuple(key), own)
            yield Vote(answer, *known, bool(left_out))

    def _on_grid(self, start: int, end: int) -> Iterator[list[float]]:
        """The weight of each path of some pools, as whole numbers; neighbours of one size are weighed at once."""
        changes = np.flatnonzero(np.diff(self.n_paths[start:end])) + start + 1
        for first, last in pairwise([start, *changes.tolist(), end]):
            yield from on_grid(self._weights(first, last)).tolist()

    @cached_property
    def answer(self) -> NDArray[Any]:
        """ŷ as it is written, None where a pool has no answer at all (codes and −1, where the table was coded)."""
        if self.written is None:
            return self.winners
        answers = np.empty(len(self), dtype=object)
        pairs = zip(self.winners, self.written, strict=True)
        answers[:] = [None if key is None else spelled[key] for key, spelled in pairs]
        return answers

    @cached_property
    def description(self) -> Description:
        """How these votes came to be, all stages."""
        return replace(self.upstream, vote=self.recipe.describe())

    @property
    def stopping(self) -> Stopping | None:
        """The rule that ended these pools; None where they have all their paths."""
        return stopping_of(self.upstream.sampling)

    @cached_property
    def n_paths(self) -> NDArray[np.intp]:
        """m, the number of paths of each pool."""
        return self._answers.n_paths

    @property
    def tally(self) -> list[dict[Any, float]]:
        """V_y of every answer of every pool, in units of the pool's largest weight; the winner first."""
        return [dict(vote.tally) for vote in self]

    @property
    def support(self) -> list[dict[Any, int]]:
        """How many paths gave each answer, for every pool; the winner first."""
        return [dict(vote.support) for vote in self]

    def standings(self, rows: NDArray[np.intp]) -> Standings:
        """How answers stand to the winner in some pools."""
        return standings(self._answers.take(rows), taken(self._scores, rows), self.recipe)

    @cached_property
    def cases(self) -> Cases:
        """What a rule looks at."""
        return Cases(self.key, self.n_paths, self.groups, self.importance)

    @property
    def fitted_on(self) -> Problems:
        """The problems whose labels shaped these votes: they may not calibrate."""
        fitted = self._fitted_on | Problems(self.recipe.normaliser.fitted_on)
        for part in self.recipe.key:
            fitted |= part.fitted_on
        return fitted

    @property
    def has_answer(self) -> NDArray[np.bool_]:
        """Whether a pool has an answer at all."""
        if self.recipe.coded:
            return np.asarray(self.winners >= 0)
        return np.fromiter((key is not None for key in self.winners), dtype=np.bool_, count=len(self))

    def weights(self, row: int) -> list[float]:
        """The weight of each path of one pool, the pool's largest being 1."""
        return self._weights(row, row + 1)[0].tolist()  # type: ignore[no-any-return]

    def _weights(self, start: int, end: int) -> Floats:
        """The weights of the paths of some pools of one size."""
        width = int(self.n_paths[start])
        if self._scores is None or isinstance(self.recipe.weight, Uniform):
            return np.ones((end - start, width))
        return self.recipe.weights(self._scores[start:end, :width], slice(start, end))

    def scores_are(self, labels: NDArray[np.bool_]) -> bool:
        """Whether scores take two values only, and those of the winning paths are one where a label is true, the other
        where it is not."""
        scores = self._scores
        if scores is None:
            return False
        for rows in (slice(100), slice(None)):  # most scores have shown more than two values by then
            inside = np.arange(scores.shape[1]) < self.n_paths[rows, None]  # not what fills up smaller pools
            values = np.unique(scores[rows][inside])
            if len(values) > 2:
                return False
        if len(values) < 2:
            return False
        by_label: dict[bool, set[float]] = {True: set(), False: set()}
        for row in np.flatnonzero(self.has_answer).tolist():
            width = int(self.n_paths[row])
            pool = self._answers.codes[row, :width] if self._answers.pools is None else self._answers.pools[row]
            won = [score for key, score in zip(pool, scores[row, :width], strict=True) if key == self.winners[row]]
            by_label[bool(labels[row])].update(map(float, won))
        return len(by_label[True]) == len(by_label[False]) == 1 and by_label[True] != by_label[False]

    def take(self, rows: ArrayLike) -> Votes:
        """The votes of some rows, in that order."""
        index = np.asarray(rows)
        index = np.flatnonzero(index) if index.dtype == np.bool_ else index.astype(np.intp)
        columns = (
            "winners", "confidence", "unanimous", "key", "ids", "_scores", "questions", "folded", "unscored",
            "written", "groups", "importance",
        )  # fmt: skip
        kept: dict[str, Any] = {name: taken(getattr(self, name), index) for name in columns}
        return replace(self, _answers=self._answers.take(index), beside=self.beside.take(index), **kept)

    def counted(self, needs: Sequence[str] = (), origin: str | None = None) -> Counted:
        """What a component of the key would look at, given the numbers of paths that it needs."""
        winner, confidence, _ = winners_of(self._answers, self._scores, self.recipe)
        sources = sources_of(len(self), self.questions, self.ids, self.folded)
        return self.beside.counted(self._answers, winner, confidence, self._scores, sources, needs, origin)


def vote(
    answers: Any,
    scores: Any = None,
    *,
    weight: Weight | None = None,
    normaliser: Normaliser | None = None,
    tie_break: TieBreak = None,
    ids: Sequence[Any] | None = None,
    questions: Sequence[str | None] | None = None,
    score: str | None = None,
    columns: Mapping[str, Any] | None = None,
    origins: Sequence[Sequence[str | None]] | None = None,
    confidence: Component | None = None,
    fitted_on: Iterable[Any] = (),
    upstream: Description = Description(),  # noqa: B008 - frozen
    groups: Iterable[Any] | None = None,
    importance: ArrayLike | None = None,
    gate: OutlierGate | None = None,
    stop: Stopping | None = None,
) -> Votes:
    """Hold the vote of every pool of a table.

    `answers` is an integer array n × m (negative: no answer) or a sequence of pools of keys (None: no answer), which
    may differ in size; `scores` has the same shape. Without scores, or with `weight=uniform()`, it is the majority
    vote; with scores the weight is exponential unless told otherwise.

    `tie_break` says what ranks votes of equal confidence: `mean_score()`, `jitter(seed)`, one number per pool, or
    several of these in turn. Jitter comes last in any case, wherever `questions` or `ids` tell problems apart, unless
    `tie_break` is or ends in "none"; where none is named, scores that are given and are no weights come before it.
    It is drawn from the question, or where a pool has none from its id. `columns` holds other numbers of the paths by
    name, such as a second score that breaks ties or the `length` of their texts, and `origins` says where each path
    comes from. `confidence` leads the key in place of the winner's share: a learned one, from `fit_learned`.

    `score` names the score, and `upstream` tells of the stages before the vote, for policies to compare. Where scores
    or the tie-break were learned from labels, `fitted_on` holds the ids of those problems, which calibration then
    refuses.

    `groups` names the kind of each question, or several kinds that overlap, for promises per group; `importance` says
    how much each question counts, for promises under shift. Neither may be made of labels. A `gate` takes their
    confidence from votes on questions that are unlike its reference.

    `stop` ends each pool where the rule does, by its answers in order: `stopping.beta(0.95, wave=4)`.
    """
    table = code_answers(answers)
    if weight is None:
        weight = Uniform() if scores is None else Exponential()
    if not isinstance(weight, Weight):
        raise InvalidValue(f"weight must be uniform(), linear() or exponential(beta), got {weight!r}")
    normaliser = normaliser or normalisers.none
    if not isinstance(normaliser, Normaliser):
        raise InvalidValue(f"normaliser must be one of demur.voting.normalisers, got {normaliser!r}")
    names = None if ids is None else [str(name) for name in ids]
    if names is not None and len(names) != len(table):
        raise InvalidValue(f"ids must name each of the {len(table)} pools, got {len(names)}")
    if names is not None and len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InvalidValue(f"ids must differ; {twice!r} occurs more than once")
    asked = None if questions is None else [question_digest(question) for question in questions]
    folded = None if questions is None else [question_digest(question, fold=True) for question in questions]
    if asked is not None and len(asked) != len(table):
        raise InvalidValue(f"questions must hold one entry per pool, {len(table)} of them, got {len(asked)}")
    values = None if scores is None else as_scores(scores, table)
    if stop is not None:
        ended = Stopped.at(stop, table)
        ended.refuse_short(table.n_paths, names)
        table, columns, origins = ended.table(table), ended.columns(columns), ended.rows(origins)
        values, upstream = (
            None if values is None else values[:, : table.codes.shape[1]],
            described(upstream, ended.stopping),
        )
    told_apart = names is not None or any(question is not None for question in asked or ())
    idle, stopped = values is not None and isinstance(weight, Uniform), "stopping" in upstream.sampling
    key = key_of(tie_break, idle_score=idle, told_apart=told_apart, stopped=stopped)
    recipe = Recipe(weight, normaliser, key, table.pools is None)
    if confidence is not None:
        recipe = recipe.led_by(confidence)
    recipe = recipe.gated(gate)
    if score is not None:
        upstream = replace(upstream, score={**upstream.score, "name": score})
    named = {} if origins is None else {recipe.origin or "origin": origins}
    beside = Beside(dict(columns or {}), named, questions)
    votes = _hold(table, values, names, recipe, upstream, asked, beside, folded)
    return replace(votes, _fitted_on=Problems.of(fitted_on), **questions_known(groups, importance, len(table)))


def vote_again(
    recipe: Recipe,
    answers: Any,
    scores: Any = None,
    tie_break: Any = None,
    ids: Sequence[str] | None = None,
    questions: Sources | None = None,
    upstream: Description = Description(),  # noqa: B008 - frozen
    fitted_on: Problems = Problems(),  # noqa: B008 - frozen
    unscored: Sequence[int] = (),
    written: Sequence[Mapping[Any, str]] | None = None,
    beside: Beside = Beside(),  # noqa: B008 - frozen
    groups: Iterable[Any] | None = None,
    importance: ArrayLike | None = None,
    folded: Sources | None = None,
) -> Votes:
    """The vote of other pools, made the way `recipe` says.

    `questions` are digests, and `folded` those of the folded questions: jitter is drawn from them.

    The pools of the rows `unscored` cast no vote: a path of theirs has no score. `written` says how keys are written.
    """
    if len(unscored) and isinstance(answers, KeyRows):
        answers = answers.without(unscored)
    elif len(unscored):
        left_out = set(unscored)
        answers = [[None] * len(pool) if row in left_out else pool for row, pool in enumerate(answers)]
    table = code_answers(np.asarray(answers) if recipe.coded else answers)
    recipe = recipe.for_pools(tie_break)
    if recipe.coded != (table.pools is None):
        recipe = replace(recipe, coded=table.pools is None)
    values = None if scores is None else as_scores(scores, table)
    votes = _hold(table, values, ids, recipe, upstream, questions, beside, folded)
    mask = np.isin(np.arange(len(votes)), unscored) if len(unscored) else None
    known = questions_known(groups, importance, len(votes))
    return replace(votes, _fitted_on=fitted_on, unscored=mask, written=written, **known)


def _hold(
    table: CodedAnswers,
    scores: Floats | None,
    ids: Sequence[str] | None,
    recipe: Recipe,
    upstream: Description,
    questions: Sources | None,
    beside: Beside,
    folded: Sources | None,
) -> Votes:
    winner, confidence, unanimous = winners_of(table, scores, recipe)
    key = confidence[:, None]
    if len(recipe.key) > 1 or not isinstance(recipe.key[0], Share):
        sources = sources_of(len(table), questions, ids, folded)
        if recipe.jitter is not None and (lacking := sources.lacking):
            warnings.warn(_NO_JITTER.format(lacking), NoJitterWarning, stacklevel=3)
        known = (table, winner, confidence, scores, sources)
        key = keys_of(recipe.key, beside.counted(*known, recipe.needs, recipe.origin))
    kept = scores if recipe.keeps_scores else None
    columns = (table.keys_of(winner), confidence, unanimous, key, ids, recipe, upstream, table, kept)
    return Votes(*columns, questions=questions, folded=folded, beside=beside)
