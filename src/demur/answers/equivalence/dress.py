"""What stands around an answer and says nothing: marks of formulas, boxes, fonts, bold type, quotes."""

from __future__ import annotations

import re

_DEEPEST = 8
_PAIRS = (
    ("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("***", "***"), ("**", "**"), ("*", "*"), ("```", "```"),
    ("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"), ("«", "»"), ("»", "«"), ("‹", "›"), ("„", "“"),
    ("「", "」"), ("『", "』"),
)  # fmt: skip
_FONT = re.compile(
    r"\\(?:boxed|fbox|text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf|tt)|[mh]box|emph|underline) ?\{([^{}]*)\}"
)
_LATEX = re.compile(r"[\\{]")
_NO_SPACE = re.compile(r"\\!\s?")
_SPACES = re.compile(r"\\[,;: ]")
_ESCAPED = re.compile(r"\\([$%&#_])")


def undressed(answer: str) -> str:
    """An answer without the marks that enclose all of it; fonts and boxes of LaTeX vanish wherever they stand."""
    if answer[:1].isalnum() and not _LATEX.search(answer):
        return answer.rstrip()
    answer = _SPACES.sub(" ", _NO_SPACE.sub("", answer.replace("{,}", ",")))
    for _ in range(_DEEPEST):
        bare = _unwrapped(_FONT.sub(_content, answer.strip()))
        if bare == answer:
            break
        answer = bare
    return _ESCAPED.sub(r"\1", answer)


def _content(font: re.Match[str]) -> str:
    """What a font is put on, never glued to a number or word before it."""
    glued = font.string[font.start() - 1 : font.start()].isalnum()
    return " " * glued + font.group(1)


def _unwrapped(text: str) -> str:
    for opening, closing in _PAIRS:
        inside = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and inside.strip():
            return text if opening in inside or closing in inside else inside.strip()
    return text
