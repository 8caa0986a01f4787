"""`demur.toml`: one configuration of model, sampling and vote, for every command. Flags override it.

[model]
base_url = "http://localhost:8000/v1"     # or a list; without one, a small model runs in this process
model = "Qwen/Qwen3-1.7B"                  # or a GGUF file

[sampling]
paths = 16
temperature = 0.8

[vote]
score = "perplexity"

[score.judge]                              # what the judge of `demur score` is, and where
base_url = "http://localhost:8001/v1"
model = "google/gemma-3-27b-it"

A file names no function to run, and what it names as an address gets no key, until the user says the same.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from demur.backends import Backend, Embedded, OpenAI, Settings, backend_named, weights
from demur.backends.addresses import file_address
from demur.backends.interchangeable import MEMBER_PATIENCE, Interchangeable, weighted_address
from demur.errors import InvalidValue
from demur.foreign_code import FromFile
from demur.pipeline.pipeline import Pipeline
from demur.prompts import read_template
from demur.scoring.perplexity.recorded import KINDS, MEAN
from demur.scoring.settings import ScorerSettings, settings_for
from demur.stopping import parse_stopping
from demur.typed_toml import read_toml, typed_fields

FILE = "demur.toml"
_SECTIONS = {
    "model": ("base_url", "model", "concurrency", "patience", "answer_seconds", "repeatable", "mixed_models"),
    "sampling": (
        "paths",
        "temperature",
        "top_p",
        "max_tokens",
        "stop",
        "stop_rule",
        "wave",
        "prompt",
        "extract",
        "seed",
        "logprobs",
        "labels",
        "answer_marker",
    ),
    "vote": ("score", "normaliser", "weight", "tie_break"),
}
_SMALL_MODEL_TOKENS = 48
_SERVER_TOKENS = 1024


@dataclass(frozen=True)
class Config:
    """What a user said; None where nothing was."""

    base_url: str | list[str] | None = None
    """Where the model is; several addresses, each with a weight if need be, are asked in turn."""
    model: str | None = None
    concurrency: int | None = None
    patience: float | None = None
    answer_seconds: float | None = None
    repeatable: bool | None = None
    mixed_models: bool | None = None
    paths: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: list[str] | None = None
    """Texts that end a path."""
    stop_rule: str | None = None
    """What says that a question has paths enough: `beta:0.95`."""
    wave: int | None = None
    """After how many paths the rule is looked at, each time."""
    prompt: str | None = None
    extract: str | None = None
    labels: list[str] | None = None
    answer_marker: list[str] | None = None
    seed: int | None = None
    logprobs: bool | None = None
    score: str | None = None
    normaliser: str | None = None
    weight: str | None = None
    tie_break: str | None = None
    plugin: str | None = None
    """A backend that another package brings. A flag alone may name it: no file may make demur run a plugin."""
    plugin_settings: Mapping[str, str] = field(default_factory=dict)
    scorers: Mapping[str, ScorerSettings] = field(default_factory=dict)
    """Settings of scorers, by name: the sections [score.NAME]."""

    def override(self, **flags: Any) -> Config:
        """This, with every flag that was given in its place."""
        return replace(self, **_said(flags))

    def scorer_settings(self, name: str, flags: Mapping[str, Mapping[str, str]] | None = None) -> ScorerSettings:
        """What was said of a scorer; the three perplexities share what was said of the first. Flags override."""
        return settings_for(name, MEAN if name in KINDS else name, self.scorers, flags)

    @property
    def embedded(self) -> bool:
        """Whether the model runs in this process: a GGUF file, a packaged model, or nothing else to point at."""
        if self.plugin is not None:
            return False
        if self.model is not None and weights.is_embedded(self.model):
            return True
        return not (self.base_url or os.environ.get("OPENAI_BASE_URL"))

    @property
    def _tokens(self) -> int:
        usual = _SMALL_MODEL_TOKENS if self.embedded else _SERVER_TOKENS
        return usual if self.max_tokens is None else self.max_tokens

    def backend(self, say: weights.Say = lambda _: None) -> Backend:
        """The model that is meant."""
        if self.plugin is not None:
            return backend_named(self.plugin, **self.plugin_settings, **_said({"model": self.model}))
        if self.concurrency is not None and self.concurrency < 1:
            raise InvalidValue(f"at least one request must be allowed at once, got {self.concurrency}")
        if self.answer_seconds is not None and not self.answer_seconds > 0:
            raise InvalidValue(f"an answer takes more than no time, got answer_seconds = {self.answer_seconds}")
        if not self.embedded:
            if self.model is None:
                raise InvalidValue(
                    "the endpoint's model is not named", "name it as {model}; `demur doctor` lists those it serves"
                )
            said = _said({name: getattr(self, name) for name in ("concurrency", "patience", "answer_seconds")})
            return self._served(self.model, said, say)
        if self.model is not None and not weights.is_embedded(self.model):
            raise InvalidValue(
                f"the model {self.model!r} needs an endpoint",
                "give {base_url} or set OPENAI_BASE_URL; in this process run GGUF files and "
                f"{', '.join(weights.KNOWN)}",
            )
        batch = min(self.paths or 16, 64)
        size, repeatable = {"batch": batch, "context": 512 + self._tokens}, bool(self.repeatable)
        return Embedded(self.model or weights.DEFAULT, **size, repeatable=repeatable, say=say)

    def _served(self, model: str, said: dict[str, Any], say: weights.Say) -> Backend:
        """The model on the endpoint that is named, or on several."""
        named = [self.base_url] if self.base_url is None or isinstance(self.base_url, str) else self.base_url
        places = [(1.0, None) if one is None else weighted_address(one) for one in named]
        if len(places) == 1:
            served = OpenAI(places[0][1], model, **said)
            say(f"the model is asked at {served.endpoint.told}")
            return served
        longest = MEMBER_PATIENCE if self.patience is None else min(self.patience, MEMBER_PATIENCE)
        members = [OpenAI(address, model, **{**said, "patience": longest}) for _, address in places]
        how: dict[str, Any] = {"patience": self.patience, "mixed_models": bool(self.mixed_models)}
        spread = Interchangeable(members, [weight for weight, _ in places], **how)
        say(f"the model is asked at {spread.told}")
        return spread

    def pipeline(self, backend: Backend) -> Pipeline:
        """The pipeline that is meant, on a backend."""
        said = _said({name: getattr(self, name) for name in ("temperature", "top_p", "logprobs")})
        settings = Settings(**said, max_tokens=self._tokens, stop=tuple(self.stop or ()))
        n_paths, score = 16 if self.paths is None else self.paths, "perplexity" if settings.logprobs else None
        template = None if self.prompt is None else read_template(self.prompt)
        said_of_answers = (tuple(self.labels or ()), tuple(self.answer_marker or ()))
        if self.wave is not None and self.stop_rule is None:
            raise InvalidValue(f"waves of {self.wave} are for a stopping rule, and none is named", "name one as {stop}")
        stop = None if self.stop_rule is None else parse_stopping(self.stop_rule, self.wave)
        drawn_by = (settings, self.extract, self.seed or 0, *said_of_answers)
        ended_by: dict[str, Any] = {"stop": stop, "mixed_models": bool(self.mixed_models)}
        return Pipeline(backend, n_paths, score, template, *drawn_by, **ended_by)


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody said something of."""
    return {name: value for name, value in values.items() if value is not None}


def read_config(file: Path | None, trust_address: Collection[str] = ()) -> Config:
    """A named file, or `demur.toml` where there is one; `trust_address` are those of its addresses that get a key."""
    path = file or Path(FILE)
    if not path.is_file():
        if file is not None:
            raise InvalidValue(f"there is no file {file}")
        return Config()
    values: dict[str, Any] = {}
    for section, entries in read_toml(path, "the configuration").items():
        if section == "score" and isinstance(entries, dict):
            values["scorers"] = {
                name: _beside(ScorerSettings.of_file(entry, f"{path}: score.{name}", trust_address), path.parent)
                for name, entry in entries.items()
            }
        elif section in _SECTIONS:
            values |= typed_fields(Config, entries, f"{path}: {section}", only=_SECTIONS[section])
        else:
            raise InvalidValue(f"{path}: unknown section [{section}]; expected {', '.join(_SECTIONS)}, score.NAME")
    if "base_url" in values:
        values["base_url"] = _from_file(values["base_url"], trust_address)
    if "extract" in values:
        values["extract"] = FromFile(values["extract"], "extract")
    return Config(**values)


def _from_file(said: str | list[str], trusted: Collection[str]) -> str | list[str]:
    """One address or several that a file names: marked as such, unless the user trusts them."""
    return [_marked(one, trusted) for one in said] if isinstance(said, list) else _marked(said, trusted)


def _marked(entry: str, trusted: Collection[str]) -> str:
    named = file_address(weighted_address(entry)[1], trusted)
    return FromFile(entry, named.repeat) if isinstance(named, FromFile) else entry


def _beside(settings: ScorerSettings, folder: Path) -> ScorerSettings:
    """Settings whose prompt may be a file beside the configuration."""
    beside = folder / str(settings.prompt)
    return replace(settings, prompt=str(beside)) if settings.prompt is not None and beside.is_file() else settings
