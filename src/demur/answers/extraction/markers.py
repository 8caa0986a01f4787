"""Markers of other languages than English: the words that stand in front of an answer, and those that may follow it.

Each language has its words for "answer", what may stand between them and the answer, and how a sentence goes on behind
it. A colon or a dash does in all of them. A word for "solution" is none: it stands above the working.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from demur.answers.extraction.part import Found, Part


class _Language(NamedTuple):
    answer: str
    correct: str
    """Words that may follow the word for "answer"."""
    verb: str
    """What is said between it and the answer."""


_LANGUAGES = {
    "de": _Language("Antwort|Ergebnis", "", "ist|lautet|wäre"),
    "es": _Language("respuesta", "correcta|final", "es|sería"),
    "fr": _Language("réponse", "correcte|finale|exacte", "est|serait"),
    "it": _Language("risposta", "corretta|giusta|finale", "è|sarebbe"),
    "pt": _Language("resposta", "correta|certa|final", "é|seria"),
    "nl": _Language("antwoord", "", "is|luidt"),
    "pl": _Language("odpowiedź|odpowiedzią", "", "to|jest|brzmi"),
    "tr": _Language("cevap|yanıt", "", ""),
    "vi": _Language("đáp án|câu trả lời", "đúng|cuối cùng", "là"),
    "ru": _Language("ответ(?:ом)?", "", "это|является|будет|равен"),
    "uk": _Language("відповідь", "", "це|є"),
    "ar": _Language("الجواب|الإجابة", "الصحيحة|الصحيح|النهائية", "هي|هو"),
    "hi": _Language("उत्तर", "", "है"),
    "zh": _Language("答案|正确选项|正確選項", "应该|應該|应当|就", "是|为|為|选|選"),
    "ja": _Language("答え|正解", "", "は"),
    "ko": _Language("정답|답", "", "은|는"),
}
"""By the code of the language."""
_BLANK = r"[\s*_]{0,4}"


_WITHOUT_BLANKS = ("zh", "ja", "ko")


def _pattern(code: str, language: _Language) -> str:
    edge = "" if code in _WITHOUT_BLANKS else r"\b"
    correct = rf"(?:{_BLANK}(?:{language.correct}))?" if language.correct else ""
    verb = rf"|{_BLANK}(?:{language.verb}){edge}" if language.verb else ""
    return rf"{edge}(?:{language.answer}){correct}(?:{_BLANK}[:：=—–]{verb})"


_ARTICLES = "la|le|el|die|der|das|a|l['’]|opción|option|opzione|opção|letra|lettera"
_ARTICLE = rf"(?:(?:{_ARTICLES})[\s:]{{1,2}}){{0,2}}(?=[(\[*]{{0,3}}[A-Z]\b)"
_ALL = "|".join(_pattern(*language) for language in _LANGUAGES.items())
MARKER = re.compile(rf"(?i:{_ALL}){_BLANK}[:：]?{_BLANK}(?:(?i:{_ARTICLE}))?")
_BEHIND = re.compile(
    r"[。！？；]|(?:です|である|になります|となります|입니다|이에요|예요|이다)(?=\W|\Z)"
    r"|[,，]\s?(?:因为|因為|因此|所以|weil|denn|da|porque|car|perché|потому|так как)"
)
"""Where the answer ends, and an ending of the verb or a reason begins."""
_SPEAKS_OF_IT = re.compile(
    r"(?i:richtig|falsch|korrekt|nicht|kein|correct[ao]?e?\b|incorrect|juste|fausse?\b|pas\b|giust|corrett|corret|errad|non\b|não\b|no\b"
    r"|верн|неверн|правильн|неправильн|не\b|juist|niet|正确|正確|错|錯|不|正しい|맞)"
)


def may_hold_marker(text: str) -> bool:
    """Whether a text has a sign beyond ASCII or a piece of a marker without one: quickly, as most have neither."""
    return (
        not text.isascii()
        or "ntwo" in text
        or "espuesta" in text
        or "sposta" in text
        or "rgebnis" in text
        or "evap" in text
    )


def content_behind(part: Part, found: Found | None) -> Found | None:
    """The answer behind a marker without what follows it; None where the words only speak of it, or deny it."""
    if found is None or _SPEAKS_OF_IT.match(found.answer):
        return None
    behind = _BEHIND.search(part.text, found.start, found.end)
    return found if behind is None else part.found(found.start, behind.start())
