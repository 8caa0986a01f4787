"""Records as benchmarks publish them, each turned into a problem."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from demur.answers.extraction.mathematics import extract
from demur.errors import DatasetError, InvalidValue
from demur.prompts.conversations import MESSAGES, with_transcript
from demur.records import Problem, group_in_file

Record = Mapping[str, Any]
_FINAL = re.compile(r"####\s*+((?:(?!####).)++)\s*+\Z")
_OURS = ("id", "question", "gold", "cluster", "group", "paths")


def gsm8k(record: Record, name: str) -> Problem:
    """`question`, and an `answer` that ends in `#### 18`."""
    final = _FINAL.search(str(record["answer"]))
    if final is None:
        raise DatasetError(f"{name}: the answer does not end in #### and a number")
    gold = final.group(1).rstrip().replace(",", "")
    return Problem(name, _question(record["question"], name), (gold,), extra={"task": "math"})


def mathematics(record: Record, name: str) -> Problem:
    """`problem`, and a `solution` with a boxed answer, or the `answer` itself."""
    gold = record.get("answer")
    if gold is None:
        extracted = extract(str(record["solution"]))
        gold = extracted.answer if extracted.method == "boxed" else None
    if gold is None:
        raise DatasetError(f"{name}: the solution has no boxed answer")
    extra = {"task": "math"} | ({"level": str(record["level"])} if "level" in record else {})
    subject = record.get("type") or record.get("subject")
    return Problem(name, _question(record["problem"], name), (str(gold),), group=_text(subject), extra=extra)


def hotpotqa(record: Record, name: str) -> Problem:
    """`question`, `answer`, and `context`: pairs of a title and sentences, or the hub's two lists of them."""
    context = record["context"]
    if isinstance(context, Mapping):
        context = list(zip(context["title"], context["sentences"], strict=True))
    passages = [f"{title}\n{''.join(sentences).strip()}" for title, sentences in context]
    identity = _identity(record.get("_id") or record.get("id") or name, name)
    question, gold = _question(record["question"], name), str(record["answer"])
    extra = {"task": "qa", "passages": passages}
    return Problem(identity, question, (gold,), group=_text(record.get("type")), extra=extra)


def multiple_choice(record: Record, name: str) -> Problem:
    """`question`, `choices` or `options`, and `answer`: a letter, or the number of the right one."""
    options = list(map(str, record.get("choices") or record.get("options") or ()))
    answer = record.get("answer")
    letter = chr(65 + answer) if isinstance(answer, int) else str(answer).strip().upper()
    if not (len(letter) == 1 and 0 <= ord(letter) - 65 < len(options)):
        raise DatasetError(f"{name}: the answer {answer!r} is none of the {len(options)} options")
    subject = record.get("subject") or record.get("category")
    extra = {"task": "mc", "options": options}
    return Problem(name, _question(record["question"], name), (letter,), group=_text(subject), extra=extra)


def ours(record: Record, name: str) -> Problem:
    """`question` or `messages`, and where known `id`, `gold`, `task`, `cluster`, `group`; other fields are kept."""
    gold = record.get("gold")
    golds = gold if isinstance(gold, list) else [] if gold is None else [gold]
    if not all(isinstance(entry, (str, int)) or (isinstance(entry, float) and isfinite(entry)) for entry in golds):
        raise DatasetError(f"{name}: gold must be a text, a number or a list of those, got {gold!r:.40}")
    extra = {field: value for field, value in record.items() if field not in _OURS}
    identity, question = _identity(record.get("id", name), name), record.get("question")
    if question is not None or record.get(MESSAGES) is None:
        question = _question(record["question"], name)
    try:
        group = group_in_file(record.get("group"), name)
        return with_transcript(Problem(identity, question, tuple(golds), _text(record.get("cluster")), group, extra))
    except InvalidValue as error:
        raise DatasetError(error.message, error.remedy) from None


def recognise(record: Record) -> Callable[[Record, str], Problem]:
    fields = set(record)
    if fields & {"question", MESSAGES} and ("gold" in fields or "answer" not in fields):
        return ours
    if "problem" in fields and fields & {"solution", "answer"}:
        return mathematics
    if "question" in fields:  # and an answer, by now
        if "context" in fields:
            return hotpotqa
        if fields & {"choices", "options"}:
            return multiple_choice
        if _FINAL.search(str(record["answer"])):
            return gsm8k
    names, wanted = ", ".join(sorted(fields)), "`question` or `messages`, and `gold` (and `task`)"
    raise DatasetError(f"the fields {names} are of no known format; give {wanted}")


def _question(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DatasetError(f"{name}: a question must be a text that is not blank, got {value!r:.40}")
    return value


def _identity(value: Any, name: str) -> str:
    if not isinstance(value, (str, int)) or isinstance(value, bool) or not str(value).strip():
        raise DatasetError(f"{name}: an id must be a text that is not blank or a whole number, got {value!r:.40}")
    return str(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
