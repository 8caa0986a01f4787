"""Claim: putting the answers of a pool into classes is far faster than pairwise grading with math-verify.

Answers come from the pool files named on the command line, or else are written here: two hundred questions whose paths
spell a few values in many ways. Prints speed, the share of questions that both partition alike, and the majority-vote
accuracy by string, by math-verify and by quorate where the files have gold.
"""

from __future__ import annotations

import gzip
import json
import logging
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable

from claims import at_least, print_report

from quorate import answers
from quorate.answers.maths import keys

PATHS = 16
QUESTIONS = 200
NAIVE_QUESTIONS = 25

Pool = list[str]


def written_here(rng: random.Random) -> list[Pool]:
    """Pools of our own making."""
    pools = []
    for number in range(QUESTIONS):
        a, b = rng.randint(1, 40), rng.randint(2, 9)
        spellings = [
            [f"\\frac{{{a}}}{{{b}}}", f"{a}/{b}", f"\\dfrac{{{a}}}{{{b}}}", f"\\frac{{{2 * a}}}{{{2 * b}}}"],
            [f"{a}\\sqrt{{{b}}}", f"\\sqrt{{{b * a * a}}}", f"{a} \\sqrt {b}"],
            [f"({a},{b})", f"({a}, {b})", f"\\left({a}, {b}\\right)"],
            [f"x^2+{a}x", f"x(x+{a})", f"{a}x + x^2"],
            [f"{a}", f"{a}.0", f"{a}\\%", f"x = {a}"],
            [f"[{a},\\infty)", f"x \\ge {a}", f"x \\in [{a}, \\infty)"],
        ]
        right = spellings[number % 6]
        wrong = spellings[(number + 1) % 6]
        pools.append([rng.choice(right if rng.random() < 0.7 else wrong) for _ in range(PATHS)])
    return pools


def read(files: list[str]) -> tuple[list[Pool], list[list[str]]]:
    """The first answers of each problem, and gold."""
    pools, golds = [], []
    for name in files:
        with (gzip.open if name.endswith(".gz") else open)(name, "rt", encoding="utf-8") as stream:
            for line in stream:
                record = json.loads(line)
                found = [p.get("answer", p.get("answer_x")) for p in record["paths"]]
                pool = [str(a).strip() for a in found if a is not None and str(a).strip() and len(str(a)) < 300][:PATHS]
                if len(pool) > 1:
                    pools.append(pool)
                    gold = record.get("gold")
                    golds.append([str(g) for g in (gold if isinstance(gold, list) else [gold])])
    return pools, golds


class MathVerify:
    """Its `parse` and `verify`, both ways, as its own documentation uses them."""

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
        for i in range(len(pool)):
            for j in range(i):
                self.same(self.parse(pool[i]), self.parse(pool[j]))

    def classes(self, pool: Pool) -> list[str]:
        """Deduplicated, parsed once, and closed under transitivity."""
        distinct = sorted(set(pool))
        root = {answer: answer for answer in distinct}

        def find(answer: str) -> str:
            while root[answer] != answer:
                answer = root[answer]
            return answer

        for i, a in enumerate(distinct):
            for b in distinct[:i]:
                if find(a) != find(b) and self.same(self.parse_once(a), self.parse_once(b)):
                    root[find(a)] = find(b)
        return [find(answer) for answer in pool]


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def alike(first: list[str | None], second: list[str | None]) -> bool:
    """Whether two labellings are the same partition."""
    return len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))


def accuracy(pools: list[Pool], golds: list[list[str]], classes: Callable[[Pool], list[str | None]],
             same: Callable[[str, str], bool]) -> float:  # fmt: skip
    right = 0
    for pool, gold in zip(pools, golds, strict=True):
        labels = classes(pool)
        winner, _ = Counter(labels).most_common(1)[0]
        right += any(same(pool[labels.index(winner)], each) for each in gold)
    return right / len(pools)


def import_cost() -> dict[str, float]:
    """CPU seconds and megabytes that `import quorate.answers` and a first root cost a fresh process."""
    code = (
        "import resource, time\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "start = time.process_time()\n"
        "from quorate import answers\n"
        "answers.classes(['\\\\sqrt{2}'])\n"
        "print(time.process_time() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return {"CPU seconds": float(printed[0]), "megabytes": float(printed[1])}


def main() -> None:
    files = sys.argv[1:]
    rng = random.Random(0)
    pools, golds = read(files) if files else (written_here(rng), [])
    if len(pools) > QUESTIONS:
        chosen = sorted(rng.sample(range(len(pools)), QUESTIONS))
        pools, golds = [pools[i] for i in chosen], [golds[i] for i in chosen]
    peer = MathVerify()
    peer.classes(["1", "2"])
    answers.classes(["\\sqrt{2}"])
    keys.key.cache_clear()
    theirs: list[list[str]] = []
    dedupe = seconds(lambda: theirs.extend(peer.classes(pool) for pool in pools))
    keys.key.cache_clear()
    cold = seconds(lambda: [answers.classes(pool) for pool in pools])
    warm = seconds(lambda: [answers.classes(pool) for pool in pools])
    ours: list[list[str | None]] = []
    with answers.SlowPath() as slow:
        slow.same("1", "2")  # start the child outside the timing, as the peer was warmed up
        keys.key.cache_clear()
        start = time.perf_counter()  # wall time: the work of the child counts too
        ours.extend(answers.classes(pool, slow=slow) for pool in pools)
        with_slow_path = time.perf_counter() - start
        asked, killed = len(slow.verdicts) - 1, slow.killed
    naive = seconds(lambda: [peer.naive(pool) for pool in pools[:NAIVE_QUESTIONS]]) * len(pools) / NAIVE_QUESTIONS
    agree = sum(alike(a, b) for a, b in zip(ours, theirs, strict=True))
    figures = {
        "setting": {"questions": len(pools), "paths": PATHS, "files": len(files), "naive on": NAIVE_QUESTIONS},
        "cpu_seconds": {"math-verify, naive": naive, "math-verify, deduplicated": dedupe, "cold": cold, "warm": warm},
        "with the slow path": {"wall seconds": with_slow_path, "pairs asked": asked, "pairs killed": killed},
        "answers per second and core": PATHS * len(pools) / cold,
        "warm microseconds per question": 1e6 * warm / len(pools),
        "import": import_cost(),
        "questions partitioned alike": agree / len(pools),
        "disagreements": [
            {"answers": sorted(set(pool)), "ours": len(set(a)), "math-verify": len(set(b))}
            for pool, a, b in zip(pools, ours, theirs, strict=True)
            if not alike(a, b)
        ][:20],
    }
    if golds:
        figures["majority accuracy"] = {
            "strings": accuracy(pools, golds, list, lambda a, b: a.strip() == b.strip()),
            "math-verify": accuracy(
                pools, golds, peer.classes, lambda a, b: peer.same(peer.parse_once(a), peer.parse_once(b))
            ),
            "quorate": accuracy(pools, golds, answers.classes, answers.equivalent),
        }
    print_report(
        "answer classes",
        [
            at_least(80, "math-verify deduplicated / answer classes with the slow path", dedupe / with_slow_path),
            at_least(300, "math-verify naive / answer classes with the slow path", naive / with_slow_path),
            at_least(80, "math-verify deduplicated / answer classes by rules alone, CPU", dedupe / cold),
            at_least(300, "math-verify naive / answer classes by rules alone, CPU", naive / cold),
            at_least(0.985, "questions partitioned alike", agree / len(pools)),
        ],
        packages=["quorate", "math-verify", "mpmath"],
        **figures,
    )


if __name__ == "__main__":
    main()
