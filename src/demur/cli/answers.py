"""`demur answers`: read answers off texts, put equal ones into classes, and show how that was done."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli import on_ray, options, output, sampling_options, vote_flags
from demur.cli.engine_flags import EngineFlags
from demur.cli.options import AnswerField, Json, Relation, Text, option
from demur.cli.replacing import refuse_overwriting, written_as
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demur.pools.answer_classes import AnswerClasses
    from demur.pools.reading import AnswerReader, PathRead

NAME = "answers"
HELP = """Read the answers of paths off their texts, put equal ones into one class, and show how that was done.

Ends with a table: how answers were found, how many, and three of each. With `-o` it writes a copy in which every path
has `answer`, `extraction` (the rule that found it), `found_at` (where) and `key` (equal for equal answers). Paths that
have an answer keep it, unless `--from-texts` or `--extract` says otherwise. `--explain` shows the whole way from a text
to its key. With `--slow` an answer that only math-verify can read is given the spelling it is equal to. In a Parquet
copy `key` is a column under the relation's version: later commands use it as it is, so that answers are compared once.
The copy says how its answers were read, as the run does, and its problems name the task given with `--task`.

Examples:

`demur answers pools.jsonl`

`demur answers pools.jsonl --from-texts --answer-marker 'My answer:' -o classed.jsonl`

`demur answers pools.jsonl --task mc --labels True,False,Uncertain -o classed.jsonl`

`demur answers shards/ -o keyed.parquet`

`demur answers pools.jsonl --explain --problem q7`

`demur answers shards/ --from-texts --engine ray -o classed/`

`demur answers --explain '1/2' 'So the answer is 0.50.'`
"""
_SLOW = "Put answers that no rule can read to math-verify; verdicts are kept in this file."
_REKEY = "Replace keys that another version of the relation made."
_SLOW_TALE = (
    "The slow path asked math-verify {asked} times and gave {respelled} answers the spelling they are equal to; "
    "{disputed} pairs of one value stay apart, {killed} questions ran into a limit, {restarted} children ended."
)
_FEW_WORDS = 4
_OUT = "Where to write the copy: a file, or an s3:// address that ends in .parquet; with --engine ray, a folder."


def run(
    given: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]", help="Pool file or run; with --explain, or texts.", show_default=False),
    ] = None,
    out: Annotated[str | None, option("--out", "FILE", _OUT, "-o")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the whole way from texts to keys.")] = False,
    problem: Annotated[Text, option("--problem", "ID", "With --explain: all paths of this problem.")] = None,
    from_texts: Annotated[
        bool, typer.Option("--from-texts", help="Read texts, whatever answers their paths have.")
    ] = False,
    extract: sampling_options.Extract = None,
    answer_marker: sampling_options.AnswerMarker = None,
    slow: Annotated[Path | None, option("--slow", "VERDICTS", _SLOW)] = None,
    rekey: Annotated[bool, typer.Option("--rekey", help=_REKEY)] = False,
    relation: Relation = None,
    task: options.Task = None,
    labels: options.LabelSet = None,
    answer_field: AnswerField = None,
    run_name: options.RunName = None,
    partial: options.Partial = False,
    place: EngineFlags = EngineFlags(),
    json: Json = False,
) -> None:
    fields = demur.FieldChoice(
        answer_field or "answer",
        relation=relation,
        task="mc" if labels and task is None and relation is None else task,
        labels=vote_flags.label_names(labels),
        markers=tuple(answer_marker or ()),
    )
    if place.is_ray:
        if explain or problem is not None or slow is not None or run_name is not None:
            raise InvalidValue("--explain, --problem, --slow and --run go without --engine ray")
        if not given or len(given) != 1:
            raise InvalidValue("give one folder of shards")
        how: dict[str, Any] = {"extract": extract, "from_texts": from_texts, "rekey": rekey, "partial": partial}
        done = on_ray.answers(given[0], out, fields, place.options(), **how, quiet=json)
        _refuse_idle(done.classes, done.reader)
        _tell(done.classes, done.reader, done.problems, out, json=json)
        on_ray.say_of_shards(done)
        return
    if explain and not (given and len(given) == 1 and (problem is not None or _is_place(given[0]))):
        _explain(given or [], fields, json=json)
        return
    if not given or len(given) != 1:
        raise InvalidValue("give one pool file or run, or --explain and texts")
    if problem is not None and not explain:
        raise InvalidValue("--problem goes with --explain")
    if explain and out is not None:
        raise InvalidValue("--explain shows the way of texts; without it, -o writes methods, places and keys")
    if out is not None and out.endswith((".db", ".sqlite")):
        raise InvalidValue(
            f"the copy is a pool file, and {out} is named like a run", "name it .jsonl, and `demur import` it"
        )
    refuse_overwriting(out, given[0], by=written_as(out))
    source = demur.read_pools(given[0], run_name, texts=True, partial=partial or explain, say=options.mention)
    source = source.of_task(fields.task)
    reader = _reader(fields, extract, source, from_texts=from_texts)
    if not rekey:
        from demur.pools.answer_keys import refuse_other_keys
        from demur.pools.fields import problems_of

        refuse_other_keys(source.pools, fields.describe(problems_of(source.pools)))
    if explain:
        _explain_file(source, reader, problem, json=json)
        return
    _class_file(source, reader, out, slow, json=json)


def _reader(
    fields: demur.FieldChoice, extract: str | None, source: demur.PoolSource, *, from_texts: bool
) -> AnswerReader:
    from demur.pools.reading import AnswerReader

    return AnswerReader(fields, extract, from_texts, source.description.answers)


def _is_place(given: str) -> bool:
    return "://" in given or Path(given).is_file() or Path(given).is_dir()


def _explain(texts: list[str], fields: demur.FieldChoice, *, json: bool) -> None:
    """How texts or bare answers are read, and whether all of them are one answer."""
    from demur.answers.kinds import reading
    from demur.tasks import asked_by

    if not texts:
        raise InvalidValue("give the texts or answers to explain, or a pool file")
    asked_of = demur.Problem("explained")
    relation, asked = fields.relation_of(asked_of), asked_by(asked_of, fields.labels, fields.markers)
    found = [relation.extract(text, asked) for text in texts]
    # An answer by itself is what it is; a text is what it says.
    answers = [each.answer if _is_text(text, each) else text for text, each in zip(texts, found, strict=True)]
    keys = [relation.key(answer, asked) for answer in answers]
    same = None not in keys and len(set(keys)) == 1
    if json:
        how = [{"answer": e.answer, "method": e.method, "span": e.span} for e in found]
        output.emit({"relation": relation.spec, "extractions": how, "keys": keys, "same": same})
        return
    for text, each, answer, key in zip(texts, found, answers, keys, strict=True):
        way = f"{output.visible(text, 80)!r}"
        if answer is None:
            way += f", by its {each.method!r},"
        elif answer is not text:
            way += f", by its {each.method!r} at {each.span}: {output.visible(answer, 80)!r}"
        output.say(f"{way} is read as {output.visible(reading(key), 200)}  [{output.visible(key or 'no key', 80)}]")
    if len(texts) > 1:
        output.say(f"{'The same' if same else 'Different'} by {relation.spec}.")
    else:
        output.say(f"Read by {relation.spec}.")


def _is_text(text: str, found: demur.answers.Extraction) -> bool:
    """Whether these words are read as a text; a few by themselves are an answer as they stand."""
    if found.method == "whole text":
        return False
    few = len(text.split()) < _FEW_WORDS and found.method in ("last sentence", "closing number", "none", "letter")
    return not few


def _explain_file(source: demur.PoolSource, reader: AnswerReader, problem: str | None, *, json: bool) -> None:
    """The way of every path of a problem; without one, of a path per method."""
    from demur.answers.kinds import reading
    from demur.pools.field_names import there_is

    pools = [pool for pool in source.pools if problem is None or pool.problem.id == problem]
    if not pools:
        ids = there_is(str(problem), [pool.problem.id for pool in source.pools])
        raise InvalidValue(f"no problem has the id {problem!r}; {ids}")
    ways: list[dict[str, Any]] = []
    shown: Counter[str] = Counter()
    for pool in pools:
        for place, each in enumerate(reader.read(pool)):
            shown[each.found.method] += 1
            if problem is None and shown[each.found.method] > 1:
                continue
            how = {"id": pool.problem.id, "path": place, "method": each.found.method, "span": each.found.span}
            told = {"relation": reader.fields.relation_of(pool.problem).spec, "text": _words(each)}
            ways.append({**how, **told, "answer": each.found.answer, "key": each.key, "read_as": reading(each.key)})
    reader.refuse_unused_marker()
    _mention_unread_markers(reader)
    if json:
        output.emit({"ways": ways, "without_answer": reader.without, "warnings": reader.warnings()})
        return
    for way in ways:
        where = f"{output.visible(way['id'])}, path {way['path']}"
        answer = output.DASH if way["answer"] is None else output.visible(way["answer"], 200)
        output.say(f"{where}: found by {way['method']}, by {way['relation']}")
        output.say(f"  text    {output.visible(way['text'], 200)}", f"  answer  {answer}")
        output.say(f"  key     {output.visible(way['key'] or output.DASH, 120)}: {output.visible(way['read_as'], 120)}")
    _warn(reader)


def _mention_unread_markers(reader: AnswerReader) -> None:
    """Say once that markers were given for texts that are not read."""
    if reader.has_own_markers and reader.ready:
        which = "all paths" if reader.ready == reader.paths else f"{reader.ready:,} of {reader.paths:,} paths"
        output.mention(f"--answer-marker is ignored: {which} have answers already; --from-texts reads their texts")


def _warn(reader: AnswerReader) -> None:
    output.warn(reader.warnings())
    if reader.lacks_answers:
        output.say(
            "  ways out: --answer-marker TEXT, --labels A,B,C, --task NAME, --extract SPEC; --explain shows texts"
        )


def _words(read: PathRead) -> str:
    text = read.path.text
    return read.words or ("no text" if text is None else f"…{text[-80:]}")


def _class_file(
    source: demur.PoolSource, reader: AnswerReader, out: str | None, store: Path | None, *, json: bool
) -> None:
    from demur.pools.answer_classes import AnswerClasses
    from demur.pools.fields import problems_of
    from demur.pools.files import write_pools

    tally = AnswerClasses()
    with nullcontext() if store is None else demur.answers.SlowPath(store=store) as slow:

        def classed() -> Iterator[demur.Pool]:
            """The pools one by one; what is amiss is said behind the last, before a copy is put in its place."""
            yield from (tally.classed(pool, reader, slow) for pool in source.pools)
            _refuse_idle(tally, reader)

        if out is None:
            deque(classed(), maxlen=0)
        else:
            described = reader.described(source.description, problems_of(source.pools), source.pools)
            write_pools(replace(source, description=described, keys=_made_by(reader, source)), out, classed)
    _tell(tally, reader, len(source.pools), out, slow, json=json)


def _refuse_idle(tally: AnswerClasses, reader: AnswerReader) -> None:
    """Raise where a marker or a rule was given that nothing in the file has."""
    reader.refuse_unused_marker()
    _mention_unread_markers(reader)
    relation = reader.fields.relation
    structure = None if relation is None else demur.answers.relation_named(relation).structure
    if structure is not None and (unmet := structure.unmet(tally.answers)):
        named = ", ".join(map(repr, unmet[:5]))
        raise InvalidValue(f"the rules for answers name {named}, and no answer has that", "correct it or leave it out")


def _made_by(reader: AnswerReader, source: demur.PoolSource) -> dict[str, Any]:
    """How keys are made, for whoever reads them: as the answers of a file are compared where nothing else is said."""
    from demur.pools.fields import problems_of

    return replace(reader.fields, answer_field="answer").describe(problems_of(source.pools))


def _tell(
    tally: AnswerClasses,
    reader: AnswerReader,
    problems: int,
    out: str | None,
    slow: demur.answers.SlowPath | None = None,
    *,
    json: bool,
) -> None:
    counts = {name: getattr(tally, name) for name in ("spellings", "classes", "as_text", "winners_changed")}
    facts: dict[str, Any] = {"file": None if out is None else str(out), "problems": problems, **counts}
    facts |= {"methods": dict(reader.methods), "without_answer": reader.without, "kinds": dict(tally.kinds)}
    if slow is not None:
        numbers = {name: getattr(slow, name) for name in ("asked", "killed", "restarted")}
        facts["slow"] = {"respelled": tally.respelled, "disputed": len(slow.disputed), **numbers}
    if json:
        examples = {method: list(found) for method, found in reader.examples.items()}
        output.emit({**facts, "examples": examples, "warnings": reader.warnings()})
        return
    output.say(
        f"{facts['spellings']} spellings in {facts['problems']} problems are {facts['classes']} classes; "
        f"{facts['as_text']} answers could not be read as anything but text and are compared as it stands.\n"
        f"In {facts['winners_changed']} problems the majority vote has another winner than when spellings are compared."
    )
    if slow is not None:
        output.say(_SLOW_TALE.format(**facts["slow"]))
    output.say(*("  the same: " + ", ".join(map(output.visible, same)) for same in tally.merged[:5]))
    read_as = ", ".join(f"{many:,} {kind}" for kind, many in tally.kinds.most_common())
    none = f"; {reader.without:,} of {reader.paths:,} paths have none" if reader.without else ""
    output.say(f"Answers are compared by {' and '.join(sorted(tally.relations))}: {read_as or 'none'}{none}.")
    columns: output.Columns = {
        "found by": lambda method: method[0],
        "paths": lambda method: f"{method[1]:,}",
        "such as": lambda method: " · ".join(output.visible(found, 30) for found in reader.examples[method[0]]),
    }
    output.table_of("How answers were found", reader.methods.most_common(), columns)
    _warn(reader)
    output.wrote(out)
