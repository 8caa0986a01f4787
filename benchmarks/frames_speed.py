"""Claim: a table of a million paths becomes votes in little more time than arrays of the same answers and scores.

The table has what arrays do not: ids to be grouped, checked and kept, a column for every value, and answers that are
compared by a relation, once for each way they are written. Arrays are given as `dm.vote` has them: lists of strings, or
codes. Answers that no two questions share are shown without a claim: comparing half a million of them is the work of
the relation, which arrays leave to their owner.
"""

from __future__ import annotations

import numpy as np
import pandas
import pyarrow
from claims import at_most, print_report
from stopwatch import alternate

import demur as dm

POOLS, PATHS = 100_000, 10
ANSWERS = 20
ROUNDS = 7


def draw() -> tuple[np.ndarray, np.ndarray]:
    """Codes of pools that half agree, and scores."""
    rng = np.random.default_rng(0)
    favourite, other = rng.integers(ANSWERS, size=(POOLS, 1)), rng.integers(ANSWERS, size=(POOLS, PATHS))
    return np.where(rng.random((POOLS, PATHS)) < 0.5, favourite, other), rng.standard_normal((POOLS, PATHS))


def vote_frame(frame: object, relation: str | None = None) -> dm.Votes:
    source = dm.read_pools(frame, columns={"rm": "score.rm"})
    return dm.vote_pools(source, dm.FieldChoice(score="rm", relation=relation), labelled=False).votes


def main() -> None:
    codes, scores = draw()
    ids = [f"q{row}" for row in range(POOLS)]
    strings = [[str(code) for code in row] for row in codes.tolist()]
    own = [[f"{row}: {code}" for code in codes_of] for row, codes_of in enumerate(codes.tolist())]
    frame = pandas.DataFrame(
        {"id": np.repeat(ids, PATHS), "answer": [a for row in strings for a in row], "rm": scores.ravel()}
    )
    shuffled = frame.assign(path=np.tile(np.arange(PATHS), POOLS)).sample(frac=1, random_state=1)
    of_own = frame.assign(answer=[a for row in own for a in row])
    numbered = frame.assign(id=np.repeat(np.arange(POOLS), PATHS), answer=codes.ravel())
    table = pyarrow.Table.from_pandas(frame)
    assert vote_frame(frame).confidence.tolist() == dm.vote(strings, scores, ids=ids).confidence.tolist()

    seconds = alternate(
        {
            "arrays of strings": lambda: dm.vote(strings, scores, ids=ids),
            "pandas": lambda: vote_frame(frame),
            "arrow": lambda: vote_frame(table),
            "pandas, rows in any order": lambda: vote_frame(shuffled),
            "arrays of codes": lambda: dm.vote(codes, scores, ids=ids),
            "pandas, whole numbers": lambda: vote_frame(numbered),
            "arrays of strings, own to each pool": lambda: dm.vote(own, scores, ids=ids),
            "pandas, own to each pool, plain": lambda: vote_frame(of_own, "plain"),
        },
        rounds=ROUNDS,
    )
    arrays = seconds["arrays of strings"].median
    print_report(
        "tables to votes",
        [
            at_most(2, "pandas / arrays of strings, time", seconds["pandas"].median / arrays),
            at_most(2, "arrow / arrays of strings, time", seconds["arrow"].median / arrays),
        ],
        packages=["demur", "numpy", "pandas", "pyarrow"],
        setting={"pools": POOLS, "paths": PATHS, "rounds": ROUNDS},
        cpu_seconds=seconds,
    )


if __name__ == "__main__":
    main()
