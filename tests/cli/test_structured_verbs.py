"""Answers that are JSON through the command line: from texts to classes, from classes to a policy and its decisions."""

from __future__ import annotations

import json

import pytest

RULES = {"schema": "schema.json", "ignore": ["/id"], "compare": {"/total": "mathematics"}}
SCHEMA = {"type": "object", "required": ["total"]}


def record(row, answers):
    paths = [{"answer": answer} if not isinstance(answer, tuple) else {"text": answer[0]} for answer in answers]
    return {"id": f"q{row}", "question": f"Order {row}?", "gold": {"total": row}, "paths": paths}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "rules.json").write_text(json.dumps(RULES))
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    for name, start in (("pools", 0), ("new", 100)):
        rows = [
            record(
                row, [{"id": 1, "total": row}, json.dumps({"total": f"{2 * row}/2", "id": 2}), {"id": 3, "total": -1}]
            )
            for row in range(start, start + 40)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def test_calibrate_and_decide_by_the_rules_of_a_file(demur, files):
    calibrated = demur(
        "calibrate", "pools.jsonl", "--relation", "json:rules.json", "--alpha", 0.2, "-o", "p.json", "--json"
    )
    assert calibrated.code == 0, calibrated.err
    assert calibrated.json["vote_accuracy"] == 1
    relation = calibrated.json["pipeline"]["answers"]["relation"]
    assert relation.startswith('json@1:{"compare":{"/total":"mathematics@3"},"ignore":["/id"],"schema":{')
    (files / "rules.json").unlink()
    decided = demur("decide", "new.jsonl", "--policy", "p.json", "--json")
    assert decided.code == 0, decided.err
    assert decided.json["n_answered"] == 40
    assert json.loads(decided.json["decisions"][5]["answer"]) == {"id": 1, "total": 105}
    audited = demur("audit", "new.jsonl", "--policy", "p.json", "--json")
    assert audited.code == 0, audited.err


def test_runs_keep_answers_that_are_objects(demur, files):
    assert demur("import", "pools.jsonl", "-o", "run.db").code == 0
    told = [
        demur("calibrate", place, "--relation", "json:rules.json", "--alpha", 0.2, "--json").json
        for place in ("pools.jsonl", "run.db")
    ]
    assert told[0]["vote_accuracy"] == told[1]["vote_accuracy"] == 1


def test_texts_are_read_and_put_into_classes(demur, files):
    texts = [
        'Sure:\n```json\n{"total": 5, "id": 1}\n```',
        'So {"id": 2, "total": "10/2"}.',
        '{"total": 5,}',
        '{"sum": 5}',
        "Five.",
    ]
    lines = [record(5, [(text,) for text in texts] + [{"total": 5.0}])]
    (files / "texts.jsonl").write_text(json.dumps(lines[0]))
    ran = demur("answers", "texts.jsonl", "-o", "classed.jsonl", "--relation", "json:rules.json", "--json")
    assert ran.code == 0, ran.err
    paths = json.loads((files / "classed.jsonl").read_text())["paths"]
    assert [path["extraction"] for path in paths] == [
        "fenced JSON", "JSON", "invalid JSON", "against the schema", "none", "given",
    ]  # fmt: skip
    assert [path["key"] for path in paths] == ['j:{"total":~"n:5"}'] * 2 + [None] * 3 + ['j:{"total":~"n:5"}']


def test_two_answers_are_explained(demur, files):
    told = demur("answers", "--explain", '{"total": 1, "id": 3}', '{"total": "2/2"}', "--relation", "json:rules.json")
    assert "is read as the JSON" in told.out
    assert "The same by json@1" in told.out


@pytest.mark.parametrize(
    ("relation", "complaint"),
    [
        ("json:nowhere.json", "there is no file nowhere.json"),
        ('json:{"ignore":["/idd"]}', "the rules for answers name '/idd', and no answer has that"),
        ('json:{"ignore":["idd"]}', "'idd' is no JSON pointer"),
        ('json:{"compare":{"/total":"sums"}}', "unknown relation 'sums'"),
        ('json:{"schema":{"type":"objekt"}}', "the schema is none"),
        ("xml", "unknown relation 'xml'"),
        ("tool-calls", "is no JSON value that this relation takes for an answer by tool-calls@1"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(demur, files, relation, complaint):
    ran = demur("calibrate", "pools.jsonl", "--relation", relation, "--alpha", 0.2)
    assert ran.code != 0
    errors = [line for line in ran.err.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert complaint in errors[0]
