"""What is to be said of a policy whose calibration votes were labelled in part."""

from __future__ import annotations

from demur.policy.document import PolicyParts


def label_notes(policy: PolicyParts) -> list[str]:
    """How many votes were labelled, and what is not known for want of labels; nothing where all were."""
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
    ]
