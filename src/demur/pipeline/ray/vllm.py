"""A model in the cluster itself: vLLM on its GPUs, through Ray's own batches for language models.

Prompts go in as rows, one per path, each with the seed that the plain engine would draw it with; what the engine writes
comes back row by row, and a block becomes a shard when all its paths are there.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from demur import event_loop
from demur.answers.completions import clamped
from demur.backends import weights
from demur.backends.protocol import Completion, Portions, Settings, Wanted
from demur.engine.ray.blocks import as_data, cluster_errors_told
from demur.engine.ray.cluster import Cluster, ray_library
from demur.engine.sample import SamplingProgress, wanted_paths
from demur.engine.score import score_pool
from demur.errors import BackendError, ClusterError
from demur.pipeline.config import Config
from demur.pipeline.fitted import Fitted
from demur.pipeline.pipeline import Pipeline
from demur.pipeline.shards import Block, ShardFolder
from demur.pools.parquet import write_parquet
from demur.pools.provenance import Provenance
from demur.prompts import Prompt
from demur.records import Path, Pool
from demur.scoring.protocol import full_identity
from demur.store.rows import PlacedPath

_BATCH = 64
"""Rows that an engine is given at once; it has several such batches under way."""


class Described:
    """What a run says of such a model. The cluster's engines are asked by `sample_blocks`, and this by nobody."""

    concurrency = 1

    def __init__(self, model: str) -> None:
        self.model = model

    def describe(self) -> dict[str, Any]:
        return {"backend": "vllm", "model": self.model}

    def sample(self, prompt: Prompt, settings: Settings, wanted: Sequence[Wanted]) -> Portions:
        raise BackendError(f"{self.model} runs in a cluster and is asked there", "give {base_url} of a server")

    async def close(self) -> None:
        pass


def is_meant(config: Config) -> bool:
    """Whether a model is named that neither a server nor this process has."""
    named = config.model is not None and not weights.is_embedded(config.model)
    return named and config.plugin is None and not (config.base_url or os.environ.get("OPENAI_BASE_URL"))


def processor(config: Config, gpus: int, *, chat: bool = True) -> Any:
    """Ray's processor for the model: one engine per GPU; refused in one line where there can be none.

    Without `chat`, prompts are texts to go on from, and go to the engine as they are.
    """
    if not gpus:
        raise ClusterError(
            f"the model {config.model!r} would run in the cluster, and the cluster has no GPU",
            "name a server with {base_url}, a cluster with GPUs with {ray_address}, or a GGUF file with {model}",
        )
    if find_spec("vllm") is None:
        raise _lacking("vllm")
    try:
        from ray.data.llm import build_processor, vLLMEngineProcessorConfig

        engine = vLLMEngineProcessorConfig(**engine_settings(config, gpus, chat=chat))
        return build_processor(engine, preprocess=asked_row, postprocess=answered_row)
    except ImportError as error:
        raise _lacking(error.name or str(error)) from None


def engine_settings(config: Config, gpus: int, *, chat: bool = True) -> dict[str, Any]:
    """How the cluster's engines are started: one per GPU, prompts that begin alike computed once."""
    kept = {"enable_prefix_caching": True}
    sizes = {"concurrency": gpus, "batch_size": _BATCH}
    return {"model_source": str(config.model), "engine_kwargs": kept, "chat_template_stage": chat, **sizes}


def _lacking(package: str) -> ClusterError:
    return ClusterError(
        f"a model in the cluster needs vLLM, and the package {package} is not installed",
        "install it on every machine: pip install 'ray[llm]==2.60.0'; or name a server with {base_url}",
    )


def asked_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as the engine takes it."""
    sampling = {name: row[name] for name in ("temperature", "top_p", "max_tokens", "seed")}
    sampling |= {"stop": list(row["stop"])} if len(row["stop"]) else {}
    sampling |= {"logprobs": 0} if row["logprobs"] else {}
    if row["prompt"] is not None:
        return {"prompt": row["prompt"], "sampling_params": sampling}
    return {"messages": [dict(message) for message in row["messages"]], "sampling_params": sampling}


def answered_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a row that came back: whose it is, the text, and the log-probability of each of its tokens."""
    told, tokens = row.get("logprobs"), [int(token) for token in row["generated_tokens"]]
    kept = {name: row[name] for name in ("block", "problem", "path", "seed", "max_tokens")}
    logprobs = None
    if told is not None and len(told) == len(tokens) and not isinstance(told, (bool, int)):
        pairs = zip(tokens, told, strict=True)
        logprobs = [float((known.get(token) or known[str(token)])["logprob"]) for token, known in pairs]
    return {**kept, "text": row["generated_text"], "n_tokens": len(tokens), "token_logprobs": logprobs}


def rows_of(fitted: Fitted, blocks: Sequence[Block], *, seed: int, n_paths: int) -> Iterator[dict[str, Any]]:
    """One row per path of some blocks, in order."""
    settings = fitted.settings
    drawn = {name: getattr(settings, name) for name in ("temperature", "top_p", "max_tokens", "logprobs")}
    for block in blocks:
        for place, problem in enumerate(block.problems):
            prompt = fitted.render(problem)
            asked = {"prompt": prompt.text, "messages": [dict(message) for message in prompt.messages]}
            for want in wanted_paths(seed, problem.id, n_paths):
                whose = {"block": block.number, "problem": place, "path": want.path, "seed": want.seed}
                yield {**whose, **asked, **drawn, "stop": list(settings.stop)}


def _rows_of_piece(row: Mapping[str, Any], *, fitted: Fitted, seed: int, n_paths: int) -> list[dict[str, Any]]:
    return list(rows_of(fitted, [pickle.loads(row["piece"])], seed=seed, n_paths=n_paths))


def completion_of(row: Mapping[str, Any]) -> Completion:
    """A row that came back, as a path: one that has all the tokens it may have was cut off."""
    told = row["token_logprobs"]
    logprobs = None if told is None or not len(told) else tuple(clamped(float(one)) for one in told)
    path, seed, n_tokens = (int(row[name]) for name in ("path", "seed", "n_tokens"))
    ended = "length" if n_tokens >= row["max_tokens"] else "stop"
    return Completion(path, row["text"], ended, logprobs, seed, None, n_tokens)


@dataclass
class Arriving:
    """Paths that came, by block and problem, until a block has all of its own."""

    fitted: Fitted
    blocks: Mapping[int, Block]
    n_paths: int
    _paths: dict[int, dict[tuple[int, int], Path]] = field(default_factory=dict)

    def take(self, row: Mapping[str, Any]) -> tuple[Block, list[Pool], list[PlacedPath]] | None:
        """The block that a row makes whole, its pools and its paths; None where others are still to come."""
        block = self.blocks[int(row["block"])]
        problem = block.problems[int(row["problem"])]
        came = self._paths.setdefault(block.number, {})
        came[int(row["problem"]), int(row["path"])] = self.fitted.path(problem, completion_of(row))
        if len(came) < len(block.problems) * self.n_paths:
            return None
        del self._paths[block.number]
        placed = [PlacedPath(number, place, path) for (number, place), path in sorted(came.items())]
        of_problem = [placed[at : at + self.n_paths] for at in range(0, len(placed), self.n_paths)]
        pools = [
            Pool(one, tuple(path for _, _, path in paths))
            for one, paths in zip(block.problems, of_problem, strict=True)
        ]
        return block, pools, placed


def sample_blocks(
    config: Config,
    pipeline: Pipeline,
    fitted: Fitted,
    shards: ShardFolder,
    lacking: Sequence[Block],
    found: Cluster,
    progress: SamplingProgress,
    watch: Callable[[SamplingProgress], None],
) -> None:
    """Sample blocks by the cluster's engines, and write each as a shard when it is whole."""
    engines = processor(config, found.gpus, chat=fitted.template.kind != "completion")
    arriving = Arriving(fitted, {block.number: block for block in lacking}, pipeline.n_paths)
    ray, spread = ray_library(), partial(_rows_of_piece, fitted=fitted, seed=pipeline.seed, n_paths=pipeline.n_paths)
    rows = as_data(ray, lacking).flat_map(spread)  # in the cluster: of millions of paths, none waits here
    scorer = pipeline.scorer
    known = Provenance(fitted.description(), {} if scorer is None else {scorer.name: full_identity(scorer)})
    try:
        with cluster_errors_told(ray):
            for row in engines(rows).iter_rows():
                if (whole := arriving.take(row)) is not None:
                    block, pools, placed = whole
                    write_parquet(_scored(pools, pipeline), shards.shard(block), known)
                    progress.count(placed)
                    watch(progress)
    except KeyboardInterrupt:
        progress.interrupted = True


def _scored(pools: Sequence[Pool], pipeline: Pipeline) -> list[Pool]:
    """Pools with the pipeline's score, which is made of what came with the paths."""
    scorer = pipeline.scorer
    if scorer is None:
        return list(pools)
    scored = []
    for pool in pools:
        values = event_loop.run(score_pool(scorer, pool))
        paths = zip(pool.paths, values, strict=True)
        scored.append(replace(pool, paths=tuple(replace(path, scores={scorer.name: value}) for path, value in paths)))
    return scored
