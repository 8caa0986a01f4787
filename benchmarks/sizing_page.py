"""The tables of docs/sizing.md, from the report of `sizing.py`.

The page's own words stay as they are; what stands between `<!-- name -->` and `<!-- end -->` is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from measured import Measured
from page import number, table

Report = Mapping[str, Any]
QUESTIONS = 1_000_000
_CONNECTIONS = "connections"
_TIMES = ("cpu_milliseconds", "server_cpu_milliseconds")
_BEGIN = "take up a run"
_WAYS = (
    ("Sampling, all paths in one request", "sample into SQLite, all paths in one request", _BEGIN),
    ("Sampling, one path per request", "sample into SQLite, one path per request", _BEGIN),
    ("A score: self-consistency", "score by self-consistency"),
    ("A score: a judge's client", "score by a judge, client"),
    ("A score: a reward model's client", "score by a reward model, client"),
    ("Calibrating from the run", "calibrate from SQLite"),
    ("Calibrating from JSON lines", "calibrate from JSON lines"),
    ("Calibrating from Parquet", "calibrate from Parquet"),
    ("Calibrating from Parquet shards", "calibrate from Parquet shards"),
    ("Voting and calibrating on arrays", "vote on arrays", "calibrate on votes"),
    ("Deciding on votes", "decide on votes"),
    ("Decisions with explanations, as lines", "decisions as lines"),
    ("Serving, log on", "serve, log on"),
)
"""What a million questions are put through, and the stages that it takes."""


def draw_sizing(text: str, measured: Measured | None) -> str:
    """The page with its tables written anew; as it is, where nothing was measured."""
    if measured is None:
        return text
    for name, part in _PARTS.items():
        text = between_marks(text, name, part(measured))
    return text


def between_marks(text: str, name: str, body: str) -> str:
    pattern = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(
            f"sizing.md has no place for {name!r}: write <!-- {name} --> and <!-- end --> where it belongs"
        )
    return pattern.sub(lambda found: f"{found[1]}{body}\n{found[2]}", text)


def circumstances(measured: Measured) -> str:
    """When and on what it was measured."""
    setting = measured.report["setting"]
    told = (
        f"Measured {measured.date} on {measured.machine}. A pool has {setting['paths']} paths of "
        f"{number(setting['letters of a path'])} letters; those that a model is asked for have "
        f"{setting['tokens of a path']} tokens with their log-probabilities."
    )
    if measured.busy:
        told += f" Others kept {measured.load:.1f} of its {measured.machine.cores} cores busy when it began."
    if left_out := measured.report["left_out"]:
        told += f" Not measured, since this version or machine cannot do it: {', '.join(left_out)}."
    return told


def costs(measured: Measured) -> str:
    """CPU time and memory of each stage."""
    rows = []
    for name, cost in measured.report["per_pool"].items():
        own, server = cost.get("cpu_milliseconds"), cost.get("server_cpu_milliseconds")
        held = cost.get("resident_bytes")
        rows.append((name, _spread(own), _spread(server), "" if held is None else amount(held)))
    header = ("stage", "CPU per pool, ms", "of the server beside it, ms", "memory per pool")
    return table(header, rows)


def sizes(measured: Measured) -> str:
    """Bytes of a pool in every form."""
    rows = [(name, amount(size), amount(size * QUESTIONS)) for name, size in measured.report["bytes_per_pool"].items()]
    return table(("form", "per pool", "10⁶ pools"), rows)


def one_machine(measured: Measured) -> str:
    """A million questions on one machine: time of one core, and memory where a stage holds all pools."""
    per_pool, rows = measured.report["per_pool"], []
    for what, *stages in _WAYS:
        if any(stage not in per_pool for stage in stages):
            continue
        taken = [per_pool[stage] for stage in stages]
        milliseconds = sum(
            cost[kind]["median"]
            for cost in taken
            for kind in ("cpu_milliseconds", "server_cpu_milliseconds")
            if kind in cost
        )
        held = [cost["resident_bytes"] for cost in taken if "resident_bytes" in cost]
        memory = amount(max(held) * QUESTIONS) if held else ""
        rows.append((what, number(milliseconds), duration(milliseconds / 1000 * QUESTIONS), memory))
    return table(("work", "CPU per pool, ms", "10⁶ questions, one core", "memory for 10⁶"), rows)


def clusters(measured: Measured) -> str:
    """Simulated clusters: what they bring, and what holds them up."""
    paths = measured.report["setting"]["paths"] * QUESTIONS
    rows = []
    for found in measured.report["simulated"]:
        rate, busy = found["paths_per_second"], [f"{min(1, share):.0%}" for share in found["busy"].values()]
        made_of = [number(found[part]) for part in ("servers", "workers", "connections")]
        held_up = told_bottleneck(found["bottleneck"])
        rows.append((*made_of, number(round(rate)), duration(paths / rate), *busy, held_up))
    first = measured.report["simulated"][0]
    brings = ("paths per second", f"{number(paths)} paths", *(f"{name} busy" for name in first["busy"]))
    header = ("model servers", "workers", "connections each", *brings, "held up by")
    assumed = (
        f"**Simulated.** Assumed: each model server draws {first['slots']} paths at once, {first['path_seconds']:g} s "
        f"each on average; each worker has one core; the database has {first['database_cores']} cores. Measured: "
        f"{1000 * first['worker_seconds']:.2g} ms of a worker and {1000 * first['database_seconds']:.2g} ms of the "
        "database per path, asked for one by one."
    )
    return f"{assumed}\n\n{table(header, rows)}"


def turning_points(measured: Measured) -> str:
    """What each part of a cluster can do, by arithmetic on the measured costs."""
    first, per_pool = measured.report["simulated"][0], measured.report["per_pool"]
    worker, database, seconds = first["worker_seconds"], first["database_seconds"], first["path_seconds"]
    rate, per_server, saved = 1 / worker, first["slots"] / seconds, first["database_cores"] / database

    def client(how: str) -> float:
        return float(per_pool[f"client, {how}"]["cpu_milliseconds"]["median"])

    one, bare = client("one path per request"), client("one path per request, no log-probabilities")
    said = [
        f"**Connections.** Paths of {seconds:g} s over the usual 32 connections come at {32 / seconds:.2g} per second. "
        f"A worker's core is only busy at {number(round(rate))} paths per second, which takes "
        f"{number(round(rate * seconds))} connections: raise `--concurrency` before you add workers.",
        f"**Model servers.** One as assumed brings {number(per_server)} paths per second, so that a worker's core "
        f"could follow about {number(round(rate / per_server))} of them.",
        f"**Workers' cores.** Of the {number(one)} ms per pool that the client takes, log-probabilities cost "
        f"{number(round(max(0.0, one - bare), 2))} ms. With all paths in one request it takes "
        f"{number(client('all paths in one request'))} ms.",
        f"**The database.** {first['database_cores']} cores of it save about {number(round(saved))} paths per second, "
        f"what {number(round(saved * worker))} workers' cores or {number(round(saved / per_server))} such model "
        "servers can bring.",
    ]
    return "\n".join(f"- {line}" for line in said)


def told_bottleneck(part: str) -> str:
    return "too few connections" if part == _CONNECTIONS else part


def amount(size: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def duration(seconds: float) -> str:
    """A time for people."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"


def _spread(milliseconds: Mapping[str, float] | None) -> str:
    if milliseconds is None:
        return ""
    return f"{number(milliseconds['median'])} ({number(milliseconds['min'])} to {number(milliseconds['max'])})"


_PARTS: Mapping[str, Callable[[Measured], str]] = {
    "circumstances": circumstances,
    "costs": costs,
    "sizes": sizes,
    "one machine": one_machine,
    "clusters": clusters,
    "turning points": turning_points,
}
