"""Small rows of a service's store, for tests; and works that run at once."""

from __future__ import annotations

import threading

from demur.store.service import Decision, DecisionPath, NewReview

PATHS = (DecisionPath(0, "4", "2 + 2 is 4", {"judge": 0.5}, 7), DecisionPath(1, None, None, {}, None))


def decision(request, at=1, **facts):
    known = {"policy": 1, "model": "math", "question_digest": "d", "outcome": "abstained", "drawn": 2, "n_paths": 4}
    return Decision(**{"request": request, "at": at, "milliseconds": 3, **known, **facts})


def review(request, at=1, **facts):
    known = {"reason": "abstained", "contested": 0.5, "policy": 1}
    return NewReview(**{"request": request, "at": at, **known, **facts})


def fill(store, number, **facts):
    """So many abstentions that wait for a review."""
    names = [f"r{k:03}" for k in range(number)]
    store.decisions.add(
        [decision(name, at) for at, name in enumerate(names)],
        [review(name, at, **facts) for at, name in enumerate(names)],
    )
    return names


def at_once(*works):
    """What works give that run in threads of their own, begun at the same moment."""
    results, start = [None] * len(works), threading.Barrier(len(works))

    def run(place, work):
        start.wait(300)
        try:
            results[place] = work()
        except Exception as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return results
