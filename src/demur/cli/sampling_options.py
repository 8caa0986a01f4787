"""Options of the verbs that talk to a model."""

from __future__ import annotations

from typing import Annotated

import typer

BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", metavar="URL", help="OpenAI-compatible endpoint, or set OPENAI_BASE_URL. Without one, a small "
        "model runs in this process.",
    ),
]  # fmt: skip
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Model of the endpoint, or a GGUF file to run here.")
]
Paths = Annotated[int | None, typer.Option("--paths", "-m", help="Paths per problem.  [default: 16]")]
Temperature = Annotated[float | None, typer.Option("--temperature", help="[default: 0.8]")]
TopP = Annotated[float | None, typer.Option("--top-p", help="Cut the distribution's tail.  [default: 1, nothing cut]")]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", help="Longest path.  [default: 1024; 48 for a model in this process]")
]
Stop = Annotated[list[str] | None, typer.Option("--stop", help="End a path at this text; repeatable.")]
PromptName = Annotated[
    str | None,
    typer.Option("--prompt", metavar="NAME|FILE", help="Prompt by name, or a TOML file.  [default: the task's]"),
]
Extract = Annotated[
    str | None,
    typer.Option("--extract", metavar="SPEC", help="Read answers by package.module:function or a regular expression."),
]
Concurrency = Annotated[int | None, typer.Option("--concurrency", help="Most requests at once.  [default: 32]")]
Patience = Annotated[
    float | None,
    typer.Option("--patience", metavar="SECONDS", help="How long the endpoint may be away.  [default: 300]"),
]
Logprobs = Annotated[
    bool | None, typer.Option("--logprobs/--no-logprobs", help="Record token log-probabilities.  [default: yes]")
]

ScorerSet = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME.KEY=VALUE", help="A setting of a scorer: model, base_url, route, prompt, revision, "
        "device, batch, concurrency, patience, too_long, raw, kind; repeatable.",
    ),
]  # fmt: skip


def scorer_flags(settings: list[str] | None) -> dict[str, dict[str, str]]:
    """`judge.model=…` as {judge: {model: …}}."""
    from demur.errors import InvalidValue

    found: dict[str, dict[str, str]] = {}
    for each in settings or []:
        left, equals, value = each.partition("=")
        name, dot, key = left.rpartition(".")
        if not (equals and dot and name and key):
            raise InvalidValue(f"--set takes NAME.KEY=VALUE, such as judge.model=smollm2-135m-instruct; got {each!r}")
        found.setdefault(name, {})[key] = value
    return found


def say(text: str) -> None:
    """What goes on, where it does not mix with results."""
    typer.echo(text, err=True)
