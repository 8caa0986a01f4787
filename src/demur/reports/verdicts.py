"""What the report shows of labels: the rule in words, who labelled how many, and what a judge said of answers."""

from __future__ import annotations

from typing import Any

from demur.evidence import Interval
from demur.policy.policy import Policy
from demur.pools.verdicts import Verdict
from demur.pools.voted_pools import VotedPools

_SHOWN = 60
_LONGEST = 400


def label_facts(voted: VotedPools, policy: Policy) -> dict[str, Any]:
    """What counts as right, and the verdicts behind it; those that people spoke on stand first."""
    known = {"told": policy.labels.told, "wrong": policy.labels.wrong, "checked": _checked(policy)}
    if voted.labels is None or voted.labels.rule.verdicts is None:
        return {**known, "judged": None}
    found = [
        (name, verdict)
        for name, answers in zip(voted.ids, voted.labels.judged, strict=True)
        for verdict in answers.values()
    ]
    verdicts = [(name, verdict) for name, verdict in found if verdict is not None]
    judge = voted.labels.rule.verdicts.judge
    interval = Interval.exact(judge.confirmed, judge.checked)
    judged = {
        "judge": judge.name,
        "agree": sum(verdict.agrees is True for _, verdict in verdicts),
        "disagree": sum(verdict.agrees is False for _, verdict in verdicts),
        "neither": sum(verdict.by is not None and verdict.agrees is None for _, verdict in verdicts),
        "without": len(found) - len(verdicts),
        "overruled": sum(verdict.person is not None and not verdict.confirmed for _, verdict in verdicts),
        "checked": judge.checked,
        "confirmed": judge.confirmed,
        "interval": [interval.lower, interval.upper],
        "shown": [_row(name, verdict) for name, verdict in sorted(verdicts, key=_interest)[:_SHOWN]],
        "of": len(verdicts),
    }
    return {**known, "judged": judged}


def _checked(policy: Policy) -> dict[str, Any] | None:
    """What people found of a judge that labelled the votes; None where none did, or nobody checked it."""
    judge = policy.judge
    if judge is None:
        return None
    return {**judge.facts(), "unchecked": judge.unchecked, "alone": policy.strata.missed is None}


def _interest(placed: tuple[str, Verdict]) -> tuple[bool, bool, bool]:
    """People's word first, then what is neither yes nor no, then what the judge called right."""
    verdict = placed[1]
    return verdict.person is None, verdict.agrees is not None, not verdict.agrees


def _row(name: str, verdict: Verdict) -> dict[str, Any]:
    accepted = " | ".join(verdict.accepted)
    texts = {"question": verdict.question, "answer": verdict.answer, "accepted": accepted}
    said = {"judge": verdict.agrees, "person": verdict.person, "right": verdict.right}
    return {"id": name, **{part: text[:_LONGEST] for part, text in texts.items()}, **said}
