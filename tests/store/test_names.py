"""Names and numbers that SQLite takes and PostgreSQL does not: both stores refuse the same ones, in the same words."""

from __future__ import annotations

import sqlite3

import pytest

from demur.descriptions import Description
from demur.errors import InvalidValue, StoreError
from demur.records import Path, Problem
from demur.store import PathScore, PlacedPath, Store

ODD = ["n" * 201, "a\x00b", "half \ud800", ""]
LONG_ID = "".join(chr(0x4E00 + at) for at in range(700))  # 2,100 bytes, which no index shortens


@pytest.fixture
def run(place):
    with Store(place, create=True) as store:
        run = store.open_run("n" * 200, Description(), None)
        run.add_problems([Problem("q", "What?")])
        run.save([PlacedPath(0, 0, Path("a"))])
        yield run


@pytest.mark.parametrize("name", ODD)
def test_a_run_has_a_name_that_every_database_takes(place, name):
    with (
        Store(place, create=True) as store,
        pytest.raises(InvalidValue, match=f"the name of a run is a text of 1 to 200 .* got {len(name)} characters"),
    ):
        store.open_run(name, Description(), None)


@pytest.mark.parametrize("name", ODD)
def test_a_score_has_a_name_that_every_database_takes(run, name):
    told = "the name of a score is a text of 1 to 200 characters"
    with pytest.raises(InvalidValue, match=told):
        run.save_scores(name, {}, [PathScore(0, 0, 1.0)])
    with pytest.raises(InvalidValue, match=told):
        run.at_work(f"score:01234567:{name}", 1)
    with pytest.raises(StoreError, match="has no score"):
        run.forget_score(name)
    assert run.scorers() == {}


def test_a_score_of_the_longest_name_is_scored_and_forgotten(run):
    run.at_work("score:01234567:" + "s" * 200, 1).end()
    run.save_scores("s" * 200, {}, [PathScore(0, 0, 1.0, "a flag of more than twenty letters\x00")])
    assert run.pools(complete=False)[0].paths[0].scores == {"s" * 200: 1.0}
    assert run.forget_score("s" * 200) == 1


@pytest.mark.parametrize("number", [-1, 1 << 20, 2**31, 2**40, 10**20])
def test_a_path_has_an_index_that_a_pool_may_have(run, number):
    with pytest.raises(StoreError, match=f"path {number} of problem number 0: indexes of paths go from 0 to 1048575"):
        run.save([PlacedPath(0, number, Path("b"))])
    assert len(run.pools(complete=False)[0].paths) == 1


@pytest.mark.parametrize("n_paths", [0, -1, 2**20 + 1, 2**31, 10**20])
def test_a_pool_has_a_number_of_paths_that_a_run_may_have(place, n_paths):
    with (
        Store(place, create=True) as store,
        pytest.raises(InvalidValue, match=f"a pool has 1 to 1048576 paths, got {n_paths}"),
    ):
        store.open_run("run", Description(), n_paths)
    with Store(place) as store:
        assert store.names() == []


def test_an_id_is_short_enough_for_an_index(run):
    with pytest.raises(StoreError, match=r"an id has at most 2000 bytes, and .* has 2100; use shorter ids"):
        run.add_problems([Problem(LONG_ID, "What?")])
    assert run.add_problems([Problem(LONG_ID[:600], "What?")]) == 1


def test_names_that_are_in_a_file_from_before_go_on_as_they_are(tmp_path):
    file, long = tmp_path / "old.db", "n" * 250
    with Store(file, create=True) as store:
        run = store.open_run("run", Description(), None)
        run.add_problems([Problem("q", "What?")])
        run.save([PlacedPath(0, place, Path("a")) for place in range(2)])
        run.save_scores("s", {}, [PathScore(0, 0, 1.0)])
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE demur_runs SET name = ?", [long])
        connection.execute("UPDATE demur_problems SET id = ?", [LONG_ID])
        for table in ("scorers", "scores"):
            connection.execute(f"UPDATE demur_{table} SET name = ?", [long])
    with Store(file) as store:
        run = store.open_run(long, Description(), None)
        assert run.add_problems([Problem(LONG_ID, "What?")]) == 0
        run.at_work(f"score:01234567:{long}", 1).end()
        run.save_scores(long, {}, [PathScore(0, 1, 2.0)])
        assert [path.scores[long] for path in run.pools(complete=False)[0].paths] == [1.0, 2.0]
        assert run.forget_score(long) == 2
