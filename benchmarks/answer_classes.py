"""Claim: putting the answers of a pool into classes is far faster than pairwise grading with math-verify.

Three sets of pools are written here: answers as MATH has them; numbers as GSM8K has them, spelled in many ways; and
messy ones, as texts end whose prompt asked for no form: sentences, units, broken LaTeX, and formulas that only the slow
path can work out. Files of pools named on the command line are timed as well, whatever they hold for the slow path.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from claims import Claim, at_least, at_most, print_report
from math_verify_peer import PATHS, MathVerify, Pool, read

from demur import answers
from demur.answers.equivalence.mathematics import keys

QUESTIONS = 200
NAIVE_QUESTIONS = 25
WARM_UP = ["1", "2", "\\sqrt{2}", "\\sum_{k=1}^{2} k", "\\int_0^2 x dx", "\\lim_{x \\to 0} \\frac{\\sin x}{x}"]


def like_math(rng: random.Random) -> list[Pool]:
    """Fractions, roots, points, polynomials, equations and intervals."""
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


def like_gsm8k(rng: random.Random) -> list[Pool]:
    """Whole numbers, money, decimals and units."""
    pools = []
    for _ in range(QUESTIONS):
        right, *wrong = rng.sample(range(2, 5000), 4)
        values = [right if rng.random() < 0.7 else rng.choice(wrong) for _ in range(PATHS)]
        pools.append([rng.choice([f"{v}", f"{v}.0", f"${v}", f"{v:,}", f"{v} dollars"]) for v in values])
    return pools


def like_messy(rng: random.Random) -> list[Pool]:
    """Numbers and points in sentences, with units, half written, and worked out to the end or not."""
    return [_messy_pool(number, rng) for number in range(QUESTIONS)]


def _messy_pool(number: int, rng: random.Random) -> Pool:
    a, b = rng.randint(2, 40), rng.randint(2, 9)
    right, unfinished = [
        (a * (a + 1) // 2, f"\\sum_{{k=1}}^{{{a}}} k"),
        (a * b, f"\\int_0^{{{a}}} {b} \\, dx"),
        (a, f"\\lim_{{x \\to 0}} \\frac{{\\sin {a}x}}{{x}}"),
        (a**2, f"\\prod_{{i=1}}^{{2}} {a}"),
    ][number % 4]
    wrong = right + rng.choice([-2, -1, 1, 2, 10])
    spellings = [
        [f"{right}", f"${right}$", f"\\boxed{{{right}}}", f"{right}.0", f"x = {right}", f"{right} cm"],
        [f"{wrong}", f"about {wrong}", f"{wrong} or {right}", f"{wrong} apples", f"\\frac{{{wrong}}}{{{b}}}"],
        [f"The total is {right} apples", f"{right} apples and {b} pears", f"Janet has {wrong} left", "unclear"],
        [f"\\frac{{{right}}}{{{b}", f"{right})", f"\\sqrt{{{wrong}", f"({a}, {b}", f"\\left({a}, {b}\\right)"],
        [unfinished],
    ]
    kinds = rng.choices(spellings, weights=[0.5, 0.15, 0.15, 0.14, 0.06], k=PATHS)
    return [rng.choice(kind) for kind in kinds]


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def cpu_seconds(process: int) -> float:
    """What a process has worked so far, in steps of the system's clock."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(pools: list[Pool]) -> dict[str, Any]:
    """CPU seconds, cold and warm, by rules alone and with the slow path and its child, beside both uses of the peer."""
    peer = MathVerify()
    peer.classes(WARM_UP)
    answers.classes(WARM_UP)
    dedupe = seconds(lambda: [peer.classes(pool) for pool in pools])
    some = pools[:NAIVE_QUESTIONS]
    naive = seconds(lambda: [peer.naive(pool) for pool in some]) * len(pools) / len(some)
    keys.key.cache_clear()
    cold = seconds(lambda: [answers.classes(pool) for pool in pools])
    warm = seconds(lambda: [answers.classes(pool) for pool in pools])
    unread = sum(str(key).startswith("s:") for pool in pools for key in answers.classes(pool))
    with answers.SlowPath() as slow:
        answers.classes(WARM_UP, slow=slow)  # which starts the child outside the timing
        before, child = slow.asked, slow._child.process.pid
        keys.key.cache_clear()
        start = cpu_seconds(child)
        with_slow_path = seconds(lambda: [answers.classes(pool, slow=slow) for pool in pools])
        with_slow_path += cpu_seconds(child) - start
        asked, killed = slow.asked - before, slow.killed
    return {
        "questions": len(pools),
        "seconds": {"naive": naive, "deduplicated": dedupe, "rules": cold, "with the slow path": with_slow_path},
        "answers that the rules cannot read": unread,
        "asked of the slow path": asked,
        "killed": killed,
        "answers per second and core": sum(map(len, pools)) / cold,
        "warm microseconds per question": 1e6 * warm / len(pools),
        "deduplicated / with the slow path": dedupe / with_slow_path,
        "naive / with the slow path": naive / with_slow_path,
        "deduplicated / rules alone": dedupe / cold,
        "naive / rules alone": naive / cold,
    }


def import_cost(statement: str) -> dict[str, float]:
    """CPU seconds and megabytes that a statement costs a fresh process, over starting it."""
    code = (
        "import os, time\n"
        "def pages(): return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 2**20\n"
        "before, start = pages(), time.process_time()\n"
        f"{statement}\n"
        "print(time.process_time() - start, pages() - before)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return {"CPU seconds": float(printed[0]), "megabytes": float(printed[1])}


def claims(kind: str, figures: dict[str, Any], deduplicated: float, naive: float) -> list[Claim]:
    return [
        at_least(
            deduplicated, f"{kind}: math-verify deduplicated / classes", figures["deduplicated / with the slow path"]
        ),
        at_least(naive, f"{kind}: math-verify naive / classes", figures["naive / with the slow path"]),
        at_most(90, f"{kind}: microseconds per question, warm", figures["warm microseconds per question"]),
    ]


def main() -> None:
    rng = random.Random(0)
    mathematical, numerical, messy = measure(like_math(rng)), measure(like_gsm8k(rng)), measure(like_messy(rng))
    files = {Path(file).name: measure(read(file, rng, QUESTIONS)[0]) for file in sys.argv[1:]}
    print_report(
        "answer classes",
        [
            *claims("MATH", mathematical, 80, 300),
            *claims("GSM8K", numerical, 60, 200),
            *claims("messy", messy, 40, 80),
        ],
        packages=["demur", "math-verify", "mpmath"],
        paths=PATHS,
        naive_questions=NAIVE_QUESTIONS,
        math=mathematical,
        gsm8k=numerical,
        messy=messy,
        files=files,
        imports={
            "demur.answers and a root": import_cost("from demur import answers; answers.classes(['\\\\sqrt{2}'])"),
            "math_verify and a root": import_cost("from math_verify import parse; parse('$\\\\sqrt{2}$')"),
        },
    )


if __name__ == "__main__":
    main()
