"""Program code in texts: blanked, in place, for what it says is no answer."""

from __future__ import annotations

import re

_FENCE = re.compile(r"```|~~~")
_CODE_LINE = re.compile(
    r"""
    ^[ \t]{0,20}(?:
        def\ |class\ |import\ |from\ \w{1,40}\ import\ |print\ ?\(|return\b|for\ \w{1,40}\ in\ |assert\ |console\.|>>>
        | (?:let|const|var|int|float)\ \w | (?:while|if|elif|with)\ [^\n]{1,80}:$ | (?:else|try):$
        | except\b[^\n]{0,60}:$
        | //|\#(?!\#)(?![\# ]?\s?[\d.,$-]+$)  # comments, but no headings and no numbers
        | [a-z]\w{0,40}_\w{0,40}\ ?[-+*/]?=\  | [A-Za-z_]\w{1,40}(?:\.\w{1,40}){0,4}\([^\n]{0,200}\);?$
    )[^\n]*
    """,
    re.M | re.X,
)
_NO_LANGUAGES = ("", "text", "plaintext", "math", "latex", "tex", "markdown", "md", "answer")
_OUTPUTS = ("output", "stdout", "console")
_FAILED = re.compile(r"Traceback|Error\b")
_ASSIGNMENT = re.compile(r"(?m)^[ \t]{0,20}[a-z]\w{0,40} ?= ?\S[^\n]*")
_PROGRAM = re.compile(
    r"(?m)^[ \t]{0,8}(?:(?:answer|ans|result) ?= ?"
    r"(?:[( \t]{0,3}+[a-z_]\w{1,40}+[) \t]{0,3}+[-+*/%]{0,2}+[ \t\d.]{0,8}+){1,8}+$"
    r"|print ?\(|def \w|return \w)"
)


def blank_programs(text: str) -> str:
    """Lines of program code, blanked; assignments too, where something in the text can only be a program."""
    code = _CODE_LINE.sub(_blanked, text)
    return _ASSIGNMENT.sub(_blanked, code) if _PROGRAM.search(text) else code


def _blanked(line: re.Match[str]) -> str:
    return " " * len(line.group())


def blank_fences(text: str) -> str:
    """Fenced blocks, blanked."""
    if "```" not in text and "~~~" not in text:
        return text
    pieces, place, inside = [], 0, False
    for fence in _FENCE.finditer(text):
        block = text[place : fence.start()]
        pieces.append((_blank(block) if inside and _is_code(block) else block) + "   ")
        place, inside = fence.end(), not inside
    block = text[place:]
    pieces.append(_blank(block) if inside and _is_code(block) else block)
    return "".join(pieces)


def _is_code(block: str) -> bool:
    """Whether a fenced block is more than an answer on a line of its own."""
    language, _, inside = block.partition("\n")
    if language.strip().lower() in _OUTPUTS:  # what a program printed, last of all its result
        return _FAILED.search(inside) is not None
    return language.strip().lower() not in _NO_LANGUAGES or "\n" in inside.strip()


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))
