"""What a shadow would have done: it decides on the same pool, beside the version that answers, and answers nobody."""

from __future__ import annotations

import logging
from typing import Any

from demur.pipeline.answerer import Asked
from demur.server.api.asking import Question
from demur.server.served import Models

_logger = logging.getLogger("demur.server")


def beside(models: Models, question: Question, asked: Asked) -> dict[str, Any] | None:
    """The shadow's decision, to be kept with the other; None where there is no shadow, or no whole pool to decide on.

    Where sampling stopped early the shadow might have needed the rest: it decides on whole pools alone.
    """
    name = question.served.name
    shadow, answers = models.shadows.get(name), models.active.get(name) is question.served
    if shadow is None or not answers or not asked.whole:
        return None
    told: dict[str, Any] = {"policy": shadow.full_name, "version": shadow.version}
    try:
        made = shadow.answerer.decide(asked.pool, alpha=question.alpha, guarantee=question.guarantee).decision
    except Exception as error:  # whatever a shadow fails at, the request is answered
        _logger.warning("%s cannot decide beside the version that answers: %s", shadow.full_name, type(error).__name__)
        return {**told, "decision": None, "why": type(error).__name__}
    return {
        **told,
        "decision": "abstained" if made.abstained else "answered",
        "alpha": made.alpha,
        "threshold": made.threshold,
        "p_value": made.p_value,
        "same_vote": made.key == asked.decision.key,
    }
