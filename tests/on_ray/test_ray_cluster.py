"""Clusters that cannot be used, and models that the cluster cannot run: one line each, with the way out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from socket import create_server

import pytest

import demur as dm
from demur.backends.protocol import Settings
from demur.engine.ray.cluster import _told, cluster, ray_library
from demur.engine.sample import wanted_paths
from demur.errors import ClusterError, InvalidValue
from demur.pipeline.config import Config
from demur.pipeline.ray import vllm
from demur.pipeline.ray.sampling import RayOptions, sample_shards
from demur.pipeline.shards import Block


def refused(address):
    with pytest.raises((ClusterError, InvalidValue)) as told, cluster(address):
        pass
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("127.0.0.2:1", "no Ray cluster answers at 127.0.0.2:1 (Connection refused); check the address"),
        ("nowhere.invalid:6379", "no Ray cluster answers at nowhere.invalid:6379"),
        ("ray://127.0.0.2:10001", "run the command in the cluster, by `ray job submit`"),
        ("6379", "is host:port or auto, got '6379'"),
        ("host:port", "is host:port or auto, got 'host:port'"),
        ("host:99999", "is host:port or auto, got 'host:99999'"),
    ],
)
def test_an_address_without_a_cluster_is_refused_at_once(address, told):
    assert told in refused(address)


def test_what_listens_and_is_no_cluster_is_refused_at_once():
    with create_server(("127.0.0.2", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(64)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        address = f"127.0.0.2:{server.getsockname()[1]}"
        assert f"what listens at {address} is no Ray cluster" in refused(address)


@pytest.mark.parametrize(("part", "version"), [("ray_version", "2.9.3"), ("python_version", "3.9.1")])
def test_a_cluster_of_another_version_is_refused_with_both_versions(address, part, version):
    """The cluster's own word for its versions is changed, and Ray's own check finds it."""
    ray = ray_library()
    from ray._raylet import GcsClient

    client, key = GcsClient(address=address), (b"CLUSTER_METADATA", b"cluster")
    known = client.internal_kv_get(*key)
    try:
        client.internal_kv_put(key[0], json.dumps({**json.loads(known), part: version}).encode(), True, key[1])
        told = refused(address)
    finally:
        client.internal_kv_put(key[0], known, True, key[1])
    assert version in told
    assert ray.__version__ in told
    assert "install the cluster's versions of Ray and Python here" in told


def test_a_cluster_that_asks_for_a_token_says_which_way_in(address, tmp_path):
    """With token mode but no token Ray ends in an error of its own; with another token, in one about no connection."""
    told = r"the Ray cluster at \S+ asks for a token, and was given none or another; set RAY_AUTH_MODE=token, .*"
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    command = [sys.executable, "-m", "demur", "sample", "builtin:addition", "--limit", "2", "--engine", "ray"]
    ran = subprocess.run(
        [*command, "--ray-address", address, "-o", tmp_path / "s"],
        env={**surroundings, "RAY_AUTH_MODE": "token", "HOME": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 2
    assert re.fullmatch(f"error: {told}\n", ran.stderr)
    refusal = ConnectionError("Failed to connect to Ray cluster at h:1")
    refusal.__cause__ = RuntimeError("RPC error: InvalidAuthToken: Authentication token is missing or incorrect.")
    assert re.fullmatch(told, str(_told("h:1", refusal)))


def test_the_command_line_says_so_in_one_line_and_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "demur", "sample", "builtin:addition", "--limit", "2", "--engine", "ray"]
    ran = subprocess.run(
        [*command, "--ray-address", "127.0.0.2:1", "-o", tmp_path / "s"], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert re.fullmatch(r"error: no Ray cluster answers at 127.0.0.2:1 .*leave --ray-address out.*\n", ran.stderr)


def test_a_model_for_gpus_is_refused_where_there_are_none(address, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    problems = dm.datasets.load("builtin:addition", limit=2)
    with pytest.raises(ClusterError, match=r"'Qwen/Qwen3-1.7B' would run in the cluster, and the cluster has no GPU"):
        sample_shards(Config(model="Qwen/Qwen3-1.7B", paths=2), problems, tmp_path / "s", RayOptions(address))


def test_an_engine_is_prepared_up_to_the_point_where_it_would_start():
    """With a GPU but without vLLM, what is missing is named; Ray takes the settings of the engine as they are."""
    from ray.data.llm import vLLMEngineProcessorConfig

    engine = vLLMEngineProcessorConfig(**vllm.engine_settings(Config(model="Qwen/Qwen3-1.7B"), 2))
    assert (engine.model_source, engine.concurrency) == ("Qwen/Qwen3-1.7B", 2)
    with pytest.raises(ClusterError, match=r"needs vLLM, and the package \w+ is not installed; install it on every"):
        vllm.processor(Config(model="Qwen/Qwen3-1.7B"), gpus=1)


def test_rows_of_an_engine_have_the_plain_engines_seeds_and_make_whole_pools_in_any_order():
    config = Config(model="Qwen/Qwen3-1.7B", paths=3, max_tokens=4)
    problems = tuple(dm.datasets.load("builtin:addition", limit=2))
    pipeline = config.pipeline(vllm.Described("Qwen/Qwen3-1.7B"))
    fitted, block = pipeline.fitted(problems), Block(0, problems)
    rows = list(vllm.rows_of(fitted, [block], seed=0, n_paths=3))
    assert [row["seed"] for row in rows[:3]] == [want.seed for want in wanted_paths(0, problems[0].id, 3)]
    asked = [vllm.asked_row(row) for row in rows]
    assert asked[0]["sampling_params"]["logprobs"] == 0
    assert asked[0]["sampling_params"]["temperature"] == Settings().temperature
    arriving, whole = vllm.Arriving(fitted, {0: block}, 3), []
    for row in reversed(rows):
        n = 4 if row["path"] == 2 else 2
        told = {"generated_tokens": list(range(n)), "logprobs": [{k: {"logprob": -0.5}} for k in range(n)]}
        came = vllm.answered_row({**row, **told, "generated_text": f"It is {row['path']}."})
        whole.append(arriving.take(came))
    assert whole[:-1] == [None] * 5
    _, pools, placed = whole[-1]
    assert [[path.text for path in pool.paths] for pool in pools] == [["It is 0.", "It is 1.", "It is 2."]] * 2
    assert [path.extra["finish_reason"] for path in pools[0].paths] == ["stop", "stop", "length"]
    assert pools[0].paths[0].extra["logprob_mean"] == -0.5
    assert len(placed) == 6


def scripted(answer):
    """What stands in for engines: rows go through the same two functions, and an answer between them."""

    def engines(rows):
        return rows.map(lambda row: vllm.answered_row(answer({**row, **vllm.asked_row(row)})))

    return lambda config, gpus, *, chat: engines


def test_blocks_go_through_engines_and_come_back_as_shards(address, tmp_path, monkeypatch):
    """All but the engine is real: rows are made in the cluster, and shards are written when they are whole."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    problems = dm.datasets.load("builtin:addition", limit=5)

    def answer(row):
        text = f"The answer is {row['sampling_params']['seed'] % 3}."
        return {**row, "generated_text": text, "generated_tokens": [1], "logprobs": [{1: {"logprob": -0.5}}]}

    monkeypatch.setattr(vllm, "processor", scripted(answer))
    config = Config(model="Qwen/Qwen3-1.7B", paths=3)
    done = sample_shards(config, problems, tmp_path / "s", RayOptions(address, block=2))
    assert (done.blocks, done.finished, done.progress.saved) == (3, 3, 15)
    pools = dm.read_pools(tmp_path / "s", texts=True).pools
    expected = [[want.seed % 3 for want in wanted_paths(0, problem.id, 3)] for problem in problems]
    assert [[int(path.answer) for path in pool.paths] for pool in pools] == expected


def test_an_engine_that_fails_ends_the_work_in_one_line(address, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    def answer(row):
        raise ValueError("no room on the GPU")

    monkeypatch.setattr(vllm, "processor", scripted(answer))
    problems = dm.datasets.load("builtin:addition", limit=2)
    with pytest.raises(ClusterError, match=r"a worker of the cluster failed: .*no room on the GPU; what was finished"):
        sample_shards(Config(model="Qwen/Qwen3-1.7B", paths=2), problems, tmp_path / "s", RayOptions(address))


@pytest.mark.parametrize("chat", [True, False])
def test_texts_to_go_on_from_reach_an_engine_without_a_chat_template(chat):
    """With one, the engine's first stage looks for messages, and there are none."""
    from ray.data.llm import vLLMEngineProcessorConfig

    settings = vllm.engine_settings(Config(model="Qwen/Qwen3-1.7B"), 1, chat=chat)
    assert vLLMEngineProcessorConfig(**settings).chat_template_stage is chat
