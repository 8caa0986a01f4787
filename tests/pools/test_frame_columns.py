"""Votes from the columns of a table: to the last bit those of its pools, read path by path."""

from __future__ import annotations

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import demur as dm
from demur.errors import InvalidValue, PoolFileError

ANSWERS = st.sampled_from(["6", "6.0", " +06 ", "six", "1/2", "0.5", "\\frac12", "Paris", "paris.", "", "none", None])
SCORES = st.sampled_from([0.0, 1.0, -2.5, 3.25, 1e-9])


@st.composite
def tables(draw):
    """Rows of a few problems, of pools that differ in size."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=8))
    asked = draw(st.booleans())
    return [
        {"id": f"q{row}", "answer": draw(ANSWERS), "score.rm": draw(SCORES), "gold": "6", "cluster": f"c{row % 3}"}
        | ({"question": f"What is {row}?"} if asked else {})
        for row, size in enumerate(sizes)
        for _ in range(size)
    ]


class Streamed:
    """A table that has nothing but Arrow's C stream interface, as Polars and DuckDB have it."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


KINDS = {
    "rows": lambda rows: rows,
    "columns": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    "pandas": pandas.DataFrame,
    "arrow": pyarrow.Table.from_pylist,
    "stream": lambda rows: Streamed(pyarrow.Table.from_pylist(rows)),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(rows=tables(), relation=st.sampled_from([None, "plain", "mathematics", "text"]), scored=st.booleans())
def test_columns_vote_as_their_pools_do_to_the_last_bit(kind, rows, relation, scored):
    fields = dm.FieldChoice(score="rm" if scored else None, relation=relation, missing=("none",))
    source = dm.read_pools(KINDS[kind](rows))
    told, columns = [], dm.vote_pools(source, fields, say=lambda line: None)
    pools = dm.vote_pools(dm.PoolSource(list(source.pools)), fields, say=told.append)
    for name in ("winners", "confidence", "unanimous", "n_paths", "answer"):
        ours, theirs = getattr(columns.votes, name), getattr(pools.votes, name)
        assert ours.tolist() == theirs.tolist(), name
    assert columns.votes.description == pools.votes.description
    assert list(columns.votes) == list(pools.votes)
    assert columns.labelled.tolist() == pools.labelled.tolist()
    one, other = columns.table, pools.table
    for name in ("ids", "questions", "digests", "clusters", "groups", "answers", "written", "suspects", "relations"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert (dict(ours) if name in ("suspects", "relations") else list(ours)) == (
            dict(theirs) if name in ("suspects", "relations") else list(theirs)
        ), name
    assert one.comparison() == other.comparison()
    half = np.arange(0, len(columns), 2)
    assert list(columns.take(half).votes) == list(pools.take(half).votes)
    assert list(columns.take(half).table.answers) == list(pools.take(half).table.answers)


@pytest.mark.parametrize(("unscored", "left_out"), [("drop", [True, False]), (0.5, None)])
def test_gaps_in_a_score_are_treated_as_in_pools(unscored, left_out):
    frame = pandas.DataFrame({"id": [1, 1, 2, 2], "answer": list("abab"), "score.rm": [0.1, None, 0.3, 0.9]})
    fields = dm.FieldChoice(score="rm", unscored=unscored)
    source = dm.read_pools(frame)
    columns = dm.vote_pools(source, fields, labelled=False)
    pools = dm.vote_pools(dm.PoolSource(list(source.pools)), fields, labelled=False)
    assert list(columns.votes) == list(pools.votes)
    assert (None if columns.votes.unscored is None else columns.votes.unscored.tolist()) == left_out
    with pytest.raises(PoolFileError, match="1 of 2 pools lack the score 'rm'"):
        dm.vote_pools(source, dm.FieldChoice(score="rm"), labelled=False)


def test_a_table_is_voted_on_without_an_object_per_path():
    rows = {
        "id": np.repeat(np.arange(1000), 4),
        "answer": ["a", "b", "a", "c"] * 1000,
        "rm": [0.1, 0.2, 0.3, 0.4] * 1000,
    }
    source = dm.read_pools(pandas.DataFrame(rows))
    dm.vote_pools(source, dm.FieldChoice(score=".rm"), labelled=False)
    assert "_built" not in vars(source.pools)


def test_nothing_equal_in_python_and_different_on_paper_is_merged():
    rows = [{"id": "q", "answer": answer} for answer in (1, True, 1.0, "1", -0.0, 0.0)]
    (texts,) = [list(votes.support) for votes in dm.vote_pools(dm.read_pools(rows), labelled=False).votes]
    assert sorted(texts) == ["-0.0", "1", "true"] or sorted(texts) == ["0.0", "1", "true"]
    frame = pandas.DataFrame({"id": ["q"] * 3, "answer": [0.0, -0.0, None]})
    source = dm.read_pools(frame)
    ours, theirs = (dm.vote_pools(s, labelled=False).votes[0] for s in (source, dm.PoolSource(list(source.pools))))
    assert ours == theirs


@pytest.mark.parametrize(
    "column",
    [
        pandas.Categorical(["a", "b", "a", None]),
        pandas.array(["a", "b", "a", None], dtype="string"),
        pandas.array([1, 2, 1, None], dtype="Int64"),
        pandas.array([True, False, True, None], dtype="boolean"),
        pandas.Series([1.5, 2.5, 1.5, None]),
        pandas.Series([1, "b", 1, None], dtype=object),
    ],
    ids=["categorical", "string", "Int64", "boolean", "float", "mixed"],
)
def test_categories_nullable_and_mixed_answers_are_read_as_they_are_written(column):
    frame = pandas.DataFrame({"id": ["q"] * 4, "answer": column})
    source = dm.read_pools(frame)
    vote = dm.vote_pools(source, labelled=False).votes[0]
    assert vote == dm.vote_pools(dm.PoolSource(list(source.pools)), labelled=False).votes[0]
    assert (sorted(vote.support.values()), vote.confidence) == ([1, 2], 0.5)


def test_categories_and_nullable_numbers_are_ids_and_scores():
    frame = pandas.DataFrame(
        {
            "id": pandas.Categorical(["x", "x", "y"], categories=["y", "unused", "x"]),
            "answer": ["a", "b", "a"],
            "score.rm": pandas.array([1, 2, 3], dtype="Int64"),
        }
    )
    voted = dm.vote_pools(dm.read_pools(frame), dm.FieldChoice(score="rm"), labelled=False)
    assert voted.ids == ["x", "y"]
    assert voted.votes.answer.tolist() == ["b", "a"]


def test_whole_numbers_that_a_table_made_floats_are_the_same_ids():
    frame = pandas.DataFrame({"id": [7.0, 7.0, 8.0], "answer": list("aab")})
    assert dm.read_pools(frame).pools.ids == ["7", "8"]


MINE = pandas.DataFrame(
    {"problem_id": [1, 1, 2], "response": list("aab"), "rm": [0.1, 0.2, 0.3], "target": list("aab")}
)


def frame(ids, answers="xy", **columns):
    return pandas.DataFrame({"id": list(ids), "answer": list(answers), **columns})


def test_people_name_their_own_columns():
    source = dm.read_pools(MINE, columns={"problem_id": "id", "response": "answer", "rm": "score.rm", "target": "gold"})
    voted = dm.vote_pools(source, dm.FieldChoice(score="rm"))
    assert (voted.ids, voted.labelled.tolist()) == (["1", "2"], [True, True])


@pytest.mark.parametrize(
    ("table", "columns", "said"),
    [
        (
            MINE,
            {},
            "has no column 'id'; expected one row per path, and it has 'problem_id', 'response', 'rm'",
        ),
        (MINE, {}, "in Python say columns={'…': 'id'}"),
        (MINE, {"problem": "id"}, "has no column 'problem', which columns= names; it has 'problem_id'"),
        (MINE, {"problem_id": "id", "response": "answer", "rm": "answer"}, "two columns 'answer'"),
        (frame("aba", "xyz"), {}, "row 2: the id 'a' turns up again behind others; sort the table by id"),
        (frame([1, "1"]), {}, "the column 'id' mixes types \\(1 and '1'\\)"),
        (frame([True, False]), {}, "the column 'id' mixes types"),
        (frame(["a", " "]), {}, "row 1: a path needs the id"),
        (frame([["a"], ["b"]]), {}, "ids must be texts or whole numbers"),
        (frame("aa", question=["Q?", "R?"]), {}, "row 1: the id 'a' has another 'question' than in row 0; give other"),
        (frame("aa", options=[["u"], ["v"]]), {}, "another 'options'"),
        (frame("aa", path=[0, 0]), {}, "has two rows of the path 0"),
        (frame("aa", path=["one", "two"]), {}, "'path' must be a whole"),
        ({"id": [1, 2], "answer": ["a"]}, {}, "columns of different length: 'id' 2, 'answer' 1"),
        ([{"id": 1, "answer": "a"}, {"id": 1}], {}, "row 1 has no 'answer'"),
        ([], {}, "has no column 'id'"),
    ],
)
def test_a_table_that_cannot_be_read_is_named_in_one_line(table, columns, said):
    with pytest.raises(PoolFileError, match=said) as refused:
        dm.read_pools(table, columns=columns)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("scores", "said"), [(["high", 0.1], "must be a finite number"), ([True, False], "a label")])
def test_a_score_that_is_no_number_is_named(scores, said):
    source = dm.read_pools({"id": [1, 1], "answer": ["a", "b"], "score.rm": scores})
    with pytest.raises((PoolFileError, InvalidValue), match=said):
        dm.vote_pools(source, dm.FieldChoice(score="rm"), labelled=False)


def test_without_pyarrow_a_frame_is_read_all_the_same(monkeypatch):
    frame = pandas.DataFrame({"id": [1, 1, 2], "answer": ["a", None, "b"], "score.rm": [0.5, 0.25, None]})
    through_arrow = list(dm.read_pools(frame).pools)
    monkeypatch.setattr("demur.pools.columns.find_spec", lambda name: None)
    assert list(dm.read_pools(frame).pools) == through_arrow


class Polars:
    """What Polars has, where pyarrow is not installed."""

    def __init__(self, columns):
        self._lists, self.columns = columns, list(columns)

    def to_dict(self, *, as_series=True):
        assert not as_series
        return self._lists


def test_a_frame_of_another_library_is_read_by_its_own_method():
    found = dm.read_pools(Polars({"id": ["q", "q"], "answer": ["a", "b"]}))
    assert [path.answer for path in found.pools[0].paths] == ["a", "b"]


def source():
    return dm.PoolSource(dm.simulate_pools(30, n_paths=3, seed=2, missing=0.2).pools())


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".tsv", ".parquet"])
def test_what_is_written_is_read_back_alike(ending, tmp_path):
    dm.write_pools(source(), tmp_path / f"pools{ending}")
    back = dm.read_pools(tmp_path / f"pools{ending}")
    fields = dm.FieldChoice(score="simulated")
    ours, theirs = dm.vote_pools(back, fields), dm.vote_pools(source(), fields)
    assert list(ours.votes) == list(theirs.votes)
    assert ours.labelled.tolist() == theirs.labelled.tolist()


def test_a_file_of_another_kind_is_not_written():
    with pytest.raises(
        InvalidValue, match=r"named like no kind of pool file; name it \.jsonl, \.jsonl\.gz, \.parquet or \.csv"
    ):
        dm.write_pools(source(), "pools.xlsx")


def test_a_csv_of_ones_own_is_read_with_its_own_names(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text('\ufeffqid,response,rm,note,ok\n007,"1,000",0.5,1,True\n007,1000,,2,False\n8,,1e-3,,\n', "utf-8")
    source = dm.read_pools(file, columns={"qid": "id", "response": "answer", "rm": "score.rm"})
    first, second = source.pools
    assert (first.problem.id, [path.answer for path in first.paths]) == ("007", ["1,000", "1000"])
    assert [dict(path.scores) for path in (*first.paths, *second.paths)] == [{"rm": 0.5}, {}, {"rm": 0.001}]
    assert [path.extra for path in first.paths] == [{"note": 1, "ok": True}, {"note": 2, "ok": False}]
    assert second.paths[0].answer is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,answer\nq,1,000\n", "line 2: 3 cells under a header of 2; put quotes around"),
        ("id,answer,score.rm\nq,a,high\n", "row 0: 'score.rm' must be a finite number, got 'high'"),
        ("id,answer\n", "holds no rows"),
        ("", "holds no rows"),
        ("id,id,answer\n1,1,a\n", "two columns 'id'"),
        ('id,answer\nq,"a\n', "line 2: unexpected end of data"),
    ],
)
def test_a_csv_that_cannot_be_read_is_named(text, said, tmp_path):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(PoolFileError, match=said):
        dm.read_pools(tmp_path / "bad.csv")


def test_parquet_is_known_by_how_it_begins_and_columns_are_for_tables(tmp_path):
    dm.write_pools(source(), tmp_path / "pools.parquet")
    (tmp_path / "pools.parquet").rename(tmp_path / "pools.bin")
    assert len(dm.read_pools(tmp_path / "pools.bin").pools) == 30
    dm.write_pools(source(), tmp_path / "pools.jsonl")
    with pytest.raises(InvalidValue, match="which have no columns"):
        dm.read_pools(tmp_path / "pools.jsonl", columns={"a": "id"})
    with pytest.raises(InvalidValue, match="only a store has runs"):
        dm.read_pools([{"id": 1, "answer": "a"}], "run")
