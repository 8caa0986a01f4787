"""Fewer paths, the same decision: when what a whole pool would decide is certain before it is drawn (theory 4-g2).

    curtailment = Curtailment(policy, n_paths=16, question=question)
    early = curtailment.early(answers)          after each path, in order of index; None: go on
    curtailment.decision(early, answers)        what the whole pool would decide

The threshold is fixed when the question is asked, so that the decision depends on the pool alone. It is certain where
no paths that may still come can change it: neither the winner nor on which side of the threshold its key lies. Nothing
is calibrated again, and no promise changes, since each decision is the one that all paths would have brought. Rules
that stop by what looks likely are another matter: those change decisions, and have to be calibrated with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from demur.calibration import Level, Rule
from demur.errors import InvalidValue, PipelineMismatch
from demur.evidence.counts import answer_all
from demur.policy.decisions import about_question, decision_on
from demur.policy.groups import groups_asked
from demur.policy.weighing import weight_asked
from demur.records import Decision, Early, Problem, digests_of
from demur.voting.gate import Gated
from demur.voting.key import Column, Component, Jitter, Share
from demur.voting.learned import Learned
from demur.voting.normalisers import PoolZ
from demur.voting.one_pool import keys_in, vote_one
from demur.voting.prospects import Prospects, prospects
from demur.voting.reach import ANY_NUMBER, Range, unbounded
from demur.voting.recipe import DROP
from demur.voting.sources import ProblemSources, sources_of
from demur.voting.weights import Uniform

if TYPE_CHECKING:
    from demur.policy.policy import Policy
from demur.policy.system_prompts import refuse_other_systems

_ANY = (-math.inf, math.inf)
_LEAST_LEARNED = 1e-12
"""A learned confidence is at least this wherever there is something to answer."""
_BY_RULE = "by the stopping rule that it was calibrated with"
_LITTLE = (
    "the normaliser pool_z moves all weights as paths come, and one more may weigh up to {times:.3g} times as much as "
    "those before it: an answer is seldom certain before the last path, so that waves save little but on abstentions"
)


class Curtailment:
    """What is known of the decision on one question while its paths are drawn."""

    def __init__(
        self,
        policy: Policy,
        *,
        n_paths: int | None = None,
        alpha: Level | None = None,
        guarantee: str | None = None,
        tie_break: float | None = None,
        id: str | None = None,  # noqa: A002 - the record's own word
        question: str | Problem | None = None,
        group: str | Iterable[str] | None = None,
        weight: float | None = None,
        within: Range = ANY_NUMBER,
        all_scored: bool = False,
    ) -> None:
        """`n_paths` are those of a whole pool; the policy's own number unless it is given.

        What a question is decided by is given as to `Policy.decide`. `within` holds the score of every path, whatever
        it says. `all_scored`: no path will lack its score, whatever the policy does with such pools.
        """
        if policy.stopping is not None:
            raise InvalidValue(f"this policy draws paths {_BY_RULE}: there is no whole pool to decide for")
        self.policy, self.rule = policy, policy.point(alpha, guarantee)
        self.n_paths = policy.n_paths if n_paths is None else n_paths
        if not policy.strata.knows(self.n_paths):
            raise PipelineMismatch([f"n_paths is {policy.told_sizes} in the policy, {self.n_paths} here"])
        self._id, self._sets = id, policy.sets_of(self.rule)
        groups, weight = groups_asked(policy, self.rule, question, group), weight_asked(self.rule, question, weight)
        refuse_other_systems(policy, [question])
        text = question.question if isinstance(question, Problem) else question
        likeness = None if policy.outliers is None else policy.outliers.likeness([text])
        self._about = about_question(policy.recipe.names, groups, weight, likeness)
        self.threshold = self.rule.threshold_of(self.n_paths, self._about.groups, self._about.weight)
        self._unscored, self._all_scored = policy.upstream.score.get("unscored"), all_scored
        stand_in = self._unscored if isinstance(self._unscored, (int, float)) else within[1]
        self._within = within if all_scored else (min(within[0], stand_in), max(within[1], stand_in))
        first = policy.recipe.key[0]
        self._closed = isinstance(first, Gated) and bool(first.gate.closes([text])[0])
        self._first = first.inner if isinstance(first, Gated) else first
        asked, folded = digests_of(question)
        sources = sources_of(1, [asked], [id], [folded])
        self._ties = [_known(part, sources, tie_break) for part in policy.recipe.ties]

    def early(self, answers: Sequence[Any], scores: Sequence[float | None] | None = None) -> Early | None:
        """What the whole pool would decide, given its first paths; None where that is not certain, or they are all."""
        drawn = len(answers)
        left = self.n_paths - drawn
        if left <= 0 or not drawn:
            return None
        keys, numbers = keys_in(self.policy.recipe, answers), _numbers(scores)
        if scores is not None and numbers is None:
            if self._unscored is None or not all(map(_fits, scores)):
                return None  # the whole pool will be refused, and told why
            if self._unscored == DROP:
                return Early(None, drawn, self.n_paths, 0.0, 0.0)
            numbers = [self._unscored if score is None else score for score in scores]
        found = prospects(self.policy.recipe, keys, numbers, left, self._within)
        least, most = self._bounds(found)
        answered = _above(least, self.threshold) and not self._about.unlike
        if answered and self._votes(scores):
            return Early(found.leader, drawn, self.n_paths, found.least, found.most)
        if self._sets is None and (self._about.unlike or not _may_exceed(most, self.threshold)):
            return Early(None, drawn, self.n_paths, found.least, found.most)
        return None

    def decision(self, early: Early, answers: Sequence[Any], scores: Sequence[float | None] | None = None) -> Decision:
        """The decision of the whole pool, told by the paths that settled it."""
        recipe, answered = self.policy.recipe, early.answer is not None
        counted: Any = scores if not isinstance(recipe.weight, Uniform) or self._unscored == DROP else None
        plain = replace(recipe, key=(Share(),))
        vote = vote_one(plain, answers, counted, id=self._id, unscored=self._unscored)
        least, most = self._bounds(Prospects(early.answer, early.least, early.most))
        key, confidence = (least, early.least) if answered else (most, early.most)
        whole = replace(vote, n_paths=early.of, confidence=confidence, key=key, answer=early.answer)
        known = self._about.groups, self._about.weight
        p_value = self.rule.p_value_of(self.policy.strata, key, early.of, *known)
        seen = self.policy.strata
        return decision_on(whole, self.rule, p_value, answered=answered, seen=seen, about=self._about, early=early)

    def _bounds(self, found: Prospects) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The smallest key that the leader may have, and the largest of any answer."""
        least, most = found.least, found.most
        if not isinstance(self._first, Share):
            least, most = _LEAST_LEARNED if isinstance(self._first, Learned) and least > 0 else 0.0, 1.0
        if self._closed:
            least = most = 0.0
        return (least, *(low for low, _ in self._ties)), (most, *(high for _, high in self._ties))

    def _votes(self, scores: Any) -> bool:
        """Whether the whole pool votes: none does where a path that is to come may lack a score."""
        return scores is None or self._all_scored or self._unscored != DROP


def savings_note(policy: Policy, *, n_paths: int | None = None, **known: Any) -> str:
    """Why hardly a path, or none, can be saved by stopping early, in words; blank where some can.

    What is known besides is given as to `never_early`.
    """
    if told := never_early(policy, n_paths=n_paths, **known):
        return told
    size, beta = policy.n_paths if n_paths is None else n_paths, getattr(policy.recipe.weight, "beta", 0.0)
    if policy.recipe.normaliser.name != PoolZ.name or beta == 0:
        return ""
    times = math.exp(min(700.0, beta * size / math.sqrt(size - 1)))
    return _LITTLE.format(times=times) if times > size else ""


def never_early(
    policy: Policy,
    *,
    n_paths: int | None = None,
    alpha: Level | None = None,
    guarantee: str | None = None,
    within: Range = ANY_NUMBER,
    needs_whole_pool: str | None = None,
) -> str:
    """Why no decision is certain before the last path, in words; blank where one may be.

    `within` holds the score of every path; `needs_whole_pool` names it where it looks at the whole pool at once.
    """
    rule, recipe = policy.point(alpha, guarantee), policy.recipe
    if policy.stopping is not None:
        return f"the policy draws paths {_BY_RULE}, which is when they end"
    size = policy.n_paths if n_paths is None else n_paths
    first = recipe.key[0].inner if isinstance(recipe.key[0], Gated) else recipe.key[0]
    if size == 1:
        return "a pool has one path"
    if rule.never_answers:
        return ""  # certain from the first path
    if not isinstance(first, Share) and not _answers_all(rule):
        return f"the {first.name} confidence looks at the whole pool, so that nothing is certain before the last path"
    if isinstance(recipe.weight, Uniform):
        return ""
    if needs_whole_pool is not None:
        return f"the score {needs_whole_pool} looks at the whole pool, so that no weight is known before the last path"
    return unbounded(recipe, within)


def _answers_all(rule: Rule) -> bool:
    return rule.lowest == answer_all(len(rule.threshold_key))


def _known(part: Component, sources: ProblemSources, column: float | None) -> tuple[float, float]:
    """Between which numbers a tie-break will lie: exactly, where it depends on the question alone."""
    if isinstance(part, Jitter):
        drawn = float(part.draw(sources)[0])
        return drawn, drawn
    if isinstance(part, Column) and column is not None:
        if isinstance(column, bool) or not math.isfinite(column):
            raise InvalidValue(f"tie_break must be a finite number, got {column!r:.60}")
        return float(column), float(column)
    return _ANY


def _above(least: Sequence[float], threshold: Sequence[float]) -> bool:
    """Whether every key that is at least this, number by number, exceeds the threshold."""
    for low, bound in zip(least, threshold, strict=True):
        if low != bound:
            return low > bound
    return False


def _may_exceed(most: Sequence[float], threshold: Sequence[float]) -> bool:
    """Whether some key that is at most this, number by number, exceeds the threshold."""
    for high, bound in zip(most, threshold, strict=True):
        if high != bound:
            return high > bound
    return False


def _fits(score: Any) -> bool:
    return score is None or (isinstance(score, (int, float)) and math.isfinite(score))


def _numbers(scores: Sequence[float | None] | None) -> list[float] | None:
    """Scores without gaps; None where there are some, or none at all."""
    if scores is None or any(score is None or not math.isfinite(score) for score in scores):
        return None
    return [float(score) for score in scores if score is not None]
