"""What is served: policies by the names that clients know them by.

NAME              the policy's strictest alpha
NAME@0.05         one of its alphas
NAME:v1           an earlier version, which stays addressable; NAME:v1@0.05 too
ALIAS             whatever of these it stands for
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from demur.answers.relations import relation_of_spec
from demur.calibration import Rule
from demur.errors import InvalidValue
from demur.pipeline.answerer import Answerer
from demur.pipeline.spoken_labels import SpokenLabels
from demur.policy.policy import Policy
from demur.prompts import Template, template_of
from demur.records import Problem
from demur.server.errors import ApiError
from demur.tasks import relations_of

Point = tuple[str, float, str]
"""A version of a policy, an alpha and the name of a guarantee."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


@dataclass(frozen=True, eq=False)
class Served:
    """One version of a policy, with the pipeline that it is asked through."""

    name: str
    policy: Policy
    answerer: Answerer
    version: int = 1
    number: int | None = None
    """Its number in the store; None where nothing is kept."""

    @property
    def full_name(self) -> str:
        return f"{self.name}:v{self.version}"

    def point(self, rule: Rule) -> Point:
        """What one of its operating points is known by, among those of all versions."""
        return self.full_name, rule.alpha, rule.guarantee.name

    @cached_property
    def template(self) -> Template:
        return template_of(self.policy.upstream.sampling["prompt"], "the policy's prompt")

    @cached_property
    def schema(self) -> Any:
        """The schema that answers have; None where they are no JSON, or of any."""
        compared = relations_of(str(self.policy.upstream.answers["relation"]))
        structure = relation_of_spec(compared[0]).structure if len(compared) == 1 else None
        if structure is None or structure.settings.schema is None:
            return None
        return json.loads(structure.settings.written)["schema"]

    @cached_property
    def spoken(self) -> SpokenLabels:
        """What people say of its decisions, read as labels."""
        return SpokenLabels(self.policy)

    def problem(self, question: str, beside: Mapping[str, Any], groups: Iterable[str] = ()) -> Problem:
        """A question as the pipeline takes it."""
        said = self.policy.upstream.answers
        extra = {"task": said.get("task"), **beside}
        named, group_field = tuple(groups), str(said.get("group_field", "group"))
        if named and group_field != "group":
            extra[group_field] = list(named)
        group = named if named and group_field == "group" else None
        return Problem("question", question, group=group, extra={name: value for name, value in extra.items() if value})


@dataclass(frozen=True)
class Models:
    """All that is served at one time; a swap puts another in its place, and who holds this goes on with it."""

    active: Mapping[str, Served] = field(default_factory=dict)
    earlier: tuple[Served, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    shadows: Mapping[str, Served] = field(default_factory=dict)
    """Versions that decide beside the active one of the same name, and answer nobody."""

    def __post_init__(self) -> None:
        for name in (*self.active, *self.aliases):
            if not _NAME.fullmatch(name.partition("@")[0] if name in self.aliases else name):
                raise InvalidValue(f"{name!r:.120} is no name of a model", "use letters, digits and . _ + -")
        for alias, target in self.aliases.items():
            if alias in self.active:
                raise InvalidValue(f"the alias {alias!r} is the name of a policy")
            try:
                self.find(target, None, None)
            except ApiError as error:
                raise InvalidValue(f"the alias {alias!r} stands for {target!r}, and {error.message}") from None

    @cached_property
    def all(self) -> tuple[Served, ...]:
        return (*self.active.values(), *self.earlier)

    def ids(self) -> dict[str, tuple[Served, Rule]]:
        """Every model id, and what it stands for."""
        found: dict[str, tuple[Served, Rule]] = {}
        for served in self.all:
            names = [served.full_name] if self.active.get(served.name) is not served else [served.name]
            for name in names:
                found[name] = (served, served.policy.point())
                for rule in served.policy.points:
                    found.setdefault(f"{name}@{rule.alpha:g}", (served, rule))
        for alias, target in self.aliases.items():
            found[alias] = self.find(target, None, None)
        return found

    def numbered(self, number: int) -> Served | None:
        """The version that a store knows by a number; None where it is not served here."""
        return next((served for served in self.all if served.number == number), None)

    def find(self, model: str, alpha: float | None, guarantee: str | None) -> tuple[Served, Rule]:
        """The policy and the operating point that a model id, and what stands beside it, name."""
        name, at, told = self.aliases.get(model, model).partition("@")
        named = {**{one.full_name: one for one in self.all}, **self.active}
        if name not in named:
            raise ApiError(
                404, f"there is no model {model!r:.120}; /v1/models lists those there are", param="model",
                code="model_not_found",
            )  # fmt: skip
        served = named[name]
        if at:
            alpha = _one_alpha(told, alpha)
        try:
            return served, served.policy.point(alpha, guarantee)
        except InvalidValue as error:
            raise ApiError(400, str(error), param="model" if told else "demur.alpha", code="not_calibrated") from None


def _one_alpha(told: str, beside: float | None) -> float:
    try:
        alpha = float(told)
    except ValueError:
        raise ApiError(404, f"{told!r:.60} is no alpha", param="model", code="model_not_found") from None
    if beside is not None and beside != alpha:
        raise ApiError(400, f"the model names alpha {alpha:g}, and demur.alpha {beside:g}", param="demur.alpha")
    return alpha
