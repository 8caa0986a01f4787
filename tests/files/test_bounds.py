"""How much a file may hold for its size: what is allowed, to the byte, and what is refused."""

from __future__ import annotations

import gzip

import pytest

from demur.errors import PoolFileError
from demur.files.bounds import DENSE_VALUES, UNPACKED, VALUES, Bound, Content, trust_size
from demur.files.inputs import lines_of, text_of


@pytest.fixture
def small_bounds(monkeypatch):
    """Bounds of which small files reach the second part; the shares of each stay."""
    for bound in (UNPACKED, VALUES, DENSE_VALUES):
        monkeypatch.setattr(f"demur.files.bounds.{_name(bound)}", Bound(bound.what, 1000, bound.per_byte))


def _name(bound):
    return {id(UNPACKED): "UNPACKED", id(VALUES): "VALUES", id(DENSE_VALUES): "DENSE_VALUES"}[id(bound)]


def test_a_bound_is_an_amount_for_every_file_or_one_for_each_byte():
    bound = Bound("rows", 100, 2)
    bound.refuse(100, 1, "f", PoolFileError)
    bound.refuse(200, 100, "f", PoolFileError)
    with pytest.raises(PoolFileError, match="f holds more than 100 rows, the limit for 1 bytes"):
        bound.refuse(101, 1, "f", PoolFileError)
    with pytest.raises(PoolFileError, match="more than 200 rows"):
        bound.refuse(201, 100, "f", PoolFileError)
    with trust_size():
        bound.refuse(10**12, 1, "f", PoolFileError)


def test_values_are_counted_by_the_marks_between_them(small_bounds):
    content = Content("f", PoolFileError)
    content.packed = 10**6
    content.add(b'{"a": [1, 2]}\n')
    assert (content.unpacked, content.values) == (14, 4)
    with pytest.raises(PoolFileError, match="more than 1,000 values"):
        content.add(b"," * 1100)


@pytest.mark.parametrize("read", [text_of, lambda *given: list(lines_of(*given))])
def test_a_file_within_its_bounds_is_read_whatever_its_size(small_bounds, tmp_path, read):
    text = "".join(f'{{"id": "question {i}", "n": {i * i}}}\n' for i in range(50_000))
    for name, opened in (("a.jsonl", open), ("a.jsonl.gz", gzip.open)):
        with opened(tmp_path / name, "wt") as stream:
            stream.write(text)
        got = read(tmp_path / name, PoolFileError)
        assert got == (text if isinstance(got, str) else list(enumerate(text.splitlines(keepends=True), start=1)))


def test_a_file_beyond_its_bounds_is_refused_by_lines_and_whole(small_bounds, tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b" " * 10**6))
    for read in (text_of, lambda *given: list(lines_of(*given))):
        with pytest.raises(PoolFileError, match="bytes after unpacking"):
            read(tmp_path / "a.jsonl.gz", PoolFileError)


def test_recorded_files_stay_far_from_their_bounds(recorded_pools):
    for file in (*recorded_pools.glob("*.gz"), *(recorded_pools.parent / "questions").glob("*.gz")):
        assert sum(len(line) for _, line in lines_of(file, PoolFileError)) > 0


def test_a_table_of_ten_times_as_many_rows_for_its_size_as_one_of_ten_million_is_read(tmp_path, monkeypatch):
    """Ten million rows of votes take 2.4 MB: four rows a byte."""
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    from demur.files.bounds import CELLS, ROWS
    from demur.pools.parquet import read_parquet

    for name, bound in (("ROWS", ROWS), ("CELLS", CELLS)):
        monkeypatch.setattr(f"demur.pools.parquet_columns.{name}", Bound(bound.what, 0, bound.per_byte))
    rows = np.arange(200_000)
    columns = {"id": (rows // 10).astype(str), "gold": np.full(len(rows), "4"), "answer": np.full(len(rows), "4")}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet", compression="zstd")
    assert len(read_parquet(tmp_path / "a.parquet").pools) == 20_000
