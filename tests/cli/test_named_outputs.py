"""What a verb writes is what the name of its output says, or the name is refused in one line."""

from __future__ import annotations

import csv
import gzip
import json
import math

import pyarrow.parquet
import pytest

_TABLES = ["csv", "tsv", "csv.gz", "tsv.gz", "CSV", "parquet", "pq", "parquet.gz", "xlsx", "xls", "ods", "feather"]
_TEXTS = ["jsonl", "ndjson", "jsonl.gz", "ndjson.gz", "json", "json.gz", "gz", "txt", "md", "html", "htm"]
ENDINGS = [*_TABLES, *_TEXTS, "arrow", "avro", "db", "sqlite", "zip", "pdf", "foo"]
VERBS = {
    "answers": ["pools.jsonl"],
    "calibrate": ["pools.jsonl", "--alpha", 0.2],
    "cascade": ["pools.jsonl", "pools.jsonl", "--alpha", 0.2],
    "decide": ["pools.jsonl", "--policy", "policy.json"],
    "export": ["run.db"],
    "import": ["pools.jsonl"],
    "label": ["pools.jsonl", "--alpha", 0.2, "--json"],
    "report": ["pools.jsonl", "--policy", "policy.json"],
    "shift": ["traffic.jsonl", "--reference", "pools.jsonl"],
    "simulate": ["-n", 3, "-m", 2],
    "tune": ["pools.jsonl", "--alpha", 0.2],
}


def is_json(text):
    json.loads(text)
    return True


def is_lines(text):
    return all(isinstance(json.loads(line), dict) for line in text.splitlines())


def is_table(separator):
    def separated(text):
        rows = list(csv.reader(text.splitlines(keepends=True), delimiter=separator))
        return len(rows) > 1 and len(rows[0]) > 3 and {len(row) for row in rows} == {len(rows[0])} and "id" in rows[0]

    return separated


HOLDS = {
    ".csv": is_table(","),
    ".tsv": is_table("\t"),
    ".jsonl": is_lines,
    ".ndjson": is_lines,
    ".json": is_json,
    ".html": lambda text: text.startswith("<!doctype html>"),
}
HOLDS[".htm"] = HOLDS[".html"]


def holds_what_its_name_says(path):
    """Whether a file is what its ending says, as the first reader of that ending would find."""
    content, name = path.read_bytes(), path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return content.startswith(b"PAR1")
    if name.endswith((".db", ".sqlite")):
        return content.startswith(b"SQLite format 3\0")
    if name.endswith(".gz"):
        content, name = gzip.decompress(content), name.removesuffix(".gz")
    ending = name[name.rindex(".") :]
    return ending in HOLDS and HOLDS[ending](content.decode())


@pytest.fixture
def inputs(demur, tmp_path):
    assert demur("simulate", "-o", "pools.jsonl", "-n", 120, "-m", 5, "--seed", 1).code == 0
    assert demur("simulate", "-o", "traffic.jsonl", "-n", 40, "-m", 5, "--seed", 2).code == 0
    assert demur("calibrate", "pools.jsonl", "--alpha", 0.2, "-o", "policy.json").code == 0
    assert demur("import", "pools.jsonl", "-o", "run.db").code == 0
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_is_what_its_name_says_or_is_refused(demur, inputs, verb):
    written = []
    for ending in ENDINGS:
        out = inputs / f"out.{ending}"
        ran = demur(verb, *VERBS[verb], "-o", out)
        if out.exists():
            assert ran.code == 0, ran.err
            assert holds_what_its_name_says(out), out.read_bytes()[:100]
            written.append(ending)
            if verb not in ("import", "label"):  # which add to what is there
                assert demur(verb, *VERBS[verb], "-o", out).code == 0, "it is not replaced by its own kind"
        else:
            assert ran.code == 2
            assert ran.err.startswith("error: ")
            assert len(ran.err.splitlines()) == 1
            assert f"out.{ending}" in ran.err
            assert "name it" in ran.err or "name a" in ran.err
    assert written


def test_a_name_without_an_ending_or_with_a_number_says_nothing(demur, inputs):
    for name in ("policy", "policy-0.1", "v1.2"):
        assert demur("calibrate", "pools.jsonl", "--alpha", 0.2, "-o", name).code == 0
        assert demur("decide", "pools.jsonl", "--policy", name, "-o", f"of-{name}").code == 0
        assert is_lines((inputs / f"of-{name}").read_text())


def test_decisions_as_csv_are_those_of_json_lines(demur, inputs):
    """Every number, and what has no column of its own as JSON; what is not finite is an empty cell."""
    line = '{"id": "=1+1", "question": "odd?", "paths": [{"answer": "@x, \\"y\\"\\n"}, {"answer": null}]}\n'
    (inputs / "odd.jsonl").write_text(line + (inputs / "traffic.jsonl").read_text())
    flags = ["odd.jsonl", "--policy", "policy.json", "--alpha", 0.2]
    for name in ("d.jsonl", "d.csv", "d.tsv.gz"):
        assert demur("decide", *flags, "-o", name).code == 0
    lines = [json.loads(line) for line in (inputs / "d.jsonl").read_text().splitlines()]
    with (inputs / "d.csv").open(newline="") as plain, gzip.open(inputs / "d.tsv.gz", "rt", newline="") as packed:
        tables = [list(csv.DictReader(plain)), list(csv.DictReader(packed, delimiter="\t"))]
    assert tables[0] == tables[1]
    assert len(tables[0]) == len(lines) == 41
    for row, line in zip(tables[0], lines, strict=True):
        for name in ("confidence", "threshold", "p_value", "alpha", "n_paths"):
            assert float(row[name]) == line[name]
        for name in ("support", "shares", "threshold_key"):
            assert json.loads(row[name]) == line[name]
        assert row["answer"] == ("" if line["answer"] is None else line["answer"])
        assert math.isclose(float(row["key.jitter"]), line["key"]["jitter"], rel_tol=0)
    assert tables[0][0]["id"] == "'=1+1"  # no formula for a spreadsheet


def test_sheets_and_questions_that_a_cascade_needs_are_named_so_too(demur, inputs):
    cascade = ["pools.jsonl", "pools.jsonl", "--alpha", 0.2, "-o", "cascade.json"]
    assert demur("cascade", *cascade).code == 0
    told = demur("decide", "traffic.jsonl", "--cascade", "cascade.json", "--needed", "needed.csv")
    assert (told.code, "needed.csv is not named like questions; name it .jsonl" in told.err) == (2, True)
    told = demur("decide", "traffic.jsonl", "--cascade", "cascade.json", "-o", "cascaded.csv")
    assert (told.code, holds_what_its_name_says(inputs / "cascaded.csv")) == (0, True)
    told = demur("label", "pools.jsonl", "--alpha", 0.2, "-o", "labels.jsonl", "--out-sheet", "sheet.xlsx")
    assert (told.code, "a sheet is CSV or JSON lines" in told.err) == (2, True)
    assert not [*inputs.glob("*.xlsx"), *inputs.glob("needed*")]


def test_a_table_of_decisions_has_the_same_columns_in_csv_and_parquet(demur, inputs):
    for name in ("d.csv", "d.parquet"):
        assert demur("decide", "pools.jsonl", "--policy", "policy.json", "-o", name).code == 0
    header = (inputs / "d.csv").read_text().splitlines()[0].split(",")
    assert header == pyarrow.parquet.read_schema(inputs / "d.parquet").names
