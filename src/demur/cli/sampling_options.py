"""Options of the verbs that talk to a model."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

import demur
from demur.cli.options import Text, option
from demur.cli.options import Wave as Wave
from demur.errors import InvalidValue

_ENDPOINT = (
    "OpenAI-compatible endpoint, or set OPENAI_BASE_URL. Without one, a small model runs in this process. "
    "Repeatable, for several that serve the same model: `2:URL` gets twice as much as the others."
)
BaseUrl = Annotated[list[str] | None, option("--base-url", "URL", _ENDPOINT)]
_TRUSTED = "An address that a file names and that may get your key; repeatable. One given as a flag needs none."
TrustAddress = Annotated[list[str] | None, option("--trust-address", "URL", _TRUSTED)]
Model = Annotated[Text, option("--model", "NAME", "Model of the endpoint, or a GGUF file to run here.")]
_BACKEND = "Sample by a backend that an installed package brings; `demur doctor --plugins` lists them."
BackendName = Annotated[Text, option("--backend", "NAME", _BACKEND)]
BackendSet = Annotated[list[str] | None, option("--backend-set", "KEY=VALUE", "A setting of that backend; repeatable.")]
Paths = Annotated[int | None, typer.Option("--paths", "-m", help="Paths per problem.  [default: 16]")]
Temperature = Annotated[float | None, typer.Option("--temperature", help="[default: 0.8]")]
TopP = Annotated[float | None, typer.Option("--top-p", help="Cut the distribution's tail.  [default: 1, nothing cut]")]
_LONGEST = "Longest path.  [default: 1024; 48 for a model in this process]"
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", help=_LONGEST)]
StopText = Annotated[list[str] | None, option("--stop-text", "TEXT", "End a path at this text; repeatable.")]
PromptName = Annotated[Text, option("--prompt", "NAME|FILE", "Prompt by name, or a TOML file.  [default: the task's]")]
_READ = "Read texts by package.module:function, or a regular expression."
Extract = Annotated[Text, option("--extract", "SPEC", _READ)]
_MARKER = "Words behind which texts have their answer, where the prompt asks for them; repeatable."
AnswerMarker = Annotated[list[str] | None, option("--answer-marker", "TEXT", _MARKER)]
Concurrency = Annotated[int | None, typer.Option("--concurrency", help="Most requests at once.  [default: 32]")]
_AWAY = "How long nothing may come from the endpoint.  [default: 300, of a service 30; 5 where nothing ever answered]"
Patience = Annotated[float | None, option("--patience", "SECONDS", _AWAY)]
_WHOLE = "How long one answer of the endpoint may take in all.  [default: 600, and 0.1 for each of --max-tokens]"
AnswerSeconds = Annotated[float | None, option("--answer-seconds", "SECONDS", _WHOLE)]
_REPEATABLE = "In this process: the same paths whatever was sampled before, at up to twice the cost."
Repeatable = Annotated[bool | None, typer.Option("--repeatable", help=_REPEATABLE)]
_MIXED = "Go on when replies name several models, and note the share of each. Without it such replies are refused."
MixedModels = Annotated[bool | None, typer.Option("--mixed-models", help=_MIXED)]
_LOGPROBS = "Record token log-probabilities.  [default: yes]"
Logprobs = Annotated[bool | None, typer.Option("--logprobs/--no-logprobs", help=_LOGPROBS)]
FirstWave = Annotated[int | None, typer.Option("--first-wave", help="Paths of the first wave.  [default: as --wave]")]
_KEPT = "over all processes and commands; kept with the run until another is given, `none` for no limit."
_PATHS_IN_ALL = f"Most paths to draw for this run in all, {_KEPT}"
_TOKENS_IN_ALL = f"Most tokens that the paths of this run may have in all, {_KEPT}"
_SECONDS_IN_ALL = f"Most seconds at work on this run, summed {_KEPT}"


def limit(text: str) -> float:
    """A limit as it is written; its bounds are the budget's to say."""
    if text.lower() == "none":
        return math.inf
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor `none`") from None


BudgetPaths = Annotated[Any, option("--budget-paths", "N", _PATHS_IN_ALL, parser=limit)]
BudgetTokens = Annotated[Any, option("--budget-tokens", "N", _TOKENS_IN_ALL, parser=limit)]
BudgetSeconds = Annotated[Any, option("--budget-seconds", "SECONDS", _SECONDS_IN_ALL, parser=limit)]
_SETTINGS = (
    "A setting of a scorer: model, base_url, route, prompt, revision, device, batch, concurrency, patience, "
    "answer_seconds, too_long, raw, kind, mixed_models; repeatable."
)
ScorerSet = Annotated[list[str] | None, option("--set", "NAME.KEY=VALUE", _SETTINGS)]


def waves_of(first: int | None, size: int | None) -> demur.Waves | None:
    """`--first-wave N --wave N`; each is the other where only one is given, and None where neither is."""
    sizes = [paths for paths in (first, size) if paths is not None]
    return demur.Waves(sizes[0], sizes[-1]) if sizes else None


def backend_flags(name: str | None, settings: list[str] | None) -> dict[str, Any]:
    """`--backend NAME --backend-set KEY=VALUE`, as the configuration has it."""
    if settings and name is None:
        raise InvalidValue("--backend-set is for a backend that --backend names")
    given = [setting.partition("=") for setting in settings or []]
    if wrong := next((key + equals + value for key, equals, value in given if not (key and equals)), None):
        raise InvalidValue(f"--backend-set takes KEY=VALUE, got {wrong!r}")
    return {"plugin": name, "plugin_settings": {key: value for key, _, value in given} or None}


def scorer_flags(settings: list[str] | None) -> dict[str, dict[str, str]]:
    """`judge.model=…` as {judge: {model: …}}."""
    flags: dict[str, dict[str, str]] = {}
    for setting in settings or []:
        left, equals, value = setting.partition("=")
        name, dot, key = left.rpartition(".")
        if not (equals and dot and name and key):
            example = "judge.model=smollm2-135m-instruct"
            raise InvalidValue(f"--set takes NAME.KEY=VALUE, such as {example}; got {setting!r}")
        flags.setdefault(name, {})[key] = value
    return flags
