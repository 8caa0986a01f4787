"""Flags that several verbs have together: a verb takes the group, the command line the flags.

    def run(file: Pools, flags: VoteFlags, json: Json = False): …      --score --normaliser … --json

A group is a dataclass whose fields are annotated as options are. It stands in a verb's signature where its flags stand
in the help. Every verb has `--trust-size`, the last of its flags: all that a verb does stands under it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from demur.files.bounds import trust_size

_TRUST = "trust_size"
TrustSize = Annotated[
    bool,
    typer.Option(
        "--trust-size",
        help="Read files that hold far more than files of their size do. Without it they are refused, because such "
        "files are mostly made to fill the memory.",
    ),
]


def with_flags(run: Callable[..., None]) -> Callable[..., None]:
    """A verb as typer reads it, the flags of its groups in their place."""
    hints = get_type_hints(run, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}

    def parameters() -> Iterator[Parameter]:
        for name, parameter in signature(run).parameters.items():
            if name in groups:
                kinds = get_type_hints(groups[name], include_extras=True)
                yield from (_parameter(each.name, each.default, kinds[each.name]) for each in fields(groups[name]))
            else:
                yield _parameter(name, parameter.default, hints[name])
        yield _parameter(_TRUST, False, TrustSize)

    def verb(**given: Any) -> None:
        made = {
            name: kind(**{each.name: given.pop(each.name) for each in fields(kind)}) for name, kind in groups.items()
        }
        with trust_size() if given.pop(_TRUST) else nullcontext():
            run(**given, **made)

    verb.__signature__ = Signature(list(parameters()))  # type: ignore[attr-defined]
    verb.__doc__ = run.__doc__
    return verb


def _parameter(name: str, default: Any, kind: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def flags_given(**values: object) -> list[str]:
    """The flags that say something, of values by name."""
    return [f"--{name.replace('_', '-')}" for name, value in values.items() if value is not None and value is not False]
