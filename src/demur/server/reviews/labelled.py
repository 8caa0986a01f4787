"""What people found, as files: problems with the labels they got, for `demur import` and `demur calibrate`.

`audits` are all requests of one policy's version that were marked for audit on arrival and have a whole pool, judged or
not: a random part of the traffic, which is what a calibration needs. Those without a label count as wrong there, once
it is told that labels are missing. `judged` are all that people judged, whatever brought them there: to look at and to
learn from, and no fair sample of anything.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from demur.descriptions import Description
from demur.files.cells import harmless
from demur.files.strict_json import as_json
from demur.pipeline.label_file import Label, LabelHeader
from demur.pipeline.spoken_labels import SpokenLabels, by_weight
from demur.policy.policy import Policy
from demur.pools.jsonl import line_of, record_of
from demur.pools.provenance import Provenance
from demur.pools.source import PoolSource
from demur.records import Path, Pool, Problem
from demur.store.service import Decision, Feedback, PolicyRow, ReviewFilter, ReviewItem, ServiceStore

COLUMNS = (
    "request", "at", "policy", "reason", "outcome", "question", "options", "vote", "verdict", "true_answer", "by",
    "agree",
)  # fmt: skip
_PAGE = 200


@dataclass(frozen=True)
class Judged:
    """A request and what people said of it."""

    item: ReviewItem
    decision: Decision
    words: tuple[Feedback, ...]
    """The last word of each reviewer: what callers say is no label."""
    labels: SpokenLabels | None = None
    """How its policy reads them; None where the store does not have it."""

    @property
    def verdict(self) -> str | None:
        """Whether the vote is right, by the word that counts most; `agree` tells where people differ."""
        said = next((known for word in by_weight(self.words) if (known := self._said(word)) is not None), None)
        return said or ("unsure" if any(word.verdict for word in self.words) else None)

    @property
    def true_answers(self) -> list[str]:
        """The right answer: the vote's where it was found right, else by the first word that says the same."""
        verdict, winner = self.verdict, self.decision.winner
        if verdict == "right" and winner is not None:
            return [winner]
        says_so = (word for word in by_weight(self.words) if word.verdict != "unsure")
        return [word.answer for word in says_so if word.answer is not None and self._said(word) in (verdict, None)][:1]

    @property
    def agree(self) -> bool | None:
        """Whether all who say something of the vote say the same; None where fewer than two do."""
        said = [known for word in self.words if (known := self._said(word)) is not None]
        return len(set(said)) == 1 if len(said) > 1 else None

    def _said(self, word: Feedback) -> str | None:
        """What somebody said of the vote, by a verdict or by the true answer."""
        if self.labels is None:
            return None if word.verdict == "unsure" else word.verdict
        right = self.labels.of_word(self.decision, word).right
        return None if right is None else "right" if right else "wrong"

    @property
    def whole(self) -> bool:
        """Whether the question is still there, and all paths that a vote is held on: a stopping rule may end it early.

        Once texts are forgotten an audit that nobody judged leaves the queue; those judged must not stay alone.
        """
        made = self.decision
        voted_on = (made.n_paths,) if made.vote_key is None else (made.n_paths, made.drawn)
        return made.question is not None and 0 < len(made.paths) in voted_on


def judged(store: ServiceStore, wanted: ReviewFilter, *, with_paths: bool) -> Iterator[Judged]:
    """Items of the queue and what was said of them, those that wait first, each once and the oldest first.

    What waits is looked through again behind what is done: an item may be judged, or a verdict taken back, meanwhile.
    """
    seen: set[str] = set()
    labels = _Labels(store)
    for state in ("open", "done", "open"):
        last: ReviewItem | None = None
        this = replace(wanted, state=state)
        while page := store.reviews.queue(this, after=last, limit=_PAGE):
            names = [item.request for item in page if item.request not in seen]
            seen.update(names)
            made = store.decisions.several(names, with_paths=with_paths)
            said = store.feedback.latest(names)
            for item in page:
                if item.request in made:
                    decision = made[item.request]
                    words = tuple(reversed(by_weight(said.get(item.request, ()))))
                    yield Judged(item, decision, words, labels.of(decision.policy))
            last = page[-1]


class _Labels:
    """How each policy of a store reads what people say."""

    def __init__(self, store: ServiceStore) -> None:
        self._rows = {row.policy: row for row in store.policies.all()}
        self._made: dict[int, SpokenLabels | None] = {}

    def of(self, policy: int) -> SpokenLabels | None:
        if policy not in self._made:
            row = self._rows.get(policy)
            self._made[policy] = None if row is None else SpokenLabels(Policy.of_document(row.document))
        return self._made[policy]


def pool_lines(rows: Iterable[Judged], policy: PolicyRow) -> Iterator[str]:
    """Pools as JSON lines, with how they came to be; only whole ones, for a vote on fewer paths is another vote."""
    served = Policy.of_document(policy.document)
    yield as_json(_provenance(served).document()) + "\n"
    for row in rows:
        if row.whole:
            yield line_of(record_of(_pool(row, served))) + "\n"


def label_lines(rows: Sequence[Judged], policy: PolicyRow) -> Iterator[str]:
    """The verdicts as a file of labels for the same pools, as `demur label` writes them."""
    served, whole = Policy.of_document(policy.document), [row for row in rows if row.whole]
    known = _provenance(served)
    voted = served.vote(PoolSource([_pool(row, served) for row in whole], known.description, known.scorers))
    yield LabelHeader.of(voted, [rule.guarantee for rule in served.points]).line() + "\n"
    counted = {voted.ids[row] for row in voted.scored.counted.tolist()}
    for row in whole:
        if row.verdict in ("right", "wrong") and row.item.request in counted:
            last = row.words[-1]
            yield Label(row.item.request, row.verdict, _by(row), _time(last.at)).line() + "\n"


def csv_lines(rows: Iterable[Judged], names: dict[int, str]) -> Iterator[str]:
    """One row per request, in cells that no spreadsheet takes for formulas."""
    yield _csv(COLUMNS)
    for row in rows:
        made, asked = row.decision, row.decision.asked or {}
        options = asked.get("options") or asked.get("choices") or []
        agree = {True: "yes", False: "no", None: ""}[row.agree]
        cells = (
            made.request, _time(made.at), names.get(made.policy, str(made.policy)), row.item.reason, made.outcome,
            made.question or "", "\n".join(map(str, options)), made.winner or "", row.verdict or "",
            "\n".join(row.true_answers), _by(row), agree,
        )  # fmt: skip
        yield _csv(cells)


def _csv(cells: Iterable[str]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerow([harmless(cell) for cell in cells])
    return text.getvalue()


def _pool(row: Judged, policy: Policy) -> Pool:
    asked = dict(row.decision.asked or {})
    groups = tuple(asked.pop("groups", ()))
    group_field = str(policy.upstream.answers.get("group_field", "group"))
    extra = {**asked, **({"task": task} if (task := policy.upstream.answers.get("task")) else {})}
    if groups and group_field != "group":
        extra[group_field] = list(groups)
    extra |= {"verdict": row.verdict} if row.verdict else {}
    extra |= {"agree": row.agree} if row.agree is not None else {}
    problem = Problem(
        row.decision.request,
        row.decision.question,
        tuple(row.true_answers),
        group=groups if groups and group_field == "group" else None,
        extra=extra,
    )
    paths = (
        Path(path.answer, path.text, path.scores, {} if path.n_tokens is None else {"n_tokens": path.n_tokens})
        for path in row.decision.paths
    )
    return Pool(problem, tuple(paths))


def _provenance(policy: Policy) -> Provenance:
    """How the policy's pools come to be, as a run of the same pipeline would say."""
    upstream = policy.upstream
    score = upstream.score
    scorers = {str(score["name"]): score["scorer"]} if "scorer" in score else {}
    return Provenance(Description(upstream.sampling, upstream.answers), {**scorers, **score.get("others", {})})


def _by(row: Judged) -> str:
    return ", ".join(dict.fromkeys(word.who for word in row.words))


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")
