"""Running: who comes early waits, who comes late is turned away, workers come back, and nothing of theirs is left."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import suppress

import pytest
import requests

from asked_over_http import chat, post
from demur.errors import InvalidValue
from demur.server import running
from demur.server.api.metrics import forget_process
from demur.server.running import OrderlyServer, bound, configured, serve_by_workers
from loopback import hang
from patience import wait_until
from serving import made_app, service_of
from short_lived import short_lived

FOLDER = "PROMETHEUS_MULTIPROC_DIR"


def test_a_socket_listens_from_the_moment_that_is_told_and_no_other_does_on_its_port():
    with bound("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        with pytest.raises(InvalidValue, match=f"nothing can listen on 127.0.0.1:{port}: .*; choose another host or"):
            bound("127.0.0.1", port)


def test_of_a_process_that_ended_only_the_counts_stay(tmp_path, monkeypatch):
    kept, gone = ["counter_7.db", "gauge_livemax_8.db"], ["gauge_livemax_7.db", "gauge_livesum_7.db"]
    for name in (*kept, *gone):
        (tmp_path / name).touch()
    monkeypatch.setenv(FOLDER, str(tmp_path))
    forget_process(7)
    assert sorted(file.name for file in tmp_path.iterdir()) == kept


def test_a_worker_is_started_again_and_the_port_is_free_when_all_end(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setattr(running, "_PAUSE", 0.01)
    listening = bound("127.0.0.1", 0)
    port = listening.getsockname()[1]
    usual = {sign: signal.getsignal(sign) for sign in (signal.SIGTERM, signal.SIGINT)}

    def end_when_it_is_back():
        with suppress(AssertionError):
            wait_until(lambda: len(list(tmp_path.glob("began-*"))) >= 2)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_when_it_is_back).start()
    try:
        serve_by_workers(short_lived, listening, 1)
    finally:
        for sign, handler in usual.items():
            signal.signal(sign, handler)
    assert len(list(tmp_path.glob("began-*"))) == 2
    assert not list(tmp_path.glob("gauge_*"))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_interrupted_again_it_abstains_at_once(upstream, sums_policy):
    upstream.behave = lambda *_: hang(600)
    service = service_of(upstream.url, sums_policy)
    listening = bound("127.0.0.1", 0)
    host, port = listening.getsockname()
    server = OrderlyServer(configured(made_app(service), host=host, port=port, grace=50), service, 50)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(post(f"http://{host}:{port}", chat("What is 4 + 1?"))))
    asking.start()
    wait_until(lambda: service.underway)
    server.handle_exit(signal.SIGINT, None)
    time.sleep(0.3)
    assert thread.is_alive()
    server.handle_exit(signal.SIGINT, None)
    asking.join(300)
    thread.join(300)
    assert not thread.is_alive()
    assert answers[0].json()["demur"]["cause"] == "shutting_down"
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://{host}:{port}/healthz", timeout=5)
