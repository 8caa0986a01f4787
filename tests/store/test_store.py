"""Stores: the same behaviour on SQLite and PostgreSQL, and what is refused."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event, text

from demur.descriptions import Description
from demur.errors import StoreError
from demur.records import Path, Problem
from demur.store import PathScore, PlacedPath, Store
from demur.store.rows import pack, path_row, unpack

DESCRIPTION = Description(sampling={"model": "m", "temperature": 0.8, "prompt": {"user": "{question}"}})
WARMER = Description(sampling={**DESCRIPTION.sampling, "temperature": 1.0})
PROBLEMS = [Problem(f"q{k}", f"What is {k} + 1?", (str(k + 1),), extra={"task": "math"}) for k in range(3)]


def path(number, index, text=None, answer=None, **facts):
    written = f"text {number} {index}" if text is None else text
    answer = str(number) if answer is None else answer
    return PlacedPath(number, index, Path(answer, written, extra={"extraction": "boxed", **facts}))


@pytest.fixture
def run(place):
    with Store(place, create=True) as store:
        run = store.open_run("run", DESCRIPTION, 2)
        run.add_problems(PROBLEMS)
        yield run


def test_what_is_missing_is_read_off_what_is_there(run):
    assert [(each.problem.id, each.missing) for each in run.pending()] == [
        ("q0", (0, 1)),
        ("q1", (0, 1)),
        ("q2", (0, 1)),
    ]
    run.save([path(0, 0), path(0, 1), path(2, 1)])
    assert [(each.problem.id, each.missing) for each in run.pending()] == [("q1", (0, 1)), ("q2", (0,))]
    assert [pool.problem.id for pool in run.pools()] == ["q0"]
    assert [pool.problem.id for pool in run.pools(complete=False)] == ["q0", "q2"]
    assert run.pending(ids=["q2"])[0].missing == (0,)


def test_saving_twice_changes_nothing(run):
    run.save([path(1, 0, logprob_mean=-0.5)])
    run.save([path(1, 0, "another text", "9", logprob_mean=-9.0), path(1, 1)])
    (pool,) = run.pools(with_texts=True)
    assert [each.text for each in pool.paths] == ["text 1 0", "text 1 1"]
    assert pool.paths[0].extra["logprob_mean"] == -0.5


def test_everything_about_a_path_comes_back(run):
    facts = {
        "finish_reason": "stop", "n_tokens": 7, "logprob_mean": -0.123456789012345, "logprob_std": 0.5,
        "seed": 2**31 - 1, "latency": 0.25, "src": "x", "é": [1],
    }  # fmt: skip
    run.save([path(0, 0, **facts), path(0, 1)])
    back = run.pools(with_texts=True)[0].paths[0]
    assert back.text == "text 0 0"
    assert back.answer == "0"
    assert back.extra == facts | {"extraction": "boxed"}
    assert run.pools()[0].paths[0].text is None


def test_problems_come_back_as_they_were_and_stay_one_question_each(run):
    run.save([path(k, j) for k in range(3) for j in range(2)])
    assert [pool.problem for pool in run.pools()] == PROBLEMS
    assert run.add_problems([*PROBLEMS, Problem("q9", "new")]) == 1
    with pytest.raises(StoreError, match="'q1' is another question"):
        run.add_problems([Problem("q1", "What is the capital of France?")])
    with pytest.raises(StoreError, match="occurs twice"):
        run.add_problems([Problem("q7", "a"), Problem("q7", "b")])


def test_a_run_goes_on_only_if_it_is_made_the_same_way(place, run):
    run.save([path(0, 0)])
    with Store(place) as store:
        assert store.open_run("run", Description.of(DESCRIPTION.document()), 2).key == run.key
        with pytest.raises(StoreError, match=r"sampling.temperature is 0\.8 in the run, 1\.0 now"):
            store.open_run("run", WARMER, 2)
        with pytest.raises(StoreError, match="n_paths is 2 in the run, None now"):
            store.open_run("run", DESCRIPTION, None)
        other = store.open_run("other", WARMER, 4)
        assert other.pending() == []
        assert store.names() == ["run", "other"]
        with pytest.raises(StoreError, match="several runs; choose one with run: run, other"):
            store.run()
        with pytest.raises(StoreError, match="no run 'third'"):
            store.run("third")


def test_scores_belong_to_an_identity(run):
    run.save([path(0, 0), path(0, 1), path(1, 0), path(1, 1)])
    run.save_scores("judge", {"model": "a"}, [PathScore(0, 0, 0.5), PathScore(0, 1, -1.0)])
    assert [each.pool.problem.id for each in run.unscored("judge", run.lacking("judge"))] == ["q1"]
    run.save_scores("judge", {"model": "a"}, [PathScore(0, 0, 9.0), PathScore(1, 0, 2.0), PathScore(1, 1, 3.0)])
    assert [[each.scores["judge"] for each in pool.paths] for pool in run.pools()] == [[0.5, -1.0], [2.0, 3.0]]
    with pytest.raises(StoreError, match="another scorer"):
        run.save_scores("judge", {"model": "b"}, [PathScore(2, 0, 0.5)])
    assert run.scorers() == {"judge": {"model": "a"}}


def test_what_commands_did_is_kept(run):
    run.save(
        [path(0, 0, n_tokens=3, logprob_mean=-1.0), PlacedPath(0, 1, Path(None, "", extra={"extraction": "none"}))]
    )
    run.note("sample", "2026-01-01T00:00:00", {"paths": 2})
    facts = run.summary()
    assert {k: facts[k] for k in ("problems", "pools", "paths", "with_answer", "tokens", "with_logprobs")} == {
        "problems": 3, "pools": 1, "paths": 2, "with_answer": 1, "tokens": 3, "with_logprobs": 1,
    }  # fmt: skip
    assert facts["commands"] == [{"command": "sample", "started": "2026-01-01T00:00:00", "paths": 2}]


@pytest.mark.parametrize("odd", ["\x00", "a\x00b", "\ud800", "‮", "", " \n", "😀", "x" * 100_000])
def test_whatever_a_model_writes_can_be_stored(run, odd):
    run.save([path(0, 0, odd, odd, odd=odd), path(0, 1)])
    back = run.pools(with_texts=True)[0].paths[0]
    assert back.text == odd
    assert back.extra["odd"] == odd
    assert "\x00" not in back.answer


@settings(max_examples=100)
@given(st.text(st.characters()))
def test_texts_are_packed_without_loss(written):
    assert unpack(pack(written)) == written


def test_readers_work_while_a_writer_runs(place, run):
    stop, seen = threading.Event(), []

    def read():
        with Store(place) as store:
            reader = store.run("run")
            while not stop.is_set():
                seen.append(len(reader.pools()))

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(3):
        for index in range(2):
            run.save([path(number, index)])
    stop.set()
    thread.join(300)
    assert not thread.is_alive()
    assert seen == sorted(seen)


def test_two_writers_never_duplicate(place, run):
    def write():
        with Store(place) as store:
            mine = store.run("run")
            for number in range(3):
                for index in range(2):
                    mine.save([path(number, index)])

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert run.summary()["paths"] == 6
    assert run.summary()["pools"] == 3


def test_two_processes_may_make_a_store_at_once(place):
    failures = []

    def make():
        try:
            with Store(place, create=True) as store:
                store.open_run("run", DESCRIPTION, 2).add_problems(PROBLEMS)
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert failures == []
    with Store(place) as store:
        assert store.run().summary()["problems"] == 3


def test_a_newer_schema_is_refused_and_not_touched(place, run):
    with run.engine.begin() as connection:
        connection.execute(text("UPDATE demur_meta SET value = '99' WHERE name = 'schema'"))
    for create in (True, False):
        with pytest.raises(StoreError, match="has schema 99, and this demur reads up to 3"):
            Store(place, create=create)
    with run.engine.connect() as connection:
        assert connection.execute(text("SELECT value FROM demur_meta WHERE name = 'schema'")).scalar() == "99"


def test_a_store_of_another_program_is_refused(place, run):
    with run.engine.begin() as connection:
        connection.execute(text("UPDATE demur_meta SET value = 'other' WHERE name = 'application'"))
    with pytest.raises(StoreError, match="belongs to another program"):
        Store(place)


# --- SQLite files --------------------------------------------------------------------------------------------------


def test_a_foreign_database_is_refused_and_not_touched(tmp_path):
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    before = foreign.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Store(foreign, create=True)
    assert foreign.read_bytes() == before


@pytest.mark.parametrize("content", [b"{}\n", b"SQLite format 3\x00 but not really", b"\x00" * 100])
def test_a_file_that_is_no_database_is_refused_and_not_touched(tmp_path, content):
    odd = tmp_path / "odd.db"
    odd.write_bytes(content)
    with pytest.raises(StoreError):
        Store(odd, create=True)
    assert odd.read_bytes() == content


def test_nothing_is_made_where_nothing_is_asked_for(tmp_path):
    with pytest.raises(StoreError, match="there is no run"):
        Store(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_made_for_a_new_store_and_is_no_store_itself(tmp_path):
    Store(tmp_path / "deep" / "down" / "run.db", create=True).close()
    with pytest.raises(StoreError, match="is a folder"):
        Store(tmp_path / "deep", create=True)


def test_a_full_disk_is_a_clear_error_and_the_store_stays_whole(tmp_path):
    with Store(tmp_path / "run.db", create=True) as store:
        run = store.open_run("run", DESCRIPTION, 2)
        run.add_problems(PROBLEMS)
        run.save([path(0, 0), path(0, 1)])

        @event.listens_for(store.engine, "connect")
        def cap(connection, _):
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages + 1}")

        store.engine.dispose()  # from here on connections are new
        with pytest.raises(StoreError, match="disk is full; what was saved is safe"):
            run.save([path(1, k, os.urandom(200_000).hex(), "1") for k in range(2)])
        event.remove(store.engine, "connect", cap)
        store.engine.dispose()
        assert [each.missing for each in run.pending()] == [(0, 1), (0, 1)]
        run.save([path(1, 0), path(1, 1)])
        assert len(run.pools()) == 2


def test_a_read_only_store_can_be_read_and_says_why_it_cannot_be_written(tmp_path):
    file = tmp_path / "ro" / "run.db"
    with Store(file, create=True) as store:
        run = store.open_run("run", DESCRIPTION, 2)
        run.add_problems(PROBLEMS)
        run.save([path(0, 0), path(0, 1)])

    def read_only(connection, _):
        connection.execute("PRAGMA query_only=ON")  # permissions do not bind the user that tests may run as

    with Store(file) as store:
        event.listen(store.engine, "connect", read_only)
        store.engine.dispose()
        run = store.run()
        assert len(run.pools()) == 1
        with pytest.raises(StoreError, match="cannot be written"):
            run.save([path(1, 0)])
    file.chmod(stat.S_IRUSR)
    with Store(file) as store:
        assert len(store.run().pools()) == 1


def test_a_store_where_nothing_can_be_written_is_read_and_left_as_it_is(tmp_path, monkeypatch):
    """Without the files that SQLite would put beside it. (Permissions do not bind the user that tests may run as.)"""
    file = tmp_path / "still ?#.db"
    with Store(file, create=True) as store:
        run = store.open_run("run", DESCRIPTION, 2)
        run.add_problems(PROBLEMS)
        run.save([path(0, 0), path(0, 1)])
    monkeypatch.setattr(os, "access", lambda *_: False)
    with Store(file) as store:
        assert len(store.run().pools()) == 1
        assert [each.name for each in tmp_path.iterdir()] == [file.name]
        with pytest.raises(StoreError, match="cannot be written"):
            store.run().save([path(1, 0)])


@pytest.mark.parametrize("name", ["a?b.db", "a b.db", "ä#1.db", "100%.db"])
def test_odd_file_names_are_taken_as_they_are(tmp_path, name):
    with Store(tmp_path / name, create=True) as store:
        store.open_run("run", DESCRIPTION, 2)
    assert (tmp_path / name).exists()
    with Store(tmp_path / name) as store:
        assert store.names() == ["run"]


def test_gold_may_be_corrected_and_what_the_model_sees_may_not(run):
    run.save([path(0, 0), path(0, 1)])
    first = PROBLEMS[0]
    run.add_problems([Problem(first.id, first.question, ("corrected",), extra={"task": "math", "note": "x"})])
    assert run.pools()[0].problem.gold == ("corrected",)
    with pytest.raises(StoreError, match="another question"):
        run.add_problems([Problem(first.id, first.question, extra={"task": "math", "passages": ["new"]})])


def test_numbers_and_names_that_no_database_takes_are_left_out_or_refused(run):
    odd = {"finish_reason": "stop\x00\ud800", "n_tokens": 10**20, "logprob_mean": float("nan"), "seed": -5}
    run.save([path(0, 0, **odd, logprob_std=float("inf"), latency="soon"), path(0, 1)])
    assert set(run.pools()[0].paths[0].extra) == {"finish_reason", "extraction"}
    with pytest.raises(StoreError, match="cannot be stored"):
        run.add_problems([Problem("bad\x00id", "q")])
    for value in (float("nan"), float("inf")):
        with pytest.raises(StoreError, match="not a number"):
            run.save_scores("judge", {}, [PathScore(0, 0, value)])


def test_postgres_addresses_are_shown_without_a_password(postgres_url):
    with pytest.raises(StoreError) as caught:
        Store("postgresql://me:hunter2@127.0.0.1:1/none?password=hunter2")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(StoreError, match="cannot be read"):
        Store("postgresql://me:hunter2@host:port/none")
    with pytest.raises(StoreError, match="SQLite file or a postgresql"):
        Store("mysql://me:hunter2@host/none")
    with pytest.raises(StoreError, match="holds no runs"):
        Store(postgres_url)


def test_a_path_of_a_file_keeps_its_fields():
    row = path_row(Path(6.0, "text", extra={"logprob_mean": -1.0, "src": "x"}))
    assert (row["answer"], row["extraction"], row["logprob_mean"], row["extra"]) == (
        "6.0",
        "given",
        -1.0,
        '{"src": "x"}',
    )
    assert path_row(Path(None, "text", has_answer_field=False))["extraction"] is None


def test_a_store_of_the_earlier_name_says_how_to_bring_it_along(place, run):
    names = ("meta", "runs", "problems", "paths", "texts", "scorers", "scores", "sessions")
    with run.engine.begin() as connection:
        for name in names:
            connection.execute(text(f"ALTER TABLE demur_{name} RENAME TO earlier_{name}"))
    for create in (True, False):
        with pytest.raises(StoreError, match="was written by earlier, which this program was called before; export"):
            Store(place, create=create)


def test_a_run_whose_description_has_an_unknown_stage_says_so(place, run):
    with run.engine.begin() as connection:
        connection.execute(text("UPDATE demur_runs SET description = :odd"), {"odd": '{"dreaming": {"depth": 2}}'})
    with Store(place) as store, pytest.raises(StoreError, match=r"no stage 'dreaming'.*newer than this demur"):
        store.run()


def test_a_problems_group_is_called_that_in_the_database(place, run):
    run.add_problems([Problem("g", "?", group="algebra")])
    with run.engine.connect() as connection:
        rows = connection.execute(text('SELECT "group" FROM demur_problems WHERE id = :id'), {"id": "g"})
        assert rows.scalar() == "algebra"


def test_several_groups_of_a_problem_come_back(run):
    given = [None, "algebra", ("algebra", "spoken"), '["in brackets"]']
    run.add_problems([Problem(f"g{row}", "?", group=group) for row, group in enumerate(given)])
    run.save([path(len(PROBLEMS) + row, index) for row in range(4) for index in range(2)])
    stored = {pool.problem.id: pool.problem.groups for pool in run.pools()}
    assert [stored[f"g{row}"] for row in range(4)] == [(), ("algebra",), ("algebra", "spoken"), ('["in brackets"]',)]
