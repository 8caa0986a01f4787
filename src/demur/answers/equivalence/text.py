"""Open questions: the usual normalisation of short answers, its accidents guarded, numbers and dates by value.

Case, articles, punctuation and blank space do not count. Numbers are compared by value (`1,000` is `1000`, `3.5` is not
`35`, `-5` is not `5`); number words up to twenty are numbers; dates are compared as dates when written with a month's
name or as year-month-day. A key that would become empty is the lower-cased answer itself ("The The", "A").
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

MAX_LENGTH = 2000

_FOLD = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "\u00a0": " "})
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w])")
_NUMBER_WORDS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty
"""
_WORDS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split())}
_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = {month: number for number, month in enumerate(_MONTH_NAMES.split(), start=1)}
_MONTH = "|".join(f"{m}|{m[:3]}" for m in _MONTHS)
_DAY_FIRST = re.compile(rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m>{_MONTH})\.?,? (?P<y>\d{{4}})")
_MONTH_FIRST = re.compile(rf"(?P<m>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})")
_ISO = re.compile(r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})")


@lru_cache(maxsize=65_536)
def key(answer: str) -> str | None:
    raw = unicodedata.normalize("NFKC", answer.replace("\x00", "").translate(_FOLD)).translate(_FOLD).strip().lower()
    if not raw:
        return None if not answer.strip() else "s:" + answer.strip()
    if len(raw) > MAX_LENGTH:
        return "s:" + " ".join(raw.split())
    text = " ".join(raw.split()).rstrip(".!?")
    for pattern in (_DAY_FIRST, _MONTH_FIRST, _ISO):
        date = pattern.fullmatch(text)
        if date:
            return f"d:{int(date['y']):04d}-{_month(date['m']):02d}-{int(date['d']):02d}"
    kept: list[str] = []

    def keep(number: re.Match[str]) -> str:
        kept.append(_number(number.group()))
        return f" \x00{len(kept) - 1}\x00 "

    text = _NUMBER.sub(keep, text)
    text = "".join(c if c == "\x00" or not _is_punctuation(c) else "" for c in text)
    text = _ARTICLE.sub(" ", text)
    words = [kept[int(w.strip("\x00"))] if w.startswith("\x00") else _WORDS.get(w, w) for w in text.split()]
    return "t:" + " ".join(words) if words else "s:" + raw


def _month(text: str) -> int:
    return int(text) if text.isdigit() else next(n for month, n in _MONTHS.items() if month.startswith(text[:3]))


def _number(text: str) -> str:
    sign = "-" if text.startswith("-") else ""
    whole, _, fraction = text.lstrip("+-").replace(",", "").partition(".")
    number = (whole.lstrip("0") or "0") + (f".{fraction.rstrip('0')}" if fraction.rstrip("0") else "")
    return number if number == "0" else sign + number


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS" or unicodedata.category(character) == "Cc"
