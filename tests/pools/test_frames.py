"""Pools from DataFrames, Arrow tables and rows: the same pools, the same figures as from the file."""

from __future__ import annotations

import pandas
import pyarrow
import pytest

import demur as dm
from demur.errors import InvalidValue, PoolFileError
from demur.pools.frames import pools_of_frame
from demur.pools.jsonl import write_pools


def rows_of(pools):
    return [
        {"id": pool.problem.id, "question": pool.problem.question, "gold": pool.problem.gold[0], "path": place,
         "answer": path.answer, "score.simulated": path.scores["simulated"], "kind": "x"}
        for pool in pools
        for place, path in enumerate(pool.paths)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def pools():
    return dm.simulate_pools(150, n_paths=5, seed=6, missing=0.1).pools()


@pytest.mark.parametrize("kind", [list, pandas.DataFrame, pyarrow.Table.from_pylist, lambda rows: iter(rows)])
def test_a_frame_gives_the_figures_of_the_file(pools, kind, tmp_path):
    write_pools(pools, tmp_path / "pools.jsonl")
    choice = dm.FieldChoice(score="simulated")
    file = dm.vote_pools(dm.read_pools(tmp_path / "pools.jsonl"), choice)
    frame = dm.vote_pools(dm.read_pools(kind(rows_of(pools))), choice)
    assert (
        dm.calibrate(frame, alpha=[0.05, 0.1], hold_out=0.3).points
        == dm.calibrate(file, alpha=[0.05, 0.1], hold_out=0.3).points
    )
    assert dm.evaluate(frame, alpha=0.1).points == dm.evaluate(file, alpha=0.1).points


def test_rows_of_one_problem_may_stand_anywhere_and_paths_keep_their_order(pools):
    rows = rows_of(pools)
    shuffled = pandas.DataFrame(rows).sample(frac=1, random_state=1)
    found = {pool.problem.id: [path.answer for path in pool.paths] for pool in pools_of_frame(shuffled)}
    assert found == {pool.problem.id: [path.answer for path in pool.paths] for pool in pools}


def test_what_is_missing_is_missing_however_a_library_writes_it():
    frame = pandas.DataFrame(
        {
            "id": [1, 1, 2],
            "answer": ["a", None, float("nan")],
            "score.q": [0.5, None, 1.0],
            "cluster": [pandas.NA, None, 7],
        }
    )
    first, second = pools_of_frame(frame)
    assert [path.answer for path in first.paths] == ["a", None]
    assert [dict(path.scores) for path in first.paths] == [{"q": 0.5}, {}]
    assert (first.problem.cluster, second.problem.cluster) == (None, "7")
    assert second.paths[0].answer is None


def test_other_columns_are_fields_of_the_path():
    frame = pandas.DataFrame({"id": ["q"] * 2, "answer": ["a", "b"], "ok": [True, False], "gold": ["a", "a"]})
    voted = dm.vote_pools(dm.read_pools(frame), correct="ok")
    assert voted.labelled.tolist() == [True]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pandas.DataFrame({"answer": ["a"]}), "the table has no column 'id'"),
        (pandas.DataFrame({"id": ["a"]}), "the table has no column 'answer'"),
        (pandas.DataFrame({"id": [None], "answer": ["a"]}), "row 0: a path needs the id"),
        (pandas.DataFrame({"id": [], "answer": []}), "the table holds no rows"),
    ],
)
def test_a_table_that_holds_no_pools_is_named(frame, said):
    with pytest.raises(PoolFileError, match=said):
        dm.read_pools(frame)


@pytest.mark.parametrize("thing", [3, b"pools", [1, 2], None])
def test_what_is_no_table_is_refused(thing):
    with pytest.raises(InvalidValue, match="expected a DataFrame, an Arrow table or rows"):
        dm.read_pools(thing)


def test_options_and_passages_belong_to_the_problem_and_tell_it_from_others():
    rows = [
        {"id": f"q{row}", "question": "Which is prime?", "options": [str(row), "9"], "answer": "A", "gold": "A"}
        for row in range(4)
        for _ in range(2)
    ]
    voted = dm.vote_pools(dm.read_pools(rows))
    assert len(voted.counted) == 4
    (first, *_) = dm.read_pools(rows).pools
    assert first.problem.extra == {"options": ["0", "9"]}
    assert first.paths[0].extra == {}


def test_a_column_task_says_how_answers_are_compared_and_a_number_of_the_problem_breaks_ties():
    rows = [
        {"id": f"q{row}", "task": "math", "answer": answer, "gold": "1/2", "margin": row / 7}
        for row in range(30)
        for answer in ("0.5", "1/2")
    ]
    source = dm.read_pools(rows)
    voted = dm.vote_pools(source, dm.FieldChoice(), source.recipe(tie_break="column:margin"))
    assert voted.labelled.all()
    assert voted.votes.key[:, 1].tolist() == [row / 7 for row in range(30)]
    assert voted.votes.upstream.answers["relation"] == "by-task(mathematics@3)"


def test_what_tables_have_for_nothing_is_no_question_and_no_cluster():
    pandas = pytest.importorskip("pandas")
    nothing = pandas.array(["a", None, "a"], dtype="string")
    votes = dm.vote([["a"]] * 30, ids=range(30))
    policy = dm.calibrate(votes, [True] * 30, alpha=0.1, clusters=[*nothing, *[pandas.NA] * 27])
    assert (policy.n, policy.unit) == (29, "cluster")
    assert dm.calibrate(votes, [True] * 30, alpha=0.1, questions=[*nothing, *[pandas.NA] * 27]).n == 29


@pytest.mark.parametrize("kind", [list, pandas.DataFrame, pyarrow.Table.from_pylist])
def test_a_column_of_messages_stands_for_the_question(kind):
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?", "name": None}]
    rows = [{"id": "t", "answer": "4", "gold": "4", "messages": talk}, {"id": "p", "answer": "5", "gold": "4"}]
    rows[1]["messages"] = talk[1:]
    voted = dm.vote_pools(dm.read_pools(kind(rows)), dm.FieldChoice())
    put = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    asked = dm.Problem("t", "[system]\nBe brief.\n\n[user]\nWhy?", extra={"messages": put})
    assert list(voted.table.questions) == [asked.question, "Why?"]
    assert list(voted.questions) == [asked.digest, dm.Problem("p", "Why?").digest]
