"""`demur answers`: extract answers from texts and put them into classes, or explain why two are the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.cli import output
from demur.cli.options import AnswerField, Json, Relation, refuse_overwriting

if TYPE_CHECKING:
    from demur.answers import Extraction, SlowPath
    from demur.answers import Relation as AnswerRelation
    from demur.answers.custom import Extractor
    from demur.records import Path as SampledPath
    from demur.records import Pool

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


def run(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Pool file.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write the copy.")] = None,
    explain: Annotated[
        tuple[str, str] | None,
        typer.Option("--explain", metavar="A B", help="Say why A and B are, or are not, the same."),
    ] = None,
    extract: Annotated[
        str | None,
        typer.Option(
            "--extract", metavar="SPEC", help="Read texts by package.module:function, or a regular expression."
        ),
    ] = None,
    slow: Annotated[
        Path | None,
        typer.Option(
            "--slow",
            metavar="VERDICTS",
            help="Put answers that no rule can read to math-verify; verdicts are kept in this file.",
        ),
    ] = None,
    relation: Relation = None,
    answer_field: AnswerField = None,
    json: Json = False,
) -> None:
    from demur.errors import InvalidValue

    if explain is not None:
        _explain(*explain, relation, json=json)
        return
    if file is None or out is None:
        raise InvalidValue("give a pool file and -o FILE, or --explain A B")
    refuse_overwriting(out, file)
    _class_file(file, out, extract, relation, answer_field or "answer", slow, json=json)


def _explain(a: str, b: str, relation: str | None, *, json: bool) -> None:
    from demur import answers

    chosen = answers.relation_named(relation or "mathematics")
    if json:
        keys = [chosen.key(a), chosen.key(b)]
        output.emit({"relation": chosen.describe(), "keys": keys, "same": answers.equivalent(a, b, chosen)})
    else:
        output.say(answers.explain(a, b, chosen))


def _class_file(
    file: Path, out: Path, extract: str | None, relation: str | None, field: str, store: Path | None, *, json: bool
) -> None:
    from contextlib import nullcontext

    from demur.answers import SlowPath
    from demur.answers.custom import parse_extractor
    from demur.files import read_pools, write_pools
    from demur.pool_table import Reading

    reading = Reading(field, relation=relation)
    reading.describe()
    custom = None if extract is None else parse_extractor(extract)
    tally = _Tally()
    source = read_pools(file)
    with nullcontext() if store is None else SlowPath(store=store) as slow:
        pools = [_classed(pool, reading.relation_of(pool.problem), custom, field, slow, tally) for pool in source]
    write_pools(pools, out)
    facts = tally.facts(str(out), len(pools))
    if json:
        output.emit(facts)
        return
    output.table(
        "How answers were found",
        ["rule", "paths"],
        [[name, str(paths)] for name, paths in tally.methods.most_common()],
    )
    output.say(
        f"{facts['spellings']} spellings in {facts['problems']} problems are {facts['classes']} classes; "
        f"{facts['as_text']} answers could not be read as anything but text and are compared as it stands.\n"
        f"In {facts['winners_changed']} problems the majority vote has another winner than when spellings are compared."
    )
    for examples in tally.merged[:5]:
        output.say("  the same: " + ", ".join(output.visible(each) for each in examples))
    output.say(f"Wrote {out}.")


class _Tally:
    """What happened to the answers of a file."""

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()
        self.spellings = self.classes = self.as_text = self.winners_changed = self.without = 0
        self.merged: list[list[str]] = []

    def add(self, surfaces: list[str | None], keys: list[str | None]) -> None:
        by_key: dict[str, set[str]] = {}
        for surface, key in zip(surfaces, keys, strict=True):
            if surface is not None and key is not None:
                by_key.setdefault(key, set()).add(surface)
        self.spellings += sum(map(len, by_key.values()))
        self.classes += len(by_key)
        self.as_text += sum(key.startswith("s:") for key in keys if key is not None)
        self.without += sum(key is None for key in keys)
        self.merged += [sorted(each)[:4] for each in by_key.values() if len(each) > 1]
        winners = {surface for key in _leaders(keys) for surface in by_key[key]}
        self.winners_changed += not winners >= _leaders(surfaces)

    def facts(self, file: str, problems: int) -> dict[str, Any]:
        return {
            "file": file, "problems": problems, "methods": dict(self.methods), "spellings": self.spellings,
            "classes": self.classes, "as_text": self.as_text, "without_answer": self.without,
            "winners_changed": self.winners_changed,
        }  # fmt: skip


def _leaders(votes: list[str | None]) -> set[str]:
    """The entries with the most votes."""
    counts = Counter(vote for vote in votes if vote is not None)
    return {vote for vote, paths in counts.items() if paths == max(counts.values())}


def _classed(
    pool: Pool, relation: AnswerRelation, custom: Extractor | None, field: str, slow: SlowPath | None, tally: _Tally
) -> Pool:
    from dataclasses import replace

    found = [_find(path, relation, custom, field) for path in pool.paths]
    surfaces = [each.answer for each in found]
    keys = [relation.key(surface) for surface in surfaces]
    tally.methods.update(each.method for each in found)
    if slow is not None and relation.name == "mathematics":
        merged = slow.merge(keys, surfaces)
        # An answer that the slow path found equal to another is given that spelling, so that every later command, and
        # gold, sees one class by the rules alone.
        spelling = {key: surface for key, surface in zip(keys, surfaces, strict=True) if key is not None}
        surfaces = [s if new is None else spelling[new] for s, new in zip(surfaces, merged, strict=True)]
        keys = merged
    tally.add([each.answer for each in found], keys)
    paths = []
    for path, each, surface, key in zip(pool.paths, found, surfaces, keys, strict=True):
        extra = {**path.extra, "extraction": each.method, "key": key}
        if surface != each.answer:
            extra["answer_written"] = each.answer
        paths.append(replace(path, answer=surface, has_answer_field=True, extra=extra))
    return replace(pool, paths=tuple(paths))


def _find(path: SampledPath, relation: AnswerRelation, custom: Extractor | None, field: str) -> Extraction:
    from demur.answers import Extraction
    from demur.answers.relations import as_written
    from demur.pool_table import field_of

    given = path.answer if field == "answer" else field_of(path, [field])
    if custom is None and isinstance(given, (str, int, float)):
        written = (as_written(given) or "").strip()
        return Extraction(written or None, "given")
    if path.text is None:
        return Extraction(None, "no text")
    truncated = path.extra.get("finish_reason") == "length"
    return (custom or relation.extract)(path.text, truncated=truncated)
