"""`demur report`: one page about a score, a policy and the questions behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli import output
from demur.cli.options import (
    Alpha,
    AnswerField,
    Config,
    Correct,
    Delta,
    Json,
    Missing,
    Normaliser,
    Pools,
    Relation,
    RunName,
    Score,
    Seed,
    TieBreak,
    Weight,
    guarantees_of,
    open_source,
    read_vote,
    reading_of,
    refuse_overwriting,
)
from demur.cli.sampling_options import say

NAME = "report"
HELP = """Write one self-contained HTML page: what the score is worth, what to expect at each alpha, and every question.

With `--policy` the page is about that policy; without, one is calibrated (for alpha 0.05 and 0.1, unless told) on half
of the problems and shown on the other half. It needs no network and no server: mail it, print it, open it on a phone.

Examples:

`demur report pools.jsonl --score simulated -o report.html`

`demur report runs/gsm8k.db --policy policy.json -o report.html`
"""


def run(
    file: Pools,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page.")] = Path("report.html"),
    policy: Annotated[Path | None, typer.Option("--policy", metavar="POLICY", help="Report on this policy.")] = None,
    alpha: Alpha = None,
    delta: Delta = None,
    score: Score = None,
    normaliser: Normaliser = None,
    weight: Weight = None,
    tie_break: TieBreak = None,
    answer_field: AnswerField = None,
    missing: Missing = None,
    relation: Relation = None,
    correct: Correct = None,
    run_name: RunName = None,
    config: Config = None,
    hold_out: Annotated[float, typer.Option(metavar="SHARE", help="Share to show results on.")] = 0.5,
    title: Annotated[str | None, typer.Option("--title", help="Title of the page.  [default: the file's name]")] = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="Show the texts of paths.")] = True,
    seed: Seed = None,
    json: Json = False,
) -> None:
    from dataclasses import replace

    from demur.electorate import hold_vote, reading_of_policy
    from demur.errors import InvalidValue
    from demur.labels import labelled_rows
    from demur.policy import Policy
    from demur.report import page_of, report_facts
    from demur.whole_files import whole_file

    refuse_overwriting(out, file, *([policy] if policy else []))
    source = open_source(file, run_name, texts=texts)
    with_gold = len(labelled_rows(source.pools))
    labelled = correct is not None or with_gold == len(source.pools)
    if policy is not None and with_gold and not labelled:
        say(
            f"note: {len(source.pools) - with_gold} of {len(source.pools)} problems have no gold, so nothing is said "
            "of what happened; leave them out to see it"
        )
    if policy is not None:
        given = {"--alpha": alpha, "--delta": delta, "--score": score, "--normaliser": normaliser, "--weight": weight,
                 "--tie-break": tie_break, "--answer-field": answer_field, "--missing": missing,
                 "--relation": relation, "--seed": seed}  # fmt: skip
        named = [flag for flag, value in given.items() if value is not None]
        if named:
            raise InvalidValue(
                f"{', '.join(named)} and --policy exclude each other: the policy says how votes are made"
            )
        loaded = Policy.load(policy)
        voted = hold_vote(source, reading_of_policy(loaded), loaded.recipe, labelled=labelled, correct=correct)
        loaded.check(voted.votes)
    else:
        described = read_vote(config)
        reading = reading_of(answer_field, missing, score, relation)
        reading = replace(reading, score=reading.score or described.get("score"))
        recipe = source.recipe(
            reading, normaliser or (described.get("normaliser") if reading.score else None),
            weight or described.get("weight"), tie_break or described.get("tie_break"),
        )  # fmt: skip
        voted = hold_vote(source, reading, recipe, labelled=True, correct=correct)
        loaded, _ = voted.calibrate(
            guarantees_of(alpha or [0.05, 0.1], delta, False, seed), hold_out=hold_out, seed=seed or 0
        )
    facts = report_facts(source, voted, loaded, title=title or Path(file).name, texts=texts, correct=correct)
    page = page_of(facts)
    try:
        with whole_file(out) as unfinished:
            unfinished.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"cannot write {out}: {error.strerror or error}") from None
    told = {"report": str(out), "questions": len(voted.votes), "n": loaded.n, "n_test": facts["n_test"],
            "bytes": len(page.encode()), "warnings": facts["warnings"]}  # fmt: skip
    if json:
        output.emit(told)
        return
    for warning in facts["warnings"]:
        output.say(f"warning: {warning}")
    output.say(
        f"Wrote {out}: {len(voted.votes)} questions, calibrated on {loaded.n}, "
        + (f"shown on {facts['n_test']} others." if facts["n_test"] else "with no labelled others to show it on.")
    )
