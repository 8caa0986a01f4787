"""A pipeline with the prompt and the extraction of one task: what it says of itself is the description of a run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from demur.answers.asked import Asked
from demur.answers.extraction import Extraction
from demur.answers.extraction.custom import Extractor, parse_extractor
from demur.answers.relations import Relation
from demur.backends.protocol import Completion, Settings
from demur.descriptions import Description
from demur.prompts import Prompt, Template
from demur.records import Path, Problem
from demur.store.rows import PATH_FACTS
from demur.tasks import asked_by, task_named

if TYPE_CHECKING:
    from demur.pipeline.pipeline import Pipeline

_FACTS_OF = attrgetter(*PATH_FACTS)


@dataclass(frozen=True)
class _Reading:
    """What is known of one problem while its paths are read."""

    problem: Problem
    asked: Asked
    read: dict[tuple[str, str | None], Extraction] = field(default_factory=dict)
    """What was found in texts, by how they ended: those that say the same word for word are read once."""


@dataclass(frozen=True)
class Fitted:
    """A pipeline with the prompt and the extraction of one task."""

    pipeline: Pipeline
    task: str
    template: Template
    _reading: _Reading | None = field(default=None, init=False, repr=False, compare=False)

    @cached_property
    def _extractor(self) -> Extractor | None:
        return None if self.pipeline.extract is None else parse_extractor(self.pipeline.extract)

    @cached_property
    def _relation(self) -> Relation:
        return task_named(self.task).relation

    @cached_property
    def settings(self) -> Settings:
        """The template's stop words are part of how paths are drawn."""
        settings = self.pipeline.settings
        return settings if settings.stop else replace(settings, stop=self.template.stop)

    def description(self) -> Description:
        """All that decides what a path is: stored in run and policy, and compared."""
        settings = self.settings
        drawn = {name: getattr(settings, name) for name in ("temperature", "top_p", "max_tokens")}
        asked = {**self.pipeline.backend.describe(), "prompt": self.template.describe()}
        extract = self.pipeline.extract or self._relation.spec
        said = {"labels": list(self.pipeline.labels), "markers": list(self.pipeline.markers)}
        read = {"task": self.task, "extract": extract} | {name: value for name, value in said.items() if value}
        stopping = {} if self.pipeline.stop is None else {"stopping": self.pipeline.stop.describe()}
        return Description({**asked, **drawn, "stop": list(settings.stop), **stopping}, read)

    def render(self, problem: Problem) -> Prompt:
        return self.template.render(problem)

    def read(self, problem: Problem, completion: Completion) -> Extraction:
        """The answer that a path ends in."""
        if self._extractor is not None:
            return self._extractor(completion.text, truncated=completion.truncated)
        known, said = self._known_of(problem), (completion.text, completion.finish_reason)
        found = known.read.get(said)
        if found is None:
            found = self._relation.extract(completion.text, known.asked, truncated=completion.truncated)
            known.read[said] = found
        return found

    def _known_of(self, problem: Problem) -> _Reading:
        """What a problem says of its answers, found out once for all its paths."""
        known = self._reading
        if known is None or known.problem is not problem:
            known = _Reading(problem, asked_by(problem, self.pipeline.labels, self.pipeline.markers))
            object.__setattr__(self, "_reading", known)
        return known

    def path(self, problem: Problem, completion: Completion) -> Path:
        """A path as it was drawn, with its answer."""
        extracted = self.read(problem, completion)
        facts = zip(PATH_FACTS, _FACTS_OF(completion), strict=True)
        known: dict[str, Any] = {
            "extraction": extracted.method,
            **{name: one for name, one in facts if one is not None},
        }
        if extracted.span is not None:
            known["found_at"] = list(extracted.span)
        return Path(extracted.answer, completion.text, extra=known)
