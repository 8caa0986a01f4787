"""Work on hostile text grows no faster than the text: four times the text, not sixteen times the time."""

from __future__ import annotations

import re
import time
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stopwatch import a_tenth, is_linear

from demur.answers import RELATIONS, auto, choice, equivalent, plain, text
from demur.answers.asked import NOTHING_SAID, Asked
from demur.answers.equivalence import auto as auto_keys
from demur.answers.equivalence import choice as choice_keys
from demur.answers.equivalence import text as text_keys
from demur.answers.equivalence.mathematics import keys as mathematics_keys
from demur.answers.extraction.marks import tagged
from demur.answers.extraction.part import Part
from demur.scoring.perplexity.server import _might_spell

HOSTILE = {
    "zeros": lambda n: "0" * n + "x",
    "zeros behind a point": lambda n: "0." + "0" * n + "x",
    "zeros between": lambda n: "1" + "0" * n + "." + "0" * n + "1x",
    "unclosed answers": lambda n: "<answer>" * (n // 8),
    "closed ones only": lambda n: "</answer>" * (n // 8),
    "boxes": lambda n: "\\boxed{" * (n // 7),
    "braces": lambda n: "{" * n,
    "blanks": lambda n: "the answer is" + " " * n + "x",
    "said over and over": lambda n: "the answer is " * (n // 14),
    "letters": lambda n: "A " * (n // 2),
    "digits with commas": lambda n: "1," * (n // 2),
    "signs": lambda n: "-+" * (n // 2),
    "fractions": lambda n: "\\frac{" * (n // 6),
    "sentences": lambda n: "a." * (n // 2),
    "sentences with blanks": lambda n: "Dr. " * (n // 4),
    "answers": lambda n: "answer " * (n // 7),
    "answers to questions": lambda n: "answer to " * (n // 10),
    "keys of JSON": lambda n: '"answer": "' * (n // 11),
    "unclosed strings": lambda n: '"answer": "' + "\\" * n,
    "hashes": lambda n: "#" * n,
    "lines of hashes": lambda n: "#### x\n" * (n // 7),
    "dollars": lambda n: "$" * n,
    "dollars apart": lambda n: "$ " * (n // 2),
    "openings of formulas": lambda n: "\\[" * (n // 2),
    "code": lambda n: "x = y\n" * (n // 6) + "print(x)",
    "calls": lambda n: "f(" * (n // 2),
    "fences": lambda n: "```\n" * (n // 4),
    "number words": lambda n: "twenty " * (n // 7),
    "compounds": lambda n: "5 hours " * (n // 8),
    "verbs": lambda n: "5 is " * (n // 5),
    "ranges": lambda n: "between " * (n // 8),
    "dates": lambda n: "1/" * (n // 2),
    "questions": lambda n: "\nQuestion:" * (n // 10),
    "bold": lambda n: "**" * (n // 2),
    "options": lambda n: "(A) " * (n // 4),
    "capitals": lambda n: "B" * n,
    "blank lines": lambda n: "\n" * n + "x",
    "reasoning": lambda n: "<think>" * (n // 7) + "</think>" * (n // 8),
    "initials": lambda n: "J. " * (n // 3),
    "quotes": lambda n: "'\"" * (n // 2),
    "brackets": lambda n: "([" * (n // 4) + "])" * (n // 4),
    "numbers in words": lambda n: "hundred and two " * (n // 16),
    "blanks between dashes": lambda n: " - " * (n // 3),
    "what cannot be seen": lambda n: "\u200b\u00ad" * (n // 2),
    "digits of another script": lambda n: "٣٫" * (n // 2),
    "thousands": lambda n: "1" + " 234" * (n // 4) + ",5,5",
    "pairs that never close": lambda n: "(1,2" * (n // 4),
    "nothing between dollars": lambda n: "$" + "\\[" * (n // 2) + "\\cup$",
    "formulas that end in a command": lambda n: "So " + "\\[" * (n // 2) + "\\cup",
    "programs that never end": lambda n: "ans = " + "ab1_" * (n // 4) + "?",
    "other digits": lambda n: "٣" * n + "x",
    "ends of turns": lambda n: "<|im_end|>\n" * (n // 11) + "x",
    "marks of sentences": lambda n: "!?" * (n // 2) + "x",
    "raised": lambda n: "x²₂½" * (n // 4),
}


def seconds(work, *arguments, runs=3):
    """The shortest of several runs, none of them from memory."""

    def once():
        for keys in (auto_keys, choice_keys, mathematics_keys, text_keys):
            keys.key.cache_clear()
        start = time.process_time()
        work(*arguments)
        return time.process_time() - start

    return min(once() for _ in range(runs))


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_keys_and_extraction_grow_with_the_text(relation, hostile):
    asked = Asked(options=("Paris", "Rome"), markers=("My answer",), question="When is the date?")
    for work in (relation.key, relation.extract, lambda written: relation.extract(written, asked)):
        # Eight times the text; sixty-four times the work if that were quadratic.
        assert is_linear(partial(seconds, work), hostile(20_000), hostile(160_000), times=24), work


_PIECES = r"""
    \[ \] \( \) \[\] $ $$ \boxed{ } { <answer> </answer> #### ( [ ) ] , 1, ½ 2½ = x=1 ** *a* _ ' " "answer": {"a": [1, ``` ~~~
    \begin{align} \end{align} \frac{ \text{a} \\ & ^{ _{ f( | \{1, a.b. J. Dr. no. D.C. B (A) A) 1-2 1:2: 12/12/ <think>
    </think> <|im_end|> <eos> <| Antwort: 答案 答案是 的 é ٣ ０ ١, % 100% €  Finish[ Finish[[a] print( # - -- − +- 1e5 0. .. … 9
    → => <= \in \cup [0,1) (0,1] \pm ! ?! !? .) .] (. 's n't :// http://a a@b. 1st m² km/h Yahoo! Inc. No.5 ⁄ 1⁄2
"""
_SENTENCES = """
    answer is |Answer: |A: |1, |1/2 |is |so |not |if |would |option A |hundred |twenty-|and |5 dollars and |jan 1, |wait, no it is
    |Q: |I am |It is the capital of |ans = ab|(Note: |Confidence: |Source: | or |[1]. |I am sure. |(So. |a total of 5 |It is a
"""
PIECES = [
    *_PIECES.split(),
    *_SENTENCES.replace("\n    ", "").split("|"),
    "\n",
    "\n\n",
    " ",
    "\t",
    "\u0301",
    "\u200b",
    "\n```",
]


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
def test_4000_repetitions_of_any_piece_take_a_tenth_of_a_second(relation):
    """Loops around patterns as well: to read an answer, to make its key, and to compare two."""
    asked = Asked(options=("Paris", "Rome"), markers=("My answer",), question="When is the date?")
    works = [relation.extract, lambda text: relation.extract(text, asked), relation.key]
    works.append(lambda text: equivalent(text, text + "!", relation))
    for piece in PIECES:
        for text_ in ("So " + piece * 4000 + "\\cup", piece * 4000 + " x."):
            for work in works:
                assert seconds(work, text_, runs=1) < 0.1 or seconds(work, text_, runs=5) < a_tenth(), piece


@pytest.mark.parametrize("code", ["de", "fr", "hi", "de-CH"])
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_numbers_of_a_language_are_read_in_one_linear_pass(code, hostile):
    asked = Asked.of(language=code)
    assert is_linear(lambda text: seconds(plain.key, text, asked), hostile(20_000), hostile(160_000), times=24)


@pytest.mark.parametrize("relation", [text, choice, auto], ids=lambda relation: relation.name)
def test_no_answer_that_is_looked_at_in_full_takes_a_tenth_of_a_second(relation):
    """The longest that is has 2000 characters; longer ones are compared as they stand."""
    pieces = [hostile(40) for hostile in HOSTILE.values()]
    for first in pieces:
        for second in pieces:
            answer = ((first + " " + second) * 40)[:1999]
            assert seconds(relation.key, answer, runs=1) < 0.1 or seconds(relation.key, answer) < a_tenth()


@given(st.text(alphabet="0123456789.+-x ", max_size=12))
def test_a_plain_key_is_what_the_old_pattern_made_it(answer):
    """The definition read literally; its pattern backtracks, which is why it is not used."""
    stripped = answer.strip()
    found = re.fullmatch(r"([+-]?)0*(\d*)(?:\.(\d*?)0*)?", stripped, re.ASCII)
    if found is None or not any(c.isdigit() for c in stripped):
        assert plain.key(answer) == (stripped or None)
        return
    number = (found.group(2) or "0") + (f".{found.group(3)}" if found.group(3) else "")
    assert plain.key(answer) == (f"-{number}" if found.group(1) == "-" and number != "0" else number)


@given(st.lists(st.sampled_from(["<answer>", "</answer>", "<ANSWER>", "</Answer>", "a", "b ", "\n"]), max_size=12))
def test_the_last_span_is_what_the_old_pattern_found(parts):
    written = "".join(parts)
    spans = re.findall(r"<answer>(.*?)</answer>", written, re.I | re.S)
    found = tagged(Part(written, 0, NOTHING_SAID))
    if spans:
        assert found.answer == spans[-1].strip(" \n")
    else:  # one that never closes holds the rest
        opened = re.search(r"<answer>", written, re.I)
        rest = written[opened.end() :].strip() if opened else ""
        assert (found.answer if found else "") == rest


@given(st.lists(st.sampled_from(["a", "b", "ab", "\ufffd", "\ufffd\ufffd"]), max_size=6), st.text("abé", max_size=14))
def test_unreadable_pieces_stand_for_one_to_eight_characters(pieces, wanted):
    spelt = "".join(pieces)
    readable = [re.escape(part) for part in re.split("\ufffd+", spelt)]
    assert _might_spell(spelt, wanted) == (re.fullmatch(".{1,8}?".join(readable), wanted, re.S) is not None)


def test_many_unreadable_pieces_are_not_tried_in_every_combination():
    # Each more piece would multiply it.
    assert is_linear(lambda n: seconds(_might_spell, "a\ufffd" * n + "b", "aé" * n + "c"), 10, 40, times=64)
