"""The questions of a file or a list, each once, by the digest that they are known by elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from demur.errors import InvalidValue
from demur.records import Problem, is_nothing, question_digest

Asked = str | Problem | None


def texts_of(questions: Iterable[Asked], name: str, fewest: int) -> dict[str, str]:
    """The text of each question by its digest, in an order that the order of questions does not decide.

    Problems of the same text with other options are other questions.
    """
    if isinstance(questions, str):
        raise InvalidValue(f"{name} must be many questions, got the one text {questions!r:.60}")
    texts: dict[str, str] = {}
    for row, asked in enumerate(questions):
        text = asked.question if isinstance(asked, Problem) else asked
        if is_nothing(text) or not isinstance(text, str) or not text.strip():
            raise InvalidValue(f"question {row} of {name} has no text, and nothing else tells what it is like")
        texts.setdefault(str(asked.digest if isinstance(asked, Problem) else question_digest(text)), text)
    if len(texts) < fewest:
        raise InvalidValue(f"{name} holds {len(texts)} different questions, and {fewest} are needed", "give more")
    return dict(sorted(texts.items()))
