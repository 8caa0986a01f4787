"""`demur.toml`: one description of model, sampling and vote, for every command. Flags override it.

[model]
base_url = "http://localhost:8000/v1"     # without one, a small model runs in this process
model = "Qwen/Qwen3-1.7B"                  # or a GGUF file

[sampling]
paths = 16
temperature = 0.8

[vote]
score = "perplexity"

[score.judge]                              # what `demur score --score judge` asks, and where
base_url = "http://localhost:8001/v1"
model = "google/gemma-3-27b-it"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from demur import models
from demur.backends import Backend, Embedded, OpenAI, Settings
from demur.errors import InvalidValue
from demur.pipeline import Pipeline
from demur.prompts import read_template
from demur.scoring import perplexity
from demur.scoring.families import ScorerSettings, base_name, settings_from

FILE = "demur.toml"
_SECTIONS = {
    "model": ("base_url", "model", "concurrency", "patience"),
    "sampling": ("paths", "temperature", "top_p", "max_tokens", "stop", "prompt", "extract", "seed", "logprobs"),
    "vote": ("score", "normaliser", "weight", "tie_break"),
}
_SMALL_MODEL_TOKENS = 48
_SERVER_TOKENS = 1024


@dataclass(frozen=True)
class Description:
    """What a user said; None where nothing was."""

    base_url: str | None = None
    model: str | None = None
    concurrency: int | None = None
    patience: float | None = None
    paths: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: list[str] | None = None
    prompt: str | None = None
    extract: str | None = None
    seed: int | None = None
    logprobs: bool | None = None
    score: str | None = None
    normaliser: str | None = None
    weight: str | None = None
    tie_break: str | None = None
    scorers: Mapping[str, ScorerSettings] = field(default_factory=dict)
    """Settings of scorers, by name: the sections [score.NAME]."""

    def override(self, **flags: Any) -> Description:
        """This, with every flag that was given in its place."""
        return replace(self, **{name: value for name, value in flags.items() if value is not None})

    def scorer_settings(self, name: str, flags: Mapping[str, Mapping[str, str]] | None = None) -> ScorerSettings:
        """What was said of a scorer; the three perplexities share what was said of the first. Flags override."""
        shared = perplexity.MEAN if name in perplexity.KINDS else name
        asked = base_name(name)  # a run calls the second judge judge-2
        settings = self.scorers.get(name) or self.scorers.get(asked) or self.scorers.get(shared) or ScorerSettings()
        given = {**(flags or {}).get(shared, {}), **(flags or {}).get(asked, {}), **(flags or {}).get(name, {})}
        return settings.override(**asdict(settings_from(given, f"--set {name}")))

    @property
    def embedded(self) -> bool:
        """Whether the model runs in this process: a GGUF file, a packaged model, or nothing else to point at."""
        if self.model is not None and (self.model in models.KNOWN or self.model.endswith(".gguf")):
            return True
        return not (self.base_url or os.environ.get("OPENAI_BASE_URL"))

    def backend(self, say: models.Say = lambda _: None) -> Backend:
        """The model that is meant."""
        if self.concurrency is not None and self.concurrency < 1:
            raise InvalidValue(f"at least one request must be allowed at once, got {self.concurrency}")
        if not self.embedded:
            if self.model is None:
                raise InvalidValue("name the endpoint's model with --model; `demur doctor` lists those it serves")
            return OpenAI(
                self.base_url, self.model, concurrency=32 if self.concurrency is None else self.concurrency,
                patience=300.0 if self.patience is None else self.patience,
            )  # fmt: skip
        if self.model is not None and self.model not in models.KNOWN and not self.model.endswith(".gguf"):
            raise InvalidValue(
                f"the model {self.model!r} needs an endpoint: give --base-url or set OPENAI_BASE_URL; "
                f"in this process run GGUF files and {', '.join(models.KNOWN)}"
            )
        tokens = _SMALL_MODEL_TOKENS if self.max_tokens is None else self.max_tokens
        return Embedded(self.model or models.DEFAULT, batch=min(self.paths or 16, 64), context=512 + tokens, say=say)

    def pipeline(self, backend: Backend) -> Pipeline:
        """The pipeline that is meant, on a backend."""
        default = Settings()
        default_tokens = _SMALL_MODEL_TOKENS if self.embedded else _SERVER_TOKENS
        tokens = default_tokens if self.max_tokens is None else self.max_tokens
        logprobs = default.logprobs if self.logprobs is None else self.logprobs
        return Pipeline(
            backend,
            n_paths=16 if self.paths is None else self.paths,
            score="perplexity" if logprobs else None,
            template=None if self.prompt is None else read_template(self.prompt),
            settings=Settings(
                temperature=default.temperature if self.temperature is None else self.temperature,
                top_p=default.top_p if self.top_p is None else self.top_p,
                max_tokens=tokens,
                stop=tuple(self.stop or ()),
                logprobs=logprobs,
            ),
            extract=self.extract,
            seed=self.seed or 0,
        )


def read_description(file: Path | None) -> Description:
    """A named file, or `demur.toml` where there is one."""
    path = file or Path(FILE)
    if not path.is_file():
        if file is not None:
            raise InvalidValue(f"there is no file {file}")
        return Description()
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidValue(f"{path} cannot be read: {error}") from None
    kinds = {each.name: str(each.type) for each in fields(Description)}
    values: dict[str, Any] = {}
    for section, entries in held.items():
        if section == "score" and isinstance(entries, dict):
            values["scorers"] = {
                name: _scorer(entry, f"{path}: score.{name}", path.parent) for name, entry in entries.items()
            }
            continue
        if section in _SECTIONS and not isinstance(entries, dict):
            raise InvalidValue(f"{path}: {section} must be a section, [{section}]")
        if section not in _SECTIONS:
            raise InvalidValue(f"{path}: unknown section [{section}]; expected {', '.join(_SECTIONS)}, score.NAME")
        for name, value in entries.items():
            if name not in _SECTIONS[section]:
                raise InvalidValue(
                    f"{path}: unknown key {name!r} in [{section}]; expected one of {', '.join(_SECTIONS[section])}"
                )
            if not _fits(value, kinds[name]):
                raise InvalidValue(
                    f"{path}: {section}.{name} must be {kinds[name].removesuffix(' | None')}, got {value!r}"
                )
            values[name] = value
    return Description(**values)


def _scorer(entry: Any, where: str, folder: Path) -> ScorerSettings:
    if not isinstance(entry, dict):
        raise InvalidValue(f"{where} must be a section, [score.NAME]")
    found = settings_from(entry, where)
    beside = folder / str(found.prompt)
    return replace(found, prompt=str(beside)) if found.prompt is not None and beside.is_file() else found


def _fits(value: Any, kind: str) -> bool:
    wanted = kind.removesuffix(" | None")
    if wanted == "list[str]":
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if isinstance(value, bool):
        return wanted == "bool"
    kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}
    return isinstance(value, kinds[wanted])
