"""Every figure of every recorded file through every verb that gives figures, policies, shapes of JSON and public names.

    python benchmarks/recorded_figures.py FOLDER -o before.json
    python benchmarks/recorded_figures.py FOLDER --compare before.json

For changes that must change no figure: run it before and after. FOLDER holds the pool files named below. Long lists
(decisions, curves) are digests. The shape of a document is its keys and the kinds of their values. What differs is
listed leaf by leaf, and the exit code says whether anything does.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import inspect
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-m", "demur"]
FILES: dict[str, dict[str, Any]] = {
    "faithfulcot_gsm8k_pool": {"missing": ["None"]},
    "mmlupro_answers_all": {},
    "mmlupro_text_1in8": {},
    "openai_gsm8k_examples": {},
    "qwen25math_rm_math100": {"score": "qwen25_math_rm"},
    "smollm2_add1": {"score": ".logprob_mean", "task": "math"},
    "smollm2_cap": {"score": ".logprob_mean", "task": "qa"},
    "smollm2_word1": {"score": ".logprob_mean", "task": "math"},
    "verifycot_gpt35_date": {"missing": ["No answer!"]},
    "wisdom_gpt35_nlu_asdiv_single_answer": {"answer_field": "answer_x"},
    "zeroeval_gsm8k": {"answer_field": "answer_x"},
    "zeroeval_math_l5": {"answer_field": "answer_x", "missing": ["___"]},
}
SCORED = ("qwen25math_rm_math100", "smollm2_add1", "smollm2_cap", "smollm2_word1", "verifycot_gpt35_date")
"""Small files whose paths are also scored, in a run."""
SHAPES: dict[str, set[str]] = {}
"""The shapes of what each verb printed so far."""
_LONGEST = 40
_TEXT = ("pipeline", "fingerprint", "file", "policy", "seconds", "report", "bytes")
"""Not figures: descriptions, names of files, and the clock."""


def run(*arguments: object) -> dict[str, Any]:
    """What a command prints with --json."""
    ran = subprocess.run([*PROGRAM, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):
        sys.exit(f"{' '.join(map(str, arguments))}: {ran.stderr}")
    found: dict[str, Any] = json.loads(ran.stdout)
    SHAPES.setdefault(str(arguments[0]), set()).update(shape_of(found))
    return found


def of_file(pools: Path, how: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One file through the verbs that read pools."""
    reading: list[object] = ["--answer-field", how["answer_field"]] if "answer_field" in how else []
    reading += ["--task", how["task"]] if "task" in how else []
    for spelling in how.get("missing", []):
        reading += ["--missing", spelling]
    alphas = ["--alpha", 0.05, "--alpha", 0.1, "--alpha", 0.2]
    ways: dict[str, list[object]] = {"majority": [], "jitter": ["--tie-break", "jitter:1"]}
    if "score" in how:
        score = ["--score", how["score"]]
        ways |= {"score": score, "score-z-mean": [*score, "--normaliser", "pool_z", "--tie-break", "mean_score"]}
    figures: dict[str, Any] = {}
    for way, flags in ways.items():
        policy = folder / f"{way}.json"
        same = [pools, *flags, *reading, *alphas]
        figures[f"{way}/calibrate"] = run("calibrate", *same)
        figures[f"{way}/calibrate-delta"] = run("calibrate", *same, "--delta", 0.1)
        figures[f"{way}/calibrate-smoothed"] = run("calibrate", *same, "--smoothed", "--seed", 5)
        figures[f"{way}/calibrate-half"] = run("calibrate", *same, "--hold-out", 0.5, "-o", policy)
        figures[f"{way}/policy-half"] = facts_of_policy(policy)
        figures[f"{way}/evaluate"] = run("evaluate", *same, "--n-cal", 40)
        figures[f"{way}/audit"] = run("audit", pools, "--policy", policy)
        figures[f"{way}/decide"] = run("decide", pools, "--policy", policy, "--alpha", 0.1)
        page = folder / f"{way}.html"
        figures[f"{way}/report"] = run("report", pools, "--policy", policy, "--no-texts", "-o", page)
        figures[f"{way}/page"] = facts_of(page)
    figures["score-list"] = run("score", pools, "--list", *reading)
    return figures


def facts_of_policy(policy: Path) -> dict[str, Any]:
    """What identifies a policy, and the shape of its file."""
    document = json.loads(policy.read_text())
    import demur as dm

    return {"identity": dm.Policy.load(policy).fingerprint, "shape": sorted(shape_of(document))}


def shape_of(value: Any, name: str = "") -> set[str]:
    """The place and kind of every value; entries of a list share a place."""
    if isinstance(value, dict):
        return {f"{name} {{}}"}.union(*(shape_of(entry, f"{name}.{key}") for key, entry in value.items()))
    if isinstance(value, list):
        return {f"{name} []"}.union(*(shape_of(entry, f"{name}[]") for entry in value[:1000]))
    return {f"{name} {type(value).__name__}"}


def public_names() -> dict[str, Any]:
    """Each public name with its signature, if it can be called."""
    import demur as dm

    names: dict[str, Any] = {}
    for name in dm.__all__:
        held = getattr(dm, name)
        try:
            names[name] = str(inspect.signature(held)) if callable(held) else type(held).__name__
        except ValueError:
            names[name] = type(held).__name__
    return names


def facts_of(page: Path) -> dict[str, Any]:
    """The facts inside a report."""
    text = page.read_text(encoding="utf-8")
    begin = text.index('{"title":')
    facts: dict[str, Any] = json.JSONDecoder().raw_decode(text, begin)[0]
    return facts


def of_run(pools: Path, folder: Path) -> dict[str, Any]:
    """Self-consistency and, where they were recorded, perplexities of a run."""
    store = folder / "run.db"
    run("import", pools, "-o", store)
    kinds = ["self-consistency"]
    with gzip.open(pools, "rt") as stream:
        if "logprob_mean" in stream.readline():
            kinds += ["perplexity", "perplexity-std", "perplexity-std-negated"]
    asked = [part for kind in kinds for part in ("--score", kind)]
    figures = {"score": run("score", store, *asked), "score-list": run("score", store, "--list")}
    for kind in kinds:
        figures[f"calibrate-{kind}"] = run("calibrate", store, "--score", kind, "--alpha", 0.1, "--alpha", 0.2)
    return figures


def of_study(source: Path, folder: Path) -> dict[str, Any]:
    """All tables and figures of a study of every file."""
    lines = ['[study]\nname = "recorded"\nalphas = [0.1, 0.05]\nn_cal = 40\nsplits = 20']
    lines.append('[ablations]\nm = [2, 4]\nn_cal = [20, 30]\nweights = ["uniform", "exponential:2"]')
    for name, how in FILES.items():
        pools = json.dumps(str(source / f"{name}.jsonl.gz"))
        lines.append(f'[[cells]]\ndataset = "{name}"\nmodel = "recorded"\npools = {pools}')
        if "score" in how:
            lines.append(f"scores = {json.dumps([how['score']])}")
        lines += [f"{key} = {json.dumps(how[key])}" for key in ("answer_field", "missing") if key in how]
    (folder / "study.toml").write_text("\n".join(lines))
    told = run("study", folder / "study.toml", "-o", folder / "results", "--no-figures")
    figures: dict[str, Any] = {"notes": told["notes"], "failed": told["failed"], "verdict": told["verdict"]}
    for file in sorted((folder / "results").rglob("*.csv")):
        with file.open(newline="") as stream:
            for number, row in enumerate(csv.reader(stream)):
                figures[f"{file.parent.name}/{file.stem}/{number}"] = ",".join(row)
    return figures


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every figure under its place; a long list as its length and a digest."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if key not in _TEXT:
                yield from leaves(entry, f"{name}/{key}" if name else key)
    elif isinstance(value, list) and len(value) > _LONGEST:
        digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
        yield name, f"{len(value)} entries, {digest}"
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from leaves(entry, f"{name}/{position}")
    else:
        yield name, value


def collect(source: Path) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, how in FILES.items():
        print(name, file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = of_file(source / f"{name}.jsonl.gz", how, Path(folder))
            if name in SCORED:
                figures[f"{name} as a run"] = of_run(source / f"{name}.jsonl.gz", Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        figures["study"] = of_study(source, Path(folder))
    figures["shapes"] = {verb: ", ".join(sorted(shapes)) for verb, shapes in SHAPES.items()}
    figures["public"] = public_names()
    return dict(leaves(figures))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--compare", type=Path)
    given = parser.parse_args()
    figures = collect(given.folder)
    if given.out is not None:
        given.out.write_text(json.dumps(figures, indent=1))
    if given.compare is None:
        return 0
    before = json.loads(given.compare.read_text())
    changed = 0
    for name in sorted({*before, *figures}):
        if before.get(name, "–") != figures.get(name, "–"):
            changed += 1
            print(f"{name}: {before.get(name, '–')} → {figures.get(name, '–')}")
    print(f"{len(figures)} figures, {changed} differ")
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())
