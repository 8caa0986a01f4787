"""Write docs/results.md: the study's protocol on recorded pools of real models, and what held and what did not.

    python docs/results.py FOLDER

FOLDER holds the pool files named below, each from a public source; none of their text goes into the page.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quorate.electorate import Source
from quorate.files import read_pools
from quorate.records import Pool
from quorate.score_health import ScoreHealth
from quorate.scoring import Perplexity, SelfConsistency
from quorate.scoring.protocol import Scorer, full_identity
from quorate.study.cells import JITTERED, MAJORITY, read_cell
from quorate.study.description import Ablations, CellDescription, StudyDescription
from quorate.study.protocol import CHECKS, CellResult, comparisons, evaluate_cell, inconsistent
from quorate.study.tables import Table, jitter_gain, tables_of

PERPLEXITIES = ("perplexity", "perplexity-std", "perplexity-std-negated")


@dataclass(frozen=True)
class Recorded:
    """A file of recorded pools."""

    file: str
    dataset: str
    model: str
    source: str
    licence: str
    answer_field: str = "answer"
    missing: tuple[str, ...] = ()
    n_cal: int | None = None
    texts: bool = True
    logprobs: bool = False


FILES = (
    Recorded("zeroeval_gsm8k", "GSM8K", "43 models", "ZeroEval", "Apache-2.0", "answer_x"),
    Recorded("faithfulcot_gsm8k_pool", "GSM8K", "41 configurations", "Faithful CoT", "MIT", missing=("None",)),
    Recorded("openai_gsm8k_examples", "GSM8K", "4 fine-tuned", "OpenAI GSM8K", "MIT"),
    Recorded("wisdom_gpt35_nlu_asdiv_single_answer", "ASDiv", "GPT-3.5 x 10", "Wisdom of the crowd", "CC0-1.0",
             "answer_x"),
    Recorded("zeroeval_math_l5", "MATH level 5", "41 models", "ZeroEval", "Apache-2.0", "answer_x", ("___",)),
    Recorded("qwen25math_rm_math100", "MATH", "Qwen2.5-Math, 8 paths", "Qwen2.5-Math", "MIT", n_cal=50),
    Recorded("mmlupro_text_1in8", "MMLU-Pro", "28 models", "MMLU-Pro", "Apache-2.0 (data MIT)"),
    Recorded("verifycot_gpt35_date", "dates", "GPT-3.5, 10 paths", "VerifyCoT", "CC-BY-4.0", missing=("No answer!",),
             n_cal=100),
    Recorded("smollm2_add1", "addition", "SmolLM2-135M", "sampled by quorate", "own", n_cal=100, logprobs=True),
    Recorded("smollm2_cap", "capitals", "SmolLM2-135M", "sampled by quorate", "own", n_cal=50, logprobs=True),
)  # fmt: skip
STUDY = StudyDescription(
    "recorded", [], alphas=[0.1, 0.05], ablations=Ablations(n_cal=[20, 50, 100, 200, 500], m=[2, 4, 8, 16])
)


def scored(pools: Sequence[Pool], scorer: Scorer) -> list[Pool]:
    """Pools with one more score."""
    found = []
    for pool in pools:
        values = scorer.score(pool)
        paths = [replace(p, scores={**p.scores, scorer.name: v}) for p, v in zip(pool.paths, values, strict=True)]
        found.append(replace(pool, paths=tuple(paths)))
    return found


def cell_of(folder: Path, recorded: Recorded) -> CellResult:
    """One file, with the scores that its paths allow."""
    pools: Sequence[Pool] = read_pools(folder / f"{recorded.file}.jsonl.gz")
    scorers: list[Scorer] = [SelfConsistency()] if all(p.text is not None for pool in pools for p in pool.paths) else []
    if recorded.logprobs:
        scorers += [Perplexity(kind) for kind in PERPLEXITIES]
    for scorer in scorers:
        pools = scored(pools, scorer)
    described = CellDescription(
        recorded.dataset, recorded.model, pools=recorded.file, answer_field=recorded.answer_field,
        missing=list(recorded.missing), n_cal=recorded.n_cal,
    )  # fmt: skip
    source = Source(pools, scorers={scorer.name: full_identity(scorer) for scorer in scorers})
    return evaluate_cell(read_cell(described, source), STUDY)


def yields(results: Sequence[CellResult], name: str) -> list[float]:
    return [method.points[0].answered.mean for result in results if (method := result.method(name))]


def gains(results: Sequence[CellResult]) -> str:
    """How much ties and weights each change the yield, in a sentence."""
    plain, broken = yields(results, MAJORITY), yields(results, JITTERED)
    ties = [b - p for p, b in zip(plain, broken, strict=True)]
    weighted = [
        max(m.points[0].answered.mean for m in result.methods[2:]) - b
        for result, b in zip(results, broken, strict=True)
        if len(result.methods) > 2
    ]
    return (
        f"At alpha 0.1 breaking ties at random changes the yield of the majority vote by {min(ties):+.3f} to "
        f"{max(ties):+.3f}, by {sum(ties) / len(ties):+.3f} on average over {len(ties)} cells. The best score of each "
        f"cell changes it by another {min(weighted):+.3f} to {max(weighted):+.3f}, "
        f"{sum(weighted) / len(weighted):+.3f} on average over {len(weighted)} cells. Where the second is small, "
        "a gain over the plain majority vote is tie-breaking and not the score."
    )


def separating(results: Sequence[CellResult]) -> Table:
    """Which scores tell right from wrong, and what the report says of those that cannot."""
    rows: list[list[object]] = []
    for result in results:
        for method in result.methods[2:]:
            votes, _ = result.cell.votes(method.name)
            warnings = ScoreHealth.of(result.cell.scores[method.name], votes.recipe).warnings(method.name)
            said = "; ".join(warning.split(":")[0] for warning in warnings) or "nothing"
            rows.append([result.name, method.name, method.frontier.auroc, method.vote_accuracy, method.best_of_m,
                         method.points[0].answered, said])  # fmt: skip
    header = ["Cell", "Score", "AUROC of confidence", "vote right", "best of m", "Y 0.1", "warned of"]
    return Table("separating", "Scores", header, rows)  # type: ignore[arg-type]


def page(results: Sequence[CellResult]) -> str:
    tables = {table.name: table for table in tables_of(results, STUDY)}
    odd, count = inconsistent(results), comparisons(results)
    held = (
        f"All {count} mean error rates (every cell, method and alpha, over {CHECKS} random splits each) agree with the "
        "exact finite-population law, corrected for their number."
        if not odd
        else f"{len(odd)} of {count} mean error rates do not agree with the exact law: "
        + "; ".join(f"{name} at {point.alpha:g} (z = {point.z:.1f})" for name, point in odd)
    )
    worst = max(abs(c.z) for r in results for m in r.methods for c in m.checks if c.z == c.z)
    sources = Table(
        "sources", "Sources", ["Cell", "Source", "Licence", "n_cal"],
        [[f"{r.dataset} / {r.model}", r.source, r.licence, r.n_cal or STUDY.n_cal] for r in FILES],
    )  # fmt: skip
    errors = [table for name, table in tables.items() if name.startswith("ce-")]
    parts = [
        "# Results on real data", "",
        "Written by `docs/results.py` from recorded pools; the pools are public, and none of their text is here.", "",
        sources.markdown(), tables["grid"].markdown(),
        "## Does the promise hold?", "", held + f" The largest distance is {worst:.1f} standard errors.", "",
        "That is a check of the code: random splits of one file are exchangeable by construction, so their mean cannot "
        "fail. What can fail is a new source of questions, and `quorate evaluate --policy` is the test for that.", "",
        *(table.markdown() for table in errors),
        "## What weighting, jitter and tie-breaking each change", "", gains(results), "",
        jitter_gain(results).markdown(),
        "## Scores that separate, and scores that do not", "",
        "`perplexity-std` with the paper's sign prefers paths of uneven confidence: its vote is right far less often "
        "than that of its negation. The promise holds with it all the same; it is kept by abstaining more. No warning "
        "is due: such a score is neither constant nor too wide, it is wrong, and only labels can tell. `quorate score "
        "--list` shows its path AUROC, which is below one half.", "",
        separating(results).markdown(),
        "## The price of small n", "",
        "Fewer calibration questions cost little yield and much certainty: look at the standard deviations, and at the "
        "exact expectation, which falls below alpha where (n + 1) alpha is not a whole number.", "",
        tables["ablation-n-cal"].markdown(),
        "## Fewer paths", "",
        "The first m paths of each pool. In files of many models those are always the same m models.", "",
        tables["ablation-m"].markdown(),
    ]  # fmt: skip
    return "\n".join(parts)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    results = []
    for recorded in FILES:
        print(f"{recorded.file} …", file=sys.stderr, flush=True)
        results.append(cell_of(Path(sys.argv[1]), recorded))
    target = Path(__file__).with_name("results.md")
    target.write_text(page(results), encoding="utf-8")
    print(f"wrote {target.name}")


if __name__ == "__main__":
    main()
