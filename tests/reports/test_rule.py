"""The page's decision rule in JavaScript against Python's: the same keys are answered, ties and infinities included."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import demur.reports
from demur.calibration import Grouped, GroupedRule, Marginal, Rule
from demur.evidence.counts import Evidence, above_all, answer_all, exceeds
from demur.evidence.laws import LawPerGroup
from demur.reports.facts import _by_size
from demur.reports.group_facts import by_kind
from demur.reports.page import page_of
from demur.voting.cases import Cases, GroupColumn

RULE = Path(demur.reports.__file__).with_name("rule.js")
CASES, KEYS = 1000, 20
CONFIDENCES = [0.0, 0.1 + 0.2, 0.3, 0.5, 2 / 3, 1.0]
SECONDARIES = [-math.inf, -1.5, -0.0, 0.0, 0.25, 1e-300]
MUTANTS = {
    "answers what ties": ("part > limit", "part >= limit"),
    "forgets what breaks ties": ("part < limit", "part <= limit"),
    "reads null in a threshold as -inf": ("bound ?? Infinity", "bound ?? -Infinity"),
    "reads null in a key as +inf": ("key[place] ?? -Infinity", "key[place] ?? Infinity"),
    "ignores the size of a pool": ("point.by_size ?", "false ?"),
    "ignores the groups of a question": ("if (point.by_kind)", "if (false)"),
    "takes the threshold of other groups": ("questions.kind[row]", "0"),
}
DRIVER = """
const { files, cases } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const decide = ({ isAnswered }) => cases.map(({ point, questions }) =>
  questions.key.map((_, row) => isAnswered(point, questions, row)));
console.log(JSON.stringify(files.map((file) => decide(require(file)))));
"""


def draw_keys(rng, width):
    """Keys with many ties on the first component, and on both."""
    columns = [rng.choice([*CONFIDENCES, rng.random()], KEYS)]
    if width == 2:
        columns.append(rng.choice([*SECONDARIES, rng.normal()], KEYS))
    return np.stack(columns, axis=1)


def draw_rule(rng, keys):
    """A rule as calibration settles it, or with a threshold that ties with a key, answers all or abstains always."""
    guarantee, width = Marginal(float(rng.choice([0.02, 0.1, 0.3]))), keys.shape[1]
    finite = keys[np.isfinite(keys[:, -1])]  # a threshold is never −inf: it is the key of a vote with an answer
    settled = guarantee.settle(Evidence.of(finite, rng.random(len(finite)) < 0.5)).threshold_key
    tied = tuple(finite[rng.integers(len(finite))].tolist())
    thresholds = [settled, tied, tied, above_all(width), answer_all(width), (tied[0], *[math.inf] * (width - 1))]
    drawn = [thresholds[place] for place in rng.integers(len(thresholds), size=3)]
    if rng.random() < 0.5:
        return Rule(guarantee, KEYS, guarantee.law(KEYS), drawn[0])
    by_size = {2: max(drawn[0], drawn[1]), 3: max(drawn[0], drawn[2])}
    return Rule(guarantee, KEYS, guarantee.law(KEYS), drawn[0], (2, 3), by_size)


def draw_groups(rng):
    """Groups that overlap, that calibration did not see, and none."""
    kinds = [(), ("a",), ("b",), ("a", "b"), ("new",), ("a", "new")]
    return GroupColumn.of(kinds[kind] for kind in rng.integers(len(kinds), size=KEYS))


def draw_grouped(rng, keys):
    """A rule per group, with or without one that stands in."""
    rules = [replace(draw_rule(rng, keys), sizes=(2, 3)) for _ in range(3)]
    pooled = rules[2] if rng.random() < 0.5 else None
    guarantee = Grouped(rules[0].guarantee, fallback="abstain" if pooled is None else "pooled")
    lowest = min(rule.lowest for rule in rules)
    by_group = dict(zip("ab", rules[:2], strict=True))
    return GroupedRule(guarantee, KEYS, LawPerGroup(), lowest, by_group=by_group, pooled=pooled)


@pytest.fixture(scope="module")
def cases():
    rng = np.random.default_rng(20)
    every_keys = [draw_keys(rng, width=1 + case % 2) for case in range(CASES)]
    rules = [draw_rule(rng, keys) if case % 3 else draw_grouped(rng, keys) for case, keys in enumerate(every_keys)]
    return [
        (rule, Cases(keys, rng.integers(2, 5, KEYS), draw_groups(rng)))  # 4 paths: never seen
        for rule, keys in zip(rules, every_keys, strict=True)
    ]


@pytest.fixture(scope="module")
def verdicts(cases, tmp_path_factory):
    """What node says of every key: with the page's own rule, and with each mutant of it."""
    if shutil.which("node") is None:
        if os.environ.get("CI"):
            pytest.fail("node is needed to test the page's decision rule, and CI has none")
        pytest.skip("node, which runs the page's decision rule, is not on this machine")
    files, source, folder = {"page": RULE}, RULE.read_text(encoding="utf-8"), tmp_path_factory.mktemp("mutants")
    for name, (right, wrong) in MUTANTS.items():
        assert source.count(right) == 1
        files[name] = folder / f"{name}.js"
        files[name].write_text(source.replace(right, wrong), encoding="utf-8")
    asked = {"files": [str(file) for file in files.values()], "cases": [as_facts(*case) for case in cases]}
    ran = subprocess.run(["node", "-e", DRIVER], input=json.dumps(asked), capture_output=True, text=True, check=True)
    return dict(zip(files, json.loads(ran.stdout), strict=True))


def as_facts(rule, cases):
    """A rule and keys as the page has them: null for what is infinite."""
    key = [[value if math.isfinite(value) else None for value in row] for row in cases.keys.tolist()]
    sizes = [2, 3, 4]
    own = by_kind(rule, cases.groups.kinds, sizes) or {"by_size": _by_size(rule, sizes)}
    questions = {"key": key, "n_paths": cases.n_paths.tolist(), "kind": cases.groups.codes.tolist()}
    return {"point": {**rule.document(), **own}, "questions": questions}


def test_every_key_is_answered_in_the_page_as_in_python(cases, verdicts):
    assert verdicts["page"] == [rule.answers(one).tolist() for rule, one in cases]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_rule_that_is_wrong_in_one_place_is_caught(cases, verdicts, mutant):
    assert verdicts[mutant] != [rule.answers(one).tolist() for rule, one in cases]


def test_the_cases_reach_every_corner(cases):
    thresholds = [rule.threshold_key for rule, *_ in cases]
    for width in (1, 2):
        assert {above_all(width), answer_all(width)} <= set(thresholds)
    ties = [
        (one.keys[:, 0] == rule.threshold, exceeds(one.keys, rule.threshold_key))
        for rule, one in cases
        if one.keys.shape[1] == 2
    ]
    assert sum(int((tied & answered).sum()) for tied, answered in ties) > 100
    assert sum(int((tied & ~answered).sum()) for tied, answered in ties) > 100


def test_the_page_holds_that_very_rule():
    assert RULE.read_text(encoding="utf-8") in page_of({})
