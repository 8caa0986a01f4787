"""Pool files may hold NaN and infinite numbers, which JSON does not have; what demur writes of them may not."""

from __future__ import annotations

import pyarrow
import pyarrow.parquet
import pytest

import demur as dm
from demur.errors import PoolFileError
from demur.files.strict_json import parse
from demur.pools.files import source_of_file, write_pools

ODD = """{"id": "a", "question": "q1", "gold": {"x": 1}, "paths": [{"answer": {"x": NaN}}, {"answer": {"x": 1}}]}
{"id": "b", "question": "q2", "gold": {"x": Infinity}, "paths": [{"answer": {"x": 1e999}}, {"answer": {"x": null}}]}
{"id": "c", "question": "q3", "gold": [[NaN]], "paths": [{"answer": [-Infinity]}, {"answer": [null], "seconds": NaN}]}
"""


@pytest.fixture
def odd(tmp_path):
    (tmp_path / "odd.jsonl").write_text(ODD)
    return tmp_path / "odd.jsonl"


@pytest.mark.parametrize("name", ["copy.jsonl", "copy.parquet", "copy.csv"])
def test_a_copy_of_a_file_tells_the_same_answers_and_gold(odd, tmp_path, name):
    write_pools(source_of_file(odd), tmp_path / name)
    for source in (odd, tmp_path / name):
        read = source_of_file(source)
        pools, voted = read.pools, dm.vote_pools(read, dm.FieldChoice(relation="json"), labelled=False)
        assert [list(keys) for keys in voted.table.answers] == [
            [None, 'j:{"x":1}'],
            [None, 'j:{"x":null}'],
            [None, "j:[null]"],
        ]
        assert [len(pool.problem.gold) for pool in pools] == [1, 1, 1]
        assert not any(part is None for pool in pools[1:] for part in pool.problem.gold)
    for line in (tmp_path / name).read_text().splitlines() if name.endswith("l") else ():
        parse(line, finite=True)


def test_gold_of_such_a_number_is_unreadable_and_is_not_null(odd, tmp_path):
    write_pools(source_of_file(odd), tmp_path / "copy.jsonl")
    for source in (odd, tmp_path / "copy.jsonl"):
        with pytest.raises(PoolFileError, match="the gold of problem 'b'"):
            dm.vote_pools(source_of_file(source), dm.FieldChoice(relation="json"))


@pytest.mark.parametrize("name", ["scored.jsonl", "scored.csv", "scored.parquet"])
@pytest.mark.parametrize("odd_score", ["NaN", "Infinity", "-Infinity"])
def test_scores_that_are_not_finite_count_as_missing_in_every_kind_of_file(tmp_path, name, odd_score):
    """They are refused with both ways out, dropped with a count, or filled; and a copy says the same."""
    scores = [[odd_score if at == 3 and path else at + path for path in (0, 1)] for at in range(30)]
    if name == "scored.jsonl":
        paths = [", ".join(f'{{"answer": "a", "scores": {{"s": {score}}}}}' for score in pool) for pool in scores]
        text = "".join(f'{{"id": "q{at}", "gold": "a", "paths": [{own}]}}\n' for at, own in enumerate(paths))
        (tmp_path / name).write_text(text)
    elif name == "scored.csv":
        rows = [f"q{at},a,a,{score}\n" for at, pool in enumerate(scores) for score in pool]
        (tmp_path / name).write_text("id,answer,gold,score.s\n" + "".join(rows).replace("Infinity", "inf"))
    else:
        flat = [(f"q{at}", float(score)) for at, pool in enumerate(scores) for score in pool]
        columns = {"id": [problem for problem, _ in flat], "answer": ["a"] * 60, "gold": ["a"] * 60}
        pyarrow.parquet.write_table(pyarrow.table(columns | {"score.s": [score for _, score in flat]}), tmp_path / name)
    write_pools(source_of_file(tmp_path / name), tmp_path / "copy.jsonl")
    for source in (tmp_path / name, tmp_path / "copy.jsonl"):
        pools = source_of_file(source)
        with pytest.raises(PoolFileError, match="1 of 30 pools lack the score 's' in some path: 'q3'; null, NaN and"):
            dm.vote_pools(pools, dm.FieldChoice(score="s"))
        assert dm.vote_pools(pools, dm.FieldChoice(score="s", unscored="drop")).table.unscored == (3,)
        filled = dm.vote_pools(pools, dm.FieldChoice(score="s", unscored=0.5))
        assert list(filled.table.scores[3]) == [3, 0.5]
