"""What a pipeline says of its answers (labels, markers) reaches sampling, the vote, the policy and `ask`."""

from __future__ import annotations

import pytest

import demur as dm
from demur.backends.protocol import Completion, Settings
from demur.descriptions import Description
from demur.errors import InvalidValue
from demur.pipeline.from_policy import reading_of


class Sayer:
    """A model that says one of two things, by the number of the path."""

    name = "sayer"

    def describe(self):
        return {"backend": "sayer", "model": "sayer"}


def pipeline(**how):
    template = dm.Template("{question}")
    return dm.Pipeline(Sayer(), 2, None, template, Settings(), **how)


def read(made, text, question="Is it so?"):
    problem = dm.Problem("q", question, extra={"task": "mc"})
    return made.fitted([problem]).path(problem, Completion(0, text, "stop"))


def test_labels_and_markers_are_read_and_part_of_the_description():
    made = pipeline(labels=("True", "False"), markers=("My verdict:",))
    path = read(made, "The answer is False. My verdict: true")
    assert (path.answer, path.extra["extraction"], path.extra["found_at"]) == ("True", "marker", [33, 37])
    known = made.fitted([dm.Problem("q", "?", extra={"task": "mc"})]).description().answers
    assert (known["labels"], known["markers"]) == (["True", "False"], ["My verdict:"])
    assert "labels" not in pipeline().fitted([dm.Problem("q", "?", extra={"task": "mc"})]).description().answers


@pytest.mark.parametrize(
    ("how", "why"), [({"labels": ("a", "A")}, "given twice"), ({"markers": (" ",)}, "not be blank")]
)
def test_what_makes_no_sense_is_refused_at_once(how, why):
    with pytest.raises(InvalidValue, match=why):
        pipeline(**how)


def test_the_labels_of_a_run_compare_its_answers():
    source = dm.PoolSource([], Description(answers={"labels": ["yes", "no"]}))
    assert source.as_read(dm.FieldChoice()).labels == ("yes", "no")
    assert source.as_read(dm.FieldChoice(labels=("a",))).labels == ("a",)


def test_a_policy_whose_answers_were_read_by_older_rules_says_so():
    assert reading_of({"task": "math", "extract": "mathematics@3"}) is None
    assert reading_of({"task": "math", "extract": "A: (.*)"}) == "A: (.*)"
    with pytest.raises(InvalidValue, match=r"read by mathematics@1, and this demur reads them by mathematics@3.*again"):
        reading_of({"task": "math", "extract": "mathematics@1"})
