"""Tables that other programs write: types, categories and statistics of their own, and the same outcome."""

from __future__ import annotations

from decimal import Decimal

import pyarrow
import pyarrow.parquet
import pytest

import demur as dm
from demur.errors import InvalidValue, PoolFileError


@pytest.fixture
def folder(tmp_path):
    """Write tables, columns by name, as the files of a folder."""

    def write(*tables):
        place = tmp_path / "shards"
        place.mkdir()
        for number, table in enumerate(tables):
            pyarrow.parquet.write_table(pyarrow.table(table), place / f"part-{number}.parquet")
        return place

    return write


def voted(place, **choice):
    told: list[str] = []
    return dm.vote_pools(dm.read_pools(place), dm.FieldChoice(**choice), say=told.append), told


def right(place, **choice):
    """Which votes are right, by the names of problems."""
    pools, _ = voted(place, **choice)
    return dict(zip(pools.table.ids, pools.labelled.tolist(), strict=True))


@pytest.mark.parametrize("kind", [pyarrow.list_(pyarrow.string()), pyarrow.large_list(pyarrow.large_string())])
def test_gold_may_be_a_list(folder, kind):
    table = {"id": ["a", "a", "b"], "answer": ["1", "1", "2"], "gold": pyarrow.array([["1"], ["1"], ["3", "2"]], kind)}
    assert right(folder(table)) == {"a": True, "b": True}


def test_a_column_may_be_empty_in_one_file_and_of_numbers_of_several_kinds_in_others(folder):
    """As programs have it that choose a type for each file by what stands in it."""
    place = folder(
        {"id": ["a", "a"], "answer": ["1", "1"], "gold": [1, 1], "cluster": pyarrow.nulls(2)},
        {"id": ["b", "b"], "answer": ["2.5", "2.5"], "gold": [2.5, 2.5], "cluster": ["x", "x"]},
        {"id": ["c"], "answer": ["3"], "gold": pyarrow.array([3], pyarrow.int32()), "cluster": ["x"]},
        {"id": pyarrow.array(["d"], pyarrow.large_string()), "answer": ["1"], "gold": [1.0], "cluster": ["x"]},
    )
    assert right(place) == {"a": True, "b": True, "c": True, "d": True}
    assert list(voted(place)[0].table.clusters) == [None, "x", "x", "x"]
    assert [repr(pool.problem.gold) for pool in dm.read_pools(place).pools] == ["(1,)", "(2.5,)", "(3,)", "(1.0,)"]


def test_ids_that_are_whole_numbers_here_and_fractions_there_must_stay_apart(folder):
    place = folder(
        {"id": [1, 7], "answer": ["1", "1"], "gold": ["1", "1"]},
        {"id": [2.5, 1.0], "answer": ["2", "2"], "gold": ["2", "2"]},
    )
    with pytest.raises(PoolFileError, match="the column 'id' mixes types"):
        dm.read_pools(place)


def test_decimals_are_the_numbers_that_they_say(folder):
    """3/10 as a decimal is the answer 0.3, not 0.30000000000000004, and no whole number loses a digit."""
    tenths = [Decimal(number).scaleb(-1) for number in range(60)]
    place = folder(
        {
            "id": pyarrow.array([10**20 + number for number in range(60)], pyarrow.decimal128(38, 0)),
            "answer": pyarrow.array(tenths, pyarrow.decimal128(4, 1)),
            "gold": list(map(str, tenths)),
            "score.rm": pyarrow.array(tenths, pyarrow.decimal128(10, 2)),
        }
    )
    pools, _ = voted(place, score="rm")
    assert pools.labelled.all()
    assert list(pools.table.ids) == [str(10**20 + number) for number in range(60)]
    assert [scores[0] for scores in pools.table.scores] == list(map(float, tenths))
    assert [pool.paths[0].scores["rm"] for pool in dm.read_pools(place).pools] == list(map(float, tenths))


def test_statistics_that_do_not_count_what_is_missing_settle_nothing(tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": ["a", "b", "c"], "answer": ["1", "1", "1"], "gold": ["1", None, "1"]})
    frame.write_parquet(tmp_path / "t.parquet", statistics={"min": True, "max": True, "null_count": False})
    with pytest.raises(PoolFileError, match="problem 'b' has no gold answer"):
        voted(tmp_path / "t.parquet")


@pytest.mark.parametrize("name", ["id", "answer", "gold"])
def test_bytes_are_no_texts(folder, name):
    table = {"id": ["a"], "answer": ["1"], "gold": ["1"]}
    place = folder(table | {name: [b"1"]})
    with pytest.raises((PoolFileError, InvalidValue)) as caught:
        voted(place)
    assert f"the column {name!r} holds binary in {place / 'part-0.parquet'}" in str(caught.value)


def test_what_is_told_does_not_hang_on_the_order_of_categories(folder):
    """Two kinds of answers, and two spellings that look like none, as often as each other."""
    answers = ["\\frac{1}{x}", "1", "Paris", "n/a", "none"]
    table = {"id": list("abcde"), "answer": answers, "gold": ["1"] * 5, "group": ["x", None, "y", None, "x"]}
    backwards = pyarrow.DictionaryArray.from_arrays([4, 3, 2, 1, 0], answers[::-1])
    plain = folder(table)
    before, told = voted(plain)
    pyarrow.parquet.write_table(pyarrow.table(table | {"answer": backwards}), plain / "part-0.parquet")
    after, told_again = voted(plain)
    assert told_again == told
    assert after.table.comparison() == before.table.comparison()


def test_groups_are_numbered_as_they_come(folder):
    table = {"id": list("abcd"), "answer": ["1"] * 4, "gold": ["1"] * 4, "group": [None, "y", None, "x"]}
    groups = voted(folder(table))[0].table.groups
    assert groups.kinds == ((), ("y",), ("x",))
    assert list(groups) == [(), ("y",), (), ("x",)]
