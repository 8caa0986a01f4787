"""Rules replayed on pools from files: the same whatever the file's kind, spelt and labelled by what is left."""

from __future__ import annotations

import numpy as np
import pytest

import demur as dm
from demur import stopping
from demur.errors import InvalidValue, PoolFileError

RULE = stopping.beta(0.95, wave=4)


@pytest.fixture(scope="module")
def pools():
    return dm.simulate_pools(200, seed=12).pools()


@pytest.mark.parametrize("name", ["pools.parquet", "pools.csv", "pools.jsonl.gz"])
@pytest.mark.parametrize("score", [None, "simulated"])
def test_a_policy_is_the_same_from_files_of_every_kind(tmp_path, pools, name, score):
    """Bit for bit, but for what a file says of its problems besides."""
    fields = dm.FieldChoice(score=score)
    documents = []
    for file in ("plain.jsonl", name):
        dm.write_pools(dm.PoolSource(pools), tmp_path / file)
        source = dm.read_pools(tmp_path / file).stopped_by(RULE, fields)
        voted = dm.vote_pools(source, fields)
        documents.append(dm.calibrate(voted, alpha=[0.05, 0.1]).document())
        assert voted.votes.n_paths.tolist() == [len(pool.paths) for pool in source.pools]
    assert documents[0] == documents[1]


@pytest.mark.parametrize("name", ["paths.parquet", "paths.csv"])
def test_rows_in_any_order_are_replayed_by_the_numbers_of_their_paths(tmp_path, pools, name):
    """Also where the first row of a problem is that of a path which is left out, and pools become objects."""
    source = dm.PoolSource(pools)
    shuffled = source.to_frame().sample(frac=1, random_state=1)
    shuffled.to_parquet(tmp_path / name) if name.endswith("parquet") else shuffled.to_csv(tmp_path / name, index=False)

    def said(stopped):
        return {pool.problem.id: (pool.problem.gold, [path.answer for path in pool.paths]) for pool in stopped.pools}

    assert said(dm.read_pools(tmp_path / name).stopped_by(RULE)) == said(source.stopped_by(RULE))


def test_replay_on_a_file_is_replay_on_arrays(pools):
    drawn = dm.simulate_pools(200, seed=12)
    on_arrays = dm.vote(drawn.answers, ids=[pool.problem.id for pool in pools], stop=RULE)
    on_pools = dm.vote_pools(dm.PoolSource(pools).stopped_by(RULE)).votes
    assert np.array_equal(on_arrays.n_paths, on_pools.n_paths)
    assert np.array_equal(on_arrays.confidence, on_pools.confidence)


def pool_of(*answers, gold="1/2", **more):
    paths = tuple(dm.Path(answer, extra={name: value[at] for name, value in more.items()})
                  for at, answer in enumerate(answers))  # fmt: skip
    return dm.Pool(dm.Problem("p", "How much?", (gold,), extra={"task": "math"}), paths)


def test_an_answer_is_written_as_the_paths_that_are_left_write_it():
    pool = pool_of("0.5", "0.5", "0.5", "1/2", "1/2", "1/2", "1/2", "1/2")
    voted = dm.vote_pools(dm.PoolSource([pool]).stopped_by(RULE))
    assert (voted.votes.n_paths.tolist(), voted.votes.answer.tolist()) == ([4], ["0.5"])
    assert dm.vote_pools(dm.PoolSource([pool])).votes.answer.tolist() == ["1/2"]


def test_labels_of_paths_that_are_not_drawn_are_not_looked_at():
    """A later path that contradicts the label of an answer is none of the stopped pool's."""
    right = [True] * 4 + [False] * 4
    source = dm.PoolSource([pool_of(*["0.5"] * 8, right=right)])
    assert dm.vote_pools(source.stopped_by(RULE), correct="right").labelled.tolist() == [True]
    assert dm.vote_pools(source, correct="right").labelled.tolist() == [False]


def test_a_score_that_a_path_lacks_behind_the_end_is_not_missed():
    pool = pool_of(*["0.5"] * 8)
    scored = [dm.Path(path.answer, scores={"s": 1.0} if at < 4 else {}) for at, path in enumerate(pool.paths)]
    source, fields = dm.PoolSource([dm.Pool(pool.problem, tuple(scored))]), dm.FieldChoice(score="s", unscored="drop")
    assert dm.vote_pools(source, fields).votes.unscored.tolist() == [True]
    assert dm.vote_pools(source.stopped_by(RULE, fields), fields).votes.unscored is None


def test_a_rule_is_never_assumed_of_a_file_that_does_not_say_it(pools):
    policy = dm.calibrate(dm.vote_pools(dm.PoolSource(pools).stopped_by(RULE)), alpha=0.1)
    voted = policy.vote(dm.PoolSource(pools))
    assert voted.votes.stopping is None
    with pytest.raises(dm.errors.PipelineMismatch, match=r"sampling\.stopping\.rule"):
        policy.check(voted.votes)
    policy.check(policy.vote(dm.PoolSource(pools).stopped_by(RULE)).votes)


def test_a_file_whose_rule_is_none_or_ends_its_pools_elsewhere_is_refused(tmp_path, pools):
    source = dm.PoolSource(pools).stopped_by(RULE)
    dm.write_pools(source, tmp_path / "pools.jsonl")
    text = (tmp_path / "pools.jsonl").read_text()
    (tmp_path / "other.jsonl").write_text(text.replace("beta@1:0.95", "beta@1:0.6"))
    with pytest.raises(InvalidValue, match=r"did not end where beta@1:0\.6"):
        dm.vote_pools(dm.read_pools(tmp_path / "other.jsonl"))
    (tmp_path / "none.jsonl").write_text(text.replace("beta@1:0.95", "gamma@1:0.95"))
    with pytest.raises(PoolFileError, match=r"unknown stopping rule 'gamma@1:0\.95'"):
        dm.read_pools(tmp_path / "none.jsonl")
