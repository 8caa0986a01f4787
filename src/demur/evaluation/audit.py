"""Is a realised error rate consistent with the promise? Exact laws, not rules of thumb.

A calibrated policy's true error rate is itself random, Beta(k, n + 1 − k), so the number of errors on N fresh
questions is beta-binomial: much wider than a binomial at alpha. Only the upper tail speaks against the promise; ties
and scarce errors make low counts likely. Small p-values say that the questions are not exchangeable with the
calibration ones, or that votes were made another way.

A promise about the answers given (`Selective`) is judged by them alone: given how many there are, the wrong ones are at
most binomial at alpha, unless calibration was one of the share delta in which the promise fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import ArrayLike

from demur.calibration import CLUSTER, QUESTION, GroupedRule, Level, Rule, forecast
from demur.errors import CalibrationLeak, InvalidValue
from demur.evaluation.group_audit import GroupAudit, audit_groups
from demur.evaluation.outlook import Outlook, audit_outlook
from demur.evaluation.set_audit import SetAudit, audit_sets
from demur.evaluation.verdicts import NOT_CONSISTENT, UNUSUAL, verdict_of
from demur.evidence.counts import Evidence
from demur.evidence.frontier import Frontier
from demur.evidence.laws import CountLaw
from demur.policy.decisions import size_shift_note
from demur.policy.policy import Policy
from demur.pools.fitted_questions import refuse_fitted_tests
from demur.pools.splits import Rows, Texts
from demur.pools.voted_pools import VotedPools
from demur.shown.frames import frame_of
from demur.shown.html import html_of_columns
from demur.voting.votes import Votes


@dataclass(frozen=True)
class Consistency:
    """Whether a number of errors fits the promise of one rule."""

    rule: Rule
    n: int
    """Audited questions."""
    errors: int
    """Questions answered wrongly."""
    confident_error: float
    usual_at_most: float
    """In 95 % of such audits the rate is no higher; ties and scarce errors make it lower still. Like all rates here, of
    all audited questions; where the promise is about answers, given how many there are."""
    interval: tuple[float, float]
    """Where the rate lies in 95 % of such audits, too low and too high left out alike, if there are no ties."""
    p_value: float
    """P(at least so many errors) if the promise holds."""
    consistent: bool
    verdict: str

    @staticmethod
    def of(
        rule: Rule,
        errors: int,
        n: int,
        *,
        answered: int | None = None,
        points: int = 1,
        law: CountLaw | None = None,
        unit: str | None = None,
    ) -> Consistency:
        """From the two bare numbers; `points` is how many rules are audited together.

        `law` is that of the errors on these very votes, where pools of different sizes have one of their own, and
        `unit` is what was counted, if that is not what the rule counts. A promise about the answers given needs to
        know how many were `answered`.
        """
        if not 0 <= errors <= n or n < 1:
            raise InvalidValue(f"errors must lie between 0 and the number of questions, got {errors} of {n}")
        law = law or rule.law
        if rule.among_answers and answered is None:
            raise InvalidValue(
                f"the {rule.guarantee.name} guarantee is about the answers given: say how many of the {n} "
                f"{unit or rule.unit}s were answered, or audit the pools themselves"
            )
        judged = rule.judged(answered or 0, n)
        if errors > judged:
            raise InvalidValue(f"no more than the {judged} questions answered can be answered wrongly, got {errors}")
        low, high = law.interval(judged)
        limit, p_value = law.usual_at_most(judged), law.upper_tail(errors, judged)
        consistent = verdict_of(p_value, points) != NOT_CONSISTENT
        counted = f"{judged} answers" if rule.among_answers else f"{n} {unit or rule.unit}s"
        verdict = _verdict(rule, counted, errors / max(judged, 1), errors, p_value, consistent=consistent)
        verdict = f"{verdict} {rule.law_note}".rstrip()
        limits = limit / n, (low / n, high / n)
        return Consistency(rule, n, errors, errors / n, *limits, p_value, consistent, verdict)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        names = ("errors", "confident_error", "usual_at_most", "interval", "p_value", "consistent", "verdict")
        rule = self.rule
        known = {"alpha": rule.alpha, "guarantee": rule.guarantee.name, "feasible": rule.feasible}
        return {**known, "threshold": rule.threshold, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Audit(Consistency):
    """Realised rates of one operating point on labelled questions it has not seen."""

    expected_confident_error: float
    """The rate that the policy's forecast foretells."""
    answered: float
    selective_accuracy: float
    """NaN where nothing was answered."""
    false_abstention: float
    of_rare_size: int
    """Questions that were not answered because too few calibration pools have as many paths."""
    unscored: int
    """Questions that were not answered because a path has no score."""
    confident_error_per_question: float
    """Over all questions, where clusters are counted; else the rate itself. No promise is about it."""
    outlook: Outlook
    """What was to be expected of such an audit."""
    sets: SetAudit | None = None
    """What became of the answer sets of questions abstained from, where the policy has some and gold is there."""
    groups: list[GroupAudit] = field(default_factory=list)
    """Each group by its own law, where the promise is per group; then a group that fails fails the audit."""
    outliers: int | None = None
    """Questions that were not answered because they are unlike the calibration ones, where the policy looks at that."""

    def __repr__(self) -> str:
        return f"Audit(alpha {self.rule.alpha:g}: {self.verdict})"

    def _repr_html_(self) -> str:
        return html_of_columns("Audit", {name: [value] for name, value in self.row().items()}, note=self.verdict)

    def row(self) -> dict[str, Any]:
        """What was promised, expected and found, by name."""
        found = ("n", "errors", "confident_error", "expected_confident_error", "usual_at_most", "p_value", "answered")
        known = {name: getattr(self, name) for name in (*found, "selective_accuracy", "false_abstention", "consistent")}
        sets = {} if self.sets is None else {"set_coverage": self.sets.coverage, "mean_set_size": self.sets.mean_size}
        return {"alpha": self.rule.alpha, "guarantee": self.rule.guarantee.name, **known, **sets}

    def document(self) -> dict[str, Any]:
        """As plain values."""
        rates = (
            "expected_confident_error",
            "answered",
            "selective_accuracy",
            "false_abstention",
            "of_rare_size",
            "unscored",
        )
        known = {name: getattr(self, name) for name in (*rates, "confident_error_per_question")}
        sets = {} if self.sets is None else {"answer_sets": self.sets.document()}
        groups = {"groups": [group.document() for group in self.groups]} if self.groups else {}
        outliers = {} if self.outliers is None else {"outliers": self.outliers}
        return {**super().document(), **known, **sets, **outliers, "outlook": self.outlook.document(), **groups}


@dataclass(frozen=True, eq=False)
class PolicyAudit:
    """Every operating point of a policy on problems that it has not seen; `audit[0]` is the strictest."""

    problems: int
    left_out: int
    """Problems that calibrated the policy, or belong with one that did."""
    duplicates: int
    """Fresh problems that share a cluster or a question text with one that counts."""
    n: int
    unit: str
    """What n counts: questions, or clusters of them."""
    questions: int
    """Fresh questions, those of one cluster counted each."""
    frontier: Frontier
    """Of the audited votes."""
    points: list[Audit]
    size_shift: str = ""
    """That the fresh pools have other sizes than calibration's, though sizes vary by chance; blank if they have not."""

    def __repr__(self) -> str:
        told = "; ".join(f"alpha {at.rule.alpha:g}: {at.errors} wrong, p = {at.p_value:.3g}" for at in self.points)
        return f"PolicyAudit({self.n:,} {self.unit}s; {told})"

    def _repr_html_(self) -> str:
        note = " ".join(point.verdict for point in self.points)
        return html_of_columns(f"Audit on {self.n:,} {self.unit}s", self.columns(), note=note)

    def columns(self) -> dict[str, list[Any]]:
        """One entry per operating point, by name."""
        rows = [point.row() for point in self.points]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def to_frame(self, library: str | None = None) -> Any:
        """One row per operating point, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    def __getitem__(self, index: int) -> Audit:
        return self.points[index]

    def __iter__(self) -> Iterator[Audit]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)


def audit_policy(
    policy: Policy,
    votes: Votes | VotedPools,
    correct: ArrayLike | None = None,
    *,
    alpha: Level | None = None,
    guarantee: str | None = None,
    questions: Texts | None = None,
    clusters: Texts | None = None,
    drop_seen: bool = False,
) -> PolicyAudit:
    """Audit every operating point of a policy, or the one that `alpha` and `guarantee` name, which may be any alpha of
    a promise that is kept at all of them. Votes and labels must be made as calibrated, on unseen problems.

    Problems are known by their ids, question texts and clusters, as far as those are given. One of each unit counts.
    Where some of the problems calibrated the policy, that is an error, unless others were held out then, or `drop_seen`
    leaves them out: the others are audited.
    """
    rules = policy.points if alpha is None and guarantee is None else (policy.point(alpha, guarantee),)
    voted = VotedPools.of(votes, correct, questions=questions, clusters=clusters)
    labels = voted.labelled
    policy.refuse_other_labels(voted)
    if not len(voted):
        raise InvalidValue("an audit needs at least one labelled vote")
    if policy.seen.hold_out is None and not drop_seen:
        policy.refuse_voted(voted)
    seen = voted.seen_by(policy.seen)
    fresh = voted.counted[~seen[voted.counted]]
    if not len(fresh):
        raise CalibrationLeak(f"all {len(voted)} problems calibrated this policy", "give other problems")
    refuse_fitted_tests(voted, policy.recipe.gate, policy.shift, fresh)
    left_out, n = int(seen.sum()), len(fresh)
    unit, new = CLUSTER if voted.clustered else QUESTION, voted.distinct[~seen[voted.distinct]]
    points = [_audit(policy, rule, voted, fresh, new, unit, len(rules)) for rule in rules]
    frontier = Frontier.of(Evidence.of(voted.votes.key[fresh], labels[fresh]))
    duplicates = len(voted) - left_out - n
    every = int((~seen[voted.distinct]).sum()) if voted.clustered else n
    sizes = Counter(voted.votes.n_paths[fresh].tolist())
    shift = size_shift_note(policy.strata, sizes) if unit == QUESTION else ""
    return PolicyAudit(len(voted), left_out, duplicates, n, unit, every, frontier, points, shift)


def _audit(policy: Policy, rule: Rule, voted: VotedPools, fresh: Rows, new: Rows, unit: str, points: int) -> Audit:
    """One rule on the rows that count, `fresh`, and on all questions that are `new`, where clusters have several.

    `points` is how many are audited together.
    """
    named: dict[str, Any] = {"alpha": rule.guarantee.level, "guarantee": rule.guarantee.name}
    decided = policy.decide_votes(voted.votes, **named)
    every_error = decided.answered & ~voted.labelled
    is_answered, labels = decided.answered[fresh], voted.labelled[fresh]
    n, given, errors = len(fresh), int(is_answered.sum()), int(every_error[fresh].sum())
    cases = voted.votes.cases.take(fresh)
    strata = (cases if rule.needs_groups else cases.without_groups()).counts()
    law = policy.law_on(rule, strata)
    ahead = audit_outlook(policy, strata, **named, answered=given)
    found = Consistency.of(rule, errors, n, answered=given, points=points, law=law, unit=unit)
    groups = []
    if isinstance(rule, GroupedRule):
        groups = audit_groups(rule, policy.strata, cases, is_answered, labels, points)
        found = _with_groups(found, groups)
    return Audit(
        **vars(found),
        groups=groups,
        expected_confident_error=forecast(policy.strata, rule).expected_confident_error,
        answered=given / n,
        selective_accuracy=(given - errors) / given if given else float("nan"),
        false_abstention=int((~is_answered & labels).sum()) / n,
        of_rare_size=int(decided.of_rare_size[fresh].sum()),
        unscored=int(decided.unscored[fresh].sum()),
        outliers=None if decided.likeness is None else int(decided.outliers[fresh].sum()),
        confident_error_per_question=float(every_error[new].mean()) if voted.clustered else errors / n,
        outlook=ahead if rule.among_answers else replace(ahead, unit=unit),
        sets=audit_sets(decided, voted, fresh, points),
    )


def _with_groups(found: Consistency, groups: list[GroupAudit]) -> Consistency:
    """The verdict on all groups together, unless one of them fails by itself."""
    failed = [group for group in groups if not group.consistent]
    if not failed:
        return found
    told = ", ".join(f"{group.group} ({group.errors} of {group.n}, p = {group.p_value:.3g})" for group in failed)
    verdict = (
        f"Not consistent with the promise in {len(failed)} of {len(groups)} groups, wrong answers among questions: "
        f"{told}. These questions are probably not exchangeable with the calibration ones of their group, or something "
        "before the vote has changed; calibrate again on questions like these."
    )
    return replace(found, consistent=False, verdict=verdict)


def _verdict(rule: Rule, counted: str, rate: float, errors: int, p_value: float, *, consistent: bool) -> str:
    if not rule.feasible:
        return f"Abstains always: {rule.n} calibration {rule.unit}s are too few for alpha = {rule.alpha:g}."
    if rule.among_answers and rule.never_answers:
        return f"Abstains always, so nothing was answered wrongly: alpha = {rule.alpha:g} ({rule.guarantee.name})."
    told = f"{rate:.3g} against alpha = {rule.alpha:g}, p = {p_value:.3g}"
    among = "among" if rule.among_answers else "in"
    counted = f"{errors} wrong answer{'s' * (errors != 1)} {among} {counted} ({told})"
    if p_value >= UNUSUAL:
        return f"Consistent with the promise: {counted}."
    if consistent:
        return f"More errors than usual, but chance alone does this now and then: {counted}. Audit more questions."
    unlucky = ""
    if rule.among_answers:
        unlucky = ", unless calibration was one of the few for which the promise does not hold"
    return (
        f"Not consistent with the promise: {counted}. These questions are probably not exchangeable with the "
        f"calibration ones, or something before the vote has changed{unlucky}; calibrate again on questions like these."
    )
