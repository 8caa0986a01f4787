"""One description of a pipeline: nested by stage, compared and fingerprinted in one place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.descriptions import Description
from demur.errors import InvalidValue

CHEAP = Description(
    sampling={"backend": "openai", "model": "small", "prompt": {"user": "{question}", "stop": []}, "temperature": 0.8},
    answers={"task": "math", "relation": "mathematics@3"},
    score={"name": "judge", "scorer": {"scorer": "judge", "model": "strict"}},
    vote={"weight": "exponential:1.0", "tie_break": None},
)
STRONG = Description(sampling={"backend": "openai", "model": "large"}, vote={"weight": "uniform"})

values = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=3), st.lists(st.integers(), max_size=2)
)
stages = st.dictionaries(st.sampled_from("abc"), st.one_of(values, st.dictionaries(st.sampled_from("xy"), values)))
descriptions = st.builds(Description, sampling=stages, answers=stages, score=stages, vote=stages)


@given(descriptions)
def test_a_description_survives_its_document(description):
    again = Description.of(description.document())
    assert again.document() == description.document()
    assert again.fingerprint == description.fingerprint
    assert description.differences(again) == []


@given(descriptions, descriptions)
def test_what_differs_is_told_either_way_round(one, other):
    assert bool(one.differences(other)) == bool(other.differences(one))


def test_each_difference_names_its_stage():
    other = Description(
        {**CHEAP.sampling, "temperature": 1.0, "prompt": {"user": "Now: {question}", "stop": []}},
        CHEAP.answers,
        {"name": "judge", "scorer": {"scorer": "judge", "model": "lenient"}},
        CHEAP.vote,
    )
    assert CHEAP.differences(other) == [
        "sampling.prompt.user is '{question}' in the policy, 'Now: {question}' here",
        "sampling.temperature is 0.8 in the policy, 1.0 here",
        "score.scorer.model is 'strict' in the policy, 'lenient' here",
    ]


def test_model_and_temperature_are_compared_where_both_sides_know_them():
    silent = Description(
        {"backend": "openai", "prompt": CHEAP.sampling["prompt"]}, CHEAP.answers, CHEAP.score, CHEAP.vote
    )
    assert CHEAP.differences(silent) == []
    assert silent.differences(CHEAP) == []


def test_two_models_can_stand_in_it():
    cascade = Description(
        **{name: getattr(CHEAP, name) for name in ("sampling", "answers", "score", "vote")}, then=STRONG
    )
    again = Description.of(cascade.document())
    assert again == cascade
    assert cascade.document()["then"]["sampling"]["model"] == "large"
    assert len({CHEAP.fingerprint, STRONG.fingerprint, cascade.fingerprint}) == 3
    assert "then.vote.weight is 'uniform' in the policy, None here" in cascade.differences(CHEAP)


def test_an_update_says_what_it_says_and_leaves_the_rest():
    updated = CHEAP.updated(Description(sampling={"temperature": 0.1}, then=STRONG))
    assert updated.sampling == {**CHEAP.sampling, "temperature": 0.1}
    assert updated.vote == CHEAP.vote
    assert updated.then is STRONG


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"dreaming": {}}, "no stage 'dreaming'.*newer than this demur"),
        ({"vote": 3}, "stage 'vote' of a description must be an object"),
        ([], "must be an object of stages"),
        ({"then": {"then": {"dreams": {}}}}, "no stage 'dreams'"),
    ],
)
def test_what_is_no_description_is_refused(document, said):
    with pytest.raises(InvalidValue, match=said):
        Description.of(document)
