"""Scoring a run: path by path into the store, never twice, under a new name when the scorer is another."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial

import numpy as np
import pytest

from demur.descriptions import Description
from demur.engine import score_run
from demur.errors import LogprobsMissing, ScoringError, StoreError
from demur.records import Path, Pool, Problem
from demur.scoring import ModelScorer, OwnScore, Perplexity, SelfConsistency
from demur.scoring.model_scorer import Item, Value
from demur.scoring.protocol import checked
from demur.store import PathScore, PlacedPath, Store
from processes import Process


@pytest.fixture
def opened():
    """Runs in new stores, closed when the test is over."""
    stores = []

    def open_run(place, n_paths=None):
        stores.append(Store(place, create=True))
        return stores[-1].open_run("run", Description(), n_paths)

    yield open_run
    for store in stores:
        store.close()


@pytest.fixture
def filled(opened):
    """Runs of whole pools with texts; the answer of path j is j."""

    def fill(place, n=6, m=3):
        run = opened(place)
        run.add_problems([Problem(f"q{i}", f"What is {i}?", gold=("0",)) for i in range(n)])
        run.save([PlacedPath(i, j, Path(str(j), f"text {i} {j}")) for i in range(n) for j in range(m)])
        return run

    return fill


class Lengths(ModelScorer):
    """Asks nobody: the score is the text's length. Counts what it was asked, and fails where told to."""

    name, normaliser = "lengths", "none"
    concurrency = 2

    def __init__(self, version=1, fails=()):
        super().__init__()
        self.version, self.fails, self.asked = version, fails, []

    def identity(self):
        return {"scorer": "lengths", "version": self.version}

    async def ask(self, items: list[Item]):
        self.asked += [item.text for item in items]
        await asyncio.sleep(0.001)
        if any(item.text in self.fails for item in items):
            raise ScoringError("no")
        return [Value(len(item.text), "cut" if item.text.endswith("0") else None) for item in items]


def score(run, scorer, **more):
    return asyncio.run(score_run(run, scorer, **more))


def test_every_path_is_scored_once_and_flags_are_kept(place, filled):
    run = filled(place)
    scorer = Lengths()
    progress = score(run, scorer)
    assert (progress.wanted, progress.saved, progress.flagged) == (18, 18, {"cut": 6})
    assert run.flags() == {"lengths": {"cut": 6}}
    assert run.pools()[0].paths[1].scores == {"lengths": 8.0}
    again = Lengths()
    assert score(run, again).wanted == 0
    assert again.asked == []


def test_only_the_paths_that_lack_a_score_are_asked_about(place, filled):
    run = filled(place)
    first = Lengths(fails=("text 2 1",))
    progress = score(run, first)
    assert first.name == "lengths"
    assert progress.saved == 17
    assert progress.failed == {"q2": "path 1: no"}
    second = Lengths()
    assert score(run, second).saved == 1
    assert second.asked == ["text 2 1"]


def test_another_identity_is_scored_under_a_new_name_and_found_again(place, filled):
    run = filled(place)
    assert score(run, Lengths()).name == "lengths"
    other = score(run, Lengths(version=2))
    assert (other.name, other.saved) == ("lengths-2", 18)
    assert score(run, Lengths(version=2)).wanted == 0
    assert score(run, Lengths(version=1)).wanted == 0
    assert set(run.scorers()) == {"lengths", "lengths-2"}


def test_pools_that_are_not_whole_wait(place, opened):
    run = opened(place, 2)
    run.add_problems([Problem("a", "?"), Problem("b", "?")])
    run.save([PlacedPath(0, 0, Path("1", "x")), PlacedPath(0, 1, Path("1", "y")), PlacedPath(1, 0, Path("1", "z"))])
    assert score(run, Lengths()).saved == 2


def test_a_scorer_never_sees_gold(place, filled):
    run = filled(place)
    seen = []

    def spy(pool: Pool):
        seen.append(pool)
        return [0.5] * len(pool.paths)

    score(run, OwnScore(spy))
    assert len(seen) == 6
    assert all(pool.problem.gold == () for pool in seen)


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, None, "high", True, 10**400], ids=["nan", "inf", "none", "text", "true", "huge"]
)
def test_what_is_no_finite_number_is_an_error_that_names_the_path_and_is_not_stored(place, bad, filled):
    run = filled(place, n=1)

    def broken(pool):
        return [0.1, bad, 0.3]

    with pytest.raises(ScoringError, match=r"'broken' gave .* for path 1 of problem 'q0'; a score is a finite number"):
        score(run, OwnScore(broken))
    assert all(not path.scores for pool in run.pools() for path in pool.paths)


def test_another_number_of_scores_than_paths_is_an_error(place, filled):
    run = filled(place, n=1)
    with pytest.raises(ScoringError, match="gave 1 numbers for the 3 paths of problem 'q0'"):
        score(run, OwnScore(lambda pool: [1.0], "short"))


def test_a_changed_function_is_another_score(place, filled):
    run = filled(place, n=2)
    namespace = {}
    exec("def f(pool): return [1.0] * len(pool.paths)", namespace)

    def length(pool):
        return [len(path.text) for path in pool.paths]

    first = OwnScore(length, "length").identity()

    def length(pool):
        return [-len(path.text) for path in pool.paths]

    second = OwnScore(length, "length").identity()
    assert first != second
    assert OwnScore(namespace["f"], "f").identity() == OwnScore(namespace["f"], "f").identity()
    assert (
        OwnScore(partial(namespace["f"], k=1), "f").identity() != OwnScore(partial(namespace["f"], k=2), "f").identity()
    )

    def scaled(factor):
        return lambda pool: [factor * len(path.text) for path in pool.paths]

    assert OwnScore(scaled(1), "s").identity() != OwnScore(scaled(2), "s").identity()
    assert score(run, OwnScore(length)).name == "length"


def test_recorded_log_probabilities_are_taken_and_missing_ones_named(place, opened):
    run = opened(place)
    run.add_problems([Problem("a", "?"), Problem("b", "?")])
    facts = {"logprob_mean": -0.5, "logprob_std": 0.25}
    tokens = {"token_logprobs": [-1.0, -3.0]}
    paths = [Path("1", "x", extra=facts), Path("1", "y", extra=tokens), Path(None, "")]
    run.save([*(PlacedPath(0, at, path) for at, path in enumerate(paths)), PlacedPath(1, 0, Path("1", "z"))])
    wanted = {"perplexity": [-0.5, -2.0, -2.0], "perplexity-std": [0.25, 1.0, 0.25],
              "perplexity-std-negated": [-0.25, -1.0, -1.0]}  # fmt: skip
    for kind, values in wanted.items():
        progress = score(run, Perplexity(kind))
        assert list(progress.failed) == ["b"]
        assert "has no token log-probabilities" in progress.failed["b"]
        assert [path.scores[kind] for path in run.pools()[0].paths] == pytest.approx(values)
    assert run.flags()["perplexity"] == {"empty": 1}


def test_a_function_that_raises_names_the_pool_and_the_others_are_kept(place, filled):
    run = filled(place)

    def sometimes(pool):
        return [{"q4": None}.get(pool.problem.id, 1.0) + 1.0 for _ in pool.paths]

    progress = score(run, OwnScore(sometimes))
    assert progress.saved == 15
    assert list(progress.failed) == ["q4"]
    assert "sometimes raised TypeError (test_score_run.py, line " in progress.failed["q4"]


def test_a_decorated_function_or_one_with_sets_has_one_identity_in_every_process(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import functools\n"
        "def twice(f):\n    @functools.wraps(f)\n    def inner(pool):\n        return [2 * v for v in f(pool)]\n"
        "    return inner\n"
        "def factor():\n    return FACTOR\nFACTOR = 2\n"
        "@twice\ndef decorated(pool, stop=frozenset({'the', 'a', 'an', 'of'})):\n"
        "    return [factor() for _ in pool.paths]\n"
    )
    code = "from demur.scoring.own import own_score; print(own_score('mine:decorated').identity()['made_of'])"

    def made_of():
        return subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True).stdout

    first = made_of()
    assert first.strip()
    assert all(made_of() == first for _ in range(3))
    (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text().replace("FACTOR = 2", "FACTOR = -2"))
    assert made_of() != first


@pytest.mark.parametrize("wrong", [lambda pool: {1.0, 2.0, 3.0}, lambda pool: {"a": 1.0}, lambda pool: "abc"])
def test_numbers_without_an_order_are_no_scores(place, filled, wrong):
    with pytest.raises(ScoringError, match="has no order of paths"):
        score(filled(place), OwnScore(wrong, "wrong"))


def test_two_scorers_of_one_name_at_once_get_a_name_each(place, filled):
    run = filled(place)

    async def both():
        return await asyncio.gather(score_run(run, Lengths(1)), score_run(run, Lengths(2)))

    assert {progress.name for progress in asyncio.run(both())} == {"lengths", "lengths-2"}
    assert all(len(path.scores) == 2 for pool in run.pools() for path in pool.paths)


def test_no_path_is_passed_over_because_another_scorer_took_the_name_meanwhile(place, filled, monkeypatch):
    run = filled(place)
    other = [PathScore(0, 0, 1.0), PathScore(3, 2, 1.0)]

    def after_it_was_taken(read):
        def taken_first(*given):
            run.save_scores("lengths", {"scorer": "another"}, other)
            return read(*given)

        return taken_first

    for method in ("lacking", "unscored"):
        with monkeypatch.context() as patched:
            patched.setattr(run, method, after_it_was_taken(getattr(run, method)))
            progress = score(run, Lengths())
        assert (progress.name, progress.saved) == ("lengths-2", 18)
        run.forget_score("lengths")
        run.forget_score("lengths-2")


def test_a_score_can_be_forgotten(place, filled):
    run = filled(place)
    score(run, Lengths())
    assert run.forget_score("lengths") == 18
    assert run.scorers() == {}
    with pytest.raises(StoreError, match="has no score 'lengths'"):
        run.forget_score("lengths")


def test_a_first_attempt_that_fails_entirely_takes_no_name(place, filled):
    run = filled(place)
    with pytest.raises(ScoringError):
        score(run, Lengths(fails={f"text {i} {j}" for i in range(6) for j in range(3)}))
    assert score(run, Lengths(version=2)).name == "lengths"


def test_a_stop_is_heeded_while_a_scorer_is_still_finding_out(place, filled):
    class Waiting(Lengths):
        async def prepare(self):
            await asyncio.sleep(120)
            found_out.append(True)

    found_out = []

    async def interrupted():
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, stop.set)
        return await score_run(filled(place), Waiting(), stop=stop)

    assert asyncio.run(interrupted()).interrupted
    assert found_out == []


def test_imported_answers_without_texts_are_not_scored_as_if_they_were_empty(place, opened):
    run = opened(place)
    run.add_problems([Problem("a", "?")])
    run.save([PlacedPath(0, 0, Path("1")), PlacedPath(0, 1, Path("2"))])
    for scorer in (Perplexity(), SelfConsistency(), Lengths()):
        with pytest.raises((ScoringError, LogprobsMissing), match="path 0"):
            score(run, scorer)
    assert all(not path.scores for pool in run.pools() for path in pool.paths)


def test_fields_named_like_labels_never_reach_a_scorer(place, opened):
    run = opened(place)
    run.add_problems([Problem("a", "?", ("1",), extra={"gold_label": "1", "level": 3})])
    run.save([PlacedPath(0, 0, Path("1", "x", extra={"correct_src": True, "src": "m"}))])
    seen = []

    def spy(pool):
        seen.append((pool.problem.extra, pool.paths[0].extra))
        return [0.0]

    score(run, OwnScore(spy))
    assert "gold_label" not in seen[0][0]
    assert seen[0][0]["level"] == 3
    assert "correct_src" not in seen[0][1]
    assert seen[0][1]["src"] == "m"


def test_a_stop_ends_it_soon_and_the_rest_follows_later(place, filled):
    run, stop = filled(place, n=40), asyncio.Event()

    class Slow(Lengths):
        async def ask(self, items):
            if len(self.asked) >= 5:
                stop.set()
            await asyncio.sleep(0.02)
            return await super().ask(items)

    progress = asyncio.run(score_run(run, Slow(), stop=stop))
    assert progress.interrupted
    assert sum(bool(path.scores) for pool in run.pools() for path in pool.paths) < 120
    score(run, Lengths())
    assert all(path.scores for pool in run.pools() for path in pool.paths)


_WORKER = """
    import asyncio, sys
    from demur.engine import score_run
    from demur.store import Store
    sys.path.insert(0, {tests!r})
    from engine.test_score_run import Lengths

    class Slow(Lengths):
        async def ask(self, items):
            await asyncio.sleep(0.005)
            found = await super().ask(items)
            with open({log!r}, "a") as log:
                log.write(items[0].text + "\\n")
            return found

    asyncio.run(score_run(Store({place!r}).run("run"), Slow()))
"""


def test_a_killed_scoring_goes_on_and_what_was_stored_is_not_asked_for_again(tmp_path, filled):
    place, log = str(tmp_path / "run.db"), tmp_path / "asked.log"
    run = filled(place, n=60)
    code = textwrap.dedent(_WORKER).format(tests=os.path.dirname(os.path.dirname(__file__)), log=str(log), place=place)
    stored_before: set[str] = set()
    for _ in range(3):
        process = Process([sys.executable, "-c", code])
        deadline = time.monotonic() + 120
        before = len(log.read_text().splitlines()) if log.exists() else 0
        while time.monotonic() < deadline and process.poll() is None:
            if log.exists() and len(log.read_text().splitlines()) > before + 15:
                break
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        asked = log.read_text().splitlines()[before:]
        assert stored_before.isdisjoint(asked)
        stored_before = {path.text for pool in run.pools(with_texts=True) for path in pool.paths if path.scores}
    assert stored_before
    score(run, Lengths())
    assert all(path.scores["lengths"] == len(path.text) for pool in run.pools(with_texts=True) for path in pool.paths)


@pytest.mark.parametrize("labels", [np.array([True, False]), [np.True_, np.False_]])
def test_true_and_false_of_arrays_are_no_scores_either(labels):
    two = Pool(Problem("q", "?"), (Path("a"), Path("b")))
    with pytest.raises(ScoringError, match="a score is a finite number"):
        checked(labels, two, "mine")
