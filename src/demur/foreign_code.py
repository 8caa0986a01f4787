"""Code that is not ours: functions by name, plugins by theirs, and Python in child processes.

A function `package.module:function` comes from the current folder or from what is installed. Only a name that the user
gives is looked up, never one that a file does. Children take no code from the current folder and hold no keys.

A plugin is a backend, a scorer or a task that an installed package brings, found by its entry point:

    [project.entry-points."demur.tasks"]        [project.entry-points."demur.scorers"]
    sums = "demur_sums:SUMS"                     brevity = "demur_sums:brevity"

Such a package is trusted as any other that is installed, but its code runs only when the user names the part. Names of
demur's own are never taken over.

A found file decides nothing dangerous: what it says is marked (`FromFile`) until the user says it too.
"""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import IO, Any, NoReturn, Self

from demur.errors import InvalidValue, PluginError

BACKENDS, SCORERS, TASKS = KINDS = ("backends", "scorers", "tasks")
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

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """So that it is still marked where it was sent to."""
        return str(self), self.repeat


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


@dataclass(frozen=True)
class Plugin:
    """A part by its name; its code is not loaded yet."""

    kind: str
    name: str
    package: str
    entry: EntryPoint

    def load(self) -> Any:
        """What the entry point names; whatever its package does wrong becomes one line."""
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:  # the code of others, which may do anything
            raise PluginError(self.told(f"cannot be loaded: {summary(error)}"), "mend or uninstall it") from error

    def told(self, what: str) -> str:
        """A sentence about it."""
        return f"the {self.kind.removesuffix('s')} {self.name!r} of the package {self.package} {what}"


def installed(kind: str) -> list[Plugin]:
    """The plugins of a kind, by name. None of their code runs."""
    found = [
        Plugin(kind, entry.name, "unknown" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}", entry)
        for entry in entry_points(group=f"demur.{kind}")
    ]
    return sorted(set(found), key=lambda plugin: (plugin.name, plugin.package))


def plugin_named(kind: str, name: str) -> Plugin | None:
    """The plugin of that name; None where there is none, and an error where there are several."""
    named = [plugin for plugin in installed(kind) if plugin.name == name]
    if len({(plugin.package, plugin.entry.value) for plugin in named}) > 1:
        packages = " and ".join(plugin.package for plugin in named)
        raise PluginError(f"several packages bring a {kind.removesuffix('s')} {name!r}: {packages}", "uninstall one")
    return named[0] if named else None


def listed(kind: str) -> str:
    """The names of a kind's plugins, for an error that says what there is; blank where there are none."""
    names = sorted({plugin.name for plugin in installed(kind)})
    return f"; plugins bring {', '.join(names)}" if names else ""


def summary(error: BaseException) -> str:
    """An error of somebody else's code, in one line."""
    said = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
