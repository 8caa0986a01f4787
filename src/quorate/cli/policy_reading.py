"""How a policy's own pipeline says a pool file is to be read."""

from __future__ import annotations

from quorate.errors import InvalidValue
from quorate.policy import Policy
from quorate.pool_table import Reading


def reading_of_policy(policy: Policy) -> Reading:
    """The fields that hold answer and score, as calibrated."""
    pipeline = policy.pipeline
    if policy.recipe.coded or "answer_field" not in pipeline:
        raise InvalidValue(
            "this policy was calibrated on a table in Python, not on a pool file; decide in Python, or calibrate a file"
        )
    reading = Reading(pipeline["answer_field"], pipeline["score"], tuple(pipeline["missing"]))
    if reading.describe()["relation"] != pipeline["relation"]:
        raise InvalidValue(
            f"this policy compares answers by {pipeline['relation']}, and this quorate by "
            f"{reading.describe()['relation']}; calibrate again"
        )
    return reading
