"""The nouns: a problem, its sampled paths, the vote they cast and the decision taken on it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from demur.errors import InvalidValue
from demur.files.strict_json import as_json
from demur.shown.html import MOST_ROWS, html_of, shown

Groups = tuple[str, ...]
"""The groups of one question: their names, each once and in order."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A question, and the answers that count as right where they are known."""

    id: str
    question: str | None = None
    gold: tuple[Any, ...] = ()
    """Accepted answers. Read by `labels` and by nothing upstream of it."""
    cluster: str | None = None
    """Rows of one cluster (duplicates, paraphrases, one document) stay on one side of a split."""
    group: str | Groups | None = None
    """The kind of question, or several that overlap. Never decides a split."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the file that demur has no name for, kept as they are."""

    @property
    def digest(self) -> str | None:
        """What tells this question from others; None where nothing is asked."""
        return question_digest(self.question, self.extra)

    @property
    def folded_digest(self) -> str | None:
        """The same for all spellings of a question that `folded` makes one; None where nothing is asked."""
        return question_digest(self.question, self.extra, fold=True)

    @property
    def groups(self) -> Groups:
        """All groups that it is of."""
        return groups_of(self.group, f"problem {self.id!r}")


ASKED_WITH = (
    "options", "choices", "passage", "passages", "paragraph", "paragraphs", "context", "contexts", "document",
    "documents", "article", "story", "premise", "hypothesis", "table", "image", "images", "messages",
)  # fmt: skip
"""Fields that are part of what is asked."""


def is_nothing(value: Any) -> bool:
    """None, NaN, and whatever a table's library has for nothing, which is not even equal to itself."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # nothing of pandas has no truth value; nor have arrays, which are something
        return type(value).__name__ in ("NAType", "NaTType")


def groups_of(value: Any, where: str = "a question") -> Groups:
    """The groups that a value names: a text, several of them, or nothing."""
    if isinstance(value, str):
        return (value,) if value.strip() else ()
    if is_nothing(value):
        return ()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise InvalidValue(f"the group of {where} must be a text or a list of texts, got {value!r:.60}")
    if not all(isinstance(name, str) and name.strip() for name in value):
        raise InvalidValue(f"the groups of {where} must be texts that are not blank, got {value!r:.60}")
    return tuple(sorted(set(value)))


def group_in_file(value: Any, where: str) -> str | Groups | None:
    """The group of a problem as files have it: a text or a whole number, or a list of those."""
    several = isinstance(value, (list, tuple))
    names = [_name_of_group(name, where) for name in (value if several else [value]) if not is_nothing(name)]
    if several and len(names) < len(value):
        raise InvalidValue(f"the groups of {where} must be texts that are not blank, got {value!r:.60}")
    return groups_of(names, where) if several else names[0] if names else None


def _name_of_group(name: Any, where: str) -> str:
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise InvalidValue(f"the group of {where} must be a text or a list of texts, got {name!r:.60}")
    return str(name)


def group_as_text(group: str | Groups | None) -> str | None:
    """A problem's group in one text: several as a JSON list, and one too that would be read as a list."""
    if group is None or (isinstance(group, str) and group_of_text(group) == group):
        return group
    return as_json([group] if isinstance(group, str) else list(group), ensure_ascii=False)


def group_of_text(text: str) -> str | Groups:
    """The group that such a text says."""
    if text[:1] != "[":
        return text
    try:
        names = json.loads(text)
    except ValueError:
        return text
    named = isinstance(names, list) and names and all(isinstance(name, str) and name.strip() for name in names)
    return tuple(sorted(set(names))) if named else text


def question_digest(question: Any, fields: Mapping[str, Any] | None = None, *, fold: bool = False) -> str | None:
    """A fingerprint of what is asked: the text, blank space aside, and the options, passages and messages with it.

    Problems of the same text with other options are other problems. None for blank text without messages, and for
    what tables have in place of text. With `fold`, texts and messages count as `folded` leaves them.
    """
    text = "" if is_nothing(question) else " ".join(str(question).split())
    named = () if not fields else (name for name in ASKED_WITH if name in fields)
    beside = {name: value for name in named if fields and _says_something(value := fields.get(name))}
    if not text and "messages" not in beside:
        return None
    if fold:
        text = folded(text)
        beside |= {"messages": _folded_messages(beside["messages"])} if "messages" in beside else {}
    asked = as_json([text, beside], sort_keys=True, default=_plain) if beside else text
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def digests_of(question: str | Problem | None) -> tuple[str | None, str | None]:
    """The digest of a question, and that of the folded one."""
    problem = question if isinstance(question, Problem) else Problem("question", question)
    return problem.digest, problem.folded_digest


_SENTENCE_ENDS = frozenset(".?!…‼⁇⁈⁉‽．？！。｡؟۔।॥։՜՞\u037e።፧។៕။၊᠃⸮")
"""What ends a sentence: full stops, question and exclamation marks of many scripts."""


def folded(text: str) -> str:
    """A text without the differences that leave it the same question.

    Those are letter case, runs of blanks, and punctuation that ends the last sentence. An exclamation mark after a
    digit stays, because 5! is not 5. Digits, signs and the punctuation within stay.
    """
    text = " ".join(text.lower().split())
    end = len(text)
    while end and (text[end - 1] == " " or text[end - 1] in _SENTENCE_ENDS):
        if text[end - 1] == "!" and end > 1 and text[end - 2].isdigit():
            break
        end -= 1
    return text[:end] or text


def _folded_messages(messages: Any) -> Any:
    """Messages as they are compared for one question; what is no list of them stays."""
    if not isinstance(messages, (list, tuple)) or not all(isinstance(message, Mapping) for message in messages):
        return messages
    contents = (message.get("content") for message in messages)
    return [
        {**message, "content": folded(content) if isinstance(content, str) else content}
        for message, content in zip(messages, contents, strict=True)
    ]


def _says_something(value: Any) -> bool:
    return not is_nothing(value) and (not hasattr(value, "__len__") or len(value) > 0)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


@dataclass(frozen=True, slots=True)
class Path:
    """One sampled chain of reasoning (T⁽ʲ⁾) with the answer it ends in."""

    answer: Any = None
    text: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    has_answer_field: bool = True
    """False where the file's path has no `answer` at all, which is not the same as an answer of null."""


@dataclass(frozen=True, slots=True)
class Pool:
    """All paths sampled for one problem."""

    problem: Problem
    paths: tuple[Path, ...]

    @property
    def length_of_answers(self) -> int:
        """Their characters, with those of the question: what comparing them takes grows with it."""
        return sum(len(str(path.answer)) for path in self.paths) + len(self.problem.question or "")


_LABEL_NAMES = re.compile(
    r"(?i)(is_?)?(in)?correct(ness)?(_(src|source|label|gold|answer))?|(gold|true)?_?labels?|gold(_.*)?|(ground_?)?truth"
    r"|is_?(right|wrong|true|false)|(was|were)_?(correct|right|wrong)|y_?true|passed|right|wrong|exact_?match"
    r"|solutions?|answer_?key|reference(_?answer)?s?|targets?|reward_?label"
    r"|((gold|answer)_?)?alias(es)?|accept(ed|able)(_?answers?)?"
)


def names_labels(name: str) -> bool:
    """Whether a field's name says that it holds labels; of a dotted name, whether any part of it does."""
    if "." in name:
        return any(map(_LABEL_NAMES.fullmatch, name.split(".")))
    return _LABEL_NAMES.fullmatch(name) is not None


def blinded(pool: Pool) -> Pool:
    """A pool as a scorer may see it: without gold, and without fields that are named like labels."""
    problem = replace(pool.problem, gold=(), extra=_without_labels(pool.problem.extra))
    return Pool(problem, tuple(replace(path, extra=_without_labels(path.extra)) for path in pool.paths))


def _without_labels(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    if not any(map(names_labels, fields)):
        return fields
    return {name: value for name, value in fields.items() if not names_labels(name)}


@dataclass(frozen=True, slots=True)
class Vote:
    """The outcome of one pool's score-weighted vote."""

    answer: Any
    """ŷ, the winner; None where no path has an answer."""
    confidence: float
    """ν, the winner's share of all weight, that of paths without an answer included."""
    unanimous: bool
    """Every path gave the same answer. Then the confidence is exactly 1, but not only then."""
    tally: Mapping[Any, float]
    """V_y for each answer, in units of the pool's largest weight; the winner first."""
    support: Mapping[Any, int]
    """How many paths gave each answer; the winner first."""
    total: float
    """All weight cast, that of paths without an answer included, in the same units as the tally."""
    n_paths: int
    key: tuple[float, ...] = ()
    """What ranks it: the confidence and, behind it, what breaks ties."""
    id: str | None = None
    unscored: bool = False
    """A path has no score, so that the pool casts no vote."""


class Other(Enum):
    """What an answer set holds beside answers where the paths cannot cover."""

    OTHER = "OTHER"
    """Every answer that no path gave."""

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


OTHER = Other.OTHER


@dataclass(frozen=True, slots=True)
class Early:
    """That the decision on a whole pool was certain when some of its paths were drawn."""

    answer: Any
    """What the whole pool would answer; None: it would abstain."""
    n_paths: int
    """The paths that settled it, in order of index."""
    of: int
    """The paths of a whole pool."""
    least: float
    """The winner's share among all of them would be at least this; 0 where it is not certain who would win."""
    most: float
    """No answer's share would be more."""

    @property
    def left(self) -> int:
        """The paths that could change nothing."""
        return self.of - self.n_paths


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy says about one pool.

    Where it was certain before the whole pool was drawn (`Early`), `support` and `shares` are those of the `n_paths`
    that were; `confidence`, `key` and `p_value` are bounds on those of the whole pool: its answer is at least as
    confident, or where it abstains no answer is more so.
    """

    answer: Any
    """The answer, or None: the policy abstains."""
    confidence: float
    threshold: float
    """λ̂, the first number of `threshold_key`. Answered means key > threshold_key, number by number."""
    p_value: float
    """(1 + number of wrong calibration votes at least this confident) / (n + 1)."""
    alpha: float
    support: Mapping[Any, int]
    """How many paths gave each answer."""
    shares: Mapping[Any, float]
    """Each answer's share of the weighted vote, V_y / Σ V."""
    explanation: str
    """What is promised here, and what is not."""
    threshold_key: tuple[float, ...] = ()
    key: tuple[float, ...] = ()
    """What was compared with it: the confidence and, behind it, what breaks ties."""
    id: str | None = None
    n_paths: int = 0
    answer_set: tuple[Any, ...] | None = None
    """On abstaining, answers among which a right one is with the probability that the policy's answer sets promise, the
    most likely first, and OTHER behind them where the paths cannot cover; None where nothing is promised."""
    groups: Groups = ()
    """The groups of the question, where the promise is per group."""
    outlier_p_value: float | None = None
    """Of its text among the calibration questions, 0 where it has none; None where the policy does not look at it."""

    @property
    def without_answer(self) -> int:
        """How many paths have no answer; they keep their weight."""
        return max(0, self.n_paths - sum(self.support.values()))

    @property
    def abstained(self) -> bool:
        return self.answer is None

    def __repr__(self) -> str:
        id_ = "" if self.id is None else f", id={self.id!r:.60}"
        return (
            f"Decision(answer={self.answer!r:.60}, confidence={self.confidence:.4g}, threshold={self.threshold:.4g}, "
            f"alpha={self.alpha:g}{id_})"
        )

    def _repr_html_(self) -> str:
        title = "Abstained" if self.abstained else f"Answered: {shown(self.answer)}"
        if self.answer_set:
            title = f"Abstained; answer set: {', '.join(map(shown, self.answer_set))}"
        rows = [(answer, paths, f"{self.shares[answer]:.1%}") for answer, paths in self.support.items()]
        header = ("answer", "paths", "share of the vote")
        return html_of(title, header, rows[:MOST_ROWS], more=len(rows) - MOST_ROWS, note=self.explanation)

    def written_as(self, spelling: Mapping[Any, str]) -> Decision:
        """The same, answers as they are written in place of their keys."""
        return replace(
            self,
            answer=None if self.answer is None else spelling[self.answer],
            support={spelling[key]: paths for key, paths in self.support.items()},
            shares={spelling[key]: share for key, share in self.shares.items()},
            answer_set=self.answer_set and tuple(key if key is OTHER else spelling[key] for key in self.answer_set),
        )
