"""Files of pools by kind, and what they say of how they came to be."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

import demur as dm
from demur.descriptions import Description
from demur.errors import PoolFileError
from demur.pools.files import source_of_file, write_pools
from demur.pools.source import PoolSource
from demur.records import Path, Pool, Problem

SCORER = {"scorer": "judge", "model": "small", "normaliser": "pool_z"}
SOURCE = PoolSource(
    [
        Pool(
            Problem("q1", "What?", ("4", "four"), "c", "g", {"task": "math", "options": ["A", "B"]}),
            (
                Path("4", "It is 4.", {"judge": 0.25}, {"n_tokens": 3, "score_flags": {"judge": "floor"}}),
                Path(None, "I give up", {"judge": -1.0}),
            ),
        ),
        Pool(Problem("q2", gold=("1",)), (Path('{"a": 1}', scores={"judge": 2.0}), Path(has_answer_field=False))),
    ],
    Description({"model": "m", "prompt": {"name": "zero-shot"}}, {"task": "math", "labels": ["yes", "no"]}),
    {"judge": SCORER},
    {"judge": {"floor": 1}},
)
HEADER = {"format": "demur-pools", "version": 1, "pipeline": {}, "scores": {"judge": SCORER}}
CSV = "id,question,gold,answer,score.judge,ok,logprob\nq,Why?,4,4,0.5,true,-1.5\nq,Why?,4,,-2,FALSE,\n"


@pytest.mark.parametrize("name", ["pools.jsonl", "pools.jsonl.gz", "pools.parquet"])
def test_pools_and_their_provenance_come_back(tmp_path, name):
    write_pools(SOURCE, tmp_path / name)
    found = source_of_file(tmp_path / name)
    assert replace(found, pools=list(found.pools)) == SOURCE


def test_structured_answers_are_json_in_parquet(tmp_path):
    source = PoolSource([Pool(Problem("q"), (Path({"b": [1, None], "a": "é"}),))])
    write_pools(source, tmp_path / "a.parquet")
    assert source_of_file(tmp_path / "a.parquet").pools[0].paths[0].answer == '{"b": [1, null], "a": "é"}'


def test_pools_of_which_nothing_is_known_have_no_header(tmp_path):
    write_pools(PoolSource(SOURCE.pools), tmp_path / "plain.jsonl")
    assert len((tmp_path / "plain.jsonl").read_text().splitlines()) == len(SOURCE.pools)


def test_files_of_one_run_may_be_put_one_behind_the_other(tmp_path):
    halves = []
    for number, pool in enumerate(SOURCE.pools):
        write_pools(PoolSource([pool], SOURCE.description, SOURCE.scorers), tmp_path / f"{number}.jsonl")
        halves.append((tmp_path / f"{number}.jsonl").read_text())
    (tmp_path / "both.jsonl").write_text("".join(halves))
    assert source_of_file(tmp_path / "both.jsonl") == SOURCE
    (tmp_path / "both.jsonl").write_text(halves[0] + json.dumps(HEADER) + "\n")
    with pytest.raises(PoolFileError, match="line 3: these are pools of another run"):
        source_of_file(tmp_path / "both.jsonl")


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"version": 2}, "version 1 of pool files, not 2"),
        ({"version": None}, "not None"),
        ({"more": 1}, "has no field 'more'"),
        ({"pipeline": []}, "must be an object of stages"),
        ({"pipeline": {"sampling": 1}}, "must be an object"),
        ({"pipeline": {"sleeping": {}}}, "no stage 'sleeping'"),
        ({"pipeline": {"answers": {"labels": "yes"}}}, "answers.labels must be a list of texts"),
        ({"pipeline": {"answers": {"markers": [1]}}}, "answers.markers must be a list of texts"),
        ({"scores": {"judge": "mine"}}, "'judge' must be an object"),
        ({"scores": [1]}, "`scores` must be an object"),
        ({"scores": {"judge": {"normaliser": 3}}}, "must be a text, got 3"),
    ],
)
def test_a_header_that_is_none_is_refused_by_name(tmp_path, odd, told):
    lines = [{**HEADER, **odd}, {"id": "q", "paths": [{"answer": "1"}]}]
    (tmp_path / "odd.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(PoolFileError, match=r"odd\.jsonl") as raised:
        source_of_file(tmp_path / "odd.jsonl")
    assert told in str(raised.value)


def test_a_problem_may_have_a_field_called_format(tmp_path):
    record = {"id": "q", "format": "demur-pools", "paths": [{"answer": "1"}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    assert source_of_file(tmp_path / "a.jsonl").pools[0].problem.extra == {"format": "demur-pools"}


def test_what_a_file_holds_and_its_name_must_agree(tmp_path):
    write_pools(SOURCE, tmp_path / "a.jsonl")
    write_pools(SOURCE, tmp_path / "a.parquet")
    contents = {"jsonl": (tmp_path / "a.jsonl").read_bytes(), "parquet": (tmp_path / "a.parquet").read_bytes()}
    contents["csv"] = CSV.encode()
    for held, content in contents.items():
        for named in ("jsonl", "csv", "parquet"):
            if named != held:
                (tmp_path / f"wrong.{named}").write_bytes(content)
                with pytest.raises(PoolFileError, match=rf"wrong\.{named} is named like .* ends in \.{held}"):
                    source_of_file(tmp_path / f"wrong.{named}")
        (tmp_path / "unnamed").write_bytes(content)
        assert source_of_file(tmp_path / "unnamed").pools


def test_cells_of_csv_are_read_as_what_they_are(tmp_path):
    (tmp_path / "a.csv").write_text("\ufeff" + CSV, encoding="utf-8")
    (pool,) = source_of_file(tmp_path / "a.csv").pools
    assert pool.problem == Problem("q", "Why?", ("4",))
    assert pool.paths == (
        Path("4", None, {"judge": 0.5}, {"ok": True, "logprob": -1.5}),
        Path(None, None, {"judge": -2.0}, {"ok": False, "logprob": None}),
    )
    with gzip.open(tmp_path / "a.csv.gz", "wt") as packed:
        packed.write(CSV)
    assert list(source_of_file(tmp_path / "a.csv.gz").pools) == [pool]


def test_texts_in_csv_may_have_lines_quotes_and_any_length(tmp_path):
    text = 'He said "4",\nand ' + "so on, " * 40_000
    quoted = text.replace('"', '""')
    (tmp_path / "a.csv").write_text(f'id,answer,text,options\nq,"1,000","{quoted}","[""A"", ""B""]"\n')
    (pool,) = source_of_file(tmp_path / "a.csv").pools
    assert (pool.paths[0].text, pool.paths[0].answer) == (text, "1,000")
    assert pool.problem.extra == {"options": ["A", "B"]}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "holds no rows"),
        ("id,answer\n", "holds no rows"),
        ("id,reply\nq,1\n", "no column 'answer'; expected one row per path, and it has 'id', 'reply'"),
        ("id,answer\nq,1,2\n", "line 2: 3 cells under a header of 2"),
        ("id,answer\nq\n", "line 2: 1 cells"),
        ('id,answer\nq,"1\n', "line 2"),
        ('id,answer\nq,"1"2\n', "line 2"),
        ("id,answer,id\nq,1,r\n", "two columns 'id'"),
        ("id,answer,score.s\nq,1,high\n", "row 0: 'score.s' must be a finite number, got 'high'"),
        ("id,answer,score.s\nq,1,1e999\n", "got '1e999'"),
        ("id,answer,score.s\nq,1,1_0\n", "got '1_0'"),
        ("id,answer\n,1\n", "needs the id"),
    ],
)
def test_csv_that_is_no_table_of_paths_is_refused(tmp_path, content, told):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(PoolFileError) as raised:
        source_of_file(tmp_path / "a.csv")
    assert told in str(raised.value)
    assert "a.csv" in str(raised.value)


@pytest.mark.parametrize("metadata", [b"{", b"\xff", b"[]", b'{"format": "demur-pools", "version": 9}'])
def test_metadata_that_says_nothing_is_refused(tmp_path, metadata):
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({"id": ["q"], "answer": ["1"]}).replace_schema_metadata({b"demur": metadata})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(PoolFileError, match=r"the metadata of .*a\.parquet"):
        source_of_file(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["pools.jsonl", "pools.jsonl.gz"])
@pytest.mark.parametrize(
    "first",
    [
        {"doc_id": 3},
        {"prompt": "Think. " * 2000},
        {"response": "None yet."},
        {"version": 1, "status": "done", "note": "x" * 9000},
    ],
    ids=["lm-eval", "uqlm, long", "uqlm", "inspect"],
)
def test_pools_are_pools_though_their_first_field_is_named_like_a_neighbours(tmp_path, name, first):
    """However far behind it stands, `paths` is what makes a line a pool."""
    lines = [{**first, "id": f"q{k}", "paths": [{"answer": "4"}, {"answer": "5"}]} for k in range(2)]
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    pools = source_of_file(tmp_path / name).pools
    assert [(pool.problem.id, [path.answer for path in pool.paths]) for pool in pools] == [
        ("q0", ["4", "5"]),
        ("q1", ["4", "5"]),
    ]


def test_a_neighbours_file_that_speaks_of_paths_is_still_the_neighbours(tmp_path):
    rows = [{"prompt": 'Which "paths" are there?', "response": "two", "sampled_responses": ["three"]}] * 2
    (tmp_path / "r.jsonl").write_text("".join(json.dumps({**row, "id": k}) + "\n" for k, row in enumerate(rows)))
    (tmp_path / "r.json").write_text(json.dumps([{**row, "answer": {"paths": 2}} for row in rows]))
    for name in ("r.jsonl", "r.json"):
        assert source_of_file(tmp_path / name).description.sampling["backend"] == "uqlm"


@pytest.mark.parametrize("lacking", [(33, 0), (0, 33), (20, 13)])
def test_parts_of_a_sampling_lack_together_what_each_of_them_lacks(tmp_path, lacking):
    """Files one behind the other, and a folder of tables: an unfinished one among them is no other run."""
    parts = [dm.simulate_pools(20, seed=seed).pools() for seed in (1, 2)]
    (tmp_path / "folder").mkdir()
    lines = ""
    for name, pools, left_out in zip("ab", parts, lacking, strict=True):
        source = PoolSource(pools, Description(sampling={"model": "m"}), left_out=left_out)
        write_pools(source, tmp_path / "folder" / f"{name}.parquet")
        write_pools(source, tmp_path / f"{name}.jsonl")
        lines += (tmp_path / f"{name}.jsonl").read_text()
    (tmp_path / "both.jsonl").write_text(lines)
    for place in ("folder", "both.jsonl"):
        with pytest.raises(PoolFileError, match="33 problems lacked paths"):
            dm.read_pools(tmp_path / place)
        assert len(dm.read_pools(tmp_path / place, partial=True).pools) == 40
