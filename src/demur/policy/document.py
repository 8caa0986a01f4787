"""What a policy file says, and whether its numbers follow from its own evidence.

A file is data from outside: every value is checked for type and range before it is used, and thresholds are computed
again from the evidence rather than believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from demur.calibration import CLUSTER, GUARANTEES, QUESTION, Guarantee, Marginal, Rule, Shifted, settle_by_size
from demur.calibration.answer_sets import AnswerSets, SetEvidence, SetRule, is_place
from demur.calibration.guarantee import stored as stored_level
from demur.calibration.shifted import FITTED, GIVEN
from demur.descriptions import Description
from demur.errors import InvalidValue
from demur.evidence.counts import Evidence, ThresholdKey
from demur.evidence.judge_check import JudgeCheck
from demur.evidence.strata import Strata
from demur.policy.evidence_document import (
    MOST_PATHS,
    counts_of,
    down_to_document,
    down_to_of,
    evidence_of,
    rows_of,
    strata_of,
)
from demur.policy.file import Document
from demur.policy.plain_values import is_count, is_fraction, is_number, strings, typed
from demur.policy.replaced import Seeds, replaced_of
from demur.policy.seen import Seen
from demur.policy.seen_document import seen_document, seen_of
from demur.pools.label_rule import LabelRule
from demur.pools.scores import as_unscored
from demur.questions.density_ratio import DensityRatio
from demur.questions.outliers import OutlierGate
from demur.stopping import Stopping, stopping_of
from demur.version import __version__
from demur.voting.recipe import Recipe

_SETTLED = ("guarantee", "k", "threshold", "by_size", "by_group", "pooled")


@dataclass(frozen=True, eq=False)
class PolicyParts:
    """What a policy is made of."""

    points: tuple[Rule, ...]
    strata: Strata
    """The calibration votes as counts, by number of paths."""
    recipe: Recipe
    upstream: Description
    """What is known of the stages before the vote."""
    seen: Seen
    unit: str = QUESTION
    """What is counted: questions, or clusters of them."""
    every_question: Strata | None = None
    """All calibration questions, where clusters are counted."""
    unscored: int = 0
    """Pools that were left out of calibration because a path of theirs has no score."""
    labels: LabelRule = field(default_factory=LabelRule)
    """What counted as right."""
    sets: tuple[SetRule, ...] = ()
    """One for each point, where the policy gives answer sets on abstaining."""
    judge: JudgeCheck | None = None
    """Where a judge labelled the votes and people checked a random part: what they found."""
    shift: DensityRatio | None = None
    """What weights of questions are found by, where they were fitted."""
    outliers: OutlierGate | None = None
    """What tells questions that are unlike the calibration ones, where the policy abstains on those as well."""
    down_to: ThresholdKey | None = None
    """Where labelling ended at a key that was fixed before the first label: that key. Votes above it are labelled."""
    systems: frozenset[str] | None = None
    """Digests of the system prompts of the conversations that calibrated it; None where they are not known."""
    replaced: tuple[Seeds, ...] = ()
    """The seeds of policies of the same problems that this one replaced, each once."""

    @property
    def evidence(self) -> Evidence:
        """The calibration votes as counts, pools of all sizes together."""
        return self.strata.pooled

    def settled(self, guarantee: Guarantee) -> Rule:
        """What a guarantee settles on, given this policy's evidence."""
        return settle_by_size(guarantee, self.strata, self.unit, self.labels.wrong, level_of(self.outliers))

    def sets_of(self, rule: Rule) -> SetRule | None:
        """Which answers to offer where one of its rules abstains; None where the policy has no answer sets."""
        if not self.sets:
            return None
        if rule not in self.points:
            raise InvalidValue(
                f"answer sets are calibrated for what the policy abstains from at the alphas that it names, and "
                f"{rule.alpha:g} was chosen late",
                "calibrate with this alpha, or without {answer_sets}",
            )
        return self.sets[self.points.index(rule)]

    @property
    def description(self) -> Description:
        """How votes must be made to be decided by this policy."""
        return replace(self.upstream, vote=self.recipe.describe())


def reach_of(stopping: Stopping | None) -> tuple[int, int] | None:
    """The fewest and the most paths that a rule ends pools at."""
    return None if stopping is None or stopping.most is None else (min(stopping.wave, stopping.most), stopping.most)


def level_of(outliers: OutlierGate | None) -> float | None:
    """The level of a gate, where there is one."""
    return None if outliers is None else outliers.level


def to_document(parts: PolicyParts) -> Document:
    """The policy as plain values."""
    clusters = parts.every_question
    return {
        "demur": __version__,
        "points": [rule.document() for rule in parts.points],
        "n": parts.strata.n,
        "unit": parts.unit,
        "evidence": counts_of(parts.strata),
        **({} if clusters is None else {"every_question": counts_of(clusters)}),
        "sizes_by_chance": parts.strata.by_chance,
        "unscored": parts.unscored,
        **({} if parts.labels.is_plain and not parts.labels.dropped else {"labels": parts.labels.describe()}),
        **({} if not parts.sets else {"answer_sets": _set_document(parts.sets)}),
        **({} if parts.judge is None else {"judge": parts.judge.describe()}),
        **({} if parts.strata.missed is None else {"missed": rows_of(parts.strata.missed)}),
        **({} if parts.shift is None else {"shift": parts.shift.document()}),
        **({} if parts.outliers is None else {"outliers": parts.outliers.document()}),
        **({} if parts.down_to is None else {"down_to": down_to_document(parts.down_to)}),
        **({} if parts.systems is None else {"systems": sorted(parts.systems)}),
        **({} if not parts.replaced else {"replaced": [dict(seeds) for seeds in parts.replaced]}),
        "pipeline": parts.description.document(),
        "fingerprint": parts.description.fingerprint,
        "calibration": seen_document(parts.seen),
    }


def from_document(document: Document) -> PolicyParts:
    """The policy that a document describes; ValueError where it does not hold together."""
    description = description_of(document)
    recipe = Recipe.of(description.vote)
    by_chance, unit = document.get("sizes_by_chance"), document.get("unit")
    if not isinstance(by_chance, bool) or unit not in (QUESTION, CLUSTER):
        raise ValueError(f"it needs sizes_by_chance and a unit, got {by_chance!r} and {unit!r:.60}")
    stopping, width = stopping_of(description.sampling), len(recipe.key)
    if stopping is not None and not by_chance:
        raise ValueError("a stopping rule makes its sizes, and it keeps them apart")
    evidence = strata_of(document, "evidence", width=width, by_chance=by_chance)
    if (reach := reach_of(stopping)) is not None:
        if not all(evidence.between[at] in range(reach[0], reach[1] + 1) for at in (0, 1)):
            raise ValueError(f"its pools have {evidence.between} paths, and its stopping rule is {stopping}")
        evidence = replace(evidence, reach=reach)
    if document.get("n") != evidence.n:
        raise ValueError(f"its evidence counts {evidence.n} votes, and it says n = {document.get('n')!r}")
    if not is_count(unscored := document.get("unscored", 0)):
        raise ValueError(f"unscored must be a count of pools, got {unscored!r:.60}")
    every = strata_of(document, "every_question", width=width, by_chance=by_chance) if unit == CLUSTER else None
    every = every if every is None else replace(every, reach=reach)
    labels = LabelRule.of(document.get("labels"))
    judge, evidence = _judge(document, evidence, width=width)
    shift = DensityRatio.of(document["shift"]) if "shift" in document else None
    outliers = _outliers(document["outliers"], evidence.n) if "outliers" in document else None
    told = (unit, labels.wrong, level_of(outliers))
    points = tuple(_point(stored, evidence, shift, *told) for stored in typed(document, "points", list))
    order = [(rule.alpha, rule.guarantee.name) for rule in points]
    if not points or order != sorted(set(order)):
        raise ValueError("it needs at least one operating point, each guarantee once per alpha and in order")
    sets = _sets(document["answer_sets"], points, by_chance=by_chance) if "answer_sets" in document else ()
    if outliers is not None and (sets or any(rule.among_answers for rule in points)):
        raise ValueError("it abstains on outliers behind thresholds whose promise does not survive that")
    seen = seen_of(document)
    parts = (points, evidence, recipe, description, seen, unit, every, unscored, labels)
    down_to = down_to_of(document["down_to"], evidence.pooled) if "down_to" in document else None
    systems = frozenset(strings(document, "systems")) if "systems" in document else None
    replaced = replaced_of(document["replaced"]) if "replaced" in document else ()
    return PolicyParts(*parts, sets, judge, shift, outliers, down_to, systems, replaced)


def description_of(document: Document) -> Description:
    """How votes are made, by a document's pipeline; ValueError where it or its fingerprint is not right."""
    description = Description.of(typed(document, "pipeline", dict))
    if description.fingerprint != document.get("fingerprint"):
        raise ValueError("its fingerprint does not match its pipeline")
    if not isinstance(description.score.get("name"), (str, type(None))):
        raise ValueError(f"score.name must be a string or null, got {description.score.get('name')!r}")
    as_unscored(description.score.get("unscored"))
    for name in ("task", "field", "relation", "extract", "read_as", "group_field", "weights"):
        if not isinstance(description.answers.get(name), (str, type(None))):
            raise ValueError(f"answers.{name} must be a string, got {description.answers[name]!r:.60}")
    for name in ("missing", "labels", "markers"):
        if not all(isinstance(spelling, str) for spelling in description.answers.get(name, ())):
            raise ValueError(f"answers.{name} must hold strings")
    return description


def _judge(document: Document, evidence: Strata, *, width: int) -> tuple[JudgeCheck | None, Strata]:
    """What people found of a judge, and the evidence with the errors that it missed, where its labels calibrated."""
    if "judge" not in document:
        if "missed" in document:
            raise ValueError("it counts errors that a judge missed, and tells of no judge")
        return None, evidence
    judge = JudgeCheck.of_document(document["judge"])
    if "missed" not in document:
        if (evidence.n, evidence.n_unlabelled) != (judge.drawn, judge.unchecked):
            raise ValueError("its evidence is not that of the votes that people checked")
        return judge, evidence
    missed = evidence_of(document["missed"], width=width)
    wrong = judge.false_right + judge.right_unchecked
    if missed.unlabelled is not None or (missed.n, evidence.n) != (judge.drawn, judge.votes) or missed.n_wrong < wrong:
        raise ValueError("the errors that its judge missed are not those that people found")
    return judge, replace(evidence, missed=missed)


def upgraded(document: Document) -> Document:
    """A document of schema 1, which knew only the smallest and the largest pool, as one of schema 2."""
    if document.get("schema") != 1:
        return document
    sizes = document.get("n_paths")
    if not (isinstance(sizes, list) and len(sizes) == 2 and all(map(is_count, sizes)) and 1 <= sizes[0] <= sizes[1]):
        raise ValueError(f"n_paths must be the smallest and the largest number of paths, got {sizes!r:.60}")
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"its pools have {sizes[0]} to {sizes[1]} paths, and it does not say how many of them have how many; "
            "calibrate again"
        )
    evidence = {str(sizes[0]): document.get("evidence")}
    return {**document, "evidence": evidence, "unit": QUESTION, "sizes_by_chance": False}


def _point(stored: Any, evidence: Strata, shift: DensityRatio | None, *told: Any) -> Rule:
    rule = settle_by_size(guarantee_of(stored, shift), evidence, *told)
    if rule.document() != stored:
        raise ValueError(f"the threshold of alpha = {rule.alpha:g} does not follow from its evidence")
    return rule


def guarantee_of(stored: Any, shift: DensityRatio | None = None) -> Guarantee:
    """The guarantee of a stored operating point; `shift` is what fitted weights are found by."""
    if not isinstance(stored, dict) or str(stored.get("guarantee")) not in GUARANTEES:
        raise ValueError(f"an operating point must name one of {', '.join(GUARANTEES)}, got {stored!r:.60}")
    parameters = {name: value for name, value in stored.items() if name not in _SETTLED}
    weights = _weights_of(parameters, shift) if stored["guarantee"] == Shifted.name else None
    numbers = [value for name, value in parameters.items() if name != "fallback"]  # a word, which Grouped checks
    if not all(is_number(value) or is_fraction(value) for value in numbers):
        raise ValueError(f"the parameters of a guarantee must be numbers, got {parameters!r:.60}")
    try:
        kind = GUARANTEES[stored["guarantee"]]
        return kind(**parameters) if weights is None else Shifted(Marginal(**parameters), weights)
    except TypeError:
        raise ValueError(f"a {stored['guarantee']} guarantee does not take {sorted(parameters)}") from None


def _outliers(stored: Any, n: int) -> OutlierGate:
    """The gate behind the thresholds: half of the calibration questions are ranked."""
    gate = OutlierGate.of(stored)
    if len(gate.ranked) != n // 2 or gate.fitted_on:
        raise ValueError(
            f"its outlier gate must rank every second of the {n} calibration questions and name none, got "
            f"{len(gate.ranked)} ranked and {len(gate.fitted_on)} named"
        )
    return gate


def _set_document(sets: tuple[SetRule, ...]) -> Document:
    first = sets[0]
    points = [rule.document() for rule in sets]
    return {"alpha": stored_level(first.level), "questions": first.questions, "points": points}


def _sets(stored: Any, points: Sequence[Rule], *, by_chance: bool) -> tuple[SetRule, ...]:
    if not isinstance(stored, dict):
        raise ValueError(f"`answer_sets` must be an object, got {stored!r:.60}")
    alpha, questions, parts = stored.get("alpha"), stored.get("questions"), typed(stored, "points", list)
    if not is_count(questions) or len(parts) != len(points):
        raise ValueError("`answer_sets` needs how many questions were kept for them, and an entry per operating point")
    if alpha is None or not (is_number(alpha) or is_fraction(alpha)):
        raise ValueError(f"the alpha of `answer_sets` must be a number, got {alpha!r:.60}")
    level, paired = AnswerSets(alpha).level, zip(parts, points, strict=True)
    return tuple(_set_rule(part, level, int(questions or 0), rule.unit, by_chance) for part, rule in paired)


def _set_rule(stored: Any, level: Fraction, questions: int, unit: str, by_chance: bool) -> SetRule:
    parts = stored if isinstance(stored, dict) else {}
    sizes = [int(size) for size in parts if size.isascii() and size.isdigit() and len(size) < 9]
    lowest, highest = (0, 0) if by_chance else (1, MOST_PATHS)
    ascending = isinstance(stored, dict) and list(parts) == [str(size) for size in sorted(set(sizes))]
    if not ascending or not all(lowest <= size <= highest for size in sizes):
        raise ValueError(f"answer sets must be given by number of paths, ascending, got {stored!r:.60}")
    rule = SetRule(level, {size: _set_evidence(parts[str(size)]) for size in sizes}, questions, unit, by_chance)
    if rule.document() != stored or rule.n > questions:
        raise ValueError("the cut of its answer sets does not follow from its evidence")
    return rule


def _weights_of(parameters: Document, shift: DensityRatio | None) -> DensityRatio | str:
    """What a shifted guarantee is weighted by, taken out of its parameters."""
    kind, name = parameters.pop("weights", None), parameters.pop("field", None)
    if kind == FITTED and name is None and shift is not None:
        return shift
    if kind != GIVEN or not isinstance(name, str):
        raise ValueError(f"weights must be given in a field, or fitted with a ratio in the file, got {kind!r:.40}")
    return name


def _set_evidence(stored: Any) -> SetEvidence:
    rows = stored.get("places") if isinstance(stored, dict) else None
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"answer sets need the places of right answers, got {stored!r:.60}")
    for row in rows:
        if not (isinstance(row, list) and len(row) == 2 and is_number(row[0]) and is_place(row[0])):
            raise ValueError(f"each row of its answer sets must hold a place and a count, got {row!r:.60}")
        if not is_count(row[1]) or not row[1]:
            raise ValueError(f"counts of its answer sets must be whole numbers > 0, got {row!r:.60}")
    levels = [float(row[0]) for row in rows]
    if any(low >= high for low, high in pairwise(levels)):
        raise ValueError("the rows of its answer sets must hold each place once and in order")
    return SetEvidence(np.array(levels, dtype=np.float64), np.array([row[1] for row in rows], dtype=np.int64))
