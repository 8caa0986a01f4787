"""Logs that inspect_ai really writes: read as inspect reads them. Needs its environment: `make test-neighbours`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from aiohttp import web

from demur.errors import PoolFileError
from demur.pipeline.log_import import import_log
from demur.pools.neighbours.archive import Archive
from demur.pools.neighbours.inspect_log import InspectLog
from demur.store import Store
from loopback import Loopback, choice

PYTHON = os.environ.get("INSPECT_PYTHON", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="inspect_ai is in an environment of its own: make test-neighbours")


def behave(number, body, request):
    """Names every right answer or none in turn, with a whole account of tokens, which inspect's client asks for."""
    guess = "2 or 3 or 4 or B" if number % 2 else f"{50 + number}"
    said = choice(f"Let me see: {guess}", [-0.1 * (1 + number % 3), -0.25])
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    shape = {"id": f"c{number}", "object": "chat.completion", "created": 1, "model": "small"}
    return web.json_response({**shape, "choices": [said], "usage": usage})


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
    folder, server = tmp_path_factory.mktemp("logs"), Loopback(behave).start()
    try:
        script = Path(__file__).with_name("make_logs.py")
        made = subprocess.run([PYTHON, script, server.url, folder], capture_output=True, text=True, cwd=folder)
    finally:
        server.stop()
    assert made.returncode == 0, made.stderr[-3000:]
    return folder


def read(path, **options):
    with InspectLog(path, **options) as log:
        return list(log.pools())


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_paths_are_what_inspect_reads(logs, name):
    expected = {(one["id"], one["epoch"]): one for one in json.loads((logs / f"{name}.read").read_text())}
    pools = read(logs / name, labels_by="match")
    assert sum(len(places) for _, places in pools) == len(expected) == 12
    for pool, places in pools:
        for place, path in zip(places, pool.paths, strict=True):
            one = expected[pool.problem.id, place + 1]
            targets = one["target"] if isinstance(one["target"], list) else [one["target"]]
            assert (path.text, path.extra["correct"], list(pool.problem.gold)) == (one["text"], one["right"], targets)
            assert path.extra["logprob_mean"] == pytest.approx(sum(one["logprobs"]) / len(one["logprobs"]))
    assert len({path.extra["correct"] for pool, _ in pools for path in pool.paths}) == 2


def test_questions_are_what_was_asked(logs):
    problems = {pool.problem.id: pool.problem for pool, _ in read(logs / "log.eval")}
    assert problems["1"].question.endswith("numbers. What is 1 + 1?")
    assert problems["1"].extra == {"subject": "sums", "gold_answer": "2"}
    assert problems["a/b"].question == "[system]\nBe brief.\n\n[user]\n3 + 1?"
    assert (problems["mc"].extra["choices"], problems["mc"].extra["task"]) == (["grass", "blood"], "mc")


def test_a_log_in_parts_reads_the_same(logs):
    (parts,) = (logs / "parts").glob("*.eval")
    by_id = [sorted(read(log), key=lambda placed: placed[0].problem.id) for log in (parts, logs / "log.eval")]
    assert by_id[0] == by_id[1]


def test_the_log_is_packed_by_zstandard_and_says_how_it_was_sampled(logs):
    with Archive(logs / "log.eval") as archive:
        assert {entry.method for entry in archive.entries.values()} == {93}
    with InspectLog(logs / "log.eval") as log:
        sampling = dict(log.description.sampling)
        assert (log.epochs, log.expected, log.status) == (3, 4, "success")
    assert (sampling["model"], sampling["temperature"], sampling["max_tokens"]) == ("openai-api/loop/small", 0.7, 64)
    assert sampling["solver"][0] == {"system_message": {"template": "Think first."}}


def test_a_log_that_was_cut_off_is_recovered_as_far_as_it_goes(logs, tmp_path):
    whole = (logs / "log.eval").read_bytes()
    cut = tmp_path / "cut.eval"
    cut.write_bytes(whole[: len(whole) * 6 // 10])
    with pytest.raises(PoolFileError, match="is cut off"):
        InspectLog(cut)
    recovered = {(pool.problem.id, place): path for pool, ps in read(cut, recover=True)
                 for place, path in zip(ps, pool.paths, strict=True)}  # fmt: skip
    there = {(pool.problem.id, place): path for pool, ps in read(logs / "log.eval")
             for place, path in zip(ps, pool.paths, strict=True)}  # fmt: skip
    assert recovered
    assert all(there[key] == path for key, path in recovered.items())


def test_a_log_becomes_a_run(logs, tmp_path):
    done = import_log(logs / "log.eval", str(tmp_path / "run.db"), "run")
    assert (done.problems, done.new_paths, done.lacking, dict(done.failed)) == (4, 12, 0, {})
    assert import_log(logs / "log.eval", str(tmp_path / "run.db"), "run").new_paths == 0
    with Store(tmp_path / "run.db") as store:
        assert store.run().summary()["with_logprobs"] == 12
