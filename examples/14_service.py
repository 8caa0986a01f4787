"""A policy behind an OpenAI-compatible endpoint, in this process; from a shell `demur serve` does all of it."""

import json
import socket
import tempfile
import threading
import time
from pathlib import Path
from urllib.request import Request, urlopen

import uvicorn

import demur as dm
from demur.backends import Scripted
from demur.server.app import make_app
from demur.server.log import DecisionLog
from demur.server.served import Models, Served
from demur.server.service import Service
from demur.server.settings import ServiceSettings
from demur.store.service import ServiceStore


def model(prompt, wanted):
    """Adds rightly up to ten; beyond, it guesses."""
    a, b = (int(word.strip("?")) for word in prompt.messages[-1]["content"].split("\n")[0].split() if word[0].isdigit())
    guess = (a > 10) * (wanted.seed % 5)
    return f"It is \\boxed{{{a + b + guess}}}"


def post(url, document):
    request = Request(url, json.dumps(document).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=30) as reply:
        return json.load(reply)


with tempfile.TemporaryDirectory() as folder:
    pipeline = dm.Pipeline(Scripted(model), n_paths=8, score=None)  # each path one vote
    questions = dm.datasets.load("builtin:addition")[:200]
    policy = pipeline.run(questions, store=Path(folder) / "run.db").calibrate(alpha=0.1)
    store = ServiceStore(Path(folder) / "service.db", create=True)
    row = store.policies.register("sums", policy.document(), policy.fingerprint, at=time.time_ns() // 1_000_000)
    served = Served("sums", policy, pipeline.answerer(policy), row.version, row.policy)
    settings = ServiceSettings(waves=dm.Waves(4, 2))  # four paths first; more only while they can change the decision
    service = Service(Models({"sums": served}), settings, log=DecisionLog(store))
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app(service, store), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    for question in ("What is 3 + 4?", "What is 14 + 9?"):
        asked = {"model": "sums", "messages": [{"role": "user", "content": question}]}
        reply = post(f"{address}/chat/completions", asked)
        message, beside = reply["choices"][0]["message"], reply["demur"]
        print(f"{question}  {message['content']}  ({beside['paths']['drawn']} of {beside['paths']['of']} paths)")
        if message["refusal"]:
            print(f"  {message['refusal']}")
            post(f"{address}/feedback", {"request_id": beside["request_id"], "answer": "23"})
    server.should_exit = True
    thread.join()
    print(f"kept: {store.decisions.tally().answered} answered, {store.decisions.tally().abstained} abstained")
    store.close()
