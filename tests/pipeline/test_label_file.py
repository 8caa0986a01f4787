"""Files of labels and sheets: what was said is kept, and what is about other votes is refused in one line."""

from __future__ import annotations

import csv
import json

import pytest

import demur as dm
from demur.errors import DemurError, InvalidValue, LabelMismatch
from demur.pipeline.label_cards import LabelCard
from demur.pipeline.label_file import (
    RIGHT,
    SKIP,
    WRONG,
    Label,
    LabelFile,
    LabelHeader,
    queue_of,
    read_label_file,
)
from demur.pipeline.label_sheet import COLUMNS, read_sheet, write_sheet

GUARANTEES = [dm.Marginal(0.1), dm.Smoothed(0.2)]


def pools_file(path, n=40, answer="1"):
    lines = []
    for row in range(n):
        paths = [{"answer": answer, "text": f"path {k} of {row}"} for k in range(2)] + [{"answer": str(row)}]
        known = {"id": f"q{row}", "question": f"=What is {row}?", "gold": "secret-gold", "options": ["x", "y"]}
        lines.append(json.dumps({**known, "passage": "-a passage", "paths": paths}))
    path.write_text("\n".join(lines))
    return dm.read_pools(path)


@pytest.fixture
def source(tmp_path):
    return pools_file(tmp_path / "pools.jsonl")


@pytest.fixture
def voted(source):
    return dm.vote_pools(source, dm.FieldChoice(relation="plain"), source.recipe(tie_break="jitter:0"), labelled=False)


@pytest.fixture
def file(tmp_path, voted):
    path = tmp_path / "labels.jsonl"
    with LabelFile(path) as labels:
        labels.begin(LabelHeader.of(voted, GUARANTEES))
        labels.append([Label.now("q1", RIGHT, "ann"), Label.now("q2", WRONG, "bob"), Label.now("q3", SKIP, "ann")])
    return path


def add(path, *records):
    with path.open("a") as stream:
        stream.writelines(record if isinstance(record, str) else json.dumps(record) + "\n" for record in records)


def said(path):
    return {name: label.said for name, label in read_label_file(path).standing.items()}


def test_what_is_said_is_read_back_with_who_and_when(file):
    history = read_label_file(file)
    assert said(file) == {"q1": RIGHT, "q2": WRONG, "q3": SKIP}
    assert [label.by for label in history.standing.values()] == ["ann", "bob", "ann"]
    assert all(label.at.endswith("+00:00") for label in history.standing.values())


def test_a_drawn_rank_is_drawn_before_the_first_label_and_kept(file):
    stored = read_label_file(file).header.guarantees
    assert stored == tuple(GUARANTEES)
    assert stored[1].seed == GUARANTEES[1].seed


def test_what_is_undone_is_gone_and_may_be_said_again(file):
    with LabelFile(file) as labels:
        labels.undo(read_label_file(file).standing["q2"], "ann")
    assert "q2" not in said(file)
    with LabelFile(file) as labels:
        labels.append([Label.now("q2", RIGHT, "ann"), Label.now("q3", WRONG, "ann")])
    assert said(file) == {"q1": RIGHT, "q2": RIGHT, "q3": WRONG}
    assert len(file.read_text().splitlines()) == 7, "nothing is ever removed"


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_was_cut_off_was_never_said(file, cut):
    whole = file.read_bytes()
    file.write_bytes(whole + Label.now("q4", RIGHT, "ann").line().encode()[:cut])
    assert said(file) == {"q1": RIGHT, "q2": WRONG, "q3": SKIP}
    with LabelFile(file) as labels:
        labels.append([Label.now("q5", RIGHT, "ann")])
    assert said(file)["q5"] == RIGHT
    assert "q4" not in said(file)


def test_a_file_killed_before_its_first_line_was_whole_begins_again(tmp_path, voted):
    path = tmp_path / "labels.jsonl"
    path.write_text(LabelHeader.of(voted, GUARANTEES).line()[:70])
    with LabelFile(path) as labels:
        assert read_label_file(path).header is None
        labels.begin(LabelHeader.of(voted, GUARANTEES))
    assert read_label_file(path).header is not None


def test_two_commands_do_not_write_one_file(file):
    with LabelFile(file), pytest.raises(InvalidValue, match="another command is writing labels"), LabelFile(file):
        pass


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"id": "q1", "label": "wrong"}, r"line 5: 'q1' has a label already, 'right' in line 2.*remove one of the two"),
        ({"id": "q1", "label": "right"}, r"'q1' has a label already"),
        ({"id": "q9", "undo": True}, r"'q9' has no label that could be undone.*remove the line"),
        ({"id": "q9", "label": "maybe"}, r"`label` must be one of right, wrong, skip, got 'maybe'"),
        ({"id": "q9", "label": True}, r"must be one of right, wrong, skip"),
        ({"id": "q9", "label": "right", "undo": True}, r"must be one of"),
        ({"id": 9, "label": "right"}, r"an object with an id"),
        ({"id": "q9", "label": "right", "by": 3}, r"`by` must be a text"),
        (["q9"], r"an object with an id"),
        ("nonsense\n", r"line 5: expected a label as a JSON object"),
    ],
)
def test_lines_that_are_no_labels(file, record, complaint):
    add(file, record)
    with pytest.raises(InvalidValue, match=complaint) as refused:
        read_label_file(file)
    assert "\n" not in str(refused.value)


def test_a_label_for_a_question_that_is_not_in_the_queue(file, voted):
    add(file, {"id": "another", "label": "right"})
    with pytest.raises(InvalidValue, match=r"a label for 'another', which is not in the queue of 40 questions"):
        queue_of(voted, read_label_file(file), file)


@pytest.mark.parametrize(
    ("first", "complaint"),
    [
        ('{"format": "demur-pools"}', "this is no file of labels"),
        ('{"format": "demur-labels", "schema": 2}', "schema 2.*upgrade demur"),
        ('{"format": "demur-labels", "schema": 1}', "must name the queue"),
        ('{"format": "demur-labels", "schema": 1, "queue": "x", "n": 1, "guarantees": [{"guarantee": "magic"}], '
         '"pipeline": {}}', "no guarantee"),
        ('{"format": "demur-labels", "schema": 1, "queue": "x", "n": 1, "pipeline": {}, '
         '"guarantees": [{"guarantee": "marginal", "alpha": 2}]}', "alpha must lie strictly between 0 and 1"),
    ],
)  # fmt: skip
def test_files_that_were_not_written_for_labels(tmp_path, first, complaint):
    path = tmp_path / "labels.jsonl"
    path.write_text(first + "\n")
    before = path.read_bytes()
    with pytest.raises(DemurError, match=complaint), LabelFile(path):
        pass
    assert path.read_bytes() == before


def test_labels_of_votes_that_were_made_another_way_are_refused(file, source):
    others = dm.vote_pools(source, dm.FieldChoice(relation="plain"), source.recipe(tie_break="none"), labelled=False)
    with pytest.raises(LabelMismatch, match=r"vote.tie_break is 'jitter@3:0' in .*labels.jsonl, None here"):
        dm.labelled_by(others, file)


@pytest.mark.parametrize("change", [{"n": 41}, {"answer": "2"}])
def test_labels_of_other_questions_or_answers_are_refused(file, tmp_path, change):
    other = pools_file(tmp_path / "other.jsonl", **change)
    others = dm.vote_pools(other, dm.FieldChoice(relation="plain"), other.recipe(tie_break="jitter:0"), labelled=False)
    with pytest.raises(LabelMismatch, match=r"labels for another queue: its 40 questions.*begin another file"):
        dm.labelled_by(others, file)


def test_labelled_votes_calibrate_and_say_by_whom(file, voted):
    labelled = dm.labelled_by(voted, file)
    assert labelled.known.sum() == 2
    policy = dm.calibrate(labelled, guarantee=read_label_file(file).header.guarantees, partly_labelled=True)
    assert policy.labels.people
    assert (
        "Wrong means wrong by the people who labelled the votes. 2 of the 40 were labelled" in policy.points[0].promise
    )
    with pytest.raises(InvalidValue, match="have no label"):
        dm.calibrate(labelled, alpha=0.1)


@pytest.fixture(params=["queue.csv", "queue.jsonl"])
def sheet(request, tmp_path, source, voted, file):
    history = read_label_file(file)
    queue = queue_of(voted, history, file)
    cards = [LabelCard.of(source.pools[row], voted, row) for row in queue.wanted[:10]]
    assert write_sheet(tmp_path / request.param, cards, history.header) == 10
    return tmp_path / request.param


def fill(sheet, change):
    """Change the rows of a sheet, as another tool would."""
    if sheet.suffix == ".csv":
        with sheet.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        change(rows)
        with sheet.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        rows = [json.loads(line) for line in sheet.read_text().splitlines()]
        change(rows)
        sheet.write_text("".join(json.dumps(row) + "\n" for row in rows))


def read(sheet, file, voted):
    history = read_label_file(file)
    ids = [voted.ids[row] for row in queue_of(voted, history, file).rows.tolist()]
    return read_sheet(sheet, history.header, history.standing, queue=ids, by="tool")


def test_a_sheet_goes_out_from_the_top_and_shows_no_gold(sheet, voted, file):
    queue = queue_of(voted, read_label_file(file), file)
    text = sheet.read_text()
    assert "secret-gold" not in text
    assert "a passage" in text
    places = [text.index(f"q{row}") for row in queue.wanted[:10]]
    assert len(places) == 10
    assert all(name in text for name in COLUMNS)


def test_a_sheet_comes_back(sheet, voted, file):
    def change(rows):
        for row, verdict in zip(rows, ["right", " WRONG ", "skip", "y", "", "no"], strict=False):
            row["verdict"] = verdict
        rows[0]["by"] = "eve"

    fill(sheet, change)
    labels = read(sheet, file, voted)
    assert [label.said for label in labels] == [RIGHT, WRONG, SKIP, RIGHT, WRONG]
    assert [label.by for label in labels] == ["eve", "tool", "tool", "tool", "tool"]
    with LabelFile(file) as stored:
        stored.append(labels)
    assert read(sheet, file, voted) == [], "reading it again adds nothing"


def change_of(**cells):
    def change(rows):
        rows[0]["verdict"] = rows[1]["verdict"] = "right"
        rows[1].update(cells)

    return change


def twice(rows):
    rows[0]["verdict"] = "right"
    rows.append(dict(rows[0], verdict="wrong"))


def against_the_file(rows):
    rows[0].update(id="q1", verdict="wrong")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (change_of(verdict="perhaps"), r"line \d+: the verdict 'perhaps' is not known; write right, wrong or skip"),
        (change_of(verdict="0.5"), r"the verdict '0.5' is not known"),
        (change_of(id="zz"), r"'zz' is not in the queue of 40 questions; remove the row"),
        (change_of(queue="sha256:0"), r"is of another queue \('sha256:0'\) than these labels"),
        (twice, r"has a verdict already, in line \d+; a question has one; keep one of the two"),
        (against_the_file, r"says 'wrong' of 'q1', and ann said 'right' before"),
        (lambda rows: None, r"no verdict is filled in on .*; write right, wrong or skip"),
        (lambda rows: [row.pop("queue") for row in rows], r"has no 'queue': this is no sheet"),
    ],
)
def test_sheets_that_cannot_be_read_back(sheet, voted, file, change, complaint):
    fill(sheet, change)
    with pytest.raises(InvalidValue, match=complaint) as refused:
        read(sheet, file, voted)
    assert "\n" not in str(refused.value)


def test_a_sheet_that_is_there_is_not_replaced(sheet, file):
    with pytest.raises(InvalidValue, match="is there already, and may be filled in"):
        write_sheet(sheet, [], read_label_file(file).header)


def test_a_sheet_is_csv_or_json_lines(tmp_path, file):
    with pytest.raises(InvalidValue, match=r"a sheet is CSV or JSON lines.*'queue.xlsx'"):
        write_sheet(tmp_path / "queue.xlsx", [], read_label_file(file).header)


def test_no_cell_of_a_csv_is_a_formula(tmp_path, source, voted, file):
    cards = [LabelCard.of(source.pools[row], voted, row) for row in range(3)]
    write_sheet(tmp_path / "q.csv", cards, read_label_file(file).header)
    with (tmp_path / "q.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            assert not any(cell[:1] in ("=", "+", "-", "@") for cell in row.values())


def test_a_conversation_is_shown_once_and_whole(tmp_path):
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 2 + 3?"}]
    line = {"id": "t", "messages": talk, "passage": "a passage", "paths": [{"answer": "5"}, {"answer": "5"}]}
    (tmp_path / "talks.jsonl").write_text(json.dumps(line))
    source = dm.read_pools(tmp_path / "talks.jsonl")
    card = LabelCard.of(source.pools[0], dm.vote_pools(source, dm.FieldChoice(relation="plain"), labelled=False), 0)
    assert card.question == "[system]\nBe brief.\n\n[user]\nWhat is 2 + 3?"
    assert card.beside == (("passage", "a passage"),)
