"""Damaged files and stores, verb by verb: one line that names the place and, where there is one, the line; code 2."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3

import pytest

POOLS = [
    {"id": f"q{i}", "question": f"What is {i}?", "gold": str(i % 3), "task": "math",
     "paths": [{"answer": str(i % 3 + (j > 2)), "text": "So.", "scores": {"s": float(i - j)}} for j in range(4)]}
    for i in range(40)
]  # fmt: skip
LINES = [json.dumps(record) for record in POOLS]
TEXT = "\n".join(LINES) + "\n"
PACKED = gzip.compress(TEXT.encode())
ENDPOINT = ["--model", "m", "--base-url", "http://127.0.0.1:9"]


def second_line(written):
    return "\n".join([LINES[0], written, *LINES[2:]])


def nested(depth):
    return (
        '{"id": "x", "gold": "1", "question": "Q", "paths": [{"answer": "1"}], "x": ' + "[" * depth + "]" * depth + "}"
    )


def record(**fields):
    known = {"id": '"x"', "gold": '"1"', "question": '"Q"', "paths": '[{"answer": "1", "scores": {"s": 1}}]', **fields}
    return "{" + ", ".join(f'"{name}": {value}' for name, value in known.items()) + "}"


DAMAGED = {
    "a key twice": ("a.jsonl", second_line(record(task='"math", "gold": "2"')), "line 2: the key 'gold' stands"),
    "a key twice, escaped": (
        "a.jsonl",
        second_line(record(task=r'"math", "g\u006fld": "2"')),
        "line 2: the key 'gold'",
    ),
    "deep lists": ("a.jsonl", second_line(nested(500)), "line 2"),
    "lists too deep to read": ("a.jsonl", second_line(nested(100_000)), "line 2"),
    "a gigantic number": ("a.jsonl", second_line(record(gold="9" * 5000)), "line 2"),
    "gold that is NaN": ("a.jsonl", second_line(record(gold="NaN")), "line 2"),
    "gold that is endless": ("a.jsonl", second_line(record(gold="-Infinity")), "line 2"),
    "no UTF-8": ("a.jsonl", second_line(LINES[1]).encode() + b"\xff\n", "line 40: the byte 0xff is not UTF-8"),
    "UTF-16": ("a.jsonl", TEXT.encode("utf-16"), "it is UTF-16 text"),
    "UTF-16 without a mark": ("a.jsonl", TEXT.encode("utf-16-le"), "line 1"),
    "NUL": ("a.jsonl", second_line('{"id": "\0"}'), "line 2"),
    "half a line": ("a.jsonl", TEXT[:-30], "line 40"),
    "cut gzip": ("a.jsonl.gz", PACKED[:-40], "cut off or damaged"),
    "flipped gzip": ("a.jsonl.gz", PACKED[:90] + bytes([PACKED[90] ^ 255]) + PACKED[91:], "a.jsonl.gz"),
    "gzip in name only": ("a.jsonl.gz", TEXT, "cut off or damaged"),
    "gzip that does not say so": ("a.jsonl", PACKED, "it is gzipped"),
    "nothing": ("a.jsonl", "", "a.jsonl"),
}
READERS = {
    "calibrate": ["calibrate", "FILE", "--alpha", 0.2],
    "evaluate": ["evaluate", "FILE", "--alpha", 0.2],
    "plan": ["plan", "FILE", "--alpha", 0.2],
    "audit": ["audit", "FILE", "--policy", "policy.json"],
    "decide": ["decide", "FILE", "--policy", "policy.json"],
    "report": ["report", "FILE"],
    "answers": ["answers", "FILE", "-o", "out.jsonl"],
    "import": ["import", "FILE", "-o", "out.db"],
    "sample": ["sample", "FILE", "-o", "out.db", "--dry-run", *ENDPOINT],
}


@pytest.fixture
def policy(demur, tmp_path):
    (tmp_path / "good.jsonl").write_text(TEXT)
    assert demur("calibrate", "good.jsonl", "--alpha", 0.2, "--hold-out", 0.5, "-o", "policy.json").code == 0
    return tmp_path / "policy.json"


def refused(ran, *said):
    assert ran.code == 2, (ran.out, ran.err)
    notes, _, told = ran.err.rpartition("error: ")
    assert notes in ("", "the model is asked at http://127.0.0.1:9\n")
    assert told.count("\n") == 1
    assert len(told) < 1000
    for part in said:
        assert part in ran.err


@pytest.mark.parametrize("verb", READERS)
@pytest.mark.parametrize("damage", DAMAGED)
def test_files(demur, policy, tmp_path, damage, verb):
    name, content, said = DAMAGED[damage]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(demur(*(name if part == "FILE" else part for part in READERS[verb])), name, said)


@pytest.mark.parametrize("verb", [verb for verb in READERS if verb not in ("sample", "import")])
@pytest.mark.parametrize("answer", ["NaN", "Infinity"])
def test_answers_that_are_no_numbers(demur, policy, tmp_path, answer, verb):
    (tmp_path / "a.jsonl").write_text(second_line(record(paths=f'[{{"answer": {answer}}}]')))
    refused(demur(*("a.jsonl" if part == "FILE" else part for part in READERS[verb])), "line 2: `answer` of path 0")


QUESTIONS = {
    "a huge cell": ("q.csv", "id,question,gold\n1," + "x" * 200_000 + ",2\n", "q.csv, line 2: field larger"),
    "a quote that never ends": ("q.csv", 'id,question,gold\n1,"What,2\n2,What,3\n', "q.csv, line 3"),
    "a column twice": ("q.csv", "question,gold,gold\nWhat?,1,2\n", "line 1: the column 'gold' stands twice"),
    "too many cells": ("q.csv", "question,gold\nWhat, then?,1\n", "q.csv, line 2: 3 cells"),
    "UTF-16": ("q.csv", "question,gold\nWhat?,1\n".encode("utf-16"), "it is UTF-16 text"),
    "a key twice": ("q.json", '[\n{"question": "Q",\n "gold": 1,\n "gold": 2}\n]', "q.json, line 4: the key 'gold'"),
    "deep lists": ("q.json", "[" * 100_000, "q.json, line 1"),
    "no object": ("q.json", '[{"question": "Q", "gold": 1}, 5]', "q.json, record 2"),
    "an option beyond all": ("q.jsonl", json.dumps({"question": "Q", "choices": ["a"], "answer": 10**30}), "line 1"),
    "gold that is an object": ("q.jsonl", '{"question": "Q", "gold": {"a": 1}}', "q.jsonl, line 1"),
    "an id that is a list": ("q.jsonl", '{"question": "Q"}\n\n{"question": "Q", "gold": 1, "id": [1]}', "line 3"),
}


@pytest.mark.parametrize("damage", QUESTIONS)
def test_questions(demur, tmp_path, damage):
    name, content, said = QUESTIONS[damage]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(demur("sample", name, "-o", "run.db", "--dry-run", "--task", "math", *ENDPOINT), said)


@pytest.mark.parametrize("verb", ["decide", "audit"])
def test_policies_say_nothing_twice(demur, policy, verb):
    policy.write_text(policy.read_text().replace('"schema":', '"schema": 1,\n "schema":'))
    refused(demur(verb, "good.jsonl", "--policy", "policy.json"), "policy.json, line 4: the key 'schema' stands twice")


def test_parquet(demur, policy, tmp_path):
    import pyarrow
    from pyarrow import parquet

    assert demur("import", "good.jsonl", "-o", "good.db").code == 0
    assert demur("export", "good.db", "-o", "good.parquet").code == 0
    whole = (tmp_path / "good.parquet").read_bytes()
    for damaged in (whole[:-30], whole[:100], whole[:200] + b"\0" * 300 + whole[500:], b"", TEXT.encode()):
        (tmp_path / "bad.parquet").write_bytes(damaged)
        refused(demur("import", "bad.parquet", "-o", "out.db"), "bad.parquet")
    for odd in ({"problem_extra": ["{"]}, {"path_extra": ["[1]"]}, {"path": ["x"]}, {"question": [5]}, {"text": [1.5]}):
        parquet.write_table(pyarrow.table({"id": ["q"], "answer": ["1"], **odd}), tmp_path / "odd.parquet")
        refused(demur("import", "odd.parquet", "-o", "out.db"), "odd.parquet, row 0")
    twice = pyarrow.Table.from_arrays([pyarrow.array(["q"])] * 3, names=["id", "answer", "answer"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    refused(demur("import", "twice.parquet", "-o", "out.db"), "two columns 'answer'")


STORE_VERBS = {
    "runs": ["runs", "x.db"],
    "calibrate": ["calibrate", "x.db", "--alpha", 0.2, "--score", "s"],
    "report": ["report", "x.db"],
    "export": ["export", "x.db", "-o", "out.jsonl"],
    "score": ["score", "x.db", "--score", "self-consistency"],
    "score --list": ["score", "x.db", "--list"],
    "sample": ["sample", "good.jsonl", "-o", "x.db", "--dry-run", *ENDPOINT],
}


@pytest.fixture
def store(demur, policy, tmp_path):
    assert demur("import", "good.jsonl", "-o", "x.db").code == 0
    return tmp_path / "x.db"


def rewritten(store, statement):
    with sqlite3.connect(store) as connection:
        connection.execute(statement)
    connection.close()


BAD_ROWS = {
    "a blob that is no text": ("UPDATE demur_texts SET text = X'00ff' WHERE number = 3", ["report", "export", "score"]),
    "an answer of bytes": ("UPDATE demur_paths SET answer = X'ff'", ["calibrate", "report", "export", "score"]),
    "an answer in no encoding": ("UPDATE demur_paths SET answer = CAST(X'ff80' AS TEXT)", ["calibrate", "export"]),
    "half of the further fields": ("UPDATE demur_problems SET extra = '{\"a'", ["calibrate", "export", "score"]),
    "gold that is no list": ("UPDATE demur_problems SET gold = '5'", ["calibrate", "report", "export"]),
    "a score that is a word": ("UPDATE demur_scores SET value = 'high'", ["calibrate", "export", "score --list"]),
    "facts that are bytes": ("UPDATE demur_paths SET seed = X'80'", ["export"]),
    "a scorer that is nobody": ("UPDATE demur_scorers SET identity = '[]'", ["runs", "calibrate", "score --list"]),
    "a run of endless pools": ("UPDATE demur_runs SET n_paths = 9000000000", ["runs", "calibrate", "sample"]),
    "a run without a description": ("UPDATE demur_runs SET description = X'80'", list(STORE_VERBS)),
    "paths without problems": ("DELETE FROM demur_problems", ["calibrate", "score"]),
    "no paths": ("DROP TABLE demur_paths", ["runs", "calibrate", "export", "score"]),
}


@pytest.mark.parametrize("damage", BAD_ROWS)
def test_rows_that_demur_never_wrote(demur, store, damage):
    statement, verbs = BAD_ROWS[damage]
    rewritten(store, statement)
    for verb in verbs:
        refused(demur(*STORE_VERBS[verb]))


@pytest.mark.parametrize("verb", STORE_VERBS)
def test_stores_that_are_cut_or_overwritten_in_part_are_read_rightly_or_refused(demur, store, verb):
    """What SQLite cannot notice is read; nothing ends in a traceback."""
    whole, rng = store.read_bytes(), random.Random(verb)
    damaged = [whole[:cut] for cut in (10, 100, 4096, 5000, len(whole) // 2, len(whole) - 100)]
    for _ in range(12):
        start = rng.randrange(100, len(whole) - 64)
        damaged.append(whole[:start] + rng.randbytes(rng.choice([1, 8, 64])) + whole[start + 64 :])
        page = 4096 * rng.randrange(1, len(whole) // 4096)
        damaged.append(whole[:page] + bytes(4096) + whole[page + 4096 :])
    for content in damaged:
        for beside in ("x.db-wal", "x.db-shm"):
            (store.parent / beside).unlink(missing_ok=True)
        store.write_bytes(content)
        ran = demur(*STORE_VERBS[verb])
        assert ran.code in (0, 1, 2), ran.err
        if ran.code == 2:
            refused(ran)


ADDRESSES = [
    "postgresql://host:port/db", "postgresql://u@127.0.0.1:99999/db", "postgresql://127.0.0.1:1/db?port=abc",
    "postgresql://127.0.0.1:1/db?foo=bar", "postgresql://127.0.0.1:1/db?connect_timeout=soon",
    "postgresql+unknown://127.0.0.1:1/db", "postgresql://ünïcödé.invalid/db", "postgresql://a..b/db",
    "postgresql://[::1/db", "postgresql://u:new%0Aline@127.0.0.1:1/db", "postgresql://u@127.0.0.1:1/a%00b",
    "postgresql://u@/db?host=/nowhere", "postgresql://u@127.0.0.1:1/half\ud800", "mysql://host/db",
    "sqlite:///a?b#c%.db", "://", "foo://", "/dev/null", "good.jsonl/x.db", "x" * 300 + ".db",
]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda address: ascii(address)[:40])
def test_odd_addresses(demur, policy, address):
    refused(demur("runs", address))
    refused(demur("calibrate", address))
    refused(demur("import", "good.jsonl", "-o", address))


def test_a_database_that_is_not_there(demur, policy, postgres_url):
    refused(demur("import", "good.jsonl", "-o", postgres_url.replace("/q", "/nosuch")), "does not exist")


def test_names_that_hold_line_breaks_and_escapes_stay_on_one_line(demur, policy, tmp_path):
    odd = record(paths='[{"answer": "1", "scores": {"a\\nb\\u001b[31m": "x"}}]')
    (tmp_path / "a.jsonl").write_text(odd)
    ran = demur("import", "a.jsonl", "-o", "out.db")
    refused(ran, "must be a finite number")
    assert "\x1b" not in ran.err
