"""A folder of shards: what is there decides what is done, and what does not belong there is refused by name."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

import demur as dm
from demur.descriptions import Description
from demur.errors import InvalidValue, PoolFileError
from demur.pipeline.shard_contents import refuse_shared_ids, scorers_of, with_scores_of
from demur.pipeline.shards import Entry, Manifest, held, note_answers, opened, shard_files
from demur.pools.parquet import write_parquet
from demur.pools.provenance import Provenance
from demur.records import Path as ReasoningPath

MADE = Manifest(Description({"model": "m"}), 2, 0)


def problems(n, start=0):
    return [dm.Problem(f"q{k}", f"What is {k}?") for k in range(start, start + n)]


def pool(problem):
    return dm.Pool(problem, (ReasoningPath("1"), ReasoningPath("2")))


def finish(folder, block, known=None):
    write_parquet([pool(problem) for problem in block.problems], folder.shard(block), known)


def lacking(path, made, given, size=4):
    with opened(path, made, given, size) as folder:
        return [block.number for block in folder.lacking()]


def test_a_block_is_finished_when_its_shard_is_there_and_nothing_of_it_is_unfinished(tmp_path):
    with opened(tmp_path / "s", MADE, problems(10), 4) as folder:
        assert [len(block.problems) for block in folder.blocks] == [4, 4, 2]
        finish(folder, folder.blocks[0])
        finish(folder, folder.blocks[1])
        folder.unfinished_run(folder.blocks[1]).touch()
        assert [block.number for block in folder.lacking()] == [1, 2]
    assert lacking(tmp_path / "s", MADE, problems(10)) == [1, 2]


def test_more_problems_come_behind_and_fewer_leave_the_rest_alone(tmp_path):
    with opened(tmp_path / "s", MADE, problems(6), 4) as folder:
        for block in folder.blocks:
            finish(folder, block)
    assert lacking(tmp_path / "s", MADE, problems(11)) == [2, 3]
    assert lacking(tmp_path / "s", MADE, problems(11), size=1) == [2, 3]  # blocks stay as they are
    assert lacking(tmp_path / "s", MADE, problems(4)) == []


def test_part_of_a_block_that_is_not_there_is_not_taken_for_sampled(tmp_path):
    """It was: the problems of such a part were said to have their paths already."""
    with opened(tmp_path / "s", MADE, problems(10), 4) as folder:
        finish(folder, folder.blocks[0])
    assert lacking(tmp_path / "s", MADE, problems(3)) == []
    with pytest.raises(PoolFileError, match=r"block 1 of .*s is unfinished, and only 2 of .*; ask for the first 8 "):
        lacking(tmp_path / "s", MADE, problems(6))
    assert lacking(tmp_path / "s", MADE, problems(8)) == [1]


@pytest.mark.parametrize(
    ("made", "given", "told"),
    [
        (replace(MADE, n_paths=3), problems(4), "n_paths is 2 in these shards, 3 now"),
        (replace(MADE, seed=1), problems(4), "seed is 0 in these shards, 1 now"),
        (replace(MADE, description=Description({"model": "k"})), problems(4), "sampling.model is 'm'"),
        (MADE, problems(4, start=1), "block 0 of .* holds other problems"),
        (MADE, [*problems(3), dm.Problem("q3", "Another?")], "block 0 of .* holds other problems"),
        (MADE, [*problems(3), dm.Problem("q3", "What is 3?", extra={"task": "mc"})], "block 0 of .* holds other"),
    ],
)
def test_a_folder_that_was_made_another_way_is_refused(tmp_path, made, given, told):
    lacking(tmp_path / "s", MADE, problems(4))
    with pytest.raises(PoolFileError, match=told):
        lacking(tmp_path / "s", made, given)


def test_ids_that_occur_twice_and_blocks_of_nothing_are_refused(tmp_path):
    with pytest.raises(InvalidValue, match="'q0' occurs twice"):
        lacking(tmp_path / "s", MADE, [*problems(2), *problems(1)])
    with pytest.raises(InvalidValue, match="at least one problem, got -1"):
        lacking(tmp_path / "t", MADE, problems(2), size=-1)


@pytest.mark.parametrize("kept", [0, 3, 100, -1, -9])
def test_a_shard_that_is_cut_off_is_named(tmp_path, kept):
    with opened(tmp_path / "s", MADE, problems(4), 4) as folder:
        finish(folder, folder.blocks[0])
        shard = folder.shard(folder.blocks[0])
    assert lacking(tmp_path / "s", MADE, problems(4)) == []
    shard.write_bytes(shard.read_bytes()[:kept])
    with pytest.raises(PoolFileError, match=r"block-000000.parquet is cut off or no Parquet file; remove it"):
        lacking(tmp_path / "s", MADE, problems(4))


def test_what_a_killed_worker_left_half_written_is_cleared_away(tmp_path):
    lacking(tmp_path / "s", MADE, problems(4))
    left = tmp_path / "s" / ".block-000000.parquet.x1.unfinished"
    left.write_bytes(b"PAR1 half")
    assert lacking(tmp_path / "s", MADE, problems(4)) == [0]
    assert not left.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "demur-shards", "version": 9}', '{"format": "x"}'])
def test_a_manifest_that_is_damaged_foreign_or_newer_is_refused(tmp_path, content):
    lacking(tmp_path / "s", MADE, problems(4))
    (tmp_path / "s" / "_shards.json").write_text(content)
    with pytest.raises(PoolFileError, match=r"_shards\.json"):
        lacking(tmp_path / "s", MADE, problems(4))


def test_a_manifest_reads_back(tmp_path):
    made = replace(MADE, blocks=(Entry(4, "sha256:a", "sha256:c"), Entry(2, "sha256:b", "sha256:d")))
    assert Manifest.of(json.loads(json.dumps(made.document())), tmp_path) == made


def test_foreign_tables_are_not_taken_for_shards(tmp_path):
    write_parquet([pool(problems(1)[0])], tmp_path / "mine.parquet")
    with pytest.raises(PoolFileError, match="no shards of demur's; choose another folder"):
        lacking(tmp_path, MADE, problems(4))


def test_one_command_at_a_time_works_on_a_folder(tmp_path):
    code = f"from pathlib import Path\nfrom demur.pipeline.shards import held\nwith held(Path({str(tmp_path)!r})): pass"
    with held(tmp_path):
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"another command works on {tmp_path}; wait until it has ended" in ran.stderr
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_shards_made_in_several_ways_are_refused(tmp_path):
    known = [Provenance(Description({"model": name}), {"judge": {"model": name}}) for name in ("m", "k")]
    for number, one in enumerate(known):
        write_parquet([pool(problems(1, start=number)[0])], tmp_path / f"{number}.parquet", one)
    with pytest.raises(PoolFileError, match="made in several ways: sampling"):
        scorers_of(shard_files(tmp_path))
    write_parquet([pool(problems(1)[0])], tmp_path / "1.parquet", replace(known[1], description=known[0].description))
    with pytest.raises(PoolFileError, match=r"the score 'judge' of .*1.parquet was made by another scorer"):
        scorers_of(shard_files(tmp_path))


def test_scores_that_paths_were_given_stay_when_their_block_is_written_again(tmp_path):
    """A block with a problem that failed is scored as far as it goes; the problem comes later."""
    shard, flag = tmp_path / "block-000000.parquet", {"score_flags": {"judge": "floor"}}
    first, second = (dm.Pool(one, (ReasoningPath("1", "one"), ReasoningPath("2", "two"))) for one in problems(2))
    assert with_scores_of(shard, [first], {}) == ([first], {})
    paths = (ReasoningPath("1", "one", {"judge": 0.5}, flag), ReasoningPath("2", "other", {"judge": 0.25}))
    write_parquet([replace(first, paths=paths)], shard, Provenance(Description(), {"judge": {"model": "j"}}))
    own = replace(first.paths[0], scores={"perplexity": -1.0})
    pools, scorers = with_scores_of(shard, [replace(first, paths=(own, first.paths[1])), second], {"perplexity": {}})
    assert scorers == {"judge": {"model": "j"}, "perplexity": {}}
    assert pools[0].paths[0].scores == {"judge": 0.5, "perplexity": -1.0}
    assert pools[0].paths[0].extra == flag
    assert pools[0].paths[1] == first.paths[1]  # another path than the one that was scored
    assert pools[1] == second


def test_no_folder_and_an_empty_one_are_told_apart(tmp_path):
    with pytest.raises(InvalidValue, match="is no folder of shards"):
        shard_files(tmp_path / "none")
    with pytest.raises(PoolFileError, match="holds no shard yet"):
        shard_files(tmp_path)


def test_shards_are_told_by_every_ending_of_parquet(tmp_path):
    for number, name in enumerate(("a.parquet", "b.pq", "c.PARQUET", "_d.pq", ".e.parquet", "f.txt")):
        write_parquet([pool(problems(1, start=number)[0])], tmp_path / name)
    (tmp_path / "g.parquet").mkdir()
    assert [path.name for path in shard_files(tmp_path)] == ["a.parquet", "b.pq", "c.PARQUET"]


def test_ids_are_not_looked_for_in_what_is_damaged_or_foreign(tmp_path):
    """A file that begins and ends as Parquet does is not yet one, and one may be of something else."""
    from pyarrow import parquet, table

    write_parquet([pool(problems(1)[0])], tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1" + b"\0" * 64 + b"PAR1")
    with pytest.raises(PoolFileError, match=r"b\.parquet cannot be read as Parquet"):
        refuse_shared_ids(shard_files(tmp_path))
    parquet.write_table(table({"x": [1]}), tmp_path / "b.parquet")
    with pytest.raises(PoolFileError, match=r"b\.parquet has no column 'id'"):
        refuse_shared_ids(shard_files(tmp_path))
    for ids, told in (
        ([["q1"]], r"'id' of .*b\.parquet holds list"),
        ([1], r"a\.parquet and of b\.parquet are of several"),
    ):
        parquet.write_table(table({"id": ids}), tmp_path / "b.parquet")
        with pytest.raises(PoolFileError, match=told):
            refuse_shared_ids(shard_files(tmp_path))
    write_parquet([pool(problems(1)[0])], tmp_path / "b.parquet")
    with pytest.raises(PoolFileError, match=r"the id 'q0' stands in .*a\.parquet and in b\.parquet"):
        refuse_shared_ids(shard_files(tmp_path))


def test_shards_whose_sampling_is_not_finished_are_not_taken_for_all(tmp_path):
    with opened(tmp_path / "s", MADE, problems(10), 4) as folder:
        finish(folder, folder.blocks[0])
        finish(folder, folder.blocks[2])
        with pytest.raises(PoolFileError, match=r"4 of 10 problems of the shards in .* lack paths.*`demur sample`"):
            dm.read_pools(folder.folder)
        said = []
        part = dm.read_pools(folder.folder, partial=True, say=said.append)
        assert (len(part.pools), part.left_out) == (6, 4)
        assert "4 of 10 problems" in said[0]
        finish(folder, folder.blocks[1])
        assert (len(dm.read_pools(folder.folder).pools), dm.read_pools(folder.folder).left_out) == (10, 0)
        folder.unfinished_run(folder.blocks[1]).touch()
        with pytest.raises(PoolFileError, match=r"1 of 3 shards in .* are unfinished"):
            dm.read_pools(folder.folder)


def test_a_folder_that_no_sampling_made_is_read_as_it_is(tmp_path):
    write_parquet([pool(one) for one in problems(3)], tmp_path / "a.parquet")
    assert len(dm.read_pools(tmp_path).pools) == 3


def test_a_folder_of_answers_says_how_much_there_is_to_be(tmp_path):
    """So one that a command began and did not end is not taken for all, nor one made of a part."""
    note_answers(tmp_path, {"extract": None}, 5)
    write_parquet([pool(one) for one in problems(3)], tmp_path / "a.parquet")
    with pytest.raises(PoolFileError, match=r"2 of 5 problems .* lack paths.*`demur sample` and `demur answers`"):
        dm.read_pools(tmp_path)
    assert dm.read_pools(tmp_path, partial=True).left_out == 2
    note_answers(tmp_path, {"extract": None}, 3, unfinished=1)
    with pytest.raises(PoolFileError, match=r"1 of the shards that .* was made of were unfinished"):
        dm.read_pools(tmp_path)
    note_answers(tmp_path, {"extract": None}, 3)
    assert dm.read_pools(tmp_path).left_out == 0
    with pytest.raises(PoolFileError, match="made another way"):
        note_answers(tmp_path, {"extract": "x"}, 3)


def known_of(number):
    """A problem of which something else is known than before."""
    return dm.Problem(f"q{number}", f"What is {number}?", ("5",), group="late", extra={"source": "checked"})


def test_gold_that_changed_comes_into_shards_that_are_finished_and_nothing_else_does(tmp_path):
    """As into a run: what is known of a problem may change, what is asked may not."""
    known = Provenance(Description({"model": "m"}), {"judge": {"model": "j"}})
    with opened(tmp_path / "s", MADE, problems(6), 4) as folder:
        for block in folder.blocks:
            scored = [ReasoningPath("1", "one", {"judge": 0.5}), ReasoningPath("2", "two", {"judge": 0.25})]
            write_parquet([dm.Pool(one, tuple(scored)) for one in block.problems], folder.shard(block), known)
    before = {path.name: path.read_bytes() for path in shard_files(tmp_path / "s")}
    assert lacking(tmp_path / "s", MADE, problems(6)) == []
    assert {path.name: path.read_bytes() for path in shard_files(tmp_path / "s")} == before
    assert lacking(tmp_path / "s", MADE, [*problems(4), known_of(4), *problems(1, start=5)]) == []
    after = {path.name: path.read_bytes() for path in shard_files(tmp_path / "s")}
    assert [name for name in after if after[name] != before[name]] == ["block-000001.parquet"]
    source = dm.read_pools(tmp_path / "s", texts=True)
    assert [pool.problem for pool in source.pools][3:] == [*problems(1, start=3), known_of(4), *problems(1, start=5)]
    assert source.scorers == known.scorers
    assert [(path.text, path.scores["judge"]) for path in source.pools[4].paths] == [("one", 0.5), ("two", 0.25)]
    changed = [*map(known_of, range(4)), known_of(4), *problems(1, start=5)]
    assert lacking(tmp_path / "s", MADE, changed[:4]) == []  # fewer are asked for, and the rest stays known
    assert lacking(tmp_path / "s", MADE, changed) == []
    assert [pool.problem for pool in dm.read_pools(tmp_path / "s").pools] == changed


def test_gold_that_changed_is_brought_in_by_the_next_command_when_one_is_ended(tmp_path, monkeypatch):
    from demur.pipeline import shards

    with opened(tmp_path / "s", MADE, problems(6), 4) as folder:
        for block in folder.blocks:
            finish(folder, block)

    def killed(*_):
        raise KeyboardInterrupt

    changed = [known_of(number) for number in range(6)]
    monkeypatch.setattr(shards, "_write", killed)
    with pytest.raises(KeyboardInterrupt):
        lacking(tmp_path / "s", MADE, changed)
    monkeypatch.undo()
    (tmp_path / "s" / "block-000001.parquet").unlink()
    with opened(tmp_path / "s", MADE, problems(6), 4) as folder:
        finish(folder, folder.blocks[1])
    assert lacking(tmp_path / "s", MADE, changed) == []
    assert [pool.problem for pool in dm.read_pools(tmp_path / "s").pools] == changed
