"""What people say of decisions: right, wrong, or the true answer. A later word does not erase an earlier one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, select

from demur.errors import InvalidValue, StoreError
from demur.store.patience import patient
from demur.store.service._tables import decisions, feedback
from demur.store.service.family import TableFamily
from demur.store.service.values import COUNT, NAME, TEXT, WHOLE, Kinds, known_names, one_of, optional, record_of

VERDICTS = ("right", "wrong", "unsure")
_KINDS: Kinds = {
    "feedback": WHOLE,
    "request": NAME,
    "who": NAME,
    "turn": COUNT,
    "at": WHOLE,
    "verdict": optional(one_of(*VERDICTS)),
    "answer": optional(TEXT),
    "source": one_of("api", "review"),
    "note": optional(TEXT),
}
_SAID = ("verdict", "answer", "source", "note")
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Feedback:
    """What one person said of one decision, once."""

    feedback: int
    request: str
    who: str
    turn: int
    """How often they had spoken of it before."""
    at: int
    verdict: str | None
    """right, wrong or unsure; None where only the true answer was given."""
    answer: str | None
    """The true answer."""
    source: str
    """review: by somebody with that role, on the page or by a key. api: by a caller, or without keys."""
    note: str | None

    @property
    def taken_back(self) -> bool:
        """Whether it only says that what this person said before no longer counts."""
        return self.verdict is None and self.answer is None


class FeedbackLog(TableFamily):
    """All feedback, in the order it came."""

    @patient
    def give(
        self,
        request: str,
        who: str,
        at: int,
        *,
        verdict: str | None = None,
        answer: str | None = None,
        source: str = "api",
        note: str | None = None,
    ) -> Feedback:
        """Note a verdict, the true answer, or both. What this person said last, said again, is not noted again."""
        check_says_something(verdict, answer)
        with self.writing() as connection:
            return say(connection, request, who, at, verdict=verdict, answer=answer, source=source, note=note)

    @patient
    def history(self, request: str) -> list[Feedback]:
        """All that was said of a decision, the first word first."""
        with self.reading() as connection:
            return _of(connection, known_names([request])).get(request, [])

    @patient
    def latest(self, requests: Iterable[str]) -> dict[str, tuple[Feedback, ...]]:
        """Each person's last word on each request, the last one last; what was taken back is left out.

        Who speaks both as a reviewer and as a caller has two: without keys both have one name.
        """
        wanted = known_names(requests)
        last: dict[str, dict[tuple[str, str], Feedback]] = {}
        with self.reading() as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                last |= last_words(connection, wanted[start : start + _AT_ONCE])
        return {
            request: tuple(sorted(words.values(), key=lambda word: word.feedback))
            for request, words in last.items()
            if words
        }


def say(
    connection: Connection,
    request: str,
    who: str,
    at: int,
    *,
    verdict: str | None = None,
    answer: str | None = None,
    source: str,
    note: str | None = None,
) -> Feedback:
    """Note what a person says, within a transaction; neither verdict nor answer takes back what they said before."""
    given = {"request": request, "who": who, "at": at, "source": source}
    given |= {"verdict": verdict, "answer": answer, "note": note}
    row = {name: _KINDS[name].given(name, value) for name, value in given.items()}
    take_turns(connection, request)
    mine = select(feedback).where(feedback.c.request == request, feedback.c.who == who)
    found = connection.execute(mine.order_by(feedback.c.turn.desc()).limit(1)).first()
    last = None if found is None else record_of(Feedback, found, _KINDS)
    if last is not None and all(getattr(last, name) == row[name] for name in _SAID):
        return last
    said = row | {"turn": 0 if last is None else last.turn + 1}
    number = connection.execute(feedback.insert().values(said).returning(feedback.c.feedback)).scalar_one()
    return Feedback(feedback=number, **said)


def check_says_something(verdict: str | None, answer: str | None) -> None:
    if verdict is None and answer is None:
        raise InvalidValue("neither a verdict nor the true answer was given", f"give one of {', '.join(VERDICTS)}")


def take_turns(connection: Connection, request: str) -> None:
    """Have nobody else speak of a decision until the transaction ends; raises where there is no such decision."""
    known = select(decisions.c.request).where(decisions.c.request == NAME.given("request", request))
    if connection.execute(known.with_for_update()).first() is None:
        raise StoreError(f"there is no decision on a request {request!r:.80}")


def last_words(connection: Connection, requests: list[str]) -> dict[str, dict[tuple[str, str], Feedback]]:
    """Each person's last word on each request, by request, person and source; what was taken back is left out."""
    said = _of(connection, requests)
    last = {request: {(word.who, word.source): word for word in words} for request, words in said.items()}
    return {
        request: {key: word for key, word in words.items() if not word.taken_back} for request, words in last.items()
    }


def _of(connection: Connection, requests: list[str]) -> dict[str, list[Feedback]]:
    query = select(feedback).where(feedback.c.request.in_(requests)).order_by(feedback.c.feedback)
    said: dict[str, list[Feedback]] = {}
    for row in connection.execute(query):
        word = record_of(Feedback, row, _KINDS)
        said.setdefault(word.request, []).append(word)
    return said
