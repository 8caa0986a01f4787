"""Evidence in words: "the answer is …", "Final Answer:", "ans =", their like elsewhere, a prompt's own marker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from demur.answers.extraction.markers import MARKER, content_behind, may_hold_marker
from demur.answers.extraction.part import Found, Part

_LONGEST = 500
_TRIES = 12
_WORD = re.compile(  # a set of first letters, which is looked for fastest
    r"[AaFfOo](?:(?<=[Aa])(?:nswers?|ns)|(?<=A)(?:NSWERS?|NS)"
    r"|(?:(?<=[Ff])inal|(?<=F)INAL|(?<=[Oo])verall)\s{1,3}(?:[Rr]esult|RESULT|[Ss]olution|[Vv]alue))(?![A-Za-z])"
)
_LETTER = re.compile(r"(?:^|\n)[ \t*>#]{0,6}A(?=[ \t]{0,2}:)")
"""The letter A in front of an answer, as Q stands in front of a question."""
_CORRECTION = re.compile(
    r"""
    \b(?:wait,?\sno|no,?\swait|correction|scratch\sthat|my\smistake|oops|sorry)\b[\s,.:;!—–-]{1,4}
    (?:(?:it|that|this)(?:['’]s|\s(?:is|was|should\sbe|must\sbe))|should\sbe|i\smeant|make\sthat)\s{1,3}
    """,
    re.I | re.X,
)
"""Words that take back what was said before, and say something else."""
_SHORTEST_CORRECTION = 16
_LEADING = re.compile(
    r"""
    (?:\s{0,3}\([^()\n]{1,60}\))? (?:\s{1,3}(?:to|of|for|in)\s[^.:=\n]{1,120}?)??  # (in dollars), to this question
    (?:
        [\s*_"'”]{0,6} (?:[:=]{1,2} | \.(?=\s\d) | -{1,2}> | => | → | ⇒ | — | – | -(?=\s))
        | \s{1,3} (?P<copula>
            (?:(?:would|should|will|must|could|can)\s{1,3}(?:(?:simply|then|thus|therefore|just)\s{1,3})?(?:be|equal)
            | is | are | was | were | be | equals? | becomes | remains
            | comes\s{1,3}(?:out\s{1,3})?(?:to(?:\s{1,3}be)?|as) | turns\s{1,3}out\s{1,3}to\s{1,3}be) \b
          ) (?:\s{1,3}(?:simply|then|thus|therefore|hence|indeed|just|also|clearly|actually|exactly|equal\s{1,3}to)\b)?
        | [ \t]{0,3}[*_]{1,3}[ \t]{0,3}(?=\n) | [ \t]{0,3}(?=\n)(?<=[Aa]nswer)  # a heading
    )
    [\s*_]{0,12} (?::|=(?!=))? (?:\s{0,12}```[a-z]{0,10}\n)? [\s*_>]{0,12}
    """,
    re.I | re.X,
)
_SPEAK_OF_IT = """
    correct incorrect right wrong valid invalid reasonable consistent verified confirmed clear obvious found given shown
    known unique below above here based obtained rounded expressed written supported justified complete already
    therefore thus hence indeed that what which because since if when where independent dependent determined calculated
    derived as\\s+(?:follows|above|below|shown|given|expected) in\\s+(?:the\\s+form|terms|fact|line|agreement)
    in\\s+\\S{1,20}\\s+form(?:at)?
"""
_NO_CONTENT = re.compile(rf"(?:\d{{1,3}}\s?%\s)?(?:{'|'.join(_SPEAK_OF_IT.split())})\b", re.I)
_NEGATED = re.compile(r"(?i)(?:not|n't|neither|never|no\s+longer|hardly|unlikely)\b")
_CUT = re.compile(
    r"""
    \s{1,3}is\ (?:the|my|our)\ (?:final\ |correct\ )?answer\b
    | ,?\s{1,3}(?:because|since|so\ that|which|rather\ than|instead\ of)\b
    | ,\s{1,3}(?:not|as|where|but|it|and\ not|so)\b
    """,
    re.I | re.X,
)
"""What goes on to say why, or what it is not."""
_META = r"""
    (?:(?:my|overall|final)\s)?confidence(?:\s(?:level|score))? certainty sources? references? citations? explanations?
    why reasons? reasoning rationale justification notes? disclaimer caveats? warning word\scount check verification
    context background (?:fun\s)?facts? hint evidence assumptions? details? proof comments? remarks?
    further\sreading see\salso p\.?s\.? additional\sinformation feedback
"""
COMMENT = re.compile(
    rf"""
    [^\w"'“”‘’«»$\\]{{0,8}} (?:
      (?:{"|".join(_META.split())})\b \.? (?:[*_]{{0,3}}\s?[:=—–] | \s(?:is\s|of\s)?[\d(])
      | (?<!\A)(?:confidence|word\scount|check|verification|note|source|reference
        |no\sfurther|end\sof\s(?:answer|response)|done|cheers|sincerely|enjoy|(?:you(?:['’]re|\sare)\s)?welcome
        |(?:good|great|nice|interesting|excellent|fun)\s(?:question|luck|day|one)|have\sa|happy\sto|best\sregards
        |all\sthe\sbest|anything\selse|any\s(?:other|more|further)\squestions?|ask\s(?:me|away|if))\b
      | https?:// | (?<=[.!?]\s\[)\d{{1,2}}\]
      | (?<!\A)(?:about\s)?(?:\d{{1,3}}\s?%\s|very\s|quite\s|fairly\s|\w+ly\s)(?:sure|confident|certain)\b
      | (?:based\son|according\sto)\s[^,\n.!]{{1,60}}(?:[.!]|\Z)
      | i(?:\s?['’]m|\sam|\sfeel|\swas)\s (?:about\s)?(?:\d{{1,3}}\s?%\s)? (?:(?!not)\w+\s){{0,2}}
        (?:sure|confident|certain|positive|convinced|happy|glad)\b
      | i(?:['’]ve|\shave)?\s(?:double[-\s])?
        (?:checked|verified|confirmed|hope|(?:know|looked|learned|remember)\s(?:it|this|that))\b
      | i\s(?:\w+ly\s)?(?:believe|think)\s(?:this|that|it|my\sanswer)\s(?:is|answer\sis)
        \s(?:correct|right|accurate|true)\b
      | (?:this|that|my|our|the)\s(?:final\s|above\s|given\s)?(?:answer|response|information|explanation)\b
        (?!\D{{0,60}}\d(?!\d{{0,2}}\s?%))
      | (?<!\A)(?:this|that|it)(?:['’]s|\s(?:is|was|seems|looks|makes|should\sbe|must\sbe))\s
        (?:\w+ly\s|quite\s|very\s|a\s|my\s|the\s|final\s){{0,2}}
        (?:correct|right|accurate|true|clear|obvious|sense|consistent|reasonable|well[-\s]known|common\sknowledge|simple
        |easy|all|answer|fact)\b
      | (?:let\sme\sknow|feel\sfree|would\syou\slike|please\s(?:let|note|verify|check|see|feel|consult)|thanks?
        |you\scan\s(?:verify|check|find|read)\s(?:this|that|it|more)
        |if\syou(?:['’]d|\swould|\s(?:have|need|want)\s(?:any|more|further|other|another))
        |is\sthere\sanything|do\syou\s(?:have|need|want)|hope|good\sluck|for\smore\s(?:information|details|on|about)|as\san\sai
        |see\s(?:also|https?|wikipedia|\[\d|page|section))\b
      | (?:(?:the|our|my)\s)?(?:final\s)?answer:?\s?
        (?:is\s(?:correct|right|wrong|incorrect|as\sfollows|not\sknown|unknown))?:?\Z
    )
    """,
    re.I | re.X,
)
"""Sentences next to an answer that are about something else: courtesies, how sure the model is, where it comes from."""
SOURCES = re.compile(
    r"(?<=\S)\s{0,4}\n[ \t*_#>-]{0,6}"
    r"(?:references?|sources?|citations?|footnotes?|links|bibliography|further reading|see also)"
    r"[*_]{0,3}[ \t]?:?[*_]{0,3}[ \t]{0,3}\n",
    re.I,
)
"""The heading of what a text ends in, from which on nothing is the answer."""
_PUNCTUATION, _EMPTY_BOX = re.compile(r"[\W_]*"), re.compile(r"\\boxed\s?\{\s?\}")


def said(part: Part) -> Iterator[tuple[Found, bool]]:
    """What is said to be the answer, the last first; and whether it stands behind a colon or the like.

    Words that only speak of the answer ("our answer is correct") and what it is said not to be are left out.
    """
    text = part.without_programs
    words = [word for word in _WORD.finditer(text) if not text[word.start() - 1 : word.start()].isalpha()]
    others = [*_LETTER.finditer(text)] if "A:" in text or "A :" in text else []
    if words and len(text) - words[0].end() > _SHORTEST_CORRECTION:
        others += _CORRECTION.finditer(text, words[0].end())
    if may_hold_marker(text):
        others += MARKER.finditer(text)
    if others:
        words = sorted([*words, *others], key=re.Match.end)
    for word in words[: -_TRIES - 1 : -1]:
        if word.re is MARKER:
            foreign = content_behind(part, content(part, word.end()))
            if foreign is not None:
                yield foreign, True
            continue
        if word.re is _CORRECTION:
            corrected = content(part, word.end())
            if corrected is not None and not _NO_CONTENT.match(corrected.answer):
                yield corrected, False
            continue
        leading = _LEADING.match(text, word.end(), word.end() + 400)
        if leading is None:
            continue
        copula = leading.group("copula") is not None
        found = content(part, leading.end())
        if found is None or (copula and (_NEGATED.match(found.answer) or _NO_CONTENT.match(found.answer))):
            continue
        yield found, not copula


def content(part: Part, start: int) -> Found | None:
    """What stands behind a marker: the formula there, or the rest of the sentence or line."""
    text = part.text
    while start < len(text) and text[start].isspace():
        start += 1
    formula = formula_at(text, start)
    if formula is not None:
        return formula
    end = part.sentence_end(start, _LONGEST)
    cut = _CUT.search(text, start + 1, end)
    return worded(part.found(start, end if cut is None else cut.start()))


def worded(found: Found | None) -> Found | None:
    """What holds a letter, a digit or a sign that may be an answer; punctuation is none."""
    if found is None or _PUNCTUATION.fullmatch(_EMPTY_BOX.sub("", found.answer).replace("\\", "x")):
        return None
    return found


_DISPLAY = {r"\[": r"\]", "$$": "$$", r"\(": r"\)", "$": "$"}
_JOINT = re.compile(r"[\s*]{0,4}(?:,|;|and|or|&|,\s?and|,\s?or)[\s*]{1,4}(?=[$\\])", re.I)
_MONEY = re.compile(r"\$\s?[\d.,]+(?:\s|[.,;:!?)]|\Z)(?![^$\n]{0,30}\$(?:[\s.,;:!?)]|\Z))")


def formula_at(text: str, start: int) -> Found | None:
    """The formula that begins here, or the formulas with nothing but "and" between; None where none does."""
    first = one = _one_formula(text, start)
    if first is None or one is None:
        return None
    while joint := _JOINT.match(text, one[2]):
        following = _one_formula(text, joint.end())
        if following is None:
            break
        one = following
    if one is first:
        return Found(text[first[0] : first[1]].strip(), first[0], first[1])
    return Found(text[start : one[2]], start, one[2])


_ENVIRONMENT = re.compile(r"\\begin\s?\{(align(?:ed)?|equation|gather(?:ed)?|eqnarray|split)(\*?)\}")
_ROW = re.compile(r"\\\\")


def _last_row(text: str, start: int, end: int) -> tuple[int, int]:
    """Of aligned equations the last one; anything else as it is."""
    environment = _ENVIRONMENT.search(text, start, end)
    if environment is None:
        return start, end
    closing = text.find(f"\\end{{{environment.group(1)}{environment.group(2)}}}", environment.end(), end)
    end = end if closing < 0 else closing
    while end > environment.end() and (text[end - 1].isspace() or text[end - 1] in "\\&"):
        end -= 1
    rows = [row.end() for row in _ROW.finditer(text, environment.end(), end)]
    start = max([environment.end(), *rows])
    sign = text.rfind("&", start, end)
    return (sign + 1 if sign >= 0 else start), end


def _one_formula(text: str, start: int) -> tuple[int, int, int] | None:
    """Where the inside of a formula begins and ends, and where its closing mark ends."""
    environment = _ENVIRONMENT.match(text, start)
    if environment is not None:
        closing = f"\\end{{{environment.group(1)}{environment.group(2)}}}"
        end = text.find(closing, start, start + 4 * _LONGEST)
        return None if end < 0 else (*_last_row(text, start, end), end + len(closing))
    opening = next((mark for mark in _DISPLAY if text.startswith(mark, start)), None)
    if opening is None or (opening == "$" and _MONEY.match(text, start)):
        return None
    begin = start + len(opening)
    end = text.find(_DISPLAY[opening], begin, begin + (_LONGEST if opening == "$" else 4 * _LONGEST))
    if end < 0 or (opening == "$" and "\n\n" in text[begin:end]) or not text[begin:end].strip():
        return None
    return (*_last_row(text, begin, end), end + len(opening))


def behind_markers(part: Part) -> Found | None:
    """What stands behind the last of the markers that the prompt asked for."""
    if not part.asked.markers:
        return None
    for marker in list(_marker_pattern(part.asked.markers).finditer(part.text))[: -_TRIES - 1 : -1]:
        found = content(part, marker.end())
        if found is not None:
            return found
    return None


def holds_marker(text: str, markers: tuple[str, ...]) -> bool:
    """Whether a text has one of these markers."""
    return _marker_pattern(markers).search(text) is not None


@lru_cache(maxsize=64)
def _marker_pattern(markers: tuple[str, ...]) -> re.Pattern[str]:
    spelt = (r"\s{1,4}".join(map(re.escape, marker.split())) for marker in sorted(markers, key=len, reverse=True))
    return re.compile(f"(?:{'|'.join(spelt)})" + r"[\s*_]{0,6}[:=]?[\s*_]{0,6}", re.I)
