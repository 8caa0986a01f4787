"""The pipeline that a run is sampled by, made again from what the run says of itself."""

from __future__ import annotations

from demur.backends.batch import Batch
from demur.backends.protocol import Settings
from demur.errors import InvalidValue, StoreError
from demur.foreign_code import names_function, refuse_function
from demur.pipeline.fitted import Fitted
from demur.pipeline.from_policy import reading_of
from demur.pipeline.pipeline import Pipeline
from demur.prompts import template_of
from demur.store import Run
from demur.typed_toml import typed_fields

_DRAWN = ("temperature", "top_p", "max_tokens", "stop")


def batch_pipeline_of_run(run: Run, *, logprobs: bool = True, extract: str | None = None, reads: bool = True) -> Fitted:
    """The pipeline of a run whose model is asked through files; it describes itself as the run does.

    A function that reads answers is not run because a run names it: the caller names it again, as `extract`, unless
    nothing is to be read.
    """
    sampling, answers = run.description.sampling, run.description.answers
    if run.n_paths is None or not isinstance(sampling.get("prompt"), dict):
        raise StoreError(
            f"the run {run.name!r} holds recorded pools, and does not say how paths are sampled",
            "make one with `demur sample` and {prepare}",
        )
    if sampling.get("backend") != "openai":
        raise StoreError(
            f"the run {run.name!r} is sampled by the backend {sampling.get('backend')!r:.40}, which takes no batches",
            "make one with `demur sample`, {prepare} and the address of an endpoint",
        )
    reading = reading_of(answers)
    if reads and reading is not None and names_function(reading) and reading != extract:
        refuse_function(reading, "what reads answers for this run", "extract")
    where = f"what the run {run.name!r} says of itself"
    drawn = typed_fields(Settings, {part: sampling[part] for part in _DRAWN if part in sampling}, where, only=_DRAWN)
    labels, markers = (tuple(answers.get(name, ())) for name in ("labels", "markers"))
    template, settings = template_of(sampling["prompt"], where), Settings(**drawn, logprobs=logprobs)
    model = Batch(str(sampling.get("model")))
    extractor = reading if reads else None
    pipeline = Pipeline(
        model, run.n_paths, None, template, settings, extractor, labels=labels, markers=markers, stop=run.stopping
    )
    fitted = Fitted(pipeline, str(answers.get("task")), template)
    if reads and (differences := run.description.differences(fitted.description(), "the run", "here")):
        raise InvalidValue(f"the run {run.name!r} cannot be gone on with: {'; '.join(differences)}")
    return fitted
