"""Flags that send work to a Ray cluster, and the way of each verb there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from demur.cli.options import Text, option
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.pipeline.ray.sampling import RayOptions

ENGINES = ("local", "ray")
_ENGINE = "local: this process. ray: the workers of a Ray cluster, on a folder of Parquet shards."
_ADDRESS = "With --engine ray: host:port of the cluster's head, or auto.  [default: RAY_ADDRESS, else this machine]"
_WORKERS = "With --engine ray: at most so many workers.  [default: one per processor, or per 32 requests at once]"
_BLOCK = "With --engine ray: problems to a shard.  [default: 64]"
Block = Annotated[int | None, typer.Option("--block", help=_BLOCK)]


@dataclass(frozen=True)
class EngineFlags:
    """Where the work is done."""

    engine: Annotated[str, option("--engine", "NAME", _ENGINE)] = "local"
    ray_address: Annotated[Text, option("--ray-address", "HOST:PORT", _ADDRESS)] = None
    ray_workers: Annotated[int | None, typer.Option("--ray-workers", help=_WORKERS)] = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InvalidValue(f"--engine is {' or '.join(ENGINES)}, got {self.engine!r}")
        if self.engine != "ray" and (self.ray_address is not None or self.ray_workers is not None):
            raise InvalidValue("--ray-address and --ray-workers go with --engine ray")

    @property
    def is_ray(self) -> bool:
        return self.engine == "ray"

    def options(self, block: int | None = None) -> RayOptions:
        """What they say, as the library takes it."""
        from demur.pipeline.ray.sampling import RayOptions

        return RayOptions(self.ray_address, self.ray_workers, block)
