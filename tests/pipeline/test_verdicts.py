"""Files of verdicts, and the sheets on which people check a random part of them."""

from __future__ import annotations

import json

import pytest

from demur.errors import InvalidValue
from demur.pipeline.check_sheet import draw, read_sheet, sheet_of
from demur.pipeline.verdicts import VerdictFile, read_verdicts, verdict_line
from demur.pools.verdicts import Verdict, Verdicts
from demur.records import question_digest

ROW = {"question": "Where?", "answer": "Rome", "gold": ["Paris"], "verdict": False, "by": "m"}


def written(tmp_path, *rows):
    file = tmp_path / "verdicts.jsonl"
    file.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return file


def verdicts(count=40, wrong=()):
    return [
        Verdict(f"d{n}", f"Where is {n}?", f"answer {n}", (f"gold {n}",), n not in wrong, "m", id=f"q{n}")
        for n in range(count)
    ]


def test_what_is_written_is_read_back(tmp_path):
    rows = [
        *verdicts(3),
        Verdict("d9", "Why?\n\u2028\ud800", 'a "quoted"\nanswer', ("g", "h"), None, "m", True, True),
        Verdict("d8", "", "a", ("g",), person=False),
    ]
    with VerdictFile(tmp_path / "verdicts.jsonl") as file:
        file.append(rows[:2])
        file.append(rows[2:])
    assert list(read_verdicts(tmp_path / "verdicts.jsonl")) == rows
    assert all(verdict_line(row).isascii() for row in rows)


def test_people_may_write_less_than_a_judge_does(tmp_path):
    file = written(tmp_path, ROW, {"question": " Where? ", "answer": "Rome", "gold": "Paris", "person": True})
    (only,) = read_verdicts(file)
    assert only.digest == question_digest("Where?")
    assert (only.agrees, only.person, only.by, only.right) == (False, True, "m", True)


def test_numbers_are_read_as_they_are_written(tmp_path):
    (only,) = read_verdicts(written(tmp_path, {**ROW, "answer": 6.0, "gold": [6, "six"]}))
    assert (only.answer, only.accepted) == ("6.0", ("6", "six"))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("nonsense\n", "line 2: expected a verdict as a JSON object"),
        ('{"a": \n', "line 2: expected a verdict as a JSON object"),
        ([1], "line 2 is no verdict"),
        ({"id": "q", "paths": []}, "line 2 is no verdict"),
        ({**ROW, "verdict": "yes"}, "`verdict` must be true, false or null"),
        ({**ROW, "person": 1}, "`person` must be true, false or null"),
        ({**ROW, "question": 5}, "`question` must be a text"),
        ({**ROW, "gold": []}, "must be a text or a number that is not blank"),
        ({**ROW, "gold": [None]}, "must be a text or a number that is not blank"),
        ({**ROW, "answer": " "}, "must be a text or a number that is not blank"),
        ({**ROW, "question": ""}, "needs the `question`"),
        ({**ROW, "by": None}, "names its judge in `by`"),
        ({**ROW, "persn": True}, "has no field 'persn'"),
        ('{"answer": "a", "answer": "b", "gold": "c"}\n', "stands twice"),
    ],
)
def test_what_is_no_verdict_is_named_with_its_line(tmp_path, row, said):
    with pytest.raises(InvalidValue) as refused:
        read_verdicts(written(tmp_path, ROW, row))
    assert said in str(refused.value)
    assert "verdicts.jsonl" in str(refused.value)


def test_a_line_that_was_cut_off_is_no_verdict_and_is_written_over(tmp_path):
    line = json.dumps(ROW)
    file = written(tmp_path, {**ROW, "answer": "Oslo"}, line[:-9])
    assert [row.answer for row in read_verdicts(file)] == ["Oslo"]
    with VerdictFile(file) as opened:
        opened.append(verdicts(1))
    assert [row.answer for row in read_verdicts(file)] == ["Oslo", "answer 0"]


def test_a_whole_line_without_its_end_stays(tmp_path):
    file = written(tmp_path, json.dumps(ROW))
    with VerdictFile(file) as opened:
        opened.append(verdicts(1))
    assert [row.answer for row in read_verdicts(file)] == ["Rome", "answer 0"]


def test_nothing_but_verdicts_is_ever_cut(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("my notes\nmore of them")
    with pytest.raises(InvalidValue, match="expected a verdict"):
        VerdictFile(file).__enter__()
    assert file.read_text() == "my notes\nmore of them"


def test_two_commands_cannot_write_at_once(tmp_path):
    with VerdictFile(tmp_path / "v.jsonl"), pytest.raises(InvalidValue, match="another command is writing"):
        VerdictFile(tmp_path / "v.jsonl").__enter__()
    with VerdictFile(tmp_path / "v.jsonl"):
        pass


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    with pytest.raises(InvalidValue, match="cannot write"):
        VerdictFile(tmp_path / "no" / "v.jsonl").__enter__()
    with pytest.raises(InvalidValue, match="cannot be gzipped"):
        VerdictFile(tmp_path / "v.jsonl.gz").__enter__()


# Sheets


def filled(sheet, say):
    """A sheet as somebody fills it in: `say(place)` in the order of its entries."""
    parts = sheet.split("agrees: \n")
    return "".join(part + f"agrees: {say(place)}\n" for place, part in enumerate(parts[:-1])) + parts[-1]


def test_a_draw_is_random_and_the_same_for_the_same_seed():
    rows = Verdicts(verdicts())
    first = draw(rows, 10, seed=1)
    assert first == draw(Verdicts(reversed(verdicts())), 10, seed=1)
    assert first != draw(rows, 10, seed=2)
    assert len({row.answer for row in first}) == 10
    assert draw(rows, 20, seed=1)[:10] == first
    assert len(draw(rows, 100)) == 40


def test_every_verdict_is_drawn_equally_often():
    rows, counts = Verdicts(verdicts(20)), dict.fromkeys(range(20), 0)
    for seed in range(400):
        for row in draw(rows, 5, seed=seed):
            counts[int(row.answer.split()[1])] += 1
    assert all(abs(count - 100) < 4 * (400 * 0.25 * 0.75) ** 0.5 for count in counts.values())  # 4 standard errors


def test_a_sheet_shows_no_verdict_and_nothing_that_could_pass_for_one():
    nasty = Verdict("d", "Why?\n[1/1] 0123456789abcdef\nagrees: yes", "a\nagrees: no", ("g\u202e",), True, "m-judge")
    sheet = sheet_of([nasty])
    assert sheet.count("\nagrees:") == 1
    assert "m-judge" not in sheet
    assert "\u202e" not in sheet


def test_what_people_write_is_read_back_and_counted(tmp_path):
    rows = Verdicts(verdicts(40, wrong=range(0, 40, 2)))
    drawn = draw(rows, 10)
    words = ["yes" if row.agrees else "No" for row in drawn]
    words[3], words[4] = ("no" if drawn[3].agrees else "yes"), "unsure"
    sheet = tmp_path / "sheet.txt"
    sheet.write_text(filled(sheet_of(drawn), lambda place: words[place]))
    checked = read_sheet(sheet, rows)
    merged = Verdicts([*rows, *checked])
    assert (merged.judge.confirmed, merged.judge.checked) == (8, 10)
    after = {row.pair: row for row in merged}
    assert after[drawn[3].pair].right is not drawn[3].right
    assert after[drawn[4].pair].right is drawn[4].right
    assert draw(merged, 10) == []
    assert draw(merged, 12) == draw(rows, 12)[10:]


def test_who_stops_early_has_checked_at_random_and_who_skips_has_not(tmp_path):
    rows = Verdicts(verdicts())
    sheet = tmp_path / "sheet.txt"
    sheet.write_text(filled(sheet_of(draw(rows, 10)), lambda place: "yes" if place < 4 else ""))
    assert len(read_sheet(sheet, rows)) == 4
    sheet.write_text(filled(sheet_of(draw(rows, 10)), lambda place: "" if place == 2 else "yes"))
    with pytest.raises(InvalidValue, match="who skips some no longer checks at random"):
        read_sheet(sheet, rows)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text, "nothing is filled in"),
        (lambda text: text.replace("agrees: ", "agrees: perhaps", 1), "write yes, no or unsure"),
        (lambda text: text.replace("agrees: ", "agrees: yes it does", 1), "write yes, no or unsure"),
        (lambda text: text + text, "it stands twice"),
        (lambda text: text.replace("[1/3] ", "[1/3] 0000000000000000\n"), "it is not of these verdicts"),
        (lambda text: "agrees: yes\n" + text, "write yes, no or unsure"),
    ],
)
def test_a_sheet_that_cannot_be_read_is_one_line(tmp_path, change, said):
    rows = Verdicts(verdicts())
    sheet = tmp_path / "sheet.txt"
    sheet.write_text(change(sheet_of(draw(rows, 3))))
    with pytest.raises(InvalidValue, match=said):
        read_sheet(sheet, rows)


def test_only_what_a_judge_said_can_be_checked():
    with pytest.raises(InvalidValue, match="no verdicts of a judge"):
        draw(Verdicts([Verdict("d", "q", "a", ("g",), person=True)]), 5)
    with pytest.raises(InvalidValue, match="at least one"):
        draw(Verdicts(verdicts()), 0)


def test_what_people_overrule_of_their_own_accord_is_no_random_check():
    rows = Verdicts([*verdicts(5), Verdict("d1", "Where is 1?", "answer 1", ("gold 1",), person=False)])
    assert (rows.judge.confirmed, rows.judge.checked) == (0, 0)
    assert [row.right for row in rows] == [True, False, True, True, True]
