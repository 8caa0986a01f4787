"""The pipeline that a policy was calibrated with, made again from the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from demur.answers.relations import RELATIONS
from demur.backends.protocol import Backend, Settings
from demur.backends.weights import Say
from demur.errors import InvalidValue
from demur.foreign_code import names_function, refuse_function
from demur.pipeline.pipeline import Pipeline
from demur.policy.policy import Policy
from demur.prompts import template_of
from demur.scoring.factory import make_scorer, scorer_of_identity
from demur.scoring.perplexity.recorded import Perplexity
from demur.scoring.protocol import Scorer
from demur.scoring.settings import ScorerSettings
from demur.tasks import task_named
from demur.typed_toml import typed_fields


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
    refuse_unsampled(policy)
    sampling, answers = policy.upstream.sampling, policy.upstream.answers
    template = template_of(sampling["prompt"], "the policy's prompt")
    reading = reading_of(answers)
    if reading is not None and names_function(reading) and reading != extract:
        refuse_function(reading, "what reads answers for this policy", "extract")
    scorer: Scorer | None = None
    name = policy.score

    def made_again(name: str, identity: Any) -> Scorer:
        known = (scorers or {}).get(name, ScorerSettings())
        identity = identity if isinstance(identity, Mapping) else {}
        return scorer_of_identity(name, identity, known, template=template, say=say)

    if name is not None and score is not None:
        scorer = make_scorer(score)
        scorer.name = name
    elif name is not None:
        scorer = made_again(name, policy.upstream.score.get("scorer"))
    others = policy.upstream.score.get("others", {})
    also = tuple(made_again(other, others.get(other)) for other in policy.recipe.other_scores)
    parts = ("temperature", "top_p", "max_tokens", "stop")
    said = {part: sampling[part] for part in parts if part in sampling}
    drawn = typed_fields(Settings, said, "the policy's sampling", only=parts)
    settings = Settings(**drawn, logprobs=any(isinstance(one, Perplexity) for one in (scorer, *also)))
    labels, markers = (tuple(answers.get(name, ())) for name in ("labels", "markers"))
    drawn_by = (settings, reading, seed, labels, markers, also, policy.stopping)
    return Pipeline(backend, policy.n_paths, scorer, template, *drawn_by)


def refuse_unsampled(policy: Policy) -> None:
    """Raise where nobody knows how the paths of a policy's calibration questions were made, or their answers read."""
    if not isinstance(policy.upstream.sampling.get("prompt"), dict):
        raise InvalidValue(
            "this policy was calibrated in Python, or on a file that does not say how its paths were sampled",
            "calibrate on a run of `demur sample`",
        )
    if policy.upstream.answers.get("task") is None:
        raise InvalidValue(
            "this policy was calibrated on a file that does not say how answers were read off texts",
            "calibrate on the run, or on a copy that `demur answers` writes of it now",
        )


def reading_of(answers: Mapping[str, Any]) -> str | None:
    """What reads answers in place of the task's own rules; None where those do."""
    usual, told = task_named(answers.get("task")).relation, str(answers.get("extract"))
    name, at, version = told.partition("@")
    if at and name in RELATIONS and version.isdigit() and told != usual.spec:
        raise InvalidValue(
            f"the answers of this policy were read by {told}, and this demur reads them by {usual.spec}",
            "sample or import its questions again, and calibrate again",
        )
    return None if told == usual.spec else told
