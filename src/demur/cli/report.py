"""`demur report`: one page about a score, a policy and the questions behind it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import demur
from demur.cli import options, output, policy_files, promise_flags, replacing, vote_flags
from demur.errors import InvalidValue
from demur.files.atomic import written_whole

NAME = "report"
HELP = """Write one self-contained HTML page: what the score is worth, what to expect at each alpha, and every question.

With `--policy` the page is about that policy; without, one is calibrated on half of the problems and shown on
the other half. It needs no network and no server: mail it, print it, open it on a phone.

Examples:

`demur report pools.jsonl --score simulated -o report.html`

`demur report runs/gsm8k.db --policy policy.json -o report.html --open`
"""


def run(
    file: options.Pools,
    out: Annotated[Path, options.option("--out", "FILE", "The page.", "-o")] = Path("report.html"),
    policy: options.MaybePolicyFile = None,
    key_file: options.KeyFile = None,
    alpha: options.Alpha = None,
    delta: options.Delta = None,
    flags: vote_flags.VoteFlags = vote_flags.VoteFlags(),
    labels: vote_flags.LabelFlags = vote_flags.LabelFlags(),
    run_name: options.RunName = None,
    partial: options.Partial = False,
    config: options.Config = None,
    hold_out: Annotated[float, typer.Option(metavar="SHARE", help="Share to show results on.")] = 0.5,
    title: Annotated[str | None, typer.Option("--title", help="Title of the page.  [default: the file's name]")] = None,
    texts: options.Texts = True,
    listed: Annotated[
        int,
        typer.Option(
            "--listed",
            metavar="N",
            min=1,
            help="Most questions that the page lists. Of more, it lists the wrong votes that are surest, and others "
            "drawn at random; all figures are of all questions.",
        ),
    ] = 20_000,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    seed: options.Seed = None,
    json: options.Json = False,
) -> None:
    from demur.pools.labels import labelled_rows, without_gold
    from demur.reports.facts import report_facts
    from demur.reports.page import page_of

    replacing.refuse_overwriting(out, file, policy, key_file, by=replacing.PAGE)
    if key_file is not None and policy is None:
        raise InvalidValue("--key-file checks a policy; name it with --policy")
    rule = labels.rule()
    if policy is not None:
        beside = {**vars(flags), "task": None, "stop": None, "wave": None}
        vote_flags.refuse_beside_policy(alpha=alpha, delta=delta, **beside, seed=seed)
        if flags.task is not None:
            demur.tasks.chosen(flags.task)
        source = demur.read_pools(file, run_name, texts=texts, partial=partial, say=options.mention).of_task(flags.task)
        loaded = policy_files.load_policy(policy, key_file)
        stop = vote_flags.stopping_flags(flags.stop, flags.wave)
        fields = demur.FieldChoice.of(loaded.description)
        source = source.stopped_by(stop, fields, partial=partial, say=options.mention)
        source, rule = source.readable(fields, rule, say=output.say_in_the_end)
        n, with_gold = len(source.pools), len(labelled_rows(source.pools))
        if loaded.labels.people and labels.correct is None:  # gold may say otherwise than they did
            source, with_gold = replace(source, pools=without_gold(source.pools)), 0
        labelled = labels.correct is not None or with_gold == n
        if with_gold and not labelled:
            options.mention(
                f"note: {n - with_gold} of {n} problems have no gold, so nothing is said of what happened; leave them "
                "out to see it"
            )
        voted = loaded.vote(source, labelled=labelled, correct=rule, say=options.mention)
        loaded.check(voted.votes)
        vote_flags.tell_comparison(voted)
    else:
        source, voted = flags.vote(file, run_name, config, rule, texts=texts, partial=partial)
        guarantees = promise_flags.guarantees_of(alpha, delta, False, seed)
        loaded = demur.calibrate(voted, guarantee=guarantees, hold_out=hold_out, seed=seed or 0)
    facts = report_facts(source, voted, loaded, title=title or Path(file).name, texts=texts, most=listed)
    page = page_of(facts)
    with written_whole(out, InvalidValue) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    told = {"report": str(out), "questions": len(voted), "n": loaded.n, "n_test": facts["n_test"]}
    told |= {"listed": len(facts["questions"]["id"]), "bytes": len(page.encode()), "warnings": facts["warnings"]}
    told["tie_notes"] = [note for rule in loaded.points if (note := loaded.tie_note(rule))]
    if show:
        _open_in_browser(out)
    if json:
        output.emit(told)
        return
    output.warn(facts["warnings"])
    part = f" of which {told['listed']} are listed (--listed)" if facts["listed"] else ""
    output.say(*(f"{note} {options.TIES_REMAIN}" for note in told["tie_notes"]))
    output.say(
        f"Wrote {out}: {len(voted)} questions{part}, calibrated on {loaded.n}, "
        + (f"shown on {facts['n_test']} others." if facts["n_test"] else "with no labelled others to show it on.")
    )


def _open_in_browser(page: Path) -> None:
    """Show the page; where there is no browser, say where it lies."""
    import webbrowser

    try:
        opened = webbrowser.open(page.resolve().as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        options.mention(f"note: no browser could be opened here; the page is {page.resolve()}")
