"""`demur demo`: the whole job on a real model, with nothing to configure."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demur.cli import output
from demur.cli.sampling_options import say

if TYPE_CHECKING:
    from demur.electorate import Electorate
    from demur.pipeline import Pipeline
    from demur.policy import Policy
    from demur.records import Problem

NAME = "demo"
HELP = """Sample a real model on real questions, calibrate, check on held-out questions, and ask new ones.

SmolLM2-135M, a model of 135 million parameters that runs on a laptop, answers questions it can about half do. Takes a
few minutes; interrupt it and run it again, and it goes on.

Example: `demur demo`
"""
ALPHAS = (0.1, 0.2)
PATHS = 8
_FEWEST = 40
_MOST_QUESTIONS_ASKED = 20


def run(
    folder: Annotated[Path, typer.Option("--folder", help="Where the run and the policy go.")] = Path("demo"),
    questions: Annotated[int, typer.Option("--questions", min=40, help="At most so many questions.")] = 200,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="At most so long for sampling.")] = 150.0,
) -> None:  # fmt: skip
    from demur.cli.progress import Meter, duration, interruptible
    from demur.datasets import load
    from demur.description import Description

    dataset = "builtin:addition"
    described = Description(paths=PATHS, max_tokens=32)
    pipeline = described.pipeline(described.backend(say))
    problems = load(dataset)
    asked, sampled = problems[-_MOST_QUESTIONS_ASKED:], problems[:-_MOST_QUESTIONS_ASKED][:questions]
    output.say(f"1. Sampling {PATHS} paths for each of {len(sampled)} questions, such as: {sampled[0].question}")
    meter = Meter()
    try:
        result = pipeline.run(sampled, folder / "run.db", watch=meter, seconds=seconds, bridge=interruptible)
    finally:
        meter.close()
    progress = result.progress
    voted = result.electorate()
    n = len(voted.votes)
    output.say(
        f"   {progress.saved} paths, {progress.tokens} tokens in {duration(progress.seconds)}"
        + (f"; {n} questions are whole now" if progress.saved else f"; all {n} questions were there already")
        + (" and time is up. Run it again for more." if progress.out_of_time else ".")
    )
    if n < _FEWEST or progress.interrupted:
        output.say(f"   Run `demur demo` again to go on; it needs {_FEWEST} whole questions.")
        raise typer.Exit(130 if progress.stopped else 1)
    _show_paths(voted)
    policy, held_out = _calibrate(voted, folder)
    _check(voted, policy, held_out)
    _ask_until_both(pipeline, policy, asked)
    page = _report(folder, policy)
    output.say(
        f"\nEverything is in {folder}; open {page} in a browser, and try\n"
        f"  demur runs {folder / 'run.db'}\n"
        f"  demur evaluate {folder / 'run.db'} --score perplexity --alpha 0.1\n"
        f'  demur ask "What is 21 + 4?" --policy {folder / "policy.json"} --alpha 0.2'
    )


def _show_paths(voted: Electorate) -> None:
    """One pool, as the vote sees it."""
    row = int(voted.votes.confidence.argsort()[len(voted.votes) // 2])
    vote = voted.votes[row]
    spelling = voted.table.written[row]
    output.table(
        f"2. The vote on: {output.visible(voted.table.questions[row], 70)}",
        ["answer", "paths", "share of the vote, weighted by perplexity"],
        [
            [output.visible(spelling[answer]), str(vote.support[answer]), output.percent(share / vote.total)]
            for answer, share in vote.tally.items()
        ],
    )


def _calibrate(voted: Electorate, folder: Path) -> tuple[Policy, int]:
    from demur.calibration import Marginal

    policy, held_out = voted.calibrate([Marginal(alpha) for alpha in ALPHAS], hold_out=0.5)
    policy.save(folder / "policy.json")
    output.say(
        f"3. Calibrated on {policy.n} questions; {held_out} were kept back. What to expect, before looking at those:"
    )
    output.table(
        "",
        ["alpha: wrong answers at most", "answers when confidence is above", "answered", "of those right"],
        [
            [
                output.percent(point.alpha),
                f"{point.threshold:.3f}",
                output.percent(expected.answered),
                output.percent(expected.selective_accuracy_corrected),
            ]
            for point in policy.points
            for expected in [policy.forecast(point.alpha)]
        ],
    )
    return policy, held_out


def _check(voted: Electorate, policy: Policy, held_out: int) -> None:
    import numpy as np

    from demur.audit import audit_policy
    from demur.voting import vote

    seen = set(policy.seen.rows(voted.table.ids, voted.table.questions, voted.table.clusters))
    fresh = np.array([row for row in range(len(voted.votes)) if row not in seen])
    votes, correct = voted.votes.take(fresh), voted.correct()[fresh]
    assert voted.labels is not None
    majority = voted.labels.of_votes(vote(voted.table.answers))[fresh]
    paths = voted.labels.of_paths(voted.table)
    most = float(majority.mean())
    single = float(np.mean([right for row in fresh for right in paths[row]]))
    rows = [
        ["one path, always answering", "100.0 %", output.percent(1 - single), output.percent(single)],
        ["majority vote, always answering", "100.0 %", output.percent(1 - most), output.percent(most)],
    ]
    audits = audit_policy(policy, votes, correct)
    rows += [
        [
            f"demur, alpha {audit.point.alpha:g}",
            output.percent(audit.answered),
            output.percent(audit.confident_error),
            output.percent(audit.selective_accuracy),
        ]
        for audit in audits
    ]
    output.table(
        f"4. What happened on the {held_out} questions kept back",
        ["", "answered", "answered wrongly", "of the answered, right"],
        rows,
    )
    for audit in audits:
        output.say(f"   {audit.verdict}")


def _report(folder: Path, policy: Policy) -> Path:
    """The page about the run and its policy."""
    from demur.electorate import Source, hold_vote, reading_of_policy
    from demur.report import page_of, report_facts
    from demur.store import Store

    with Store(folder / "run.db") as store:
        run = store.run()
        source = Source(run.pools(with_texts=True), run.pipeline, run.scorers(), run.flags())
    voted = hold_vote(source, reading_of_policy(policy), policy.recipe, labelled=True)
    page = folder / "report.html"
    page.write_text(page_of(report_facts(source, voted, policy, title="demur demo")), encoding="utf-8")
    return page


def _ask_until_both(pipeline: Pipeline, policy: Policy, problems: list[Problem]) -> None:
    """New questions, until one was answered and one was not."""
    from demur.cli.ask import show
    from demur.cli.decide import decision_line

    alpha = ALPHAS[-1]
    output.say(f"\n5. New questions, at alpha {alpha:g}:")
    kinds: set[bool] = set()
    started = time.monotonic()
    for number, problem in enumerate(problems, start=1):
        asked = pipeline.ask(problem, policy, alpha=alpha)
        abstained = asked.decision.abstained
        if abstained not in kinds:
            output.say(f"\n   {problem.question}")
            show(decision_line(asked.decision, asked.written))
        kinds.add(abstained)
        if len(kinds) == 2:
            output.say(f"\n   ({number} new questions asked in {time.monotonic() - started:.0f} s.)")
            return
    only = "abstained on" if True in kinds else "answered"
    output.say(f"\n   All {len(problems)} new questions were {only}; nothing here is scripted, so that can happen.")
