"""`demur demo`: the whole job on a real model, with nothing to configure."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

import demur
from demur.cli import output
from demur.cli.ask import show
from demur.cli.decide import decision_line
from demur.cli.options import mention
from demur.cli.progress import Meter, duration, stop_on_sigterm

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
) -> None:
    from demur.pipeline.config import Config

    chosen = Config(paths=PATHS, max_tokens=32)
    pipeline = chosen.pipeline(chosen.backend(mention))
    problems = demur.datasets.load("builtin:addition")
    asked, sampled = problems[-_MOST_QUESTIONS_ASKED:], problems[:-_MOST_QUESTIONS_ASKED][:questions]
    output.say(f"1. Sampling {PATHS} paths for each of {len(sampled)} questions, such as: {sampled[0].question}")
    with Meter() as meter, stop_on_sigterm():
        result = pipeline.run(sampled, folder / "run.db", watch=meter, seconds=seconds)
    progress, voted = result.progress, result.voted(partial=True)
    n = len(voted)
    output.say(
        f"   {progress.saved} paths, {progress.tokens} tokens in {duration(progress.seconds)}"
        + (f"; {n} questions are whole now" if progress.saved else f"; all {n} questions were there already")
        + (" and time is up. Run it again for more." if progress.out_of_time else ".")
    )
    if n < _FEWEST or progress.interrupted:
        output.say(f"   Run `demur demo` again to go on; it needs {_FEWEST} whole questions.")
        raise typer.Exit(130 if progress.stopped else 1)
    _show_paths(voted)
    policy = _calibrate(voted, folder)
    _check(voted, policy)
    _ask_until_both(pipeline, policy, asked)
    page = _report(folder, policy)
    output.say(
        f"\nEverything is in {folder}; open {page} in a browser, and try\n"
        f"  demur runs {folder / 'run.db'}\n"
        f"  demur evaluate {folder / 'run.db'} --score perplexity --alpha 0.1{' --partial' * (n < len(sampled))}\n"
        f'  demur ask "What is 21 + 4?" --policy {folder / "policy.json"} --alpha 0.2'
    )


def _show_paths(voted: demur.VotedPools) -> None:
    """One pool, as the vote sees it."""
    assert voted.table is not None
    row = int(voted.votes.confidence.argsort()[len(voted) // 2])
    vote = voted.votes[row]
    columns: output.Columns = {
        "answer": lambda answer: output.visible(answer),
        "paths": lambda answer: str(vote.support[answer]),
        "share of the vote, weighted by perplexity": lambda answer: output.percent(vote.tally[answer] / vote.total),
    }
    output.table_of(f"2. The vote on: {output.visible(voted.table.questions[row], 70)}", vote.tally, columns)


def _calibrate(voted: demur.VotedPools, folder: Path) -> demur.Policy:
    policy = demur.calibrate(voted, alpha=ALPHAS, hold_out=0.5)
    policy.save(folder / "policy.json")
    output.say(
        f"3. Calibrated on {policy.n} questions; {len(voted) - policy.n} were kept back. What to expect, before "
        "looking at those:"
    )
    columns: output.Columns = {
        "alpha: wrong answers at most": lambda forecast: output.percent(forecast.alpha),
        "answers when confidence is above": lambda forecast: f"{forecast.threshold:.3f}",
        "answered": lambda forecast: output.percent(forecast.answered),
        "of those right": lambda forecast: output.percent(forecast.selective_accuracy_corrected),
    }
    output.table_of("", [policy.forecast(rule.alpha) for rule in policy.points], columns)
    return policy


def _check(voted: demur.VotedPools, policy: demur.Policy) -> None:
    audit = demur.audit_policy(policy, voted)
    fresh = voted.counted[~voted.seen_by(policy.seen)[voted.counted]]
    accuracy = voted.accuracies(fresh)
    results = [
        (f"{name}, always answering", 1.0, 1 - accuracy[key], accuracy[key])
        for name, key in (("one path", "single_path"), ("majority vote", "majority_vote"))
    ]
    for point in audit:
        rates = point.answered, point.confident_error, point.selective_accuracy
        results.append((f"demur, alpha {point.rule.alpha:g}", *rates))
    header = ["", "answered", "answered wrongly", "of the answered, right"]
    rows = [[name, *map(output.percent, rates)] for name, *rates in results]
    output.table(f"4. What happened on the {audit.n} questions kept back", header, rows)
    output.say(*(f"   {point.verdict}" for point in audit))


def _report(folder: Path, policy: demur.Policy) -> Path:
    """The page about the run and its policy."""
    source, page = demur.read_pools(folder / "run.db", texts=True, partial=True), folder / "report.html"
    return demur.report(source, policy, title="demur demo").save(page)


def _ask_until_both(pipeline: demur.Pipeline, policy: demur.Policy, problems: list[demur.Problem]) -> None:
    """New questions, until one was answered and one was not."""
    alpha = ALPHAS[-1]
    output.say(f"\n5. New questions, at alpha {alpha:g}:")
    kinds: set[bool] = set()
    started = time.monotonic()
    with pipeline.answerer(policy) as answerer:
        for number, problem in enumerate(problems, start=1):
            asked = answerer.ask(problem, alpha=alpha)
            abstained = asked.decision.abstained
            if abstained not in kinds:
                output.say(f"\n   {problem.question}")
                show(decision_line(asked.decision))
            kinds.add(abstained)
            if len(kinds) == 2:
                output.say(f"\n   ({number} new questions asked in {time.monotonic() - started:.0f} s.)")
                return
    only = "abstained on" if True in kinds else "answered"
    output.say(f"\n   All {len(problems)} new questions were {only}; nothing here is scripted, so that can happen.")
