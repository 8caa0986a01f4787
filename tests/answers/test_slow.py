"""The slow path: a real math-verify in a real child process, its limits, its memory, and what it may join."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import string
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur import answers
from demur.answers import SlowPath, mathematics
from demur.answers.equivalence._formulas import formula as written
from demur.answers.equivalence._formulas import sides
from demur.errors import InvalidValue, MissingExtra
from demur.pools.respelled import accepting_spellings
from demur.records import Problem

SAME = {
    r"\sum_{k=1}^{3} k": "6", r"\sum_{k=1}^{10}2^k": "2046", r"\sum_{i=1}^{3} i^2": "14",
    r"\sum_{k=1}^{3} k(k+1)": "20", r"\sum_{k=1}^n k": r"\frac{n(n+1)}{2}", r"2\sum_{k=1}^{3} k": "12",
    r"\sum_{k=0}^{\infty}\frac{1}{2^k}": "2", r"\sum_{k=1}^{\infty}\frac1{k^2}": r"\frac{\pi^2}{6}",
    r"\sum_{i=1}^{2}\sum_{j=1}^{3} ij": "18", r"\sum_{k=1}^{3} 0.1k": "3/5", r"S = \sum_{k=1}^{3} k": "6",
    r"\sum_{k=1}^{3} k = 6": "6", "∑_{k=1}^{3} k": "6", r"\frac{\sum_{k=1}^3 k}{4}": "1.5", r"$\sum_{k=1}^{3} k$.": "6",
    r"\prod_{i=1}^{4} i": "24", r"\prod_{k=1}^{3}\frac{k+1}{k}": "4", r"\prod_{k=2}^{4}\left(1-\frac1k\right)": "1/4",
    r"\int_0^1 x dx": "1/2", r"\int_0^1 x\,dx": r"\frac12", r"\int_{0}^{1} x^2 \, \mathrm{d}x": r"\frac{1}{3}",
    r"\int_0^\pi \sin x \, dx": "2", r"\int_0^1 e^x dx": "e-1", r"\int_0^x t \, dt": r"\frac{x^2}{2}",
    r"\int_0^1 x(1-x)dx": "1/6", r"\int_0^1 \int_0^2 xy \, dx \, dy": "1", r"\int_0^1 \frac{1}{1+x^2} dx": r"\pi/4",
    r"\int_1^e \frac{1}{x} dx": "1", r"\int_{0}^{\pi/2} \cos(x) dx": "1.0",
    r"\lim_{x\to 0}\frac{\sin x}{x}": "1", r"\lim_{x\to 2}\frac{x^2-4}{x-2}": "4", r"\lim_{x\to\infty}\frac{2x+1}{x}": "2",
    r"\lim_{h \to 0} \frac{(x+h)^2 - x^2}{h}": "2x", r"\lim_{n\rightarrow\infty}\left(1+\frac{1}{n}\right)^n": "e",
    r"\lim_{x\to 0}\frac{1-\cos x}{x^2}": "0.5", r"\lim_{x \to 0} \frac{e^x-1}{x}": "1",
    r"\binom{600}{2}": "179700", r"\binom{n}{2}": r"\frac{n(n-1)}{2}", r"\sum_{k=0}^{5}\binom{5}{k}": "32",
    r"\frac{302!}{301!}": "302", "9^{1311}": "3^{2622}", r"\gcd(12, 18)": "6", r"\operatorname{lcm}(4,6)": "12",
    r"\max(3,5)": "5", r"\lfloor 7/2 \rfloor": "3", r"\lceil \pi \rceil + 1": "5", r"\det\begin{pmatrix}1&2\\3&4\end{pmatrix}": "-2",
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}\begin{pmatrix}1&0\\1&1\end{pmatrix}": r"\begin{pmatrix}3&2\\7&4\end{pmatrix}",
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}\begin{pmatrix}1\\1\end{pmatrix}": r"\begin{pmatrix}3\\7\end{pmatrix}",
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}^2": r"\begin{pmatrix}7&10\\15&22\end{pmatrix}",
    r"3\begin{bmatrix}1&2\\3&4\end{bmatrix}": r"\begin{bmatrix}3&6\\9&12\end{bmatrix}",
}  # fmt: skip
"""Formulas, and what they come to."""
CHANGED_IN_VAIN = {
    r"q = \sum_{k=1}^{3} k", r"\lim_{x\to\infty}\frac{2x-1}{x}", r"\lim_{x\to\infty}\frac{2x+5}{x}", r"\sum_{k=0}^{9}\binom{5}{k}",
}  # fmt: skip
"""Formulas with one token changed that come to the same: another name, what vanishes in a limit, terms that are 0."""
APART = [
    ("4t", "4"), (r"\sum_{k=1}^{4} t", "4"), (r"\sum_{k=1}^{3} m", "3"), (r"\int_0^4 t \, dx", "4"), (r"x+\sum_{k=1}^{3} d", "x+3"),
    ("i=5", "i=-5"), (r"i = \sum_{k=1}^{3} k", "i = -6"), (r"e = \sum_{k=1}^{3} k", "e=5"), (r"\sum_{k=1}^{3} k = 7", "7"),
    (r"7 = \sum_{k=1}^{3} k", "6"), (r"x > \sum_{k=1}^{3} k", "6"), (r"x \ne \sum_{k=1}^{3} k", "6"), (r"\sum_{k=1}^{3} k < 7", "6"),
    ("1/2^99", "1/2^98"), (r"\sum_{k=99}^{99} \frac{1}{2^k}", r"\frac{1}{2^{98}}"), (r"\frac{1}{2004!}", r"\frac{1}{2006!}"),
    (r"\prod_{k=1}^{99} \frac12", "0"), (r"\sum_{k=1}^{2} 0.0000001", "0.0000001"), (r"\sum_{k=1}^{1} (10^{20}+0.5)", "10^{20}"),
    ("204_5", "204_6"), ("204_5", "204"), ("1112112_{3}", "1112112"), (r"\sum_{k=1}^{2} 10_2", "20"), (r"(\sum_{k=1}^{3} k)_7", "6"),
    (r"\sum_{k=1}^{3} k \text{ up}", r"\sum_{k=1}^{3} k \text{ down}"),
    (r"\sum_{k=1}^{3} k \text{ cm}", r"6 \text{ km}"), (r"\sum_{k=1}^{3} k \%", "6"), (r"\sum_{k=1}^{3} k^\circ", "6"),
    (r"6 \pmod{7}", "6"), (r"\sum_{k=1}^{3} k \bmod 4", "2"), (r"\pm\sum_{k=1}^{3} k", "6"), (r"\approx\sum_{k=1}^{3} k", "6"),
    ("16'4\"", "164"), ("528\"", "528"), ("7!!", "5040"), ("8^5 |z|^{80}", "8^5"), (r"\overline{AB} = 5", "5"), (r"\angle A = 30", "30A"),
    (r"\sum_{k=1}^{3} 1 000", "0"), (r"\sum_{k=1}^{2} 2\frac{1}{2}", "2"), (r"\sum_{k=1}^{2} 8(6)", "28"), (r"\sum_{k=1}^{1} 1/2x", "1/(2x)"),
    (r"\int x dx", r"\frac{x^2}{2}"), (r"\int_0^1 x", r"\frac{x^2}{2}"), (r"\frac{d}{dx} x^2", "x"), (r"\sum k", "k"), (r"\sum_{k=3}^{1} k", "-2"),
    (r"\lim_{x\to 0}\frac{|x|}{x}", "1"), (r"\lim_{x \to 0^-} \frac{|x|}{x}", "1"), (r"\int_{-1}^1 \frac1x dx", "0"),
    (r"\sum_{k=1}^{\infty}\frac{1}{k^3}", r"3\zeta"), (r"\gamma\sum_{k=1}^{1} 1", "0.5772156649015329"), (r"\sum_{k=1}^{3} A", "3a"),
    (r"\sum_{k=1}^{3} I", "3i"), (r"\sum_{k=1}^{3} k \text{ or } 7", "6"), (r"\sum_{k=1}^{3} k, 7", "6"), (r"\{\sum_{k=1}^{3} k\}, 7", "6"),
    (r"1+2+\cdots+10", "13"), ("k^n + t^n + n^{(k + t)", "k^n + t^n"), ("C(14, 5) - C(8, 5)", "9C"), ("{{ (5000 - 3755) // 15 }}", "83"),
]  # fmt: skip
"""Pairs that are not the same, such as math-verify, its parser or a hasty reader takes for one."""

TOKENS = re.findall(r"\\[a-zA-Z]+|.", " ".join([*SAME, *(a for a, _ in APART)]))


@pytest.fixture(scope="module")
def slow():
    with SlowPath(seconds=20.0) as path:
        yield path


@pytest.mark.parametrize(("formula", "value"), SAME.items())
def test_a_formula_is_what_it_comes_to(slow, formula, value):
    keys = answers.classes([formula, value], slow=slow)
    assert keys == [mathematics.key(value)] * 2 or (keys[0] == keys[1] and mathematics.key(value).startswith("s:"))


@pytest.mark.parametrize(("a", "b"), APART)
def test_what_is_not_the_same_stays_apart_whatever_math_verify_says(slow, a, b):
    first, second = answers.classes([a, b], slow=slow)
    assert first != second


def test_a_formula_with_one_token_changed_comes_to_something_else(slow):
    """Of each formula: every digit another, every letter another, every sign another."""
    others = {"+": "-", "-": "+", **{digit: str((int(digit) + 4) % 10) for digit in "0123456789"}}
    unchanged = []
    for formula in SAME:
        for token in re.finditer(r"\\[a-zA-Z]+|[a-zA-Z]|[-+0-9]", formula):
            other = others.get(token.group(), "q" if len(token.group()) == 1 else None)
            if other is not None:
                mutant = formula[: token.start()] + other + formula[token.end() :]
                first, second = answers.classes([mutant, SAME[formula]], slow=slow)
                unchanged += [mutant] * (first == second)
    assert set(unchanged) == CHANGED_IN_VAIN


@pytest.mark.parametrize(
    "formula",
    ["2(3)", "8(6)+1", "(3)(4)", r"2\pi(3)", r"\frac12 x", r"\frac1{3}", r"\frac{1}{2}\sqrt{3}", "x^10", r"\sqrt 10", r"\sqrt2 x", "-x^2",
     "2^{3^2}", "a/b/c", "a/b+c", "3x(x+1)", "x(x+1)(x+2)", r"\sin 2x", r"\sin x \cos x", r"\sin^2 x", r"\log_2(8x)", r"\ln(x)+1", r"\log x",
     r"e^{2x}", r"2e^{i\pi}", "|x-y|z", r"4!\cdot 2", r"\binom{5}{2}", r"\theta x_1", r"\sqrt[3]{x}", "0.25x", r"\dfrac{x}{2y}", "xyz",
     r"x\times y\div z", r"\left(\frac{x}{y}\right)^{-1}", r"\frac{x+1}{x-1}(x+2)", r"\cos{3x} \cdot y", r"\exp(x)y", "Ax-B+1"],
)  # fmt: skip
def test_a_formula_means_to_math_verify_what_it_means_to_the_rules(slow, formula):
    """Asked what the rules know: nothing in how a formula is written out for it lets its parser stray."""
    [exactly, *_] = slow._work_out(written(formula))
    assert mathematics.key(f"${exactly}$") == mathematics.key(formula)


@given(
    st.text(max_size=400)
    | st.text("\\\\{}()[]|^_&,=!$\"'* 0123ndxk+-/.", max_size=400)
    | st.lists(st.sampled_from(TOKENS)).map("".join)
)
def test_any_text_is_a_formula_or_none(text):
    for side in sides(text) or []:
        if (once := written(side)) is not None:
            assert written(once) == once, "what is written out stays as it is"


def test_brackets_without_end_are_no_formula():
    for bracket in "({[|":
        assert written(bracket * 300) is None
        assert written(bracket * 100 + "1" + {"(": ")", "{": "}", "[": "]", "|": "|"}[bracket] * 100) is None


def test_it_merges_what_the_rules_compare_as_text_and_nothing_else():
    pool = ["\\sum_{k=1}^{3} k", "6", "6.0", "7", None]
    assert mathematics.key(pool[0]).startswith("s:")
    with SlowPath() as slow:
        keys = answers.classes(pool, slow=slow)
        assert keys == ["n:6", "n:6", "n:6", "n:7", None]
        # Order changes nothing, and what the rules decide is never asked.
        assert answers.classes(pool[::-1], slow=slow) == keys[::-1]
        assert list(slow.readings) == ["\\sum_{k = 1}^{3} k"]
        assert slow.asked == 1
    assert answers.classes(pool)[0] != "n:6"  # off unless asked for


def test_sentences_units_and_broken_latex_are_never_asked_about():
    pool = [
        "300 \\text{ acres of corn and } 200 \\text{ acres of wheat}",
        "300",
        "about 300?",
        "\\frac{300}{1",
        "300 @ 5",
    ]
    with SlowPath() as slow:
        assert len(set(answers.classes(pool, slow=slow))) == len(pool)
        assert slow.asked == 0


def test_a_pair_that_runs_into_a_limit_is_different_and_counted_and_the_next_one_is_served():
    with SlowPath(seconds=4.0) as slow:
        assert not slow.same("9^{9^{9^{9}}}", "1")
        assert slow.killed == 1
        assert slow.same("\\frac{1}{2}", "0.5")


def test_a_formula_that_runs_into_a_limit_has_no_value_and_is_counted(tmp_path, monkeypatch):
    pool = ["\\sum_{k=1}^{1} 9^{9^{9^{9}}}", "1", "\\sum_{k=1}^{1} 1"]
    with SlowPath(seconds=4.0, store=tmp_path / "v.json") as slow:
        keys = answers.classes(pool, slow=slow)
        assert keys[0] != keys[1] == keys[2]
        assert slow.killed == 1
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with SlowPath(store=tmp_path / "v.json") as again:
        assert answers.classes(pool, slow=again) == keys
        assert again.asked == 0


def test_verdicts_and_values_are_stored_and_replayed_without_a_child(tmp_path, monkeypatch):
    store = tmp_path / "verdicts.json"
    pool = ["\\sum_{k=1}^{n} k", "n(n+1)/2", "n(n+1)"]
    with SlowPath(store=store) as slow:
        keys = answers.classes(pool, slow=slow)
        first = slow.same("\\sum_{k=1}^{3} k", "6")
    assert keys[0] == keys[1] != keys[2]
    document = json.loads(store.read_text())
    assert document["version"] == 2
    assert ["6", "\\sum_{k=1}^{3} k", first] in document["verdicts"]
    assert list(document["readings"]) == ["\\sum_{k = 1}^{n} k"]
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with SlowPath(store=store) as again:
        assert again.same("6", "\\sum_{k=1}^{3} k") == first
        assert answers.classes(pool, slow=again) == keys
    assert json.loads(store.read_text()) == document


def test_a_stored_verdict_joins_nothing_that_has_another_value(tmp_path, monkeypatch):
    store, pool = tmp_path / "v.json", ["\\sum_{k=1}^{3} k", "6", "7", "\\sum_{k=1}^{2} k", "\\frac{6}{1"]
    with SlowPath(store=store) as slow:
        keys = answers.classes(pool, slow=slow)
    document = json.loads(store.read_text())
    document["verdicts"] = [[a, b, True] for a in pool for b in pool if a < b]
    store.write_text(json.dumps(document))
    with SlowPath(store=store) as again:
        assert answers.classes(pool, slow=again) == keys


def test_a_missing_math_verify_names_the_command_that_installs_it(tmp_path, monkeypatch):
    impostor = tmp_path / "python"
    impostor.write_text("#!/bin/sh\necho missing\n")
    impostor.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(impostor))
    with pytest.raises(MissingExtra, match=r"python -m pip install 'math-verify==0.9.0'"):
        SlowPath().same("a", "b")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("", "Expecting value"), ("{", "cannot be read as verdicts"), ("{}", "not a file of verdicts"), ("[1]", "not a file of verdicts"),
     ('{"format": "demur-verdicts", "verdicts": [["a", "b", true]]}', "they are of version 1, and this demur has version 2"),
     ('{"format": "demur-verdicts", "version": 3, "verdicts": [], "readings": {}}', "they are of version 3"),
     ('{"format": "demur-verdicts", "version": 2, "verdicts": []}', "each reading must be a list of texts"),
     ('{"format": "demur-verdicts", "version": 2, "verdicts": [["a", "b", 1]], "readings": {}}', "true or false"),
     ('{"format": "demur-verdicts", "version": 2, "verdicts": [["a", "b"]], "readings": {}}', "true or false"),
     ('{"format": "demur-verdicts", "version": 2, "verdicts": {"a": true}, "readings": {}}', "true or false"),
     ('{"format": "demur-verdicts", "version": 2, "verdicts": [], "readings": {"a": "6"}}', "a list of texts"),
     ('{"format": "demur-verdicts", "version": 2, "verdicts": [], "readings": {"a": [6]}}', "a list of texts"),
     ('{"format": "demur-policy", "version": 2}', "not a file of verdicts")],
)  # fmt: skip
def test_a_store_that_holds_anything_else_is_refused_in_a_line_that_says_what_to_do(tmp_path, content, complaint):
    (tmp_path / "v.json").write_text(content)
    with pytest.raises(InvalidValue, match="cannot be read as verdicts") as refused:
        SlowPath(store=tmp_path / "v.json")
    assert complaint in str(refused.value)
    assert "name another file" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_child_that_somebody_kills_is_started_again_and_asked_the_same():
    with SlowPath() as slow:
        assert slow.same("\\frac{1}{2}", "0.5")
        first = slow._child.process.pid
        os.kill(first, signal.SIGKILL)
        slow._child.process.wait()
        assert slow.same("\\frac{1}{4}", "0.25"), "the death of a child is no verdict"
        assert slow._child.process.pid != first
        assert (slow.restarted, slow.killed) == (1, 0)


def test_a_child_that_is_killed_while_it_thinks_is_started_again():
    with SlowPath(seconds=30.0) as slow:
        slow.same("\\frac{1}{2}", "0.5")
        hanging = slow._child.process
        os.kill(hanging.pid, signal.SIGSTOP)
        threading.Timer(0.3, os.kill, (hanging.pid, signal.SIGKILL)).start()
        assert slow.same("\\frac{1}{4}", "0.25")
        assert (slow.restarted, slow.killed) == (1, 0)


def test_children_that_always_end_are_not_started_for_ever(tmp_path, monkeypatch):
    dying = tmp_path / "python"
    dying.write_text(f"#!/bin/sh\necho x >> {tmp_path}/starts\necho ready\nread line\nexit 1\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    with SlowPath() as slow:
        assert not slow.same("a", "b")
        assert (slow.restarted, slow.killed) == (3, 1)
    assert (tmp_path / "starts").read_text().count("x") == 3


class Scripted:
    """A child that says what it is told of formulas, and whatever comes to mind of pairs."""

    def __init__(self, values: dict[str, list[str]], seed: int = 0, always: bool | None = None) -> None:
        self.values, self.seed, self.always = values, seed, always
        self.asked = self.killed = self.restarted = 0

    def ask(self, what, *of):
        self.asked += 1
        if what == "value":
            return [list(string.ascii_letters), self.values.get(of[0], [])]
        return random.Random(f"{self.seed}{sorted(of)}").random() < 0.6 if self.always is None else self.always

    def stop(self):
        pass


def scripted(*values: tuple[str, str], **manners) -> SlowPath:
    slow = SlowPath()
    slow._child = Scripted({formula: [value] for formula, value in values}, **manners)
    return slow


def test_a_merged_class_keeps_the_key_that_the_rules_can_read():
    pool = ["C", "C", "C", "\\sum_{k = 1}^{1} C"]
    assert answers.classes(pool, slow=scripted((pool[3], "C"))) == [mathematics.key("C")] * 4
    assert answers.classes(pool[::-1], slow=scripted((pool[3], "C"))) == [mathematics.key("C")] * 4


def test_math_verify_may_still_say_that_answers_of_one_value_are_not_the_same():
    pool = ["x+x", "\\sum_{k = 1}^{2} x"]
    for verdict in (True, False):
        slow = scripted((pool[1], "2x"), always=verdict)
        assert len(set(answers.classes(pool, slow=slow))) == (1 if verdict else 2)
        assert len(slow.disputed) == (0 if verdict else 1)


def test_no_answer_is_a_bridge_between_classes_that_the_rules_tell_apart():
    """Whatever the verdicts: an answer has one value, and at most one readable class has it."""
    pool = ["6", "7", "\\sum_{k = 1}^{3} k", "\\sum_{j = 1}^{3} j", "\\sum_{i = 1}^{7} 1"]
    values = zip(pool[2:], ["6", "6", "7"], strict=True)
    keys = answers.classes(pool, slow=scripted(*values, always=True))
    assert keys == ["n:6", "n:7", "n:6", "n:6", "n:7"]


FORMULAS = [f"\\sum_{{k = 1}}^{{{number}}} k" for number in range(1, 7)]
SPELLINGS = ["6", "6.0", "\\frac{12}{2}", "7", "x+1", "1+x", "C", "no idea", "?!"]


@given(
    pool=st.lists(st.sampled_from([*FORMULAS, *SPELLINGS, None]), min_size=1, max_size=10),
    gold=st.lists(st.sampled_from([*FORMULAS, *SPELLINGS]), min_size=1, max_size=3),
    values=st.lists(st.sampled_from([*SPELLINGS, FORMULAS[0], ""]), min_size=len(FORMULAS), max_size=len(FORMULAS)),
    seed=st.integers(0, 50),
)
def test_no_right_answer_becomes_wrong_whatever_is_said_of_it(pool, gold, values, seed):
    said = [(formula, value) for formula, value in zip(FORMULAS, values, strict=True) if value]
    keys = [mathematics.key(answer) for answer in pool]
    spelled = scripted(*said, seed=seed).spellings(keys, pool)
    after = [spelled.get(key, answer) for key, answer in zip(keys, pool, strict=True)]
    problem = accepting_spellings(Problem("q", gold=tuple(gold)), spelled, mathematics.key)
    for before, now in zip(pool, after, strict=True):
        assert answers.is_correct(now, problem.gold) or not answers.is_correct(before, tuple(gold))
    # Answers spelled so are the merged classes by the rules alone, and what the rules can read is left as it is.
    merged = answers.classes(pool, slow=scripted(*said, seed=seed))
    assert [mathematics.key(answer) for answer in after] == merged
    assert all(
        now == before for now, before, key in zip(after, pool, keys, strict=True) if not str(key).startswith("s:")
    )
    # The order of paths changes nothing.
    assert answers.classes(pool[::-1], slow=scripted(*said, seed=seed)) == merged[::-1]
    # A second run finds nothing left to merge.
    assert scripted(*said, seed=seed).spellings(merged, after) == {}
