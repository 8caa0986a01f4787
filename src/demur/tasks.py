"""Tasks: the kind of a question decides the prompt, how answers are read and compared, and how a judge is asked.

    math    mathematics               a boxed answer, compared by value
    qa      open questions            a short text, perhaps from passages
    mc      multiple choice           the letter of an option, or a label
    auto    where no task is said     mathematics where that is beyond doubt, else a text; no prompt of its own
    plain   where that is said        compared as it stands; no prompt of its own

`register` adds one of yours, and `chosen` one that a package brings (`demur.foreign_code`). A problem names its task in
its field `task`, or the data set that it is from; the names are aliases of one object. A name that nobody knows is an
error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from demur.answers.asked import Asked
from demur.answers.extraction import Extraction
from demur.answers.relations import (
    RELATIONS,
    Relation,
    as_written,
    auto,
    choice,
    mathematics,
    plain,
    relation_of_spec,
    specs_in,
    text,
)
from demur.errors import DatasetError, InvalidValue, PluginError
from demur.foreign_code import TASKS, listed, plugin_named
from demur.prompts import JudgePrompt, Template, judging, templates
from demur.prompts.conversations import last_asked
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
    """What a problem says of how its answers are written, beside what was said of all problems.

    Of a conversation, the last message is what a path answers.
    """
    known = problem.extra
    options = known.get("options", known.get("choices"))
    try:
        return Asked.of(options, labels, known.get("language"), markers, last_asked(problem))
    except InvalidValue as error:
        raise InvalidValue(f"problem {problem.id!r}: {error}") from None


_TASKS: dict[str, Task] = {}


def register(task: Task) -> Task:
    """Add a task; its name and aliases must be free."""
    for name in (task.name, *task.aliases):
        taken = _TASKS.get(_plain_name(name))
        if taken is not None and taken != task:
            raise InvalidValue(
                f"the task name {name!r} is registered twice, by {taken.origin} and by {task.origin}",
                "uninstall one of the two, or give the task another name",
            )
    _TASKS.update(dict.fromkeys(map(_plain_name, (task.name, *task.aliases)), task))
    return task


def _plain_name(name: str) -> str:
    """A task's name as it is looked up: `openai/GSM8K` and `multiple_choice` are written in many ways."""
    return name.strip().rpartition("/")[2].lower().replace("_", "-").replace(" ", "-")


def _sets(names: str) -> tuple[str, ...]:
    """Data sets whose questions are of one task."""
    return tuple(names.split())


MATH = Task(
    "math",
    mathematics,
    templates.MATHEMATICS,
    few_shot=templates.FEW_SHOT_MATHEMATICS,
    judge_prompt=judging.MATHEMATICS,
    aliases=(
        "mathematics",
        *_sets("maths gsm8k math500 math-500 svamp asdiv mawps multiarith aime minerva olympiadbench"),
    ),
)
QA = Task(
    "qa",
    text,
    templates.OPEN_QUESTION,
    few_shot=templates.FEW_SHOT_FACTS,
    with_passages=templates.QUESTION_ANSWERING,
    aliases=(
        "text",
        "open",
        *_sets("hotpotqa triviaqa nq naturalquestions squad simpleqa musique popqa 2wikimultihopqa"),
    ),
)
MC = Task(
    "mc",
    choice,
    templates.MULTIPLE_CHOICE,
    with_options=judging.MULTIPLE_CHOICE,
    aliases=(
        "choice",
        "multiple_choice",
        *_sets("mmlu mmlu-pro arc arc-challenge arc-easy gpqa medqa medmcqa hellaswag openbookqa commonsenseqa race"),
        *_sets("sciq aqua logiqa winogrande boolq strategyqa proofwriter folio anli mnli"),
    ),
)
AUTO = Task("auto", auto)
PLAIN = Task("plain", plain)
for _task in (MATH, QA, MC, AUTO, PLAIN):
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
    """The task of that name or alias; `auto` where none is named. A plugin's is known once it was `chosen`."""
    if name is None or name == "":
        return AUTO
    task = _TASKS.get(_plain_name(name)) if isinstance(name, str) else None
    if task is None:
        plugin = plugin_named(TASKS, name) if isinstance(name, str) else None
        if plugin is not None:
            raise InvalidValue(
                plugin.told("is named by a file, and no file may make demur run a plugin"),
                f"name it yourself: {{task={name}}}",
            )
        known = f"{_known()}{listed(TASKS)}"
        raise InvalidValue(f"the task {name!r:.60} is not known; known are {known}", "name one as {task}")
    return task


def chosen(name: str) -> Task:
    """The task that the user names, be it a plugin's: then its package is loaded, and its name known from here on."""
    plugin = None if _plain_name(name) in _TASKS else plugin_named(TASKS, name)
    if plugin is None:
        return task_named(name)
    task = plugin.load()
    if not isinstance(task, Task) or _plain_name(task.name) != _plain_name(name):
        told = f"the task {task.name!r}" if isinstance(task, Task) else f"{task!r:.60}"
        raise PluginError(plugin.told(f"is no demur.tasks.Task of that name, but {told}"), "mend or uninstall it")
    return register(task if task.origin != "demur" else replace(task, origin=plugin.package))


def _known() -> str:
    """All tasks, each with its other names."""
    return "; ".join(map(_with_aliases, dict.fromkeys(_TASKS.values())))


def _with_aliases(task: Task) -> str:
    return f"{task.name} ({', '.join(task.aliases)})" if task.aliases else task.name


def task_of(problem: Problem) -> Task:
    """The task that a problem names; raises with its id where nobody knows that."""
    name = problem.extra.get("task")
    try:
        return task_named(name)
    except InvalidValue as error:
        raise InvalidValue(f"problem {problem.id!r:.60}: {error.message}", error.remedy) from None


def keys_by_task(problem: Problem, answers: Sequence[Any], labels: Sequence[str] = ()) -> list[str | None]:
    """The keys of answers to a problem, by its task: equal for equal answers, None where there is none."""
    relation, asked = task_of(problem).relation, asked_by(problem, labels)
    texts = [None if answer is None else (as_written(answer) or "").strip() or None for answer in answers]
    key_of = {text: None if text is None else relation.key(text, asked) for text in set(texts)}
    return [key_of[text] for text in texts]


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
