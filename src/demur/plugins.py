"""Parts that other packages bring along: backends, scorers and tasks, found by their entry points.

    [project.entry-points."demur.tasks"]        [project.entry-points."demur.scorers"]
    sums = "demur_sums:SUMS"                     brevity = "demur_sums:brevity"

A package that is installed is trusted as any other, but its code runs only when the user names the part: no policy, no
configuration and no pool file can make demur load one. Names of demur's own are never taken over.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from demur.errors import PluginError

BACKENDS, SCORERS, TASKS = KINDS = ("backends", "scorers", "tasks")


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
