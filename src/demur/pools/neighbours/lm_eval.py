"""Sample logs of lm-evaluation-harness (`samples_TASK_DATE.jsonl`), whose repeats are the paths of a problem.

    {"doc_id": 0, "doc": {…}, "target": "18", "arguments": {"gen_args_0": {"arg_0": "the prompt", "arg_1": {…}}},
     "resps": [["a text", "another", …]], "filtered_resps": [["18", "18", …]], "filter": "strict", "exact_match": 1.0}

A question stands there once for every filter. Where one filter gives an answer for every repeat, those are the answers;
what several filters give is kept by name (`answer_strict`), and one that gives a single answer for all, as a
majority does, is none of a path. Metrics are labels of the whole question, and kept as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any

from demur.descriptions import Description
from demur.errors import PoolFileError
from demur.files.inputs import lines_of
from demur.files.strict_json import NotJson, parse
from demur.pools.neighbours.fields import accepted, data_set_fields, kept
from demur.pools.provenance import PoolFile, Provenance
from demur.records import Path, Pool, Problem

_KNOWN = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")
_HASHES = ("doc_hash", "prompt_hash", "target_hash")
_QUESTIONS = ("question", "problem", "query", "input")
_NO_ANSWER = "[invalid]"
_DRAWN = {"temperature": "temperature", "top_p": "top_p", "max_gen_toks": "max_tokens", "until": "stop"}

Record = dict[str, Any]


@dataclass
class _Question:
    """What the lines of one question say together."""

    problem: Problem
    texts: list[str]
    answers: dict[str, list[str | None]] = field(default_factory=dict)
    """Of each filter that gives one for every repeat."""
    labels: dict[str, Any] = field(default_factory=dict)

    def pool(self) -> Pool:
        """One path for each repeat."""
        alone = next(iter(self.answers.values())) if len(self.answers) == 1 else None
        paths = [
            Path(
                None if alone is None else alone[at],
                text,
                extra={f"answer_{name}": given[at] for name, given in self.answers.items()} if alone is None else {},
                has_answer_field=alone is not None,
            )
            for at, text in enumerate(self.texts)
        ]
        labelled = {"labels": self.labels} if self.labels else {}
        return Pool(replace(self.problem, extra={**self.problem.extra, **labelled}), tuple(paths))


def read_lm_eval(path: FilePath) -> PoolFile:
    """All questions of a log."""
    questions: dict[str, _Question] = {}
    drawn: dict[str, Any] | None = None
    for where, record in _records(path):
        name, texts = record.get("doc_id"), _texts(record.get("resps"), where)
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise PoolFileError(f"{where}: `doc_id` must be a whole number or a text, got {name!r:.40}")
        known = questions.setdefault(str(name), _Question(_problem(record), texts))
        filtered, given = str(record.get("filter", "none")), _answers(record.get("filtered_resps"), len(texts))
        if known.texts != texts or filtered in known.labels:
            raise PoolFileError(
                f"{where}: the question {name!r:.40} stands there before, with other answers or the same filter",
                "give logs of several evaluations one by one, each its own {run}",
            )
        known.labels[filtered] = _metrics(record)
        if given is not None:
            known.answers[filtered] = given
        settings = _settings(record.get("arguments"))
        drawn = settings if drawn is None else {k: v for k, v in drawn.items() if settings.get(k) == v}
    if not questions:
        raise PoolFileError(f"{path} holds no samples; expected one JSON object per line")
    _refuse_other_filters(questions, path)
    _leave_out_whole_texts(list(questions.values()))
    description = Description({"backend": "lm-eval", **(drawn or {})})
    return PoolFile([question.pool() for question in questions.values()], Provenance(description))


def _refuse_other_filters(questions: Mapping[str, _Question], path: FilePath) -> None:
    """Raise where a filter says nothing of some question: a log has all questions for one filter, then for the next."""
    named = dict.fromkeys(name for question in questions.values() for name in question.labels)
    for name, question in questions.items():
        if lacking := [filtered for filtered in named if filtered not in question.labels]:
            told = f"{path}: the question {name!r:.40} has no line of the filter {lacking[0]!r:.40}, which others have"
            raise PoolFileError(f"{told}; the log is cut off", "use a whole copy")


def _leave_out_whole_texts(questions: list[_Question]) -> None:
    """Take no answers from a filter that leaves every text as it is, and so reads nothing off it."""
    for name in list(questions[0].answers):
        if all(question.answers.get(name) == question.texts for question in questions):
            for question in questions:
                del question.answers[name]


def _records(path: FilePath) -> Iterator[tuple[str, Record]]:
    for number, line in lines_of(path, PoolFileError):
        if line.isspace():
            continue
        where = f"{path}, line {number}"
        try:
            record = parse(line)
        except NotJson as error:
            raise PoolFileError(f"{where}: expected one whole JSON object: {error}", "use a whole copy") from None
        if not isinstance(record, dict):
            raise PoolFileError(f"{where}: expected a JSON object, got {line.strip()!r:.40}")
        yield where, record


def _texts(told: Any, where: str) -> list[str]:
    """The sampled texts of a question: one request, answered as often as it was repeated."""
    texts = told[0] if isinstance(told, list) and len(told) == 1 else None
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise PoolFileError(
            f"{where}: `resps` must hold one list of sampled texts, got {told!r:.60}; log-likelihoods of given answers "
            "are no paths",
            "evaluate a task that generates (output_type: generate_until), with repeats",
        )
    return texts


def _answers(told: Any, n_paths: int) -> list[str | None] | None:
    """What a filter found in each text; None where it gives one answer for all of them."""
    first = told[0] if isinstance(told, list) and len(told) == 1 else None
    given = [first] if isinstance(first, str) and n_paths == 1 else first
    if not isinstance(given, list) or len(given) != n_paths or not all(isinstance(one, str) for one in given):
        return None
    return [None if answer == _NO_ANSWER else answer for answer in given]


def _problem(record: Record) -> Problem:
    doc, asked = record.get("doc"), _first_arguments(record.get("arguments"))
    prompt = asked[0] if asked and isinstance(asked[0], str) else None
    fields = doc if isinstance(doc, Mapping) else {}
    named = next((name for name in _QUESTIONS if isinstance(fields.get(name), str) and fields[name].strip()), None)
    question = prompt if named is None else str(fields[named])
    others = {name: value for name, value in record.items() if name not in (*_KNOWN, *_names_of_metrics(record))}
    extra = data_set_fields({name: value for name, value in fields.items() if name != named}) | kept(others)
    extra |= {} if prompt is None or named is None else {"prompt": prompt}
    target = record.get("target")
    as_it_is = isinstance(target, str) and target in (value for value in fields.values() if isinstance(value, str))
    gold = accepted([target] if as_it_is else target)  # else a list that lm-eval wrote as text, of alternatives
    return Problem(str(record["doc_id"]), question, gold, extra=extra)


def _names_of_metrics(record: Record) -> tuple[str, ...]:
    """The metrics of a line; older logs do not name them, and have nothing else beside what is known."""
    named = record.get("metrics")
    told = named if isinstance(named, list) else [name for name in record if name not in (*_KNOWN, *_HASHES)]
    return tuple(name for name in told if isinstance(name, str))


def _metrics(record: Record) -> dict[str, Any]:
    return kept({name: record[name] for name in _names_of_metrics(record) if name in record})


def _first_arguments(told: Any) -> list[Any]:
    """The prompt of a question and its settings, as newer and older logs have them."""
    first = told.get("gen_args_0") if isinstance(told, dict) else told[0] if isinstance(told, list) and told else None
    return list(first.values()) if isinstance(first, dict) else list(first) if isinstance(first, list) else []


def _settings(told: Any) -> dict[str, Any]:
    """How the texts of a question were drawn."""
    settings = _first_arguments(told)[1:2]
    known = settings[0] if settings and isinstance(settings[0], dict) else {}
    return {ours: known[theirs] for theirs, ours in _DRAWN.items() if known.get(theirs) is not None}
