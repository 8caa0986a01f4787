"""What stands next to an answer and is none: comments, sources, asides, and sentences that repeat the question."""

from __future__ import annotations

import pytest

from demur.answers import auto, mathematics, text
from demur.answers.asked import Asked

CAPITALS = """
    France Paris|Peru Lima|Japan Tokyo|Kenya Nairobi|Norway Oslo|Chile Santiago|Egypt Cairo|Cuba Havana|Spain Madrid
    |Italy Rome|Austria Vienna|Greece Athens|Poland Warsaw|Ghana Accra|Nepal Kathmandu|Qatar Doha|Iran Tehran|Iraq Baghdad
    |Latvia Riga|Malta Valletta
"""
QUESTIONS = [tuple(pair.split()) for pair in CAPITALS.split("|")]
CLOSINGS = [
    "{a}. It is the capital of {c}.",
    "{a}. It's the capital of {c}.",
    "{a}. This is the capital of {c}.",
    "{a}. That is the capital city of {c}.",
    "{a}. It is a large city.",
    "{a}. It is known for its museums.",
    "{a}.\n\nIt is located on a river.",
    "{a}\n\nThe city has a long history.",
    "**{a}**\n\nThe capital of {c} is known for its markets.",
    "**{a}.**\n\nIt has been the seat of government for a long time.",
    "{a}\nConfidence: 90%",
    "{a}\n\n**Confidence:** high",
    "{a}. Confidence level: 9/10",
    "{a}\nCertainty: 95%",
    "{a}. My confidence is 80%.",
    "{a}\nSource: Wikipedia",
    "{a}\nSources: Wikipedia, Britannica",
    "{a}\n\nReference: CIA World Factbook",
    "{a}\nReferences: [1] an atlas",
    "{a}\nExplanation: the government sits there.",
    "{a}\n\n**Explanation:** The government sits there.",
    "{a}\nReasoning: the parliament is there.",
    "{a}\nRationale: it is in every atlas.",
    "{a}\nJustification: common knowledge.",
    "{a}\nNote: the name has changed over time.",
    "{a}\nEvidence: maps.",
    "{a}\nFun fact: it has a large zoo.",
    "{a}. I am confident in this answer.",
    "{a}. I'm very confident in this answer.",
    "{a}. I am 100% sure.",
    "{a}. I'm absolutely certain of that.",
    "{a}. I have double-checked this.",
    "{a}. I believe this is correct.",
    "{a}. This answer is based on what I know.",
    "{a}. The answer above is common knowledge.",
    "{a}. This is correct.",
    "{a}. That is a well-known fact.",
    "{a}. I hope this helps!",
    "{a}. Hope that helps.",
    "{a}. Let me know if you have other questions.",
    "{a}. Feel free to ask for more.",
    "{a}. Please verify this in an atlas.",
    "{a}. You can find it on any map.",
    "{a}. 95% sure.",
    "{a}. Very confident.",
    "{a}. According to Wikipedia.",
    "{a}. Based on my knowledge of geography.",
    "{a}. https://en.wikipedia.org/wiki/Capital",
    "{a}. [1]",
    "{a}. No further explanation is needed.",
    "{a}.\n\n**Why:** The government sits there.",
    "**{a}**\n\n- capital of {c}\n- on a river",
    "{a}. (It is the capital of {c}.)",
    "{a}. [See the atlas.]",
    "I would say {a}. It is the capital of {c}.",
    "{a}. Good question!",
    "{a}. Cheers!",
    "{a}! 🎉 Hope that helps.",
    "{a}. Have a nice day!",
    "{a}. You're welcome!",
    "{a}. Any other questions?",
    "{a}.\n\nReferences:\n1. Encyclopaedia Britannica",
    "{a}\n\n**Sources**\n- Britannica\n- Wikipedia",
    "{a}. Napoleon was crowned in 1804.",
    "{a}\n\nMuseums are free on Sundays.",
]


@pytest.mark.parametrize("closing", CLOSINGS)
@pytest.mark.parametrize("relation", [text, auto], ids=["text", "auto"])
def test_what_closes_a_text_is_not_the_answer(relation, closing):
    assert len(CLOSINGS) >= 44
    assert len(QUESTIONS) == 20
    keys = {None: set(), "asked": set()}
    for country, city in QUESTIONS:
        for known in keys:
            asked = Asked() if known is None else Asked(question=f"What is the capital of {country}?")
            found = relation.extract(closing.format(a=city, c="France"), asked).answer
            assert found is not None
            assert city in found
            keys[known].add(relation.key(found))
    assert [len(each) for each in keys.values()] == [20, 20]


SAID = """
    The city is {a}.|It is {a}.|{a} is the capital of {c}.|The capital of {c} is {a}.|Let me think. It is {a}.|I know this. It is {a}.
    |Great question! The capital of {c} is {a}.|Analysis\n\nThe capital of {c} is {a}.|Okay. It is {a}.|{c}\n\nIts capital is {a}.
"""


@pytest.mark.parametrize("said", [each.strip() for each in SAID.split("|")])
def test_sentences_that_hold_the_answer_are_still_read(said):
    for country, city in QUESTIONS:
        found = text.extract(said.format(a=city, c=country), Asked(question=f"What is the capital of {country}?"))
        assert city in found.answer


@pytest.mark.parametrize(
    "comment", ["It is the capital of France.", "I am 100% sure.", "Confidence: 90%", "I hope this helps."]
)
def test_a_text_that_only_comments_or_repeats_the_question_has_no_answer(comment):
    assert text.extract(comment, Asked(question="What is the capital of France?")).answer is None


def test_a_question_that_offers_its_answers_is_answered_in_its_own_words():
    asked = Asked(question="Which is larger, Paris or Rome?")
    assert text.key(text.extract("Rome is larger.", asked).answer) != text.key(
        text.extract("Paris is larger.", asked).answer
    )


@pytest.mark.parametrize(
    "closing",
    [
        "I am 100% sure.",
        "I'm 95% confident.",
        "I am about 90% certain of this.",
        "Confidence: 90%",
        "My confidence is 80%.",
        "Certainty: 99%",
        "**Confidence:** 10/10",
        "Explanation: 3 times 4.",
        "Reasoning: 5 + 6.",
        "Source: page 12.",
        "See page 12.",
        "This answer is 100% correct.",
        "I checked it 2 times.",
        "95% sure.",
        "Very confident: 10/10.",
        "(That is 1 dozen.)",
        "(See [1].)",
        "[Section 3.]",
    ],
)
def test_a_number_in_a_comment_is_no_result(closing):
    assert mathematics.extract(f"She has 79 apples. {closing}").answer == "79"


@pytest.mark.parametrize("relation", [text, mathematics, auto], ids=["text", "mathematics", "auto"])
@pytest.mark.parametrize(
    "written",
    [
        "So she has 12 apples. (That is a dozen.)",
        "So she has 12 apples. (A dozen!)",
        "So she has 12 apples. [That is a dozen.]",
        'So she has 12 apples. ("A dozen.")',
        "So she has 12 apples. (That is a dozen.)\n",
        "So she has 12 apples. **(That is a dozen.)**",
        "So she has 12 apples.\n\n(That is a dozen…)",
        "So she has 12 apples. (Why? It is a dozen.)",
        "So she has 12 apples (a dozen.)",
        "(So she has 12 apples.)",
        "[So she has 12 apples.]",
    ],
)
def test_a_text_may_end_in_a_sentence_in_brackets(relation, written):
    assert "12" in (relation.extract(written).answer or "")


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("Add 2½ cups.", "n:5/2"),
        ("Add 2 ½ cups of milk.", "n:5/2"),
        ("She needs ½ cup.", "n:1/2"),
        ("That leaves ¾ of the cake.", "n:3/4"),
        ("He ran 3¼ miles.", "n:13/4"),
        ("It fell to -2½ degrees.", "n:-5/2"),
        ("It costs $4½ in all.", "n:9/2"),
        ("She has ⅔ of a pie left.", "n:2/3"),
        ("He drank 1⅛ litres.", "n:9/8"),
        ("It takes 1⁄2 hour.", "n:1/2"),
        ("It takes 2 1/2 cups.", "n:5/2"),
        ("The 3 boxes hold a total of 45 pens.", "n:45"),
        ("The 4 friends paid a total of $60.", "n:60"),
        ("The 2 shops made a profit of 18 dollars.", "n:18"),
        ("These 5 pupils reached an average of 7 points.", "n:7"),
        ("The 6 bags have a sum of 30 marbles.", "n:30"),
        ("The 3 tanks lose a total of 12 litres.", "n:12"),
        ("The 7 dwarves found a total of 21 gems.", "n:21"),
        ("Both 9-year-olds collected a total of 14 shells.", "n:14"),
        ("The 2 trains carry a maximum of 300 people.", "n:300"),
        ("The 8 rows contain a total of 96 seats.", "n:96"),
        ("Lucy needs to buy 68 more fish to have a total of 280 fish.", "n:68"),
        ("She should prepare 182 grams to reach her desired total of 800 grams.", "n:182"),
        ("He needs 18 more for a total of 56 trees.", "n:18"),
        ("The 3 trucks used an amount of 50 litres.", "n:50"),
    ],
)
def test_numbers_of_sentences(written, key):
    assert mathematics.key(mathematics.extract(written).answer) == key


NAMES = """
    Yahoo! Inc.|Jeopardy! is a show|No. 5|Chanel No. 5|Mambo No. 5|Symphony No. 9|Op. 27 No. 2|No.5|Nos. 3 and 4
    |Oh! Co. Ltd.|Joomla! LLC|Guess? Inc.|Ben & Jerry's Inc.|Wham! Records|E.T. the Extra-Terrestrial|R.E.M. and U2
"""


@pytest.mark.parametrize("name", [name.strip() for name in NAMES.split("|")])
def test_a_name_with_a_stop_in_it_is_read_whole(name):
    for written in (name, f"The answer is {name}", f"I looked it up. The answer is: {name}"):
        found = text.extract(written, Asked(question="What did she buy?")).answer
        assert text.key(found) == text.key(name), written
