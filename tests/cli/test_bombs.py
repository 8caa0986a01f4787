"""Files that are small and hold very much, and what is no file: one line, in little time and memory."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import zlib
from contextlib import closing

import pytest

from bombs import LOGS, TABLES, TEXTS, packed, ran_within

ENDPOINT = ["--model", "m", "--base-url", "http://127.0.0.1:9"]
POOLS = "".join(
    f'{{"id": "q{i}", "question": "What is {i}?", "gold": "{i % 3}", "task": "math", '
    f'"paths": [{{"answer": "{i % 3}", "scores": {{"s": 1}}}}, {{"answer": "0", "scores": {{"s": 0}}}}]}}\n'
    for i in range(40)
)
READ = {
    "answers": ["answers", "FILE", "-o", "out.jsonl"],
    "ask": ["ask", "What is 2 + 3?", "--policy", "FILE", *ENDPOINT],
    "audit": ["audit", "FILE", "--policy", "policy.json"],
    "calibrate": ["calibrate", "FILE", "--alpha", "0.2"],
    "cascade": ["cascade", "FILE", "pools.jsonl", "--alpha", "0.2", "-o", "cascade.json"],
    "decide": ["decide", "FILE", "--policy", "policy.json"],
    "decide by": ["decide", "pools.jsonl", "--policy", "FILE"],
    "evaluate": ["evaluate", "FILE", "--alpha", "0.2"],
    "export": ["export", "FILE", "-o", "out.jsonl"],
    "fitted on": ["calibrate", "pools.jsonl", "--alpha", "0.2", "--fitted-on", "FILE"],
    "import": ["import", "FILE", "-o", "out.db"],
    "judge-labels": ["judge-labels", "FILE", "-o", "verdicts.jsonl", *ENDPOINT],
    "label": ["label", "FILE", "--out", "labels.jsonl", "--alpha", "0.2"],
    "labels": ["calibrate", "pools.jsonl", "--alpha", "0.2", "--label-file", "FILE"],
    "messages": ["ask", "--messages", "FILE", "--policy", "policy.json", *ENDPOINT],
    "plan": ["plan", "FILE", "--alpha", "0.2"],
    "report": ["report", "FILE"],
    "runs": ["runs", "FILE"],
    "sample": ["sample", "FILE", "-o", "out.db", "--dry-run", *ENDPOINT],
    "score": ["score", "FILE", "--score", "self-consistency"],
    "serve": ["serve", "--policy", "FILE", "--store", "store.db", *ENDPOINT],
    "settings": ["calibrate", "pools.jsonl", "--alpha", "0.2", "--config", "FILE"],
    "sheet": ["label", "pools.jsonl", "-o", "labels.jsonl", "--in-sheet", "FILE", "--by", "ann"],
    "shift": ["shift", "FILE", "--reference", "pools.jsonl", "-o", "shift.json"],
    "study": ["study", "FILE"],
    "tune": ["tune", "FILE", "--alpha", "0.2", "-o", "tuned.json"],
    "verdicts": ["calibrate", "pools.jsonl", "--alpha", "0.2", "--label-verdicts", "FILE"],
}
"""By what is read, a command that reads it."""


@pytest.fixture
def here(demur, tmp_path):
    (tmp_path / "pools.jsonl").write_text(POOLS)
    assert demur("calibrate", "pools.jsonl", "--alpha", 0.2, "-o", "policy.json").code == 0
    return tmp_path


def read(name, verb):
    return [name if part == "FILE" else part for part in READ[verb]]


def refused(ran, *said):
    assert ran.code == 2, ran.err
    assert "Traceback" not in ran.err
    assert ran.err.rpartition("error: ")[2].count("\n") == 1
    for part in said:
        assert part in ran.err


@pytest.mark.parametrize("bomb", [*TEXTS, *LOGS, *TABLES])
def test_every_kind_of_bomb_is_refused_within_a_gigabyte_and_ten_seconds(tmp_path, bomb):
    {**TEXTS, **LOGS, **TABLES}[bomb](tmp_path / bomb)
    refused(ran_within(tmp_path, "answers", bomb, "-o", "out.jsonl"), "holds more than", "--trust-size")


@pytest.mark.parametrize("verb", [verb for verb in READ if verb not in ("export", "runs", "score", "sheet")])
def test_whatever_is_read_may_be_a_bomb(demur, here, verb):
    ending = {"messages": "json", "settings": "toml", "study": "toml"}.get(verb, "jsonl")
    bomb = packed(here / f"bomb.{ending}.gz", [(b" ", 100 << 20)])
    refused(demur(*read(bomb.name, verb)), f"{bomb.name} holds more than", "--trust-size")


def test_bytes_of_a_table_that_nobody_needs_are_not_unpacked(tmp_path):
    TABLES["bytes.parquet"](tmp_path / "bytes.parquet")
    assert ran_within(tmp_path, "calibrate", "bytes.parquet", "--alpha", 0.2).code == 0


@pytest.mark.parametrize("bomb", ["text.parquet", "field.parquet"])
def test_a_pool_of_a_million_paths_is_voted_on_in_seconds(tmp_path, bomb):
    TABLES[bomb](tmp_path / bomb)
    ran = ran_within(tmp_path, "calibrate", bomb, "--alpha", 0.2)
    assert ran.code == 0, ran.err


STORES = {
    "endless view": (
        "ALTER TABLE demur_scorers RENAME TO old",
        "CREATE VIEW demur_scorers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT old.* FROM n, old WHERE i < 0",
    ),
    "computed column": (
        "DROP TABLE demur_texts",
        "CREATE TABLE demur_texts (run INTEGER, number INTEGER, path INTEGER, text BLOB AS (zeroblob(900000000)))",
        "INSERT INTO demur_texts (run, number, path) SELECT run, number, path FROM demur_paths",
    ),
    "trigger": ("CREATE TRIGGER t AFTER INSERT ON demur_sessions BEGIN DELETE FROM demur_paths; END",),
}


@pytest.fixture
def store(demur, here):
    assert demur("import", "pools.jsonl", "-o", "run.db").code == 0
    return here / "run.db"


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("verb", ["calibrate", "import"])
def test_a_store_that_computes_what_it_holds_is_refused(store, kind, verb):
    with closing(sqlite3.connect(store, isolation_level=None)) as database:
        for statement in STORES[kind]:
            database.execute(statement)
    arguments = ["import", "pools.jsonl", "-o", "run.db"] if verb == "import" else read("run.db", verb)
    refused(ran_within(store.parent, *arguments), "a store holds plain tables alone")


@pytest.mark.parametrize(("texts", "megabytes"), [(1, 400), (60, 50)])
def test_texts_of_a_store_unpack_to_no_more_than_a_file_of_that_size_may_hold(store, texts, megabytes):
    packed_text = zlib.compress(b"a" * (megabytes << 20))
    with closing(sqlite3.connect(store)) as database, database:
        places = "SELECT run, number, path, ? FROM demur_paths LIMIT ?"
        database.execute(f"INSERT OR REPLACE INTO demur_texts {places}", (packed_text, texts))
    refused(ran_within(store.parent, *read("run.db", "export")), "bytes after unpacking", "--trust-size")


def test_what_is_trusted_is_read_whatever_it_holds(demur, here):
    spaces = packed(here / "spaces.jsonl.gz", [(b" ", 65 << 20), (POOLS.encode(), 1)])
    before = os.environ.get("DEMUR_TRUST_SIZE")
    refused(demur("calibrate", spaces.name, "--alpha", 0.2), "67,108,864 bytes after unpacking")
    assert demur("calibrate", spaces.name, "--alpha", 0.2, "--trust-size").code == 0
    assert os.environ.get("DEMUR_TRUST_SIZE") == before
    assert ran_within(here, "calibrate", spaces.name, "--alpha", 0.2, DEMUR_TRUST_SIZE="1").code == 0
    refused(demur("calibrate", spaces.name, "--alpha", 0.2), "67,108,864 bytes after unpacking")


@pytest.mark.parametrize("verb", READ)
@pytest.mark.parametrize("kind", ["device", "FIFO", "socket", "folder"])
def test_what_is_no_file_is_refused_unopened(demur, here, kind, verb):
    place = here / f"{kind}.jsonl"
    if kind == "device":
        place.symlink_to("/dev/zero")
    elif kind == "FIFO":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(place))
    refused(demur(*read(place.name, verb)), place.name)
    left = {path.name for path in here.iterdir()}
    assert left <= {"pools.jsonl", "policy.json", place.name, "out.db", "labels.jsonl", "store.db"}


def test_a_file_that_is_one_hole_is_refused(demur, here):
    (here / "hole.jsonl").touch()
    os.truncate(here / "hole.jsonl", 1 << 40)
    refused(demur("calibrate", "hole.jsonl", "--alpha", 0.2), "it holds zero bytes, and no text")


def test_a_pipe_of_the_shell_is_a_file_like_any_other(demur, here):
    end, start = os.pipe()
    writer = threading.Thread(target=lambda: os.write(start, POOLS.encode()) and os.close(start))
    writer.start()
    ran = demur("calibrate", f"/dev/fd/{end}", "--alpha", 0.2)
    writer.join(300)
    os.close(end)
    assert ran.code == 0, ran.err
    assert "40 calibration questions" in ran.out
