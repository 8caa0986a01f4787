"""Audits of a service as votes to calibrate on: whole pools of requests that were marked on arrival, and nothing else.

A request is marked by a keyed hash of its name before anything of it is known, so audits are a fair part of all that is
asked. Reviews of abstentions, and complaints, are not: which requests they are about depends on how the vote came out.
Votes that nobody judged count as wrong, so that it does not matter which audits have a label, or why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from demur.errors import InvalidValue
from demur.pipeline.spoken_labels import SpokenLabels, by_weight, winner_of
from demur.policy.policy import Policy
from demur.pools.label_rule import LabelRule
from demur.pools.labels import Labels
from demur.pools.voted_pools import VotedPools, as_part_of_labels
from demur.records import Groups, groups_of
from demur.store.service import Decision, Feedback
from demur.voting.kept_votes import kept_votes

WHY_AUDITS = (
    "Only audits calibrate: requests that were marked by chance when they arrived. Reviews of abstentions and "
    "complaints are about requests that were chosen by how the vote came out, and would bend the threshold."
)
Words = Mapping[str, Sequence[Feedback]]


@dataclass(frozen=True, eq=False)
class AuditedVotes:
    """The votes on audited requests, labelled in part, and what became of the other audits."""

    voted: VotedPools
    audited: int
    """Requests that were marked, whatever became of them."""
    failed: int
    """Of these, those without a vote: nothing is answered on such requests, in use as here."""
    fitted: int
    """Those on questions that the way to vote was learned from."""
    not_comparable: int
    """True answers that say nothing of the vote: its text was not kept, or they are no answer."""
    by_reviewers: int = 0
    """Votes of which a reviewer said whether they are right."""
    by_callers: int = 0
    """Audits of which callers alone spoke. They have a label only where the words of callers were to count."""

    @property
    def questions(self) -> int:
        """Questions that count; one that was audited several times counts once."""
        return len(self.voted.counted)

    @property
    def labelled(self) -> int:
        """Of these, how many have a label."""
        known = self.voted.known
        return self.questions if known is None else int(known[self.voted.counted].sum())

    @property
    def labels(self) -> dict[str, bool | None]:
        """By request, whether its vote is right; None where nobody knows."""
        correct, known = self.voted.labels_so_far, self.voted.known
        there = np.ones(len(correct), dtype=np.bool_) if known is None else known
        rows = zip(self.voted.ids, correct.tolist(), there.tolist(), strict=True)
        return {request: right if labelled else None for request, right, labelled in rows}

    @property
    def repeated(self) -> int:
        """Audits of a question that was audited before."""
        return len(self.voted) - self.questions


def audited_votes(
    audits: Iterable[Decision], words: Words, policy: Policy, *, by_group: bool = False, callers: bool = False
) -> AuditedVotes:
    """The votes on audited requests of a policy, with what reviewers said of each.

    `words` are each person's last word on each request, the last one last. `by_group` needs the groups of questions.
    With `callers`, the words of callers count where no reviewer said anything.
    """
    every = [made for made in audits if made.audit]
    whole = [made for made in every if made.vote_key is not None]
    usable = _not_fitted(whole, policy)
    spoken = SpokenLabels(policy)
    reviewed = [spoken.label(made, words.get(made.request, ())) for made in usable]
    said = [spoken.label(made, words.get(made.request, ()), callers=True) for made in usable] if callers else reviewed
    votes = kept_votes(
        policy.recipe,
        policy.upstream,
        keys=[made.vote_key or () for made in usable],
        confidence=[made.confidence or 0.0 for made in usable],
        winners=[winner_of(made) for made in usable],
        n_paths=[made.drawn for made in usable],
        ids=[made.request for made in usable],
        questions=[_digest(made) for made in usable],
        groups=_groups(usable, policy) if by_group else None,
    )
    correct, known = as_part_of_labels(np.array([label.right for label in said], dtype=object), len(usable))
    winners = votes.winners.tolist()
    told = [
        {winner: bool(right)} if there and winner is not None else {}
        for winner, right, there in zip(winners, correct, known, strict=True)
    ]
    voted = VotedPools(votes, correct, votes.questions, known=known)
    by_people = Labels(right=told, gold=None, rule=LabelRule(people=True, callers=callers))
    return AuditedVotes(
        replace(voted, labels=by_people),
        len(every),
        len(every) - len(whole),
        len(whole) - len(usable),
        sum(label.lost for label in said),
        sum(label.right is not None and winner is not None for label, winner in zip(reviewed, winners, strict=True)),
        sum(bool(there) and not by_weight(there) for there in (words.get(made.request, ()) for made in usable)),
    )


def _digest(made: Decision) -> str | None:
    return None if made.question_digest == "none" else made.question_digest


def _not_fitted(whole: list[Decision], policy: Policy) -> list[Decision]:
    """Those on questions that neither a learned key, a normaliser nor a gate has seen."""
    ids, digests = [made.request for made in whole], [_digest(made) for made in whole]
    blank = kept_votes(
        policy.recipe, policy.upstream, keys=[], confidence=[], winners=[], n_paths=[], ids=[], questions=[]
    )
    seen = set(blank.fitted_on.rows(ids, digests, None)) if blank.fitted_on else set()
    gate = policy.recipe.gate
    seen |= set() if gate is None else {row for row, digest in enumerate(digests) if digest in gate.fitted_on}
    return [made for row, made in enumerate(whole) if row not in seen]


def _groups(usable: Sequence[Decision], policy: Policy) -> list[Groups]:
    """The groups of each question; raises where a request's were not kept."""
    field = str(policy.upstream.answers.get("group_field", "group"))
    groups, unknown = [], 0
    for made in usable:
        asked = made.asked or {}
        told = made.document.get("groups") or asked.get("groups") or asked.get(field)
        unknown += not told and made.asked is None
        groups.append(groups_of(told, f"request {made.request!r}"))
    if unknown:
        raise InvalidValue(
            f"the groups of {unknown} of {len(usable)} audited requests were not kept, which a promise by group needs",
            "serve with texts, or ask for the promise by group in every request",
        )
    return groups
