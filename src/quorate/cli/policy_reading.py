"""How a policy's own pipeline says a pool file is to be read."""

from __future__ import annotations

from quorate.errors import InvalidValue
from quorate.policy import Policy
from quorate.pool_table import Reading


def reading_of_policy(policy: Policy) -> Reading:
    """The fields that hold answer and score, as calibrated."""
    pipeline = policy.pipeline
    fields = ("answer_field", "relation", "missing")
    if policy.recipe.coded or not all(isinstance(pipeline.get(field), (str, list)) for field in fields):
        raise InvalidValue(
            "this policy was calibrated on a table in Python, not on a pool file; decide in Python, or calibrate a file"
        )
    name = pipeline["relation"].partition("@")[0]
    relation = None if pipeline["relation"].startswith("by-task") else name
    reading = Reading(pipeline["answer_field"], pipeline["score"], tuple(pipeline["missing"]), relation)
    if reading.describe()["relation"] != pipeline["relation"]:
        raise InvalidValue(
            f"this policy compares answers by {pipeline['relation']}, and this quorate by "
            f"{reading.describe()['relation']}; calibrate again"
        )
    return reading
