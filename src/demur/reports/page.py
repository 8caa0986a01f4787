"""The page itself: one HTML file with its style, script and data inside.

It loads nothing, and nothing in its data can become markup.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from demur.files.strict_json import as_json
from demur.policy.policy import Policy
from demur.pools.source import PoolSource
from demur.pools.voted_pools import VotedPools
from demur.reports.facts import report_facts
from demur.reports.questions import MOST_LISTED

_SCRIPT = (
    "rule.js", "text.js", "page.js", "plot.js", "charts.js", "scores.js", "groups.js", "labels.js", "question.js",
    "table.js",
)  # fmt: skip
"""The parts of the page's one script, in the order in which they define what the later ones use."""


def report_page(
    source: PoolSource,
    voted: VotedPools,
    policy: Policy,
    *,
    title: str,
    texts: bool = True,
    most: int = MOST_LISTED,
) -> str:
    """The report on voted pools under a policy, as HTML."""
    return page_of(report_facts(source, voted, policy, title=title, texts=texts, most=most))


def page_of(facts: dict[str, Any]) -> str:
    """The report as HTML."""
    before, behind = _template()
    return before + _script_safe(as_json(facts, ensure_ascii=False, separators=(",", ":"))) + behind


@cache
def _template() -> tuple[str, str]:
    """What stands before and behind the data: the page with its style and its script, and no other can run in it."""
    script = "\n".join(_part(name) for name in _SCRIPT)
    page = _part("page.html").replace("@@STYLE@@\n", _part("style.css")).replace("@@SCRIPT@@\n", script)
    for element in ("style", "script"):
        page = page.replace(
            f"@@{element.upper()}-HASH@@", _hash(page.split(f"<{element}>")[1].split(f"</{element}>")[0])
        )
    before, _, behind = page.partition("@@DATA@@")
    return before, behind


def _hash(content: str) -> str:
    """The name by which a page's security policy lets in what stands between two tags."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _part(name: str) -> str:
    return resources.files("demur.reports").joinpath(name).read_text(encoding="utf-8")


def _script_safe(text: str) -> str:
    """JSON that cannot end the element it stands in, whatever a model wrote."""
    escapes = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for sign, escape in escapes.items():
        text = text.replace(sign, escape)
    return text.encode("utf-8", "replace").decode()
