"""A scorer by its name and its settings: which family it is, and where its model runs.

The model is embedded (a GGUF file, or one that ships as a package), on a server (an address is given), or in this
process by transformers (a name on the hub, or a folder). Addresses and keys come from NAME_BASE_URL and NAME_API_KEY.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from weakref import WeakValueDictionary

from demur import models
from demur.backends.embedded import Embedded
from demur.backends.endpoint import Endpoint
from demur.errors import InvalidValue
from demur.functions import names_function
from demur.prompts import Template, read_template, template_of
from demur.scoring import perplexity
from demur.scoring.judge import EmbeddedJudge
from demur.scoring.judge_prompts import describe, judge_prompt
from demur.scoring.judge_server import CHAT, SCORING, TOKEN_IDS, ChatJudge, ScoringJudge
from demur.scoring.judge_server import ROUTES as JUDGE_ROUTES
from demur.scoring.own import own_score
from demur.scoring.perplexity import Perplexity
from demur.scoring.protocol import Scorer
from demur.scoring.rescoring import EmbeddedRescored
from demur.scoring.rescoring_server import ROUTES as RESCORING_ROUTES
from demur.scoring.rescoring_server import ServerRescored
from demur.scoring.reward import BUILT_IN, ServerReward
from demur.scoring.reward import ROUTES as REWARD_ROUTES
from demur.scoring.self_consistency import SelfConsistency

JUDGE, REWARD, SELF_CONSISTENCY = "judge", "reward", "self-consistency"
KINDS = (*perplexity.KINDS, JUDGE, REWARD, SELF_CONSISTENCY)
_SERVER, _EMBEDDED, _HF = "server", "embedded", "transformers"
_CONTEXT = 2048
_LOADED: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
"""Models in this process, so that scorers of one model share it."""


@dataclass(frozen=True)
class ScorerSettings:
    """What a user said of one scorer; None where nothing was."""

    kind: str | None = None
    """Its family, where its name does not say."""
    model: str | None = None
    base_url: str | None = None
    route: str | None = None
    prompt: Any = None
    """A TOML file, or a prompt as an identity has it."""
    revision: str | None = None
    device: str | None = None
    batch: int | None = None
    concurrency: int | None = None
    patience: float | None = None
    too_long: str | None = None
    raw: bool | None = None
    """Rewards that lie between 0 and 1 are what the model gives, not sigmoids."""

    def override(self, **given: Any) -> ScorerSettings:
        """This, with everything that was given in its place."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


def settings_from(held: Mapping[str, Any], where: str) -> ScorerSettings:
    """Settings from a section of a file or from flags, where all is text; unknown ones are refused."""
    kinds = {each.name: str(each.type).removesuffix(" | None") for each in fields(ScorerSettings)}
    found: dict[str, Any] = {}
    for name, value in held.items():
        if name not in kinds:
            raise InvalidValue(f"{where}: unknown setting {name!r}; expected one of {', '.join(kinds)}")
        found[name] = _as(kinds[name], value, f"{where}.{name}")
    return ScorerSettings(**found)


def make_scorer(
    name: str,
    settings: ScorerSettings = ScorerSettings(),  # noqa: B008 - frozen
    *,
    template: Template | None = None,
    say: models.Say = lambda _: None,
) -> Scorer:
    """The scorer of that name. `template` is the prompt that a run's paths were sampled with, where it is known."""
    if names_function(name):
        _refuse_settings(name, settings, ())
        return own_score(name)
    kind = settings.kind or base_name(name)
    if kind not in KINDS:
        raise InvalidValue(
            f"there is no score {kind!r}; expected one of {', '.join(KINDS)}, or package.module:function"
        )
    scorer = _Maker(name, kind, settings, template, say).scorer()
    scorer.name = name
    return scorer


def scorer_of_identity(
    name: str, identity: Mapping[str, Any], settings: ScorerSettings, *, template: Template | None, say: models.Say
) -> Scorer:
    """The scorer that a policy was calibrated with; `settings` add what an identity leaves out: addresses, files."""
    kind = identity.get("scorer")
    if kind == "own":
        raise InvalidValue(
            f"this policy's score is the function {identity.get('function')}; no file may make demur run a function: "
            f"name it yourself with --score {identity.get('function')}"
        )
    if kind not in KINDS:
        raise InvalidValue(
            f"this policy's score {name!r} was imported, so new paths cannot be scored; calibrate on one of demur's"
        )
    if kind == perplexity.STD and identity.get("sign") == -1:
        kind = perplexity.STD_NEGATED
    routes = {"generative_scoring": SCORING, "token_ids": TOKEN_IDS}
    route = str(identity.get("route", ""))
    known = (*JUDGE_ROUTES, *REWARD_ROUTES, *RESCORING_ROUTES)
    on_server = identity.get("backend") == _SERVER
    if identity.get("backend") == _HF and not settings.model:
        raise InvalidValue(
            f"the policy's score {name!r} comes from the model {identity.get('model')}; no file may make demur load "
            f"a model: name it yourself with --set {name}.model="
        )
    prompt = identity.get("prompt")
    if not isinstance(prompt, dict) and prompt not in (None, BUILT_IN, describe(None)):
        raise InvalidValue(f"the policy's score {name!r} has a prompt that this demur does not know: {prompt!r:.40}")
    asked = ScorerSettings(
        kind=kind, model=identity.get("model"), prompt=prompt, revision=identity.get("revision"),
        too_long=identity.get("too_long"),
        route=routes.get(route, route if route in known else CHAT if kind == JUDGE else None) if on_server else None,
    )  # fmt: skip
    if on_server and not settings.base_url:
        variable = f"{_prefix(name, str(kind))}_BASE_URL"
        if not os.environ.get(variable):
            raise InvalidValue(f"the policy's score {name!r} comes from a server; set {variable}")
    given = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return make_scorer(name, asked.override(**given), template=template, say=say)


def base_name(name: str) -> str:
    """The name that a scorer was asked for by, where a run has numbered it: judge for judge-2."""
    return re.sub(r"-\d+$", "", name)


def _prefix(name: str, kind: str) -> str:
    """What the environment variables of a scorer begin with; the three perplexities share one."""
    asked = base_name(name)
    return re.sub(r"\W", "_", perplexity.MEAN if kind in perplexity.KINDS and asked == kind else asked).upper()


def _refuse_settings(name: str, settings: ScorerSettings, but: tuple[str, ...]) -> None:
    """Raise for settings that would do nothing."""
    for each in fields(settings):
        if each.name not in (*but, "kind") and getattr(settings, each.name) is not None:
            raise InvalidValue(f"the setting {each.name!r} does nothing for the score {name!r}")


class _Maker:
    """Puts a scorer together from what was said of it."""

    def __init__(
        self, name: str, kind: str, settings: ScorerSettings, template: Template | None, say: models.Say
    ) -> None:
        self.name, self.kind, self.settings, self.template, self.say = name, kind, settings, template, say
        self.prefix = _prefix(name, kind)
        self.model = settings.model or os.environ.get(f"{self.prefix}_MODEL")
        self.base_url = settings.base_url or os.environ.get(f"{self.prefix}_BASE_URL")

    def scorer(self) -> Scorer:
        if self.kind == SELF_CONSISTENCY:
            _refuse_settings(self.name, self.settings, ())
            return SelfConsistency()
        if self._place != _SERVER and self._place is not None:
            for idle in ("route", "base_url"):
                if getattr(self.settings, idle) is not None:
                    raise InvalidValue(f"{self.model} runs in this process, so {self.name}.{idle} does nothing")
        if self.kind in perplexity.KINDS:
            return Perplexity(self.kind) if self._place is None else self._rescored()
        if self._place is None:
            raise InvalidValue(
                f"no model is named for the score {self.name!r}; set {self.prefix}_BASE_URL and {self.prefix}_MODEL "
                f"for a server, or --set {self.name}.model= a GGUF file, {models.DEFAULT} or, with demur[hf], a "
                "model on the hub or in a folder"
            )
        return self._judge() if self.kind == JUDGE else self._reward()

    @property
    def _place(self) -> str | None:
        """Where the model runs."""
        if self.model is not None and (self.model in models.KNOWN or self.model.endswith(".gguf")):
            return _EMBEDDED
        if self.base_url:
            return _SERVER
        return None if self.model is None else _HF

    def _judge(self) -> Scorer:
        prompt, too_long = judge_prompt(self.settings.prompt), self.settings.too_long or "cut"
        if self._place == _EMBEDDED:
            return EmbeddedJudge(self._embedded(), prompt, too_long=too_long)
        if self._place == _HF:
            from demur.scoring.hf import HfJudge

            return HfJudge(self._hf("causal"), prompt, too_long=too_long)
        route = self._route(JUDGE_ROUTES)
        endpoint, model, concurrency = self._endpoint()
        if route == SCORING:
            return ScoringJudge(endpoint, model, prompt, concurrency=concurrency, too_long=too_long)
        return ChatJudge(endpoint, model, prompt, route=route, concurrency=concurrency, too_long=too_long)

    def _reward(self) -> Scorer:
        template, too_long = self._own_template(None), self.settings.too_long or "cut"
        if self._place == _EMBEDDED:
            raise InvalidValue("a reward model runs on a server or by transformers; GGUF files are judges here")
        if self._place == _HF:
            from demur.scoring.hf import HfReward

            return HfReward(self._hf("classifier"), template, too_long=too_long)
        route = self._route(REWARD_ROUTES)
        endpoint, model, concurrency = self._endpoint()
        return ServerReward(
            endpoint, model, template, route=route, concurrency=concurrency, raw=bool(self.settings.raw),
            too_long=too_long,
        )  # fmt: skip

    def _rescored(self) -> Scorer:
        template, too_long = self._own_template(self.template), self.settings.too_long or "refuse"
        if template is None:
            raise InvalidValue(
                "this run does not say which prompt its paths were sampled with, and perplexity is that of a path "
                f"behind its prompt; name it: --set {self.name}.prompt=NAME or a TOML file"
            )
        if self._place == _EMBEDDED:
            return EmbeddedRescored(self._embedded(), template, self.kind, too_long=too_long)
        if self._place == _HF:
            from demur.scoring.hf import HfRescored

            return HfRescored(self._hf("causal"), template, self.kind, too_long=too_long)
        route = self._route(RESCORING_ROUTES)
        endpoint, model, concurrency = self._endpoint()
        return ServerRescored(
            endpoint, model, template, self.kind, concurrency=concurrency, route=route, too_long=too_long
        )

    def _own_template(self, otherwise: Template | None) -> Template | None:
        held = self.settings.prompt
        if held is None or held == BUILT_IN:
            return otherwise
        return template_of(held, f"the prompt of {self.name}") if isinstance(held, dict) else read_template(str(held))

    def _endpoint(self) -> tuple[Endpoint, str, int]:
        if self.model is None:
            raise InvalidValue(f"name the model of {self.prefix}_BASE_URL with {self.prefix}_MODEL")
        concurrency = self.settings.concurrency or 32
        patience = 300.0 if self.settings.patience is None else self.settings.patience
        endpoint = Endpoint(
            self.base_url, self.prefix, concurrency=concurrency, patience=patience, serves=f"the model ({self.model})"
        )
        return endpoint, self.model, concurrency

    def _embedded(self) -> Embedded:
        made = _LOADED.get((self.model, _EMBEDDED)) or Embedded(
            self.model or models.DEFAULT, batch=1, context=_CONTEXT, say=self.say
        )
        _LOADED[self.model, _EMBEDDED] = made
        return made

    def _hf(self, kind: str) -> Any:
        from demur.scoring.hf_model import HfModel

        assert self.model is not None
        given = self.settings
        key = (self.model, kind, given.revision, given.device, given.batch)
        made = _LOADED.get(key) or HfModel(
            self.model, kind, revision=given.revision, device=given.device, batch=given.batch or 16
        )
        _LOADED[key] = made
        return made

    def _route(self, known: tuple[str, ...]) -> str | None:
        route = self.settings.route
        if route is not None and route not in known:
            raise InvalidValue(f"unknown route {route!r}; expected one of {', '.join(known)}")
        return route


def _as(kind: str, value: Any, where: str) -> Any:
    """A setting as it must be: from a flag it comes as text."""
    try:
        if kind == "bool" and isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if kind in ("int", "float") and not isinstance(value, bool):
            number = (int if kind == "int" else float)(value)
            if number > 0 or (kind == "float" and number == 0):
                return number
        if kind == "Any" or isinstance(value, {"str": str, "bool": bool}.get(kind, ())):
            return value
    except (TypeError, ValueError):
        pass
    wanted = {"int": "a whole number > 0", "float": "a number >= 0", "bool": "true or false", "str": "a text"}[kind]
    raise InvalidValue(f"{where} must be {wanted}, got {value!r:.40}")
