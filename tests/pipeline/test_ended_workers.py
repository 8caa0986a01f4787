"""Workers of a cluster that end before they say what they did: it is counted, and not done again."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import demur as dm
from demur import event_loop
from demur.engine.ray.cluster import Cluster
from demur.pipeline.config import Config
from demur.pipeline.ray import sampling, scoring
from demur.pools.parquet import read_parquet
from demur.scoring.settings import ScorerSettings
from loopback import error, obliging

PATHS = 4
PROBLEMS = [dm.Problem(f"q{k}", f"What is {k} + 1?", ("1",), extra={"task": "math"}) for k in range(6)]


def all_of_it(work, piece):
    work.do(piece)


def a_part(work, block):
    event_loop.run(work._pipeline.run_async(block.problems[:1], work.shards.unfinished_run(block)))


@pytest.fixture
def here(monkeypatch):
    """Has work done in this process, each piece by a worker that ends, and then by another."""

    def start(ends):
        def work_through(work, todo, crew, surroundings):
            work.open()
            for piece in todo:
                ends(work, piece)
                yield work.do(piece)
            if isinstance(work, sampling._Sampling):
                event_loop.run(work._pipeline.backend.backend.close())

        for module in (sampling, scoring):
            monkeypatch.setattr(module, "cluster", lambda *_, **__: nullcontext(Cluster(1, 0, 0.0)))
            monkeypatch.setattr(module, "work_through", work_through)
        monkeypatch.setattr(sampling, "ray_library", lambda: None)

    return start


def sampled(server, folder, problems=PROBLEMS):
    server.behave = obliging
    config = Config(base_url=server.url, model="m", paths=PATHS)
    return sampling.sample_shards(config, problems, folder, sampling.RayOptions(block=3))


@pytest.mark.parametrize("ends", [all_of_it, a_part])
def test_paths_of_a_worker_that_ended_are_counted_and_not_asked_for_again(server, here, tmp_path, ends):
    here(ends)
    done = sampled(server, tmp_path / "shards")
    progress = done.progress
    assert (progress.saved, progress.wanted, done.finished, done.unfinished) == (24, 24, 2, ())
    assert sum(request.get("n", 1) for request in server.requests) == 24
    assert progress.tokens == sum(
        path.extra.get("n_tokens") or 0 for pool in read_parquet(tmp_path / "shards").pools for path in pool.paths
    )


def test_paths_of_an_earlier_command_are_not_counted(server, here, tmp_path):
    here(lambda *_: None)
    server.behave = obliging

    def refused(number, body, request):
        return error(400) if "What is 4" in str(body["messages"]) else obliging(number, body, request)

    config = Config(base_url=server.url, model="m", paths=PATHS)
    server.behave = refused
    first = sampling.sample_shards(config, PROBLEMS, tmp_path / "shards", sampling.RayOptions(block=3))
    assert (first.progress.saved, first.progress.wanted, first.unfinished) == (20, 24, ("block-000001",))
    here(all_of_it)
    again = sampled(server, tmp_path / "shards")
    assert (again.progress.saved, again.progress.wanted, again.unfinished) == (4, 4, ())


def test_scores_that_a_worker_wrote_before_it_ended_are_counted(server, here, tmp_path):
    here(all_of_it)
    sampled(server, tmp_path / "shards")
    done = scoring.score_shards(tmp_path / "shards", {"self-consistency": ScorerSettings()})
    assert (done.progress["self-consistency"].saved, done.progress["self-consistency"].wanted) == (24, 24)
