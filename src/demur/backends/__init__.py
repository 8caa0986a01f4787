"""Models to sample from, behind one Protocol.

OpenAI           any OpenAI-compatible server
Interchangeable  one model on several such servers
Embedded         llama.cpp in this process, any GGUF file
Replay           recorded pools
Scripted         answers written beforehand, for tests, docs and examples

`backend_named` makes one that another package brings (`demur.foreign_code`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from demur.backends.plugged import backend_named
from demur.backends.protocol import Backend, Completion, Settings, Wanted
from demur.prompts import Prompt

if TYPE_CHECKING:
    from demur.backends.embedded import Embedded as Embedded
    from demur.backends.interchangeable import Interchangeable as Interchangeable
    from demur.backends.openai import OpenAI as OpenAI
    from demur.backends.replay import Replay as Replay
    from demur.backends.scripted import Scripted as Scripted

__all__ = [
    "Backend",
    "Completion",
    "Embedded",
    "Interchangeable",
    "OpenAI",
    "Prompt",
    "Replay",
    "Scripted",
    "Settings",
    "Wanted",
    "backend_named",
]

_HOME = {name: name.lower() for name in ("Embedded", "Interchangeable", "OpenAI", "Replay", "Scripted")}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'demur.backends' has no attribute {name!r}")
    return getattr(import_module(f"demur.backends.{_HOME[name]}"), name)
