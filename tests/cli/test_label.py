"""`demur label`: a dialogue in a real terminal, killed and resumed; sheets; what `calibrate` makes of the labels."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
import time

import pytest

import demur as dm
from processes import Process

VOTE = ["--score", "simulated", "--tie-break", "jitter:0"]


@pytest.fixture
def pools(demur, tmp_path):
    assert demur("simulate", "-o", "pools.jsonl", "-n", 120, "-m", 6, "--seed", 3).code == 0
    return tmp_path / "pools.jsonl"


@pytest.fixture
def right(pools):
    """Whether each vote is right, by id."""
    source = dm.read_pools(pools)
    voted = dm.vote_pools(source, dm.FieldChoice(score="simulated"), source.recipe("simulated", tie_break="jitter:0"))
    return dict(zip(voted.ids, voted.labelled.tolist(), strict=True))


@pytest.fixture
def typed(demur, monkeypatch):
    """Run `demur label` with lines on its standard input."""

    def run(lines, *arguments):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return demur("label", "pools.jsonl", *VOTE, "-o", "labels.jsonl", *arguments)

    return run


def said(path="labels.jsonl"):
    with open(path) as stream:
        return [json.loads(line) for line in stream][1:]


class Terminal:
    """`demur label` at a pseudo-terminal, and what is on its screen."""

    def __init__(self, *arguments):
        self.screen, self.read_up_to = "", 0
        self.process, self.master = self._start([sys.executable, "-m", "demur", "label", *arguments])

    def _start(self, command):
        master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        process = Process(command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True)
        os.close(slave)
        return process, master

    def read_until(self, pattern, seconds=180):
        """The first match of a pattern behind what was read before."""
        ends = time.monotonic() + seconds
        while not (found := re.compile(pattern).search(self.screen, self.read_up_to)):
            ready = select.select([self.master], [], [], max(0, ends - time.monotonic()))[0]
            assert ready, f"nothing like {pattern!r} on the screen:\n{self.screen[-2000:]}"
            try:
                self.screen += os.read(self.master, 65536).decode(errors="replace")
            except OSError as error:  # the other end is closed
                raise EOFError(self.screen[-2000:]) from error
        self.read_up_to = found.end()
        return found

    def press(self, key):
        os.write(self.master, key.encode())

    def asked(self):
        """The id of the question on the screen; None where it has ended."""
        found = self.read_until(r"\[(sim-[\d-]+)\] |votes labelled,")
        if found.group(1):
            self.read_until(r"Is '.*' right\?")
        return found.group(1)

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.master)


def test_labels_from_the_top_in_a_terminal_killed_in_the_middle_and_resumed(demur, pools, right):
    arguments = ["pools.jsonl", *VOTE, "--alpha", "0.05", "--alpha", "0.1", "--by", "ann", "-o", "labels.jsonl"]
    asked, undone, kills = [], 0, 0
    terminal = Terminal(*arguments)
    while (name := terminal.asked()) is not None:
        if len(asked) == 3 and not undone:  # a slip of the finger, and back
            terminal.press("n" if right[name] else "y")
            assert terminal.asked() != name
            terminal.press("\x1b[A")  # an arrow says nothing
            terminal.press("u")
            assert terminal.asked() == name
            undone += 1
        terminal.press("y" if right[name] else "n")
        terminal.read_until(rf"(right|wrong): {name}")
        asked.append(name)
        if len(asked) in (7, 15):  # without warning, with a question on the screen
            assert terminal.asked() is not None
            terminal.kill()
            kills += 1
            terminal = Terminal(*arguments)
    terminal.read_until("the thresholds are those of full labels")
    assert terminal.process.wait(120) == 0
    assert kills == 2
    assert len(asked) == len(set(asked)) < 120, "nothing is asked twice, and not everything is asked"

    labels = [line for line in said() if "label" in line]
    assert {line["by"] for line in labels} == {"ann"}
    alphas = ["--alpha", "0.05", "--alpha", "0.1"]
    part = demur("calibrate", "pools.jsonl", *VOTE, "--label-file", "labels.jsonl", "-o", "part.json", "--json").json
    full = demur("calibrate", "pools.jsonl", *VOTE, *alphas, "--json").json
    assert [point["threshold_key"] for point in part["points"]] == [point["threshold_key"] for point in full["points"]]
    assert part["labelled"] == len(asked)
    assert f"{len(asked)} of the 120 were labelled" in part["points"][0]["promise"]


def test_a_terminal_is_left_as_it_was_found(pools):
    terminal = Terminal("pools.jsonl", *VOTE, "-o", "labels.jsonl")
    terminal.asked()
    assert not termios.tcgetattr(terminal.master)[3] & termios.ICANON, "keys come one by one"
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.process.wait(120) == 130
    assert termios.tcgetattr(terminal.master)[3] & termios.ICANON


def test_lines_do_where_there_is_no_terminal(typed, pools):
    ran = typed(["y", "", "p", "s", "n", "what", "q", "y"], "--alpha", 0.1)
    assert ran.code == 0, ran.err
    assert [line["label"] for line in said()] == ["right", "skip", "wrong"]
    assert "— path 6:" in ran.out
    assert "2 of 120 votes labelled, 1 of them wrong, 1 skipped." in ran.out


def test_the_end_of_the_input_is_a_way_to_stop(typed, pools):
    assert typed(["y"]).code == 0
    assert typed([]).code == 0
    assert len(said()) == 1


def test_undo_goes_back_beyond_this_sitting_and_no_further_than_the_first_label(typed, pools):
    typed(["y", "n"])
    ran = typed(["u", "u", "u", "q"])
    assert ran.out.count("undone: ") == 2
    assert "Nothing was said that could be undone." in ran.out
    assert [line.get("undo", False) for line in said()] == [False, False, True, True]
    assert typed(["y"]).code == 0


def test_skipped_votes_are_asked_about_again_when_that_is_wanted(typed, pools):
    first = re.search(r"\[(sim-[\d-]+)\]", typed(["s", "y"]).out).group(1)
    assert f"[{first}]" not in typed(["q"]).out
    ran = typed(["y", "u", "u", "q"], "--skipped")
    assert f"right: {first}" in ran.out
    assert typed(["q"]).code == 0, "the file can still be read"


def test_gold_is_never_shown(typed, demur, tmp_path):
    with (tmp_path / "pools.jsonl").open("w") as stream:
        for row in range(60):
            known = {"id": f"q{row}", "question": f"What is {row}?", "gold": "TheGold", "aliases": ["TheAlias"]}
            paths = [{"answer": "x", "text": "so x", "scores": {"simulated": row}} for _ in range(3)]
            stream.write(json.dumps({**known, "paths": paths}) + "\n")
    ran = typed(["p"] * 3 + ["y"] * 60, "--alpha", 0.2)
    assert "so x" in ran.out
    assert "TheGold" not in ran.out + ran.err
    assert "TheAlias" not in ran.out + ran.err


def test_pools_without_gold_can_be_labelled_calibrated_and_decided(demur, typed, pools):
    bare = [json.loads(line) for line in pools.read_text().splitlines()]
    for record in bare:
        record.pop("gold", None)
    pools.write_text("".join(json.dumps(record) + "\n" for record in bare))
    typed(["y"] * 60, "--alpha", 0.1)
    ran = demur("calibrate", "pools.jsonl", *VOTE, "--label-file", "labels.jsonl", "-o", "policy.json")
    assert ran.code == 0, ran.err
    assert "60 of 120 calibration questions are labelled, and the others count as wrong" in ran.out
    assert "Vote accuracy without abstaining" not in ran.out
    assert demur("decide", "pools.jsonl", "--policy", "policy.json").code == 0
    ran = demur("report", "pools.jsonl", "--policy", "policy.json", "-o", "report.html", "--no-texts")
    assert ran.code == 0, ran.err
    assert "60 of 120 calibration questions are labelled" in ran.out


def test_a_report_goes_by_the_people_who_labelled_and_not_by_gold(demur, typed, pools):
    typed(["y"] * 60, "--alpha", 0.1)
    assert demur("calibrate", "pools.jsonl", *VOTE, "--label-file", "labels.jsonl", "-o", "policy.json").code == 0
    assert demur("report", "pools.jsonl", "--policy", "policy.json", "-o", "report.html").code == 0
    ran = demur("audit", "pools.jsonl", "--policy", "policy.json")
    assert ran.code == 2
    assert "give --errors and --of" in ran.err


def test_what_comes_next_can_be_pasted(typed, pools):
    ran = typed(["y"] * 20, "--alpha", 0.1, "--sizes-by-chance")
    following = next(line for line in ran.out.splitlines() if line.startswith("Next: ")).removeprefix("Next: ")
    words = shlex.split(following)[1:]
    assert "--sizes-by-chance" in words
    finished = subprocess.run([sys.executable, "-m", "demur", *words], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_a_sheet_goes_out_and_comes_back(demur, typed, pools, right):
    typed([], "--alpha", 0.1, "--out-sheet", "queue.jsonl", "--first", 50)
    with open("queue.jsonl") as stream:
        rows = [json.loads(line) for line in stream]
    assert len(rows) == 50
    for row in rows:
        row["verdict"] = "right" if right[row["id"]] else "wrong"
    with open("queue.jsonl", "w") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    ran = typed([], "--in-sheet", "queue.jsonl", "--by", "tool", "--json")
    assert (ran.json["read"], ran.json["labelled"]) == (50, 50)
    assert {line["by"] for line in said()} == {"tool"}


def test_status_is_told_without_a_question(typed, pools):
    typed(["y", "n"], "--alpha", 0.05, "--alpha", 0.1)
    facts = typed(["y"], "--json").json
    assert (facts["n"], facts["labelled"], facts["wrong"], facts["done"]) == (120, 2, 1, False)
    assert [point["alpha"] for point in facts["points"]] == [0.05, 0.1]
    assert [point["errors_to_find"] for point in facts["points"]] == [5, 11]
    assert len(said()) == 2


def test_a_smoothed_rank_is_the_one_drawn_before_the_first_label(demur, typed, pools):
    typed(["y"] * 10, "--alpha", 0.1, "--smoothed")
    with open("labels.jsonl") as stream:
        stored = json.loads(stream.readline())["guarantees"][0]
    seeds = [
        demur("calibrate", "pools.jsonl", *VOTE, "--label-file", "labels.jsonl", *flags, "--json").json["points"][0][
            "seed"
        ]
        for flags in ([], ["--smoothed", "--alpha", 0.1], ["--smoothed", "--alpha", 0.1, "--seed", 5])
    ]
    assert seeds == [stored["seed"]] * 3
    ran = demur("calibrate", "pools.jsonl", *VOTE, "--label-file", "labels.jsonl", "--smoothed", "--alpha", 0.2)
    assert ran.code == 2
    assert "must before the first label" in ran.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--alpha", 0.3], "was begun for alpha = 0.1 (marginal); leave --alpha, --delta and --smoothed out"),
        (["--alpha", 0.1, "--smoothed"], "was begun for alpha = 0.1 (marginal)"),
        (["--out-sheet", "a.csv", "--in-sheet", "b.csv"], "choose one"),
        (["--first", 3], "name the sheet"),
        (["--in-sheet", "nowhere.csv"], "there is no file nowhere.csv"),
        (["--out-sheet", "queue.xls"], "a sheet is CSV or JSON lines"),
        (["--weight", "uniform"], "made another way: vote.weight is 'exponential:1.0' in labels.jsonl, 'uniform' here"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_that_names_the_way_out(typed, pools, arguments, complaint):
    typed(["y"], "--alpha", 0.1)
    ran = typed(["y"], *arguments)
    assert ran.code == 2
    assert complaint in ran.err
    assert len([line for line in ran.err.splitlines() if line.startswith("error:")]) == 1
    assert len(said()) == 1


def test_labels_of_another_run_are_refused(demur, typed, pools):
    typed(["y"], "--alpha", 0.1)
    assert demur("simulate", "-o", "pools.jsonl", "-n", 120, "-m", 6, "--seed", 4).code == 0
    ran = typed(["y"])
    assert ran.code == 2
    assert "labels for another queue" in ran.err


def test_calibrate_takes_labels_from_one_place(demur, typed, pools):
    typed(["y"], "--alpha", 0.1)
    for flags in (["--gold-tolerance", 0.1], ["--partly-labelled"], ["--correct", "ok"]):
        ran = demur("calibrate", "pools.jsonl", *VOTE, "--label-file", "labels.jsonl", *flags)
        assert ran.code == 2
        assert "--label-file holds the labels" in ran.err
    ran = demur("calibrate", "pools.jsonl", *VOTE, "--label-file", "labels.jsonl", "--hold-out", 0.5)
    assert ran.code == 2
    assert "leave --hold-out out" in ran.err


def test_pools_of_which_some_have_gold_are_calibrated_if_that_is_said(demur, pools):
    records = [json.loads(line) for line in pools.read_text().splitlines()]
    for record in records[::4]:
        record.pop("gold", None)
    pools.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert demur("calibrate", "pools.jsonl", *VOTE).code == 2
    ran = demur("calibrate", "pools.jsonl", *VOTE, "--partly-labelled", "--alpha", 0.1, "--json")
    assert ran.code == 0, ran.err
    without = sum("gold" not in record for record in records)
    assert ran.json["labelled"] == 120 - without


def test_sums_of_the_embedded_model_are_labelled_by_hand_without_any_gold(demur, tmp_path):
    """From a model to a policy: somebody who can add says which votes are right, and is interrupted once."""
    sampled = ["sample", "builtin:addition", "--limit", 12, "-m", 3, "--task", "math", "-o", "run.db"]
    assert demur(*sampled, "--model", "smollm2-135m-instruct").code == 0
    arguments = ["run.db", "--tie-break", "jitter:0", "--alpha", "0.2", "-o", "labels.jsonl"]
    terminal, asked = Terminal(*arguments), 0
    while (found := terminal.read_until(r"What is (\d+) \+ (\d+)\?|votes labelled,")).group(1):
        answer = terminal.read_until(r"Answer: (.*?)   ").group(1)
        terminal.read_until(r"right\?  y right")
        is_right = answer.split()[-1] == str(int(found.group(1)) + int(found.group(2)))
        terminal.press("y" if is_right else "n")
        terminal.read_until(r"\n(right|wrong): ")
        asked += 1
        if asked == 2:
            terminal.kill()
            terminal = Terminal(*arguments)
    assert terminal.process.wait(120) == 0
    flags = ["--tie-break", "jitter:0", "--alpha", 0.2, "--json"]
    part = demur("calibrate", "run.db", *flags, "--label-file", "labels.jsonl").json
    full = demur("calibrate", "run.db", *flags).json
    assert part["points"][0]["threshold_key"] == full["points"][0]["threshold_key"]
    assert part["labelled"] <= 12
