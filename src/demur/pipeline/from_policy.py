"""The pipeline that a policy was calibrated with, made again from the policy."""

from __future__ import annotations

from collections.abc import Mapping

from demur.backends.protocol import Backend, Settings
from demur.backends.weights import Say
from demur.errors import InvalidValue
from demur.foreign_code import names_function
from demur.pipeline.pipeline import Pipeline
from demur.policy.policy import Policy
from demur.prompts import template_of
from demur.scoring.factory import make_scorer, scorer_of_identity
from demur.scoring.perplexity.recorded import Perplexity
from demur.scoring.protocol import Scorer
from demur.scoring.settings import ScorerSettings
from demur.tasks import task_named


def pipeline_of_policy(
    policy: Policy,
    backend: Backend,
    *,
    seed: int = 0,
    scorers: Mapping[str, ScorerSettings] | None = None,
    score: str | None = None,
    extract: str | None = None,
    say: Say = lambda _: None,
) -> Pipeline:
    """The pipeline of a policy, on a backend that must be the same model.

    `scorers` say where the models of scores are. Functions that a policy names are not run: the caller names them
    again, as `score` or `extract`.
    """
    sampling, answers = policy.upstream.sampling, policy.upstream.answers
    if not isinstance(sampling.get("prompt"), dict):
        raise InvalidValue(
            "this policy was calibrated on a file that does not say how its paths were sampled; calibrate on a run of "
            "`demur sample`"
        )
    template = template_of(sampling["prompt"], "the policy's prompt")
    usual = task_named(answers.get("task")).relation.spec
    reading = None if answers["extract"] == usual else answers["extract"]
    if reading is not None and names_function(reading) and reading != extract:
        raise InvalidValue(
            f"this policy reads answers by the function {reading}; no file may make demur run a function",
            f"name it yourself: {{extract={reading}}}",
        )
    scorer: Scorer | None = None
    name = policy.score
    if name is not None and score is not None:
        scorer = make_scorer(score)
        scorer.name = name
    elif name is not None:
        known, identity = (scorers or {}).get(name, ScorerSettings()), policy.upstream.score.get("scorer") or {}
        scorer = scorer_of_identity(name, identity, known, template=template, say=say)
    drawn = {part: sampling[part] for part in ("temperature", "top_p", "max_tokens")}
    settings = Settings(**drawn, stop=tuple(sampling["stop"]), logprobs=isinstance(scorer, Perplexity))
    return Pipeline(backend, policy.n_paths, scorer, template, settings, reading, seed)
