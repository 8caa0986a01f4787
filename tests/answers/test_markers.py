"""Answers in other languages, of programs and of agents; what is taken back, and what is only supposed."""

from __future__ import annotations

import pytest

from demur.answers import choice, mathematics, text
from demur.answers.asked import Asked
from demur.answers.extraction import choice as choices

CITIES = Asked.of(options=["London", "Paris", "Rome", "Madrid"])
NUMBERS = Asked.of(options=["1/4", "1/2", "2", "0.75", r"x^2+1", "5 cm", "50 cm"])
TRUTH = Asked.of(labels=["True", "False", "Uncertain"])
YES_NO = Asked.of(labels=["yes", "no"])

STYLES = {
    "de": ["Antwort: {}", "Die Antwort ist {}.", "**Antwort:** {}", "Die richtige Antwort lautet {}.", "Ergebnis: {}"],
    "es": ["La respuesta es {}", "Respuesta: {}", "La respuesta correcta es {}.", "Respuesta final: {}"],
    "fr": ["La réponse est {}.", "Réponse : {}", "Réponse finale : **{}**", "La bonne réponse est {}."],
    "it": ["La risposta è {}.", "Risposta: {}", "La risposta corretta è {}."],
    "pt": ["A resposta é {}.", "Resposta: {}", "Resposta correta: {}"],
    "nl": ["Het antwoord is {}.", "Antwoord: {}"],
    "pl": ["Odpowiedź: {}", "Odpowiedź to {}."],
    "tr": ["Cevap: {}", "Yanıt: {}"],
    "vi": ["Đáp án: {}", "Đáp án đúng là {}."],
    "ru": ["Ответ: {}", "Правильный ответ — {}.", "Ответ: **{}**."],
    "uk": ["Відповідь: {}"],
    "ar": ["الجواب: {}", "الإجابة الصحيحة هي {}"],
    "hi": ["उत्तर: {}"],
    "zh": ["答案是{}", "答案：{}", "所以答案是 {}。", "因此，正确答案为{}。", "答案选{}"],
    "ja": ["答えは{}", "答えは{}です。", "正解：{}"],
    "ko": ["정답은 {}", "정답은 {}입니다.", "정답: {}"],
}


@pytest.mark.parametrize("style", [style for styles in STYLES.values() for style in styles])
def test_an_answer_is_found_behind_the_markers_of_other_languages(style):
    for written in ("B", "(B)"):
        assert choice.extract(style.format(written), asked=CITIES).answer == "B"
    assert mathematics.key(mathematics.extract("3 + 4. " + style.format("42")).answer) == "n:42"
    found = text.extract(style.format("Paris"))
    assert (found.answer, found.method) == ("Paris", "answer is")


@pytest.mark.parametrize("written", ["Die Antwort ist richtig.", "La réponse est correcte.", "答案是正确的。", "Die Antwort ist nicht B.",
                                     "La respuesta es correcta.", "La risposta è giusta.", "Ответ верный."])  # fmt: skip
def test_words_that_only_speak_of_an_answer_choose_nothing(written):
    assert choice.extract(written, asked=CITIES).answer is None


@pytest.mark.parametrize("comment", ["Die Antwort ist richtig.", "Die Antwort ist nicht falsch.", "La respuesta es correcta.", "La réponse est juste.",
                                     "La réponse est correcte.", "La risposta è corretta.", "La risposta è giusta.", "A resposta é correta.", "A resposta é não.",
                                     "Het antwoord is juist.", "Ответ: верный.", "Ответ: неправильный.", "答案是正确的。", "答案是错的。", "答えは正しいです。", "정답은 맞습니다."])  # fmt: skip
def test_words_that_only_speak_of_an_answer_in_other_languages_are_not_it(comment):
    """The answer before them stands; without one, what they say is never found as said to be the answer."""
    assert text.extract(comment).method != "answer is"
    found = mathematics.extract(f"3 + 4. Die Antwort ist 7. {comment}")
    assert (found.answer, found.method) == ("7", "answer is")


@pytest.mark.parametrize(("written", "answer"), [
    ("正确答案是 C。因为A不对。", "C"), ("答案：C，因为罗马是首都。", "C"), ("正解はCです。理由は書きません。", "C"), ("Antwort: C) Rom, denn B ist falsch.", "C"),
    ("La respuesta correcta es la C.", "C"), ("La bonne réponse est la C.", "C"), ("The answer is A. 答案是C", "C"),
])  # fmt: skip
def test_what_goes_on_behind_such_an_answer_is_not_read(written, answer):
    assert choice.extract(written, asked=CITIES).answer == answer


def test_a_word_for_solution_stands_above_the_working():
    assert mathematics.extract("Solution: Let x = 5. Then 2x = 10.").answer == "2x = 10"
    assert mathematics.extract("Lösung: Sei x = 5. Die Antwort ist 10.").answer == "10"


@pytest.mark.parametrize(("written", "answer"), [
    ("Thought: I am done.\nAction: Finish[42]", "42"), ("Action 3: Finish[12]", "12"), ("Finish[3] is wrong.\nAction 4: Finish[5]", "5"),
    ("```python\nprint(3*4)\n```\n```output\n12\n```", "12"), ("```output\n1\n2\n12.5\n```", "12.5"), ("```stdout\n138\n```", "138"),
    ("```output\n12\n```\nThe answer is 13.", "13"), ("```output\nTraceback (most recent call last):\n  line 3\nValueError\n```", None),
    ("The answer is 5. Wait, no, the answer is 7.", "7"), ("The answer is 5. Wait, no, it's 7.", "7"), ("The answer is 24. Oops, it should be 25.", "25"),
    ("Answer: 5. Correction: it is 6.", "6"), ("Answer: 5\nHmm, that is wrong. The answer should be 8.", "8"), ("\\boxed{5} Wait, that's wrong. \\boxed{7}", "7"),
    ("Wait, no, it's 12 apples per box. The answer is 24.", "24"), ("The answer is 5. No, wait. I meant 9.", "9"), ("The answer is 5. Sorry, it is correct.", "5"),
])  # fmt: skip
def test_what_programs_and_agents_end_with_and_what_is_taken_back(written, answer):
    assert mathematics.extract(written).answer == answer


def test_an_agent_may_finish_with_words():
    assert text.extract("Thought: done\nAction 4: Finish[Richard Nixon]").answer == "Richard Nixon"
    assert choice.extract("Finish[Paris]", asked=CITIES).answer == "B"


@pytest.mark.parametrize(("asked", "written", "label"), [
    (TRUTH, "The statement is False. It would only be True if cats could fly.", "False"),
    (TRUTH, "It is true. If it were false, birds would not fly.", "True"),
    (TRUTH, "The statement is False. It would have been True had the cats wings.", "False"),
    (TRUTH, "The claim is true. Had it not rained, it would be false.", "True"),
    (TRUTH, "So this is Uncertain. Unless we know more, it can't be True.", "Uncertain"),
    (TRUTH, "The statement is false. Were it true, cats could fly. That would make it True.", "False"),
    (TRUTH, "If all cats fly, the statement is True. But cats do not fly, so the statement is False.", "False"),
    (TRUTH, "The claim is False. It might have been True in 1900.", "False"),
    (TRUTH, "If it rains the street is wet, and it rains, so the statement is True.", "True"),
    (TRUTH, "The correct label would be True.", "True"),
    (TRUTH, "If x is 3, the statement is false.", None),
    (TRUTH, "We conclude that the statement is true.", "True"),
    (YES_NO, "No. It could be yes if the ball were red.", "no"),
    (YES_NO, "Clearly this means no. It would be yes if dogs could fly.", "no"),
    (CITIES, "I choose (A). (B) would be right only if the Seine flowed there.", "A"),
    (CITIES, "The capital is Madrid. It would be Rome if we spoke of Italy.", "D"),
    (CITIES, "So the correct choice would be Rome.", "C"),
    (CITIES, "If we looked at a map, we would see: (D) Madrid.", "D"),
])  # fmt: skip
def test_what_is_only_supposed_is_no_evidence(asked, written, label):
    assert choices.extract(written, asked).answer == label


@pytest.mark.parametrize(("written", "letter"), [
    (r"\frac12", "B"), ("0.5", "B"), (r"\boxed{\frac{1}{2}}", "B"), (".50", "B"), ("3/4", "D"), (r"\frac{3}{4}", "D"), ("2.0", "C"), ("1+x^2", "E"),
    (r"$\frac14$", "A"), ("5 cm", "F"),
])  # fmt: skip
def test_options_are_known_by_their_value(written, letter):
    assert choice.key(written, NUMBERS) == f"o:{letter}"
    for style in ("So \\boxed{{{}}}", "The answer is {}.", "<answer>{}</answer>"):
        assert choices.extract(style.format(written), NUMBERS).answer == letter


@pytest.mark.parametrize("written", ["5 m", "0.25 cm", "3", r"\frac{1}{3}", "-1/2", "5"])
def test_another_value_or_unit_is_no_option(written):
    assert not any(choice.key(written, NUMBERS) == f"o:{letter}" for letter in "ABCDEFG")


def test_options_of_one_value_are_chosen_by_their_own_words_or_not_at_all():
    asked = Asked.of(options=["1/2", "0.5", "2"])
    assert choice.key(r"\frac12", asked) not in ("o:A", "o:B")
    assert [choice.key(written, asked) for written in ("1/2", "0.5", "2.0")] == ["o:A", "o:B", "o:C"]


def test_where_letter_and_words_disagree_the_letter_is_chosen():
    """It is what was asked for, and whoever grades the answer goes by it."""
    for written in ("B) Rome", "(B) Rome", "B. Rome", "B: Rome"):
        assert choice.key(written, CITIES) == "o:B"
        assert choices.extract(f"The answer is {written}", CITIES).answer == "B"
