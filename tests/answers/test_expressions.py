"""Regular expressions of users mean what Python's `re` says, and take time that grows with the text alone."""

from __future__ import annotations

import pickle
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from demur.answers.extraction.expressions import Expression
from demur.errors import InvalidValue

HOSTILE = [
    r"(\w+\s?)+\$",
    r"(x+x+)+y",
    r"(a|aa)+$",
    r"(a|a)*b",
    r"([a-z]+)*=",
    r"(.*)*=;",
    r"(?:a?){40}a{40}b",
    r"^(\s*\S+\s*)+#",
    r"(\d+,?)+\.",
    r"((a+)+)+!",
    r"a.*a.*a.*a.*a.*z|a",
]
PARTS = ["x", "a", "word ", "1,2,", "ab\n", "é中"]
ATOMS = [
    r"a",
    r"b",
    r"é",
    r"中",
    r"7",
    r"٣",
    r"_",
    r"\n",
    r"\d",
    r"\w",
    r"\s",
    r"\W",
    r"\D",
    r"\S",
    r".",
    r"[ab]",
    r"[^a]",
    r"[\w.]",
    r"[^\s,]",
    r"[a-z]",
    r"[é-ü]",
    r"\b",
    r"\B",
    r"^",
    r"$",
    r"\Z",
    r"\A",
    r"\.",
    r"İ",
    r"ı",
    r"K",
    r"ſ",
]
CHARACTERS = "aabbéé中7٣_ \n\n.,İıKſkKsSiIüAé²\u0301\u00a0"
TIMES = ("*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}?")


def made_up(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return rng.choice(ATOMS)
    inner = made_up(rng, depth - 1)
    if kind < 0.6:
        return inner + made_up(rng, depth - 1)
    if kind < 0.7:
        return f"(?:{inner}|{made_up(rng, depth - 1)})"
    if kind < 0.87:
        return rng.choice(["({})", "({})", "(?i:{})", "(?m:{})", "(?-s:{})"]).format(inner)
    return f"(?:{inner}){rng.choice(TIMES)}"


def as_re_reads(pattern: str, text: str) -> str | None:
    """The reading of the definition: the last of all matches, and its first group where there is one."""
    matches = list(re.finditer(pattern, text, re.S))
    if not matches:
        return None
    return matches[-1].group(1 if matches[-1].re.groups else 0) or ""


def test_what_is_read_is_what_python_reads():
    """Patterns and texts made up at random, in many scripts: each is read as `re` does, or refused by name."""
    rng, compared = random.Random(0), 0
    for _ in range(4_000):
        pattern = made_up(rng, rng.randint(1, 5))
        try:
            expression = Expression(pattern)
        except InvalidValue:
            continue
        for _ in range(8):
            text = "".join(rng.choice(CHARACTERS) for _ in range(rng.randint(0, 12)))
            found, wanted = expression.last_in(text), as_re_reads(pattern, text)
            assert (found or "").strip() == (wanted or "").strip(), (pattern, text)
            compared += wanted is not None and bool(wanted.strip())
    assert compared > 3_000


@pytest.mark.parametrize("part", [r"\w", r"\d", r"\s", r"\W", "[^\\W\\d_]", "(?i:k)", "(?i:ß)", "(?i:[a-z])", "(?i:σ)"])
def test_every_character_there_is_is_taken_or_left_as_python_does(part):
    expression, kinds = Expression(part), re.compile(part)
    characters = [chr(code) for code in range(0x30000)]
    letters = {expression.letter(one) for one in characters if kinds.fullmatch(one)}
    others = {expression.letter(one) for one in characters if not kinds.fullmatch(one)}
    assert letters.isdisjoint(others)
    for one in ("k", "K", "é", "٣", "7", "ß", "ẞ", "σ", "ς", "\u2003", "\x1c", "中"):
        assert expression.last_in(one) == (one if kinds.fullmatch(one) else None), one


@pytest.mark.parametrize(
    ("pattern", "text", "answer"),
    [
        (r"\b(\d+)\b", "é5 und ५ oder 6é", "५"),
        (r"#### (.+)$", "so\n#### 18\n", "18"),
        (r"(?m)^(\d+)$", "5\n7\nacht", "7"),
        (r"(?i)answer:\s*\b([A-E])\b", "ANSWER: b, nicht c", "b"),
        ("(?x) a  # the first\n (\\d)", "a1a2", "2"),
        (r"(?P<answer>\d+) mm", "3 mm, 4 m", "3"),
        (r"^(.*)$", "all of it\nis the answer", "all of it\nis the answer"),
        (r"(a)|b", "ab", ""),
    ],
)
def test_usual_patterns_are_read(pattern, text, answer):
    assert Expression(pattern).last_in(text).strip() == answer == as_re_reads(pattern, text).strip()


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(?<=: )\d+", "looks ahead or behind"),
        (r"a(?!b)", "looks ahead or behind"),
        (r"(a)\1", "refers back"),
        (r"(?>a+)b", "atomic"),
        (r"a++b", "possessive"),
        (r"\d*", "may match nothing"),
        (r"(?:a*)*b", "repeats a part that may match nothing"),
        (r"(a{1000}){1000}", "repeats a part too often"),
        (r"(?:a{900}){3}", "too"),
        ("(" * 5_000 + "a" + ")" * 5_000, "nested too deeply"),
        ("(", "nor a regular expression"),
        ("a{99999999999999999999}", "nor a regular expression"),
    ],
)
def test_what_cannot_be_matched_in_one_pass_is_refused_by_name(pattern, why):
    with pytest.raises(InvalidValue, match=why) as refused:
        Expression(pattern)
    assert pattern[:20].replace("\\", "\\\\") in str(refused.value)


def test_no_pattern_and_no_text_can_hang():
    """In a process of its own: with a matcher that backtracks it would not end in anybody's lifetime."""
    program = (
        "import sys; from demur.answers.extraction.custom import parse_extractor as parse\n"
        f"for pattern in {HOSTILE!r}:\n"
        "    try: extract = parse(pattern)\n"
        "    except ValueError as refused: print('refused', refused, file=sys.stderr); continue\n"
        f"    for part in {PARTS!r}: extract(part * (20_000 // len(part)))\n"
        "print('read')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "read\n", done.stderr


def test_many_threads_may_read_with_one_expression():
    """Texts bring kinds of characters that the expression has not seen, each in its own thread."""
    expression = Expression(r"\b([^\W\d_]+)\d")
    texts = [f"{chr(0x4E00 + k)}{chr(0x391 + k % 20)}5 {chr(0x660 + k % 10)}." for k in range(400)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(expression.last_in, texts)) == [as_re_reads(expression.pattern, text) for text in texts]


def test_an_expression_can_be_sent_to_another_process():
    expression = pickle.loads(pickle.dumps(Expression(r"A = (\d+)")))
    assert expression.last_in("A = 3, A = 4") == "4"
