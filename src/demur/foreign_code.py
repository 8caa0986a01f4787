"""Code that is not ours: functions by name, and Python in child processes.

A function `package.module:function` comes from the current folder or from what is installed. Only a name that the user
gives is looked up, never one that a file does. Children take no code from the current folder and hold no keys.

A found file decides nothing dangerous: what it says is marked (`FromFile`) until the user says it too.
"""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn, Self

from demur.errors import InvalidValue

_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth")
_FORM = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class FromFile(str):
    """A text that a file says and the user does not: no function is run by it, and no key goes to it."""

    repeat: str
    """The option by which the user would say it too."""

    def __new__(cls, text: str, repeat: str) -> Self:
        marked = super().__new__(cls, text)
        marked.repeat = repeat
        return marked


def names_function(spec: str) -> bool:
    """Whether a text has the form package.module:function."""
    return _FORM.fullmatch(spec) is not None


def function_named(spec: str, used_as: str) -> Callable[..., Any]:
    """The function; `used_as` says in an error what it was wanted for."""
    if isinstance(spec, FromFile):
        refuse_function(spec, used_as, spec.repeat)
    module, _, name = spec.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # behind all else, so that nothing is shadowed
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidValue(f"{used_as} {spec}: {error}") from None
    if not callable(function):
        raise InvalidValue(f"{used_as} {spec} is not a function")
    return function  # type: ignore[no-any-return]


def refuse_function(spec: str, used_as: str, option: str) -> NoReturn:
    """Raise, because a file names a function; `option` is how the user names it."""
    raise InvalidValue(
        f"{used_as} is the function {spec}, which a file names; no file may make demur run a function",
        f"name it yourself: {{{option}={spec}}}",
    )


def isolated_python(*arguments: str) -> list[str]:
    """A command line of this Python, isolated (`-I`): no current folder, no PYTHONPATH, no user's own packages."""
    return [sys.executable, "-I", *arguments]


def is_readable(stream: IO[Any], seconds: float) -> bool:
    """Whether a child has said something, or gone, within so many seconds."""
    listening = select.poll()  # unlike select, it takes descriptors of any number
    listening.register(stream, select.POLLIN | select.POLLHUP)
    return bool(listening.poll(1000 * seconds))


def without_secrets(*others: str) -> dict[str, str]:
    """The environment without what is named like a secret, and without `others`."""
    return {name: value for name, value in os.environ.items() if not _SECRET.search(name) and name not in others}
