"""Groups of problems in files: a text or a list, in `group` or another field, through every format and back."""

from __future__ import annotations

import json

import pytest

import demur as dm
from demur.errors import InvalidValue, PoolFileError
from demur.pools.delimited import read_csv, write_csv
from demur.pools.frames import pools_of_frame
from demur.pools.groups import read_groups
from demur.pools.jsonl import read_pools, write_pools
from demur.pools.source import PoolSource
from demur.records import Path, Pool, Problem, group_as_text, group_of_text

GROUPS = ["algebra", ("algebra", "spoken"), None, "[not a list", '["a list of one"]', ("with, comma", 'with "quotes"')]
POOLS = [Pool(Problem(f"q{row}", "?", ("1",), group=group), (Path("1"), Path("2"))) for row, group in enumerate(GROUPS)]
WANTED = [
    ("algebra",), ("algebra", "spoken"), (), ("[not a list",), ('["a list of one"]',), ('with "quotes"', "with, comma"),
]  # fmt: skip


def through_jsonl(folder):
    write_pools(POOLS, folder / "pools.jsonl")
    return read_pools(folder / "pools.jsonl")


def through_csv(folder):
    write_csv(POOLS, folder / "pools.csv")
    return read_csv(folder / "pools.csv").pools


def through_parquet(folder):
    pytest.importorskip("pyarrow")
    from demur.pools.parquet import read_parquet, write_parquet

    write_parquet(POOLS, folder / "pools.parquet")
    return read_parquet(folder / "pools.parquet").pools


@pytest.mark.parametrize("through", [through_jsonl, through_csv, through_parquet])
def test_groups_survive_a_file(tmp_path, through):
    pools = through(tmp_path)
    assert list(read_groups(pools)) == WANTED
    assert [pool.problem.groups for pool in pools] == WANTED


@pytest.mark.parametrize("group", GROUPS)
def test_one_text_holds_any_group(group):
    text = group_as_text(group)
    back = None if text is None else group_of_text(text)
    assert Problem("", group=back).groups == Problem("", group=group).groups


def test_lists_in_tables_are_groups():
    frame = {"id": ["a", "a", "b"], "answer": ["1", "1", "2"], "group": [["y", "x"], ["y", "x"], None]}
    assert list(read_groups(pools_of_frame(frame))) == [("x", "y"), ()]


def test_another_field_may_hold_groups(tmp_path):
    named = enumerate(["a", 7, ["b", "a"]])
    lines = [{"id": str(row), "category": group, "paths": [{"answer": "1"}]} for row, group in named]
    (tmp_path / "pools.jsonl").write_text("\n".join(map(json.dumps, lines)))
    pools = read_pools(tmp_path / "pools.jsonl")
    assert list(read_groups(pools, "category")) == [("a",), ("7",), ("a", "b")]
    with pytest.raises(PoolFileError, match="no problem of the file has a field 'categories'") as refused:
        read_groups(pools, "categories")
    assert "did you mean 'category'?" in str(refused.value) + refused.value.remedy
    assert list(read_groups(pools, "categories", in_use=True)) == [(), (), ()]
    with pytest.raises(InvalidValue, match="groups must not be made of labels"):
        read_groups(pools, "is_correct")
    votes = dm.vote_pools(PoolSource(pools), dm.FieldChoice(group_field="category"), labelled=False).votes
    assert list(votes.groups) == [("a",), ("7",), ("a", "b")]
    assert votes.upstream.answers["group_field"] == "category"


def test_columns_of_tables_may_hold_groups_if_paths_agree():
    frame = {"id": ["a", "a", "b"], "answer": ["1", "1", "2"], "subject": ["x", "x", "y"]}
    assert list(read_groups(pools_of_frame(frame), "subject")) == [("x",), ("y",)]
    frame["subject"][1] = "z"
    with pytest.raises(PoolFileError, match="different values of 'subject'"):
        read_groups(pools_of_frame(frame), "subject")


@pytest.mark.parametrize("group", [True, 1.5, {"a": 1}, ["a", None], ["a", " "], [["a"]]])
def test_a_group_that_is_no_text_is_refused_with_its_line(tmp_path, group):
    (tmp_path / "pools.jsonl").write_text(json.dumps({"id": "q", "group": group, "paths": [{"answer": "1"}]}))
    with pytest.raises(PoolFileError, match=r"line 1: the groups? of problem 'q' must be"):
        read_pools(tmp_path / "pools.jsonl")
