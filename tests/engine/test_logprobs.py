"""Log-probabilities that a score needs: asked for with one path first, drawn again where they are missing, counted."""

from __future__ import annotations

import asyncio

import pytest

from demur.backends import Completion, Scripted, Settings
from demur.engine.sample import sample
from demur.engine.score import score_run
from demur.errors import BackendError, LogprobsMissing
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem
from demur.scoring.own import OwnScore
from demur.scoring.perplexity.recorded import Perplexity
from demur.scoring.self_consistency import SelfConsistency
from demur.store import PathScore, Store

PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(12)]
PATHS = 8


@pytest.fixture
def run(place):
    with Store(place, create=True) as store:
        run = store.open_run("run", Pipeline(Scripted({})).fitted(PROBLEMS).description(), PATHS)
        run.add_problems(PROBLEMS)
        yield run


def says(mute=lambda prompt, want: False, text="\\boxed{1}"):
    """Paths that all say the same, without log-probabilities where `mute` says so."""

    def script(prompt, want):
        logprobs = None if mute(prompt, want) else (-0.5, -1.5)
        return Completion(want.path, text, "stop", logprobs, want.seed, n_tokens=2)

    return script


def go(run, script, *, needs_logprobs=True, **options):
    backend = Scripted(script, **options)
    fitted = Pipeline(backend).fitted(PROBLEMS)
    settings = Settings()
    work = sample(run, backend, fitted.render, settings, fitted.path, needs_logprobs=needs_logprobs)
    return asyncio.run(work), backend


def asked_for(backend):
    return sum(len(wanted) for _, wanted in backend.asked)


def test_the_first_path_is_drawn_alone_and_kept_and_all_others_once(run):
    progress, backend = go(run, says())
    assert len(backend.asked[0][1]) == 1
    assert {len(wanted) for _, wanted in backend.asked[1:]} == {PATHS - 1, PATHS}
    assert asked_for(backend) == progress.saved == len(PROBLEMS) * PATHS
    assert progress.drawn_again == 0


def test_a_model_that_gives_none_is_left_after_three_paths_which_are_kept(run):
    with pytest.raises(LogprobsMissing, match="the first 3 paths came without token log-probabilities"):
        go(run, says(lambda *_: True), concurrency=12)
    assert run.summary()["paths"] == 3


def test_a_model_that_is_not_asked_for_any_is_not_tried(run):
    _, backend = go(run, says(lambda *_: True), needs_logprobs=False)
    assert {len(wanted) for _, wanted in backend.asked} == {PATHS}


def test_a_question_that_fails_on_trial_leaves_the_trial_to_the_next(run):
    def script(prompt, want):
        if prompt.problem == "q0":
            raise BackendError("too long")
        return says()(prompt, want)

    progress, backend = go(run, script, concurrency=4)
    assert list(progress.failed) == ["q0"]
    assert [len(wanted) for _, wanted in backend.asked[:2]] == [1, 1]
    assert progress.saved == 11 * PATHS


def odd(prompt, want):
    return prompt.problem in ("q3", "q7") and want.path in (2, 5)


def test_paths_that_came_without_are_drawn_again_with_their_own_seeds_and_counted(run):
    first, _ = go(run, says(odd))
    assert first.saved == len(PROBLEMS) * PATHS
    before = {pool.problem.id: pool.paths for pool in run.pools()}
    again, backend = go(run, says(text="\\boxed{2}"))
    assert (again.wanted, again.saved, again.drawn_again, again.still_without) == (4, 4, 4, 0)
    drawn = sorted((prompt.problem, want.path, want.seed) for prompt, wanted in backend.asked for want in wanted)
    places = [(name, place) for name in ("q3", "q7") for place in (2, 5)]
    assert drawn == [(name, place, before[name][place].extra["seed"]) for name, place in places]
    after = {pool.problem.id: pool.paths for pool in run.pools(with_texts=True)}
    assert all(after[name][place].text == "\\boxed{2}" and after[name][place].answer == "2" for name, place in places)
    assert run.summary()["with_logprobs"] == run.summary()["paths"] == len(PROBLEMS) * PATHS
    nothing, backend = go(run, says())
    assert (nothing.wanted, backend.asked) == (0, [])


def test_a_path_that_comes_without_once_more_leaves_what_was_there(run):
    go(run, says(odd))
    again, _ = go(run, says(lambda prompt, want: odd(prompt, want) and want.path == 5, text="\\boxed{2}"))
    assert (again.drawn_again, again.still_without, again.saved) == (4, 2, 2)
    paths = {pool.problem.id: pool.paths for pool in run.pools()}["q3"]
    assert [paths[place].answer for place in (2, 5)] == ["2", "1"]


def test_blank_paths_have_nothing_to_draw_again(run):
    go(run, lambda prompt, want: Completion(want.path, "", "stop", None, want.seed))
    again, backend = go(run, says())
    assert (again.wanted, backend.asked) == (0, [])


def test_a_run_sampled_without_them_on_purpose_is_not_paid_for_again(run):
    go(run, says(lambda *_: True), needs_logprobs=False)
    run.note("sample", "2026-01-01", {"logprobs": False})
    assert run.pending(with_logprobs=True) == []


def length(pool):
    return [len(path.text) / len(pool.paths) for path in pool.paths]


def test_scores_that_depend_on_a_path_drawn_again_go_and_the_others_stay(run):
    go(run, says(odd))
    for scorer in (SelfConsistency(), OwnScore(length)):
        asyncio.run(score_run(run, scorer))
    judged = [PathScore(number, place, -1.0) for number in range(12) for place in range(PATHS)]
    run.save_scores("judge", {"scorer": "judge", "backend": "server"}, judged)
    go(run, says(text="\\boxed{22}"))
    assert sorted(run.lacking("self-consistency")) == [3, 7]
    assert sorted(run.lacking("length")) == [3, 7]
    assert run.lacking("judge") == {3: (2, 5), 7: (2, 5)}
    scored = asyncio.run(score_run(run, Perplexity()))
    assert scored.failed == {}
