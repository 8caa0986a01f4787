"""The calibrated artifact: decides, explains itself, and refuses votes made another way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.calibration import Forecast, Guarantee, Level, Rule, Shifted, forecast, forecast_of_group
from demur.calibration.laws_on import NewVotes, by_stratum, law_on
from demur.errors import CalibrationLeak, InvalidValue, LabelMismatch, PipelineMismatch, PolicyFileError
from demur.evidence.counts import Floats
from demur.evidence.laws import CountLaw
from demur.policy import file
from demur.policy.bounds import Bounds, bounds_of
from demur.policy.decisions import Decisions, about_question, decision_on
from demur.policy.document import PolicyParts, from_document, to_document, upgraded
from demur.policy.groups import groups_asked
from demur.policy.outliers import likeness_of
from demur.policy.points import point_of
from demur.policy.selection import Selection, select
from demur.policy.signature import Key
from demur.policy.stopped import refuse_ended_elsewhere
from demur.policy.summary import as_percent, size_note, size_warnings, summary_of, tie_note
from demur.policy.system_prompts import other_systems, refuse_other_systems
from demur.policy.weighing import weight_asked
from demur.pools.splits import Texts
from demur.records import Decision, Problem, digests_of, question_digest
from demur.shown.frames import frame_of
from demur.shown.html import html_of_columns
from demur.stopping import Stopping, stopping_of
from demur.voting.key import Beside
from demur.voting.one_pool import keys_in, vote_one
from demur.voting.votes import Votes

if TYPE_CHECKING:
    from demur.pools.label_rule import LabelRule
    from demur.pools.source import PoolSource
    from demur.pools.voted_pools import VotedPools

_NOTHING_TO_DRAW_FROM = "jitter is drawn from questions or ids, and these votes have none: give either when voting"
_NO_DRAW_WANTED = "these votes end in jitter: the policy has none, so end their tie-break in 'none'"
_NO_JITTER = "It has no jitter, for neither its question nor an id is known, and comes last among its equals."


@dataclass(frozen=True, eq=False)
class Policy(PolicyParts):
    """Answer above the threshold, abstain otherwise; one operating point per guarantee and alpha.

    `points` are its rules, the smallest alpha first; `evidence` the calibration votes as counts; `recipe` how votes
    are made; `sizes` how many pools of each size calibrated it; `seen` the problems that did.
    """

    def __repr__(self) -> str:
        told = ", ".join(f"alpha {rule.alpha:g}: {_above(rule)}" for rule in self.points)
        return f"Policy({self.n:,} {self.unit}s, {self.recipe.told(self.score)}; {told})"

    def _repr_html_(self) -> str:
        note = " ".join(dict.fromkeys(rule.promise for rule in self.points))
        title = (
            f"Policy of {self.n:,} calibration {self.unit}s, vote accuracy {as_percent(self.evidence.vote_accuracy)}"
        )
        return html_of_columns(title, self.columns(), note=note)

    def columns(self) -> dict[str, list[Any]]:
        """What each operating point promises and is expected to do, by name."""
        expected = [forecast(self.strata, rule) for rule in self.points]
        rates = ("answered", "selective_accuracy_corrected", "expected_confident_error", "false_abstention")
        return {
            "alpha": [rule.alpha for rule in self.points],
            "guarantee": [rule.guarantee.name for rule in self.points],
            "threshold": [rule.threshold for rule in self.points],
            **{name: [getattr(one, name) for one in expected] for name in rates},
        }

    def to_frame(self, library: str | None = None) -> Any:
        """One row per operating point, as a DataFrame of pandas, or of "polars" or "arrow"."""
        return frame_of(self.columns(), library)

    @property
    def n(self) -> int:
        """Calibration questions, duplicates counted once; or clusters, where `unit` says so."""
        return self.evidence.n

    @property
    def sizes(self) -> dict[int, int]:
        """How many of the calibration pools have how many paths."""
        return self.strata.sizes

    @property
    def n_paths(self) -> int:
        """m: how many paths most calibration pools have, and a pool in use should; at most, with a stopping rule."""
        most = None if self.stopping is None else self.stopping.most
        return self.strata.usual_size if most is None else most

    @cached_property
    def stopping(self) -> Stopping | None:
        """The rule that ends pools, in use as in calibration; None where they have all their paths."""
        return stopping_of(self.upstream.sampling)

    @property
    def feasible(self) -> bool:
        """False where some alpha has too few calibration questions, so that it abstains always."""
        return all(rule.feasible for rule in self.points)

    @property
    def threshold(self) -> float:
        """λ̂ of the strictest operating point."""
        return self.point().threshold

    @property
    def score(self) -> str | None:
        """The name of its score; None for the majority vote, and where the scores were given without a name."""
        return self.upstream.score.get("name")

    @property
    def pipeline(self) -> dict[str, Any]:
        """How votes must be made to be decided by this policy, stage by stage, as plain values."""
        return self.description.document()

    @cached_property
    def fingerprint(self) -> str:
        return self.description.fingerprint

    def point(self, alpha: Level | None = None, guarantee: str | None = None) -> Rule:
        """The rule of an alpha and a guarantee's name; the strictest of those that what is named leaves.

        A policy that holds the simultaneous guarantee has a rule for any alpha, whenever it is chosen.
        """
        return point_of(self, alpha, guarantee)

    def bounds(self, alphas: Sequence[Level] | None = None) -> Bounds:
        """What each alpha would bring, of a policy that holds the simultaneous guarantee: any of them may be chosen.

        Without `alphas`, those at which calibration allows one error more.
        """
        return bounds_of(self, alphas)

    @cached_property
    def points_asked(self) -> dict[tuple[float | None, str | None], Rule]:
        """Which of its rules an alpha and a guarantee's name stood for so far."""
        return {}

    @cached_property
    def late_points(self) -> dict[Guarantee, Rule]:
        """Rules of alphas that were asked for late, and are promised all the same."""
        return {}

    def decide(
        self,
        answers: Any,
        scores: Any = None,
        *,
        alpha: Level | None = None,
        guarantee: str | None = None,
        tie_break: float | None = None,
        columns: Mapping[str, Sequence[float | None]] | None = None,
        origins: Sequence[str | None] | None = None,
        id: str | None = None,  # noqa: A002 - the record's own word
        question: str | Problem | None = None,
        group: str | Iterable[str] | None = None,
        weight: float | None = None,
    ) -> Decision:
        """Vote on one pool the way the policy was calibrated, and answer or abstain.

        `columns` holds other numbers of the paths by name, where its key looks at some, and `origins` says where each
        path comes from, where it looks at that.

        Jitter is drawn from the question, or where none is given from the id, which must be the problem's own. Where
        the policy comes from a file or a run, answers are read and compared as they were there: as they are written,
        and by the task that a `Problem` names, if there were several. `group` names the kind of question, or several
        that overlap, for a promise per group; without it, the groups are those of the `Problem`. Under shift, the
        question's `weight` decides with its vote; where weights were fitted, it is found by the question. A policy that
        abstains on outliers as well looks at the question's text, and abstains where there is none.
        """
        known: dict[str, Any] = {"alpha": alpha, "guarantee": guarantee, "tie_break": tie_break}
        known |= {"columns": columns, "origins": origins, "id": id, "question": question}
        known |= {"group": group, "weight": weight}
        if "relation" not in self.upstream.answers:
            return self.decide_keys(answers, scores, **known)
        from demur.pools.fields import FieldChoice  # arrays do without what reads and compares answers

        keys, written = FieldChoice.of(self.description).read(answers, question)
        return self.decide_keys(keys, scores, **known).written_as(written)

    def decide_keys(
        self,
        answers: Any,
        scores: Any = None,
        *,
        alpha: Level | None = None,
        guarantee: str | None = None,
        tie_break: float | None = None,
        columns: Mapping[str, Sequence[float | None]] | None = None,
        origins: Sequence[str | None] | None = None,
        id: str | None = None,  # noqa: A002
        question: str | Problem | None = None,
        group: str | Iterable[str] | None = None,
        weight: float | None = None,
    ) -> Decision:
        """`decide`, of answers that are keys already: equal where they are the same answer."""
        rule = self.point(alpha, guarantee)
        if not self.recipe.coded and isinstance(answers, np.ndarray) and np.issubdtype(answers.dtype, np.integer):
            raise PipelineMismatch(["vote.answers is 'keys' in the policy, 'codes' here"])
        asked, folded = digests_of(question)
        recipe, unscored = self.recipe.for_pools(tie_break), self.upstream.score.get("unscored")
        text = question.question if isinstance(question, Problem) else question
        numbers = {name: [column] for name, column in (columns or {}).items()}
        beside = Beside(numbers, {} if origins is None else {recipe.origin or "origin": [origins]}, [text])
        vote = vote_one(recipe, answers, scores, id=id, question=asked, folded=folded, unscored=unscored, beside=beside)
        size = vote.n_paths
        if not self.strata.knows(size):
            raise PipelineMismatch([f"n_paths is {self.told_sizes} in the policy, {size} in this pool"])
        if self.stopping is not None:
            refuse_ended_elsewhere(self.stopping, keys_in(recipe, answers))
        refuse_other_systems(self, [question])
        groups, weight = groups_asked(self, rule, question, group), weight_asked(rule, question, weight)
        p_value = rule.p_value_of(self.strata, vote.key, size, groups, weight)
        likeness = None if self.outliers is None else self.outliers.likeness([text])
        about, sets = about_question(self.recipe.names, groups, weight, likeness), self.sets_of(rule)
        answered = vote.key > rule.threshold_of(size, groups, weight) and not about.unlike
        decision = decision_on(vote, rule, p_value, answered=answered, seen=self.strata, about=about, sets=sets)
        if self.recipe.jitter is not None and asked is None and id is None:
            return replace(decision, explanation=f"{decision.explanation} {_NO_JITTER}")
        return decision

    def vote(
        self,
        source: PoolSource,
        *,
        labelled: bool = False,
        correct: str | LabelRule | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> VotedPools:
        """Vote on the pools of a file or a run the way the policy was calibrated."""
        from demur.pools.fields import FieldChoice
        from demur.pools.source import vote_pools

        fields = FieldChoice.of(self.description)
        how = replace(fields, weights=self.shift) if self.shift is not None else fields, self.recipe
        return vote_pools(source, *how, labelled=labelled, correct=correct, assumed=self.upstream, say=say)

    def decide_votes(self, votes: Votes, *, alpha: Level | None = None, guarantee: str | None = None) -> Decisions:
        """Answer or abstain on many votes at once; refuses votes that were made another way."""
        rule = self.point(alpha, guarantee)
        self.check(votes)
        p_value, likeness = rule.p_value(self.strata, votes.cases), likeness_of(self, votes)
        answered = rule.answers(votes.cases)
        answered = answered if likeness is None else answered & ~likeness.unlike
        return Decisions(votes, rule, answered, p_value, self.strata, sets=self.sets_of(rule), likeness=likeness)

    def select(self, votes: Votes | VotedPools, *, fdr: Level, drop_seen: bool = False) -> Selection:
        """Answer those votes of a whole batch among which the expected share of wrong ones is at most `fdr`.

        A promise about the answers given, in expectation and for this batch at once: what is answered depends on the
        other votes of the batch. One vote of each cluster or question counts. Problems that calibrated the policy are
        refused, or left out of the batch with `drop_seen`; votes that were made another way are refused. It gives no
        answer sets: those are calibrated on what the policy itself abstains from.
        """
        return select(self, votes, fdr, drop_seen=drop_seen)

    def check(self, votes: Votes) -> None:
        """Raise PipelineMismatch, with the differences, unless the votes were made as calibrated.

        Single pools of a size that calibration did not see are not answered; where no pool has one that it saw, they
        were made another way.
        """
        differences = []
        if votes.recipe is not self.recipe or votes.upstream is not self.upstream:
            differences = self.description.differences(votes.description)
            if self.recipe.jitter is not None and votes.ids is None and votes.questions is None:
                differences.append(_NOTHING_TO_DRAW_FROM)
            if self.recipe.jitter is None and votes.recipe.jitter is not None:
                differences.append(_NO_DRAW_WANTED)
        if len(votes) and not self.strata.knows(votes.n_paths).any():
            name = "pool 0" if votes.ids is None else f"pool {votes.ids[0]!r}"
            differences.append(f"n_paths is {self.told_sizes} in the policy, {int(votes.n_paths[0])} in {name}")
        if told := other_systems(self, votes.beside.asked or ()):
            differences.append(told)
        if differences:
            raise PipelineMismatch(differences)

    @property
    def told_sizes(self) -> str:
        """Which numbers of paths calibration saw, in words."""
        if self.strata.reach is not None:
            return "{} to {}".format(*self.strata.reach)
        sizes = list(self.sizes)
        return " or ".join(map(str, sizes)) if len(sizes) <= 2 else f"{sizes[0]} to {sizes[-1]}"

    def p_value(self, votes: Votes) -> Floats:
        """The conformal p-value of each vote: answered at a marginal alpha exactly when p ≤ alpha."""
        if all(isinstance(rule.guarantee, Shifted) for rule in self.points):
            raise InvalidValue(
                "this policy promises about questions by their weights, and has no p-values without them",
                "take those of `decide_votes`",
            )
        self.check(votes)
        return self.strata.p_value(votes.cases)

    def forecast(self, alpha: Level | None = None, guarantee: str | None = None) -> Forecast:
        """What to expect at an alpha, from calibration data alone."""
        return forecast(self.strata, self.point(alpha, guarantee))

    def forecast_per_question(self, alpha: Level | None = None, guarantee: str | None = None) -> Forecast | None:
        """The same over all calibration questions, where clusters are counted: no promise is about these rates."""
        rule = self.point(alpha, guarantee)
        return None if self.every_question is None else forecast(self.every_question, rule)

    def law_on(self, rule: Rule, fresh: NewVotes) -> CountLaw:
        """The law of a rule's errors on new votes, so many of each size, or of each stratum."""
        return law_on(rule, self.strata, by_stratum(fresh))

    def forecast_by_group(self, alpha: Level | None = None, guarantee: str | None = None) -> dict[str, Forecast]:
        """What to expect in each group at an alpha; questions of several groups are counted in each."""
        rule = self.point(alpha, guarantee)
        return {name: forecast_of_group(self.strata, rule, name) for name in self.strata.groups}

    def refuse_seen(self, ids: Sequence[str], questions: Texts | None = None, clusters: Texts | None = None) -> None:
        """Raise CalibrationLeak if any of these problems calibrated this policy: by id, question text or cluster."""
        asked = None if questions is None else [question_digest(question) for question in questions]
        self._refuse(self.seen.rows(ids, asked, clusters), ids)

    def refuse_voted(self, voted: VotedPools) -> None:
        """`refuse_seen`, of pools that have been voted on."""
        self._refuse(self.seen.rows(voted.names, voted.questions, voted.clusters), voted.names)

    def _refuse(self, rows: Sequence[int], ids: Sequence[str]) -> None:
        if rows:
            raise CalibrationLeak(
                f"{len(rows)} of {len(ids)} problems calibrated this policy (the first is {ids[rows[0]]!r}), so they "
                "cannot test it",
                "leave them out with {drop_seen=True}, calibrate with {hold_out=0.5} to keep some back, give other "
                "problems, or evaluate by repeated splits",
            )

    def refuse_other_labels(self, voted: VotedPools) -> None:
        """Raise LabelMismatch if pools were labelled by another rule than the one that calibrated this policy."""
        theirs = None if voted.labels is None else voted.labels.rule
        if theirs is None or not self.labels.differs(theirs):
            return
        ours, others = self.labels.options(), theirs.options()
        wanted = f"label these with {' and '.join(ours)}" if ours else f"leave {' and '.join(others)} out"
        if self.labels.people:
            wanted, others = "have people say how many answers are wrong, and give {errors} and {of}", []
        without = f", and without {' and '.join(others)}" if ours and others else ""
        raise LabelMismatch(
            f"right was {self.labels.told} when the policy was calibrated, and is {theirs.told} here; a promise about "
            "the one says nothing of the other",
            f"{wanted}{without}, or calibrate again",
        )

    def summary(self) -> str:
        """The promise and the forecast of each operating point, in words."""
        return summary_of(self)

    def tie_note(self, rule: Rule) -> str:
        """That a good part of alpha is not spent because votes tie at a rule's threshold, in words; blank where not."""
        return tie_note(self, rule)

    def size_note(self) -> str:
        """How many pools have how many paths, in words; blank where all have as many."""
        return size_note(self)

    def size_warnings(self) -> list[str]:
        """Which sizes are not answered, and why."""
        return size_warnings(self)

    def document(self) -> dict[str, Any]:
        """The policy as plain values, to be kept elsewhere than in a file; `of_document` reads it back."""
        document = to_document(self)
        return {**document, "schema": file.schema_of(document)}

    @classmethod
    def of_document(cls, document: Mapping[str, Any], where: str = "the document") -> Policy:
        """A policy from plain values, checked as `load` checks them."""
        try:
            return cls(**vars(from_document(upgraded(dict(document)))))
        except ValueError as error:
            raise PolicyFileError(f"{where} is not a usable policy: {error}") from None

    def save(self, path: str | os.PathLike[str], *, key: Key | None = None) -> None:
        """Write the policy as JSON, signed where there is a key."""
        file.write(to_document(self), path, key)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, key: Key | None = None) -> Policy:
        """Read a policy, check each of its values, and that its thresholds follow from its own evidence.

        With a key, a file that was not signed with it is refused; without one, no signature is looked at.
        """
        return cls.of_document(file.read(path, key), os.fspath(path))


def _above(rule: Rule) -> str:
    return f"answers above {rule.threshold:.4g}" if rule.feasible else "abstains always"
