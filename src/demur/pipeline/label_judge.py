"""A judge of labels: a model that is asked, once per distinct (question, answer, gold), whether answer and gold agree.

It is asked only where the declared rules do not decide, and never which answer won. Its verdicts are labels: they are
stored (`pipeline.verdicts`), overruled by people, and never become a score. The promise of a policy names it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from demur.backends.protocol import Backend, ReportedModels, Settings, Wanted
from demur.engine.progress import Progress
from demur.engine.queue import WorkQueue
from demur.errors import BackendError, EndpointRefused, InvalidValue
from demur.pipeline.verdicts import VerdictFile, read_verdicts
from demur.pools.fields import FieldChoice, read_table
from demur.pools.gold import accepted_texts
from demur.pools.label_rule import LabelRule
from demur.pools.labels import read_labels
from demur.pools.source import PoolSource
from demur.pools.verdicts import Verdict, Verdicts
from demur.prompts import Prompt
from demur.prompts.templates import lettered
from demur.records import Problem
from demur.store.patience import Patience

PROMPT = (
    "Below are a question, the answer that is accepted as right, and an answer that somebody gave. Does the given "
    "answer say the same as an accepted one? Other words, another notation or more detail are fine; another fact, "
    "name, number or unit is not, and neither is an answer that names several things to choose from. Take what is "
    "accepted as right, whatever you think of it. Reply with one word: yes or no.\n\n"
    "Question: {question}\n\nAccepted: {accepted}\n\nGiven: {answer}\n\nDoes it say the same? (yes or no)"
)
AGAIN = "Reply with exactly one word, yes or no: does the given answer say the same as an accepted one?"
VERSION = "agreement@1"
"""Of the two prompts above: change one of them, change this."""
MAX_TOKENS = 16
_SLOT = re.compile(r"\{(question|accepted|answer)\}")
_WORD = re.compile(r"[^\W\d_]+")
_YES, _NO = frozenset(("yes", "y")), frozenset(("no", "n"))
_BEFORE = frozenset(("answer", "verdict", "final", "the", "is", "so"))
_THOUGHT = "</think>"
_PROBES = (("five", True), ("7", False))


@dataclass
class JudgingProgress(Progress):
    """Where judging stands."""

    agree: int = 0
    disagree: int = 0
    neither: int = 0
    """Verdicts that were neither yes nor no, asked twice; such answers count as wrong."""

    def count(self, verdicts: Sequence[Verdict]) -> None:
        """Verdicts that were saved."""
        self.saved += len(verdicts)
        self.agree += sum(verdict.agrees is True for verdict in verdicts)
        self.disagree += sum(verdict.agrees is False for verdict in verdicts)
        self.neither += sum(verdict.agrees is None for verdict in verdicts)


@dataclass(frozen=True)
class Undecided:
    """An answer that the rules do not call right, to be put to a judge."""

    problem: Problem
    pair: Verdict
    """What is asked about, without a verdict so far."""

    def chat(self) -> list[dict[str, str]]:
        """What the judge is sent."""
        options = lettered(self.problem)
        parts = {
            "question": f"{self.pair.question.strip()}\n{options}".strip(),
            "accepted": " | ".join(self.pair.accepted),
            "answer": self.pair.answer,
        }
        return [{"role": "user", "content": _SLOT.sub(lambda slot: parts[slot.group(1)], PROMPT)}]


def undecided(
    source: PoolSource, fields: FieldChoice, rule: LabelRule, say: Callable[[str], None] = lambda _: None
) -> list[Undecided]:
    """The distinct (question, answer, gold) that the rule and its verdicts say nothing of, in the pools' order."""
    table = read_table(source.pools, fields)
    say(table.comparison())
    labels = read_labels(source.pools, table, replace(rule, verdicts=rule.verdicts or Verdicts([])))
    pieces: dict[tuple[str, str, frozenset[str]], Undecided] = {}
    for pool, written, judged in zip(source.pools, table.written, labels.judged, strict=True):
        problem, accepted = pool.problem, accepted_texts(pool.problem)
        lacking = [key for key, verdict in judged.items() if verdict is None]
        if lacking and problem.digest is None:
            raise InvalidValue(f"problem {problem.id!r} has no question, which a judge must see")
        for key in lacking:
            pair = Verdict(str(problem.digest), problem.question or "", written[key], accepted, id=problem.id)
            pieces.setdefault((pair.digest, key, frozenset(accepted)), Undecided(problem, pair))
    return list(pieces.values())


class LabelAsker:
    """Puts answers to a model, at temperature 0."""

    def __init__(self, backend: Backend, *, max_tokens: int = MAX_TOKENS, mixed_models: bool = False) -> None:
        self.backend, self.reported = backend, ReportedModels(mixed=mixed_models)
        self.settings = Settings(temperature=0.0, max_tokens=max_tokens, logprobs=False)

    @property
    def name(self) -> str:
        """Who judges, and how it is asked: what verdicts and policies name."""
        known = self.backend.describe()
        others = "".join(f"@{value}" for part, value in known.items() if part not in ("backend", "model"))
        return f"{known.get('backend')}:{known.get('model')}{others} {VERSION}"

    async def prepare(self) -> list[str]:
        """See that it says yes or no at all, on sums that anybody can check; what it gets wrong, in words."""
        answered, doubts, said = 0, list[str](), ""
        for given, expected in _PROBES:
            pair = Verdict("", "What is 2 + 3?", given, ("5",))
            verdict, said = await self._ask(Undecided(Problem("probe", pair.question), pair))
            answered += verdict is not None
            if verdict is not expected:
                told = {True: "yes", False: "no", None: f"{said!r:.40}"}[verdict]
                doubts.append(f"asked whether {given!r} is 5, the judge says {told}")
        if not answered:
            raise BackendError(
                f"the judge says neither yes nor no: its answer is {said!r:.60}",
                "choose a model that follows instructions or, if it thinks first, give it more {max_tokens}",
            )
        return doubts

    async def verdict(self, piece: Undecided) -> Verdict:
        """The verdict on one answer; asked again, more firmly, where it is neither yes nor no."""
        agrees, _ = await self._ask(piece)
        return replace(piece.pair, agrees=agrees, by=self.name)

    async def _ask(self, piece: Undecided) -> tuple[bool | None, str]:
        chat = piece.chat()
        said = await self._said(piece.problem.id, chat)
        agrees = read_yes_or_no(said)
        if agrees is None:
            firmer = [*chat, {"role": "assistant", "content": said}, {"role": "user", "content": AGAIN}]
            said = await self._said(piece.problem.id, firmer)
            agrees = read_yes_or_no(said)
        return agrees, said

    async def _said(self, problem: str, chat: Sequence[dict[str, str]]) -> str:
        prompt, text = Prompt(problem, messages=tuple(chat)), ""
        async with aclosing(self.backend.sample(prompt, self.settings, [Wanted(0, 0)])) as portions:
            async for portion in portions:
                self.reported.take(portion)
                text = portion[0].text if portion else text
        return text


def read_yes_or_no(said: str) -> bool | None:
    """The first word that a judge says behind its thoughts, or the last line where that is the word; else None.

    One that says both has said neither.
    """
    _, ended, behind = said.rpartition(_THOUGHT)
    if not ended and "<think>" in said:  # it was cut off while it thought
        return None
    lines = [words for line in behind.splitlines() if (words := [word.lower() for word in _WORD.findall(line)])]
    if not lines or all(any(word in both for words in lines for word in words) for both in (_YES, _NO)):
        return None
    last = [word for word in lines[-1] if word not in _BEFORE]
    for word in (lines[0][0], *(last if len(last) == 1 else ())):
        if word in _YES or word in _NO:
            return word in _YES
    return None


async def judge_labels(
    source: PoolSource,
    fields: FieldChoice,
    rule: LabelRule,
    asker: LabelAsker,
    file: VerdictFile,
    *,
    watch: Callable[[JudgingProgress], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    stop: asyncio.Event | None = None,
) -> JudgingProgress:
    """Ask for every verdict that a file lacks, each on the disk before it counts; run it again to go on."""
    stored = read_verdicts(file.path)
    refuse_other_judge(stored, asker.name, file)
    pieces = undecided(source, fields, replace(rule, verdicts=stored), say)
    progress = JudgingProgress(wanted=len(pieces), problems=len({piece.problem.id for piece in pieces}))
    if not pieces:
        progress.ended = progress.started
        return progress

    async def one(piece: Undecided) -> None:
        try:
            queue.emit(await asker.verdict(piece))
        except EndpointRefused:
            raise
        except BackendError as error:
            queue.fail(piece.problem.id, error)

    async def save(batch: list[Verdict]) -> None:
        await asyncio.to_thread(file.append, batch)
        progress.count(batch)

    queue: WorkQueue[Undecided, Verdict] = WorkQueue(
        one,
        save,
        progress,
        concurrency=min(asker.backend.concurrency, len(pieces)),
        watch=watch,
        stop=stop or asyncio.Event(),
        patience=Patience(),
        source=asker.backend,
    )
    try:
        for doubt in await queue.watched(asker.prepare()):
            say(f"warning: {doubt}; its verdicts may be worth little: check some")
        await queue.work_through(pieces)
    finally:
        await asker.backend.close()
    return progress


def refuse_other_judge(stored: Verdicts, name: str, file: VerdictFile) -> None:
    """Raise where a file has the verdicts of another judge."""
    theirs = {verdict.by for verdict in stored if verdict.by is not None}
    if theirs - {name}:
        raise InvalidValue(
            f"{file.path} holds the verdicts of {theirs.pop()}, and this judge is {name}; a label has one judge",
            "write to another file",
        )
