"""The sizing guide: a simulated cluster against what must hold of any, and tables drawn from a made-up report."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS, DOCS = ROOT / "benchmarks", ROOT / "docs"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the source distribution has no benchmarks")


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def cluster(**changes):
    from cluster import Cluster

    small = Cluster(4, 4, connections=16, slots=16, path_seconds=1.0, worker_seconds=1e-4, database_seconds=1e-5)
    return replace(small, **changes)


@pytest.mark.parametrize("path_spread", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("changes", "holds_up"),
    [
        ({"slots": 64}, "connections"),
        ({"slots": 4}, "model servers"),
        ({"slots": 64, "worker_seconds": 0.2}, "workers"),
        ({"slots": 64, "database_seconds": 0.2}, "database"),
        ({"slots": 64, "database_seconds": 0.2, "database_cores": 2}, "database"),
    ],
)
def test_a_cluster_is_as_fast_as_its_narrowest_part_allows_and_no_faster(changes, holds_up, path_spread):
    """Little's law bounds the rate by each part alone; the bound of one that is far narrower is nearly reached."""
    from cluster import simulate

    one = cluster(**changes, path_spread=path_spread)
    limits = one.limits
    assert min(limits, key=limits.get) == holds_up
    found = simulate(one, rounds=60)
    draws = 58 * one.workers * one.connections
    error = math.sqrt(math.exp(path_spread**2) - 1) / math.sqrt(draws)  # of the mean time of a path, relative
    assert found.paths_per_second <= limits[holds_up] * (1 + 4 * error + 0.01)
    assert found.paths_per_second >= limits[holds_up] * 0.93
    assert found.bottleneck == holds_up


def test_twice_the_database_makes_a_cluster_that_waits_for_it_twice_as_fast_and_another_no_faster():
    from cluster import simulate

    waiting, idle = cluster(slots=64, database_seconds=0.2), cluster(slots=4)
    for one, faster in ((waiting, 2.0), (idle, 1.0)):
        before, after = (simulate(replace(one, database_cores=cores), rounds=40) for cores in (2, 4))
        assert after.paths_per_second / before.paths_per_second == pytest.approx(faster, rel=0.03)


def test_a_simulation_is_the_same_for_the_same_seed_and_another_for_another():
    from cluster import simulate

    assert simulate(cluster(), seed=1) == simulate(cluster(), seed=1)
    assert simulate(cluster(), seed=1) != simulate(cluster(), seed=2)


@pytest.fixture
def measured():
    """A report with costs that are easy to reckon with."""
    from cluster import Cluster, Outcome
    from measured import Machine, Measured
    from sizing_stages import STAGES

    costs = {
        stage.name: {"pools": 10, "resident_bytes": 2_000}
        | {kind: {"median": 3.6, "min": 3.0, "max": 4.0} for kind in ["cpu_milliseconds"]}
        for stage in STAGES
    }
    costs["serve, log on"] = {"pools": 10, "server_cpu_milliseconds": {"median": 7.2, "min": 7.0, "max": 8.0}}
    costs["client, one path per request, no log-probabilities"]["cpu_milliseconds"] = {
        "median": 1.6,
        "min": 1,
        "max": 2,
    }
    told = Outcome(1000.0, {"model servers": 0.5, "workers": 1.001, "database": 0.125})
    simulated = {**asdict(Cluster(2, 64, worker_seconds=0.002)), **asdict(told), "bottleneck": told.bottleneck}
    report = {
        "claims": [],
        "setting": {"paths": 16, "letters of a path": 2000, "tokens of a path": 300},
        "per_pool": costs,
        "bytes_per_pool": {"jsonl, with texts": 40_000},
        "left_out": ["something new"],
        "simulated": [simulated],
    }
    return Measured("2026-01-02", Machine("a processor", 2, 8.0, "Linux", "3.11"), 0.1, json.loads(json.dumps(report)))


def test_the_tables_of_the_guide_are_the_measured_costs_times_a_million(measured):
    from sizing_page import draw_sizing

    page = draw_sizing((DOCS / "sizing.md").read_text(encoding="utf-8"), measured)
    assert "Measured 2026-01-02 on a processor, 2 cores" in page
    assert "cannot do it: something new." in page
    assert "| extraction | 3.6 (3 to 4) |  | 2 KB |" in page
    assert "| serve, log on |  | 7.2 (7 to 8) |  |" in page
    assert "| jsonl, with texts | 40 KB | 40 GB |" in page
    assert "| Calibrating from the run | 3.6 | 60 minutes | 2 GB |" in page
    assert "| Voting and calibrating on arrays | 7.2 | 2 hours | 2 GB |" in page
    assert "| 64 | 2 | 512 | 1,000 | 4.44 hours | 50% | 100% | 12% | workers |" in page
    assert "**Simulated.** Assumed" in page
    assert "busy at 500 paths per second, which takes 2,500 connections" in page
    assert "log-probabilities cost 2 ms" in page
    assert draw_sizing(page, measured) == page


def test_a_run_of_the_script_writes_the_guide(measured, tmp_path):
    from run import SIZING, Bench

    bench = Bench(tmp_path / "benchmarks", tmp_path / "docs", Path(sys.executable), (SIZING,))
    bench.scripts.mkdir()
    bench.docs.mkdir()
    (bench.scripts / "README.md").write_text("| `sizing.py` | costs |\n")
    (bench.scripts / "sizing.py").write_text(f"print({json.dumps(measured.report)!r})")
    (bench.docs / "sizing.md").write_text((DOCS / "sizing.md").read_text(encoding="utf-8"), encoding="utf-8")
    bench.run([SIZING])
    guide, page = ((bench.docs / name).read_text(encoding="utf-8") for name in ("sizing.md", "benchmarks.md"))
    assert "| Calibrating from the run | 3.6 | 60 minutes | 2 GB |" in guide
    assert "per pool: extraction: CPU milliseconds | 3.6 | 3 to 4 |" in page


def test_a_guide_without_a_place_for_a_table_is_refused(measured):
    from sizing_page import draw_sizing

    with pytest.raises(SystemExit, match="no place for 'circumstances'"):
        draw_sizing("# Sizing\n", measured)


def test_nothing_is_written_where_nothing_was_measured():
    from sizing_page import draw_sizing

    assert draw_sizing("# Sizing\n", None) == "# Sizing\n"


def test_the_guide_in_the_docs_is_what_was_measured_last():
    """Redraw it with `python benchmarks/run.py --redraw`."""
    from measured import Results
    from run import RESULTS, SIZING
    from sizing_page import draw_sizing

    measured = Results.load(DOCS / RESULTS).scripts[SIZING].measured
    assert measured is not None
    page = (DOCS / "sizing.md").read_text(encoding="utf-8")
    assert page == draw_sizing(page, measured)


@pytest.mark.parametrize(
    ("size", "told"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1 KB"), (32_768, "32.8 KB"), (8e9, "8 GB"), (3e14, "300 TB")],
)
def test_bytes_are_told_in_units_of_a_thousand(size, told):
    from sizing_page import amount

    assert amount(size) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(2.4, "2.4 s"), (119, "119 s"), (7_199, "120 minutes"), (7_200, "2 hours"), (864_000, "10 days")],
)
def test_times_are_told_in_the_largest_unit_that_fits_twice(seconds, told):
    from sizing_page import duration

    assert duration(seconds) == told


def test_a_stage_that_needs_what_is_not_there_is_left_out():
    from sizing_stages import STAGES

    assert not replace(STAGES[0], needs=("demur.no_such_module",)).can_run
    assert not replace(STAGES[0], needs=("no_such_package.module",)).can_run
    assert replace(STAGES[0], needs=("demur.pools", "demur.pools.parquet")).can_run
    assert len({stage.name for stage in STAGES}) == len(STAGES)
