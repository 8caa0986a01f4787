"""Stores of runs that a service opens: its tables are added, once, and the runs stay as they are."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import make_url

from demur.descriptions import Description
from demur.errors import StoreError
from demur.records import Path, Problem
from demur.store import PlacedPath, Store
from demur.store.rows import pack
from demur.store.service import ServiceStore
from processes import Process
from service_rows import at_once, decision

OF_SCHEMA_2 = """
CREATE TABLE demur_meta (name VARCHAR(64) NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE demur_runs (run {auto} NOT NULL PRIMARY KEY, name VARCHAR(200) NOT NULL UNIQUE, description TEXT NOT NULL,
    fingerprint VARCHAR(80) NOT NULL, n_paths INTEGER, created VARCHAR(40) NOT NULL);
CREATE TABLE demur_problems (run INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, question TEXT,
    gold TEXT NOT NULL, cluster TEXT, "group" TEXT, extra TEXT NOT NULL, PRIMARY KEY (run, number), UNIQUE (run, id),
    FOREIGN KEY(run) REFERENCES demur_runs (run));
CREATE TABLE demur_paths (run INTEGER NOT NULL, number INTEGER NOT NULL, path INTEGER NOT NULL, answer TEXT,
    extraction VARCHAR(40), finish_reason VARCHAR(40), n_tokens INTEGER, logprob_mean FLOAT(53), logprob_std FLOAT(53),
    seed BIGINT, latency FLOAT(53), extra TEXT, PRIMARY KEY (run, number, path),
    FOREIGN KEY(run) REFERENCES demur_runs (run));
CREATE TABLE demur_texts (run INTEGER NOT NULL, number INTEGER NOT NULL, path INTEGER NOT NULL, text {bytes} NOT NULL,
    PRIMARY KEY (run, number, path), FOREIGN KEY(run) REFERENCES demur_runs (run));
CREATE TABLE demur_scorers (run INTEGER NOT NULL, name VARCHAR(200) NOT NULL, identity TEXT NOT NULL,
    PRIMARY KEY (run, name), FOREIGN KEY(run) REFERENCES demur_runs (run));
CREATE TABLE demur_scores (run INTEGER NOT NULL, name VARCHAR(200) NOT NULL, number INTEGER NOT NULL,
    path INTEGER NOT NULL, value FLOAT(53) NOT NULL, flag VARCHAR(20), PRIMARY KEY (run, name, number, path),
    FOREIGN KEY(run) REFERENCES demur_runs (run));
CREATE TABLE demur_sessions (session {auto} NOT NULL PRIMARY KEY, run INTEGER NOT NULL, command VARCHAR(40) NOT NULL,
    started VARCHAR(40) NOT NULL, facts TEXT NOT NULL, FOREIGN KEY(run) REFERENCES demur_runs (run));
INSERT INTO demur_meta VALUES ('application', 'demur');
INSERT INTO demur_runs (name, description, fingerprint, n_paths, created) VALUES ('run', '{{}}', 'f', 1, '2026-01-01');
INSERT INTO demur_problems VALUES (1, 0, 'q0', 'What?', '["4"]', NULL, NULL, '{{}}');
INSERT INTO demur_paths (run, number, path, answer, extraction) VALUES (1, 0, 0, '4', 'boxed')
"""
ONLY_IN_SCHEMA_1 = """
CREATE TABLE demur_pools (run INTEGER NOT NULL, number INTEGER NOT NULL, n_paths INTEGER NOT NULL,
    PRIMARY KEY (run, number));
INSERT INTO demur_pools VALUES (1, 0, 1)
"""


@contextmanager
def connected(place):
    url = make_url(place).set(drivername="postgresql+psycopg") if "://" in place else f"sqlite:///{place}"
    engine = create_engine(url)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def schema(place):
    with connected(place) as connection:
        return connection.execute(text("SELECT value FROM demur_meta WHERE name = 'schema'")).scalar()


def tables(place):
    with connected(place) as connection:
        return set(inspect(connection).get_table_names())


@pytest.fixture(params=["1", "2"])
def earlier(request, place):
    """A store as an earlier version made it, with one pool."""
    on_sqlite = "://" not in place
    words = {"auto": "INTEGER" if on_sqlite else "SERIAL", "bytes": "BLOB" if on_sqlite else "BYTEA"}
    with connected(place) as connection:
        if on_sqlite:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        statements = OF_SCHEMA_2.format(**words).split(";")
        for statement in statements + (ONLY_IN_SCHEMA_1.split(";") if request.param == "1" else []):
            connection.exec_driver_sql(statement)
        connection.execute(text("INSERT INTO demur_meta VALUES ('schema', :schema)"), {"schema": request.param})
        connection.execute(text("INSERT INTO demur_texts VALUES (1, 0, 0, :packed)"), {"packed": pack("It is 4.")})
        connection.commit()
    return place


def test_an_earlier_store_gets_the_tables_of_a_service_and_keeps_its_runs(earlier):
    before = tables(earlier)
    with ServiceStore(earlier, create=True) as service:
        service.decisions.add([decision("r")])
        assert service.decisions.get("r").outcome == "abstained"
    assert schema(earlier) == "3"
    assert before < tables(earlier)
    with Store(earlier) as store:
        (pool,) = store.run().pools(with_texts=True)
        assert (pool.problem.id, pool.paths[0].answer, pool.paths[0].text) == ("q0", "4", "It is 4.")
        run = store.open_run("run", Description(), 2)
        run.add_problems([Problem("q1", "And?")])
        run.save([PlacedPath(number, path, Path("5", "so")) for number in range(2) for path in range(2)])
        assert len(run.pools()) == 2
    with ServiceStore(earlier) as service:
        assert service.decisions.get("r") is not None


def test_two_processes_may_upgrade_a_store_at_once(earlier):
    program = (
        "import sys; from demur.store.service import ServiceStore\n"
        "store = ServiceStore(sys.argv[1], create=True)\n"
        "store.events.note(1, 'start', 'here', once='start')"
    )
    running = [Process([sys.executable, "-c", program, earlier], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=300)[1] for process in running] == [""] * 3
    with ServiceStore(earlier) as service:
        assert len(service.events.latest()) == 1


def test_a_store_that_another_process_is_about_to_make_is_waited_for(tmp_path):
    """SQLite itself does not wait for this lock: it fails at once, however patient it was told to be."""
    place = tmp_path / "service.db"
    other = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, other.execute, ["COMMIT"]).start()
    with ServiceStore(place, create=True) as service:
        assert service.decisions.tally().abstained == 0
    other.close()


def test_two_threads_may_make_a_store_at_once(place):
    def make():
        with ServiceStore(place, create=True) as service:
            service.decisions.add([decision("r")])

    assert at_once(*[make] * 4) == [None] * 4
    with ServiceStore(place) as service:
        assert service.decisions.tally().abstained == 1


def test_an_upgrade_that_is_cut_short_leaves_the_store_as_it_was(earlier, monkeypatch):
    from demur.store.service import upgrade

    made = upgrade.metadata.create_all

    def cut_short(connection, tables):
        made(connection, tables=tables[:5])
        raise KeyboardInterrupt

    monkeypatch.setattr(upgrade.metadata, "create_all", cut_short)
    before = tables(earlier)
    with pytest.raises(KeyboardInterrupt):
        ServiceStore(earlier, create=True)
    monkeypatch.undo()
    assert (tables(earlier), schema(earlier) in ("1", "2")) == (before, True)
    ServiceStore(earlier, create=True).close()


def test_a_store_of_runs_alone_stays_readable_for_earlier_versions(place):
    Store(place, create=True).close()
    assert schema(place) == "2"
    assert not [name for name in tables(place) if "decisions" in name]


def test_a_store_of_runs_becomes_one_of_a_service_only_where_that_is_asked_for(place):
    Store(place, create=True).close()
    with pytest.raises(StoreError, match="holds runs and no service; `demur serve` makes one in it"):
        ServiceStore(place)
    assert schema(place) == "2"


def test_a_store_that_is_not_there_is_not_made_unasked(tmp_path):
    with pytest.raises(StoreError, match=r"there is no store .*none\.db; `demur serve` makes one"):
        ServiceStore(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("create", [True, False])
def test_a_newer_store_is_refused_and_not_touched(place, store, create):
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE demur_meta SET value = '4' WHERE name = 'schema'"))
    with pytest.raises(StoreError, match="has schema 4, and this demur reads up to 3"):
        ServiceStore(place, create=create)
    assert schema(place) == "4"


def test_runs_live_beside_a_service(place, store):
    with Store(place, create=True) as beside:
        beside.open_run("run", Description(), 1).add_problems([Problem("q", "?")])
        assert beside.names() == ["run"]
    assert schema(place) == "3"
