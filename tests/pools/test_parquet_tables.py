"""Parquet files and folders of them, read in place: to the last bit what the same pools say as JSON lines."""

from __future__ import annotations

import json
import os
import warnings

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import demur as dm
from demur.descriptions import Description
from demur.errors import InvalidValue, PolicyFileError, PoolFileError
from demur.pools import frames, parquet_columns
from demur.pools import parquet as parquet_files
from demur.pools.checked_field import read_checks
from demur.pools.jsonl import write_pools as write_jsonl
from demur.pools.parquet import read_parquet, write_parquet
from demur.pools.provenance import Provenance
from demur.records import Path, Pool, Problem
from demur.reports.facts import report_facts
from demur.study.cells import read_cell
from demur.study.description import CellDescription

ANSWERS = st.sampled_from(
    ["6", "6.0", " +06 ", "six", "1/2", "0.5", "\\frac12", "Paris", "paris.", "B", "", "none", None]
)
SCORES = st.sampled_from([0.0, 1.0, -2.5, 3.25, 1e-9, None])
EXTRAS = st.sampled_from(
    [{}, {}, {"task": "math"}, {"task": "mc", "options": ["six", "0.5", "Paris"]}, {"aliases": ["six"]}, {"model": "m"}]
)
GOLDS = st.sampled_from([("6",), ("6", "0.5"), ("Paris",), (6,), ("B", "six")])


@st.composite
def many_pools(draw):
    """A few pools: ragged, with gaps, groups, clusters, equal questions, options and several accepted answers."""
    made = []
    asked = draw(st.sampled_from([None, "alike", "apart"]))
    for number in range(draw(st.integers(1, 9))):
        question = None if asked is None else f"What is {number % 3 if asked == 'alike' else number}?"
        cluster = draw(st.sampled_from([None, None, "c1", "c2"]))
        group = draw(st.sampled_from([None, "easy", ("easy", "long")]))
        problem = Problem(f"q{number}", question, draw(GOLDS), cluster, group, draw(EXTRAS))
        paths = []
        for _ in range(draw(st.integers(1, 4))):
            score = draw(SCORES)
            extra = draw(st.sampled_from([{}, {"src": "a"}, {"score_flags": {"rm": "floor"}}]))
            paths.append(Path(draw(ANSWERS), None, {} if score is None else {"rm": score}, extra))
        made.append(Pool(problem, tuple(paths)))
    return made


def outcome(source, fields, **more):
    """All that a calibration says, or the error that it ends in."""
    told: list[str] = []
    try:
        voted = dm.vote_pools(source, fields, say=told.append, **more)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            policy = dm.calibrate(voted, alpha=0.3)
    except (InvalidValue, PoolFileError) as error:
        return type(error).__name__, str(error).partition("; there is")[0]
    table, votes = voted.table, voted.votes
    kept = {
        "votes": [repr(vote) for vote in votes],
        "key": votes.key.tobytes(),
        "right": voted.labelled.tolist(),
        "units": voted.units.tolist(),
        "counted": voted.counted.tolist(),
        "answers": [list(pool) for pool in table.answers],
        "written": [dict(spelled) for spelled in table.written],
        "paths": [list(pool) for pool in voted.labels.of_paths(table)],
        "rates": voted.accuracies(np.arange(len(voted))),
        "flags": dict(voted.flags),
        "told": sorted(told),
        "policy": json.dumps(policy.document(), sort_keys=True),
        "warnings": voted.score_warnings(),
    }
    for name in ("ids", "questions", "digests", "clusters", "groups"):
        kept[name] = list(getattr(table, name))
    return kept


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pools=many_pools(),
    rows=st.sampled_from([1, 5, 1 << 17]),
    files=st.integers(1, 3),
    choice=st.sampled_from(
        [
            {},
            {"score": "rm", "unscored": "drop"},
            {"score": "rm", "unscored": 0.5},
            {"score": "rm"},
            {"relation": "text"},
        ]
    ),
    missing=st.sampled_from([(), ("none",)]),
)
def test_a_folder_of_parquet_says_what_json_lines_say_to_the_last_bit(
    tmp_path_factory, monkeypatch, pools, rows, files, choice, missing
):
    folder = tmp_path_factory.mktemp("pools")
    monkeypatch.setattr(parquet_files, "_ROWS", rows)
    monkeypatch.setattr(parquet_columns, "_ROWS", 3)
    write_jsonl(pools, folder / "pools.jsonl")
    (folder / "shards").mkdir()
    scores = sorted({name for pool in pools for path in pool.paths for name in path.scores})
    for number in range(files):
        part = (
            pools[number::files]
            if files == 1
            else pools[len(pools) * number // files : len(pools) * (number + 1) // files]
        )
        if part:
            write_parquet(iter(part), folder / "shards" / f"part-{number}.parquet", scores=scores)
    fields = dm.FieldChoice(missing=missing, **choice)
    lines, shards = dm.read_pools(folder / "pools.jsonl"), dm.read_pools(folder / "shards")
    assert outcome(shards, fields) == outcome(lines, fields)
    assert list(shards.pools) == [_as_table_has_it(pool) for pool in lines.pools]


def described(source, fields, stop, partial):
    """What becomes of pools that a rule ends, of a part of them, and what is said of their scores."""
    told: list[str] = []
    try:
        ended = source.stopped_by(stop, fields, partial=partial, say=told.append)
    except (InvalidValue, PoolFileError) as error:
        return type(error).__name__, str(error)
    summaries = [repr(one) for one in _compared(ended, fields)]
    return outcome(ended, fields), [*map(_as_table_has_it, ended.pools)], ended.score_names, told, summaries


def _compared(source, fields):
    try:
        return dm.compare_scores(source, fields)
    except (InvalidValue, PoolFileError) as error:
        return [type(error).__name__, str(error).partition("; there is")[0]]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pools=many_pools(),
    files=st.integers(1, 3),
    rule=st.sampled_from(
        [None, dm.stopping.agreement(2, wave=1), dm.stopping.agreement(3, wave=1), dm.stopping.beta(0.6, wave=2)]
    ),
    choice=st.sampled_from(
        [{}, {"score": "rm", "unscored": "drop"}, {"score": "rm", "unscored": 0.5}, {"relation": "text"}]
    ),
    partial=st.booleans(),
)
def test_pools_that_a_rule_ends_and_scores_side_by_side_are_those_of_json_lines(
    tmp_path_factory, pools, files, rule, choice, partial
):
    """Ragged pools with gaps and keys, in one file and in several, and parts of them: to the last bit."""
    folder = tmp_path_factory.mktemp("pools")
    write_jsonl(pools, folder / "pools.jsonl")
    (folder / "shards").mkdir()
    scores = sorted({name for pool in pools for path in pool.paths for name in path.scores})
    for number in range(files):
        if part := pools[len(pools) * number // files : len(pools) * (number + 1) // files]:
            write_parquet(iter(part), folder / "shards" / f"part-{number}.parquet", scores=scores)
    fields = dm.FieldChoice(**choice)
    lines, shards = dm.read_pools(folder / "pools.jsonl"), dm.read_pools(folder / "shards")
    assert described(shards, fields, rule, partial) == described(lines, fields, rule, partial)


def _as_table_has_it(pool):
    """Tables have answers as texts."""
    from dataclasses import replace

    from demur.answers.relations import as_written

    return replace(pool, paths=tuple(replace(path, answer=as_written(path.answer)) for path in pool.paths))


def test_the_comparison_would_notice_another_answer(tmp_path):
    """A negative control: one answer changed in the table changes the outcome."""
    pools = [Pool(Problem(f"q{at}", None, ("6",)), (Path("6"), Path("six"), Path("6"))) for at in range(5)]
    write_jsonl(pools, tmp_path / "pools.jsonl")
    pools[2] = Pool(pools[2].problem, (Path("7"), Path("six"), Path("7")))
    write_parquet(pools, tmp_path / "pools.parquet")
    lines, table = (dm.read_pools(tmp_path / name) for name in ("pools.jsonl", "pools.parquet"))
    assert outcome(table, dm.FieldChoice()) != outcome(lines, dm.FieldChoice())


@pytest.fixture
def read(monkeypatch):
    """The names of the columns that are read."""
    names: set[str] = set()
    batches, groups = parquet_columns.ParquetColumns._batches, parquet_columns.ParquetColumns._group
    monkeypatch.setattr(
        parquet_columns.ParquetColumns, "_batches", lambda self, name: (names.add(name), batches(self, name))[1]
    )
    monkeypatch.setattr(
        parquet_columns.ParquetColumns,
        "_group",
        lambda self, name, place: (names.add(name), groups(self, name, place))[1],
    )
    return names


def test_texts_and_unasked_columns_are_never_read_unless_shown(tmp_path, read):
    """Neither the texts of paths nor those of questions, nor their further fields."""
    pools = [
        Pool(
            Problem(f"q{at}", f"What is {at}?", ("6",)),
            (Path("6", "a text", {"rm": at}, {"x": 1}), Path("6", "b", {"rm": 0.1}), Path("7", "c", {"rm": 0.2})),
        )
        for at in range(30)
    ]
    write_parquet(pools, tmp_path / "pools.parquet")
    source = dm.read_pools(tmp_path / "pools.parquet")
    fields = dm.FieldChoice(score="rm")
    voted = dm.vote_pools(source, fields)
    policy = dm.calibrate(voted, alpha=0.2)
    ended = source.stopped_by(dm.stopping.agreement(2, wave=1), fields)
    assert set(dm.vote_pools(ended, fields).votes.n_paths.tolist()) == {2}
    assert len(dm.compare_scores(source, fields)) == 3
    dm.compare_stopping(source, [dm.stopping.agreement(2, wave=1)], fields, alpha=0.2, splits=2)
    report_facts(source, voted, policy, title="pools", texts=False)
    read_cell(CellDescription(dataset="d", model="m", pools="pools.parquet"), source)
    assert "text" not in read
    assert source.pools[3].paths[0].text == "a text"
    assert "text" in read


def test_fields_of_paths_are_read_without_their_texts(tmp_path, read):
    """Labels, scores, answers, weights, groups and tie-breakers that have no column of their own."""
    pools = [
        Pool(
            Problem(f"q{at}", None, ("6",), extra={"margin": at, "kind": "easy", "weight": 1.0, "checked": "6"}),
            tuple(Path("6", "a text", {}, {"lp": 0.1 * at, "own": "6", "ok": bool(at % 3)}) for _ in range(2)),
        )
        for at in range(30)
    ]
    write_parquet(pools, tmp_path / "pools.parquet")
    source = dm.read_pools(tmp_path / "pools.parquet")
    for choice, correct in (
        ({"score": ".lp"}, None),
        ({"answer_field": "own"}, None),
        ({"group_field": "kind"}, None),
        ({"weights": "weight"}, None),
        ({}, "ok"),
        ({}, dm.LabelRule(tolerance=0.1)),
        ({"relation": "text"}, dm.LabelRule(containment=True)),
    ):
        voted = dm.vote_pools(source, dm.FieldChoice(**choice), correct=correct)
        read_checks(source.pools, voted, "checked")
    dm.vote_pools(source, recipe=source.recipe(tie_break="column:margin"))
    assert {"path_extra", "problem_extra"} <= read
    assert "text" not in read
    with pytest.raises(PoolFileError, match="must be a finite number, got 'a text'"):
        dm.vote_pools(source, dm.FieldChoice(score=".text"))


def test_a_score_that_is_a_field_is_read_in_one_look_at_the_paths(tmp_path, monkeypatch):
    """Of a large table no path is kept, so that each look at all of them reads the file once more."""
    pools = [
        Pool(
            Problem(f"q{at}", None, ("6",)), tuple(Path("6", None, {}, {"lp": 0.1 * at + place}) for place in range(2))
        )
        for at in range(30)
    ]
    write_parquet(pools, tmp_path / "pools.parquet")
    write_jsonl(pools, tmp_path / "pools.jsonl")
    monkeypatch.setattr(frames, "_KEPT_ROWS", 0)
    looks: list[int] = []
    passing = frames.FramePools.in_passing
    monkeypatch.setattr(frames.FramePools, "in_passing", lambda self: (looks.append(1), passing(self))[1])
    fields = dm.FieldChoice(score=".lp")
    table = outcome(dm.read_pools(tmp_path / "pools.parquet"), fields)
    assert len(looks) == 1
    assert table == outcome(dm.read_pools(tmp_path / "pools.jsonl"), fields)


def test_large_sets_of_problems_are_digests_in_a_sidecar_that_is_checked(tmp_path, monkeypatch):
    monkeypatch.setattr("demur.voting.problems.MOST_NAMED", 50)
    monkeypatch.setattr("demur.policy.evidence_document.MOST_ROWS", 20)
    rng = np.random.default_rng(1)
    answers = rng.integers(0, 3, size=(200, 5))
    ids = [f"problem {row}" for row in range(200)]
    votes = dm.vote(answers, ids=ids, questions=[f"Why {row}?" for row in range(200)])
    policy = dm.calibrate(votes, votes.answer == 0, alpha=0.3)
    policy.save(tmp_path / "policy.json", key="k" * 32)
    loaded = dm.Policy.load(tmp_path / "policy.json", key="k" * 32)
    assert loaded.document() == policy.document()
    assert loaded.seen == policy.seen
    assert "problem 7" in loaded.seen.ids
    assert "problem 700" not in loaded.seen.ids
    assert loaded.seen.rows(["new", "problem 7", "newer"]) == [1]
    (sidecar,) = tmp_path.glob("policy.json.*.calibration")
    content = sidecar.read_bytes()
    sidecar.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(PolicyFileError, match=r"does not belong to .*its SHA-256 differs"):
        dm.Policy.load(tmp_path / "policy.json")
    sidecar.unlink()
    with pytest.raises(PolicyFileError) as caught:
        dm.Policy.load(tmp_path / "policy.json")
    assert "\n" not in str(caught.value)
    assert sidecar.name in str(caught.value)
    assert "copy it there with the policy" in str(caught.value)
    text = json.loads((tmp_path / "policy.json").read_text())
    text["calibration"]["sha256"] = "0" * 64
    text["digest"] = ""
    (tmp_path / "policy.json").write_text(json.dumps(text))
    with pytest.raises(PolicyFileError, match="was not signed with this key"):
        dm.Policy.load(tmp_path / "policy.json", key="k" * 32)


@pytest.fixture
def shards(tmp_path):
    """Two files of three pools each."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for number in range(2):
        pools = [
            Pool(
                Problem(f"q{number}{at}", f"Q {number}{at}?", ("6",)),
                (Path("6", None, {"rm": 0.5}), Path("7", None, {"rm": 0.1})),
            )
            for at in range(3)
        ]
        write_parquet(pools, folder / f"part-{number}.parquet")
    return folder


def rewritten(path, change):
    """A file whose table was changed by other hands."""
    pyarrow.parquet.write_table(change(pyarrow.parquet.read_table(path)), path)


def refused(place):
    """The one line that reading and voting ends in."""
    with pytest.raises((PoolFileError, InvalidValue)) as caught:
        dm.vote_pools(dm.read_pools(place), dm.FieldChoice(score="rm"))
    told = str(caught.value)
    assert "\n" not in told
    return told


def test_a_truncated_a_half_written_and_an_empty_file_are_named(shards):
    path = shards / "part-1.parquet"
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:-3], b"PAR1", b""):
        path.write_bytes(content)
        told = refused(shards)
        assert f"{path} cannot be read as Parquet" in told
        assert "move it out of the folder" in told
    damaged = bytearray(whole)
    damaged[8:400] = os.urandom(392)  # the footer is whole, and what it points at is not
    path.write_bytes(damaged)
    assert str(path) in refused(shards)


def test_unfinished_files_are_not_looked_at(shards):
    (shards / ".part-2.parquet.x.unfinished").write_bytes(b"PAR1 half")
    (shards / "_SUCCESS").write_bytes(b"")
    assert len(dm.read_pools(shards).pools) == 6


def test_files_of_one_folder_must_have_the_same_columns(shards):
    path = shards / "part-1.parquet"
    rewritten(path, lambda table: table.drop_columns(["score.rm"]))
    told = refused(shards)
    assert f"{path} has no column 'score.rm', and {shards / 'part-0.parquet'} has one" in told
    rewritten(path, lambda table: table.append_column("score.rm", pyarrow.array(["high"] * len(table))))
    assert "the column 'score.rm' holds string in" in refused(shards)


def test_files_of_two_runs_are_kept_apart_and_keys_of_two_versions_are_named(shards):
    pools = list(dm.read_pools(shards / "part-1.parquet").pools)
    write_parquet(pools, shards / "part-1.parquet", Provenance(Description(sampling={"model": "other"})))
    assert "tells of other pools than" in refused(shards)
    for number, version in ((0, 1), (1, 2)):
        some = list(dm.read_pools(shards / f"part-{number}.parquet").pools)
        keys = {"field": "answer", "relation": f"by-task(auto@{version})"}
        write_parquet(some, shards / f"part-{number}.parquet", Provenance(keys=keys))
    told = refused(shards)
    assert f"{shards} holds keys of the relation auto@1 in part-0.parquet, of auto@2 in part-1.parquet" in told
    assert "rekey=True" in told


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("id", [[1]] * 6, "ids must be texts or whole numbers"),
        ("id", [True] * 6, "the column 'id' mixes types"),
        ("answer", [{"a": 1}] * 6, "an answer must be a string or a number"),
        ("score.rm", ["high"] * 6, "must be a finite number, got 'high'"),
        ("path", ["first"] * 6, "'path' must be a whole number, got 'first'"),
        ("question", [1] * 6, "'question' must be a text, got 1"),
        ("question_digest", ["no digest"] * 6, "digests of sixteen hexadecimal digits"),
        ("question_digest", [7] * 6, "'question_digest' must hold texts"),
        ("problem_extra", ["[1]"] * 6, "'problem_extra' must be a JSON object"),
    ],
)
def test_columns_of_the_wrong_type_are_named(shards, name, values, told):
    path = shards / "part-0.parquet"

    def change(table):
        table = table.drop_columns(["question_digest"]) if name == "question" else table
        at = table.column_names.index(name)
        return table.set_column(at, name, pyarrow.array(values))

    rewritten(path, change)
    line = refused(path)
    assert told in line
    assert str(path) in line or "problem 'q00'" in line


def test_an_id_in_two_files_and_a_pool_split_over_files_are_refused_with_both_places(shards):
    first, second = (shards / f"part-{number}.parquet" for number in range(2))
    rewritten(second, lambda table: table.set_column(0, "id", pyarrow.array(["q00", "q00", "b", "b", "c", "c"])))
    told = refused(shards)
    assert f"the id 'q00' stands in two files: {first}, row 0, and {second}, row 1" in told
    assert "write each pool whole into one file" in told
    rewritten(second, lambda table: table.set_column(0, "id", pyarrow.array(["q02", "a", "a", "a", "c", "c"])))
    assert f"the id 'q02' stands in two files: {first}, row 4, and {second}, row 0" in refused(shards)


def test_a_pool_split_over_row_groups_is_one_pool(shards):
    path = shards / "part-0.parquet"
    before = list(dm.read_pools(path).pools)
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(path), path, row_group_size=1)
    assert pyarrow.parquet.ParquetFile(path).metadata.num_row_groups == 6
    assert list(dm.read_pools(path).pools) == before


def test_rows_in_any_order_are_put_in_that_of_their_numbers(shards):
    path = shards / "part-0.parquet"
    before = dm.PoolSource(list(dm.read_pools(path).pools))
    rewritten(path, lambda table: table.take(pyarrow.array([5, 3, 1, 0, 2, 4])))
    after = dm.read_pools(path)
    by_id = {pool.problem.id: pool for pool in after.pools}
    assert [by_id[pool.problem.id] for pool in before.pools] == list(before.pools)
    votes = dm.vote_pools(after, dm.FieldChoice(score="rm")).votes
    assert sorted(map(repr, votes)) == sorted(map(repr, dm.vote_pools(before, dm.FieldChoice(score="rm")).votes))


def test_what_is_no_table_is_said(tmp_path, shards):
    assert "there is no file" in refused(tmp_path / "none.parquet")
    (tmp_path / "empty").mkdir()
    assert "holds no file that ends in .parquet or .pq" in refused(tmp_path / "empty")
    assert "give one of its folders, such as 'empty'" in refused(tmp_path)
    (shards / "more.jsonl").write_text("{}")
    assert "holds pools of two kinds" in refused(shards)


def test_a_full_disk_is_said_and_leaves_what_was_there(tmp_path):
    pools = [Pool(Problem("q"), (Path("6"),))]
    full = tmp_path / "full.parquet"
    full.symlink_to("/dev/full")
    with pytest.raises(PoolFileError, match=r"cannot write .*full.parquet: .*[Nn]o space left"):
        write_parquet(pools, full)
    target = tmp_path / "pools.parquet"
    write_parquet(pools, target)
    before = target.read_bytes()

    def breaking():
        yield pools[0]
        raise OSError(28, "No space left on device")

    with pytest.raises(PoolFileError, match=r"cannot write .*pools.parquet: No space left on device"):
        write_parquet(breaking(), target, scores=[])
    assert target.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full.parquet", "pools.parquet"]


def test_pools_that_come_one_by_one_must_have_the_scores_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "_ROWS", 1)
    pools = [Pool(Problem("a"), (Path("6", None, {"rm": 1.0}),)), Pool(Problem("b"), (Path("6", None, {"late": 1.0}),))]
    with pytest.raises(PoolFileError, match="a later pool has the score 'late'"):
        write_parquet(iter(pools), tmp_path / "pools.parquet")
    assert not list(tmp_path.iterdir())
    write_parquet(iter(pools), tmp_path / "pools.parquet", scores=["late", "rm"])
    assert list(read_parquet(tmp_path / "pools.parquet").pools) == pools


def test_a_file_that_changes_while_it_is_read_is_said(shards):
    path = shards / "part-0.parquet"
    source = dm.read_pools(path)
    rewritten(path, lambda table: table.slice(2))
    with pytest.raises(PoolFileError, match=r"part-0.parquet was changed while it was read"):
        dm.vote_pools(source, dm.FieldChoice(score="rm"))


def test_keys_are_used_as_they_are_and_those_of_another_version_are_refused(shards):
    """The keys of the file say that 6 and 7 are one answer, which no relation would: so they are what is used."""
    path, keys = shards / "part-0.parquet", {"field": "answer", "relation": "by-task(auto@2)"}
    pools = [
        Pool(pool.problem, tuple(Path(one.answer, None, one.scores, {"key": "n:6"}) for one in pool.paths))
        for pool in dm.read_pools(path).pools
    ]
    write_parquet(pools, path, Provenance(keys=keys))
    source = dm.read_pools(path)
    assert pyarrow.parquet.read_table(path).column("key").to_pylist() == ["n:6"] * 6
    assert dm.vote_pools(source, labelled=False).votes.unanimous.all()
    assert not dm.vote_pools(source, dm.FieldChoice(relation="plain"), labelled=False).votes.unanimous.any()
    assert not dm.vote_pools(source.of_task("math"), labelled=False).votes.unanimous.any()
    named = dm.vote_pools(source, dm.FieldChoice(missing=("7",)), labelled=False)
    assert list(named.table.answers) == [["n:6", None]] * 3
    write_parquet(pools, path, Provenance(keys={**keys, "relation": "by-task(auto@0)"}))
    with pytest.raises(PoolFileError, match=r"holds keys of the relation auto@0, and this demur compares by auto@2"):
        dm.vote_pools(dm.read_pools(path), labelled=False)
