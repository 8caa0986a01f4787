"""From labelled votes to a policy."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from numpy.typing import ArrayLike

from demur.calibration import CLUSTER, QUESTION, Grouped, Guarantee, Level, Marginal, Shifted, settle_by_size
from demur.calibration.answer_sets import AnswerSets, SetRule
from demur.calibration.choices import choices_of
from demur.calibration.down_to import DownTo, refuse_labels_below
from demur.calibration.grouped import refuse_without_groups
from demur.calibration.partial_labels import refuse_all_labels_needed
from demur.errors import InfeasibleWarning, InsufficientCalibration, InvalidValue
from demur.evidence.counts import ThresholdKey
from demur.evidence.strata import Strata
from demur.policy.document import level_of, reach_of
from demur.policy.judged import JudgedVotes, judged_votes
from demur.policy.outliers import gate_on, refuse_about_answers
from demur.policy.policy import Policy
from demur.policy.seen import Seen
from demur.policy.system_prompts import systems_of
from demur.policy.tuned import Tuned
from demur.pools.checks import Checks
from demur.pools.fitted_questions import refuse_fitted_questions, refuse_gated
from demur.pools.label_rule import LabelRule
from demur.pools.splits import Texts
from demur.pools.voted_pools import LabelledCases, VotedPools
from demur.questions.density_ratio import DensityRatio
from demur.records import is_nothing
from demur.voting.problems import Problems
from demur.voting.votes import Votes

Alphas = Level | Sequence[Level]
Guarantees = Guarantee | Sequence[Guarantee]


def calibrate(
    votes: Votes | VotedPools,
    correct: ArrayLike | None = None,
    *,
    alpha: Alphas | None = None,
    guarantee: Guarantees | None = None,
    clusters: Texts | None = None,
    questions: Texts | None = None,
    sizes_by_chance: bool = False,
    partly_labelled: bool = False,
    down_to: DownTo | None = None,
    answer_sets: AnswerSets | None = None,
    outlier_level: float | None = None,
    checked: ArrayLike | Checks | None = None,
    tuned: Tuned | None = None,
    hold_out: float = 0.0,
    seed: int = 0,
    strict: bool = False,
) -> Policy:
    """Calibrate a policy on labelled votes: voted pools, or votes with one label each.

    `alpha=a` is short for `guarantee=Marginal(a)`; both take several. Rows that share a cluster or a question text
    count once. `hold_out` keeps a share of the problems back, drawn by the seed, for an audit. Too few votes give a
    policy that abstains always, with a warning; `strict` raises instead.
    Where pools differ in size, the promise is kept for each size by itself, and sizes that are too rare are not
    answered. `sizes_by_chance` declares that sizes vary by chance in use as they do here: then one threshold serves
    all. So it does where a stopping rule made them, which is part of the policy: use draws by the same rule.
    `partly_labelled` says that some labels may be missing (None, NaN): those votes count as wrong. The promise holds
    whichever were labelled and why, as long as all the votes that were to be labelled are given, and a `Smoothed`
    guarantee was made before the first label.
    `down_to` says that all votes above a key are labelled, and no others, and that the key was fixed before the first
    label: then batches may be selected from too (`Policy.select`). Votes that come with labels from a file that was
    begun so know it themselves.
    `answer_sets` keeps a share of the problems from the thresholds, drawn by the seed, to calibrate sets of answers for
    the questions that the policy abstains from.
    `outlier_level` has the policy abstain as well on questions that are unlike the calibration ones by their texts: on
    at most that share of questions like them. Thresholds stay what they are, and promises about all questions hold; one
    about the answers given needs a gate in the key instead (`vote(…, gate=)`).
    `checked` says that labels are a judge's, and what people found who checked a random part of the votes: one label
    each, None or NaN where nobody looked. Then the checked votes alone calibrate, with people's labels; with
    `JudgeMarginal` and `JudgeHighProbability` the judge's labels of the others do too. Either way the promise is about
    what people call wrong, and the policy tells how often the judge's "right" is false.
    `tuned` is a way to vote that was chosen on some of the problems (`tune`): those are left out, and votes that were
    made another way are refused.
    """
    given = VotedPools.of(votes, correct, questions=questions, clusters=clusters, partly_labelled=partly_labelled)
    # Before anything else: without labels there is nothing to calibrate on, and none is left out silently.
    if checked is None or given.correct is not None:
        given.labels_so_far if partly_labelled else given.labelled  # noqa: B018
    guarantees = as_guarantees(alpha, guarantee)
    _refuse_together(guarantees, answer_sets, tuned=tuned is not None, checked=checked is not None)
    if down_to is not None and (checked is not None or not partly_labelled):
        raise InvalidValue(
            "where labelling ends is for votes that are labelled in part, and not to check a judge",
            "give {partly_labelled=True}, or leave {down_to} out",
        )
    given = given if tuned is None else tuned.rest(given)
    judged = _by_judge(given, checked, guarantees, hold_out)
    given, left_out = judged.voted, 0 if checked is None else len(given) - len(given.scored)
    if given.known is not None:
        _refuse_hold_out(hold_out, "the labels")
        if judged.missed is None:
            refuse_all_labels_needed(guarantees)
    if hold_out:
        _refuse_nameless(given)
        given = given.take(given.split(hold_out=hold_out, seed=seed).calibration)
    every_vote, for_sets = given.scored, None
    shift = _ratio_of(guarantees)
    _refuse_fitted(every_vote, shift)
    voted = every_vote
    if answer_sets is not None:
        voted, for_sets = _without_those_for_sets(every_vote, answer_sets, seed)
    sizes_by_chance |= voted.votes.stopping is not None
    clustered = judged.clustered or voted.clustered
    evidence, every = _evidence(voted, guarantees, by_chance=sizes_by_chance, clustered=clustered)
    evidence, unit = replace(evidence, missed=judged.missed), QUESTION if every is None else CLUSTER
    outliers = None if outlier_level is None else gate_on(voted, outlier_level)
    told = (unit, judged.rule.wrong, level_of(outliers))
    points = tuple(settle_by_size(one, evidence, *told) for one in guarantees)
    if outliers is not None:
        refuse_about_answers(points, sets=answer_sets is not None)
    for rule in points:
        if not rule.feasible:
            if strict:
                raise InsufficientCalibration(rule.too_few)
            warnings.warn(rule.too_few + "; the policy abstains always", InfeasibleWarning, stacklevel=2)
    calibrated = Problems.of(given.votes.ids or (), given.questions, given.clusters) | given.votes.fitted_on
    drew = seed if hold_out or answer_sets is not None else None
    seen = Seen.by(calibrated if tuned is None else calibrated | tuned.problems, hold_out or None, drew)
    recipe, upstream, unscored = voted.votes.recipe, voted.votes.upstream, left_out + len(given) - len(every_vote)
    sets: tuple[SetRule, ...] = ()
    if answer_sets is not None and for_sets is not None:
        sets = tuple(answer_sets.settle(for_sets, rule, by_chance=sizes_by_chance) for rule in points)
    parts = (points, evidence, recipe, upstream, seen, unit, every, unscored, judged.rule)
    return Policy(*parts, sets, judged.check, shift, outliers, _label_end(voted, evidence, down_to), systems_of(given))


def _refuse_together(
    guarantees: Sequence[Guarantee], answer_sets: AnswerSets | None, *, tuned: bool, checked: bool
) -> None:
    """Raise where two things are asked for that do not go together."""
    if tuned and checked:
        raise InvalidValue(
            "a vote that was tuned and a judge that people checked do not go together", "leave {tuned} or {checked} out"
        )
    if checked and answer_sets is not None:
        raise InvalidValue(
            "answer sets need gold, and people who check a judge say of votes alone whether they are right",
            "leave {answer_sets} out",
        )
    if answer_sets is not None and (choices := max(map(choices_of, guarantees))) > 1:
        raise InvalidValue(
            f"answer sets know no correction for a choice from {choices} ways to vote by the labels that calibrate",
            "choose on other problems, or leave {answer_sets} out",
        )
    if answer_sets is not None and any(isinstance(one, Shifted) for one in guarantees):
        raise InvalidValue(
            "answer sets are promised of questions that are exchangeable with the calibration ones, and a promise "
            "under shift is about others",
            "leave one of the two out",
        )


def _by_judge(
    given: VotedPools, checked: ArrayLike | Checks | None, guarantees: Sequence[Guarantee], hold_out: float
) -> JudgedVotes:
    """The votes that calibrate, and what is known of a judge who labelled them, where one did."""
    if checked is None:
        return JudgedVotes(given, None, LabelRule() if given.labels is None else given.labels.rule, None)
    _refuse_hold_out(hold_out, "people's labels")
    checks = checked if isinstance(checked, Checks) else Checks.of(checked, len(given))
    return judged_votes(given, checks, guarantees)


def _refuse_fitted(voted: VotedPools, shift: DensityRatio | None) -> None:
    """Raise if what makes, gates or weighs these votes was fitted on them, or lacks what it looks at."""
    voted.refuse_fitted()
    voted.refuse_without_jitter()
    refuse_gated(voted)
    if shift is not None:
        refuse_fitted_questions(voted, shift.fitted_on, "the weights")


def _evidence(
    voted: VotedPools, guarantees: Iterable[Guarantee], *, by_chance: bool, clustered: bool
) -> tuple[Strata, Strata | None]:
    """The votes that count, and those on all questions where clusters are what counts."""
    by_group = any(isinstance(one, Grouped) for one in guarantees)
    if by_group:
        refuse_without_groups(voted.votes.cases)
    reach = reach_of(voted.votes.stopping)
    counted = _strata(voted.counted_cases, reach, by_group=by_group, by_chance=by_chance)
    if not clustered:
        return counted, None
    return counted, _strata(voted.cases_of(voted.distinct), reach, by_group=by_group, by_chance=by_chance)


def _label_end(voted: VotedPools, evidence: Strata, down_to: DownTo | None) -> ThresholdKey | None:
    """The key at which labelling ended, by what was fixed before; None where nothing was, or where all have labels."""
    if down_to is not None and voted.down_to is not None:
        raise InvalidValue("these votes know where their labels end", "leave {down_to} out")
    if down_to is not None and not isinstance(down_to, DownTo):
        raise InvalidValue(f"down_to must be a DownTo object, got {down_to!r:.60}")
    key = voted.down_to if down_to is None else down_to.key(voted.counted_cases[0].keys)
    if key is None:
        return None
    refuse_labels_below(evidence.pooled, key)
    return key if evidence.n_unlabelled else None


def _ratio_of(guarantees: Iterable[Guarantee]) -> DensityRatio | None:
    """What weights were fitted by; one ratio in a policy."""
    shifted = [one for one in guarantees if isinstance(one, Shifted)]
    kinds = {one.weights if isinstance(one.weights, str) else one.weights.fingerprint for one in shifted}
    if len(kinds) > 1:
        raise InvalidValue("a policy weights questions in one way, and these guarantees have several")
    return shifted[0].ratio if shifted else None


def _without_those_for_sets(voted: VotedPools, wanted: AnswerSets, seed: int) -> tuple[VotedPools, VotedPools]:
    """The votes that set thresholds, and those that calibrate answer sets."""
    if not isinstance(wanted, AnswerSets):
        raise InvalidValue(f"answer_sets must be an AnswerSets object, got {wanted!r:.60}")
    wanted.refuse_others(voted)
    parts = voted.split(hold_out=wanted.share, seed=seed)
    if not len(parts.test) or not len(parts.calibration):
        raise InvalidValue(
            f"a share of {wanted.share:g} of {len(voted.counted)} problems leaves none for thresholds or none for sets",
            "keep another share for sets, or give more problems",
        )
    return voted.take(parts.calibration), voted.take(parts.test)


def _refuse_hold_out(hold_out: float, labels: str) -> None:
    if hold_out:
        raise InvalidValue(
            f"hold_out = {hold_out:g} keeps problems back for an audit, which needs {labels} of all of them",
            "leave {hold_out} out, and audit on other problems",
        )


def _strata(labelled: LabelledCases, reach: tuple[int, int] | None, *, by_group: bool, by_chance: bool) -> Strata:
    """Votes as counts: by group only where a promise is, for whatever else a file may hold under that name."""
    cases, correct, known = labelled
    strata = Strata.of(cases if by_group else cases.without_groups(), correct, known, by_chance=by_chance)
    return replace(strata, reach=reach)


def _refuse_nameless(voted: VotedPools) -> None:
    """Raise if something does not tell one problem from another: an audit could not leave out those that calibrated."""
    named = voted.votes.ids is not None or any(
        column is not None and not any(map(is_nothing, column)) for column in (voted.questions, voted.clusters)
    )
    if not named:
        raise InvalidValue("problems without names cannot be kept back: nothing tells them apart", "vote with {ids}")


def as_guarantees(alpha: Alphas | None, guarantee: Guarantees | None) -> list[Guarantee]:
    """What was asked for, the smallest alpha first."""
    if (alpha is None) == (guarantee is None):
        raise InvalidValue("give either alpha or guarantee")
    wanted: list[Guarantee]
    if guarantee is not None:
        wanted = list(guarantee) if isinstance(guarantee, Sequence) else [guarantee]
        if not all(isinstance(one, Guarantee) for one in wanted):
            raise InvalidValue(
                "guarantee must be Marginal, HighProbability, Selective, Grouped or another such object, got "
                f"{guarantee!r:.60}"
            )
    else:
        levels: list[Any] = [alpha] if isinstance(alpha, str) or not isinstance(alpha, Iterable) else list(alpha)
        wanted = [Marginal(level) for level in levels]
    if not wanted:
        raise InvalidValue("give at least one alpha")
    wanted.sort(key=lambda one: (one.alpha, one.name))
    for first, second in pairwise(wanted):
        if (first.alpha, first.name) == (second.alpha, second.name):
            raise InvalidValue(f"alpha = {first.alpha:g} occurs twice for the guarantee {first.name}")
    return wanted
