"""Python and the command line give the same figures: every verb beside its public function, on one file.

The file is made to tell them apart where they could differ: duplicates, clusters, ragged pools, ties, missing answers,
and rows in an order that must not matter.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict, fields

import pytest

import demur as dm
from demur.cli.policy_facts import policy_facts
from demur.evaluation.audit import Consistency
from demur.study import read_study, run_study
from demur.study.tables import FORMATS

FLAGS = ["--score", "judge", "--normaliser", "pool_z", "--tie-break", "mean_score", "--missing", "none"]
ALPHAS = ["--alpha", 0.1, "--alpha", 0.2]
CHOICE = dm.FieldChoice(score="judge", missing=("none",))


@pytest.fixture
def file(tmp_path):
    rng = random.Random(5)
    records = []
    for k in range(260):
        right = rng.random() < 0.7
        paths = []
        for _ in range(rng.choice([5, 6])):
            answer = rng.choice(["1", "1.0", "2", "none"] if right else ["2", "3", "1", "4", "none"])
            good = answer in ("1", "1.0")
            paths.append({"answer": answer, "scores": {"judge": round(rng.gauss(good, 1), 3), "other": rng.random()}})
        record = {"id": f"q{k}", "question": f"Question {k // 2 if k < 60 else k}", "gold": "1", "task": "math"}
        records.append({**record, "cluster": f"c{k // 3}" if 100 < k < 130 else None, "paths": paths})
    rng.shuffle(records)
    target = tmp_path / "pools.jsonl"
    target.write_text("".join(json.dumps(record) + "\n" for record in records))
    return target


@pytest.fixture
def source(file):
    return dm.read_pools(file)


@pytest.fixture
def voted(source):
    return dm.vote_pools(source, CHOICE, source.recipe("judge", "pool_z", None, "mean_score"))


def plain(value):
    """As JSON has it: what is not a number is null."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def test_calibrate(demur, file, voted, tmp_path):
    for hold_out in (0.0, 0.4):
        told = demur("calibrate", file, *FLAGS, *ALPHAS, "--hold-out", hold_out, "-o", "p.json", "--json").json
        policy = dm.calibrate(voted, alpha=[0.1, 0.2], hold_out=hold_out)
        assert {name: told[name] for name in policy_facts(policy)} == plain(policy_facts(policy))
        policy.save(tmp_path / "mine.json")
        assert (tmp_path / "mine.json").read_bytes() == (tmp_path / "p.json").read_bytes()


def test_evaluate(demur, file, voted):
    told = demur("evaluate", file, *FLAGS, *ALPHAS, "--splits", 30, "--seed", 3, "--json").json
    found = dm.evaluate(voted, alpha=[0.1, 0.2], splits=30, seed=3)
    for name in ("n", "duplicates", "n_cal", "splits", "seed", "accuracy", "warnings"):
        assert told[name] == plain(getattr(found, name))
    assert told["points"] == plain([point.document() for point in found.points])
    assert told["frontier"]["answered"] == found.frontier.answered.tolist()
    assert told["frontier_auc"] == found.frontier.auc
    assert (told["duplicates"], told["n"]) == (48, 212)
    (point, _) = dm.evaluate_splits({"x": voted}, alpha=[0.1, 0.2], n_cal=told["n_cal"], splits=30, seed=3)
    assert plain(point.document()) == told["points"][0]


def test_evaluate_does_not_depend_on_the_order_of_rows(voted):
    rng = random.Random(1)
    order = list(range(len(voted)))
    rng.shuffle(order)
    import numpy as np

    again = voted.take(np.array(order))
    for one, other in zip(dm.evaluate(voted, alpha=0.1).points, dm.evaluate(again, alpha=0.1).points, strict=True):
        assert one == other
    assert dm.calibrate(voted, alpha=0.1, hold_out=0.5).points == dm.calibrate(again, alpha=0.1, hold_out=0.5).points


def test_audit(demur, file, source, voted):
    demur("calibrate", file, *FLAGS, *ALPHAS, "--hold-out", 0.5, "-o", "p.json")
    told = demur("audit", file, "--policy", "p.json", "--json").json
    policy = dm.calibrate(voted, alpha=[0.1, 0.2], hold_out=0.5)
    for audit in (dm.audit_policy(policy, voted), dm.audit_policy(policy, policy.vote(source, labelled=True))):
        assert told["points"] == plain([point.document() for point in audit])
        for name in ("problems", "left_out", "duplicates", "n"):
            assert told[name] == getattr(audit, name)
        assert told["auroc"] == audit.frontier.auroc
    # The same from arrays, where clusters and questions are given apart.
    arrays = dm.audit_policy(policy, voted.votes, voted.correct, clusters=voted.clusters)
    assert [point.document() for point in arrays] == [point.document() for point in audit]
    apart = demur("audit", "p.json", "--errors", 13, "--of", 300)  # pools differ in size, and the law with them
    assert (apart.code, "a threshold for each number of paths" in apart.err) == (2, True)
    demur("calibrate", file, *FLAGS, *ALPHAS, "--hold-out", 0.5, "--sizes-by-chance", "-o", "p.json")
    two = demur("audit", "p.json", "--errors", 13, "--of", 300, "--json").json
    checks = [Consistency.of(rule, 13, 300, points=2) for rule in policy.points]
    assert [point["p_value"] for point in two["points"]] == [check.p_value for check in checks]


def test_decide(demur, file, source, voted, tmp_path):
    demur("calibrate", file, *FLAGS, *ALPHAS, "-o", "p.json")
    told = demur("decide", file, "--policy", "p.json", "--alpha", 0.2, "--json").json
    policy = dm.Policy.load(tmp_path / "p.json")
    again = policy.vote(source)
    decided = policy.decide_votes(again.votes, alpha=0.2)
    assert told["n_answered"] == int(decided.answered.sum())
    assert told["answered"] == decided.answered.mean()
    for line, decision in zip(told["decisions"], decided, strict=True):
        for name in ("id", "confidence", "threshold", "p_value", "alpha", "explanation"):
            assert line[name] == plain(getattr(decision, name))
        assert line["key"] == dict(zip(policy.recipe.names, decision.key, strict=True))
        assert line["answer"] == decision.answer
    for row, pool in enumerate(again.table.answers):
        written = [again.table.written[row].get(key) for key in pool]
        problem = source.pools[row].problem
        asked = {"id": problem.id, "question": problem}
        assert policy.decide(written, again.table.scores[row], alpha=0.2, **asked) == decided[row]


def test_score_list(demur, file, source):
    told = demur("score", file, "--list", "--missing", "none", "--json").json["scores"]
    found = dm.compare_scores(source, dm.FieldChoice(missing=("none",)))
    names = [item.name for item in fields(found[0]) if item.name != "frontier"]
    assert [{name: row[name] for name in names} for row in told] == plain(
        [{name: getattr(summary, name) for name in names} for summary in found]
    )


def test_report(demur, file, source, voted, tmp_path):
    told = demur("report", file, *FLAGS, *ALPHAS, "--hold-out", 0.5, "--title", "x", "-o", "r.html", "--json").json
    policy = dm.calibrate(voted, alpha=[0.1, 0.2], hold_out=0.5)
    assert (tmp_path / "r.html").read_text() == dm.report(source, policy, voted=voted, title="x").html
    assert told["n"] == policy.n


def test_simulate(demur, tmp_path):
    told = demur("simulate", "-o", "s.jsonl", "-n", 40, "-m", 4, "--seed", 9, "--json").json
    drawn = dm.simulate_pools(40, n_paths=4, seed=9)
    assert [pool.problem.id for pool in dm.read_pools(tmp_path / "s.jsonl").pools] == [
        p.problem.id for p in drawn.pools()
    ]
    assert told["single_path"] == dm.baselines.single_path((drawn.answers == drawn.gold[:, None]).tolist())


def test_study(demur, file, tmp_path):
    cell = f'[[cells]]\ndataset = "d"\nmodel = "m"\npools = "{file}"\nmissing = ["none"]\n'
    (tmp_path / "study.toml").write_text(f"[study]\nn_cal = 60\nsplits = 5\n{cell}")
    told = demur("study", "study.toml", "-o", "there", "--no-figures", "--json").json
    found = run_study(read_study(tmp_path / "study.toml"), figures=(), out=tmp_path / "here")
    assert told["verdict"] == found.verdict
    for table in found.tables:
        for suffix, render in FORMATS.items():
            assert (tmp_path / "there" / "tables" / f"{table.name}.{suffix}").read_text() == render(table)


def test_forecasts_are_the_public_ones(demur, file, voted):
    told = demur("calibrate", file, *FLAGS, *ALPHAS, "--json").json["points"]
    policy = dm.calibrate(voted, alpha=[0.1, 0.2])
    for point, alpha in zip(told, (0.1, 0.2), strict=True):
        expected = asdict(policy.forecast(alpha))
        assert point["forecast"] == plain({name: expected[name] for name in point["forecast"]})
