"""Tasks: the kind of a question decides the prompt, how answers are read and compared, and how a judge is asked.

    math    mathematics               a boxed answer, compared by value
    qa      open questions            a short text, perhaps from passages
    mc      multiple choice           the letter of an option
    plain   anything else             compared as it stands; no prompt of its own

`register` adds one of yours. A problem names its task in its field `task`; the names are aliases of one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.extraction import Extraction
from demur.answers.relations import RELATIONS, Relation, choice, mathematics, plain, relation_of_spec, specs_in, text
from demur.errors import DatasetError, InvalidValue
from demur.prompts import JudgePrompt, Template, judging, templates
from demur.records import Problem


@dataclass(frozen=True)
class Task:
    """One kind of question."""

    name: str
    relation: Relation
    template: Template | None = None
    """How it is put to a model; None: the user says."""
    few_shot: Template | None = None
    """The same for a small model, which is shown how by examples."""
    with_passages: Template | None = None
    """The same where a question comes with passages to read."""
    judge_prompt: JudgePrompt = judging.QUESTION_ANSWERING
    with_options: JudgePrompt | None = None
    """How a judge is asked where a question has options."""
    aliases: tuple[str, ...] = ()
    origin: str = "demur"
    """The package that registered it."""

    def prompt(self, problem: Problem, *, small: bool) -> Template:
        """The template for problems like this one."""
        if "passages" in problem.extra and self.with_passages is not None:
            return self.with_passages
        template = (self.few_shot if small else None) or self.template
        if template is None:
            asked = f"there is no prompt for the task {problem.extra.get('task')!r}"
            raise InvalidValue(asked, "give one of your own as {prompt}")
        return template

    def judge(self, problem: Problem) -> JudgePrompt:
        """How a judge is asked about a path of this problem."""
        return (self.with_options if problem.extra.get("options") else None) or self.judge_prompt

    def read(self, problem: Problem, text: str, *, truncated: bool = False) -> Extraction:
        """The answer that a path ends in."""
        return self.relation.extract(text, asked_by(problem), truncated=truncated)


def asked_by(problem: Problem, labels: Sequence[str] = (), markers: Sequence[str] = ()) -> Asked:
    """What a problem says of how its answers are written, beside what was said of all problems."""
    known = problem.extra
    if not (known or labels or markers):
        return NOTHING_SAID
    return Asked.of(known.get("options", known.get("choices")), labels, known.get("language"), markers)


_TASKS: dict[str, Task] = {}


def register(task: Task) -> Task:
    """Add a task; its name and aliases must be free."""
    for name in (task.name, *task.aliases):
        taken = _TASKS.get(name.lower())
        if taken is not None and taken != task:
            raise InvalidValue(
                f"the task name {name!r} is registered twice, by {taken.origin} and by {task.origin}",
                "uninstall one of the two, or give the task another name",
            )
    _TASKS.update(dict.fromkeys((name.lower() for name in (task.name, *task.aliases)), task))
    return task


MATH = Task(
    "math",
    mathematics,
    templates.MATHEMATICS,
    few_shot=templates.FEW_SHOT_MATHEMATICS,
    judge_prompt=judging.MATHEMATICS,
    aliases=("mathematics",),
)
QA = Task(
    "qa",
    text,
    templates.OPEN_QUESTION,
    few_shot=templates.FEW_SHOT_FACTS,
    with_passages=templates.QUESTION_ANSWERING,
    aliases=("text", "open"),
)
MC = Task(
    "mc",
    choice,
    templates.MULTIPLE_CHOICE,
    with_options=judging.MULTIPLE_CHOICE,
    aliases=("choice", "multiple_choice"),
)
PLAIN = Task("plain", plain)
for _task in (MATH, QA, MC, PLAIN):
    register(_task)


def by_task(relations: Iterable[str]) -> str:
    """How a policy names "each problem by its own task's relation", where the problems have these."""
    return f"by-task({','.join(sorted(relations))})"


def relations_of(told: str) -> list[str]:
    """The relations behind such a name, or the one that is named alone."""
    return specs_in(told.removeprefix("by-task(").removesuffix(")"))


def known_relations() -> set[str]:
    """Names and versions of all relations that there are."""
    return {relation.spec for relation in (*RELATIONS.values(), *(task.relation for task in _TASKS.values()))}


def is_known_relation(spec: str) -> bool:
    """Whether there is a relation of that name and version, its rules included."""
    try:
        return spec in known_relations() or relation_of_spec(spec).spec == spec
    except InvalidValue:
        return False


def task_named(name: Any) -> Task:
    """The task of that name or alias; the plain one where it is not known."""
    return _TASKS.get(name.lower(), PLAIN) if isinstance(name, str) else PLAIN


def task_of(problem: Problem) -> Task:
    """The task that a problem names."""
    return task_named(problem.extra.get("task"))


def common_task(problems: Sequence[Problem]) -> str:
    """The one task that all problems name."""
    names = sorted({str(problem.extra.get("task")) for problem in problems})
    known = ", ".join(task.name for task in dict.fromkeys(_TASKS.values()) if task.template is not None)
    if names == ["None"]:
        raise DatasetError("the problems name no task", f"say which with {{task}}: {known}")
    if len(names) != 1:
        raise DatasetError(
            f"the problems have the tasks {', '.join(names)}", f"name one with {{task}} ({known}), or sample apart"
        )
    return names[0]
