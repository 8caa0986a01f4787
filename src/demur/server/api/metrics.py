"""What Prometheus is told: counts and times under labels of which there are few."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

from demur.server.access.access import allowed
from demur.server.fan_out import FanOut
from demur.server.outcomes import Outcome

router = APIRouter()
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_OVERHEAD = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 5, 10)
_EVERY = 1.0
FORMAT = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts decisions as they are made."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._children: dict[tuple[Any, tuple[str, ...]], Any] = {}
        by_policy = ["policy"]
        self.requests = Counter("demur_requests", "Requests decided.", ["policy", "decision"], registry=registry)
        self.failures = Counter("demur_failures", "Requests without a vote, by cause.", ["cause"], registry=registry)
        self.refused = Counter("demur_refused", "Requests without a decision.", ["status", "cause"], registry=registry)
        self.audits = Counter("demur_audits", "Requests marked for audit.", by_policy, registry=registry)
        self.paths = Counter("demur_paths", "Paths drawn.", by_policy, registry=registry)
        self.saved = Counter(
            "demur_paths_saved", "Paths not drawn, for the rest decided.", by_policy, registry=registry
        )
        self.tokens = Counter("demur_tokens", "Tokens of all paths.", ["policy", "kind"], registry=registry)
        self.seconds = Histogram(
            "demur_request_seconds",
            "From request to committed decision.",
            by_policy,
            buckets=_SECONDS,
            registry=registry,
        )
        self.overhead = Histogram(
            "demur_overhead_seconds", "Of that, not spent waiting for models.", buckets=_OVERHEAD, registry=registry
        )
        self.underway = Gauge(
            "demur_paths_underway", "Paths under way.", registry=registry, multiprocess_mode="livesum"
        )
        self.waiting = Gauge(
            "demur_requests_waiting", "Requests waiting for their turn.", registry=registry, multiprocess_mode="livesum"
        )
        self.canaries = Counter(
            "demur_canaries", "Old questions asked again.", ["policy", "outcome"], registry=registry
        )
        self.alarms = Gauge(
            "demur_alarm", "1 where an alarm is on.", ["policy", "kind"], registry=registry, multiprocess_mode="livemax"
        )

        point: dict[str, Any] = {
            "labelnames": ["policy", "point"],
            "registry": registry,
            "multiprocess_mode": "livemax",
        }
        self.thresholds = Gauge("demur_online_threshold", "The confidence to be exceeded, as audits moved it.", **point)
        self.most_errors = Gauge("demur_online_most_errors", "What share of audits is wrong at most.", **point)
        self.awaited = Gauge("demur_online_awaited", "Labels that a threshold waits for.", **point)

    def saw(self, outcome: Outcome) -> None:
        """Count one decision."""
        policy, asked, of = outcome.question.served.full_name, outcome.asked, self._labelled
        of(self.requests, policy, "failed" if outcome.failure is not None else outcome.decision).inc()
        if outcome.failure is not None:
            of(self.failures, outcome.failure.kind).inc()
        if outcome.audited:
            of(self.audits, policy).inc()
        if asked is not None and not outcome.shared:
            drawn = asked.n_drawn
            of(self.paths, policy).inc(drawn)
            of(self.saved, policy).inc(max(0, outcome.n_paths - drawn))
            of(self.tokens, policy, "prompt").inc(asked.spent.prompt_tokens)
            of(self.tokens, policy, "completion").inc(asked.spent.completion_tokens)
        of(self.seconds, policy).observe(outcome.seconds)
        self.overhead.observe(max(0.0, outcome.seconds - outcome.waited))

    def _labelled(self, metric: Any, *labels: str) -> Any:
        """A metric under its labels, of which there are few: looked up by the library once each."""
        known = self._children.get((metric, labels))
        if known is None:
            known = self._children[metric, labels] = metric.labels(*labels)
        return known

    async def follow(self, fan_out: FanOut, seconds: float = _EVERY) -> None:
        """Keep up with what is under way until this is cancelled: of several workers, one alone is scraped."""
        while True:
            self.look(fan_out)
            await asyncio.sleep(seconds)

    def look(self, fan_out: FanOut) -> None:
        """What is under way now."""
        self.underway.set(fan_out.underway)
        self.waiting.set(fan_out.waiting)

    def exposed(self) -> bytes:
        """All of it in Prometheus' own format; of all workers, where there are several."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        multiprocess.MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)


def forget_process(process: int) -> None:
    """A worker that ended has nothing under way, and says nothing of alarms any more; what it counted stays."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        multiprocess.mark_process_dead(process)  # type: ignore[no-untyped-call]


@router.get("/metrics", include_in_schema=False)
async def scrape(request: Request) -> Response:
    """For Prometheus."""
    await allowed(request, "metrics")
    state: Any = request.app.state
    state.metrics.look(state.service.fan_out)
    return Response(state.metrics.exposed(), headers={"Content-Type": FORMAT})
