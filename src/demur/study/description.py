"""A study as a TOML file: its cells, how it is evaluated, and what is varied.

[study]
name = "mine"                              # results go to results/mine unless `out` says otherwise
alphas = [0.10, 0.05]
n_cal = 200
splits = 20

[ablations]
m = [4, 8, 16]                             # prefixes of larger pools
n_cal = [50, 100, 200]
weights = ["uniform", "linear", "exponential:1", "exponential:5"]

[[cells]]
dataset = "GSM8K"
model = "Qwen3-1.7B"
pools = "gsm8k.jsonl.gz"                   # or: store = "runs/gsm8k.db", and `questions` to sample it first
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from demur.backends.addresses import file_address
from demur.calibration import exact_alpha
from demur.errors import InvalidValue
from demur.foreign_code import SCORERS, names_function, plugin_named, refuse_function
from demur.scoring.factory import KINDS
from demur.scoring.settings import ScorerSettings, base_name
from demur.typed_toml import read_toml, typed_fields
from demur.voting.weights import parse_weight


@dataclass(frozen=True)
class CellDescription:
    """One dataset and one model: a pool file, a run, or a run that is to be sampled and scored."""

    dataset: str
    model: str
    pools: str | None = None
    store: str | None = None
    run: str | None = None
    questions: str | None = None
    """What to sample the run from: a dataset's name or a file of questions."""
    sampled_model: str | None = None
    """The model as its endpoint or the hub names it; `model` is its short name."""
    base_url: str | None = None
    paths: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    limit: int | None = None
    shuffle: int | None = None
    prompt: str | None = None
    compute: list[str] | None = None
    """Scores to compute before the evaluation."""
    scores: list[str] | None = None
    """Scores to evaluate; all of them unless named."""
    normaliser: str | None = None
    m: int | None = None
    """How many of its paths are voted on, where it has more for the ablation."""
    n_cal: int | None = None
    """Calibration questions, where the cell has too few for the study's number."""
    correct: str | None = None
    """A field of the paths with ready-made labels, in place of gold."""
    gold_tolerance: float | None = None
    gold_containment: bool = False
    label_verdicts: str | None = None
    """What else counts as right: see `pools.label_rule`; the last is a file of verdicts."""
    answer_field: str | None = None
    missing: list[str] | None = None
    relation: str | None = None
    task: str | None = None
    """The task of its problems, where they name none, or the name of something else."""
    labels: list[str] | None = None
    """Names that are chosen, where options have no letters."""
    partial: bool = False
    """Whether problems of its run or shards that still lack paths may be left out; they may not be a random part."""
    greedy: str | None = None
    """A pool file, or a run of the same store, of one path at temperature 0; `sample` for one that is sampled too."""

    @property
    def name(self) -> str:
        return f"{self.dataset} / {self.model}"


@dataclass(frozen=True)
class Ablations:
    """What is varied, on which cells and with which score (all cells and their first score unless named)."""

    m: list[int] = field(default_factory=list)
    n_cal: list[int] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    cells: list[str] | None = None
    score: str | None = None
    alpha: float | None = None


@dataclass(frozen=True)
class StudyDescription:
    """The whole study."""

    name: str
    cells: list[CellDescription]
    out: str | None = None
    alphas: list[float] = field(default_factory=lambda: [0.1, 0.05])
    n_cal: int = 200
    splits: int = 20
    seed: int = 0
    compute: list[str] = field(default_factory=list)
    """Scores that every run gets before it is evaluated, unless its cell names others."""
    compare: list[str] = field(default_factory=list)
    """Scorers of different size, side by side."""
    ablations: Ablations = field(default_factory=Ablations)
    scorers: Mapping[str, ScorerSettings] = field(default_factory=dict)


def read_study(file: Path, *, compute: Sequence[str] = (), trust_address: Collection[str] = ()) -> StudyDescription:
    """A study file, each of its keys and values checked.

    `compute` adds scores to be computed; a function is run only if it is among them. `trust_address` are those of its
    addresses that get a key.
    """
    document = read_toml(file, "the study")
    for section in sorted(set(document) - {"study", "ablations", "cells", "score"}):
        raise InvalidValue(f"{file}: unknown section {section!r}; expected study, ablations, cells, score")
    cells = document.get("cells", [])
    if not isinstance(cells, list) or not cells or not all(isinstance(cell, dict) for cell in cells):
        raise InvalidValue(f"{file}: a study has at least one cell, [[cells]]")
    scorers = document.get("score", {})
    if not isinstance(scorers, dict) or not all(isinstance(entry, dict) for entry in scorers.values()):
        raise InvalidValue(f"{file}: scorers are described in sections [score.NAME]")
    described_cells = [
        _distrusted(CellDescription(**typed_fields(CellDescription, cell, f"{file}: cell {number}")), trust_address)
        for number, cell in enumerate(cells, start=1)
    ]
    elsewhere = ("cells", "ablations", "scorers")
    own = [known.name for known in fields(StudyDescription) if known.name not in elsewhere]
    study = document.get("study", {})
    settings = {"name": file.stem, **study} if isinstance(study, dict) else study
    described = StudyDescription(
        **typed_fields(StudyDescription, settings, f"{file}: study", only=own),
        cells=_told_apart(described_cells),
        ablations=Ablations(**typed_fields(Ablations, document.get("ablations", {}), f"{file}: ablations")),
        scorers={
            name: ScorerSettings.of_file(entry, f"{file}: score.{name}", trust_address)
            for name, entry in scorers.items()
        },
    )
    for name in [*described.compute, *(name for cell in described.cells for name in cell.compute or ())]:
        if name in compute:
            continue
        if names_function(name):
            refuse_function(name, f"{file}: a score to compute", "compute")
        said_kind = name in described.scorers and described.scorers[name].kind is not None
        built_in = said_kind or base_name(name) in KINDS
        if not built_in and (plugin := plugin_named(SCORERS, name)) is not None:
            raise InvalidValue(
                plugin.told(f"is named by {file}, and no file may make demur run a plugin"),
                f"name it yourself: {{compute={name}}}",
            )
    described = replace(described, compute=list(dict.fromkeys([*described.compute, *compute])))
    _refuse_nonsense(described, str(file))
    return described


def _distrusted(cell: CellDescription, trust_address: Collection[str]) -> CellDescription:
    """A cell whose addresses are marked as a file's."""
    store = file_address(cell.store, trust_address) if "://" in (cell.store or "") else cell.store
    return replace(cell, base_url=file_address(cell.base_url, trust_address), store=store)


def _told_apart(cells: list[CellDescription]) -> list[CellDescription]:
    """Cells that differ in temperature alone are called by it."""
    names = [cell.name for cell in cells]
    return [
        replace(cell, model=f"{cell.model}, T {cell.temperature:g}", sampled_model=cell.sampled_model or cell.model)
        if cell.temperature is not None and names.count(cell.name) > 1
        else cell
        for cell in cells
    ]


def _refuse_nonsense(study: StudyDescription, where: str) -> None:
    names = [cell.name for cell in study.cells]
    odd = next((name for name in [study.name, *names] if not name.isprintable() or not name.strip()), None)
    if odd is not None or not re.search(r"\w", study.name):
        raise InvalidValue(f"{where}: names must be printable and not empty, got {odd or study.name!r}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidValue(f"{where}: two cells are called {twice!r}; give them different names")
    for cell in study.cells:
        if (cell.pools is None) == (cell.store is None):
            raise InvalidValue(f"{where}: the cell {cell.name!r} needs either pools or store")
        if cell.questions is not None and cell.store is None:
            raise InvalidValue(f"{where}: the cell {cell.name!r} is sampled into a store; name one")
    if study.n_cal < 1 or study.splits < 1 or study.seed < 0 or not study.alphas:
        raise InvalidValue(f"{where}: n_cal and splits must be at least 1, seed at least 0, and there must be an alpha")
    for alpha in [*study.alphas, *([] if study.ablations.alpha is None else [study.ablations.alpha])]:
        exact_alpha(alpha)
    if len(set(study.alphas)) < len(study.alphas):
        raise InvalidValue(f"{where}: an alpha occurs twice")
    for weight in study.ablations.weights:
        parse_weight(weight)
    sizes = [*study.ablations.m, *study.ablations.n_cal]
    sizes += [size for cell in study.cells for size in (cell.m, cell.n_cal) if size is not None]
    if any(size < 1 for size in sizes):
        raise InvalidValue(f"{where}: m and n_cal must be at least 1")
    for name in sorted(set(study.ablations.cells or ()) - set(names)):
        raise InvalidValue(f"{where}: ablations name no such cell as {name!r}; there is {', '.join(names)}")
