"""Pool files: what is read comes back, and what cannot be read is named by file and line."""

from __future__ import annotations

import gzip
import json
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import PoolFileError
from demur.pools.jsonl import read_pools, write_pools

GOOD = {"id": "q1", "gold": "4", "paths": [{"answer": "4"}]}


def write(path, *records):
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return path


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def unknown_fields(*known):
    names = st.text(min_size=1, max_size=8).filter(lambda name: name not in known)
    return st.dictionaries(names, json_values, max_size=3)


@given(
    unknown_fields("id", "question", "gold", "cluster", "group", "paths"), unknown_fields("answer", "text", "scores")
)
def test_unknown_fields_are_kept(tmp_path_factory, problem_fields, path_fields):
    folder = tmp_path_factory.mktemp("pools")
    record = {
        **problem_fields, "id": "q1", "question": "2 + 2?", "gold": ["4", "four"], "cluster": "c", "group": "g",
        "paths": [{**path_fields, "answer": "4", "text": "…", "scores": {"judge": 0.5}}],
    }  # fmt: skip
    first = read_pools(write(folder / "a.jsonl", record))
    for name in ("b.jsonl", "b.jsonl.gz"):
        write_pools(first, folder / name)
        assert read_pools(folder / name) == first
    assert json.loads((folder / "b.jsonl").read_text()) == record
    assert first[0].problem.extra == problem_fields
    assert first[0].paths[0].extra == path_fields


def test_blank_lines_and_a_byte_order_mark_are_no_problem(tmp_path):
    path = tmp_path / "pools.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\n\n  \n")
    assert len(read_pools(path)) == 1


def test_ids_may_be_whole_numbers_and_gold_a_number_or_absent(tmp_path):
    pools = read_pools(
        write(tmp_path / "p.jsonl", {"id": 7, "gold": 4, "paths": [{"answer": 4}]}, {"id": "8", "paths": [{}]})
    )
    assert [p.problem.id for p in pools] == ["7", "8"]
    assert [p.problem.gold for p in pools] == [(4,), ()]


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ('{"id": "q2", "paths": [{"answer"', "line 2: expected one whole JSON object"),
        ("[1, 2]", "line 2: expected a JSON object"),
        ("nonsense", "line 2: expected one whole JSON object, got nonsense"),
        ({"paths": [{}]}, "line 2: `id` must be"),
        ({"id": "", "paths": [{}]}, "line 2: `id` must be"),
        ({"id": True, "paths": [{}]}, "line 2: `id` must be"),
        ({"id": " ", "paths": [{}]}, "line 2: `id` must be"),
        ({"id": "q1", "paths": [{}]}, "line 2: the id 'q1' already stands in line 1"),
        ({"id": "q2"}, "line 2: `paths` must be a list of at least one path, got null"),
        ({"id": "q2", "paths": []}, "line 2: `paths` must be"),
        ({"id": "q2", "paths": {"a": 1}}, "line 2: `paths` must be"),
        ({"id": "q2", "paths": ["4"]}, "line 2: path 0 must be an object"),
        ({"id": "q2", "paths": [{"scores": [1]}]}, "line 2: `scores` of path 0"),
        ({"id": "q2", "paths": [{"text": 1}]}, "line 2: `text` of path 0"),
        ({"id": "q2", "question": 3, "paths": [{}]}, "line 2: `question` must be"),
        ({"id": "q2", "gold": json.loads("[" * 200 + "]" * 200), "paths": [{}]}, "line 2: the field 'gold' is nested"),
        ({"id": "q2", "gold": [None], "paths": [{}]}, "line 2: `gold` must be"),
        ({"id": "q2", "cluster": [1], "paths": [{}]}, "line 2: `cluster` must be"),
        ("[" * 100_000, "line 2: expected one whole JSON object"),
    ],
)
def test_bad_lines_are_named_by_file_line_and_expectation(tmp_path, record, complaint):
    path = write(tmp_path / "pools.jsonl", GOOD, record)
    with pytest.raises(PoolFileError) as refused:
        read_pools(path)
    assert complaint in str(refused.value)
    assert "pools.jsonl" in str(refused.value)
    assert len(str(refused.value)) < 400


def test_files_that_are_cut_off_damaged_empty_or_absent_are_named(tmp_path):
    whole = gzip.compress("".join(json.dumps({**GOOD, "id": f"q{i}"}) + "\n" for i in range(2000)).encode())
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-50])
    (tmp_path / "plain.jsonl.gz").write_text(json.dumps(GOOD))
    (tmp_path / "flipped.jsonl.gz").write_bytes(whole[:60] + bytes([whole[60] ^ 0xFF]) + whole[61:])
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty.jsonl").write_text("\n")
    for name, complaint in [
        ("cut.jsonl.gz", "cut off or damaged"),
        ("plain.jsonl.gz", "cut off or damaged"),
        ("flipped.jsonl.gz", "cut off or damaged|expected"),
        ("bytes.jsonl", "it is UTF-16 text"),
        ("empty.jsonl", "holds no problems"),
        ("none.jsonl", "there is no file"),
        (".", "cannot read"),
    ]:
        with pytest.raises(PoolFileError, match=complaint):
            read_pools(tmp_path / name)


def test_a_write_that_fails_leaves_nothing_half_done(tmp_path):
    pools = read_pools(write(tmp_path / "p.jsonl", GOOD))
    target = tmp_path / "out.jsonl"
    write_pools(pools, target)
    before = target.read_bytes()

    def broken():
        yield pools[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_pools(broken(), target)
    assert target.read_bytes() == before
    with pytest.raises(PoolFileError, match="cannot write"):
        write_pools(pools, tmp_path / "nowhere" / "out.jsonl")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.jsonl", "p.jsonl"]


def test_links_are_followed_pipes_written_to_and_folders_and_read_only_files_refused(tmp_path):
    pools = read_pools(write(tmp_path / "p.jsonl", GOOD))
    real = tmp_path / "real.jsonl"
    real.write_text("old")
    (tmp_path / "link.jsonl").symlink_to(real)
    write_pools(pools, tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(read_pools(real)) == 1
    os.mkfifo(tmp_path / "pipe")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_pools(pools, tmp_path / "pipe")
    reader.join(300)
    assert json.loads(received[0])["id"] == "q1"
    assert (tmp_path / "pipe").is_fifo()
    for target in (tmp_path, ""):
        with pytest.raises(PoolFileError, match="cannot write"):
            write_pools(pools, target)


def test_a_file_keeps_its_mode_and_a_new_one_gets_the_usual_one(tmp_path):
    pools = read_pools(write(tmp_path / "p.jsonl", GOOD))
    (tmp_path / "p.jsonl").chmod(0o640)
    write_pools(pools, tmp_path / "p.jsonl")
    assert (tmp_path / "p.jsonl").stat().st_mode & 0o777 == 0o640
    write_pools(pools, tmp_path / "new.jsonl")
    usual = tmp_path / "usual"
    usual.touch()
    assert (tmp_path / "new.jsonl").stat().st_mode == usual.stat().st_mode


TALK = [
    {"role": "user", "content": "2 + 3?"},
    {"role": "assistant", "content": "5"},
    {"role": "user", "content": "Twice?"},
]


@pytest.mark.parametrize(
    "said", [{}, {"question": "Twice?"}, {"question": "[user]\n2 + 3?\n\n[assistant]\n5\n\n[user]\nTwice?"}]
)
def test_messages_stand_for_the_question(tmp_path, said):
    file = tmp_path / "pools.jsonl"
    file.write_text(json.dumps({"id": "q", "messages": TALK, **said, "paths": [{"answer": "10"}]}))
    (pool,) = read_pools(file)
    assert pool.problem.question == "[user]\n2 + 3?\n\n[assistant]\n5\n\n[user]\nTwice?"
    assert pool.problem.extra == {"messages": TALK}


def test_messages_of_other_kinds_are_kept_as_they_are_in_pools_sampled_elsewhere(tmp_path):
    tools = [*TALK[:2], {"role": "tool", "content": "3"}]
    file = tmp_path / "pools.jsonl"
    file.write_text(json.dumps({"id": "q", "question": "Twice?", "messages": tools, "paths": [{"answer": "10"}]}))
    (pool,) = read_pools(file)
    assert (pool.problem.question, pool.problem.extra) == ("Twice?", {"messages": tools})
