"""The report as people in Python have it: made in one line, shown in a notebook, saved or opened."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from demur.calibration import Level
from demur.errors import InvalidValue
from demur.files.atomic import atomic_file
from demur.pipeline.sources import read_pools
from demur.policy.calibrate import calibrate
from demur.policy.policy import Policy
from demur.pools.fields import FieldChoice
from demur.pools.label_rule import LabelRule
from demur.pools.labels import labelled_rows, without_gold
from demur.pools.source import PoolSource, vote_pools
from demur.pools.voted_pools import VotedPools
from demur.reports.page import report_page
from demur.reports.questions import MOST_LISTED

_HEIGHT = 640


@dataclass(frozen=True)
class Report:
    """One self-contained page."""

    title: str
    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; the file appears only when it is whole."""
        with atomic_file(path) as unfinished:
            unfinished.write_text(self.html, encoding="utf-8")
        return Path(path)

    def open(self) -> Path:
        """Show the page in a browser, from a file among the temporary ones."""
        page = self.save(Path(tempfile.mkdtemp(prefix="demur-")) / "report.html")
        webbrowser.open(page.as_uri())
        return page

    def _repr_html_(self) -> str:
        # Its scripts run in a frame without an origin: they see nothing of the notebook.
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.html)}" title="{escape(self.title)}" '
            f'style="width:100%;height:{_HEIGHT}px;border:1px solid #ced4da"></iframe>'
        )


def report(
    source: Any,
    policy: Policy | None = None,
    *,
    voted: VotedPools | None = None,
    score: str | None = None,
    alpha: Sequence[Level] = (0.05, 0.1),
    correct: str | LabelRule | None = None,
    hold_out: float = 0.5,
    seed: int = 0,
    title: str | None = None,
    texts: bool = True,
    listed: int = MOST_LISTED,
) -> Report:
    """The report on pools under a policy: what the score is worth, what to expect, and every question.

    `source` is what `read_pools` gives, or takes. Without a policy, the pools are voted on with `score`, and one is
    calibrated on a part of them and shown on the rest. `voted` are the votes, where you have them already.
    Of more than `listed` questions, the page lists the surest wrong ones and others drawn at random.
    """
    pools = source if isinstance(source, PoolSource) else read_pools(source, texts=texts)
    named = Path(source).name if isinstance(source, (str, os.PathLike)) else "Report"
    if policy is None:
        voted = voted or vote_pools(pools, FieldChoice(score=score), correct=correct)
        policy = calibrate(voted, alpha=list(alpha), hold_out=hold_out, seed=seed)
    elif not isinstance(policy, Policy):
        raise InvalidValue(
            f"a report shows one policy, got a {type(policy).__name__}",
            "give the policy of one stage, or audit a cascade",
        )
    elif voted is None:
        if policy.labels.people and correct is None:  # gold may say otherwise than they did
            pools = replace(pools, pools=without_gold(pools.pools))
        labelled = correct is not None or len(labelled_rows(pools.pools)) == len(pools.pools)
        voted = policy.vote(pools, labelled=labelled, correct=correct)
        policy.check(voted.votes)
    told = title or named
    return Report(told, report_page(pools, voted, policy, title=told, texts=texts, most=listed))
