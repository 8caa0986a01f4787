"""The pipeline of a policy, on the models that flags and configuration name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import demur
from demur.cli.options import mention
from demur.errors import InvalidValue


def pipeline_of(
    policy: demur.Policy,
    given: dict[str, Any],
    *,
    config: Path | None,
    trust: Sequence[str],
    settings: dict[str, dict[str, str]],
    seed: int,
    score: str | None,
    extract: str | None,
) -> demur.Pipeline:
    """The pipeline of a policy, on the model that flags and configuration name."""
    from demur.backends import weights
    from demur.pipeline.config import read_config
    from demur.pipeline.from_policy import refuse_unsampled

    refuse_unsampled(policy)  # before anything is asked for that could not help
    sampling = policy.upstream.sampling
    chosen = read_config(config, trust).override(**given)
    if chosen.model is None and given["plugin"] is None and isinstance(sampling.get("model"), str):
        chosen = chosen.override(model=sampling["model"])
        if sampling.get("backend") == "openai" and chosen.embedded:
            raise InvalidValue(
                "this policy was calibrated on a model of an endpoint", "give {base_url}, or set OPENAI_BASE_URL"
            )
        weights.refuse_unnamed(sampling["model"], "this policy", "model", loaded_here=chosen.embedded)
    longest = sampling.get("max_tokens")
    chosen = chosen.override(paths=policy.n_paths, max_tokens=longest if isinstance(longest, int) else None)
    scorers = {name: chosen.scorer_settings(name, settings) for name in _scores_of(policy)}
    backend = chosen.backend(mention)
    how: dict[str, Any] = {"seed": seed, "score": score, "extract": extract, "say": mention}
    pipeline = demur.pipeline_of_policy(policy, backend, scorers=scorers, **how)
    return replace(pipeline, mixed_models=bool(chosen.mixed_models))


def _scores_of(policy: demur.Policy) -> list[str]:
    """The scores that a policy's vote needs."""
    return [name for name in (policy.score, *policy.recipe.other_scores) if name]


def refuse_unused(settings: Mapping[str, object], *policies: demur.Policy) -> None:
    """Raise if scorers are told of that no policy has."""
    from demur.scoring.settings import base_name

    names = list(dict.fromkeys(name for policy in policies for name in _scores_of(policy)))
    if unused := set(settings) - {*names, *map(base_name, names), "perplexity"}:
        told = " and ".join(names) or None
        raise InvalidValue(f"--set {sorted(unused)[0]}.… names no score of this policy; its score is {told}")
