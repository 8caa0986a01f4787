"""Evidence that is written on purpose: boxes, `<answer>`, `#### 60`, JSON with an answer in it."""

from __future__ import annotations

import json
import re

from demur.answers.extraction.part import Found, Part

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s{0,4}\{")
_BRACE = re.compile(r"\\.|[{}]", re.S)  # what a backslash escapes is none
_BARE_BOX = re.compile(r"\\boxed[ \t]{1,4}([^\s$.,;{}]{1,80})")
_MAX_BOX = 5000
_BOX_TRIES = 8
_BETWEEN_BOXES = 200
_NO_LIST = re.compile(
    r"[.!?]\s|\n\s{0,40}\n|(?i:\b(?:so|thus|finally|hence|therefore|then|giv(?:es|ing)|means?|impl(?:y|ies)|yields?|check|verif\w+|wait|no"
    r"|instead|not|correct(?:ed|ion)?|i\.e\.|that is|or rather)\b)|(?:=>|⇒|→|\\Rightarrow|\\implies|\\to\b)"
)
_NAME_BEFORE = re.compile(r"(?<![\w\\^])([A-Za-z](?:_(?:\w|\{\w{1,10}\}))?|\\[a-z]{2,10})\s?=\s?[$\\(\[ ]{0,4}\Z")
_OR = re.compile(r"\bor\b", re.I)
_TAG = re.compile(r"<(/?)(?:final[_ ]?)?answer>", re.I)
_FINISH = re.compile(r"(?<![A-Za-z])[Ff]inish\[((?:[^\[\]\n]|\[[^\[\]\n]{0,200}\]){1,300})\]")
_HASHES = re.compile(r"(?m)^[ \t>*]{0,8}####[ \t]{0,8}(?!#)([^\n]{1,300})")
_QUANTITY = re.compile(r"[-+−$€£(\\]{0,4}\s?\.?\d")
_KEY = re.compile(
    r"[\"'](?:the[ _]?)?(?:final|correct)?[ _-]?(?:answer|ans|response_answer)[\"']\s{0,20}:\s{0,20}", re.I
)
_STRING = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'", re.S)
_SCALAR = re.compile(r"[^,}\]\n`\"]{1,300}")
_CLOSES = re.compile(r"\s{0,40}(?:[,}\]`]|\Z|\n|//|#|\\\])")
_LATEX = re.compile(
    r"\\(?:frac|forall|text|times|theta|tan|tfrac|tau|to\b|top\b|beta|binom|begin|boxed|bar|big|nu\b|neq?\b|nabla|not\b"
    r"|rho|right|rangle|[a-zA-Z]{2,}(?<!\\u))"
)
_ESCAPES = re.compile(r"\\([\"'\\/])")


def boxed(part: Part) -> Found | None:
    """The last box whose braces balance; several in one closing sentence are a list."""
    if "box" not in part.text:
        return None
    boxes = list(_BOX.finditer(part.text))
    last = None
    for at in range(len(boxes) - 1, max(-1, len(boxes) - 1 - _BOX_TRIES), -1):
        last = _inside(part.text, boxes[at])
        if last is not None and last.answer.strip():
            return _with_those_before(part, boxes[:at], last)
    bare = None
    for bare in _BARE_BOX.finditer(part.text):  # noqa: B007 - the last one
        pass
    return None if bare is None else Found(bare.group(1), bare.start(1), bare.end(1))


def _inside(text: str, box: re.Match[str]) -> Found | None:
    depth, start = 1, box.end()
    for brace in _BRACE.finditer(text, start, start + _MAX_BOX):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0:
            return Found(text[start : brace.start()], start, brace.start())
    return None


def _with_those_before(part: Part, earlier: list[re.Match[str]], last: Found) -> Found:
    """The boxes that lead up to the last one with no step of reasoning between, as they are joined."""
    text, found, joints = part.text, [last], [""]
    opening = text.rfind("\\", 0, last.start)
    for box in reversed(earlier[-_BOX_TRIES:]):
        inside = _inside(text, box)
        if inside is None or not inside.answer.strip() or inside.end > opening:
            break
        between = text[inside.end + 1 : opening]
        if len(between) > _BETWEEN_BOXES or _NO_LIST.search(between):
            break
        found.append(inside)
        joints.append(" or " if _OR.search(between) else ", ")
        opening = box.start()
    if len({each.answer.strip() for each in found}) == 1:
        return last
    listed = [each.answer.strip() for each in found]
    names = [_NAME_BEFORE.search(text, max(0, each.start - 60), text.rfind("\\", 0, each.start)) for each in found]
    if all(names):  # x = 1 and y = 2 are no list of 1 and 2
        listed = [f"{name.group(1)} = {answer}" for name, answer in zip(names, listed, strict=True) if name]
    parts = [answer + joint for answer, joint in zip(listed, joints, strict=True)]
    return Found("".join(reversed(parts)), found[-1].start, last.end)


def tagged(part: Part) -> Found | None:
    """What an agent ends with in `Finish[…]`; else what stands between the last `<answer>` that closes and its end.

    In one pass, however many never close.
    """
    if "inish[" in part.text and (finishes := list(_FINISH.finditer(part.text))):
        return part.found(*finishes[-1].span(1))
    if "<" not in part.text:
        return None
    start, span = -1, (-1, -1)
    for tag in _TAG.finditer(part.text):
        if not tag.group(1):
            start = tag.end() if start < 0 else start
        elif start >= 0:
            start, span = -1, (start, tag.start())
    if span[0] >= 0:
        return part.found(*span) or Found("", *span)  # an empty one says that there is no answer
    # One that never closes holds the rest, where that is short.
    return part.found(start, len(part.text)) if start >= 0 and len(part.text) - start <= 200 else None


def hashes(part: Part) -> Found | None:
    """`#### 60`, as the solutions of GSM8K end. A heading has text below it, and no number in it."""
    if "####" not in part.text:
        return None
    for line in reversed(list(_HASHES.finditer(part.text))):
        found = part.found(line.start(1), line.end(1))
        if found is None:
            continue
        is_last = not part.text[line.end() :].strip()
        if _QUANTITY.match(found.answer) or (is_last and len(found.answer) <= 100):
            return found
    return None


def json_answer(part: Part) -> Found | None:
    """The value of the last `"answer"` of an object, whose other texts may be no JSON at all."""
    if "nswer" not in part.text and "NSWER" not in part.text and '"ans"' not in part.text:
        return None
    for key in list(_KEY.finditer(part.text))[: -_BOX_TRIES - 1 : -1]:
        found = _value(part.text, key.end())
        if found is not None and (not found.answer or any(map(str.isalnum, found.answer))):
            return found
    return None


def _value(text: str, start: int) -> Found | None:
    """A text, a number, or a list or object on one line."""
    if text[start : start + 1] in ("[", "{"):
        try:
            value, end = json.JSONDecoder().raw_decode(text[: start + _MAX_BOX], start)
        except (ValueError, RecursionError):
            return None
        simple = isinstance(value, list) and all(isinstance(each, (str, int, float)) for each in value)
        return Found(", ".join(map(str, value)) if simple else text[start:end], start, end)
    string = _STRING.match(text, start, start + _MAX_BOX)
    if string is not None:
        group = 1 if string.group(1) is not None else 2
        if _CLOSES.match(text, string.end()):
            return Found(_unescaped(string.group(group)), string.start(group), string.end(group))
        return None
    scalar = _SCALAR.match(text, start)
    if scalar is None or scalar.group().strip() in ("null", "None", "NaN"):
        return Found("", start, start)  # it says that there is none
    return Found(scalar.group().strip(), scalar.start(), scalar.end())


def _unescaped(literal: str) -> str:
    """What a string of JSON says, where LaTeX in it may have lost its second backslashes."""
    if "\\" not in literal:
        return literal
    if not _LATEX.search(literal.replace("\\\\", "")):
        try:
            return str(json.loads(f'"{literal}"', strict=False))
        except ValueError:
            pass
    return _ESCAPES.sub(r"\1", literal)
