"""Small files that unpack to very much, and commands that read them within limits of memory and time."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inspect_logs import DEFLATED, ZSTANDARD, header, write_entries
from processes import Process

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def ran_within(folder: Path, *arguments: object, megabytes: int = 1024, seconds: int = 10, **environment: str) -> Ended:
    """Run `demur …` in a process that may have so much memory of its own, and so much time of a processor.

    The limit is on data, not on addresses: libraries map most of a gigabyte of addresses before anything is read.
    """
    limits = f'ulimit -d {megabytes * 1024}; ulimit -t {seconds}; exec "$@"'
    command = [shutil.which("sh") or "sh", "-c", limits, "sh", sys.executable, "-m", "demur", *map(str, arguments)]
    files = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    process = Process(command, cwd=folder, text=True, errors="replace", env={**os.environ, **environment}, **files)
    out, err = process.communicate()
    return Ended(process.returncode, out, err)


def packed(path: Path, parts: Iterable[tuple[bytes, int]]) -> Path:
    """A gzipped file of parts, each so many times."""
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for part, times in parts:
            block = max(1, min(times, MEGABYTE // len(part)))
            for _ in range(times // block):
                stream.write(part * block)
    return path


START = b'{"id": "q", "gold": "4", "paths": ['
TEXTS: Mapping[str, Any] = {
    "objects.jsonl.gz": lambda path: packed(path, [(START, 1), (b"{},", 30_000_000), (b"{}]}\n", 1)]),
    "keys.jsonl.gz": lambda path: packed(path, [(START, 1), (b'{"":0},', 12_000_000), (b"{}]}\n", 1)]),
    "text.jsonl.gz": lambda path: packed(path, [(START + b'{"text": "', 1), (b"a", 400 * MEGABYTE), (b'"}]}\n', 1)]),
    "blanks.jsonl.gz": lambda path: packed(path, [(b" ", 400 * MEGABYTE)]),
    "lines.jsonl.gz": lambda path: packed(path, [(b"\n", 50 * MEGABYTE)]),
    "deep.jsonl.gz": lambda path: packed(path, [(b"[", 50 * MEGABYTE)]),
    "objects.json.gz": lambda path: packed(path, [(b"[", 1), (b"{},", 30_000_000), (b"{}]", 1)]),
    "rows.csv.gz": lambda path: packed(path, [(b"id,gold,answer\n", 1), (b"q,4,4\n", 15_000_000)]),
    "cells.csv.gz": lambda path: packed(path, [(b"id,answer\n", 1), (b",", 90 * MEGABYTE)]),
    "cells.tsv.gz": lambda path: packed(path, [(b"id\tanswer\n", 1), (b"\t", 90 * MEGABYTE)]),
    "cell.csv.gz": lambda path: packed(path, [(b'id,answer\nq,"', 1), (b"a", 400 * MEGABYTE), (b'"\n', 1)]),
}


def table(path: Path, rows: int, groups: int = 1, **columns: Any) -> Path:
    """A Parquet file of few texts in very many rows; a column is a list of texts in turn, or what makes it."""
    import pyarrow
    from pyarrow import parquet

    every = {"id": ["q"], "gold": ["4"], "answer": ["4"], **columns}
    parts = {name: _turns(column, rows) if isinstance(column, list) else column(rows) for name, column in every.items()}
    block = pyarrow.table(parts)
    with parquet.ParquetWriter(path, block.schema, compression="zstd") as writer:
        for _ in range(groups):
            writer.write_table(block, row_group_size=rows)
    return path


def _turns(texts: list[str], rows: int) -> Any:
    import pyarrow

    codes = np.resize(np.arange(len(texts), dtype=np.int32), rows)
    return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(texts))


def _lists(rows: int) -> Any:
    import pyarrow

    return pyarrow.array([np.zeros(20_000_000, dtype=np.int32)] * rows)


def _lists_of_texts(rows: int) -> Any:
    import pyarrow

    return pyarrow.ListArray.from_arrays(np.arange(rows + 1, dtype=np.int32), _turns([LONG], rows))


def _bytes(rows: int) -> Any:
    import pyarrow

    return pyarrow.array([bytes(MEGABYTE)] * rows, pyarrow.binary(MEGABYTE))


def plain(path: Path) -> Path:
    """A Parquet file that zstd packs, its texts written out."""
    import pyarrow
    from pyarrow import parquet

    columns = {"id": ["q"] * 100, "answer": ["4"] * 100, "text": [LONG] * 100}
    parquet.write_table(pyarrow.table(columns), path, compression="zstd", use_dictionary=False)
    return path


def _zeros(rows: int) -> Any:
    return np.zeros(rows)


def folder(path: Path) -> Path:
    """Shards each of which holds less than is always read."""
    path.mkdir()
    first = table(path / "0.parquet", 6_000_000)
    for number in range(1, 20):
        shutil.copy(first, path / f"{number}.parquet")
    return path


def log(path: Path, content: bytes, method: int = DEFLATED, samples: int = 1) -> Path:
    """A log of inspect whose samples hold so much."""
    entries: list[tuple[str, Any]] = [("_journal/start.json", header(1, ["a"]))]
    entries += [(f"samples/{number}_epoch_1.json", content) for number in range(samples)]
    return write_entries(path, [*entries, ("header.json", header(1, ["a"]))], method=method)


def overlapping(path: Path) -> Path:
    """A log whose directory names one sample very many times."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header(1, ["a"])))
        archive.writestr("samples/0_epoch_1.json", b'{"id": 1, "x": "' + b" " * MEGABYTE + b'"}')
        for number in range(1, 500):
            entry = copy(archive.getinfo("samples/0_epoch_1.json"))
            entry.filename = f"samples/{number}_epoch_1.json"
            archive.filelist.append(entry)
    return path


LONG = "x" * MEGABYTE
TABLES: Mapping[str, Any] = {
    "rows.parquet": lambda path: table(path, 10_000_000, 8),
    "shards": folder,
    "text.parquet": lambda path: table(path, 1_000_000, text=[LONG]),
    "questions.parquet": lambda path: table(path, 1_000_000, question=[LONG, LONG + "y"]),
    "ids.parquet": lambda path: table(path, 1_000_000, id=[LONG, LONG + "y"]),
    "field.parquet": lambda path: table(path, 1_000_000, note=[LONG, LONG + "y"]),
    "columns.parquet": lambda path: table(path, 1_000_000, **{f"score.s{at}": _zeros for at in range(220)}),
    "lists.parquet": lambda path: table(path, 1, text=_lists),
    "texts in lists.parquet": lambda path: table(path, 200_000, messages=_lists_of_texts),
    "bytes.parquet": lambda path: table(path, 100, note=_bytes),
    "plain.parquet": plain,
}
LOGS: Mapping[str, Any] = {
    "blanks.eval": lambda path: log(path, b" " * (300 * MEGABYTE)),
    "blanks of zstd.eval": lambda path: log(path, b" " * (300 * MEGABYTE), ZSTANDARD),
    "objects.eval": lambda path: log(path, b'{"id":1,"x":[' + b"{}," * 12_000_000 + b"{}]}"),
    "samples.eval": lambda path: log(path, b'{"id":1,"x":"' + b" " * MEGABYTE + b'"}', samples=200),
    "overlapping.eval": overlapping,
    "header.eval": lambda path: write_entries(path, [("header.json", b"[" * (60 * MEGABYTE))]),
}
