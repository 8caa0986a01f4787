"""What the report shows of each question and its paths: what was asked and accepted, and each path in its own words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from string import ascii_uppercase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.answers.relations import as_written
from demur.errors import InvalidValue
from demur.files.strict_json import as_json
from demur.policy.policy import Policy
from demur.pools.labels import accepted_answers
from demur.pools.parts import every_problem, in_passing, sizes_of, without_texts
from demur.pools.reading import GIVEN, place_of
from demur.pools.scores import field_of
from demur.pools.voted_pools import VotedPools
from demur.records import ASKED_WITH, Path, Pool, Problem, is_nothing
from demur.reports.group_facts import kind_codes
from demur.tasks import asked_by

MOST_LISTED = 20_000
"""Questions that a page lists unless it is told otherwise."""
TEXT_BUDGET = 24_000_000
"""Characters of paths that a page may hold; beyond, each path is cut to its share."""
_ASKED_BUDGET, _PASSAGE = 6_000_000, 4000
"""Characters of passages that a page may hold, and of one passage."""
_AROUND, _WORDS = 60, 200
"""Characters around the words that an answer was taken from, and of the words themselves."""
_OPTIONS = ("options", "choices")


def listed_rows(voted: VotedPools, most: int) -> NDArray[np.intp] | None:
    """The questions that a page lists, ascending, where there are too many for all; None where it lists all.

    A tenth of them are those whose votes are wrong with the highest keys, and the rest are drawn at random.
    """
    if most < 1:
        raise InvalidValue(f"a report lists at least one question, got {most}")
    if len(voted) <= most:
        return None
    wrong = _surest_wrong(voted, most // 10)
    others = np.setdiff1d(np.arange(len(voted)), wrong)
    drawn = np.random.default_rng(0).choice(others, most - len(wrong), replace=False)
    return np.sort(np.concatenate([wrong, drawn]))


def listed_facts(voted: VotedPools, listed: NDArray[np.intp]) -> dict[str, int]:
    """How many questions there are, and how many of those that are listed were taken for being wrong."""
    return {"of": len(voted), "wrong": len(_surest_wrong(voted, len(listed) // 10))}


def _surest_wrong(voted: VotedPools, most: int) -> NDArray[np.intp]:
    if voted.correct is None:
        return np.zeros(0, dtype=np.intp)
    known = voted.votes.has_answer if voted.known is None else voted.votes.has_answer & voted.known
    wrong = np.flatnonzero(~voted.correct & known)
    key = voted.votes.key[wrong]
    return wrong[np.lexsort(key.T[::-1])[::-1][:most]]


def question_facts(pools: Sequence[Pool], voted: VotedPools, policy: Policy, seen: NDArray[np.bool_]) -> dict[str, Any]:
    """Columns over questions."""
    table, votes = voted.table, voted.votes
    assert table is not None
    problems = list(every_problem(pools))
    told = [at for at, name in enumerate(votes.recipe.names) if at and name != "jitter"]  # a draw says nothing
    return {
        "id": list(table.ids),
        "question": [_cut(question, 2000) for question in table.questions],
        "group": [", ".join(groups) or None for groups in table.groups],
        "calibrated": seen.astype(int).tolist(),
        "answer": votes.answer.tolist(),
        "confidence": votes.confidence.tolist(),
        "lead": None if votes.recipe.names[0] == "share" else votes.key[:, 0].tolist(),
        "tie": next((list(map(_finite, votes.key[:, at].tolist())) for at in told), None),
        "n_paths": votes.n_paths.tolist(),
        "kind": kind_codes(voted),
        "p_value": policy.points[0].p_value(policy.strata, votes.cases).tolist(),
        "unanimous": votes.unanimous.astype(int).tolist(),
        "right": None if voted.correct is None else voted.correct.astype(int).tolist(),
        "gold": [[_cut(text, 400) for text in texts] for texts in accepted_answers(pools)],
        "options": [_options(problem, voted, row) for row, problem in enumerate(problems)],
        "asked": _asked(problems),
    }


def path_facts(pools: Sequence[Pool], voted: VotedPools, *, texts: bool) -> list[dict[str, Any]]:
    """Per question, columns over its paths.

    `answer` is a path's own words, and `class` the place of its answer among the `classes`, which are told apart.
    """
    table = voted.table
    assert table is not None
    right = None if voted.labels is None else voted.labels.of_paths(table)
    count = max(1, int(sizes_of(pools).sum()))
    most = max(40, TEXT_BUDGET // count)
    field = table.fields.answer_field
    facts = []
    for row, pool in enumerate(in_passing(pools if texts else without_texts(pools))):
        keys = table.answers[row]
        place = {key: at for at, key in enumerate(dict.fromkeys(key for key in keys if key is not None))}
        own = [None if key is None else _own_words(path, field) for path, key in zip(pool.paths, keys, strict=True)]
        facts.append(
            {
                "answer": own,
                "class": [None if key is None else place[key] for key in keys],
                "classes": [_spelled(voted, row, key) for key in place],
                "share": _shares(voted, row),
                "score": None if table.scores is None else table.scores[row],
                "right": None if right is None else [int(label) for label in right[row]],
                "text": [_cut(path.text, most) for path in pool.paths] if texts else None,
                "read": [how_read(path, field, texts=texts) for path in pool.paths],
            }
        )
    return facts


def how_read(path: Path, field: str = "answer", *, texts: bool = True) -> list[str] | None:
    """The rule that found an answer and, where that is known, the words it was taken from between those around them.

    None where no rule read it: the answer was given.
    """
    method = path.extra.get("extraction") if field == "answer" else None
    if not isinstance(method, str) or method == GIVEN:
        return None
    place, text = place_of(path), path.text
    if place is None or text is None or not texts:
        return [method]
    start, end = place
    before, words, behind = text[:start], text[start:end], text[end:]
    return [method, _end_of(before, _AROUND), _start_of(words, _WORDS), _start_of(behind, _AROUND // 2)]


def _start_of(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _end_of(text: str, most: int) -> str:
    return text if len(text) <= most else f"…{text[-most:]}"


def _spelled(voted: VotedPools, row: int, key: str | None) -> str | None:
    """An answer as it is written, never its key."""
    assert voted.table is not None
    return None if key is None else voted.table.written[row][key]


def _own_words(path: Path, field: str) -> str:
    raw = path.answer if field == "answer" else field_of(path, [field])
    return (as_written(raw) or "").strip()


def _options(problem: Problem, voted: VotedPools, row: int) -> list[list[Any]] | None:
    """Each option's letter and text, and whether it is accepted; None where there are none."""
    assert voted.table is not None
    fields, options = voted.table.fields, asked_by(problem).options
    if not options:
        return None
    key_of, lettered = fields.key_of(problem), fields.relation_of(problem).name == "choice"
    letters = [ascii_uppercase[at] if at < len(ascii_uppercase) else str(at + 1) for at in range(len(options))]
    return [
        [letter, _cut(option, 1000), int(_accepts(voted, row, key_of(letter if lettered else option)))]
        for letter, option in zip(letters, options, strict=True)
    ]


def _accepts(voted: VotedPools, row: int, key: str | None) -> bool:
    return voted.labels is not None and voted.labels.is_right(row, key)


def _asked(problems: Sequence[Problem]) -> list[list[list[Any]] | None]:
    """What was asked beside the text, by field: passages, messages and the like."""
    every = [
        [(name, list(_texts_of(value))) for name in ASKED_WITH if name not in _OPTIONS
         if not is_nothing(value := problem.extra.get(name))]
        for problem in problems
    ]  # fmt: skip
    count = max(1, sum(len(texts) for fields in every for _, texts in fields))
    most = max(80, min(_PASSAGE, _ASKED_BUDGET // count))
    return [[[name, [_cut(text, most) for text in texts]] for name, texts in fields] or None for fields in every]


def _texts_of(value: Any) -> Iterator[str]:
    """A field as texts, one per entry of a list; a message is its role and its words."""
    for entry in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(entry, dict) and {"role", "content"} <= entry.keys() and isinstance(entry["content"], str):
            yield f"{entry['role']}: {entry['content']}"
        elif isinstance(entry, str):
            yield entry
        else:
            yield as_json(entry, ensure_ascii=False, default=str)


def _shares(voted: VotedPools, row: int) -> list[float]:
    """Each path's share of its pool's weight."""
    weights = voted.votes.weights(row)
    total = math.fsum(weights)
    return [float(f"{weight / total:.4g}") for weight in weights]


def _cut(text: str | None, most: int) -> str | None:
    if text is None or len(text) <= most:
        return text
    return text[: most // 2] + " […] " + text[-most // 2 :]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
