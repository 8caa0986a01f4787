"""How texts close: styles of many prompts and models, each with what it says and with near misses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demur.answers import choice, mathematics, text
from demur.answers.asked import Asked

QUANTITIES = ["42", "-7", "3/4", "1,234", "0.5", "12.5%", "$18", "1234567"]
STYLES = {
    "boxed": "Adding up gives the total. \\boxed{{{a}}}",
    "boxed in dollars": "Thus we have $\\boxed{{{a}}}$.",
    "boxed, display": "Therefore:\n\\[\n\\boxed{{{a}}}\n\\]",
    "hashes": "3 + 4 = 7\nThat is all.\n#### {a}",
    "tag": "I add them.\n<answer>{a}</answer>",
    "tag, upper case": "I add them.\n<ANSWER> {a} </ANSWER>",
    "tag that never closes": "I add them.\n<answer>{a}",
    "JSON": '{{"reasoning": "Add 3 and 4.", "answer": "{a}"}}',
    "JSON, fenced": '```json\n{{\n  "reasoning": "Add 3 and 4.",\n  "answer": "{a}"\n}}\n```',
    "JSON, broken elsewhere": '{{"reasoning": "say "add" 3\nand 4", "final_answer": "{a}"}}',
    "JSON in Python": "{{'answer': '{a}', 'sure': True}}",
    "final answer": "Add 3 and 4.\n\nFinal Answer: {a}",
    "final answer, bold": "Add 3 and 4.\n\n**Final Answer:** {a}",
    "final answer, all bold": "Add 3 and 4.\n\n**Final Answer: {a}**",
    "final answer, heading": "Add 3 and 4.\n\n### Final Answer\n\n{a}",
    "final answer, bold heading": "Add 3 and 4.\n\n**Final Answer**\n{a}",
    "answer": "Add 3 and 4.\nAnswer: {a}",
    "answer, bold value": "Add 3 and 4.\nAnswer: **{a}**",
    "answer, next line": "Add 3 and 4.\nAnswer:\n{a}",
    "answer, arrow": "Add 3 and 4.\nAnswer -> {a}",
    "answer, upper case": "ADD 3 AND 4.\nANSWER: {a}",
    "answer is": "Add 3 and 4. The answer is {a}.",
    "answer is, colon": "Add 3 and 4. The answer is: {a}",
    "so the answer is": "There are 3 and 4, so the answer is {a}.",
    "final answer is": "Add 3 and 4. So the final answer is {a}. I hope it is correct.",
    "correct answer is": "Add 3 and 4. The correct answer is therefore {a}.",
    "answer to the question": "Add 3 and 4. Hence the answer to the question is {a}.",
    "answer would be": "Add 3 and 4. The answer would be {a}.",
    "answer comes out": "The answer comes out to be {a}.",
    "answer equals": "Add them up. The answer equals {a}.",
    "ans": "x = 3; y = 4;\nans = {a}",
    "letter A": "Q: How many?\nA: {a}",
    "twice, the last counts": "The answer is 99. Wait, I forgot one. The answer is {a}.",
    "then praise": "The answer is {a}. So our answer is correct.",
    "then a check": "The answer is {a}. This makes sense.",
    "behind a reasoning block": "<think>The answer is 99.</think>\n\nThe answer is {a}.",
    "before a question it made up": "The answer is {a}.\n\nQuestion: What is 3 + 4?\nThe answer is 99.",
    "alone": "{a}",
}


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_a_quantity_in_every_style(style, quantity):
    written = style.format(a=quantity)
    found = mathematics.extract(written)
    assert found.answer is not None, written
    assert mathematics.key(found.answer) == mathematics.key(quantity), (written, found)
    assert found.span is not None
    assert written[slice(*found.span)].strip("*") == found.answer


FORMULAS = [r"\frac{3}{4}", r"2\sqrt{3}", "x^2+1", r"(1, \frac{\pi}{2})", r"[0, \infty)", r"\{1,2\}", r"12\pi"]
FORMULA_STYLES = {
    "dollars": "We find it. The answer is ${a}$.",
    "parentheses": r"We find it. The answer is \({a}\).",
    "display on the next lines": "We find it. The answer is:\n\\[\n{a}\n\\]",
    "two dollars": "We find it. The final answer is\n$$\n{a}\n$$",
    "bold": "**Answer:** ${a}$",
    "bare": "The answer is {a}",
    "last formula": "Adding $3$ and $4$ we find that the value is ${a}$.",
    "last displayed formula": "We simplify and get\n\\[ {a} \\]",
    "without dollars": "So the value is {a}",
    "JSON that lost its backslashes": '{{"answer": "{a}"}}',
    "box": "\\boxed{{{a}}}",
    "alone": "{a}",
    "alone, in dollars": "${a}$",
}


@pytest.mark.parametrize("style", FORMULA_STYLES.values(), ids=FORMULA_STYLES)
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_in_every_style(style, formula):
    found = mathematics.extract(style.replace("{a}", formula).replace("{{", "{").replace("}}", "}"))
    assert mathematics.key(found.answer) == mathematics.key(formula), found


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("Answer: Janet sells 3 eggs a day", "3"),
        ("The largest n is 34", "34"),
        ("So Tom has 12 apples in total.", "12"),
        ("In total, she pays 3 * 4 + 5 = 17 dollars.", "17"),
        ("Therefore, there are **27** ways to choose 3 of 9.", "27"),
        ("It takes her 5 hours, so 3 such trips take 15 hours.", "15"),
        ("That leaves .5 of the cake.", ".5"),
        ("The city has 12 000 people.", "12 000"),
        ("The city has 1,200,000 people.", "1,200,000"),
        ("He weighs 350g.", "350"),
        ("The field is 1,000.99m² in size.", "1,000.99"),
        ("This costs 4 1/2 dollars.", "4 1/2"),
        ("He had seven tickets left.", "seven"),
        ("Roger packed twenty-five boxes.", "twenty-five"),
        ("One of them had seven tickets left.", "seven"),
        ("He had only one.", "one"),
        ("The train leaves at 3:20 PM.", "3:20 PM"),
        ("It costs 5 million dollars.", "5 million"),
        ("The roots are \\boxed{2} and \\boxed{3}.", "2, 3"),
        ("So $x = \\boxed{1}$ and $y = \\boxed{2}$.", "x = 1, y = 2"),
        ("So $x = \\boxed{1}$ or $x = \\boxed{2}$.", "x = 1 or x = 2"),
        ("The values are \\boxed{1} or \\boxed{2}.", "1 or 2"),
        ("It is \\boxed{7}, that is $x = \\boxed{7}$.", "7"),
        ("We had \\boxed{2}. Wait, no: it is \\boxed{3}.", "3"),
        ("First \\boxed{2}, therefore \\boxed{3}.", "3"),
        ("The answer is $x=3$ and $y=4$.", "$x=3$ and $y=4$"),
        ("The answer is 5, not 6.", "5"),
        ("The answer is 5 because 6 is too large.", "5"),
        ("The answer is not 5. It is 6.", "6"),
        ("The answer is 5 (five).", "5"),
        ("The answer is between 3 and 4.", "between 3 and 4"),
        ("The answer is 5 dollars and 20 cents.", "5 dollars and 20 cents"),
        ("The answer is no solution.", "no solution"),
        ("#### Step 4: add them\nThat makes 9 in all.", "9"),
        ("1. Add 3.\n2. Add 4.\n3. This gives 7.", "7"),
        ("See equation 3. The total is 8.", "8"),
    ],
)
def test_which_number_a_text_ends_in(written, answer):
    assert mathematics.extract(written).answer == answer


@pytest.mark.parametrize(
    "written",
    [
        "```python\nx = 42\nprint(x)\n```",
        "```python\nx = 42\n```",
        "def total():\n    return 42",
        "apples = 3\npears = 4\nfruit = apples + pears\nanswer = fruit",
        "eggs_per_day = 16\nanswer = eggs_per_day * 2",
        "import math\nprint(math.sqrt(16))",
        "It happened on 6/18/2019.",
        "It happened on 2019-06-18.",
        "It takes 3-5 days.",
        "See version 1.2.3.",
        "We are done.",
        "Our answer is correct.",
        "The answer is right.",
        "Answer:",
        "**Answer:** ...",
        "```\n```",
        "---",
        "<answer></answer>",
        "",
    ],
)
def test_no_number_is_taken_from_code_or_a_date_or_praise(written):
    assert mathematics.extract(written).answer is None


CITIES = Asked(options=("Rome", "Paris", "New York", "York"), question="Which of these is in France?")
CHOICE_STYLES = {
    "said": "It is in France. The answer is {d}.",
    "said, colon": "Answer: {d}",
    "said, bold": "**Answer:** {d}",
    "said, bold whole": "**Answer: {d}**",
    "final": "Final Answer: {d}",
    "correct": "Thus the correct answer is {d}.",
    "best": "The best answer is {d} because it is in France.",
    "choice": "The correct choice is {d}.",
    "option": "So I would pick option {d}.",
    "option, is": "The correct option is {d}.",
    "boxed": "\\boxed{{{d}}}",
    "boxed in dollars": "The answer is $\\boxed{{{d}}}$.",
    "tag": "<answer>{d}</answer>",
    "JSON": '{{"answer": "{d}"}}',
    "hashes": "It is in France.\n#### {d}",
    "line": "It is in France.\n\n{d}",
    "alone": "{d}",
    "marker": "It is in France.\nMy pick => {d}",
}


@pytest.mark.parametrize("style", CHOICE_STYLES.values(), ids=CHOICE_STYLES)
@pytest.mark.parametrize("dress", ["B", "(B)", "(b)", "B.", "B)", "**B**", "b)", '"B"', "B. Paris", "(B) Paris"])
def test_a_letter_in_every_dress(style, dress):
    asked = Asked(options=CITIES.options, markers=("My pick =>",))
    assert choice.extract(style.format(d=dress), asked).answer == "B"


LABELS = Asked(labels=("True", "False", "Uncertain"))


@pytest.mark.parametrize(
    ("asked", "written", "answer"),
    [
        (CITIES, "It must be Paris.", "B"),
        (CITIES, "The answer is paris.", "B"),
        (CITIES, "The answer is New York.", "C"),
        (CITIES, "The answer is York.", "D"),
        (CITIES, "Not Rome. The answer is Paris, not Rome.", "B"),
        (CITIES, "The answer is A.", "A"),
        (CITIES, "The answer is A because Rome is not.", "A"),
        (CITIES, "The answer is for sure D, it can't be A or B", "D"),
        (CITIES, "The answer is not B. It is (C).", "C"),
        (CITIES, "The answer is (B).\n\nQuestion: Which city is large?\nOptions:\nA. Rome\nAnswer: (D)", "B"),
        (CITIES, "The answer is a cat.", None),
        (CITIES, "It is a cat", None),
        (CITIES, "The answer is A and C.", None),
        (CITIES, "The answer is either A or B.", None),
        (CITIES, "The answer is (A, C).", None),
        (CITIES, "I do not think that it is Rome or Paris.", None),
        (CITIES, "I'm sure that I know it", None),
        (LABELS, "The answer is True.", "True"),
        (LABELS, "Therefore, the statement is uncertain.", "Uncertain"),
        (LABELS, "Hence it is **False**", "False"),
        (LABELS, "Answer: uncertain", "Uncertain"),
        (LABELS, '{"answer": "false"}', "False"),
        (LABELS, "\\boxed{True}", "True"),
        (LABELS, "It is either True or False.", None),
        (LABELS, "The statement is not True.", None),
        (LABELS, "The answer is B.", None),
        (Asked(options=("True", "False", "Uncertain")), "The statement is False.", "B"),
        (Asked(options=("True", "False", "Uncertain")), "The answer is (c).", "C"),
        (Asked(labels=("no", "not enough info", "yes")), "Answer: Not enough info", "not enough info"),
        (Asked(labels=("no", "not enough info", "yes")), "So the answer is no.", "no"),
        (Asked(labels=("entail", "entailment")), "The label is entailment.", "entailment"),
        (Asked(labels=("unknown", "yes")), "The answer is unknown.", "unknown"),
        (Asked(), "The answer is True.", "True"),
        (Asked(), "The answer is yes.", "yes"),
        (Asked(), "The answer is (3).", "3"),
    ],
)
def test_which_choice_a_text_makes(asked, written, answer):
    assert choice.extract(written, asked).answer == answer


NAMES = ["Paris", "Washington, D.C.", "J. R. R. Tolkien", "Dr. No", "3.5", "St. Louis", "Toyota Motor Co., Ltd."]
TEXT_STYLES = {
    "tag": "I recall it.\n<answer>{a}</answer>",
    "JSON": '{{"answer": "{a}"}}',
    "box": "\\boxed{{{a}}}",
    "said": "I recall it. The answer is {a}",
    "so": "That is well known, so the answer is {a}",
    "colon": "Answer: {a}",
    "bold": "**Answer:** {a}",
    "heading": "### Answer\n{a}",
    "final": "Final answer: **{a}**",
    "hashes": "I recall it.\n#### {a}",
    "why": "The answer is {a}, because I recall it.",
    "alone": "{a}",
}


@pytest.mark.parametrize("style", TEXT_STYLES.values(), ids=TEXT_STYLES)
@pytest.mark.parametrize("name", NAMES)
def test_words_in_every_style(style, name):
    assert text.key(text.extract(style.format(a=name)).answer) == text.key(name)


@pytest.mark.parametrize(
    ("question", "written", "answer"),
    [
        (None, "The capital is Paris, so the answer is Paris.", "Paris"),
        (None, "He moved to the U.S. He lived in Paris.", "He lived in Paris"),
        (None, "It was made in the U.S. by hand.", "It was made in the U.S. by hand"),
        (None, "It rose by 3.5 percent.", "It rose by 3.5 percent"),
        (None, "Our answer is correct. Paris.", "Paris"),
        (None, "...", None),
        (None, "```", None),
        (None, "I don't know.", None),
        (None, "Answer: Not Without My Daughter", "Not Without My Daughter"),
        ("What is the capital of France?", "It is Paris.", "Paris"),
        ("What is the capital of France?", "Paris is the capital of France.", "Paris"),
        ("What is the capital of France?", "The capital of France is Paris.", "Paris"),
        ("What is the capital of France?", "Yes, it's Paris.", "Yes, it's Paris"),
        ("Are Tom and Bob American?", "Yes, both are American.", "Yes"),
        ("Are Tom and Bob American?", "No. Only Tom is.", "No"),
        ("Are Tom and Bob American?", "Both are, so the answer is yes.", "yes"),
        ("Are Tom and Bob American?", "Therefore, yes.", "yes"),
        ("Are Tom and Bob American?", "Nobody knows.", "Nobody knows"),
        ("Is it Tom or Bob?", "It is Bob.", "Bob"),
        ("What is the date tomorrow in MM/DD/YYYY?", "Tomorrow will be May 6, which is 05/06/2020.", "05/06/2020"),
    ],
)
def test_what_an_open_answer_says(question, written, answer):
    assert text.extract(written, Asked(question=question)).answer == answer


def test_a_marker_of_ones_own_comes_first():
    asked = Asked(markers=("My verdict:", "Conclusion"))
    written = "The answer is 5.\n\\boxed{6}\nMy  verdict: 7"
    assert mathematics.extract(written, asked).answer == "7"
    assert mathematics.extract(written, asked).method == "marker"
    assert text.extract("conclusion: Paris. And more.", asked).answer == "Paris"
    assert choice.extract("**Conclusion:** (c)", asked).answer == "C"
    assert mathematics.extract("The answer is 5.", asked).answer == "5"


def test_numbers_are_read_as_the_language_writes_them():
    german = Asked(language="de")
    assert mathematics.extract("Das macht 3,5 Euro.", german).answer == "3,5"
    assert mathematics.extract("Das macht 1.234,5 Euro.", german).answer == "1.234,5"
    assert mathematics.key("1.234,5", german) == mathematics.key("1234.5")


def test_places_hold_behind_a_long_text_and_a_reasoning_block():
    written = "x" * 50_000 + "<think>The answer is 3.</think> The answer is 42. " + " \n" * 50
    found = mathematics.extract(written)
    assert found.answer == "42"
    assert written[slice(*found.span)] == "42"


def test_texts_that_a_small_model_wrote_under_three_prompts():
    """Sampled once from SmolLM2-135M, asked for a box, for "The answer is X." and for JSON; answers read by people."""
    rows = (Path(__file__).parent / "smollm2_texts.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(row) for row in rows]
    assert {each["prompt"] for each in texts} == {"boxed", "said", "json"}
    for each in texts:
        found = mathematics.extract(each["text"], Asked(question=each["question"]))
        assert mathematics.key(found.answer) == mathematics.key(each["answer"]), (each, found)


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("The answer is negative 5.", "-5"),
        ("The answer is minus 5.", "-5"),
        ("So x = ±3.", "±3"),
        ("The answer is 10, I'm 90% sure.", "10"),
        ("The answer is 5 apples for 3 children.", "5"),
        ("The answer is 5 after 3 days.", "5"),
        ("The answer is 5 where x = 2.", "5"),
        ("The answer is 5; the other 3 are bad.", "5"),
        ("The answer is 5 and it occurs at x = 2.", "5"),
        ("So the length is √3.", r"\sqrt{3}"),
        ("So the length is 2√3 cm.", r"2\sqrt{3}"),
        ("The slope-intercept form is y = 3x + 2.", "3x+2"),
        ("The point is (1, 2).", "(1,2)"),
        ("The domain is [2, 5).", "[2,5)"),
        ("The solution is x > 5.", "x>5"),
        ("The ratio is 1:2.", "1:2"),
        ("The roots are 3 and 4.", "3,4"),
        ("The numbers are 1, 2, and 3.", "1,2,3"),
        ("The answer is 5 x 10^3.", "5000"),
        ("The period is 2π.", r"2\pi"),
        ("Area = 9π square units.", r"9\pi"),
        ("\\begin{align*}\n2x+1 &= 5\\\\\n2x &= 4\\\\\nx &= 2\n\\end{align*}", "2"),
        ("\\[\\begin{aligned}\nx&=4+6\\\\\n&=10\n\\end{aligned}\\]\nThus we are done.", "10"),
        ("We get $x=10$.\n\n$\\blacksquare$", "10"),
        ("There are 10 apples.\n\nConfidence: 95%", "10"),
        ("So, she will have $16 left after buying 4 toys at $2 each.", "16"),
        ("It takes 150 minutes (2.5 hours) to finish.", "150"),
        ("He needs 5 boxes since each box holds 12.", "5"),
        ("Tom has 17 marbles more than Jerry, who has 3.", "17"),
        ("Thus she has 5 apples left, not 7.", "5"),
        ("The answer is 11<|endoftext|>Question: 5?", "11"),
        ("所以答案是12个苹果。", "12"),
        ('{"answer": null}', None),
        ("The answer cannot be determined because only 3 values are given.", None),
    ],
)
def test_what_else_stands_around_a_number(written, answer):
    found = mathematics.extract(written).answer
    assert (None if found is None else mathematics.key(found)) == (None if answer is None else mathematics.key(answer))


@pytest.mark.parametrize(
    ("asked", "written", "answer"),
    [
        (CITIES, "B\n\nThe other options are cities in other countries.", "B"),
        (CITIES, "Looking at the options, only B works.", "B"),
        (CITIES, "Paris fits best among the given options.", "B"),
        (CITIES, "None of the options is right.", None),
        (CITIES, "The choice a person makes matters.", None),
        (CITIES, "Option A is incorrect.", None),
        (CITIES, "Paris is wrong.", None),
        (CITIES, "It can't be Paris.", None),
        (CITIES, "So option C is wrong too, leaving only Paris.", "B"),
        (CITIES, "(B)\n\nOption (A) is wrong as it's in Germany.", "B"),
        (CITIES, "I would choose B.", "B"),
        (CITIES, "It's B.", "B"),
        (CITIES, "The answer is not A but B.", "B"),
        (Asked(labels=("yes", "no")), "Yes. There is no snow in July.", "yes"),
        (Asked(labels=("yes", "no")), "Yes\n\nThere is no reason to doubt it.", "yes"),
        (Asked(labels=("yes", "no")), "He has no car.", None),
        (Asked(labels=("yes", "no")), "Therefore, no.", "no"),
        (LABELS, "True\n\nExplanation: it would be false otherwise.", "True"),
        (LABELS, "The claim cannot be true.", None),
    ],
)
def test_what_else_stands_around_a_choice(asked, written, answer):
    assert choice.extract(written, asked).answer == answer
