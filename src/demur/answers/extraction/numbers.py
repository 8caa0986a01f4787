"""Numbers in running text: which are there, and which of them a sentence gives as its result."""

from __future__ import annotations

import re
from collections.abc import Iterator

from demur.answers.extraction.part import Found, Part
from demur.answers.languages import takes_comma

_FRACTIONS = r"\d{0,9}\ ?[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒]|\d{1,9}⁄\d{1,9}"
_DIGITS = {  # by whether decimals stand behind a comma
    False: rf"{_FRACTIONS}|"
    r"\d+\ \d+/\d+(?![/\d])|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)(?:\.\d+)?"
    r"|\d+(?:\.\d+)?|\.\d+",
    True: rf"{_FRACTIONS}|"
    r"\d+\ \d+/\d+(?![/\d])|\d{1,3}(?:[. \u00a0\u202f'’]\d{3})+(?!\d)(?:,\d+)?|\d+(?:[.,]\d+)?|,\d+",
}
_TOKEN = r"""
    (?<![A-Za-z\d_\\^{.]) (?P<odd>\d+(?:[/.-]\d+){2,} | \d+\s?[-–]\s?\d+(?!\s?=) | v\d)  # dates, versions; ranges; v2
    | (?<![A-Za-z\d_\\^{}.,±√]) (?P<number>
        (?:(?:minus|negative)\s)? [-−+]?\s?[$€£]?\s? (?>DIGITS) (?:\s?/\s?\d+ | :\d\d(?!\d))?
        (?:[eE][-+]?\d+)? (?:\s?% | (?:st|nd|rd|th)\b)?
        (?:\s(?:hundred|thousand|million|billion|trillion|dozen|percent|per\ cent|[ap]\.?m\b\.?))?
      )
      (?:GLUED)? (?![A-Za-z0-9_]|[.,/]\d|\s?[√π∞!](?!=)|\s?[x×]\s?10\^|:\d)
"""
_GLUED = r"""
    (?:(?:[kcmd]?m|ft|in|yd|mi)(?:\s?[²³]|\^?[23])? | [km]?g | m?[lL] | lbs? | oz | km/h | mph | h | hrs? | hours?
    | mins? | minutes? | s | secs? | weeks? | days? | years? | cents?) (?!\w)
"""
_TOKENS = {
    comma: re.compile(_TOKEN.replace("DIGITS", digits).replace("GLUED", _GLUED), re.I | re.X)
    for comma, digits in _DIGITS.items()
}
_REFERENCES = """
    step part case question problem exercise equation eq figure fig table chapter section page line option example
    method approach scenario lemma theorem
"""
_REFERENCE = re.compile(rf"(?:^|[\s(*#])(?:{'|'.join(_REFERENCES.split())})\.?\s?#?\Z", re.I)
_NUMBERING = re.compile(r"[.):]\s(?=[^\n]{0,40}\S)")
_RANGE = re.compile(r"\b(?:between|from|either)\s\S{1,20}(?:\s\S{1,20})?\s(?:and|to|or)\s\S{1,20}", re.I)
_RESULT = re.compile(
    r"=|≈|\b(?:is|are|was|were|be|equals?|gives?|get|gets|obtain|leaves?|left with|totals?|makes?|comes to|amounts? to"
    r"|total of|only)\b",
    re.I,
)
_LISTED = re.compile(
    r"(?<![\d.,])-?\d[\d./]{0,12}(?:,\s-?\d[\d./]{0,12}){0,6},?\s(?:and|or)\s-?\d[\d./]{0,12}(?<![./])(?![\d%])"
)
_ASIDE = re.compile(
    r"""
    \([^()]{0,80}\)
    | \b(?:since|because|after|than|out\ of|who|which(?!\s(?:is|are|equals|gives|makes))|whereas|while|if|when|where
      |each|every|per|not)\b [^,.;]{0,200}
    | \b(?:to\s(?:have|make|get|reach|achieve)|for|with)\s(?:an?|the|h(?:er|is)|their|its)\s(?:\w{2,12}\s)?
      total\sof\s[$€£]?[\d.,]{1,20}
    | (?<!\btotal\s)(?<!\bsum\s)(?<!\baverage\s)(?<!\bmean\s)(?<!\bprofit\s)(?<!\bloss\s)(?<!\bcost\s)(?<!\bprice\s)
      (?<!\bmaximum\s)(?<!\bminimum\s)(?<!\bamount\s)(?<!\bremainder\s)
      \b(?:for|at|of|to\ have|by|with)\s(?:the\s|a\s|each\s|every\s)? (?=[$€£]?\d)[$€£]?[\d.,]{1,20}
    """,
    re.I | re.X,
)
"""What stands aside of the main clause, and the numbers in it."""
_SIGN = re.compile(r"(?:minus|negative)\s", re.I)
_CALCULATION = re.compile(r"[\s\d+*/x×÷().^!-]{0,60}=")
_SO = re.compile(r"\b(?:so|thus|hence|therefore|which means)\b", re.I)
_BOLD = re.compile(r"\*\*[^*\n]{1,80}\*\*")
_MEASURES = """
    years? months? weeks? days? hours? hrs? minutes? mins? seconds? secs? feet foot ft inch(?:es)? in yards? miles?
    pounds? lbs? ounces? oz dollars? cents? euros? gallons? quarts? pints? cups? kilograms? kg grams? g kilometers? km
    meters? m cm degrees?
"""
_MEASURED = rf"(?<![\d,.])\d[\d,.]{{0,20}}\s?(?:{'|'.join(_MEASURES.split())})\b"
_COMPOUND = re.compile(rf"{_MEASURED}(?:,?\s(?:and\s)?{_MEASURED}){{1,3}}", re.I)
_ONE = "one|two|three|four|five|six|seven|eight|nine"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_SMALL = rf"zero|(?:{_TENS})(?:[- ](?:{_ONE})\b)?|{_TEENS}|{_ONE}"
_WORDS = re.compile(
    rf"\b(?:{_SMALL})\b(?:[- ](?:hundred|thousand|million|billion|dozen|(?:and )?(?:{_SMALL}))\b){{0,6}}", re.I
)


def result(part: Part, start: int, end: int) -> Found | None:
    """The number that a sentence gives: in bold, behind its last "so", equals sign or verb; else its last."""
    numbers = list(_numbers(part, start, end))
    if not numbers:
        return None
    for compound in _COMPOUND.finditer(part.text, start, end):  # 5 dollars and 20 cents are one quantity
        if compound.start() <= numbers[-1].start < compound.end():
            return part.found(*compound.span())
    for listed in _LISTED.finditer(part.text, start, end):  # 3 and 4 are two, and one answer
        if listed.start() <= numbers[-1].start < listed.end():
            return part.found(*listed.span())
    if len(numbers) == 1:
        return numbers[0]
    asides = [span.span() for span in _ASIDE.finditer(part.text, start, end)]
    main = [
        number
        for number in numbers
        if part.text[: number.start].rstrip(" $").endswith("=") or not any(a <= number.start < b for a, b in asides)
    ]
    numbers = main or numbers
    for consequence in reversed(list(_SO.finditer(part.text, start, end))):
        if behind := [number for number in numbers if number.start >= consequence.end()]:
            numbers, start = behind, consequence.end()
            break
    for bold in reversed(list(_BOLD.finditer(part.text, start, end))):
        if within := [number for number in numbers if bold.start() <= number.start < bold.end()]:
            return within[0]
    for verb in reversed(list(_RESULT.finditer(part.text, start, end))):
        behind = [number for number in numbers if verb.end() <= number.start]
        if behind and behind[0].start - verb.end() <= 60:
            return behind[0]
    return numbers[-1]


def first(part: Part, start: int, end: int) -> Found | None:
    """The number that the words begin with, where no calculation follows."""
    number = next(_numbers(part, start, end), None)
    if number is None or number.start != start or _CALCULATION.match(part.text, number.end, end):
        return None
    compound = _COMPOUND.match(part.text, start, end)
    return number if compound is None else part.found(*compound.span())


def number_word(part: Part, start: int, end: int) -> Found | None:
    """The first number that is written in words; "one" is often none."""
    words = list(_WORDS.finditer(part.text, start, end))
    if len(words) > 1:
        words = [word for word in words if word.group().lower() != "one"] or words
    return None if not words else Found(words[0].group(), *words[0].span())


def _numbers(part: Part, start: int, end: int) -> Iterator[Found]:
    """The numbers of a sentence; none of a date, a range, a list's numbering, a reference or a program."""
    text = part.without_code
    ranges = [span.span() for span in _RANGE.finditer(text, start, end)]
    for token in _TOKENS[takes_comma(part.asked.language)].finditer(text, start, end):
        place = token.start()
        if token.group("odd") is not None or any(low <= place < high for low, high in ranges):
            continue
        if _REFERENCE.search(text, max(0, place - 20), place) or _numbers_an_item(text, token):
            continue
        found = part.found(token.start("number"), token.end("number"))
        if found is not None:
            yield found._replace(answer=_SIGN.sub("-", found.answer))


def _numbers_an_item(text: str, token: re.Match[str]) -> bool:
    """Whether a number stands in front of an item of a list."""
    line = text.rfind("\n", 0, token.start()) + 1
    return _NUMBERING.match(text, token.end()) is not None and not text[line : token.start()].strip(" \t*#-(")
