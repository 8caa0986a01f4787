"""Blocks of work over a cluster's workers, by Ray Data: pieces go out, receipts come back as they are written.

A piece is a block's number and what must be known of it; its result is written by the worker itself, whole or not at
all, so that a block may be done twice and a worker may end at any time. Ray hands its block to another.
"""

from __future__ import annotations

import gc
import pickle
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from demur import errors
from demur.engine.ray.cluster import ray_library
from demur.engine.ray.surroundings import Surroundings
from demur.errors import ClusterError, DemurError
from demur.foreign_code import summary

_MOST_ENDS = 20
"""How often a worker may end before its work is given up: a block may be what ends it."""
_RESUMED = "what was finished is kept: run the same command again to go on"


class BlockWork(Protocol):
    """What workers do. It is sent to each of them as it is, opened once, and given one block after the other."""

    def open(self) -> None:
        """Load models, make clients."""

    def do(self, piece: Any) -> Any:
        """One block's work, written down; what is to be told of it."""
        ...


@dataclass(frozen=True)
class Crew:
    """How many workers there are to be, and what each may use."""

    workers: int
    at_once: int = 1
    """Blocks under way in one worker: more than one where it mostly waits for others."""
    cpus: float = 1.0


@dataclass(frozen=True)
class _Trouble:
    """An error of ours, on its way from a worker."""

    kind: str
    message: str
    remedy: str

    def error(self) -> DemurError:
        kind = getattr(errors, self.kind, DemurError)
        told: DemurError = kind.__new__(kind)
        DemurError.__init__(told, self.message, self.remedy)
        return told


def work_through(
    work: BlockWork, pieces: Sequence[Any], crew: Crew, surroundings: Surroundings
) -> Generator[Any, None, None]:
    """The receipts of all pieces, in order of arrival; an error of one ends the work, what was written stays."""
    ray = ray_library()
    sent = (ray.put((surroundings, pickle.dumps(work))),)  # in a tuple, so that Ray hands it on unopened
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how often a worker may end has no other name than the one that is to go
        done = _mapped(ray, as_data(ray, pieces), sent, crew, len(pieces))
    with cluster_errors_told(ray):
        for batch in done.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            for packed in batch.column("receipt").to_pylist():
                receipt = pickle.loads(packed)
                if isinstance(receipt, _Trouble):
                    raise receipt.error()
                yield receipt


def as_data(ray: Any, pieces: Sequence[Any]) -> Any:
    """Pieces as Ray's data, one to a block."""
    import pyarrow

    packed = (pyarrow.array([pickle.dumps(piece)], pyarrow.binary()) for piece in pieces)
    return ray.data.from_arrow([pyarrow.table({"piece": one}) for one in packed])


@contextmanager
def cluster_errors_told(ray: Any) -> Iterator[None]:
    """Errors of Ray's, and what workers raised, as one line."""
    try:
        yield
    except (ray.exceptions.RayError, ray.data.exceptions.UserCodeException, ray.data.exceptions.SystemException) as e:
        raise _lost(ray, e) from None


def _mapped(ray: Any, data: Any, sent: tuple[Any, ...], crew: Crew, pieces: int) -> Any:
    """What becomes of rows, when somebody asks for it."""
    pool = ray.data.ActorPoolStrategy(
        size=min(crew.workers, pieces),
        max_concurrent_calls_per_actor=crew.at_once,
        max_tasks_in_flight_per_actor=crew.at_once + 1,  # one waits: Ray looks for who is free ten times a second
        enable_true_multi_threading=True,
    )
    return data.map_batches(
        Worker,
        fn_constructor_args=(sent,),
        compute=pool,
        batch_size=1,
        batch_format="pyarrow",
        num_cpus=crew.cpus,
        max_restarts=_MOST_ENDS,
        max_task_retries=-1,
    )


def _lost(ray: Any, error: BaseException) -> ClusterError:
    """Why work ended that Ray gave up on, in one line."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (ray.exceptions.ActorDiedError, ray.exceptions.WorkerCrashedError)):
            return ClusterError("a worker of the cluster ended again and again", _RESUMED)
        inner = getattr(cause, "cause", None) or cause.__cause__
        if not isinstance(inner, BaseException):
            break
        cause = inner
    said = _raised_there(str(error)) or summary(cause or error)
    if isinstance(cause, ModuleNotFoundError) or said.startswith(ModuleNotFoundError.__name__):
        return ClusterError(f"a worker of the cluster lacks a package: {said}", "install it on every machine")
    return ClusterError(f"a worker of the cluster failed: {said}", _RESUMED)


def _raised_there(told: str) -> str:
    """What code of ours raised in a worker: Ray brings it as the traceback before its own; none where there is none."""
    *before, _ = told.split("\n\nThe above exception was the direct cause")
    lines = before[-1].splitlines() if before else []
    at = max((k for k, line in enumerate(lines) if line.startswith(" ")), default=len(lines))
    return " ".join(line.strip() for line in lines[at + 1 :])[:300]


class Worker:
    """An actor: work that is opened once, in the process that does it."""

    def __init__(self, sent: tuple[Any, ...]) -> None:
        self._trouble: _Trouble | None = None
        try:
            surroundings, packed = ray_library().get(sent[0])
            surroundings.take_up()
            self._work: BlockWork = pickle.loads(packed)
            self._work.open()
            gc.freeze()  # packages and models stay: no collection of garbage need look at them again
        except (DemurError, OSError) as error:
            self._trouble = _trouble(error)

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        receipts = [self._trouble or self._one(packed) for packed in batch.column("piece").to_pylist()]
        return pyarrow.table({"receipt": pyarrow.array(list(map(pickle.dumps, receipts)), pyarrow.binary())})

    def _one(self, packed: bytes) -> Any:
        try:
            return self._work.do(pickle.loads(packed))
        except (DemurError, OSError) as error:
            return _trouble(error)


def _trouble(error: DemurError | OSError) -> _Trouble:
    if isinstance(error, DemurError):
        return _Trouble(type(error).__name__, error.message, error.remedy)
    return _Trouble(ClusterError.__name__, f"a worker failed: {error.strerror or summary(error)}", _RESUMED)
