"""What is to be said of a policy whose calibration votes were labelled in part, or by a judge that people checked."""

from __future__ import annotations

from demur.policy.document import PolicyParts


def label_notes(policy: PolicyParts) -> list[str]:
    """What people found of a judge, how many votes were labelled, and what is not known for want of labels."""
    return [*_on_judge(policy), *_on_unlabelled(policy)]


def _on_judge(policy: PolicyParts) -> list[str]:
    judge, unit = policy.judge, policy.unit
    if judge is None:
        return []
    drawn = f"{judge.drawn} of the {judge.votes} {unit}s that a judge labelled were drawn for people to check"
    left = f" ({judge.unchecked} of them have no word yet, and count as wrong)" if judge.unchecked else ""
    used = (
        "these alone calibrate, by people's labels"
        if policy.strata.missed is None
        else "rates by label are the judge's, and what people found is added to errors"
    )
    return [f"{drawn}{left}; {used}. The promise needs them to be drawn at random", judge.sentence]


def _on_unlabelled(policy: PolicyParts) -> list[str]:
    n, unlabelled, unit = policy.evidence.n, policy.evidence.n_unlabelled, policy.unit
    if not unlabelled:
        return []
    least, most = policy.evidence.n_right / n, (policy.evidence.n_right + unlabelled) / n
    answered = {rule.alpha: rule.answered_unlabelled(policy.strata) for rule in policy.points}
    return [
        f"{n - unlabelled} of {n} calibration {unit}s are labelled, and the others count as wrong, so that the promise "
        "holds; with more labels it may answer more. Rates that depend on the others are not known: the vote is right "
        f"on {least:.1%} to {most:.1%} of all {unit}s",
        *(
            f"{count} of the unlabelled {unit}s {'is' if count == 1 else 'are'} answered at alpha = {alpha:g}, and "
            "counted as wrong in its rates"
            for alpha, count in answered.items()
            if count
        ),
        *_on_label_end(policy),
    ]


def _on_label_end(policy: PolicyParts) -> list[str]:
    """Whether batches may be selected from, where labelling was to end at a key."""
    if policy.down_to is None:
        return []
    fixed = f"labelling was to end at {policy.down_to[0]:.4g}, a key that was fixed before the first label"
    lacking = policy.evidence.unlabelled_above(policy.down_to)
    if not lacking:
        return [f"{fixed}, and did: batches may be selected from too"]
    return [
        f"{fixed}, and {lacking} {policy.unit}s above it have no label: no batch may be selected from before they do"
    ]
