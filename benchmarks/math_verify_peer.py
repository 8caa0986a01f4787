"""math-verify as its own documentation uses it, and the pools that it and demur are compared on."""

from __future__ import annotations

import gzip
import json
import logging
import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

PATHS = 16
Pool = list[str]


class MathVerify:
    """Pairwise verdicts: naively, or with each answer parsed once and duplicates left out."""

    def __init__(self) -> None:
        from math_verify import parse, verify

        logging.disable(logging.CRITICAL)
        self._parse, self._verify = parse, verify
        self._parsed: dict[str, object] = {}

    def parse(self, answer: str) -> object:
        return self._parse(f"${answer}$")

    def parse_once(self, answer: str) -> object:
        if answer not in self._parsed:
            self._parsed[answer] = self.parse(answer)
        return self._parsed[answer]

    def same(self, a: object, b: object) -> bool:
        return bool(self._verify(a, b) or self._verify(b, a))

    def naive(self, pool: Pool) -> None:
        for a, b in combinations(pool, 2):
            self.same(self.parse(a), self.parse(b))

    def classes(self, pool: Pool) -> list[str]:
        """Deduplicated, parsed once, and closed under transitivity."""
        distinct = sorted(set(pool))
        root = {answer: answer for answer in distinct}

        def find(answer: str) -> str:
            while root[answer] != answer:
                answer = root[answer]
            return answer

        for a, b in combinations(distinct, 2):
            if find(a) != find(b) and self.same(self.parse_once(a), self.parse_once(b)):
                root[find(b)] = find(a)
        return [find(answer) for answer in pool]


def read(file: str, rng: random.Random, most: int) -> tuple[list[Pool], list[list[str]]]:
    """At most so many pools of a file, each its problem's first answers, and their gold.

    A file of questions alone makes pools of gold answers: a question's own, and three of the same subject.
    """
    with (gzip.open if file.endswith(".gz") else open)(file, "rt", encoding="utf-8") as stream:
        records = [json.loads(line) for line in stream]
    by_subject: dict[str, list[str]] = defaultdict(list)
    for record in records:
        by_subject[str(record.get("subject"))].append(accepted(record)[0])
    pools, golds = [], []
    for record in rng.sample(records, min(most, len(records))):
        found = [path.get("answer", path.get("answer_x")) for path in record["paths"]]
        pool = [str(each).strip() for each in found if each is not None and str(each).strip()]
        if not record["paths"]:
            pool = accepted(record) * 10 + rng.choices(rng.sample(by_subject[str(record.get("subject"))], 3), k=6)
        pool = [answer for answer in pool if len(answer) < 300][:PATHS]
        if len(pool) > 1:
            pools.append(pool)
            golds.append(accepted(record) if record["paths"] else [])
    return pools, golds


def accepted(record: dict[str, Any]) -> list[str]:
    gold = record.get("gold")
    return [str(each) for each in (gold if isinstance(gold, list) else [gold])]


def alike(first: Sequence[str | None], second: Sequence[str | None]) -> bool:
    """Whether two labellings are the same partition."""
    return len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))
