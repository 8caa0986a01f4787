"""One page about a score, a policy and the questions behind it.

The package is also what makes one: `demur.report(source, policy)` is `demur.report.in_python.report`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package of the name that people know as a function: Python binds it to `demur.report` whoever imports it."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        from demur.report.in_python import report

        return report(*arguments, **named)


sys.modules[__name__].__class__ = _Callable
