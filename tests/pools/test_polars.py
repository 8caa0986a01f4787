"""DataFrames of Polars itself: its text views, categories, lazy frames and empty ones."""

from __future__ import annotations

import pytest

import demur as dm
from demur.errors import PoolFileError

polars = pytest.importorskip("polars", reason="polars is installed with the extra dev")

SOURCE = dm.PoolSource(dm.simulate_pools(60, n_paths=5).pools())
SCORED = dm.FieldChoice(score="simulated")


def votes_of(frame):
    return dm.vote_pools(dm.read_pools(frame), SCORED).votes


@pytest.mark.parametrize("kind", ["String", "Categorical", "Enum"])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_frame_of_polars_gives_the_votes_of_its_pools(kind, lazy):
    frame = SOURCE.to_frame("polars")
    for name in ("id", "answer"):
        named = polars.Enum(frame[name].drop_nulls().unique().to_list()) if kind == "Enum" else getattr(polars, kind)
        frame = frame.with_columns(polars.col(name).cast(named))
    found, wanted = votes_of(frame.lazy() if lazy else frame), dm.vote_pools(SOURCE, SCORED).votes
    assert found.answer.tolist() == wanted.answer.tolist()
    assert found.confidence.tolist() == wanted.confidence.tolist()
    assert found.ids == wanted.ids


def test_whole_numbers_and_nothing_are_answers_as_elsewhere():
    frame = polars.DataFrame(
        {"id": [1, 1, 1, 2, 2, 2], "answer": [7, 7, None, 3, 4, 4], "score.rm": [1.0, 2, 3, 4, 5, 6]}
    )
    votes = dm.vote_pools(dm.read_pools(frame), dm.FieldChoice(score="rm"), labelled=False).votes
    assert (votes.answer.tolist(), votes.ids) == (["7", "4"], ["1", "2"])


def test_an_empty_frame_and_one_without_ids_are_told_in_one_line():
    frame = SOURCE.to_frame("polars")
    with pytest.raises(PoolFileError, match="holds no rows"):
        dm.read_pools(frame.head(0))
    with pytest.raises(PoolFileError, match="has no column 'id'"):
        dm.read_pools(frame.drop("id"))


def test_results_come_back_as_frames_of_polars():
    voted = dm.vote_pools(SOURCE, SCORED)
    policy = dm.calibrate(voted, alpha=0.2, hold_out=0.5)
    for result in (voted, voted.votes, policy.decide_votes(voted.votes), dm.audit_policy(policy, voted)):
        assert isinstance(result.to_frame("polars"), polars.DataFrame)
