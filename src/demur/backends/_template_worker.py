"""The child process that renders chat templates: reads one JSON object a line, and writes one.

The first line is the template; each further one holds what it is rendered with. The child may be killed at any time; it
holds nothing that matters. Its memory is limited by the system, its time by the parent, and the template sees nothing
but what it is given (jinja2's immutable sandbox, as transformers sets it up).
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any


def main() -> None:
    """Serve renderings until standard input ends."""
    try:
        from jinja2 import nodes
        from jinja2.exceptions import SecurityError, TemplateError
        from jinja2.ext import Extension, loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        _write({"missing": "jinja2"})
        return

    class Generation(Extension):
        """`{% generation %}` marks what a model is trained to say; it changes no text."""

        tags = {"generation"}  # noqa: RUF012 - as its base has it

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def tojson(value: Any, ensure_ascii: bool = False, **how: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **how)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    longest = int(sys.argv[1])
    _limit_memory(int(sys.argv[2]) * 2**20)
    template = None
    _write({"text": ""})
    for line in sys.stdin:
        try:
            given = json.loads(line)
            if template is None:
                template = environment.from_string(given)
                _write({"text": ""})
                continue
            text = template.render(**given)
            _write({"text": text} if len(text) <= longest else {"large": len(text)})
        except (MemoryError, OverflowError, RecursionError):
            _write({"large": True})
        except (TemplateError, SecurityError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as e:
            _write({"error": f"{type(e).__name__}: {e}"[:300]})


def _limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:  # not every system has it; the parent's clock is left
        return
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _write(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
