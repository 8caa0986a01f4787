"""What lenient gold is worth: yield at the same alpha, by exact gold, by containment and by tolerance.

    python benchmarks/lenient_gold.py FOLDER

FOLDER holds `smollm2_cap.jsonl.gz` (open questions whose gold is the first word of the name) and
`faithfulcot_gsm8k_pool.jsonl.gz`. Prints a table; run by hand, it measures no speed. Where the whole name is known
(`builtin:capitals`), it also counts the labels that containment made right and the whole name calls wrong. The control
merges votes where one answer holds the other's words: that changes what is the same, and not only what is right.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import demur as dm
from demur.answers import text
from demur.pools.containment import holds
from demur.pools.jsonl import read_pools

ALPHAS = (0.1, 0.2)
SPLITS = 200
EXACT, HOLDS = dm.LabelRule(), dm.LabelRule(containment=True)


def as_open(pool: dm.Pool, answers: Sequence[str | None], gold: Sequence[object]) -> dm.Pool:
    """The same paths as answers to an open question."""
    problem = replace(pool.problem, gold=tuple(gold), extra={**pool.problem.extra, "task": "qa"})
    return dm.Pool(problem, tuple(replace(path, answer=a) for path, a in zip(pool.paths, answers, strict=True)))


def merged(pool: dm.Pool) -> dm.Pool:
    """Every answer becomes the shortest one of its pool whose words it holds."""
    shorter = sorted({path.answer for path in pool.paths if path.answer}, key=len)
    into = {a: next((b for b in shorter if b == a or holds(a, b)), a) for a in shorter}
    return replace(pool, paths=tuple(replace(path, answer=into.get(path.answer)) for path in pool.paths))


def row(name: str, pools: Sequence[dm.Pool], rule: dm.LabelRule, missing: tuple[str, ...] = ()) -> None:
    """One line of the table."""
    voted = dm.vote_pools(dm.PoolSource(pools), dm.FieldChoice(missing=missing), correct=rule)
    n_cal = min(200, len(voted) // 2)
    found = dm.evaluate(voted, alpha=ALPHAS, n_cal=n_cal, splits=SPLITS)
    rates = [found.accuracy["single_path"], found.accuracy["majority_vote"]]
    rates += [rate for point in found.points for rate in (point.answered.mean, point.confident_error.mean)]
    print(f"| {name} | {rule.told} | {' | '.join(f'{100 * rate:.1f}' for rate in rates)} |", flush=True)


def wrongly_right(pools: Sequence[dm.Pool], whole: dict[str | None, tuple[object, ...]]) -> str:
    """Of the answers that containment alone calls right, those that the whole name does not."""
    voted = [dm.vote_pools(dm.PoolSource(pools), correct=rule) for rule in (EXACT, HOLDS)]
    strict, lenient = (one.labels.gold for one in voted)  # type: ignore[union-attr]
    made = wrong = 0
    for at, pool in enumerate(pools):
        for key, written in voted[0].table.written[at].items():  # type: ignore[union-attr]
            if key in lenient[at] and key not in strict[at] and pool.problem.question in whole:  # type: ignore[index]
                names = [str(name) for name in whole[pool.problem.question]]
                made, wrong = made + 1, wrong + (text.key(written) not in map(text.key, names))
    return f"{wrong} of {made} answers that containment made right are not the whole name"


def main() -> None:
    folder = Path(sys.argv[1])
    capitals = read_pools(folder / "smollm2_cap.jsonl.gz")
    whole = {problem.question: problem.gold for problem in dm.datasets.load("builtin:capitals")}
    read = [[text.extract(path.text or "").answer for path in pool.paths] for pool in capitals]
    short = [as_open(pool, answers, pool.problem.gold) for pool, answers in zip(capitals, read, strict=True)]
    known = [(p, a) for p, a in zip(capitals, read, strict=True) if p.problem.question in whole]
    full = [as_open(pool, answers, whole[pool.problem.question]) for pool, answers in known]
    print("| answers | right is | paths right | votes right |" + " answered | wrongly |" * len(ALPHAS))
    print("|---|---|" + "---|" * (2 + 2 * len(ALPHAS)))
    for rule in (EXACT, HOLDS):
        row("capitals, gold is the first word", short, rule)
    row("the same, votes merged too", [merged(pool) for pool in short], HOLDS)
    for rule in (EXACT, HOLDS):
        row("capitals, gold is the whole name", full, rule)
    sums = read_pools(folder / "faithfulcot_gsm8k_pool.jsonl.gz")
    for rule in (EXACT, dm.LabelRule(tolerance="0.001"), dm.LabelRule(tolerance="0.01")):  # type: ignore[arg-type]
        row("GSM8K, 41 configurations", sums, rule, ("None",))
    print(f"\nalpha = {', '.join(map(str, ALPHAS))}; {SPLITS} random splits; {wrongly_right(short, whole)}.")


if __name__ == "__main__":
    main()
