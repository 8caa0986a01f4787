"""Cascades as artifacts: what is decided and paid for, what a file keeps, and which stages do not go together."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import demur as dm
from demur.calibration.cascade import ranks_of
from demur.errors import (
    CalibrationLeak,
    InfeasibleWarning,
    InsufficientCalibration,
    InvalidValue,
    PipelineMismatch,
    PolicyFileError,
)
from demur.evidence.counts import exceeds

KEY = "0123456789abcdef0123456789abcdef"


def stage_votes(n: int, seed: int, *, accuracy: float, n_paths: int, prefix: str = "q", **known):
    """Votes on questions whose difficulty all stages share, and whether each is right."""
    hard = np.random.default_rng([1, *map(ord, prefix)]).random((n, 1))
    rng = np.random.default_rng(seed)
    good = rng.random((n, n_paths)) < np.clip(accuracy + 0.5 - hard, 0, 1)
    tempting = rng.random((n, n_paths)) < 0.5
    answers = np.where(good, 0, np.where(tempting, 1, 2 + rng.integers(0, 20, (n, n_paths))))
    ids = [f"{prefix}{row}" for row in range(n)]
    votes = dm.vote(answers, ids=ids, tie_break=dm.jitter(0), **known)
    return votes, votes.answer == 0


def stages(n: int = 300, seed: int = 0, prefix: str = "q"):
    cheap = stage_votes(n, 2 * seed, accuracy=0.45, n_paths=5, prefix=prefix)
    strong = stage_votes(n, 2 * seed + 1, accuracy=0.75, n_paths=9, prefix=prefix)
    return [dm.Stage("cheap", *cheap, cost=1), dm.Stage("strong", *strong, cost=10)]


@pytest.fixture(scope="module")
def cascade():
    return dm.calibrate_cascade(stages(), alpha=0.1)


@pytest.fixture(scope="module")
def new():
    return [stage.votes for stage in stages(200, 5, "new")], [stage.correct for stage in stages(200, 5, "new")]


# --- deciding ----------------------------------------------------------------------------------------------------


def by_hand(cascade, votes):
    """Who answers each question, read literally."""
    keys = [table.key for table in votes]
    over = [exceeds(key, stage.rule.threshold_key) for key, stage in zip(keys, cascade.stages, strict=True)]
    return [next((at for at, answers in enumerate(over) if answers[row]), -1) for row in range(len(keys[0]))]


def test_the_first_stage_above_its_threshold_answers(cascade, new):
    votes, _ = new
    decided = cascade.decide_votes(votes)
    assert decided.answered_by.tolist() == by_hand(cascade, votes)
    assert set(decided.answered_by.tolist()) == {-1, 0, 1}
    assert decided.cost.tolist() == [1.0 if who == 0 else 11.0 for who in decided.answered_by]
    for row, one in enumerate(decided):
        who = decided.answered_by[row]
        assert one.stage == (None if who < 0 else cascade.stages[who].name)
        assert one.answer == (None if who < 0 else votes[who].answer[row])
        assert one.cost == decided.cost[row]
        assert list(one.decisions) == (["cheap"] if who == 0 else ["cheap", "strong"])
        assert cascade.promise in one.explanation


def test_one_pool_is_decided_as_in_a_table_and_the_strong_stage_is_drawn_only_if_needed(cascade):
    cheap = np.random.default_rng(1).integers(0, 3, (40, 5))
    cheap[:20] = 0
    strong = np.random.default_rng(2).integers(0, 2, (40, 9))
    ids = [f"x{row}" for row in range(40)]
    decided = cascade.decide_votes([dm.vote(table, ids=ids, tie_break=dm.jitter(0)) for table in (cheap, strong)])
    drawn = []

    def draw(row):
        drawn.append(row)
        return {"answers": strong[row]}

    for row in range(40):
        one = cascade.decide([{"answers": cheap[row]}, lambda row=row: draw(row)], id=ids[row])
        assert one == decided[row]
    assert drawn == np.flatnonzero(decided.answered_by != 0).tolist()
    assert 0 < len(drawn) < 40


def test_what_is_not_drawn_yet_is_said_to_be_needed(cascade, new):
    votes, _ = new
    alone = cascade.decide_votes(votes[:1])
    full = cascade.decide_votes(votes)
    unanswered = np.flatnonzero(full.answered_by != 0)
    assert alone.needing("strong") == [votes[0].ids[row] for row in unanswered]
    assert alone.needing("cheap") == []
    some = votes[1].take(unanswered[::2])
    partly = cascade.decide_votes([votes[0], some])
    assert partly.needing("strong") == [votes[0].ids[row] for row in unanswered[1::2]]
    complete = cascade.decide_votes([votes[0], votes[1].take(unanswered)])
    assert complete.answered_by.tolist() == full.answered_by.tolist()
    assert complete.needing("strong") == []
    one = cascade.decide([{"answers": [0, 1, 2, 3, 4]}, None], id="new-one")
    assert (one.needs, one.answer, one.cost) == ("strong", None, 1.0)
    assert one.explanation.startswith("Needs the stage 'strong'")
    assert one.document()["decision"] == "needs"


def test_a_pool_that_casts_no_vote_goes_on_to_the_next_stage(cascade):
    one = cascade.decide([{"answers": np.full(5, -1)}, {"answers": np.zeros(9, dtype=int)}], id="nothing")
    assert (one.stage, one.answer) == ("strong", 0)


def test_a_pool_of_another_size_is_for_a_person(cascade):
    with pytest.raises(PipelineMismatch, match="n_paths is 5 in the policy, 4 in this pool"):
        cascade.decide([{"answers": np.zeros(4, dtype=int)}, None], id="small")
    rng, ids = np.random.default_rng(1), [f"q{row}" for row in range(60)]
    cheap = dm.vote(rng.integers(0, 3, (60, 5)).astype(str).tolist(), ids=ids, tie_break=dm.jitter(0))
    strong = dm.vote([["0"] * 9] * 60, ids=ids, tie_break=dm.jitter(0))
    pair = [dm.Stage("cheap", cheap, np.arange(60) % 2 > 0), dm.Stage("strong", strong, np.arange(60) % 3 > 0)]
    made = dm.calibrate_cascade(pair, alpha=0.3)
    smaller = dm.vote([["0"] * 5, ["0"] * 5, ["0"] * 4], ids=list("abc"), tie_break=dm.jitter(0))
    decided = made.decide_votes([smaller])
    assert (decided.answered_by[2], decided.needs[2]) == (-1, -1)
    assert any("calibration did not see" in note for note in decided.notes())
    full = made.decide_votes([smaller, dm.vote([["0"] * 9] * 3, ids=list("abc"), tie_break=dm.jitter(0))])
    assert (full.answered_by[2], full.cost[2], list(full[2].decisions)) == (-1, 5.0, ["cheap"])


def test_a_stage_without_errors_is_passed_over_and_costs_nothing():
    alone = dm.calibrate_cascade(stages(), alpha=0.1, shares=[0, 1])
    assert alone.forecast().stages[0].cost == 0
    one = alone.decide([lambda: pytest.fail("it cannot answer, so it is not drawn"), {"answers": np.zeros(9, int)}])
    assert list(one.decisions) == ["strong"]
    assert "it has none of the 30 errors" in alone.notes()[0]
    plain = dm.calibrate(stages()[1].votes, stages()[1].correct, alpha=0.1)
    assert alone.stages[1].rule.threshold_key == plain.point().threshold_key


def test_a_stage_that_is_surely_wrong_too_often_is_passed_over_too():
    first, second = stages()
    sure = dm.vote(np.ones((300, 5), int), ids=first.votes.ids, tie_break="none")
    made = dm.calibrate_cascade([dm.Stage("sure", sure, np.zeros(300, bool)), second], alpha=0.1)
    assert "wrong votes of full confidence use up its errors" in made.notes()[0]
    assert made.forecast().stages[0].cost == 0
    assert made.curve()[-1].cost == 0
    assert made.decide_votes([sure.take([0, 1])]).needing("strong") == ["q0", "q1"]


def test_many_questions_are_told_one_by_one_in_little_time(cascade):
    many = [stage.votes for stage in stages(3000, 5, "many")]
    decided = cascade.decide_votes(many)
    assert [one.id for one in decided] == many[0].ids
    assert sum(one.cost for one in decided) == pytest.approx(decided.cost.sum())


# --- what it promises and forecasts ------------------------------------------------------------------------------


def test_the_forecast_counts_what_becomes_of_calibration_questions(cascade):
    expected, votes = cascade.forecast(), [stage.votes for stage in stages()]
    right = [stage.correct for stage in stages()]
    who = by_hand(cascade, votes)
    for at, stage in enumerate(expected.stages):
        mine = [row for row, stage_number in enumerate(who) if stage_number == at]
        assert stage.answered == pytest.approx(len(mine) / 300)
        assert stage.confident_error == pytest.approx(sum(not right[at][row] for row in mine) / 300)
    assert expected.stages[1].reached == pytest.approx(sum(number != 0 for number in who) / 300)
    assert expected.cost == pytest.approx(1 + 10 * expected.stages[1].reached)
    assert expected.error_at_most == pytest.approx(30 / 301)
    assert expected.person == pytest.approx(1 - expected.answered)
    dear = dm.calibrate_cascade(stages(), alpha=0.1, person_cost=100)
    assert dear.forecast().cost == pytest.approx(expected.cost + 100 * expected.person)


def test_costs_are_numbers_of_paths_unless_told_otherwise():
    plain = dm.calibrate_cascade([dm.Stage(stage.name, stage.votes, stage.correct) for stage in stages()], alpha=0.1)
    assert [stage.cost for stage in plain.stages] == [5.0, 9.0]


def test_the_curve_goes_from_the_strong_stage_alone_to_the_cheap_one_alone(cascade):
    curve = cascade.curve()
    assert curve[0].ranks == (0, 30)
    assert curve[-1].ranks == (30, 0)
    assert curve[0].cost == 10
    assert curve[-1].cost == 1
    at = next(point for point in curve if point.ranks == (15, 15))
    assert (at.answered, at.cost) == (cascade.forecast().answered, cascade.forecast().cost)
    assert {point.alpha for point in cascade.curve(["0.05", 0.2])} == {0.05, 0.2}
    with pytest.raises(InvalidValue, match="at least 2 points"):
        cascade.curve(points=1)


def test_it_answers_more_than_the_strong_stage_at_equal_cost_and_keeps_the_promise():
    """At the cost of the cascade the strong stage can be asked a part of the questions alone, chosen blindly."""
    wrong, answered, rivals = [], [], []
    for seed in range(40):
        every = stages(500, seed, prefix=f"s{seed}-")
        cal, rest = np.arange(200), np.arange(200, 500)
        made = dm.calibrate_cascade(
            [dm.Stage(s.name, s.votes.take(cal), s.correct[cal], cost=s.cost) for s in every], alpha=0.1
        )
        decided = made.decide_votes([stage.votes.take(rest) for stage in every])
        errors = sum(((decided.answered_by == at) & ~every[at].correct[rest]).sum() for at in range(2))
        wrong.append(errors / 300)
        answered.append(decided.answered.mean())
        strong = dm.calibrate(every[1].votes.take(cal), every[1].correct[cal], alpha=0.1)
        rivals.append(strong.decide_votes(every[1].votes.take(rest)).answered.mean() * decided.cost.mean() / 10)
    spread = np.std(wrong) / np.sqrt(len(wrong))
    assert abs(np.mean(wrong) - 20 / 201) <= 4 * spread  # spent to the last error: abstaining always would fail
    assert np.mean(answered) > np.mean(rivals) + 0.05


@pytest.mark.parametrize("guarantee", [dm.HighProbability(0.1, 0.1), dm.Smoothed(0.1, 3)])
def test_other_rank_guarantees_share_their_rank(guarantee):
    made = dm.calibrate_cascade(stages(), guarantee=guarantee)
    assert [stage.rank for stage in made.stages] == ranks_of(guarantee.rank(300), made.shares)
    assert guarantee.promise(300) in made.promise
    assert "one promise for all stages" in made.promise


def test_too_few_questions_abstain_always_with_a_warning():
    with pytest.warns(InfeasibleWarning, match="5 calibration questions are too few"):
        few = dm.calibrate_cascade(stages(5), alpha=0.1)
    one = few.decide([{"answers": np.zeros(5, int)}, {"answers": np.zeros(9, int)}])
    assert one.abstained
    assert "too few calibration questions" in one.explanation
    assert [line.document()["id"] for line in few.decide_votes([stages(5)[0].votes])] == [f"q{i}" for i in range(5)]
    assert "never answers" in few.summary()
    with pytest.raises(InsufficientCalibration):
        dm.calibrate_cascade(stages(5), alpha=0.1, strict=True)


def test_three_stages_are_told_in_words(cascade):
    third = dm.Stage("huge", *stage_votes(300, 99, accuracy=0.9, n_paths=3), cost=100)
    made = dm.calibrate_cascade([*stages(), third], alpha=0.1, shares=["1/2", "1/4", "1/4"])
    assert [stage.rank for stage in made.stages] == [15, 7, 8]
    assert "a person has" in made.summary()
    assert "cheap answers above" in repr(made)
    assert made.columns()["stage"] == ["cheap", "strong", "huge"]
    assert "<table" in cascade._repr_html_()


# --- which problems ----------------------------------------------------------------------------------------------


def test_stages_in_another_order_of_rows_are_put_together(cascade):
    first, second = stages()
    order = np.random.default_rng(0).permutation(300)
    shuffled = dm.Stage("strong", second.votes.take(order), second.correct[order], cost=10)
    again = dm.calibrate_cascade([first, shuffled], alpha=0.1)
    assert [s.rule.threshold_key for s in again.stages] == [s.rule.threshold_key for s in cascade.stages]


def test_stages_that_saw_other_problems_are_refused():
    first, second = stages()
    part = dm.Stage("strong", second.votes.take(np.arange(290)), second.correct[:290])
    with pytest.raises(InvalidValue, match=r"'cheap' holds 10 problems that stage 'strong' does not, such as 'q290'"):
        dm.calibrate_cascade([first, part], alpha=0.1)
    other = stages(prefix="z")[1]
    with pytest.raises(InvalidValue, match=r"'strong' holds 300 problems that stage 'cheap' does not, such as 'z0'"):
        dm.calibrate_cascade([first, other], alpha=0.1)
    asked = [stage_votes(50, 1, accuracy=0.5, n_paths=5, questions=[f"{word} {i}?" for i in range(50)])
             for word in ("what", "who")]  # fmt: skip
    with pytest.raises(InvalidValue, match="problem 'q0' asks one thing at stage 'a' and another at stage 'b'"):
        dm.calibrate_cascade([dm.Stage("a", *asked[0]), dm.Stage("b", *asked[1])], alpha=0.1)
    nameless = [dm.vote(np.zeros((n, 3), int)) for n in (20, 21)]
    with pytest.raises(InvalidValue, match="nothing tells which is which"):
        dm.calibrate_cascade([dm.Stage(str(len(v)), v, np.ones(len(v), bool)) for v in nameless], alpha=0.1)


def test_one_question_of_each_cluster_counts():
    first, second = stages()
    clusters = [str(row // 2) for row in range(300)]
    voted = [dm.VotedPools.of(s.votes, s.correct, clusters=clusters) for s in (first, second)]
    made = dm.calibrate_cascade([dm.Stage("a", voted[0]), dm.Stage("b", voted[1])], alpha=0.1)
    assert (made.n, made.unit) == (150, "cluster")
    assert "new cluster" in made.promise


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"stages": []}, "at least two stages, got 0"),
        ({"shares": [1]}, "shares must hold one number per stage, 2"),
        ({"alpha": 1.5}, "alpha must lie strictly between 0 and 1, got 1.5"),
        ({"alpha": None}, "either alpha or guarantee"),
        ({"alpha": None, "guarantee": dm.Selective(0.1, 0.1)}, "Marginal, Smoothed or HighProbability"),
        ({"person_cost": -1}, "a cost must be a number >= 0, got -1"),
        ({"person_cost": float("inf")}, "a cost must be a number >= 0, got inf"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(change, told):
    with pytest.raises(InvalidValue, match=told) as caught:
        dm.calibrate_cascade(**{"stages": stages(), "alpha": 0.1, **change})
    assert "\n" not in str(caught.value)


def test_names_must_differ_and_labels_must_be_there():
    first, second = stages()
    with pytest.raises(InvalidValue, match="'cheap' occurs twice"):
        dm.calibrate_cascade([first, dm.Stage("cheap", second.votes, second.correct)], alpha=0.1)
    with pytest.raises(InvalidValue, match="no labels"):
        dm.calibrate_cascade([first, dm.Stage("strong", second.votes)], alpha=0.1)


def test_sizes_that_differ_need_to_vary_by_chance():
    pools = [["a"] * (3 + row % 2) for row in range(40)]
    ids = [f"q{row}" for row in range(40)]
    votes, right = dm.vote(pools, ids=ids, tie_break=dm.jitter(0)), np.arange(40) % 5 > 0
    pair = [dm.Stage("a", votes, right), dm.Stage("b", votes, right)]
    with pytest.raises(InvalidValue, match="have 3, 4 paths"):
        dm.calibrate_cascade(pair, alpha=0.2)
    made = dm.calibrate_cascade(pair, alpha=0.2, sizes_by_chance=True)
    assert made.sizes_by_chance


# --- files -------------------------------------------------------------------------------------------------------


def test_a_saved_cascade_decides_alike(cascade, new, tmp_path):
    cascade.save(tmp_path / "cascade.json", key=KEY)
    loaded = dm.Cascade.load(tmp_path / "cascade.json", key=KEY)
    votes, _ = new
    assert loaded.decide_votes(votes).answered_by.tolist() == cascade.decide_votes(votes).answered_by.tolist()
    assert loaded.promise == cascade.promise
    assert loaded.forecast() == cascade.forecast()
    assert loaded.curve() == cascade.curve()
    loaded.save(tmp_path / "again.json", key=KEY)
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "cascade.json").read_bytes()
    with pytest.raises(PolicyFileError, match="was not signed with this key"):
        dm.Cascade.load(tmp_path / "cascade.json", key=KEY[::-1])


def rewritten(path: Path, change) -> None:
    from demur.policy import file

    document = file.read(path, kind=file.CASCADE)
    change(document)
    file.write({k: v for k, v in document.items() if k not in ("format", "schema")}, path, kind=file.CASCADE)


def first_row(position, value):
    return lambda document: document["rows"][0].__setitem__(position, value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d["thresholds"][0].__setitem__(0, 0.1), "its thresholds do not follow from its votes"),
        (lambda d: d["ranks"].__setitem__(0, 16), "its ranks do not follow"),
        (lambda d: d.__setitem__("n", 7), "it says n = 7"),
        (lambda d: d["rows"].pop(), "it says n = 300"),
        (lambda d: d["shares"].__setitem__(0, "-1"), "shares must be numbers >= 0"),
        (lambda d: d["shares"].__setitem__(0, "3/4"), "do not follow"),
        (lambda d: d.__setitem__("guarantee", {"guarantee": "selective", "alpha": 0.1, "delta": 0.1}), "cannot hold"),
        (lambda d: d["stages"][0].__setitem__("cost", True), "a cost must be a number"),
        (lambda d: d["stages"][0].__setitem__("cost", None), "has no cost"),
        (lambda d: d["stages"][0].__setitem__("name", 3), "needs a name"),
        (lambda d: d["stages"][1].__setitem__("name", "cheap"), "occurs twice"),
        (lambda d: d["stages"].pop(), "at least two stages"),
        (lambda d: d["stages"][0].__setitem__("fingerprint", "x"), "fingerprint does not match"),
        (lambda d: d.__setitem__("unit", "day"), "needs sizes_by_chance and a unit"),
        (lambda d: d["calibration"].__setitem__("ids", [1]), "must hold strings"),
        (first_row(0, 1.5), r"must lie in \[0, 1\]"),
        (first_row(0, "1"), r"must lie in \[0, 1\]"),
        (first_row(1, "x"), "secondary keys"),
        (first_row(2, 2), "labels of its rows must be 0 or 1"),
        (first_row(2, True), "labels of its rows must be 0 or 1"),
        (first_row(3, 0), "numbers of paths"),
        (lambda d: d.__setitem__("rows", []), "at least one row"),
        (lambda d: d["rows"][0].pop(), "must hold 8 numbers"),
    ],
)
def test_a_file_whose_values_do_not_hold_together_is_refused(cascade, tmp_path, change, told):
    path = tmp_path / "cascade.json"
    cascade.save(path)
    rewritten(path, change)
    with pytest.raises(PolicyFileError, match=told):
        dm.Cascade.load(path)


def test_an_edited_file_is_refused_and_kinds_are_told_apart(cascade, tmp_path):
    path, policy = tmp_path / "cascade.json", tmp_path / "policy.json"
    cascade.save(path)
    path.write_text(path.read_text().replace('"cost": 10.0', '"cost": 1.0'))
    with pytest.raises(PolicyFileError, match="was changed after it was written"):
        dm.Cascade.load(path)
    cascade.save(path)
    with pytest.raises(PolicyFileError, match="This one is a cascade"):
        dm.Policy.load(path)
    dm.calibrate(stages()[0].votes, stages()[0].correct, alpha=0.1).save(policy)
    with pytest.raises(PolicyFileError, match="This one is a policy"):
        dm.Cascade.load(policy)
    assert json.loads(path.read_text())["schema"] == 1


# --- audits ------------------------------------------------------------------------------------------------------


def test_an_audit_counts_errors_of_all_stages(cascade, new):
    votes, right = new
    audit = dm.audit_cascade(cascade, [dm.VotedPools.of(v, r) for v, r in zip(votes, right, strict=True)])
    who = by_hand(cascade, votes)
    assert audit.errors == sum(who[row] >= 0 and not right[who[row]][row] for row in range(200))
    assert audit.answered == pytest.approx(np.mean([number >= 0 for number in who]))
    assert audit.cost == pytest.approx(cascade.decide_votes(votes).cost.mean())
    assert audit.p_value == cascade.rule.law.upper_tail(audit.errors, 200)
    assert audit.consistent
    assert "Consistent with the promise" in audit.verdict
    lies = [dm.VotedPools.of(v, np.zeros(200, bool)) for v in votes]
    assert not dm.audit_cascade(cascade, lies).consistent


def test_an_audit_refuses_what_calibrated_and_what_is_not_all_there(cascade, new):
    votes, right = new
    known = [dm.VotedPools.of(stage.votes, stage.correct) for stage in stages()]
    with pytest.raises(CalibrationLeak, match="300 of 300 problems calibrated"):
        dm.audit_cascade(cascade, known)
    tables = [dm.VotedPools.of(v, r) for v, r in zip(votes, right, strict=True)]
    with pytest.raises(InvalidValue, match="get to stage 'strong' and have no votes there"):
        dm.audit_cascade(cascade, tables[:1])


def test_an_audit_refuses_questions_that_only_a_later_stage_knows_to_have_calibrated():
    """The first stage has ids alone, and a copy under another id is no new question."""
    texts = [f"question {row}" for row in range(300)]

    def tables(prefix):
        cheap, right = stage_votes(300, 0, accuracy=0.45, n_paths=5, prefix=prefix)
        strong, also = stage_votes(300, 1, accuracy=0.75, n_paths=9, prefix=prefix)
        return dm.VotedPools.of(cheap, right), dm.VotedPools.of(strong, also, questions=texts)

    made = dm.calibrate_cascade(
        [dm.Stage(name, table) for name, table in zip("ab", tables("q"), strict=True)], alpha=0.1
    )
    with pytest.raises(CalibrationLeak, match="300 of 300 problems calibrated"):
        dm.audit_cascade(made, tables("copy of "))


def test_problems_that_were_held_out_are_audited():
    made = dm.calibrate_cascade(stages(), alpha=0.1, hold_out=0.5, seed=4)
    audit = dm.audit_cascade(made, [dm.VotedPools.of(stage.votes, stage.correct) for stage in stages()])
    assert (made.n, audit.n, audit.left_out) == (150, 150, 150)


# --- recorded pools ----------------------------------------------------------------------------------------------


@pytest.mark.real_data
def test_cascades_of_weak_and_strong_models_keep_the_promise_on_recorded_pools(recorded_pools):
    from demur.calibration.cascade import JointVotes
    from demur.pools.splits import repeated

    source = dm.read_pools(recorded_pools / "zeroeval_math_l5.jsonl.gz", facts=True)
    fields = dm.FieldChoice("answer_x", missing=("___",))
    names = sorted({str(path.extra["src"]) for pool in source.pools for path in pool.paths})
    cheap = {
        name for name in names if any(part in name for part in ("7B", "8B", "9b", "2b", "3B", "mini", "9B", "haiku"))
    }
    assert 5 < len(cheap) < 30

    def part(chosen):
        pools = [dm.Pool(pool.problem, tuple(p for p in pool.paths if str(p.extra["src"]) in chosen))
                 for pool in source.pools]  # fmt: skip
        some = dm.PoolSource(pools)
        return dm.vote_pools(some, fields, some.recipe(tie_break="jitter:0"))

    tables = [part(cheap), part(set(names) - cheap)]
    rows = tables[0].counted
    joint = JointVotes(*(tuple(column(t)[rows] for t in tables) for column in
                         (lambda t: t.votes.key, lambda t: t.labelled, lambda t: t.votes.n_paths)))  # fmt: skip
    calibration, test = repeated(len(rows), 200, 400, 0)
    rates = []
    for cal, rest in zip(calibration, test, strict=True):
        reached = joint.take(rest).reached(joint.take(cal).thresholds([10, 10]))
        errors = [a & ~b & ~right[rest] for a, b, right in zip(reached, reached[1:], joint.right, strict=False)]
        rates.append(sum(float(e.mean()) for e in errors))
    error = np.std(rates) / np.sqrt(len(rates))
    assert np.mean(rates) <= 20 / 201 + 4 * error
    assert np.mean(rates) > 0.08
