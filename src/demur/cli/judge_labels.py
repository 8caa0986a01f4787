"""`demur judge-labels`: a model's verdicts on whether answers agree with gold, and people's checks of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli import options, output, replacing, sampling_options, vote_flags
from demur.cli.progress import Meter, duration, stop_on_sigterm
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.pipeline.label_judge import JudgingProgress
    from demur.pools.verdicts import Verdicts

NAME = "judge-labels"
HELP = """Ask a model whether answers agree with gold, where the rules do not decide; or have people check what it said.

Every distinct (question, answer, gold) is asked about once, and every verdict is stored. Run the same command again to
go on where it stopped. The verdicts are labels for `calibrate`, `evaluate`, `audit` and `report --label-verdicts`: they
never become a score, and the promise says "wrong by this judge" until people have checked a random part of them.

With `--check` a random part goes to a sheet, to be filled in; `--checked` reads it back. In the file itself people
overrule the judge with `"person": true` or `false`.

Examples:

`demur judge-labels runs/qa.db --model Qwen/Qwen3-8B --base-url http://localhost:8000/v1 -o verdicts.jsonl`

`demur judge-labels verdicts.jsonl --check 50 -o sheet.txt`

`demur judge-labels verdicts.jsonl --checked sheet.txt`
"""
_CONTEXT = 2048
_VERDICTS = "Where verdicts are stored, as JSON lines; with --check, the sheet."


def run(
    file: Annotated[str, options.argument("POOLS|VERDICTS", "Pools with gold; with --check or --checked, verdicts.")],
    out: Annotated[Path | None, options.option("--out", "FILE", _VERDICTS, "-o")] = None,
    model: sampling_options.Model = None,
    base_url: sampling_options.BaseUrl = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Longest reply of the judge.  [default: 16]")] = None,
    answer_field: options.AnswerField = None,
    missing: options.Missing = None,
    relation: options.Relation = None,
    task: options.Task = None,
    labels: options.LabelSet = None,
    gold_tolerance: options.GoldTolerance = None,
    gold_containment: options.GoldContainment = False,
    run_name: options.RunName = None,
    partial: options.Partial = False,
    concurrency: sampling_options.Concurrency = None,
    patience: sampling_options.Patience = None,
    answer_seconds: sampling_options.AnswerSeconds = None,
    mixed_models: sampling_options.MixedModels = None,
    check: Annotated[int | None, typer.Option("--check", min=1, metavar="N", help=options.DRAWN)] = None,
    checked: Annotated[Path | None, options.option("--checked", "SHEET", "Read a filled-in sheet back.")] = None,
    seed: options.Seed = None,
    json: options.Json = False,
) -> None:
    if check is not None and checked is not None:
        raise InvalidValue("--check draws a sheet and --checked reads one; choose one")
    if check is not None or checked is not None:
        if model is not None or base_url is not None:
            raise InvalidValue("--check and --checked ask no model; leave --model and --base-url out")
        if check is not None:
            facts = _draw(Path(file), out, check, seed or 0)
        else:
            assert checked is not None
            facts = _read_back(Path(file), checked)
        if json:
            output.emit(facts)
        else:
            _show_check(facts)
        return
    if out is None:
        raise InvalidValue("name the file of verdicts with -o")
    if model is None:
        raise InvalidValue("name the judge with --model, and --base-url where it is served")
    from demur import event_loop
    from demur.pipeline.config import Config
    from demur.pipeline.label_judge import MAX_TOKENS, LabelAsker, judge_labels
    from demur.pipeline.verdicts import VerdictFile

    replacing.refuse_name(out, replacing.LABELS)
    if out.is_file() and Path(file).is_file() and out.samefile(file):
        raise InvalidValue(f"{out} is an input of this command; choose another name for the output")
    rule = vote_flags.LabelFlags(None, gold_tolerance, gold_containment).rule()
    fields = demur.FieldChoice(
        answer_field or "answer",
        missing=tuple(missing or ()),
        relation=relation,
        task=task,
        labels=vote_flags.label_names(labels),
    )
    facts_wanted = fields.answer_field != "answer"
    source = demur.read_pools(file, run_name, facts=facts_wanted, partial=partial, say=options.mention)
    # One question at a time here, with room for the question beside the reply.
    judge = Config(base_url, model, concurrency, patience, answer_seconds, paths=1, max_tokens=_CONTEXT)
    backend = replace(judge, mixed_models=mixed_models).backend(options.mention)
    asker = LabelAsker(backend, max_tokens=max_tokens or MAX_TOKENS, mixed_models=bool(mixed_models))
    with VerdictFile(out) as verdicts, Meter(quiet=json, counted="verdicts") as meter, stop_on_sigterm():
        progress = event_loop.run_stoppable(
            lambda stop: judge_labels(
                source, fields, rule, asker, verdicts, watch=meter, say=options.mention, stop=stop
            )
        )
    facts = {"verdicts": str(out), "judge": asker.name, **_counts(progress), **_agreement(demur.read_verdicts(out))}
    if json:
        output.emit(facts)
    else:
        _show(facts)
    if progress.interrupted or progress.failed:
        raise typer.Exit(130 if progress.interrupted else 1)


def _counts(progress: JudgingProgress) -> dict[str, Any]:
    names = ("wanted", "saved", "agree", "disagree", "neither", "seconds", "failed", "retries", "interrupted")
    return {name: getattr(progress, name) for name in names}


def _agreement(verdicts: Verdicts) -> dict[str, Any]:
    """How many verdicts there are, and on how many of those checked at random people found the same."""
    judge = verdicts.judge
    interval = demur.Interval.exact(judge.confirmed, judge.checked)
    overruled = sum(row.person is not None and not row.confirmed for row in verdicts)
    counts = {"stored": len(verdicts), "checked": judge.checked, "confirmed": judge.confirmed, "overruled": overruled}
    return {**counts, "agreement": interval.estimate, "agreement_interval": [interval.lower, interval.upper]}


def _draw(file: Path, sheet: Path | None, count: int, seed: int) -> dict[str, Any]:
    from demur.files.atomic import written_whole
    from demur.pipeline.check_sheet import draw, sheet_of

    verdicts = demur.read_verdicts(file)
    drawn = draw(verdicts, count, seed=seed)
    if sheet is not None and drawn:
        if sheet.exists():
            raise InvalidValue(f"{sheet} is there already, and may be filled in; choose another name")
        with written_whole(sheet, InvalidValue) as unfinished:
            unfinished.write_text(sheet_of(drawn), encoding="utf-8")
    shown = sheet_of(drawn) if sheet is None and drawn else None
    named = {"verdicts": str(file), "sheet": None if sheet is None else str(sheet), "drawn": len(drawn)}
    return {**named, "text": shown, **_agreement(verdicts)}


def _read_back(file: Path, sheet: Path) -> dict[str, Any]:
    from demur.pipeline.check_sheet import read_sheet
    from demur.pipeline.verdicts import VerdictFile

    rows = read_sheet(sheet, demur.read_verdicts(file))
    with VerdictFile(file) as verdicts:
        verdicts.append(rows)
    return {"verdicts": str(file), "sheet": str(sheet), "read": len(rows), **_agreement(demur.read_verdicts(file))}


def _show(facts: dict[str, Any]) -> None:
    if not facts["wanted"]:
        output.say(f"Every answer that needs a verdict has one: {facts['stored']} verdicts in {facts['verdicts']}.")
        return
    output.say(
        f"{facts['judge']}: {facts['saved']} of {facts['wanted']} verdicts in {duration(facts['seconds'])}: "
        f"{facts['agree']} agree with gold, {facts['disagree']} do not, {facts['neither']} neither yes nor no."
    )
    for problem, reason in list(facts["failed"].items())[:3]:
        output.say(f"  failed: {output.visible(problem)}: {output.visible(reason, 300)}")
    if facts["neither"]:
        output.say("  An answer with neither counts as wrong; see it in the file, where a person may say.")
    if facts["failed"] or facts["interrupted"]:
        output.say("  Run the same command again to go on.")
        return
    output.say(
        f"Next: demur judge-labels {facts['verdicts']} --check 50 -o sheet.txt, then "
        f"demur calibrate … --label-verdicts {facts['verdicts']}"
    )


def _show_check(facts: dict[str, Any]) -> None:
    if facts.get("text"):
        output.say(facts["text"])
    elif facts.get("drawn"):
        output.say(
            f"Wrote {facts['sheet']}: {facts['drawn']} verdicts to check. When it is filled in: "
            f"demur judge-labels {facts['verdicts']} --checked {facts['sheet']}"
        )
    elif "drawn" in facts:
        output.say("So many were drawn and checked already; draw more of them.")
    if facts["checked"]:
        low, high = (output.percent(end) for end in facts["agreement_interval"])
        output.say(
            f"People confirmed {facts['confirmed']} of {facts['checked']} verdicts checked at random: "
            f"{output.percent(facts['agreement'])} (95 % interval {low} to {high}); {facts['overruled']} are overruled."
        )
