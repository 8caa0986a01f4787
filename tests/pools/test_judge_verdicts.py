"""Several verdicts on answers of one key: the last one stands, but a person's word goes before any judge's."""

from __future__ import annotations

from itertools import permutations

import pytest

from demur.pools.verdicts import Verdict, Verdicts


def said(answer, *, agrees=None, person=None, by="judge"):
    return Verdict("digest", "Where?", answer, ("Paris",), agrees, None if agrees is None else by, person)


def found(*rows, key_of=str.lower, accepted=("Paris",)):
    return Verdicts(rows).on("digest", accepted, key_of)


@pytest.mark.parametrize("last", [True, False])
def test_of_two_spellings_that_are_one_key_the_last_verdict_stands(last):
    verdicts = found(said("The city", agrees=not last), said("THE CITY", agrees=last))
    assert {key: verdict.right for key, verdict in verdicts.items()} == {"the city": last}
    assert verdicts["the city"].answer == "THE CITY"


@pytest.mark.parametrize("rows", list(permutations(range(3))))
def test_a_person_s_word_on_one_spelling_goes_before_the_judge_s_on_others_in_any_order(rows):
    every = [said("a", agrees=True), said("A", person=False), said("A ", agrees=True)]
    verdicts = found(*(every[row] for row in rows), key_of=lambda text: text.strip().lower())
    assert not verdicts["a"].right


def test_of_two_people_the_last_one_says_it():
    assert found(said("a", person=True), said("A", person=False))["a"].person is False
    assert found(said("a", person=False), said("A", person=True))["a"].person is True


def test_what_is_no_answer_or_is_about_other_gold_says_nothing():
    assert found(said("a", agrees=True), key_of=lambda _: None) == {}
    assert found(said("a", agrees=True), accepted=("Paris", "Lutetia")) == {}
    assert Verdicts([said("a", agrees=True)]).on("other", ("Paris",), str.lower) == {}
