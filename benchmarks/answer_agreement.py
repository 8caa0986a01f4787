"""Claim: on real answers the classes are those of math-verify, made transitive, but where it errs.

    python benchmarks/answer_agreement.py POOLS.jsonl.gz … QUESTIONS.jsonl.gz …

Prints, per file, the share of questions that both partition alike, what lies behind the others, and the accuracy of
the majority vote by string, by math-verify and by demur. A file of questions alone makes pools of gold answers.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from claims import at_least, print_report
from math_verify_peer import MathVerify, Pool, alike, read

from demur import answers

QUESTIONS = 1500

# What a pair of answers that the two treat differently holds; the first that fits names the reason.
REASONS: list[tuple[str, re.Pattern[str]]] = [
    ("words: math-verify takes one number of a sentence", re.compile(r"(?<![\\a-zA-Z])(?!frac|sqrt|text)[a-zA-Z]{4,}")),
    ("a blank: no answer", re.compile(r"(?:^|\n)[\W_]*(?:\n|$)")),
    ("a root sign or other symbol that math-verify does not read", re.compile(r"[^\x00-\x7f]")),
    ("a number that math-verify does not read (-$1,000, 12 000, 1e3)", re.compile(r"\$|\d \d{3}|\d[eE]\d|\\%|,\\!")),
    ("percent: a sign, not a division", re.compile("%")),
    ("a printed double: 96.00000000000001", re.compile(r"\d\.?\d{10,}|\d{3,}\.\d{6,}")),
    ("a number in a base", re.compile(r"\d_\{?\d")),
    ("a chain of equalities: math-verify compares any of its links", re.compile("=")),
    ("letters that math-verify takes for units", re.compile(r"[a-zA-Z]")),
]  # fmt: skip


def reason(pool: Pool, ours: list[str | None], theirs: list[str]) -> tuple[str, tuple[str, str]]:
    """Why two partitions differ: what the first pair that is one class here and two there holds."""
    pairs = [
        (pool[i], pool[j])
        for i, j in combinations(range(len(pool)), 2)
        if (ours[i] == ours[j]) != (theirs[i] == theirs[j])
    ]
    for name, pattern in REASONS:
        for pair in pairs:
            if pattern.search("\n".join(pair)):
                return name, pair
    return "other", pairs[0]


def accuracy(
    pools: list[Pool],
    golds: list[list[str]],
    classes: Sequence[Sequence[str | None]],
    same: Callable[[str, str], bool],
) -> float:
    """The share of pools whose largest class is gold; ties go to the class that comes first."""
    right = 0
    for pool, gold, labels in zip(pools, golds, classes, strict=True):
        winner = Counter(label for label in labels if label is not None).most_common(1)
        right += bool(winner) and any(same(pool[labels.index(winner[0][0])], each) for each in gold)
    return right / len(pools)


def compare(file: str, peer: MathVerify) -> dict[str, Any]:
    pools, golds = read(file, random.Random(0), QUESTIONS)
    ours, theirs = [answers.classes(pool) for pool in pools], [peer.classes(pool) for pool in pools]
    agreed, reasons = 0, defaultdict(list)
    for pool, our, their in zip(pools, ours, theirs, strict=True):
        if alike(our, their):
            agreed += 1
        else:
            why, pair = reason(pool, our, their)
            reasons[why].append(pair)
    figures: dict[str, Any] = {"questions": len(pools), "alike": agreed, "share": agreed / len(pools)}
    figures["otherwise"] = {why: {"questions": len(pairs), "such as": pairs[:4]} for why, pairs in reasons.items()}
    if any(golds):
        same = lambda a, b: peer.same(peer.parse_once(a), peer.parse_once(b))  # noqa: E731
        figures["majority accuracy"] = {
            "strings": accuracy(pools, golds, pools, lambda a, b: a.strip() == b.strip()),
            "math-verify": accuracy(pools, golds, theirs, same),
            "demur": accuracy(pools, golds, ours, answers.equivalent),
        }
    return figures


def main() -> None:
    if not sys.argv[1:]:
        sys.exit("usage: answer_agreement.py FILE… (pools or questions, JSON lines)")
    peer = MathVerify()
    found = {}
    for file in sys.argv[1:]:
        print(f"comparing {Path(file).name} …", file=sys.stderr)
        found[Path(file).name] = compare(file, peer)
    alike_share = sum(each["alike"] for each in found.values()) / sum(each["questions"] for each in found.values())
    print_report(
        "answer agreement",
        [at_least(0.985, "questions partitioned as math-verify's closure does", alike_share)],
        packages=["demur", "math-verify"],
        files=found,
    )


if __name__ == "__main__":
    main()
