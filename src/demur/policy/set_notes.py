"""What is to be said of the answer sets of a policy."""

from __future__ import annotations

from demur.calibration import Rule
from demur.policy.document import PolicyParts


def set_note(policy: PolicyParts, rule: Rule) -> str:
    """What is promised of answer sets where a rule abstains, and why they hold OTHER; blank where there are none."""
    sets, strata = policy.sets_of(rule), policy.strata
    if sets is None:
        return ""
    sizes = sorted(set(sets.by_size) & set(strata.sizes)) or [strata.usual_size]
    notes = [note for size in sizes for note in (sets.promise(size), sets.remark(size)) if note]
    notes += [policy.labels.wrong] if policy.labels.wrong else []
    return " ".join(dict.fromkeys(notes))
