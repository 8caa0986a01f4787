"""What the report shows of answer sets: the set of each question that an operating point abstains from."""

from __future__ import annotations

from typing import Any

from demur.policy.policy import Policy
from demur.policy.set_notes import set_note
from demur.records import OTHER
from demur.voting.votes import Votes


def set_facts(policy: Policy, votes: Votes) -> list[dict[str, Any]]:
    """For each operating point of a policy with answer sets: what they promise, and the sets of all questions.

    A set is its answers as they are written, and whether OTHER is in it; null where a question is answered, and where
    no set is promised.
    """
    facts = []
    for rule in policy.points if policy.sets else ():
        decided = policy.decide_votes(votes, alpha=rule.alpha, guarantee=rule.guarantee.name)
        sets: list[Any] = [
            None if held is None else {"answers": [one for one in held if one is not OTHER], "other": OTHER in held}
            for held in decided.answer_sets
        ]
        named = {"alpha": rule.alpha, "guarantee": rule.guarantee.name}
        facts.append({**named, "note": set_note(policy, rule), "sizes": decided.set_note(), "sets": sets})
    return facts
