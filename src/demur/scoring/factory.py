"""A scorer by its name and its settings: which family it is, and where its model runs.

The model is embedded (a GGUF file, or one that ships as a package), on a server (an address is given), or in this
process by transformers (a name on the hub, or a folder). Addresses and keys come from NAME_BASE_URL and NAME_API_KEY.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from demur.backends import weights
from demur.backends.embedded import Embedded
from demur.backends.endpoint import Endpoint
from demur.backends.protocol import ReportedModels
from demur.errors import InvalidValue, PluginError
from demur.foreign_code import SCORERS, Plugin, listed, names_function, plugin_named, summary
from demur.prompts import Template, judge_prompt, read_template, template_of
from demur.prompts.judging import prompt_identity
from demur.scoring.judge.embedded import EmbeddedJudge
from demur.scoring.judge.server import CHAT, SCORING, ChatJudge, ScoringJudge
from demur.scoring.judge.server import ROUTES as JUDGE_ROUTES
from demur.scoring.judge.transformers import TransformersJudge
from demur.scoring.own import OwnScore, own_score
from demur.scoring.perplexity import recorded as perplexity
from demur.scoring.perplexity.embedded import EmbeddedRescored
from demur.scoring.perplexity.recorded import Perplexity
from demur.scoring.perplexity.server import ROUTES as RESCORING_ROUTES
from demur.scoring.perplexity.server import ServerRescored
from demur.scoring.perplexity.transformers import TransformersRescored
from demur.scoring.protocol import Scorer
from demur.scoring.reward.reward import BUILT_IN
from demur.scoring.reward.server import ROUTES as REWARD_ROUTES
from demur.scoring.reward.server import ServerReward
from demur.scoring.reward.transformers import TransformersReward
from demur.scoring.self_consistency import SelfConsistency
from demur.scoring.settings import ScorerSettings, base_name
from demur.scoring.transformers_model import CAUSAL, CLASSIFIER, TransformersModel

JUDGE, REWARD, SELF_CONSISTENCY = "judge", "reward", "self-consistency"
KINDS = (*perplexity.KINDS, JUDGE, REWARD, SELF_CONSISTENCY)
_SERVER, _EMBEDDED, _TRANSFORMERS = "server", "embedded", "transformers"
_CONTEXT = 2048
_LOADED: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
"""Models in this process, so that scorers of one model share it."""


def make_scorer(
    name: str,
    settings: ScorerSettings = ScorerSettings(),  # noqa: B008 - frozen
    *,
    template: Template | None = None,
    say: weights.Say = lambda _: None,
) -> Scorer:
    """The scorer of that name. `template` is the prompt that a run's paths were sampled with, where it is known."""
    if names_function(name):
        _refuse_settings(name, settings)
        return own_score(name)
    kind = settings.kind or base_name(name)
    if kind not in KINDS:
        plugin = None if settings.kind else plugin_named(SCORERS, name)
        if plugin is not None:
            _refuse_settings(name, settings)
            return _of_plugin(plugin)
        known = f"{', '.join(KINDS)}, or package.module:function{listed(SCORERS)}"
        raise InvalidValue(f"there is no score {kind!r}; expected one of {known}")
    scorer = ScorerFactory(name, kind, settings, template, say).scorer()
    scorer.name = name
    return scorer


def _of_plugin(plugin: Plugin) -> Scorer:
    """The scorer that a package brings: one that is made, a class of such, or a function of a pool."""
    loaded = plugin.load()
    if isinstance(loaded, type):
        try:
            loaded = loaded()
        except (Exception, SystemExit) as error:  # the code of others
            raise PluginError(plugin.told(f"cannot be made: {summary(error)}"), "mend or uninstall it") from error
    if isinstance(loaded, Scorer):
        loaded.name = plugin.name
        return loaded
    if not callable(loaded):
        raise PluginError(plugin.told(f"is neither a scorer nor a function of a pool, but {loaded!r:.60}"))
    return OwnScore(loaded, plugin.name)


def scorer_of_identity(
    name: str, identity: Mapping[str, Any], settings: ScorerSettings, *, template: Template | None, say: weights.Say
) -> Scorer:
    """The scorer that a policy was calibrated with; `settings` add what an identity leaves out: addresses, files."""
    kind = identity.get("scorer")
    if kind == "own":
        raise InvalidValue(
            f"this policy's score is the function {identity.get('function')}; no file may make demur run a function",
            f"name it yourself: {{score={identity.get('function')}}}",
        )
    if kind not in KINDS and (plugin := plugin_named(SCORERS, name)) is not None:
        raise InvalidValue(
            plugin.told("is this policy's score, and no file may make demur run a plugin"),
            f"name it yourself: {{score={name}}}",
        )
    if kind not in KINDS:
        raise InvalidValue(
            f"this policy's score {name!r} was imported, so new paths cannot be scored; calibrate on one of demur's"
        )
    if kind == perplexity.STD and identity.get("sign") == -1:
        kind = perplexity.STD_NEGATED
    routes = {route: route for route in (*JUDGE_ROUTES, *REWARD_ROUTES, *RESCORING_ROUTES)}
    routes["generative_scoring"] = SCORING
    route = routes.get(str(identity.get("route", "")), CHAT if kind == JUDGE else None)
    on_server, model = identity.get("backend") == _SERVER, identity.get("model")
    if model is not None and not settings.model:
        loaded_here = not on_server or weights.is_embedded(str(model))
        weights.refuse_unnamed(str(model), f"the policy's score {name!r}", f"{name}.model", loaded_here=loaded_here)
    prompt = identity.get("prompt")
    if not isinstance(prompt, dict) and prompt not in (None, BUILT_IN, prompt_identity(None)):
        raise InvalidValue(f"the policy's score {name!r} has a prompt that this demur does not know: {prompt!r:.40}")
    # No revision: it would choose among weights that others may have put beside those of the user's model.
    same: dict[str, Any] = {
        part: None if identity.get(part) is None else str(identity[part]) for part in ("model", "too_long")
    }
    asked = ScorerSettings(kind=kind, prompt=prompt, route=route if on_server else None, **same)
    if on_server and not settings.base_url:
        variable = f"{_prefix(name, str(kind))}_BASE_URL"
        if not os.environ.get(variable):
            raise InvalidValue(f"the policy's score {name!r} comes from a server; set {variable}")
    return make_scorer(name, settings.over(asked), template=template, say=say)


def _prefix(name: str, kind: str) -> str:
    """What the environment variables of a scorer begin with; the three perplexities share one."""
    asked = base_name(name)
    return re.sub(r"\W", "_", perplexity.MEAN if kind in perplexity.KINDS and asked == kind else asked).upper()


def _refuse_settings(name: str, settings: ScorerSettings) -> None:
    for idle in settings.said():
        if idle != "kind":
            raise InvalidValue(f"the setting {idle!r} does nothing for the score {name!r}")


@dataclass(frozen=True)
class _Family:
    """The scorers of one family, by where the model runs, and what they do with paths that are too long."""

    embedded: Callable[..., Scorer] | None
    transformers: Callable[..., Scorer]
    server: Callable[..., Scorer]
    routes: tuple[str, ...]
    too_long: str
    model_kind: str = CAUSAL


_JUDGES = _Family(EmbeddedJudge, TransformersJudge, ChatJudge, JUDGE_ROUTES, "cut")
_REWARDS = _Family(None, TransformersReward, ServerReward, REWARD_ROUTES, "cut", CLASSIFIER)
_RESCORED = _Family(EmbeddedRescored, TransformersRescored, ServerRescored, RESCORING_ROUTES, "refuse")


class ScorerFactory:
    """Puts a scorer together from what was said of it."""

    def __init__(
        self, name: str, kind: str, settings: ScorerSettings, template: Template | None, say: weights.Say
    ) -> None:
        self.name, self.kind, self.settings, self.template, self.say = name, kind, settings, template, say
        self.prefix = _prefix(name, kind)
        self.model = settings.model or os.environ.get(f"{self.prefix}_MODEL")
        self.base_url = settings.base_url or os.environ.get(f"{self.prefix}_BASE_URL")

    def scorer(self) -> Scorer:
        if self.kind == SELF_CONSISTENCY:
            _refuse_settings(self.name, self.settings)
            return SelfConsistency()
        if self._place in (_EMBEDDED, _TRANSFORMERS):
            for idle in ("route", "base_url"):
                if getattr(self.settings, idle) is not None:
                    raise InvalidValue(f"{self.model} runs in this process, so {self.name}.{idle} does nothing")
        if self._place is None and self.kind in perplexity.KINDS:
            return Perplexity(self.kind)
        if self._place is None:
            raise InvalidValue(
                f"no model is named for the score {self.name!r}",
                f"set {self.prefix}_BASE_URL and {self.prefix}_MODEL for a server, or {{{self.name}.model=NAME}}: a "
                f"GGUF file, {weights.DEFAULT} or, with transformers, a model on the hub or in a folder",
            )
        if self.kind == JUDGE:
            return self._made(_JUDGES, judge_prompt(self.settings.prompt))
        if self.kind == REWARD:
            return self._made(_REWARDS, self._own_template(None))
        template = self._own_template(self.template)
        if template is None:
            raise InvalidValue(
                "this run does not say which prompt its paths were sampled with, and perplexity is that of a path "
                "behind its prompt",
                f"name it, or a TOML file: {{{self.name}.prompt=NAME}}",
            )
        return self._made(_RESCORED, template, self.kind)

    @property
    def _place(self) -> str | None:
        if self.model is not None and weights.is_embedded(self.model):
            return _EMBEDDED
        if self.base_url:
            return _SERVER
        return None if self.model is None else _TRANSFORMERS

    def _made(self, family: _Family, *asked: Any) -> Scorer:
        """The family's scorer for the place where the model runs; `asked` is what it is asked with."""
        how: dict[str, Any] = {"too_long": self.settings.too_long or family.too_long}
        if self._place == _TRANSFORMERS:
            return family.transformers(self._transformers(family.model_kind), *asked, **how)
        if self._place == _EMBEDDED:
            if family.embedded is None:
                raise InvalidValue("a reward model runs on a server or by transformers; GGUF files are judges here")
            return family.embedded(self._embedded(), *asked, **how)
        route = self.settings.route
        if route is not None and route not in family.routes:
            raise InvalidValue(f"unknown route {route!r}; expected one of {', '.join(family.routes)}")
        if self.model is None:
            raise InvalidValue(f"name the model of {self.prefix}_BASE_URL with {self.prefix}_MODEL")
        concurrency = self.settings.concurrency or 32
        endpoint = Endpoint(
            self.base_url,
            self.prefix,
            concurrency=concurrency,
            patience=self.settings.patience,
            answer_seconds=self.settings.answer_seconds,
            serves=f"the model ({self.model})",
        )
        option = f"{base_name(self.name)}.mixed_models=true"
        endpoint.reported = ReportedModels(mixed=bool(self.settings.mixed_models), option=option)
        self.say(f"the score {self.name} is asked at {endpoint.told}")
        how |= {"route": route, "concurrency": concurrency}
        if self.kind == REWARD:
            how["raw"] = bool(self.settings.raw)
        return (ScoringJudge if route == SCORING else family.server)(endpoint, self.model, *asked, **how)

    def _own_template(self, otherwise: Template | None) -> Template | None:
        prompt = self.settings.prompt
        if prompt is None or prompt == BUILT_IN:
            return otherwise
        described = isinstance(prompt, dict)
        return template_of(prompt, f"the prompt of {self.name}") if described else read_template(str(prompt))

    def _embedded(self) -> Embedded:
        model, key = self.model or weights.DEFAULT, (self.model, _EMBEDDED)
        made = _LOADED.get(key) or Embedded(model, batch=1, context=_CONTEXT, say=self.say)
        _LOADED[key] = made
        return made

    def _transformers(self, kind: str) -> TransformersModel:
        said = self.settings
        name, key = str(self.model), (self.model, kind, said.revision, said.device, said.batch)
        made = _LOADED.get(key) or TransformersModel(
            name, kind, revision=said.revision, device=said.device, batch=said.batch or 16
        )
        _LOADED[key] = made
        return made
