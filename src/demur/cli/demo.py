"""`demur demo`: the whole job on a real model, with nothing to configure."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

import demur
from demur.cli import demo_service, output
from demur.cli.ask import show
from demur.cli.decide import decision_line
from demur.cli.options import Json, mention
from demur.cli.plot import plot_outlook
from demur.cli.progress import Meter, duration, stop_on_sigterm
from demur.errors import MissingExtra

NAME = "demo"
HELP = """Sample a real model on real questions, calibrate, check on held-out questions, ask new ones, and serve it.

SmolLM2-135M, a model of 135 million parameters that runs on a laptop, answers questions it can about half do. Takes a
few minutes; interrupt it and run it again, and it goes on.

Examples:

`demur demo`

`demur demo --folder demo --json > demo.json`
"""
ALPHAS = (0.1, 0.2)
PATHS = 8
_DATASET = "builtin:addition"
_FEWEST = 40
_MOST_QUESTIONS_ASKED = 20
_MOST_QUESTIONS_SERVED = 6


def run(
    folder: Annotated[Path, typer.Option("--folder", help="Where the run and the policy go.")] = Path("demo"),
    questions: Annotated[int, typer.Option("--questions", min=40, help="At most so many questions.")] = 200,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="At most so long for sampling.")] = 150.0,
    json: Json = False,
) -> None:
    from demur.pipeline.config import Config

    tell = mention if json else output.say
    chosen = Config(paths=PATHS, max_tokens=32)
    pipeline = chosen.pipeline(chosen.backend(mention))
    problems = list(_questions().values())
    asked, sampled = problems[-_MOST_QUESTIONS_ASKED:], problems[:-_MOST_QUESTIONS_ASKED][:questions]
    tell(f"1. Sampling {PATHS} paths for each of {len(sampled)} questions, such as: {sampled[0].question}")
    with Meter() as meter, stop_on_sigterm():
        result = pipeline.run(sampled, folder / "run.db", watch=meter, seconds=seconds)
    progress, voted = result.progress, result.voted(partial=True)
    n = len(voted)
    tell(
        f"   {progress.saved} paths, {progress.tokens} tokens in {duration(progress.seconds)}"
        + (f"; {n} questions are whole now" if progress.saved else f"; all {n} questions were there already")
        + (" and time is up. Run it again for more." if progress.out_of_time else ".")
    )
    if n < _FEWEST or progress.interrupted:
        tell(f"   Run `demur demo` again to go on; it needs {_FEWEST} whole questions.")
        raise typer.Exit(130 if progress.stopped else 1)
    policy = demur.calibrate(voted, alpha=ALPHAS, hold_out=0.5)
    policy.save(folder / "policy.json")
    audit = demur.audit_policy(policy, voted)
    fresh = voted.counted[~voted.seen_by(policy.seen)[voted.counted]]
    facts: dict[str, Any] = {
        "questions": n,
        "paths": PATHS,
        "weighting": _weighting(voted),
        "calibrated_on": policy.n,
        "forecast": [_forecast(policy, point) for point in audit],
        "held_out": _held_out(voted, fresh, audit),
        "restraint": _restraint(voted, fresh, policy),
    }
    if not json:
        _show_weighting(facts["weighting"])
        _show_forecast(facts, audit)
        _show_held_out(facts["held_out"], audit)
        _show_restraint(facts["restraint"])
        output.say(f"\n5. New questions, at alpha {ALPHAS[-1]:g}:")
    facts["asked"] = _ask_until_both(pipeline, policy, asked, show_each=not json)
    facts["service"] = _serve(folder, _likely_both(facts, asked), shown=not json)
    page = _report(folder, policy)
    if json:
        output.emit({**facts, "folder": str(folder), "report": str(page)})
        return
    output.say(
        f"\nEverything is in {folder}; open {page} in a browser, and try\n"
        f"  demur runs {folder / 'run.db'}\n"
        f"  demur evaluate {folder / 'run.db'} --score perplexity --alpha 0.1{' --partial' * (n < len(sampled))}\n"
        f'  demur ask "{asked[0].question}" --policy {folder / "policy.json"} --alpha 0.2\n'
        f"  demur serve --policy {folder / 'policy.json'}"
    )


def _serve(folder: Path, problems: list[demur.Problem], *, shown: bool) -> dict[str, Any] | None:
    """The policy as a service; None where its packages are missing."""
    try:
        facts = demo_service.serve_and_ask(folder, ALPHAS[-1], problems, _gold_of)
    except MissingExtra as error:
        (output.say if shown else mention)(f"\n6. The same as a service is left out: {error}")
        return None
    if shown:
        demo_service.show(facts, folder)
    return facts


def _likely_both(facts: dict[str, Any], asked: list[demur.Problem]) -> list[demur.Problem]:
    """A few questions of which one will be answered and one not: the last new one, the first, one withheld before."""
    n_asked, withheld = len(facts["asked"]), facts["restraint"]["example"]
    known = [asked[n_asked - 1], asked[0], *([] if withheld is None else [_questions()[withheld["question"]]])]
    return list({problem.question: problem for problem in [*known, *asked]}.values())[:_MOST_QUESTIONS_SERVED]


def _weighting(voted: demur.VotedPools) -> dict[str, Any]:
    """What weights change against counting paths, and the question on which they help the surest vote."""
    assert voted.table is not None
    assert voted.labels is not None
    counted = demur.vote(voted.table.answers)
    weighted_right, counted_right = voted.labelled, voted.labels.of_votes(counted)
    helped = [row for row in range(len(voted)) if weighted_right[row] and not counted_right[row]]
    harmed = int((counted_right & ~weighted_right).sum())
    facts = {"questions": len(voted), "helped": len(helped), "harmed": harmed}
    if not helped:
        return {**facts, "example": None}
    row = max(helped, key=lambda row: voted.votes.confidence[row])
    return {**facts, "example": _example(voted, row, counted[row])}


def _restraint(voted: demur.VotedPools, fresh: Any, policy: demur.Policy) -> dict[str, Any]:
    """How many wrong votes were withheld and how many given, and the surest of those withheld."""
    answered = policy.decide_votes(voted.votes, alpha=ALPHAS[-1]).answered
    wrong = [row for row in fresh if not voted.labelled[row]]
    withheld = [row for row in wrong if not answered[row]]
    facts = {"alpha": ALPHAS[-1], "wrong_votes": len(wrong), "withheld": len(withheld)}
    facts["right_withheld"] = sum(bool(voted.labelled[row]) and not answered[row] for row in fresh)
    if not withheld:
        return {**facts, "example": None}
    row = max(withheld, key=lambda row: voted.votes.confidence[row])
    threshold = policy.point(ALPHAS[-1]).threshold
    return {**facts, "example": {**_example(voted, row), "threshold": threshold}}


def _example(voted: demur.VotedPools, row: int, counted: demur.Vote | None = None) -> dict[str, Any]:
    """One pool, as the vote sees it, with gold beside it."""
    assert voted.table is not None
    assert voted.labels is not None
    assert voted.labels.gold is not None
    vote, spelling, question = voted.votes[row], voted.table.written[row], voted.table.questions[row]
    right = {written for key, written in spelling.items() if key in voted.labels.gold[row]}
    votes = [
        {"answer": answer, "paths": vote.support[answer], "share": weight / vote.total, "right": answer in right}
        for answer, weight in vote.tally.items()
    ]
    by_count = None if counted is None else spelling[counted.answer]
    known = {"question": question, "gold": _gold_of(question), "confidence": vote.confidence}
    return {**known, "votes": votes, "by_count": by_count}


@cache
def _questions() -> dict[str | None, demur.Problem]:
    return {problem.question: problem for problem in demur.datasets.load(_DATASET)}


def _gold_of(question: str | None) -> str:
    return str(_questions()[question].gold[0])


def _show_weighting(facts: dict[str, Any]) -> None:
    output.say(
        f"2. Weighting paths by their perplexity, against counting them: of {facts['questions']} questions it turns "
        f"{facts['helped']} from wrong to right, and {facts['harmed']} from right to wrong."
    )
    if (example := facts["example"]) is not None:
        _show_votes(example, f"   Of the former, the one it is surest of: {example['question']}")
        output.say(f"   Counting alone says {example['by_count']}; the right answer is {example['gold']}.")


def _show_restraint(facts: dict[str, Any]) -> None:
    given = facts["wrong_votes"] - facts["withheld"]
    output.say(
        f"   At alpha {facts['alpha']:g}, {facts['wrong_votes']} of these votes are wrong: {facts['withheld']} were "
        f"withheld, {given} given. The price: {facts['right_withheld']} right ones were withheld too."
    )
    if (example := facts["example"]) is not None:
        _show_votes(example, f"   Of the wrong ones withheld, the surest: {example['question']}")
        output.say(
            f"   The right answer is {example['gold']}. It abstains rather than err: {example['confidence']:.3f} is "
            f"not above the threshold, {example['threshold']:.3f}."
        )


def _show_votes(example: dict[str, Any], title: str) -> None:
    columns: output.Columns = {
        "   answer": lambda vote: f"   {output.visible(vote['answer'])}",
        "paths": lambda vote: str(vote["paths"]),
        "share of the weighted vote": lambda vote: output.percent(vote["share"]),
        "": lambda vote: "right" if vote["right"] else "",
    }
    output.say(title)
    output.table_of("", example["votes"], columns)


def _forecast(policy: demur.Policy, point: demur.Audit) -> dict[str, Any]:
    forecast = policy.forecast(point.rule.alpha)
    return {
        "alpha": forecast.alpha,
        "threshold": forecast.threshold,
        "told": point.rule.told,
        "answered": forecast.answered,
        "selective_accuracy": forecast.selective_accuracy_corrected,
        "audit": point.outlook.document(),
    }


def _show_forecast(facts: dict[str, Any], audit: demur.PolicyAudit) -> None:
    output.say(
        f"3. Calibrated on {facts['calibrated_on']} questions; {audit.n} were kept back. What to expect, before "
        "looking at those:"
    )
    columns: output.Columns = {
        "alpha: wrong answers at most": lambda forecast: output.percent(forecast["alpha"]),
        "": lambda forecast: forecast["told"],
        "answered": lambda forecast: output.percent(forecast["answered"]),
        "of those right": lambda forecast: output.percent(forecast["selective_accuracy"]),
    }
    output.table_of("", facts["forecast"], columns)
    output.say(*(f"   {point.outlook.sentence}" for point in audit))


def _held_out(voted: demur.VotedPools, fresh: Any, audit: demur.PolicyAudit) -> list[dict[str, Any]]:
    """What always answering does on the questions kept back, and what the policy does."""
    accuracy = voted.accuracies(fresh)
    ways = {"one path": "single_path", "majority vote": "majority_vote", "best of 8 by perplexity": "best_of_m"}
    told = [
        {"way": f"{name}, always answering", "answered": 1.0, "wrong": 1 - accuracy[key], "right": accuracy[key]}
        for name, key in ways.items()
        if key in accuracy
    ]
    for point in audit:
        rates = {"answered": point.answered, "wrong": point.confident_error, "right": point.selective_accuracy}
        told.append({"way": f"demur, alpha {point.rule.alpha:g}", **rates, "verdict": point.verdict})
    return told


def _show_held_out(rows: list[dict[str, Any]], audit: demur.PolicyAudit) -> None:
    columns: output.Columns = {
        "": lambda row: row["way"],
        "answered": lambda row: output.percent(row["answered"]),
        "answered wrongly": lambda row: output.percent(row["wrong"]),
        "of the answered, right": lambda row: output.percent(row["right"]),
    }
    output.table_of(f"4. What happened on the {audit.n} questions kept back", rows, columns)
    for point in audit:
        output.say(f"   {point.verdict}")
    plot_outlook(audit[0].outlook, audit[0].errors)


def _report(folder: Path, policy: demur.Policy) -> Path:
    """The page about the run and its policy."""
    source, page = demur.read_pools(folder / "run.db", texts=True, partial=True), folder / "report.html"
    return demur.report(source, policy, title="demur demo").save(page)


def _ask_until_both(
    pipeline: demur.Pipeline, policy: demur.Policy, problems: list[demur.Problem], *, show_each: bool
) -> list[dict[str, Any]]:
    """New questions, until one was answered and one was not."""
    told: list[dict[str, Any]] = []
    kinds: set[bool] = set()
    started = time.monotonic()
    with pipeline.answerer(policy) as answerer:
        for problem in problems:
            asked = answerer.ask(problem, alpha=ALPHAS[-1])
            line, abstained = decision_line(asked.decision, policy.recipe.names), asked.decision.abstained
            told.append({**line, "question": problem.question, "gold": _gold_of(problem.question)})
            if show_each and abstained not in kinds:
                output.say(f"\n   {problem.question}")
                show(line)
                output.say(f"  the right answer is {_gold_of(problem.question)}")
            kinds.add(abstained)
            if len(kinds) == 2:
                break
    if show_each:
        seconds = time.monotonic() - started
        only = "" if len(kinds) == 2 else f", all {'abstained on' if True in kinds else 'answered'}"
        output.say(f"\n   ({len(told)} new questions asked in {seconds:.0f} s{only}; nothing here is scripted.)")
    return told
