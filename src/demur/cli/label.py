"""`demur label`: people say which votes are right, from the top down, as far as labels are of use."""

from __future__ import annotations

import getpass
import shlex
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import demur
from demur.cli import options, output, promise_flags, replacing, vote_flags
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.calibration import Guarantee
    from demur.calibration.labelling import LabelQueue
    from demur.pipeline.label_file import LabelFile, LabelHistory

NAME = "label"
HELP = """Label votes by hand, the most confident first, and only as many as the promise needs.

A threshold is the k-th largest confidence of a wrong vote, so votes below it need no label. Votes that have none count
as wrong: whenever you stop, `calibrate --label-file` makes a policy whose promise holds, and more labels only let it
answer more. Gold is neither needed nor shown.

Every label is on the disk before the next question; run the same command again to go on. With `--out-sheet` the queue
goes to another tool, as CSV or JSON lines, and `--in-sheet` reads its verdicts back. `--json` asks nothing, and says
where labelling stands.

With `--down-to` all votes above a confidence are asked about, or the most confident share of them, whatever their
labels are. That is fixed before the first label, and `decide --fdr` takes such a policy; no other part of the labels
would do.

With `--check` people check a judge's labels: so many votes are drawn at random by the seed, and only these are asked
about. `calibrate --label-file`, with the judge's labels named as always, then promises what the check supports.

Examples:

`demur label runs/qa.db --alpha 0.05 --alpha 0.1 --tie-break jitter:0 -o labels.jsonl`

`demur label pools.jsonl -o labels.jsonl --out-sheet queue.csv --first 100`

`demur label pools.jsonl -o labels.jsonl --in-sheet queue.csv --by ann`

`demur label pools.jsonl --down-to 40% -o labels.jsonl`

`demur label pools.jsonl --check 100 --seed 7 -o checks.jsonl --out-sheet checks.csv`
"""
_OUT = "Where labels are stored, as JSON lines."
_BY = "Who labels.  [default: the user's name]"
_SHEET = "Write the queue to a new .csv or .jsonl file, for another tool."
_FILLED = "Read verdicts (right, wrong or skip) back from such a file."
_AGAIN = "Ask again about votes that were skipped."


def run(
    file: options.Pools,
    out: Annotated[Path, options.option("--out", "LABELS", _OUT, "-o")],
    alpha: options.Alpha = None,
    delta: options.Delta = None,
    smoothed: options.Smoothed = False,
    by_group: options.ByGroup = False,
    small_groups: options.SmallGroups = None,
    flags: vote_flags.VoteFlags = vote_flags.VoteFlags(),
    run_name: options.RunName = None,
    partial: options.Partial = False,
    config: options.Config = None,
    sizes_by_chance: options.SizesByChance = False,
    by: Annotated[str | None, options.option("--by", "NAME", _BY)] = None,
    skipped: Annotated[bool, typer.Option("--skipped", help=_AGAIN)] = False,
    out_sheet: Annotated[Path | None, options.option("--out-sheet", "FILE", _SHEET)] = None,
    check: Annotated[int | None, typer.Option("--check", min=1, metavar="N", help=options.DRAWN)] = None,
    first: Annotated[int | None, typer.Option("--first", min=1, help="Rows of the sheet.  [default: all]")] = None,
    in_sheet: Annotated[Path | None, options.option("--in-sheet", "FILE", _FILLED)] = None,
    down_to: options.DownTo = None,
    seed: options.Seed = None,
    json: options.Json = False,
) -> None:
    from demur.pipeline.label_file import LabelFile, LabelHeader, read_label_file

    if out_sheet is not None and in_sheet is not None:
        raise InvalidValue("--out-sheet writes a sheet and --in-sheet reads one; choose one")
    if first is not None and out_sheet is None:
        raise InvalidValue("--first is how many rows --out-sheet writes; name the sheet")
    if out.is_file() and Path(file).is_file() and out.samefile(file):
        raise InvalidValue(f"{out} is an input of this command; choose another name for the output")
    replacing.refuse_name(out, replacing.LABELS)
    asked = promise_flags.grouped(
        promise_flags.guarantees_of(alpha, delta, smoothed, seed), small_groups, by_group=by_group
    )
    asks = out_sheet is None and in_sheet is None and not json
    source, voted = flags.vote(file, run_name, config, demur.LabelRule(), texts=asks, partial=partial, labelled=False)
    voted.refuse_fitted()
    voted.refuse_without_jitter()
    with LabelFile(out) as labelling:
        history = read_label_file(out)
        if history.header is None:
            drawn = None if check is None else (check, seed or 0)
            begun: dict[str, Any] = {"sizes_by_chance": sizes_by_chance, "check": drawn, "down_to": down_to}
            labelling.begin(LabelHeader.of(voted, asked, **begun))
            history = read_label_file(out)
        else:
            _refuse_other(history, asked if alpha or delta or smoothed or by_group else None, sizes_by_chance, out)
            _refuse_other_draw(history, check, seed, out)
            _refuse_other_end(history, down_to, out)
        work = _Work(source, voted, labelling, history, by or _user(), skipped=skipped)
        if out_sheet is not None:
            facts = work.write_sheet(out_sheet, first)
        elif in_sheet is not None:
            facts = work.read_sheet(in_sheet)
        else:
            facts = work.ask() if asks else {}
        facts |= work.facts()
    if json:
        output.emit(facts)
        return
    where = {"run": run_name, "config": config, "partial": partial, "sizes_by_chance": sizes_by_chance}
    _show(facts, _next(file, out, {**vars(flags), **where}))


class _Work:
    """A file of labels, its queue and the votes that they are about."""

    def __init__(
        self,
        source: demur.PoolSource,
        voted: demur.VotedPools,
        labelling: LabelFile,
        history: LabelHistory,
        by: str,
        *,
        skipped: bool,
    ) -> None:
        from demur.pipeline.label_file import queue_of, rows_by_id

        self.source, self.voted, self.labelling, self.history, self.by = source, voted, labelling, history, by
        self.queue: LabelQueue = queue_of(voted, history, labelling.path)
        self.rows = rows_by_id(voted, self.queue)
        for row in self.queue.skipped if skipped else ():
            self.queue.take_back(row)

    def card(self, row: int) -> Any:
        from demur.pipeline.label_cards import LabelCard

        return LabelCard.of(self.source.pools[row], self.voted, row)

    def ask(self) -> dict[str, Any]:
        """Ask for labels, one by one, until none is of use or whoever labels has enough."""
        from demur.cli.label_dialogue import Dialogue

        said = list(self.history.standing.values())
        asked = Dialogue(self.queue, self.labelling, self.rows, self.card, said, self.by).run()
        return {"asked": asked}

    def write_sheet(self, sheet: Path, first: int | None) -> dict[str, Any]:
        from demur.pipeline.label_sheet import write_sheet

        assert self.history.header is not None
        cards = (self.card(row) for row in islice(self.queue.wanted, first))
        return {"sheet": str(sheet), "rows": write_sheet(sheet, cards, self.history.header)}

    def read_sheet(self, sheet: Path) -> dict[str, Any]:
        from demur.pipeline.label_file import queue_of, read_label_file
        from demur.pipeline.label_sheet import read_sheet

        assert self.history.header is not None
        found = read_sheet(sheet, self.history.header, self.history.standing, queue=self.rows, by=self.by)
        self.labelling.append(found)
        self.queue = queue_of(self.voted, read_label_file(self.labelling.path), self.labelling.path)
        return {"sheet": str(sheet), "read": len(found)}

    def facts(self) -> dict[str, Any]:
        """Where labelling stands."""
        counts = {"n": self.queue.n, "labelled": self.queue.n_labelled, "wrong": self.queue.n_wrong}
        points = [asdict(point) for point in self.queue.progress()]
        done: dict[str, Any] = {"skipped": len(self.queue.skipped), "done": self.queue.next is None}
        assert self.history.header is not None
        if (end := self.queue.down_to) is not None:
            done |= {"down_to": str(self.history.header.down_to), "to_label": len(self.queue.wanted), "ends_at": end[0]}
        done |= {} if (check := self.history.header.check) is None else {"drawn": check[0], "seed": check[1]}
        return {"labels": str(self.labelling.path), **counts, **done, "points": points}


def _refuse_other(history: LabelHistory, asked: list[Guarantee] | None, sizes_by_chance: bool, out: Path) -> None:
    """Raise where other guarantees are asked for than those that labels were begun for."""
    assert history.header is not None
    begun, wanted = (
        [(one.name, {**one.parameters(), "seed": None}) for one in sorted(ones, key=lambda one: (one.alpha, one.name))]
        for ones in (history.header.guarantees, asked or history.header.guarantees)
    )
    if begun != wanted:
        told = ", ".join(f"{one.alpha:g} ({one.name.replace('_', ' ')})" for one in history.header.guarantees)
        raise InvalidValue(
            f"{out} was begun for alpha = {told}; leave --alpha, --delta and --smoothed out to go on, or begin another "
            "file of labels"
        )
    if sizes_by_chance and not history.header.sizes_by_chance:
        raise InvalidValue(f"{out} was begun without --sizes-by-chance; leave it out, or begin another file of labels")


def _refuse_other_draw(history: LabelHistory, check: int | None, seed: int | None, out: Path) -> None:
    """Raise where another part of the votes is to be checked than the one that was drawn: chance chooses once."""
    assert history.header is not None
    begun = history.header.check
    if check is None or (begun is not None and begun == (check, begun[1] if seed is None else seed)):
        return
    told = "without --check" if begun is None else f"with --check {begun[0]} --seed {begun[1]}"
    raise InvalidValue(
        f"{out} was begun {told}; leave --check and --seed out to go on, or begin another file of labels"
    )


def _refuse_other_end(history: LabelHistory, down_to: demur.DownTo | None, out: Path) -> None:
    """Raise where labelling is to end elsewhere than was said before the first label."""
    assert history.header is not None
    begun = history.header.down_to
    if down_to is None or down_to == begun:
        return
    told = "without --down-to" if begun is None else f"with --down-to {begun}"
    raise InvalidValue(
        f"{out} was begun {told}, and where labelling ends is fixed before the first label; leave --down-to out to go "
        "on, or begin another file of labels"
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


def _next(file: str, out: Path, given: dict[str, Any]) -> str:
    """The command that calibrates on these labels."""
    words = ["demur", "calibrate", file, "--label-file", str(out)]
    for name, value in given.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value not in (None, False):
            words += [word for entry in (value if isinstance(value, list) else [value]) for word in (flag, str(entry))]
    return shlex.join([*words, "-o", "policy.json"])


def _told_end(facts: dict[str, Any]) -> str:
    """How far it is to where labelling ends."""
    above = f"Labels go down to {facts['ends_at']:.4g} (--down-to {facts['down_to']})"
    if not facts["done"]:
        return f"{above}: {facts['to_label']} votes to go."
    if facts["skipped"]:
        return f"{above}: all were asked about. A batch needs the skipped ones too: --skipped asks again."
    return f"{above}: all are there. `decide --fdr` takes a policy that is calibrated on them."


def _show(facts: dict[str, Any], following: str) -> None:
    if "rows" in facts:
        output.say(f"Wrote {facts['sheet']}: {facts['rows']} votes, from the top down; fill in `verdict`.")
    elif "read" in facts:
        output.say(f"Read {facts['read']} verdicts from {facts['sheet']}.")
    counts = f"{facts['labelled']} of {facts['n']} votes labelled, {facts['wrong']} of them wrong"
    output.say(f"{counts}, {facts['skipped']} skipped.")
    columns: output.Columns = {
        "alpha": lambda point: f"{point['alpha']:g}",
        "errors to find": lambda point: str(point["errors_to_find"]),
        "answered now": lambda point: output.percent(point["answered"]),
        "labels to go, about": lambda point: str(point["labels_to_go"]),
    }
    output.table_of("", facts["points"], columns)
    for point in facts["points"]:
        if not point["feasible"]:
            output.say(f"{facts['n']} votes are too few for alpha = {point['alpha']:g}, whatever their labels.")
    if "drawn" in facts:
        output.say(
            f"These {facts['drawn']} votes were drawn at random (seed {facts['seed']}) to check a judge by: those "
            "without a label count as wrong. Name the judge's labels when you calibrate, such as --correct FIELD."
        )
    elif "down_to" in facts:
        output.say(_told_end(facts))
    elif facts["done"] and facts["skipped"]:
        output.say("More labels change nothing, but for the skipped ones, which count as wrong: --skipped asks again.")
    elif facts["done"]:
        output.say("More labels change nothing: the thresholds are those of full labels.")
    if facts["labelled"]:
        output.say(f"Next: {following}")
