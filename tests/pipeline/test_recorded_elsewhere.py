"""Logs and batches put into a run, in a file and in PostgreSQL."""

from __future__ import annotations

import json

from demur.backends.openai import OpenAI
from demur.pipeline.batch_files import read_batch, write_batch
from demur.pipeline.from_run import batch_pipeline_of_run
from demur.pipeline.log_import import import_log
from demur.pipeline.pipeline import Pipeline
from demur.records import Problem
from demur.store import Store
from inspect_logs import sample, write_archive
from loopback import choice


def test_a_log_is_stored_once_wherever_the_run_is(place, tmp_path):
    samples = [sample(name, epoch, f"It is {epoch}.") for epoch in (1, 2, 3) for name in ("a", "b", "c")]
    log = write_archive(tmp_path / "log.eval", samples)
    assert import_log(log, place, "run").new_paths == 9
    assert import_log(log, place, "run").new_paths == 0
    with Store(place) as store:
        pools = store.run("run").pools(with_texts=True)
        assert store.run("run").n_paths == 3
    assert [[path.text for path in pool.paths] for pool in pools] == [["It is 1.", "It is 2.", "It is 3."]] * 3


def test_answers_of_a_batch_in_any_order_fill_a_run(place, tmp_path):
    """Half of them, then all, backwards: every path is there once, with its own seed."""
    problems = [Problem(f"q{k}", f"What is {k}?", extra={"task": "math"}) for k in range(5)]
    Pipeline(OpenAI("http://127.0.0.1:9/v1", "m"), n_paths=3).prepare(problems, place)
    with Store(place) as store:
        run = store.run("run")
        written = write_batch(run, batch_pipeline_of_run(run), tmp_path / "requests.jsonl", seed=7, largest_n=2)
        assert (written.requests, written.paths, written.problems) == (10, 15, 5)
        requests = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
        lines = []
        for request in requests:
            seeds = [request["body"]["seed"] + k for k in range(request["body"].get("n", 1))]
            body = {"choices": [choice(f"\\boxed{{{seed}}}", index=k) for k, seed in enumerate(seeds)]}
            response = {"status_code": 200, "body": body}
            lines.append(json.dumps({"custom_id": request["custom_id"], "response": response, "error": None}))
        out = tmp_path / "out.jsonl"
        out.write_text("\n".join(lines[::2]))
        assert read_batch(run, batch_pipeline_of_run(run), [out]).lacking == 5
        out.write_text("\n".join(reversed(lines)))
        read = read_batch(run, batch_pipeline_of_run(run), [out])
        assert (read.saved, read.there, read.lacking) == (5, 10, 0)
        pools = run.pools(with_texts=True)
    assert len(pools) == 5
    for pool in pools:
        seeds = [path.extra["seed"] for path in pool.paths]
        assert seeds == [seeds[0], seeds[0] + 1, seeds[0] + 2]
        assert [path.answer for path in pool.paths] == [str(seed) for seed in seeds]
    assert len({path.extra["seed"] for pool in pools for path in pool.paths}) == 15
