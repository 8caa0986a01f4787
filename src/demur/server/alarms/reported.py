"""What a model's server says of itself: a name or a fingerprint that it never gave before is an event."""

from __future__ import annotations

import threading

from demur.pipeline.answerer import Asked
from demur.server.outcomes import Outcome
from demur.server.served import Served
from demur.store.rows import storable
from demur.store.service import ServiceStore

KIND = "reported"
_NAMES = {"model": "model name", "system_fingerprint": "system fingerprint"}
_MOST = 100
"""Names remembered per policy version; a server that gives another one each time is not noted for ever."""
_LONGEST = 200

Seen = tuple[str, str, str]


class ReportedNames:
    """Looks at what servers report with each decision and each canary, and notes what is new."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fresh: dict[Seen, None] = {}
        self._noted: set[Seen] = set()

    def saw(self, outcome: Outcome) -> None:
        """Remember what was reported with one decision, until it is noted."""
        if outcome.asked is not None and not outcome.shared:
            self.heard(outcome.question.served, outcome.asked)

    def heard(self, served: Served, asked: Asked) -> None:
        """The same of one pool, whoever asked for it."""
        spent, policy = asked.spent, served.full_name
        said = {"model": spent.models, "system_fingerprint": spent.system_fingerprints}
        for what, names in said.items():
            for name in names:
                seen = (policy, what, str(storable(name, _LONGEST)))
                if seen not in self._noted and len(self._noted) < 10 * _MOST:
                    with self._lock:
                        self._fresh[seen] = None

    def note(self, store: ServiceStore, served: Served, now: int) -> None:
        """Note what is new of a policy: the first name of a kind is what it began with, another one is an event."""
        assert served.number is not None
        with self._lock:
            fresh = [seen for seen in self._fresh if seen[0] == served.full_name]
        for seen in fresh:
            while not _noted(store, served, seen, now):
                pass
            with self._lock:
                self._noted.add(seen)
                del self._fresh[seen]


def _noted(store: ServiceStore, served: Served, seen: Seen, now: int) -> bool:
    """Whether the store knows of a name now; False where another replica was quicker with its own."""
    assert served.number is not None
    _, what, name = seen
    state = store.monitors.read(served.number, KIND)
    known = {} if state is None else {kind: list(names) for kind, names in state.document.items()}
    names = known.setdefault(what, [])
    if name not in names and len(names) < _MOST:
        names.append(name)
        if not store.monitors.replace(served.number, KIND, known, 0 if state is None else state.version):
            return False
    if name in names[1:]:
        words = f"The server of {served.full_name} reports another {_NAMES[what]}: {name!r}, at first {names[0]!r}."
        facts = {what: name, "first": names[0]}
        store.events.note(now, KIND, words, policy=served.number, facts=facts, once=f"{what}:{name}")
    return True
