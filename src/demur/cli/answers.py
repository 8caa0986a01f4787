"""`demur answers`: extract answers from texts and put them into classes, or explain why two are the same."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from operator import ne
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli import output
from demur.cli.options import AnswerField, Json, Relation, Text, option
from demur.cli.replacing import POOLS, refuse_overwriting
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.answers.extraction.custom import Extractor

NAME = "answers"
HELP = """Extract the answers of a pool file and put equal ones into one class, or explain two answers.

Writes a copy of the file in which every path has `answer`, `extraction` (the rule that found it) and `key` (equal for
equal answers). Paths that have an answer keep it, unless `--extract` says how to read their text. With `--slow` an
answer that only math-verify can read is given the spelling it is equal to.

Examples:

`demur answers pools.jsonl -o classed.jsonl`

`demur answers pools.jsonl -o classed.jsonl --extract 'The answer is (.*)'`

`demur answers --explain '1/2' '0.50'`
"""
_SLOW = "Put answers that no rule can read to math-verify; verdicts are kept in this file."
_SLOW_TALE = (
    "The slow path asked math-verify {asked} times and gave {respelled} answers the spelling they are equal to; "
    "{disputed} pairs of one value stay apart, {killed} questions ran into a limit, {restarted} children ended."
)


def run(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Pool file.", show_default=False)] = None,
    out: Annotated[Path | None, option("--out", "FILE", "Where to write the copy.", "-o")] = None,
    explain: Annotated[
        tuple[str, str] | None, option("--explain", "A B", "Say why A and B are, or are not, the same.")
    ] = None,
    extract: Annotated[
        Text, option("--extract", "SPEC", "Read texts by package.module:function, or a regular expression.")
    ] = None,
    slow: Annotated[Path | None, option("--slow", "VERDICTS", _SLOW)] = None,
    relation: Relation = None,
    answer_field: AnswerField = None,
    json: Json = False,
) -> None:
    if explain is not None:
        _explain(*explain, relation, json=json)
        return
    if file is None or out is None:
        raise InvalidValue("give a pool file and -o FILE, or --explain A B")
    refuse_overwriting(out, file, by=POOLS)
    _class_file(file, out, extract, relation, answer_field or "answer", slow, json=json)


def _explain(a: str, b: str, relation: str | None, *, json: bool) -> None:
    chosen = demur.answers.relation_named(relation or "mathematics")
    if json:
        keys, same = [chosen.key(a), chosen.key(b)], demur.answers.equivalent(a, b, chosen)
        output.emit({"relation": chosen.spec, "keys": keys, "same": same})
    else:
        output.say(demur.answers.explain(a, b, chosen))


def _class_file(
    file: Path, out: Path, extract: str | None, relation: str | None, name: str, store: Path | None, *, json: bool
) -> None:
    from demur.answers.extraction.custom import parse_extractor
    from demur.pools.jsonl import read_pools, write_pools

    fields = demur.FieldChoice(name, relation=relation)
    tally = _Tally(fields, None if extract is None else parse_extractor(extract))
    source = read_pools(file)
    with nullcontext() if store is None else demur.answers.SlowPath(store=store) as slow:
        pools = [tally.classed(pool, slow) for pool in source]
    write_pools(pools, out)
    counts = {name: getattr(tally, name) for name in ("spellings", "classes", "as_text", "winners_changed")}
    facts: dict[str, Any] = {"file": str(out), "problems": len(pools), "methods": dict(tally.methods), **counts}
    if slow is not None:
        numbers = {name: getattr(slow, name) for name in ("asked", "killed", "restarted")}
        facts["slow"] = {"respelled": tally.respelled, "disputed": len(slow.disputed), **numbers}
    if json:
        output.emit({**facts, "without_answer": tally.without})
        return
    columns = {"rule": lambda method: method[0], "paths": lambda method: str(method[1])}
    output.table_of("How answers were found", tally.methods.most_common(), columns)
    output.say(
        f"{facts['spellings']} spellings in {facts['problems']} problems are {facts['classes']} classes; "
        f"{facts['as_text']} answers could not be read as anything but text and are compared as it stands.\n"
        f"In {facts['winners_changed']} problems the majority vote has another winner than when spellings are compared."
    )
    if slow is not None:
        output.say(_SLOW_TALE.format(**facts["slow"]))
    output.say(*("  the same: " + ", ".join(map(output.visible, same)) for same in tally.merged[:5]))
    output.wrote(out)


@dataclass
class _Tally:
    """How the answers of a file are read and put into classes, and what happened to them."""

    fields: demur.FieldChoice
    extractor: Extractor | None
    methods: Counter[str] = field(default_factory=Counter)
    merged: list[list[str]] = field(default_factory=list)
    spellings: int = 0
    classes: int = 0
    as_text: int = 0
    winners_changed: int = 0
    without: int = 0
    respelled: int = 0

    def classed(self, pool: demur.Pool, slow: demur.answers.SlowPath | None) -> demur.Pool:
        """A pool whose paths have their answers, and the rules and classes of those."""
        from demur.pools.respelled import accepting_spellings

        relation = self.fields.relation_of(pool.problem)
        read = [self._read(path, relation) for path in pool.paths]
        written = [extraction.answer for extraction in read]
        key_of = self.fields.key_of(pool.problem)
        surfaces, keys = written, [key_of(surface) for surface in written]
        self.methods.update(extraction.method for extraction in read)
        problem = pool.problem
        if slow is not None and relation.name == "mathematics" and (spelled := slow.spellings(keys, surfaces)):
            # An answer that the slow path found equal to another is given that spelling, and gold accepts it where it
            # accepted the answer, so that every later command sees one class by the rules alone.
            surfaces = [spelled.get(key or "", surface) for key, surface in zip(keys, surfaces, strict=True)]
            keys = [key_of(surface) for surface in surfaces]
            problem = accepting_spellings(problem, spelled, key_of)
            self.respelled += sum(map(ne, surfaces, written))
        self._add(written, keys)
        paths = []
        for path, extraction, surface, key in zip(pool.paths, read, surfaces, keys, strict=True):
            extra = {**path.extra, "extraction": extraction.method, "key": key}
            if surface != extraction.answer:
                extra["answer_written"] = extraction.answer
            paths.append(replace(path, answer=surface, has_answer_field=True, extra=extra))
        return replace(pool, problem=problem, paths=tuple(paths))

    def _read(self, path: demur.Path, relation: demur.answers.Relation) -> demur.answers.Extraction:
        from demur.answers.extraction import was_cut
        from demur.answers.relations import as_written
        from demur.pools.scores import field_of

        name = self.fields.answer_field
        given = path.answer if name == "answer" else field_of(path, [name])
        readable = (str, int, float) if relation.structure is None else (str, int, float, dict, list)
        if self.extractor is None and isinstance(given, readable):
            return demur.answers.Extraction((as_written(given) or "").strip() or None, "given")
        if path.text is None:
            return demur.answers.Extraction(None, "no text")
        truncated = was_cut(path.extra.get("finish_reason"))
        return (self.extractor or relation.extract)(path.text, truncated=truncated)

    def _add(self, surfaces: list[str | None], keys: list[str | None]) -> None:
        by_key: dict[str, set[str]] = {}
        for surface, key in zip(surfaces, keys, strict=True):
            if surface is not None and key is not None:
                by_key.setdefault(key, set()).add(surface)
        self.spellings += sum(map(len, by_key.values()))
        self.classes += len(by_key)
        self.as_text += sum(key.startswith("s:") for key in keys if key is not None)
        self.without += sum(key is None for key in keys)
        self.merged += [sorted(same)[:4] for same in by_key.values() if len(same) > 1]
        winners = {surface for key in _leaders(keys) for surface in by_key[key]}
        self.winners_changed += not winners >= _leaders(surfaces)


def _leaders(votes: list[str | None]) -> set[str]:
    """The entries with the most votes."""
    counts = Counter(vote for vote in votes if vote is not None)
    return {vote for vote, paths in counts.items() if paths == max(counts.values())}
