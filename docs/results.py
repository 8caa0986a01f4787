"""Write docs/results.md: the study's protocol on recorded pools of real models, and what held and what did not.

    python docs/results.py FOLDER

FOLDER holds the pool files named below, each from a public source; none of their text goes into the page. The table
"How good is it?" goes into the README too, and one about labels into docs/labelling.md.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import learned_results
import numpy as np
from answer_set_results import answer_set_part
from cascade_results import cascade_part
from choosing_results import choosing_part
from groups_results import groups_part
from judge_results import judged_part
from label_end_results import label_end_part
from monitoring_results import monitoring_part
from selective_rules import RULES, compare_rules
from shift_results import shift_part
from waves_results import waves_part

from demur.calibration import Marginal
from demur.calibration.labelling import LabelQueue
from demur.evaluation.comparison import JITTERED, MAJORITY, compare_scores
from demur.evidence.counts import ThresholdKey
from demur.policy.calibrate import calibrate
from demur.pools.fields import FieldChoice
from demur.pools.jsonl import read_pools
from demur.pools.source import PoolSource, vote_pools
from demur.pools.voted_pools import VotedPools
from demur.records import Pool
from demur.scoring import Perplexity, SelfConsistency
from demur.scoring.protocol import Scorer, full_identity
from demur.study.cells import TIED, Cell, read_cell
from demur.study.description import Ablations, CellDescription, StudyDescription
from demur.study.protocol import CHECKS, CellResult, comparisons, evaluate_cell, inconsistent
from demur.study.tables import Table, Value, jitter_gain, tables_of

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
    logprobs: bool = False
    task: str | None = None


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
    Recorded("smollm2_add1", "addition", "SmolLM2-135M", "sampled by demur", "own", n_cal=100, logprobs=True,
             task="math"),
    Recorded("smollm2_word1", "word problems", "SmolLM2-135M", "sampled by demur", "own", n_cal=40, logprobs=True,
             task="math"),
    Recorded("mmlupro_answers_all", "MMLU-Pro, all", "28 models, answers only", "MMLU-Pro", "Apache-2.0 (data MIT)"),
    Recorded("smollm2_cap", "capitals", "SmolLM2-135M", "sampled by demur", "own", n_cal=50, logprobs=True, task="qa"),
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
        missing=list(recorded.missing), n_cal=recorded.n_cal, task=recorded.task,
    )  # fmt: skip
    source = PoolSource(pools, scorers={scorer.name: full_identity(scorer) for scorer in scorers})
    return evaluate_cell(read_cell(described, source), STUDY)


def changes(results: Sequence[CellResult]) -> str:
    """How much jitter, weights and tie-breaking each change the yield, in sentences."""
    jitter, weights, ties = [], [], []
    for result in results:
        plain, broken = result.method(MAJORITY), result.method(JITTERED)
        assert plain is not None
        assert broken is not None
        jitter.append(broken.points[0].answered.mean - plain.points[0].answered.mean)
        for score in result.cell.scores:
            weighted, tied = result.method(score), result.method(f"{score}{TIED}")
            assert weighted is not None
            assert tied is not None
            weights.append(weighted.points[0].answered.mean - broken.points[0].answered.mean)
            ties.append(tied.points[0].answered.mean - weighted.points[0].answered.mean)
    better = sum(each > 0 for each in weights)
    return (
        f"At alpha 0.1, ordering equally confident votes at random (jitter) changes the yield of the majority vote by "
        f"{_range(jitter)}, over {len(jitter)} cells. Weighting by a score instead changes it by another "
        f"{_range(weights)}, over {len(weights)} scores of those cells, and adds to it for {better} of them. Breaking "
        f"the ties that remain by the mean score of the winning paths changes it by {_range(ties)}. So a gain over the "
        "plain majority vote is mostly tie-breaking; only what lies beyond the jittered vote is the score's."
    )


def _range(values: Sequence[float]) -> str:
    return f"{min(values):+.3f} to {max(values):+.3f}, {sum(values) / len(values):+.3f} on average"


def prices(results: Sequence[CellResult]) -> str:
    """What few calibration questions cost, against the most that a cell allows."""
    lost, spread = [], []
    for result in results:
        found = [each.result for each in result.variations if each.what == "n_cal"]
        lost.append(found[0].answered.mean - found[-1].answered.mean)
        spread.append(found[0].confident_error.sd / max(found[-1].confident_error.sd, 1e-9))
    return (
        f"With 20 calibration questions the yield changes by {_range(lost)}, against the largest number that a cell "
        f"allows, and the standard deviation of the error rate is {min(spread):.1f} to {max(spread):.1f} times as "
        "large. The exact expectation falls below alpha where (n + 1) alpha is not a whole number."
    )


def separating(results: Sequence[CellResult]) -> Table:
    """Which scores tell right from wrong, and what the report says of those that do not."""
    rows: list[list[Value]] = []
    for result in results:
        described = result.cell.description
        reading = FieldChoice(
            described.answer_field or "answer", missing=tuple(described.missing or ()), task=described.task
        )
        summaries = {each.name: each for each in compare_scores(result.cell.source, reading)}
        for score in result.cell.scores:
            held, method = summaries[score], result.method(score)
            assert method is not None
            doubts = [_SHORT[key] for key in _SHORT if any(key in warning for warning in held.warnings)]
            rows.append([result.name, score, held.path_auroc, method.vote_accuracy, method.best_of_m,
                         method.points[0].answered, "; ".join(doubts) or "–"])  # fmt: skip
    header = ["Cell", "Score", "path AUROC", "vote right", "best of m", "Y 0.1", "said of it"]
    return Table("separating", "Scores", header, rows)


def few_wrong(cells: Sequence[tuple[Cell, int]], alpha: float, fewest: int = 700) -> Table:
    """Rules that promise few wrong ones among the answers, on cells of so many questions, with their n_cal."""
    rows: list[list[Value]] = []
    for cell, n_cal in cells:
        votes, right = cell.votes(JITTERED)
        if len(right) < fewest:
            continue
        outcomes = compare_rules(votes.key, right, n_cal=n_cal, alpha=alpha, delta=_DELTA)
        told = [f"{found.answered:.0%} / {found.violations:.0%}" for name, found in outcomes.items()
                if name not in _AVERAGES]  # fmt: skip
        means = [f"{outcomes[name].answered:.0%} / {outcomes[name].selective_error:.3f}" for name in _AVERAGES]
        rows.append([cell.name, *told, *means])
    header = ["", *(name for name in RULES if name not in _AVERAGES), *_AVERAGES]
    return Table("few-wrong", f"Few wrong ones among the answers, alpha {alpha:g}", header, rows)


def few_wrong_part(cells: Sequence[tuple[Cell, int]]) -> list[str]:
    """The part of the page about promises that are about answers."""
    tables = [few_wrong(cells, alpha).markdown() for alpha in STUDY.alphas]
    return ["## Few wrong ones among the answers", "", _FEW_WRONG, "", *tables]


_DELTA = 0.1
_AVERAGES = ("select", "Marginal")
_FEW_WRONG = (
    "Wanted is that of the answers given at most alpha are wrong, for all but delta = 0.1 of calibration sets: how "
    "much of the rest of the file each rule answers, and in how many calibration sets its threshold violates that. The "
    "vote is the majority vote with jitter, 200 questions calibrate. Yields are means over 400 random splits. For "
    "violations 400 calibration sets are drawn with replacement, so that the file is the population and the true rate "
    "is known. The first two rules have no proof: accuracy read off the labels that chose the threshold violates in "
    "half of all sets or more, and Clopper and Pearson's limit at the best threshold spends delta on each of many "
    "thresholds. Where confidence tells right from wrong, as here, few of those matter; where it says little the rule "
    "violates more than twice as often as it promises (`tests/calibration/test_selective.py`). The last two columns "
    "promise an average instead: yield, and the mean share of wrong ones among the answers; what Marginal promises is "
    "not about answers at all."
)
_SHORT = {
    "is the same for all": "constant",
    "saturated": "saturated",
    "best-of-m": "too wide",
    "nearly a majority": "too narrow",
    "ranks wrong paths": "ranks wrong above right",
    "does not beat": "does not beat the majority vote",
}


def how_good(results: Sequence[CellResult], fewest: int = 0) -> Table:
    """Always answering against answering with a promise, on cells of at least so many questions."""
    rows: list[list[Value]] = []
    for result in results:
        if result.cell.n < fewest:
            continue
        scores = result.cell.scores
        score = PERPLEXITIES[0] if PERPLEXITIES[0] in scores else next(iter(scores), None)
        method = result.method(JITTERED if score is None else f"{score}{TIED}")
        assert method is not None
        told = [f"{p.answered.mean:.0%} answered, {p.selective_accuracy.mean:.0%} right" for p in method.checks]
        wrong = " / ".join(f"{point.confident_error.mean:.1%}" for point in method.checks)
        majority = result.method(MAJORITY)
        assert majority is not None
        base = [result.baselines["single path"], majority.vote_accuracy, method.best_of_m]
        always = ["–" if rate != rate else f"{rate:.0%}" for rate in base]
        rows.append([result.name, *always, *told, wrong])
    alphas = [f"demur, α = {alpha:g}" for alpha in STUDY.alphas]
    wrong_at = " / ".join(f"{alpha:g}" for alpha in STUDY.alphas)
    header = ["", "one path", "majority vote", "best of m", *alphas, f"wrong of all, α = {wrong_at}"]
    return Table("how-good", "How good is it?", header, rows, note=_HOW_GOOD)


_HOW_GOOD = (
    "First, how many of all questions always answering gets right. Then how many demur answers, how many of those "
    f"answers are right, and how many of all questions it answers wrongly: means over {CHECKS} random splits, with 200 "
    "calibration questions (100 for dates and addition, fewer in smaller files). Its vote is weighted by perplexity "
    "where there are log-probabilities, else by self-consistency where there are texts, ties by the mean score; "
    "without either it counts paths, ties by chance."
)


def jittered(folder: Path, recorded: Recorded) -> VotedPools:
    """The majority vote on one file, ties broken at random."""
    source = PoolSource(read_pools(folder / f"{recorded.file}.jsonl.gz"))
    fields = FieldChoice(recorded.answer_field, missing=recorded.missing, task=recorded.task)
    return vote_pools(source, fields, source.recipe(tie_break="jitter:0"))


def answer_sets(folder: Path) -> list[str]:
    """The part of the page about answer sets: twice as many questions calibrate as elsewhere, or 70 % of a file."""
    cells = []
    for recorded in FILES:
        voted = jittered(folder, recorded)
        n = min(2 * (recorded.n_cal or STUDY.n_cal), int(0.7 * len(voted.counted)))
        cells.append((f"{recorded.dataset} / {recorded.model}", voted, n))
    return answer_set_part(cells)


def labels_needed(folder: Path, sets: int = 100) -> Table:
    """How many of n votes are labelled until the threshold is that of full labels: from the top, and from below."""
    rows: list[list[Value]] = []
    for recorded in FILES:
        voted = jittered(folder, recorded)
        n, rng = recorded.n_cal or STUDY.n_cal, np.random.default_rng(0)
        drawn = [voted.take(rng.choice(voted.counted, n, replace=False)) for _ in range(sets)]
        row: list[Value] = [f"{recorded.dataset} / {recorded.model}", n]
        for alpha in sorted(STUDY.alphas):
            found = np.mean([_labelled_both_ways(one, alpha) for one in drawn], axis=0)
            row += [f"{rate:.0%}" for rate in found]
        rows.append(row)
    heads = [f"{head} {alpha:g}" for alpha in sorted(STUDY.alphas) for head in ("answered", *_WAYS)]
    return Table("labels-needed", "Labels needed", ["", "n", *heads], rows, note=_LABELS_NEEDED)


_WAYS = ("labels from the top", "least confident first", "answered then")
_LABELS_NEEDED = (
    "Means over 100 random calibration sets of n questions, jittered majority vote, sizes by chance. For each α: what "
    "full labels let a policy answer; the share of votes to label for the same, from the top and least confident "
    "first; and what is answered after as many labels as the first way takes, least confident first."
)


def _labelled_both_ways(voted: VotedPools, alpha: float) -> list[float]:
    """The yield of full labels, the share of labels that it takes either way, and the yield of as many from below."""
    right, n = voted.labelled, len(voted)
    queue = LabelQueue(voted, [Marginal(alpha)], sizes_by_chance=True)
    while (row := queue.next) is not None:
        queue.label(row, right=bool(right[row]))
    upwards = np.lexsort(voted.votes.key.T[::-1])

    def rule(labels: int) -> tuple[ThresholdKey, float]:
        """The threshold and the yield of so many labels, least confident first."""
        some = np.zeros(n, dtype=np.bool_)
        some[upwards[:labels]] = True
        partly = voted.with_labels(right, some)
        policy = calibrate(partly, alpha=alpha, sizes_by_chance=True, partly_labelled=True)
        return policy.point().threshold_key, policy.forecast().answered

    full, answered = rule(n)
    enough = bisect_left(range(n + 1), True, key=lambda labels: rule(labels)[0] == full)
    return [answered, queue.n_labelled / n, enough / n, rule(queue.n_labelled)[1]]


def large_enough_to_learn(folder: Path) -> list[tuple[str, VotedPools]]:
    """The jittered majority vote of each file that is large enough to learn a key on a part of it."""
    cells = []
    for recorded in FILES:
        source = PoolSource(read_pools(folder / f"{recorded.file}.jsonl.gz"))
        fields = FieldChoice(recorded.answer_field, missing=recorded.missing, task=recorded.task)
        if len(source.pools) >= learned_results.FEWEST:
            voted = vote_pools(source, fields, source.recipe(tie_break="jitter:0"))
            cells.append((f"{recorded.dataset} / {recorded.model}", voted))
    return cells


def into_page(page: Path, name: str, table: Table) -> None:
    """Put a table between its marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    _, _, after = rest.partition("<!-- end -->")
    body = table.markdown().split("\n", 2)[2].strip()  # without its heading
    page.write_text(f"{before}<!-- {name} -->\n{body}\n<!-- end -->{after}", encoding="utf-8")


def page(results: Sequence[CellResult], folder: Path) -> str:
    tables = {table.name: table for table in tables_of(results, STUDY)}
    odd, count = inconsistent(results), comparisons(results)
    held = (
        f"All {count} mean error rates (every cell, method and alpha, over {CHECKS} random splits each) agree with the "
        "exact finite-population law, corrected for their number."
        if not odd
        else f"{len(odd)} of {count} mean error rates do not agree with the exact law: "
        + "; ".join(f"{name} at {point.alpha:g} (z = {point.z:.1f})" for name, point in odd)
    )
    checks = [check for result in results for method in result.methods for check in method.checks]
    worst, least = max(abs(c.z) for c in checks if c.z == c.z), min(c.p_value for c in checks)
    distance = f" The largest distance is {worst:.1f} standard errors, the smallest p-value {least:.2g}."
    sources = Table(
        "sources", "Sources", ["Cell", "Source", "Licence", "n_cal"],
        [[f"{r.dataset} / {r.model}", r.source, r.licence, r.n_cal or STUDY.n_cal] for r in FILES],
    )  # fmt: skip
    errors = [table for name, table in tables.items() if name.startswith("ce-")]
    parts = [
        "# Results on real data", "",
        "Written by `docs/results.py` from recorded pools; the pools are public, and none of their text is here.", "",
        how_good(results).markdown(), sources.markdown(), tables["grid"].markdown(),
        "## Does the promise hold?", "", held + distance, "",
        "That is a check of the code: random splits of one file are exchangeable by construction, so their mean cannot "
        "fail. What can fail is a new source of questions, and `demur audit` is the test for that.", "",
        *(table.markdown() for table in errors),
        "## What weighting, jitter and tie-breaking each change", "", changes(results), "",
        jitter_gain(results).markdown(),
        "## Scores that separate, and scores that do not", "",
        "The last column is what the report says of a score: without labels, that it is constant, saturated, too wide "
        "or too narrow; with labels, that it ranks wrong paths above right ones, or does not beat the jittered "
        "majority vote at the same yields. The promise holds for each of them: a bad score abstains more.", "",
        separating(results).markdown(),
        *few_wrong_part([(result.cell, result.cell.description.n_cal or STUDY.n_cal) for result in results]),
        *label_end_part(folder),
        "## Keys learned on a part of the labels", "", learned_results.table(large_enough_to_learn(folder)).markdown(),
        *cascade_part(folder, STUDY.alphas),
        *answer_sets(folder),
        *judged_part([result.cell for result in results]),
        *choosing_part(folder),
        *shift_part(folder), *groups_part(folder), *waves_part(folder, FILES), *monitoring_part(folder),
        "## The price of small n", "", prices(results), "", tables["ablation-n-cal"].markdown(),
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
    target.write_text(page(results, Path(sys.argv[1])), encoding="utf-8")
    best = how_good([r for r in results if "answers only" not in r.name], fewest=200)
    into_page(Path(__file__).parents[1] / "README.md", "how good", best)
    into_page(Path(__file__).with_name("labelling.md"), "labels needed", labels_needed(Path(sys.argv[1])))
    print(f"wrote {target.name}")


if __name__ == "__main__":
    main()
