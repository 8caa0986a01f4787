"""A pattern that cannot be matched in linear time is refused by name wherever it enters, in files too."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from demur.backends import OpenAI
from demur.descriptions import Description
from demur.errors import InvalidValue
from demur.pipeline.from_policy import pipeline_of_policy
from demur.pipeline.from_run import batch_pipeline_of_run
from demur.pipeline.pipeline import Pipeline
from demur.store import Store
from serving import PROBLEMS, adder

PATTERN, OTHER = r"boxed\{(\d+)\}", r"(?<=boxed.)\d+"
REFUSAL = r"the regular expression '\(\?<=boxed\.\)\\\\d\+' looks ahead or behind"


@pytest.fixture
def pipeline(server):
    server.behave = adder
    return Pipeline(OpenAI(server.url, "adder"), 5, extract=PATTERN)


def test_in_a_policy(pipeline, tmp_path):
    policy = pipeline.run(PROBLEMS, tmp_path / "run.db").calibrate(alpha=0.3)
    known = policy.upstream
    there = Description(known.sampling, {**known.answers, "extract": OTHER}, known.score)
    with pytest.raises(InvalidValue, match=REFUSAL):
        pipeline_of_policy(replace(policy, upstream=there), pipeline.backend)


def test_in_a_run(pipeline, tmp_path):
    place = tmp_path / "run.db"
    pipeline.run(PROBLEMS[:2], place)
    with closing(sqlite3.connect(place)) as connection, connection:
        [(told,)] = connection.execute("SELECT description FROM demur_runs").fetchall()
        changed = told.replace(json.dumps(PATTERN), json.dumps(OTHER))
        assert changed != told
        connection.execute("UPDATE demur_runs SET description = ?", (changed,))
    with Store(place) as store, pytest.raises(InvalidValue, match=REFUSAL):
        batch_pipeline_of_run(store.run())
