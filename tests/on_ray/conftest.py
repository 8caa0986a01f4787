"""A real Ray cluster on loopback: a head without processors and two machines with one each, once for all tests."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from demur.engine.ray.cluster import ray_library

HERE = "127.0.0.2"
"""Loopback. For 127.0.0.1 Ray takes the machine's own address, for others to see."""
_SMALL = {"object_store_memory": 80 * 2**20, "include_dashboard": False}


def pytest_collection_modifyitems(items):
    """Ray warns of this and that, and leaves sockets to the garbage collector."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


class Machines:
    """The cluster: its address, its logs, and what can be done to it."""

    def __init__(self) -> None:
        ray_library()
        from ray.cluster_utils import Cluster

        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
        environment = str(Path(__file__).resolve().parents[2] / "src")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [environment, os.environ.get("PYTHONPATH")]))
        os.environ["RAY_TMPDIR"] = str(self.folder)
        (self.folder / "ray").mkdir()
        head = {"num_cpus": 0, "node_ip_address": HERE, **_SMALL}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.add(), self.add()]

    @property
    def address(self) -> str:
        return self._cluster.address

    def add(self):
        return self._cluster.add_node(num_cpus=1, node_ip_address=HERE, **_SMALL)

    def lose(self) -> None:
        """A machine goes, with all that runs on it, and the others know."""
        self._cluster.remove_node(self.nodes.pop(), allow_graceful=False)
        self._cluster.wait_for_nodes(timeout=300)

    def mend(self) -> None:
        while len(self.nodes) < 2:
            self.nodes.append(self.add())
        self._cluster.wait_for_nodes()

    def workers(self) -> list[int]:
        """The processes that do work on these machines just now."""
        raylets = {process.process.pid for node in self.nodes for process in node.all_processes.get("raylet", ())}
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                parent = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
                title = entry.joinpath("cmdline").read_bytes()
            except OSError:
                continue
            if parent in raylets and title.startswith(b"ray::MapWorker"):
                found.append(int(entry.name))
        return sorted(found)

    def kill_a_worker(self) -> int:
        """Kill a process that works; how many there were."""
        working = self.workers()
        if working:
            os.kill(working[0], signal.SIGKILL)
        return len(working)

    def stop(self) -> None:
        self._cluster.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def machines():
    running = Machines()
    yield running
    running.stop()


@pytest.fixture
def address(machines, monkeypatch):
    """The cluster's address, both of its machines there."""
    machines.mend()
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return machines.address
