"""A Ray cluster: the one at an address, or one that this machine's processors make as long as the work lasts.

Ray is reached quietly (no dashboard, no usage statistics, nothing on standard output), and what is the matter with a
cluster is said in one line before any work is sent to it.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demur.errors import ClusterError, InvalidValue, MissingExtra
from demur.foreign_code import summary
from demur.version import __version__

_CONTACT_SECONDS = 5.0
_PROBE_SECONDS = 60.0
_OBJECT_STORE = 256 * 2**20
"""Of a cluster that is made here: questions and receipts pass through it, never pools."""
_LONGEST_FOLDER = 40
"""A folder for sockets whose name is longer leaves no room for their own."""
_ADDRESS_VARIABLE = "RAY_ADDRESS"
_CHECK = "check the address that `ray start` printed for its head, or leave {ray_address} out to use this machine alone"
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a client of HTTP/2 begins, which Ray's servers speak; they begin with their settings, a frame of kind 4."""
_SETTINGS = b"\x04"
_QUIETLY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else it announces what will change one day
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "(?s).*",  # else it writes of workers that ended to standard output
}


@dataclass(frozen=True)
class Cluster:
    """What there is to work with."""

    cpus: int
    gpus: int
    seconds: float
    """How long it took to start, or to reach."""

    def at_most(self, workers: int | None) -> int:
        """How many workers have a processor each; more would wait for one, and the end of the work for them."""
        return min(workers or self.cpus, self.cpus)


def ray_library() -> Any:
    """Ray with its data sets, imported when it is first needed."""
    for name, value in _QUIETLY.items():
        os.environ.setdefault(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
            import ray.data
    except ImportError:
        raise MissingExtra("a cluster needs Ray Data", "ray") from None
    return ray


@contextmanager
def cluster(
    address: str | None = None,
    *,
    workers: int | None = None,
    folder: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Cluster]:
    """A cluster as long as the block lasts: at an address (or RAY_ADDRESS), or made of this machine.

    `folder` is where the workers of an address are to write; each of its machines must see it. One whose processors are
    all in use is waited for, and `say` told so.
    """
    address = address or os.environ.get(_ADDRESS_VARIABLE) or None
    ray = ray_library()
    if ray.is_initialized():
        raise ClusterError("this process uses a Ray cluster already", "end it first, by ray.shutdown()")
    began = time.monotonic()
    try:
        with _made_here(ray, workers) if address in (None, "local") else _reached(ray, str(address), folder):
            _be_quiet(ray)
            there = ray.cluster_resources()
            found = Cluster(
                max(1, int(there.get("CPU", 1))),
                int(there.get("GPU", 0)),
                time.monotonic() - began,
            )
            if ray.available_resources().get("CPU", 0) <= 0:
                say("note: other work uses all processors of the cluster; this begins when one is free")
            machines = _machines(ray)
            yield found
            _tell_ended(ray, machines, say)
    finally:
        ray.shutdown()


def _machines(ray: Any) -> dict[str, str]:
    """The addresses of the machines that are there, by their ids."""
    return {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}


def _tell_ended(ray: Any, machines: dict[str, str], say: Callable[[str], None]) -> None:
    """Say which machines and how many workers ended before the work did."""
    there = _machines(ray)
    if lost := [host for node, host in machines.items() if node not in there]:
        say(f"note: the cluster lost {_counted(len(lost), 'machine')} ({', '.join(lost)}); others took over the work")
    workers = ray._private.state.actors(job_id=ray.get_runtime_context().job_id)
    if ended := sum(worker["NumRestarts"] for worker in workers.values()):
        say(f"note: {_counted(ended, 'worker')} of the cluster ended and had to be started again")


def _counted(many: int, what: str) -> str:
    return f"{many} {what}{'' if many == 1 else 's'}"


@contextmanager
def _made_here(ray: Any, workers: int | None) -> Iterator[None]:
    usual = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="demur-ray-", dir=usual if len(usual) < _LONGEST_FOLDER - 20 else "/tmp")
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        _begin(
            ray,
            address="local",
            num_cpus=max(processors, workers or 1),
            object_store_memory=_OBJECT_STORE,
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            _temp_dir=folder,
        )
        yield
    except (OSError, RuntimeError, ValueError) as error:
        if ray.is_initialized():
            raise
        raise ClusterError(f"Ray cannot be started on this machine: {summary(error)}") from None
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _begin(ray: Any, **how: Any) -> None:
    """Ray's own beginning, without the lines that its runtime writes past Python, or its own way to end (SIGTERM)."""
    sys.stderr.flush()
    to_end = signal.getsignal(signal.SIGTERM)
    shown, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        ray.init(log_to_driver=False, logging_level=logging.CRITICAL, **how)
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, to_end)
        os.dup2(shown, 2)
        os.close(shown)
        os.close(nowhere)


@contextmanager
def _reached(ray: Any, address: str, folder: Path | None) -> Iterator[None]:
    _refuse_silence(ray, address)
    try:
        _begin(ray, address=address)
    except (
        OSError, RuntimeError, ValueError, TimeoutError, AssertionError, ray.exceptions.AuthenticationError
    ) as error:  # fmt: skip
        raise _told(address, error) from None
    _refuse_nodes(ray, address, folder)
    yield


def _refuse_silence(ray: Any, address: str) -> None:
    """Raise where nobody listens: Ray itself would ask for a minute."""
    if address.startswith("ray://"):
        raise InvalidValue(
            f"{address} is for a client from outside, whose folders the cluster does not see",
            "run the command in the cluster, by `ray job submit`, or name host:port of its head from one of its "
            "machines: {ray_address=auto}",
        )
    if address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
        raise InvalidValue(f"a Ray cluster's address is host:port or auto, got {address!r}")
    if host in ("127.0.0.1", "localhost"):
        host = ray.util.get_node_ip_address()  # which Ray will take in its place, for other machines to see
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONTACT_SECONDS) as connection:
            connection.sendall(_GREETING)
            answer = connection.recv(9)
    except OSError as error:
        raise ClusterError(
            f"no Ray cluster answers at {address} ({error.strerror or summary(error)})", _CHECK
        ) from None
    if answer[3:4] != _SETTINGS:  # Ray's own client would end the whole process over such an answer
        raise ClusterError(f"what listens at {address} is no Ray cluster", _CHECK)


def _told(address: str, error: Exception) -> ClusterError:
    said = " ".join(str(error).split())
    if "authentication token" in f"{said} {error.__cause__}".lower():
        return ClusterError(
            f"the Ray cluster at {address} asks for a token, and was given none or another",
            "set RAY_AUTH_MODE=token, and where ~/.ray/auth_token does not hold the cluster's, RAY_AUTH_TOKEN_PATH",
        )
    if "Version mismatch" in said:
        versions = said.partition("Version mismatch: ")[2] or said
        return ClusterError(
            f"the Ray cluster at {address} is of another version: {versions}",
            "install the cluster's versions of Ray and Python here, or start the cluster with these",
        )
    if address == "auto":
        return ClusterError(
            "there is no Ray cluster on this machine",
            "start its head by `ray start`, or leave {ray_address} out to use this machine alone",
        )
    return ClusterError(f"what listens at {address} cannot be used as a Ray cluster: {said[:300]}", _CHECK)


def _refuse_nodes(ray: Any, address: str, folder: Path | None) -> None:
    """Raise unless each machine of a cluster has this demur, and sees the folder."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    with tempfile.TemporaryDirectory(prefix=".seen-", dir=folder) as mark:
        asking = ray.remote(num_cpus=0, max_retries=0)(probe)
        nodes = _machines(ray)
        answers = {
            asking.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(mark): host
            for node, host in nodes.items()
        }
        for answer, host in answers.items():
            try:
                version, sees = ray.get(answer, timeout=_PROBE_SECONDS)
            except (ray.exceptions.RayError, TimeoutError) as error:
                said = str(getattr(error, "cause", None) or error).strip().splitlines()[-1][:200]
                raise ClusterError(
                    f"the machine {host} of the Ray cluster at {address} cannot work for demur: {said}",
                    f"install demur {__version__} there, with the same extras as here",
                ) from None
            if version != __version__:
                raise ClusterError(
                    f"the machine {host} of the Ray cluster at {address} has demur {version}, here is {__version__}",
                    "install the same on every machine",
                )
            if folder is not None and not sees:
                raise ClusterError(
                    f"the machine {host} of the Ray cluster at {address} does not see the folder {folder}",
                    "name one that all machines share",
                )


def probe(mark: str) -> tuple[str, bool]:
    """Which demur a machine has, and whether it sees a folder that was made elsewhere."""
    return __version__, Path(mark).is_dir()


def _be_quiet(ray: Any) -> None:
    """Progress is ours to show, and warnings of Ray's are about data that we do not have."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    for name in ("ray", "ray.data", "ray.data._internal"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
