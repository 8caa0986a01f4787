"""The dialogue of `demur label`: a vote at a time, a key per verdict."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from demur.cli import output
from demur.cli.progress import stop_on_sigterm
from demur.pipeline.label_file import RIGHT, SKIP, WRONG, Label, LabelFile

if TYPE_CHECKING:
    from demur.calibration.labelling import LabelQueue
    from demur.pipeline.label_cards import LabelCard

KEYS = "y right · n wrong · s skip · p paths · u undo · q quit"
_SAID = {"y": RIGHT, "n": WRONG, "s": SKIP}
_END = ("", "q", "\x04")
_ESCAPED = re.compile(r"\x1b(?:\[[0-9;?]{0,20}[@-~]|O.|.)?", re.DOTALL)
"""What arrows and the like send."""
_OTHERS, _LONGEST = 8, 6000


class Dialogue:
    """Asks from the top of a queue; what was said is on the disk before the next question is asked."""

    def __init__(
        self,
        queue: LabelQueue,
        file: LabelFile,
        rows: Mapping[str, int],
        card: Callable[[int], LabelCard],
        said: list[Label],
        by: str,
    ) -> None:
        self.queue, self.file, self.rows, self.card, self.said, self.by = queue, file, rows, card, said, by
        self.asked = 0

    def run(self) -> int:
        """Go on until labels are of no use any more, or whoever labels quits; how many verdicts were given."""
        with stop_on_sigterm(), keys_pressed() as read_key:
            while (row := self.queue.next) is not None:
                card = self.card(row)
                output.say("", self.status(), "")
                show(card)
                if not self._answered(card, row, read_key):
                    break
        output.say("")
        return self.asked

    def status(self) -> str:
        """Where labelling stands, in a line."""
        told = [f"{self.queue.n_labelled} labelled, {self.queue.n_wrong} wrong"]
        for point in self.queue.progress():
            left = f"{point.errors_to_find} errors to find, about {point.labels_to_go} labels to go"
            state = left if point.errors_to_find else "done" if point.feasible else "too few votes"
            told.append(f"alpha {point.alpha:g}: answers {output.percent(point.answered)} now, {state}")
        return " · ".join(told)

    def _answered(self, card: LabelCard, row: int, read_key: Callable[[], str]) -> bool:
        """Take keys until one of them settles this vote or takes the last back; False where somebody quits."""
        output.say(f"Is {output.visible(card.winner.answer, 60)!r} right?  {KEYS}")
        while True:
            key = read_key().lower()
            if key in _END:
                return False
            if key in _SAID:
                self._say(Label.now(card.id, _SAID[key], self.by), row)
                return True
            if key == "u" and self.said:
                self._undo()
                return True
            if key == "p":
                show_paths(card)
            elif key == "u":
                output.say("Nothing was said that could be undone.")
            elif key.strip():
                output.say(KEYS)

    def _say(self, label: Label, row: int) -> None:
        self.file.append([label])
        self.said = [before for before in self.said if before.id != label.id] + [label]
        self.asked += 1
        if label.said == SKIP:
            self.queue.skip(row)
        else:
            self.queue.label(row, right=label.said == RIGHT)
        output.say(f"{label.said}: {output.visible(label.id)}")

    def _undo(self) -> None:
        last = self.said.pop()
        self.file.undo(last, self.by)
        self.queue.take_back(self.rows[last.id])
        output.say(f"undone: {output.visible(last.id)} was {last.said}")


def show(card: LabelCard) -> None:
    """A question and the answers to it."""
    for name, text in card.beside:
        output.say(f"{name}: {_cut(text)}")
    output.say(f"[{output.visible(card.id)}] {_cut(card.question)}", *map(_cut, card.options), "")
    won = card.winner
    output.say(
        f"Answer: {_cut(won.answer)}   {output.percent(won.share)} of the vote, {won.paths} of {card.n_paths} paths"
    )
    for other in card.others[:_OTHERS]:
        output.say(f"  also: {output.visible(other.answer, 80)}   {output.percent(other.share)}, {other.paths} paths")
    if len(card.others) > _OTHERS:
        output.say(f"  and {len(card.others) - _OTHERS} more")
    if without := card.n_paths - won.paths - sum(other.paths for other in card.others):
        output.say(f"  without an answer: {without} paths")


def show_paths(card: LabelCard) -> None:
    """Each path in its own words."""
    for number, path in enumerate(card.paths, start=1):
        output.say(f"— path {number}: {output.visible(path.answer, 80)}", _cut(path.text or "(no text is stored)"))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} […] {text[-_LONGEST // 2 :]}"


@contextmanager
def keys_pressed() -> Iterator[Callable[[], str]]:
    """One key at a time from a terminal; of anything else, the first letter of each line. Blank at the end."""
    if not sys.stdin.isatty():
        yield _first_letter
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    ahead: list[str] = []

    def read_key() -> str:
        sys.stdout.flush()
        while not ahead:
            try:
                typed = os.read(terminal, 64).decode(errors="replace")
            except OSError:  # the terminal went away
                return ""
            if not typed:
                return ""
            ahead.extend(_ESCAPED.sub("", typed))
        return ahead.pop(0)

    tty.setcbreak(terminal)
    try:
        yield read_key
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _first_letter() -> str:
    sys.stdout.flush()
    line = sys.stdin.readline()
    return line.strip()[:1] or "\n" if line else ""
