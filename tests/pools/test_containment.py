"""Open answers that hold the words of gold are right; what only looks as if it held them is not."""

from __future__ import annotations

import time

import pytest

from demur.answers import text
from demur.pools.containment import MOST_WORDS, holds


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("It was William Shakespeare.", "William Shakespeare"),
        ("William Shakespeare, the playwright", "shakespeare"),
        ("the United States of America", "United States"),
        ("Paris, France", "Paris"),
        ("The capital is Paris", "Paris"),
        ("Canberra (Australia)", "Canberra"),
        ("He was born on 7 May 1824", "7 May 1824"),
        ("in 1912", "1912"),
        ("It was the year 1912.", "1912"),
        ("The Apollo 11 mission", "Apollo 11"),
        ("they are called the Beatles", "The Beatles"),
        ("Simon and Garfunkel, of New York", "Simon and Garfunkel"),
        ("the film No Country for Old Men", "No Country for Old Men"),
        ("Un niño viejo", "niño"),
        ("PARIS is the capital", "paris"),
    ],
)
def test_an_answer_that_holds_the_words_of_gold_is_right(answer, gold):
    assert holds(answer, gold)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("not Paris", "Paris"),
        ("Paris is not the capital", "Paris"),
        ("It isn't Paris", "Paris"),
        ("anywhere but Paris", "Paris"),
        ("Lyon rather than Paris", "Paris"),
        ("everyone except Ringo", "Ringo"),
        ("neither Paris nor Rome", "Paris"),
        ("Paris or London", "Paris"),
        ("Paris/London", "Paris"),
        ("maybe Paris", "Paris"),
        ("I don't know if it is Paris", "Paris"),
        ("Paris and London", "Paris"),
        ("London & Paris", "Paris"),
        ("Paris, London, Rome", "Paris"),
        ("Berlin; Madrid; Paris; Oslo", "Paris"),
        ("- Berlin\n- Madrid\n- Paris", "Paris"),
        ("near Paris", "Paris"),
        ("before World War II", "World War II"),
        ("Parisian", "Paris"),
        ("Par is", "Paris"),
        ("Shakespeare William", "William Shakespeare"),
        ("William the Conqueror Shakespeare", "William Shakespeare"),
        ("Un nino viejo", "niño"),
    ],
)
def test_negations_alternatives_lists_and_other_words_hold_nothing(answer, gold):
    assert not holds(answer, gold)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("Yes, both are actors", "no"),
        ("No, both are actors", "yes"),
        ("yes they are", "yes"),
        ("It is true", "true"),
        ("both of them", "both"),
        ("option B", "B"),
        ("plan A", "A"),
        ("US Steel", "US"),
        ("right hand", "right"),
    ],
)
def test_short_and_common_gold_must_be_the_whole_answer(answer, gold):
    assert not holds(answer, gold)


@pytest.mark.parametrize("gold", ["yes", "B", "US", "Paris", "1912", "7 May 1824"])
def test_gold_itself_is_held_however_short(gold):
    assert holds(f" {gold}. ", gold)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("5 million", "5"),
        ("5 billion", "5"),
        ("5 dozen", "5"),
        ("less than 5", "5"),
        ("at least 5", "5"),
        ("minus 5", "5"),
        ("3 north", "3"),
        ("5 percent", "5"),
        ("5 or 6", "5"),
        ("from 5 to 7", "5"),
        ("-5", "5"),
        ("15", "5"),
        ("5.5", "5"),
        ("between 1912 and 1914", "1912"),
        ("before 1912", "1912"),
        ("Apollo 11 and Apollo 12", "Apollo 11"),
        ("7 May 1824 or 8 May 1824", "7 May 1824"),
        ("Henry VIII 8 2", "Henry VIII 8"),
    ],
)
def test_a_number_is_held_only_where_nothing_changes_it(answer, gold):
    assert not holds(answer, gold)


@pytest.mark.parametrize(("answer", "gold"), [("C#", "C++"), ("B+", "B-"), ("Paris!", "paris"), ("the US", "US")])
def test_whole_answers_are_the_relations_business(answer, gold):
    assert holds(answer, gold) == (text.key(answer) == text.key(gold))


def test_a_list_of_everything_is_too_long():
    filler = " ".join(f"word{chr(97 + place)}" for place in range(MOST_WORDS - 1))
    assert holds(f"{filler} Paris", "Paris")
    assert not holds(f"{filler} wordz Paris", "Paris")


def test_blank_texts_hold_nothing_and_are_held_by_nothing():
    assert not holds("", "Paris")
    assert not holds("Paris", "")
    assert not holds("the", "Paris")
    assert not holds("Paris", "...")


def test_long_texts_cost_no_more_than_short_ones():
    started = time.process_time()
    for length in (10**3, 10**5, 10**6):
        assert not holds("Paris, " * length, "Paris")
        assert not holds("Paris", "Paris " * length)
    assert time.process_time() - started < 0.5
