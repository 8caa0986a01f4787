"""Results of uqlm as pools: the response and the sampled responses of a prompt are its paths.

    result.to_dict()     {"data": {"prompts": […], "responses": […], "sampled_responses": [[…], …], …}, "metadata": {…}}
    result.to_df()       the same as a table, prompt, response, sampled_responses, …: JSON, JSON lines or CSV

uqlm's scores are of a prompt, not of a path: they are kept as fields of the problem, which may break ties
(`column:NAME`). What a user's own columns say of right and wrong stays a label. Where a result has raw responses, those
are the texts, and the others the answers read off them.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import sys
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path as FilePath
from typing import Any

from demur.answers.completions import deviation_of, logprobs_of, mean_of
from demur.descriptions import Description
from demur.errors import PoolFileError
from demur.files.inputs import text_of
from demur.pools.neighbours.fields import accepted, data_set_fields, holds_answers, kept
from demur.pools.provenance import PoolFile, Provenance
from demur.prompts.conversations import known_transcript
from demur.records import Path, Pool, Problem, is_nothing

_SINGULAR = {"prompts": "prompt", "responses": "response", "raw_responses": "raw_response"}
_SAMPLED = ("sampled_responses", "raw_sampled_responses")
_PLURAL = (*_SAMPLED, "claims", "sentences")
"""Names that uqlm leaves in the plural where it makes a table of a result."""
_PATHS = ("response", "raw_response", *_SAMPLED, "logprob", "sampled_logprob")
_PROBLEM = ("id", "prompt", "gold", "ground_truth", "cluster", "group", "Unnamed: 0", "")
_VERDICT = re.compile(r"(?i)(.*_)?(in)?correct(ness)?")

Row = Mapping[str, Any]


def read_uqlm(path: FilePath) -> PoolFile:
    """All prompts of a result."""
    text = text_of(path, PoolFileError)
    metadata: Any = None
    if path.name.lower().endswith((".csv", ".csv.gz")):
        rows = _rows_of_csv(text, path)
    else:
        document = _document(text, path)
        if isinstance(document, dict) and isinstance(document.get("data"), dict):
            metadata = document.get("metadata")
            document = {_in_table(name): column for name, column in document["data"].items()}
        rows = _rows(document, path)
    if not rows:
        raise PoolFileError(f"{path} holds no prompts")
    pools = [_pool(row, number, path) for number, row in enumerate(rows)]
    return PoolFile(pools, Provenance(Description(_drawn(metadata))))


def _in_table(name: str) -> str:
    """The name that uqlm gives a column where it makes a table of a result."""
    return name[:-1] if name.endswith("s") and not name.endswith("ss") and name not in _PLURAL else name


def _document(text: str, path: FilePath) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise PoolFileError(f"{path} is nested too deeply") from None
    except ValueError:
        pass
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            rows += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError) as error:
            raise PoolFileError(f"{path}, line {number}: expected one whole JSON object: {error}") from None
    return rows


def _rows(document: Any, path: FilePath) -> list[Row]:
    """The rows of a result: a list of them, or its columns as lists or, as pandas writes them, by row number."""
    if isinstance(document, list):
        if not all(isinstance(row, dict) for row in document):
            raise PoolFileError(f"{path}: every row must be an object")
        return [{_SINGULAR.get(name, name): value for name, value in row.items()} for row in document]
    named: dict[str, Any] = document if isinstance(document, dict) else {}
    columns = {_SINGULAR.get(name, name): list(c.values()) if isinstance(c, dict) else c for name, c in named.items()}
    for name in _SAMPLED:
        if not is_nothing(columns.get(name)) and not isinstance(columns[name], list):
            raise PoolFileError(f"{path}: `{name}` must be a list for every prompt, got {columns[name]!r:.60}")
    columns = {name: column for name, column in columns.items() if isinstance(column, list)}
    lengths = {name: len(column) for name, column in columns.items()}
    if "response" not in columns or len(set(lengths.values())) > 1:
        raise PoolFileError(f"{path}: expected columns of one length with responses among them, got {lengths}")
    return [{name: column[at] for name, column in columns.items()} for at in range(lengths["response"])]


def _rows_of_csv(text: str, path: FilePath) -> list[Row]:
    """Rows of a table; lists are written there as Python writes them."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        rows = list(csv.DictReader(StringIO(text, newline="")))
    except csv.Error as error:
        raise PoolFileError(f"{path}: {error}") from None
    finally:
        csv.field_size_limit(before)
    return [{name: _cell(name, cell) for name, cell in row.items() if name is not None} for row in rows]


def _cell(name: str, cell: Any) -> Any:
    text = cell.strip() if isinstance(cell, str) else ""
    if name in _PATHS and text.startswith("["):
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return cell
    if name in (*_PATHS, *_PROBLEM) or holds_answers(name):
        return cell
    if text in ("True", "False"):
        return text == "True"
    try:
        return float(text)
    except ValueError:
        return cell


def _pool(row: Row, number: int, path: FilePath) -> Pool:
    where = f"{path}, row {number}"
    for name in _SAMPLED:
        _refuse_no_list(row.get(name), f"{where}: `{name}`")
    said = _together(row.get("response"), row.get("sampled_responses"))
    raw = _together(row.get("raw_response"), row.get("raw_sampled_responses"))
    if not said or not all(isinstance(text, str) for text in said):
        raise PoolFileError(f"{where}: `response` and `sampled_responses` must be texts, got {said!r:.60}")
    if raw and len(raw) != len(said):
        raise PoolFileError(f"{where}: there are {len(said)} responses and {len(raw)} raw ones")
    logprobs = [row.get("logprob"), *_list(row.get("sampled_logprob"))]
    paths = tuple(
        Path(
            said[at] if raw else None,
            str(raw[at]) if raw else said[at],
            extra=_facts(logprobs[at]) if len(logprobs) == len(said) else {},
            has_answer_field=bool(raw),
        )
        for at in range(len(said))
    )
    prompt, gold = row.get("prompt"), row.get("gold", row.get("ground_truth"))
    others = {name: value for name, value in row.items() if name not in (*_PATHS, *_PROBLEM)}
    labels = {name: value for name, value in others.items() if isinstance(value, bool) or _VERDICT.fullmatch(name)}
    extra = data_set_fields({name: value for name, value in others.items() if name not in labels})
    extra |= {"labels": kept(labels)} if labels else {}
    question = prompt if isinstance(prompt, str) else None
    extra |= {"messages": prompt} if isinstance(prompt, list) else {}
    cluster, group = (None if row.get(name) is None else str(row[name]) for name in ("cluster", "group"))
    problem = Problem(str(row.get("id", number)), question, accepted(gold), cluster, group, extra)
    return Pool(known_transcript(problem), paths)


def _refuse_no_list(value: Any, named: str) -> None:
    """Raise where responses are there that cannot be read: without them a pool would be another. Nothing is none."""
    if isinstance(value, list) or is_nothing(value) or (isinstance(value, str) and not value.strip()):
        return
    raise PoolFileError(f"{named} must be a list of texts, got {value!r:.60}", "save the result again, as JSON")


def _together(first: Any, others: Any) -> list[Any]:
    """The response and those sampled beside it: uqlm may have exchanged the best of them for the first."""
    return [] if first is None else [first, *_list(others)]


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _facts(told: Any) -> dict[str, Any]:
    logprobs = logprobs_of({"content": told})
    if logprobs is None:
        return {}
    return {"logprob_mean": mean_of(logprobs), "logprob_std": deviation_of(logprobs), "n_tokens": len(logprobs)}


def _drawn(metadata: Any) -> dict[str, Any]:
    """How responses were sampled, as far as the result says."""
    told = metadata if isinstance(metadata, dict) else {}
    inner = told.get("parameters")
    told = inner if isinstance(inner, dict) else told
    temperature = told.get("sampling_temperature") or told.get("temperature")
    known = {"temperature": temperature} if isinstance(temperature, (int, float)) else {}
    return {"backend": "uqlm", **known}
