"""Backends that other packages bring, by name: see `demur.foreign_code`."""

from __future__ import annotations

from demur.backends.protocol import Backend
from demur.errors import InvalidValue, PluginError
from demur.foreign_code import BACKENDS, installed, plugin_named, summary

OWN = ("openai", "embedded", "replay", "scripted")


def backend_named(name: str, **settings: str) -> Backend:
    """The backend that a package brings, made with these settings; what it names is called with them."""
    refuse_taken(name)
    plugin = plugin_named(BACKENDS, name)
    if plugin is None:
        there = ", ".join(sorted({found.name for found in installed(BACKENDS)})) or "none"
        raise InvalidValue(f"no installed package brings a backend {name!r:.60}; there is: {there}")
    make = plugin.load()
    try:
        made: Backend = make(**settings)
    except (Exception, SystemExit) as error:  # the code of others, which may do anything
        raise PluginError(plugin.told(f"cannot be made: {summary(error)}"), "correct its settings") from error
    lacking = [part for part in ("concurrency", "describe", "sample", "close") if not hasattr(made, part)]
    if lacking:
        raise PluginError(plugin.told(f"is no demur.backends.Backend: it has no {', '.join(lacking)}"))
    return made


def refuse_taken(name: str) -> None:
    """Raise where a name is that of one of demur's own."""
    if name in OWN:
        raise InvalidValue(f"{name!r} is one of demur's own backends, which no plugin takes the place of")
