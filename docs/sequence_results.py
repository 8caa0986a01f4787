"""Sequences of commands that raise the error above alpha: realised error as each was, and as it is with its remedy.

    python docs/sequence_results.py

prints the table of docs/sequences.md. Pools are simulated, the vote is the majority vote, and jitter breaks its ties.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from demur import Policy, Votes, calibrate, simulate_pools, vote
from demur.policy.decisions import size_shift_note

ALPHA = Fraction(1, 10)
N_CAL, N_TRAFFIC, N_PATHS = 200, 400, 8
POPULATION, ROUNDS = 20_000, 400
ASKS = 3
BATCHES, BATCH = 5, 50
Rows = NDArray[np.intp]
Outcome = tuple[float, float]
"""The realised error of one round, of the sequence as it was and with its remedy."""


@dataclass(frozen=True)
class World:
    """Questions with the votes of several pools each, and whether each vote is right."""

    votes: list[Votes]
    right: list[NDArray[np.bool_]]

    def calibrated(self, rows: Rows, **how: object) -> Policy:
        return calibrate(self.votes[0].take(rows), self.right[0][rows], alpha=ALPHA, **how)  # type: ignore[arg-type]


def world(tie_breaks: Iterable[str], asks: int = 1, marks: Callable[[int], str] = lambda ask: "?") -> World:
    """Votes by each tie-break, and on as many pools of one question as it is asked, with fresh paths each time."""
    table = simulate_pools(POPULATION, n_paths=N_PATHS * asks, seed=11)
    votes, right = [], []
    for tie_break in tie_breaks:
        for ask in range(asks):
            questions = [f"Simulated question {row}{marks(ask)}" for row in range(POPULATION)]
            answers = table.answers[:, N_PATHS * ask : N_PATHS * (ask + 1)]
            votes.append(vote(answers, questions=questions, tie_break=tie_break))
            right.append(votes[-1].answer == table.gold)
    return World(votes, right)


def error(policy: Policy, votes: Votes, right: NDArray[np.bool_], rows: Rows) -> float:
    """The share of these questions that are answered wrongly."""
    return float((policy.decide_votes(votes.take(rows)).answered & ~right[rows]).mean())


def answered(policy: Policy, votes: Votes, rows: Rows) -> float:
    return float(policy.decide_votes(votes.take(rows)).answered.mean())


def draws(seed: int, *sizes: int) -> Iterator[list[Rows]]:
    """Different questions for each part, round by round."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(sizes)
    for _ in range(ROUNDS):
        yield np.split(rng.permutation(POPULATION)[: ends[-1]], ends[:-1])


def best_hold_out_seed() -> Iterator[Outcome]:
    """Ten random halves of 400 questions calibrate; the policy that answers most of the unlabelled traffic is kept."""
    made = world(["jitter@3:0"])
    for labelled, traffic, new in draws(1, 2 * N_CAL, N_TRAFFIC, 4000):
        halves = [np.random.default_rng(seed).permutation(labelled)[:N_CAL] for seed in range(10)]
        policies = [made.calibrated(half) for half in halves]
        best = max(policies, key=lambda policy: answered(policy, made.votes[0], traffic))
        yield tuple(error(policy, made.votes[0], made.right[0], new) for policy in (best, policies[0]))  # type: ignore[misc]


def best_jitter_seed() -> Iterator[Outcome]:
    """Thirty jitter seeds; the one that answers most of the unlabelled traffic is kept, for that traffic."""
    seeds = 30
    made = world([f"jitter@3:{seed}" for seed in range(seeds)])
    for labelled, traffic in draws(2, N_CAL, N_TRAFFIC):
        policies = [
            calibrate(votes.take(labelled), right[labelled], alpha=ALPHA)
            for votes, right in zip(made.votes, made.right, strict=True)
        ]
        best = max(range(seeds), key=lambda seed: answered(policies[seed], made.votes[seed], traffic))
        yield tuple(error(policies[at], made.votes[at], made.right[at], traffic) for at in (best, 0))  # type: ignore[misc]


def sizes_by_chance() -> Iterator[Outcome]:
    """Half the calibration pools have 4 paths and half 16, declared by chance; all traffic has 4.

    The remedy counts traffic that no warning was given about.
    """
    table, sizes = simulate_pools(POPULATION, n_paths=16, seed=11), np.arange(POPULATION) % 2
    questions = [f"Simulated question {row}?" for row in range(POPULATION)]
    whole = [pool[: 4 if small else 16].tolist() for pool, small in zip(table.answers, sizes, strict=True)]
    mixed = vote([[None if code < 0 else int(code) for code in pool] for pool in whole], questions=questions)
    right = np.array([key == gold for key, gold in zip(mixed.answer, table.gold.tolist(), strict=True)])
    for labelled, traffic in draws(3, N_CAL, 2 * N_TRAFFIC):
        policy = calibrate(mixed.take(labelled), right[labelled], alpha=ALPHA, sizes_by_chance=True)
        small = traffic[sizes[traffic] == 1]
        wrong = error(policy, mixed, right, small)
        yield wrong, 0.0 if size_shift_note(policy.strata, Counter({4: len(small)})) else wrong


def asked_again(before: str, after: str, *, fresh: bool, mark: bool) -> Iterator[Outcome]:
    """Each question is asked until it is answered, three times at most; `mark` adds a question mark each time."""
    outcomes = []
    for tie_break in (before, after):
        made = world([tie_break], ASKS, (lambda ask: "?" * (ask + 1)) if mark else (lambda ask: "?"))
        if not fresh:  # the same paths each time
            table = simulate_pools(POPULATION, n_paths=N_PATHS * ASKS, seed=11)
            asked = [[f"Simulated question {row}{'?' * (ask + 1)}" for row in range(POPULATION)] for ask in range(ASKS)]
            votes = [vote(table.answers[:, :N_PATHS], questions=texts, tie_break=tie_break) for texts in asked]
            made = World(votes, [made.right[0]] * ASKS)
        errors = []
        for labelled, new in draws(4, N_CAL, 4000):
            policy = made.calibrated(labelled)
            wrong, open_ = np.zeros(len(new), bool), np.ones(len(new), bool)
            for votes, right in zip(made.votes, made.right, strict=True):
                given = policy.decide_votes(votes.take(new)).answered & open_
                wrong |= given & ~right[new]
                open_ &= ~given
            errors.append(float(wrong.mean()))
        outcomes.append(errors)
    yield from zip(*outcomes, strict=True)


def asked_again_or_once() -> Iterator[Outcome]:
    """The same question with fresh paths, until it is answered; the remedy is to keep the first decision."""
    made = world(["jitter@3:0"])
    every = [again for again, _ in asked_again("jitter@3:0", "jitter@3:0", fresh=True, mark=False)]
    for again, (labelled, new) in zip(every, draws(4, N_CAL, 4000), strict=True):
        yield again, error(made.calibrated(labelled), made.votes[0], made.right[0], new)


def best_batch() -> Iterator[Outcome]:
    """Of five batches of 50 questions under an fdr, the one with most answers is kept: its share of wrong ones."""
    made = world(["jitter@3:0"])
    for labelled, *batches in draws(5, N_CAL, *[BATCH] * BATCHES):
        policy = made.calibrated(labelled)
        chosen = [policy.select(made.votes[0].take(batch), fdr=ALPHA).answered for batch in batches]
        shares = [
            float((given & ~made.right[0][batch]).sum() / max(1, given.sum()))
            for given, batch in zip(chosen, batches, strict=True)
        ]
        yield shares[max(range(BATCHES), key=lambda at: int(chosen[at].sum()))], shares[0]


SEQUENCES: dict[str, tuple[Callable[[], Iterator[Outcome]], str]] = {
    "best of ten `--hold-out` seeds, by yield": (best_hold_out_seed, "the first seed"),
    "best of 30 jitter seeds, by yield": (best_jitter_seed, "the first seed"),
    "sizes declared by chance, traffic all of the small size": (sizes_by_chance, "traffic without a warning"),
    "asked up to three times, with fresh paths": (asked_again_or_once, "the first decision"),
    "one more question mark each time, the same paths": (
        lambda: asked_again("jitter@2:0", "jitter@3:0", fresh=False, mark=True),
        "jitter of version 3",
    ),
    "one more question mark each time, fresh paths": (
        lambda: asked_again("jitter@2:0", "jitter@3:0", fresh=True, mark=True),
        "jitter of version 3",
    ),
    "of five batches under `--fdr`, the one with most answers": (best_batch, "the first batch"),
}


def told(errors: NDArray[np.float64]) -> str:
    """Mean and standard error."""
    return f"{errors.mean():.3f} ± {errors.std(ddof=1) / np.sqrt(len(errors)):.3f}"


def main() -> None:
    print("| sequence | before | after | after is |\n| --- | --- | --- | --- |")
    for name, (sequence, remedy) in SEQUENCES.items():
        before, after = np.array(list(sequence()), dtype=np.float64).T
        print(f"| {name} | {told(before)} | {told(after)} | {remedy} |", flush=True)


if __name__ == "__main__":
    main()
