"""Features of questions: the same everywhere, for any script, and quickly."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from demur.questions.features import PLACES, SIZE, features

SCRIPTS = [
    "How many apples?",
    "苹果有多少个?",
    "كم عدد التفاحات؟",
    "Сколько яблок?",
    "\\frac{1}{2}x^2",
    "",
    "  \n",
    "\ud800",
    "🍎🍎",
]


def test_every_question_has_as_many_numbers_all_finite_whatever_its_script():
    table = features(SCRIPTS)
    assert table.shape == (len(SCRIPTS), SIZE)
    assert np.isfinite(table).all()
    lengths = (table[:, :PLACES] ** 2).sum(axis=1)
    assert lengths[[0, 1, 2, 3, 4, 8]] == pytest.approx(1)
    assert lengths[[5, 6]].tolist() == [0, 0]


def test_the_same_text_has_the_same_numbers_in_another_process():
    """Python's own hash differs from process to process."""
    code = "from demur.questions.features import features; print(features(['How many apples?']).sum().hex())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert told == features(["How many apples?"]).sum().hex()


def test_numbers_count_by_their_length_and_case_does_not_count_among_words():
    first, second = features(["Add 12 and 7", "add 34 AND 9"])
    assert (first[:PLACES] == second[:PLACES]).all()
    assert (first != second).any()  # capitals are part of the shape


def test_words_of_a_script_without_blanks_are_told_apart():
    one, two, three = features(["北京是中国的首都吗", "中国的首都是北京吗", "光合作用需要什么气体"])[:, :PLACES]
    assert one @ two == pytest.approx(1)
    assert one @ three < 0.5
