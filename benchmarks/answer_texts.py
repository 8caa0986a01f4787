"""Claim: answers are read off texts as well as their sources read them, and fast.

    python benchmarks/answer_texts.py [FOLDER OF POOLS]

Times extraction on short texts of several styles, in CPU seconds, beside math-verify's on some of them. With a folder
of recorded pools that have texts, prints for each file the accuracy of single paths and of the majority vote by the
source's own answers and by those read off the texts, and the share of paths without an answer: the table of
docs/answers.md.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from claims import Claim, at_least, print_report

from demur.answers import Asked, Relation, choice, mathematics, relation_named, text
from demur.pools.jsonl import read_pools
from demur.records import Pool
from demur.tasks import asked_by, task_named

TEXTS = 5_000
PEER_TEXTS = 200
RECORDED: dict[str, dict[str, Any]] = {
    "zeroeval_gsm8k": {"field": "answer_x"},
    "zeroeval_math_l5": {"field": "answer_x", "missing": ("___",)},
    "faithfulcot_gsm8k_pool": {"missing": ("None",), "prose": True},
    "openai_gsm8k_examples": {},
    "wisdom_gpt35_nlu_asdiv_single_answer": {"field": "answer_x"},
    "qwen25math_rm_math100": {},
    "mmlupro_text_1in8": {},
    "verifycot_gpt35_date": {"missing": ("No answer!",)},
    "smollm2_add1": {"task": "math"},
    "smollm2_word1": {"task": "math"},
    "smollm2_cap": {"task": "qa"},
}
PROGRAMS = ("NL", "prompt_variation", "norationale", "nosolver", "exemplarset")
"""Marks of sources whose paths are programs; their answers are what those gave when they were run."""


def short_texts(rng: random.Random) -> dict[str, tuple[Relation, list[str]]]:
    """Texts of one to three sentences, as models close them."""

    def some(*styles: str) -> list[str]:
        made = []
        for _ in range(TEXTS):
            a, b = rng.randint(2, 900), rng.randint(2, 90)
            made.append(rng.choice(styles).format(a=a, b=b, c=a + b, d=rng.choice("ABCD")))
        return made

    start = "Tom has {a} apples and buys {b} more. "
    return {
        "mathematics": (mathematics, some(start + "The answer is {c}.", start + "\\boxed{{{c}}}", start + "#### {c}",
                                          '{{"reasoning": "' + start + '", "answer": "{c}"}}')),
        "choices": (choice, some("That is so. The answer is ({d}).", "It follows.\nAnswer: {d}", "\\boxed{{{d}}}")),
        "words": (text, some("I recall it. The answer is Paris {a}.", "<answer>Paris {a}</answer>")),
    }  # fmt: skip


def per_second(texts: Sequence[str], read: Callable[[str], object]) -> float:
    """Texts per CPU second: the best of three rounds."""
    best = 0.0
    gc.disable()
    try:
        for _ in range(3):
            start = time.process_time()
            for each in texts:
                read(each)
            best = max(best, len(texts) / (time.process_time() - start))
    finally:
        gc.enable()
    return best


def speed() -> tuple[dict[str, Any], list[Claim]]:
    """Texts per CPU second of each kind, and how many times math-verify's rate that is."""
    from math_verify import parse

    found: dict[str, Any] = {}
    for name, (relation, texts) in short_texts(random.Random(0)).items():
        rate = per_second(texts, lambda written, relation=relation: relation.extract(written, Asked()))
        found[name] = {"texts per CPU second": rate}
    peer = short_texts(random.Random(0))["mathematics"][1][:PEER_TEXTS]
    theirs = per_second(peer, lambda written: parse(written, parsing_timeout=None))
    found["math-verify, mathematics"] = {"texts per CPU second": theirs}
    rates = [found[name]["texts per CPU second"] for name in ("mathematics", "choices", "words")]
    return found, [
        at_least(50_000, "short texts per CPU second and core, all kinds", 3 / sum(1 / rate for rate in rates)),
        at_least(10, "mathematics: extraction / math-verify's parse", rates[0] / theirs),
    ]


def accuracies(pools: Sequence[Pool], answers: Callable[[Pool], list[str | None]], how: dict[str, Any]) -> list[float]:
    """Of single paths, of the majority vote, and the share of paths without an answer."""
    right = paths = without = votes = 0
    for pool in pools:
        relation, asked = relation_of(pool, how), asked_by(pool.problem)
        gold = {relation.key(entry, asked) for entry in pool.problem.gold}
        keys = [None if answer is None else relation.key(answer, asked) for answer in answers(pool)]
        right += sum(key in gold for key in keys if key is not None)
        without += keys.count(None)
        paths += len(keys)
        counts = Counter(key for key in keys if key is not None)
        votes += bool(counts) and min(counts, key=lambda key: (-counts[key], key)) in gold
    return [right / paths, votes / len(pools), without / paths]


def relation_of(pool: Pool, how: dict[str, Any]) -> Relation:
    return task_named(how.get("task", pool.problem.extra.get("task"))).relation


def recorded(folder: Path) -> dict[str, Any]:
    """Each file, by its source's answers and by those read off the texts."""
    figures = {}
    for name, how in RECORDED.items():
        file = folder / f"{name}.jsonl.gz"
        if not file.is_file():
            continue
        pools = [_with_texts(pool, how) for pool in read_pools(file)]
        pools = [pool for pool in pools if pool.paths]

        def given(pool: Pool, how: dict[str, Any] = how) -> list[str | None]:
            field = how.get("field", "answer")
            raw = [path.answer if field == "answer" else path.extra.get(field) for path in pool.paths]
            return [None if each is None or str(each) in how.get("missing", ()) else str(each) for each in raw]

        def read(pool: Pool, how: dict[str, Any] = how) -> list[str | None]:
            asked = asked_by(pool.problem)
            return [relation_of(pool, how).extract(path.text or "", asked).answer for path in pool.paths]

        names = ("single", "vote", "without")
        source, ours = (dict(zip(names, accuracies(pools, by, how), strict=True)) for by in (given, read))
        figures[name] = {
            "questions": len(pools),
            "relation": relation_of(pools[0], how).spec,
            "source": source,
            "texts": ours,
        }
        print(f"{name}: {json.dumps(figures[name])}", file=sys.stderr)
    return figures


def _with_texts(pool: Pool, how: dict[str, Any]) -> Pool:
    """The paths that have a text, and where programs were run, only those that are prose."""
    kept = [path for path in pool.paths if path.text is not None]
    if how.get("prose"):
        kept = [path for path in kept if not any(mark in str(path.extra.get("src")) for mark in PROGRAMS)]
    return Pool(pool.problem, tuple(kept))


def table(figures: dict[str, Any]) -> str:
    """The rows of docs/answers.md."""
    rows = [
        "| file | questions | single, source | single, texts | vote, source | vote, texts | no answer |",
        "|---|" + "---|" * 6,
    ]
    for name, of in figures.items():
        source, texts = of["source"], of["texts"]
        cells = [source["single"], texts["single"], source["vote"], texts["vote"]]
        rows.append(
            f"| {name} | {of['questions']} | "
            + " | ".join(f"{cell:.3f}" for cell in cells)
            + f" | {texts['without']:.1%} |"
        )
    return "\n".join(rows)


def main() -> None:
    relation_named("mathematics")
    figures, claims = speed()
    files = recorded(Path(sys.argv[1])) if sys.argv[1:] else {}
    if files:
        print(table(files), file=sys.stderr)
        worst = min(of["texts"][what] - of["source"][what] for of in files.values() for what in ("single", "vote"))
        claims.append(at_least(-0.003, "accuracy by texts minus accuracy by the source's answers, worst", worst))
    print_report("answer texts", claims, packages=["demur", "math-verify"], speed=figures, files=files)


if __name__ == "__main__":
    main()
