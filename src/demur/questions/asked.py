"""The questions of a file or a list, each once, with the digests that they are known by elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from demur.errors import InvalidValue
from demur.records import Problem, is_nothing, question_digest

Asked = str | Problem | None


def texts_of(questions: Iterable[Asked], name: str, fewest: int) -> dict[str, set[str]]:
    """Each distinct text, blank space aside, and its digests: of the text, and of all that its problem asks."""
    if isinstance(questions, str):
        raise InvalidValue(f"{name} must be many questions, got the one text {questions!r:.60}")
    texts: dict[str, set[str]] = {}
    spelled: dict[str, str] = {}
    for row, asked in enumerate(questions):
        text = asked.question if isinstance(asked, Problem) else asked
        digest = None if is_nothing(text) else question_digest(text)
        if digest is None or not isinstance(text, str):
            raise InvalidValue(f"question {row} of {name} has no text, and nothing else tells what it is like")
        digests = texts.setdefault(spelled.setdefault(digest, text), {digest})
        if isinstance(asked, Problem) and asked.digest is not None:
            digests.add(asked.digest)
    if len(texts) < fewest:
        raise InvalidValue(f"{name} holds {len(texts)} different questions, and {fewest} are needed", "give more")
    return texts
