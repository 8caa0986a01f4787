"""Logs of inspect_ai, read as pools."""

from __future__ import annotations

import builtins
import json

import pytest

from demur.errors import MissingExtra, PoolFileError
from demur.pools.files import source_of_file
from demur.pools.neighbours.archive import Archive
from demur.pools.neighbours.inspect_log import InspectLog
from demur.records import blinded
from inspect_logs import DEFLATED, STORED, ZSTANDARD, header, sample, write_archive, write_entries, write_json

EPOCHS = [sample(name, epoch, f"It is {epoch}.") for epoch in (1, 2, 3) for name in ("a", "b")]


def pools_of(path, **options):
    with InspectLog(path, **options) as log:
        return list(log.pools())


def one(tmp_path, **changes):
    """The only pool of a log with one sample."""
    (pool, _), *none = pools_of(write_archive(tmp_path / "one.eval", [sample(**changes)]))
    assert not none
    return pool


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_epochs_are_paths_whatever_order_they_were_written_in_and_however_they_are_packed(tmp_path, method):
    pools = pools_of(write_archive(tmp_path / "log.eval", reversed(EPOCHS), method=method))
    assert {pool.problem.id: [path.text for path in pool.paths] for pool, _ in pools} == {
        "a": ["It is 1.", "It is 2.", "It is 3."],
        "b": ["It is 1.", "It is 2.", "It is 3."],
    }
    assert all(places == (0, 1, 2) for _, places in pools)


def test_a_log_that_is_one_json_object_reads_the_same(tmp_path):
    archived = pools_of(write_archive(tmp_path / "log.eval", EPOCHS))
    assert pools_of(write_json(tmp_path / "log.json", EPOCHS)) == archived
    assert source_of_file(tmp_path / "log.json").pools == source_of_file(tmp_path / "log.eval").pools


def test_a_sample_in_parts_reads_the_same(tmp_path):
    """Newer logs may hold a sample as a shell and sequences; long texts are then attachments, by their number."""
    whole = sample("a/b_epoch_7", 2, "It is 4.", metadata={"subject": "sums"})
    shell = {name: value for name, value in whole.items() if name not in ("messages", "events", "metadata")}
    folder = "samples/a/b_epoch_7_epoch_2"
    entries = [
        (f"{folder}/sample.json", shell | {"input": "attachment://1"}),
        (f"{folder}/metadata.json", whole["metadata"]),
        (f"{folder}/events/0.json", whole["events"]),
        (f"{folder}/attachments/0.json", ["unused"]),
        (f"{folder}/attachments/1.json", [whole["input"]]),
        ("header.json", header(2)),
    ]
    parts = pools_of(write_entries(tmp_path / "parts.eval", entries))
    assert parts == pools_of(write_archive(tmp_path / "whole.eval", [whole]))
    assert parts[0][1] == (1,)


def test_what_the_log_says_of_sampling_is_the_pools_description(tmp_path):
    with InspectLog(write_archive(tmp_path / "log.eval", EPOCHS)) as log:
        assert dict(log.description.sampling) == {
            "backend": "inspect_ai", "model": "openai/small", "task": "sums", "solver": ["generate"],
            "temperature": 0.7, "max_tokens": 100,
        }  # fmt: skip
        assert (log.epochs, log.expected) == (3, 2)


def test_log_probabilities_and_tokens_are_those_of_the_output(tmp_path):
    (path,) = one(tmp_path).paths
    facts = {name: path.extra[name] for name in ("n_tokens", "latency", "finish_reason", "epoch")}
    assert facts == {"n_tokens": 2, "latency": 0.5, "finish_reason": "stop", "epoch": 1}
    assert path.extra["logprob_mean"] == pytest.approx(-0.2)
    assert path.extra["logprob_std"] == pytest.approx(0.1)
    assert not path.has_answer_field


@pytest.mark.parametrize(
    ("target", "gold"), [("4", ("4",)), (["4", "four"], ("4", "four")), ("", ()), ([], ()), (None, ())]
)
def test_targets_are_gold(tmp_path, target, gold):
    assert one(tmp_path, target=target).problem.gold == gold


def test_messages_are_a_conversation_and_what_is_more_than_text_is_kept_as_it_is(tmp_path):
    parts = [{"type": "text", "text": "2 + "}, {"type": "text", "text": "2?"}]
    talk = [{"id": "1", "role": "system", "content": "Be brief."}, {"id": "2", "role": "user", "content": parts}]
    problem = one(tmp_path, input=talk).problem
    assert problem.extra["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2 + 2?"},
    ]
    assert problem.question == "[system]\nBe brief.\n\n[user]\n2 + 2?"
    assert one(tmp_path, input=[talk[1]]).problem.question == "2 + 2?"
    picture = [{"role": "user", "content": [{"type": "image", "image": "data:…"}]}]
    assert one(tmp_path, input=picture).problem.extra["messages"] == picture


def test_choices_make_it_multiple_choice(tmp_path):
    extra = one(tmp_path, choices=["red", "blue"], target="B").problem.extra
    assert (extra["choices"], extra["task"]) == (["red", "blue"], "mc")
    assert "task" not in one(tmp_path, choices=["red", "blue"], target="blue").problem.extra


def test_choices_that_are_right_only_together_are_no_gold(tmp_path):
    problem = one(tmp_path, choices=["red", "blue", "wood"], target=["A", "B"]).problem
    assert (problem.gold, problem.extra["gold_choices"]) == ((), ["A", "B"])


def test_reasoning_stands_before_what_was_said(tmp_path):
    parts = [{"type": "reasoning", "reasoning": "Two and two."}, {"type": "text", "text": "4"}]
    assert one(tmp_path, said=parts).paths[0].text == "<think>Two and two.</think>\n4"


def test_texts_in_parts_stand_on_lines_of_their_own_as_inspects_scorers_read_them(tmp_path):
    """Run together, the end of one and the beginning of the next made another number."""
    parts = [{"type": "text", "text": "The answer is 1"}, {"type": "text", "text": "2 is not it."}]
    assert one(tmp_path, said=parts).paths[0].text == "The answer is 1\n2 is not it."


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"redacted": True, "summary": "Two and two."}, "<think>Two and two.</think>\n4"),
        ({"redacted": True}, "4"),
        ({"redacted": False, "summary": "Sums."}, "<think>gAAAB</think>\n4"),
    ],
)
def test_of_reasoning_that_is_encrypted_the_summary_is_what_was_said(tmp_path, told, text):
    parts = [{"type": "reasoning", "reasoning": "gAAAB", **told}, {"type": "text", "text": "4"}]
    assert one(tmp_path, said=parts).paths[0].text == text


def test_what_inspect_does_not_write_of_a_sample_is_kept(tmp_path):
    paths = one(tmp_path, rater="R2", turn_count=3, score_of_mine={"a": [1]}).paths
    assert paths[0].extra["sample"] == {"rater": "R2", "score_of_mine": {"a": [1]}}
    assert not paths[0].scores
    assert "sample" not in one(tmp_path).paths[0].extra


def test_a_verdict_that_reads_like_the_models_text_is_kept(tmp_path):
    """Asked for a letter alone, the model says C, which means right where a scorer says it."""
    assert one(tmp_path, said="C", value="C").paths[0].extra["labels"]["match"]["value"] == "C"


def test_long_texts_that_were_put_elsewhere_are_put_back(tmp_path):
    moved = {"input": "attachment://abc12", "attachments": {"abc12": "What is 1 + 3?"}}
    assert one(tmp_path, **moved).problem.question == "What is 1 + 3?"
    assert one(tmp_path, input="attachment://0", attachments={}).problem.question == "attachment://0"


@pytest.mark.parametrize(
    ("ended", "reason"),
    [({"stop_reason": "max_tokens"}, "length"), ({"stop_reason": "model_length"}, "length"),
     ({"stop_reason": "content_filter"}, "content_filter"), ({}, None)],
)  # fmt: skip
def test_a_path_that_was_cut_is_known_as_such(tmp_path, ended, reason):
    log = sample()
    log["output"]["choices"][0] = {"message": {"content": "So"}, **ended}
    ((pool, _),) = pools_of(write_archive(tmp_path / "log.eval", [log]))
    assert pool.paths[0].extra.get("finish_reason") == reason
    assert pool.paths[0].extra["n_tokens"] == 2


def test_a_sample_that_a_limit_halted_was_cut(tmp_path):
    path = one(tmp_path, limit={"type": "token", "limit": 100}).paths[0]
    assert (path.extra["finish_reason"], path.extra["limit"]) == ("length", "token")


def test_metadata_is_kept_and_no_scorer_is_shown_what_it_says_of_right_answers(tmp_path):
    told = {"subject": "sums", "answer": "4", "solution": "2 + 2", "group": "x", "id": 7, "nested": {"a": [1]}}
    pool = one(tmp_path, metadata=told)
    assert pool.problem.extra == {
        "subject": "sums", "gold_answer": "4", "solution": "2 + 2", "metadata_group": "x", "metadata_id": 7,
        "nested": {"a": [1]},
    }  # fmt: skip
    assert set(blinded(pool).problem.extra) == {"subject", "metadata_group", "metadata_id", "nested"}


def test_what_scorers_said_is_a_label_and_never_a_score(tmp_path):
    pool = one(tmp_path)
    assert not pool.paths[0].scores
    assert pool.paths[0].extra["labels"] == {"match": {"value": "C", "answer": "4"}}
    assert "correct" not in pool.paths[0].extra
    assert "labels" not in blinded(pool).paths[0].extra
    source = source_of_file(tmp_path / "one.eval")
    assert source.score_names == []


@pytest.mark.parametrize(
    ("value", "right"),
    [("C", True), ("I", False), ("N", False), (True, True), (False, False), (1, True), (0.0, False), ("yes", True)],
)
def test_a_score_that_is_named_labels_the_paths(tmp_path, value, right):
    ((pool, _),) = pools_of(write_archive(tmp_path / "log.eval", [sample(value=value)]), labels_by="match")
    assert pool.paths[0].extra["correct"] is right


def test_a_part_of_a_score_may_be_named(tmp_path):
    log = write_archive(tmp_path / "log.eval", [sample(value={"exact": 1, "format": 0})])
    assert pools_of(log, labels_by="match.exact")[0][0].paths[0].extra["correct"] is True
    assert pools_of(log, labels_by="match.format")[0][0].paths[0].extra["correct"] is False


@pytest.mark.parametrize("value", ["P", 0.5, [1, 0], None, {"a": 1}, "perhaps"])
def test_what_is_neither_right_nor_wrong_is_refused_as_a_label(tmp_path, value):
    with pytest.raises(PoolFileError, match="neither right"):
        pools_of(write_archive(tmp_path / "log.eval", [sample(value=value)]), labels_by="match")


def test_a_score_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    log = write_archive(tmp_path / "log.eval", [sample()])
    with pytest.raises(PoolFileError, match="no score 'matches'; those there are: match"):
        pools_of(log, labels_by="matches")


def test_the_first_logs_had_one_score_without_a_name(tmp_path):
    old = sample()
    old["score"] = old.pop("scores")["match"]
    log = write_json(tmp_path / "old.json", [old])
    log.write_text(log.read_text().replace('"version": 2', '"version": 1'))
    ((pool, _),) = pools_of(log, labels_by="score")
    assert pool.paths[0].extra["correct"] is True


def test_samples_that_failed_are_no_paths_and_are_counted_by_reason(tmp_path):
    failed = {"error": {"message": "Timeout('slow')\nmore", "traceback": ""}}
    samples = [sample("a", 1), sample("a", 2, **failed), sample("a", 3), sample("b", 1, **failed),
               sample("c", 1, invalidation={"author": "me"})]  # fmt: skip
    with InspectLog(write_archive(tmp_path / "log.eval", samples)) as log:
        pools = list(log.pools())
        assert [(pool.problem.id, places) for pool, places in pools] == [("a", (0, 2)), ("b", ()), ("c", ())]
        assert log.failed == {"Timeout('slow')": 2, "declared invalid": 1}


@pytest.mark.parametrize("short", [[sample("b", 1)], [sample("b", 1), sample("b", 2, error={"message": "slow"})],
                                   [sample("b", e, error={"message": "slow"}) for e in (1, 2)]])  # fmt: skip
@pytest.mark.parametrize("write", [write_archive, write_json])
def test_read_in_place_a_log_that_lacks_paths_is_refused_as_such_a_run_is(tmp_path, write, short):
    whole = [sample("a", 1), sample("a", 2)]
    log = write(tmp_path / "log.json", whole + short)
    with pytest.raises(PoolFileError, match=r"1 of 2 problems of .*log\.json lack paths.*demur import"):
        source_of_file(log)
    assert len(source_of_file(write(tmp_path / "whole.json", whole)).pools) == 1


def test_an_unfinished_log_says_what_it_was_started_with(tmp_path):
    entries = [("_journal/start.json", header(2)), ("samples/1_epoch_1.json", sample())]
    with InspectLog(write_entries(tmp_path / "log.eval", entries)) as log:
        assert (log.epochs, log.description.sampling["model"]) == (2, "openai/small")
        assert len(list(log.pools())) == 1


def test_of_a_sample_that_was_written_twice_the_last_counts(tmp_path):
    entries = [("samples/1_epoch_1.json", sample(said="first")), ("samples/1_epoch_1.json", sample(said="second")),
               ("header.json", header())]  # fmt: skip
    ((pool, _),) = pools_of(write_entries(tmp_path / "log.eval", entries))
    assert pool.paths[0].text == "second"


@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
def test_a_log_that_was_cut_off_is_refused_and_whole_samples_of_it_are_recovered_if_asked(tmp_path, method):
    """Cut anywhere: every sample that is whole is read, and no other."""
    log = write_archive(tmp_path / "log.eval", EPOCHS, method=method)
    whole = log.read_bytes()
    with Archive(log) as archive:
        ends = {entry.offset: name for name, entry in archive.entries.items()}
    offsets = sorted(ends)
    for cut in (offsets[3] - 1, offsets[3], offsets[3] + 7, offsets[-1] + 3, len(whole) - 30):
        log.write_bytes(whole[:cut])
        with pytest.raises(PoolFileError, match="is cut off") as refused:
            InspectLog(log)
        assert "recover" in refused.value.remedy
        before = [ends[at] for at, following in zip(offsets, [*offsets[1:], cut], strict=True) if following <= cut]
        with InspectLog(log, recover=True) as recovered:
            assert recovered.cut_off
            placed = [(pool.problem.id, place + 1) for pool, places in recovered.pools() for place in places]
        read = {f"samples/{name}_epoch_{epoch}.json" for name, epoch in placed}
        assert read == {name for name in before if name.startswith("samples/")}


@pytest.mark.parametrize("recover", [True, False])
def test_a_log_cut_before_anything_whole_is_no_log_and_nothing_of_it_is_promised(tmp_path, recover):
    log = write_archive(tmp_path / "log.eval", EPOCHS)
    log.write_bytes(log.read_bytes()[:40])
    with pytest.raises(PoolFileError, match="cut off before anything in it is whole") as refused:
        InspectLog(log, recover=recover)
    assert refused.value.remedy == "use a whole copy"


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_a_damaged_entry_is_named(tmp_path, method):
    log = write_archive(tmp_path / "log.eval", EPOCHS, method=method)
    with Archive(log) as archive:
        entry = archive.entries["samples/b_epoch_2.json"]
    damaged = bytearray(log.read_bytes())
    at = entry.offset + 30 + len(entry.name) + entry.packed // 2
    damaged[at : at + 8] = bytes(8)
    log.write_bytes(damaged)
    with pytest.raises(PoolFileError, match=r"samples/b_epoch_2\.json.*cannot be read"):
        pools_of(log)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is no ZIP archive"),
        (b"PK\x05\x06" + bytes(18), "has no header"),
        (b"nothing of the kind", "no whole JSON"),
        (b'{"version": 2', "no whole JSON"),
        (b'{"version": 9, "status": "success", "eval": {}}', "version 9"),
        (b'{"version": 2, "status": "success"}', "does not say what was evaluated"),
        (b"[1, 2]", "must be an object"),
        (b'{"version": 2, "status": "x", "eval": {}, "samples": 7}', "must be a list of objects"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(tmp_path, content, told):
    log = tmp_path / "log.eval"
    log.write_bytes(content)
    with pytest.raises(PoolFileError) as refused:
        pools_of(log)
    assert told in str(refused.value) or (content == b"" and "JSON" in str(refused.value))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("changes", [{"name": None}, {"name": "  "}, {"name": 1.5}, {"epoch": 0}])
def test_a_sample_without_a_usable_id_or_epoch_is_refused(tmp_path, changes):
    with pytest.raises(PoolFileError, match="must be a"):
        pools_of(write_archive(tmp_path / "log.eval", [sample(**changes)]))


def test_entries_that_claim_too_much_or_are_packed_strangely_are_refused(tmp_path):
    log = write_archive(tmp_path / "log.eval", [sample()])
    with Archive(log) as archive:
        entry = archive.entries["header.json"]
        with pytest.raises(PoolFileError, match="bytes after unpacking, the limit for"):
            archive.read(entry._replace(size=1 << 40))
        with pytest.raises(PoolFileError, match="method 12"):
            archive.read(entry._replace(method=12))
        with pytest.raises(PoolFileError, match="not what it was"):
            archive.read(entry._replace(size=entry.size - 1))  # no more is unpacked than it should be


def test_a_log_of_a_spreadsheet_names_the_way_out(tmp_path):
    sheet = write_entries(tmp_path / "book.xlsx", [("xl/workbook.xml", b"<x/>")])
    with pytest.raises(PoolFileError, match="save a spreadsheet as JSON lines or CSV"):
        source_of_file(sheet)


def test_without_zstandard_the_extra_is_named(tmp_path, monkeypatch):
    log = write_archive(tmp_path / "log.eval", [sample()], method=ZSTANDARD)
    whole = builtins.__import__

    def without(name, *rest):
        if name in ("zstandard", "compression"):
            raise ImportError(name)
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match="packed by Zstandard"):
        InspectLog(log)


def test_a_log_without_an_answered_sample_is_refused(tmp_path):
    empty = write_archive(tmp_path / "log.eval", [sample(error={"message": "no"})])
    with pytest.raises(PoolFileError, match="no sample that a model answered"):
        source_of_file(empty)


def test_json_lines_of_pools_are_still_pools(tmp_path):
    """What other programs write is told by its first bytes, and nothing of ours begins so."""
    file = tmp_path / "pools.jsonl"
    file.write_text(json.dumps({"prompt": "x", "id": "q", "paths": [{"answer": "1"}]}) + "\n")
    assert source_of_file(file).pools[0].problem.extra == {"prompt": "x"}
