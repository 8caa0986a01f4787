"""Policies that offer answer sets on abstaining: what they promise, refuse, store and tell."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom

import demur as dm
from demur.calibration.answer_sets import right_places
from demur.descriptions import digest
from demur.errors import InvalidValue, LabelMismatch, PolicyFileError
from demur.policy.set_notes import set_note
from demur.pools.source import PoolSource
from demur.records import Path, Pool, Problem

WANTED = dm.AnswerSets(0.2, share=0.4)


def voted(n, seed, *, n_paths=12, **known):
    """Votes with ids of their own, and the right answers beside them."""
    pools = dm.simulate_pools(n, n_paths=n_paths, seed=seed)
    names = [f"{seed}-{row}" for row in range(n)]
    return dm.VotedPools.of(dm.vote(pools.answers, pools.scores, ids=names), gold=pools.gold, **known)


@pytest.fixture(scope="module")
def policy():
    return dm.calibrate(voted(500, 1), alpha=[0.02, 0.1], answer_sets=WANTED)


@pytest.fixture(scope="module")
def new():
    return voted(300, 2)


def test_sets_are_of_questions_that_set_no_threshold_and_that_the_policy_abstains_from(policy):
    given = voted(500, 1)
    apart = given.split(hold_out=0.4, seed=0)
    assert policy.n == 300 == len(apart.calibration)
    plain = dm.calibrate(given.take(apart.calibration), alpha=[0.02, 0.1])
    assert [rule.threshold_key for rule in policy.points] == [rule.threshold_key for rule in plain.points]
    kept = given.take(apart.test)
    for rule, sets in zip(policy.points, policy.sets, strict=True):
        rows = np.flatnonzero(~rule.answers(kept.votes.cases))
        assert (sets.questions, sets.n) == (200, len(rows))
        assert sorted(right_places(kept, rows)) == np.repeat(sets.by_size[12].levels, sets.by_size[12].counts).tolist()


def test_problems_of_both_parts_count_as_seen(policy):
    given = voted(500, 1)
    assert len(policy.seen.rows(given.names)) == 500
    with pytest.raises(dm.errors.CalibrationLeak):
        dm.audit_policy(policy, given)


def test_deciding_one_pool_is_deciding_it_within_a_table_sets_included(policy, new):
    drawn = dm.simulate_pools(300, n_paths=12, seed=2)
    for alpha in (0.02, 0.1):
        table = policy.decide_votes(new.votes, alpha=alpha)
        offered = [decision.answer_set for decision in table]
        assert offered == table.answer_sets
        assert sum(held is not None for held in offered) == (~table.answered).sum() > 20
        for row in range(100):
            one = policy.decide(drawn.answers[row], drawn.scores[row], alpha=alpha, id=f"2-{row}")
            assert one == table[row]


def test_a_decision_says_which_statement_holds(policy, new):
    decided = policy.decide_votes(new.votes)
    answered, abstained = (int(np.flatnonzero(decided.answered == said)[0]) for said in (True, False))
    assert decided[answered].answer_set is None
    assert "answer set" not in decided[answered].explanation
    told = decided[abstained].explanation
    assert "the probability of answering it wrongly is at most 0.02" in told
    assert told.endswith(
        f"Given that the policy abstains from a new question, exchangeable with the {policy.sets[0].n} calibration "
        "questions that it abstained from and that set no threshold, the probability that its answer set holds a right "
        "answer is at least 0.8, averaged over calibration sets."
    )
    assert set_note(policy, policy.point()) in told
    assert set_note(policy, policy.point()) in policy.summary()


def test_an_answer_set_begins_with_the_winner(policy, new):
    decided = policy.decide_votes(new.votes)
    for row in np.flatnonzero(~decided.answered)[:50].tolist():
        held, vote = decided[row].answer_set, new.votes[row]
        assert held[0] == vote.answer
        assert list(held) == list(vote.tally)[: len(held)]


def test_tables_have_a_column_of_sets_and_one_that_says_whether_they_hold_other(policy, new):
    columns = policy.decide_votes(new.votes).columns()
    answered = columns["answered"]
    assert [held is None for held in columns["answer_set"]] == answered.tolist()
    assert not columns["or_other"].any()
    frame = policy.decide_votes(new.votes).to_frame("pandas")
    assert {"answer_set", "or_other"} <= set(frame.columns)
    assert "answer_set" not in dm.calibrate(voted(50, 3), alpha=0.1).decide_votes(new.votes).columns()


def test_a_batch_gives_no_sets_and_says_so(policy, new):
    chosen = policy.select(new, fdr=0.1)
    row = int(np.flatnonzero(~chosen.answered)[0])
    assert chosen[row].answer_set is None
    assert "No answer set: a batch gives no answer sets" in chosen[row].explanation
    assert any(note.startswith("a batch gives no answer sets") for note in chosen.notes())
    assert "answer_set" not in chosen.columns()


# --- labels ------------------------------------------------------------------------------------------------------


def pools_of(n, seed, gold=True):
    drawn = dm.simulate_pools(n, n_paths=8, seed=seed).pools()
    if gold:
        return drawn
    made = []
    for pool in drawn:
        paths = [replace(p, extra={"fine": p.answer == pool.problem.gold[0]}) for p in pool.paths]
        made.append(Pool(replace(pool.problem, gold=()), tuple(paths)))
    return made


def test_ready_made_labels_of_paths_tell_what_gold_does():
    by_gold = dm.vote_pools(PoolSource(pools_of(300, 5)), dm.FieldChoice())
    by_field = dm.vote_pools(PoolSource(pools_of(300, 5, gold=False)), dm.FieldChoice(), correct="fine")
    made = [dm.calibrate(each, alpha=0.1, answer_sets=WANTED) for each in (by_gold, by_field)]
    assert made[0].sets[0].document() == made[1].sets[0].document()
    assert made[0].sets[0].n > 10
    assert set_note(made[1], made[1].point()).endswith("Wrong means wrong by the field 'fine' of the paths.")


def test_labels_of_votes_alone_do_not_tell_which_answer_is_right():
    votes = dm.vote(dm.simulate_pools(100, n_paths=8, seed=3).answers)
    for labels, known in (([True] * 100, {}), ([True] * 50 + [None] * 50, {"partly_labelled": True})):
        with pytest.raises(InvalidValue, match="answer sets need to know which answer is right where the vote's is"):
            dm.calibrate(votes, labels, alpha=0.1, answer_sets=WANTED, **known)


def test_pools_of_which_some_have_no_gold_do_not_calibrate_sets():
    drawn = pools_of(60, 5)
    drawn[7] = Pool(replace(drawn[7].problem, gold=()), drawn[7].paths)
    given = dm.vote_pools(PoolSource(drawn), dm.FieldChoice(), partly_labelled=True)
    with pytest.raises(InvalidValue, match="give gold for all problems, or leave answer_sets out"):
        dm.calibrate(given, alpha=0.1, partly_labelled=True, answer_sets=WANTED)


def test_several_right_answers_are_covered_by_any_of_them():
    """Every pool has x four times, y three times and z once; where both y and z are right, y counts."""
    pools = [list("xxxxyyyz")] * 60
    for gold, cut in ((["y", "z"], 9 / 32), (["z"], 1 / 32), ([["z", "q"]] * 60, 1 / 32)):
        accepted = gold if len(gold) == 60 else [gold] * 60
        given = dm.VotedPools.of(dm.vote(pools), gold=accepted)
        assert dm.calibrate(given, alpha=0.1, answer_sets=WANTED).sets[0].cut_of(8) == cut


def test_weighted_questions_and_what_is_no_request_are_refused():
    pools = dm.simulate_pools(60, n_paths=8, seed=3)
    weighted = dm.vote(pools.answers, importance=np.ones(60))
    given = dm.VotedPools.of(weighted, gold=pools.gold)
    with pytest.raises(InvalidValue, match="these have weights for others"):
        dm.calibrate(given, alpha=0.1, answer_sets=WANTED)
    with pytest.raises(InvalidValue, match=r"answer_sets must be an AnswerSets object, got 0\.1"):
        dm.calibrate(voted(60, 3), alpha=0.1, answer_sets=0.1)
    with pytest.raises(InvalidValue, match="leaves none for thresholds or none for sets"):
        dm.calibrate(voted(2, 3), alpha=0.1, answer_sets=dm.AnswerSets(0.1, share=0.1))


# --- units, sizes, held-out problems -----------------------------------------------------------------------------


def test_clusters_stay_together_and_one_of_each_counts():
    drawn = dm.simulate_pools(300, n_paths=8, seed=4)
    clusters = [f"c{row // 3}" for row in range(300)]
    votes = dm.vote(drawn.answers, ids=[str(row) for row in range(300)])
    given = dm.VotedPools.of(votes, gold=drawn.gold, clusters=clusters)
    policy = dm.calibrate(given, alpha=0.1, answer_sets=WANTED)
    assert (policy.n, policy.sets[0].questions, policy.unit) == (60, 40, "cluster")
    assert "one question of a new cluster" in set_note(policy, policy.point())


def test_held_out_problems_are_the_same_with_sets_and_without():
    given = voted(400, 6)
    plain, with_sets = (dm.calibrate(given, alpha=0.1, hold_out=0.5, answer_sets=sets) for sets in (None, WANTED))
    assert plain.seen.rows(given.names) == with_sets.seen.rows(given.names)
    assert (plain.n, with_sets.n, with_sets.sets[0].questions) == (200, 120, 80)


def mixed(n, seed):
    drawn = dm.simulate_pools(n, n_paths=12, seed=seed)
    pools = [row[: 6 if at % 3 else 12].tolist() for at, row in enumerate(drawn.answers)]
    keys = [[None if a < 0 else f"a{a}" for a in pool] for pool in pools]
    votes = dm.vote(keys, ids=[f"{seed}-{row}" for row in range(n)])
    return dm.VotedPools.of(votes, gold=[f"a{right}" for right in drawn.gold])


def test_pools_of_different_sizes_have_a_cut_each_unless_sizes_vary_by_chance():
    given = mixed(600, 7)
    policy = dm.calibrate(given, alpha=0.05, answer_sets=WANTED)
    (sets,) = policy.sets
    assert list(sets.by_size) == [6, 12]
    assert sets.cut_of(6) != sets.cut_of(12)
    assert "with 6 paths that it abstained from" in set_note(policy, policy.point())
    together = dm.calibrate(given, alpha=0.05, answer_sets=WANTED, sizes_by_chance=True).sets[0]
    assert together.cut_of(6) == together.cut_of(12)
    assert together.n == together.evidence_of(6).n
    audit = dm.audit_policy(policy, mixed(400, 8))[0].sets
    assert audit.p_value > 0.01
    assert audit.n > 50


def test_too_few_abstained_questions_promise_nothing():
    policy = dm.calibrate(voted(100, 3), alpha=0.02, answer_sets=dm.AnswerSets(0.02))
    assert policy.sets[0].needed == 49
    decided = policy.decide_votes(voted(100, 4).votes)
    row = int(np.flatnonzero(~decided.answered)[0])
    assert decided[row].answer_set is None
    assert "No answer set: of the 30 calibration questions kept for sets" in decided[row].explanation
    assert "need 49" in decided[row].explanation
    assert decided.set_note() == f"none of the {(~decided.answered).sum()} questions abstained from has an answer set."
    audit = dm.audit_policy(policy, voted(100, 4))[0].sets
    assert (audit.n, audit.without_set) == (0, (~decided.answered).sum())
    assert audit.verdict == "No answer set was promised for any of them."


@pytest.mark.filterwarnings("ignore::demur.errors.InfeasibleWarning")
def test_a_policy_that_abstains_always_covers_all_questions():
    policy = dm.calibrate(voted(200, 3), alpha=0.001, answer_sets=WANTED)
    assert policy.sets[0].n == policy.sets[0].questions == 80
    audit = dm.audit_policy(policy, voted(400, 4))[0].sets
    assert audit.n == 400
    assert audit.coverage > 0.7


def test_a_pool_with_a_path_without_a_score_has_no_set_and_counts_for_none():
    drawn = dm.simulate_pools(300, n_paths=8, seed=9).pools()
    lacking = [
        replace(drawn[row], paths=(replace(drawn[row].paths[0], scores={}), *drawn[row].paths[1:])) for row in (0, 1)
    ]
    fields = dm.FieldChoice(score="simulated", unscored="drop")
    given = dm.vote_pools(PoolSource([*lacking, *drawn[2:]]), fields)
    policy = dm.calibrate(given, alpha=0.05, answer_sets=WANTED)
    assert (policy.n + policy.sets[0].questions, policy.unscored) == (298, 2)
    decided = policy.decide_votes(given.votes)
    assert decided[0].answer_set is None
    assert "answer set" not in decided[0].explanation


def test_a_decision_in_a_notebook_names_the_answers_of_its_set(policy, new):
    decided = policy.decide_votes(new.votes)
    row = int(np.flatnonzero(~decided.answered)[0])
    held = ", ".join(map(str, decided[row].answer_set))
    assert f"Abstained; answer set: {held}" in decided[row]._repr_html_()


# --- the audit ---------------------------------------------------------------------------------------------------


def test_an_audit_counts_sets_that_miss_under_their_exact_law(policy, new):
    found = dm.audit_policy(policy, new)
    for point, sets in zip(found, policy.sets, strict=True):
        decided = policy.decide_votes(new.votes, alpha=point.rule.alpha)
        gold = dm.simulate_pools(300, n_paths=12, seed=2).gold
        rows = np.flatnonzero(~decided.answered).tolist()
        missed = sum(gold[row] not in decided[row].answer_set for row in rows)
        law = sets.law_of(12)
        assert (point.sets.n, point.sets.missed, point.sets.alpha) == (len(rows), missed, 0.2)
        exact = betabinom(len(rows), law.k, law.n + 1 - law.k).sf(missed - 1)
        assert point.sets.p_value == pytest.approx(exact)
        assert point.sets.mean_size == np.mean([len(decided[row].answer_set) for row in rows])
        assert point.document()["answer_sets"]["coverage"] == 1 - missed / len(rows)
        assert point.sets.verdict.startswith("Consistent with what is promised of answer sets")
    assert {"set_coverage", "mean_set_size"} <= set(found.columns())


def test_an_audit_of_other_questions_finds_sets_that_miss_too_often(policy, new):
    drawn = dm.simulate_pools(300, n_paths=12, seed=2)
    moved = dm.VotedPools.of(new.votes, gold=(drawn.gold + 1) % 8)
    found = dm.audit_policy(policy, moved)[0].sets
    assert found.p_value < 1e-6
    assert found.verdict.startswith("Not consistent with what is promised of answer sets")


def test_an_audit_by_labels_of_votes_alone_says_nothing_of_sets(policy, new):
    audit = dm.audit_policy(policy, new.votes, new.correct)
    assert audit[0].sets is None
    assert "answer_sets" not in audit[0].document()


# --- files -------------------------------------------------------------------------------------------------------


def test_a_policy_with_sets_survives_its_file(policy, new, tmp_path):
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    assert [sets.document() for sets in loaded.sets] == [sets.document() for sets in policy.sets]
    assert loaded.decide_votes(new.votes).answer_sets == policy.decide_votes(new.votes).answer_sets
    assert loaded.summary() == policy.summary()


def test_a_file_without_sets_has_no_word_of_them(tmp_path):
    dm.calibrate(voted(60, 3), alpha=0.1).save(tmp_path / "policy.json")
    assert "answer_sets" not in json.loads((tmp_path / "policy.json").read_text())
    assert dm.Policy.load(tmp_path / "policy.json").sets == ()


def rows_of(document):
    return document["answer_sets"]["points"][0]["12"]["places"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d["answer_sets"].update(alpha=0.3), "the cut of its answer sets does not follow from its evidence"),
        (lambda d: d["answer_sets"].update(alpha=1.5), "the alpha of answer sets must lie strictly between 0 and 1"),
        (lambda d: d["answer_sets"].update(alpha=[0.1]), "the alpha of `answer_sets` must be a number"),
        (lambda d: d["answer_sets"].pop("alpha"), "the alpha of `answer_sets` must be a number"),
        (lambda d: d["answer_sets"].update(questions=-1), "needs how many questions were kept"),
        (lambda d: d["answer_sets"].update(questions=3), "does not follow from its evidence"),
        (lambda d: d["answer_sets"].update(points=[]), "an entry per operating point"),
        (lambda d: d["answer_sets"].update(points={}), "`points` must be a list"),
        (lambda d: d.update(answer_sets=[]), "`answer_sets` must be an object"),
        (lambda d: d.update(answer_sets=None), "`answer_sets` must be an object"),
        (lambda d: d["answer_sets"]["points"].__setitem__(0, []), "must be given by number of paths"),
        (lambda d: d["answer_sets"]["points"][0].update({"x": {}}), "must be given by number of paths"),
        (lambda d: d["answer_sets"]["points"][0].update({"0": {}}), "must be given by number of paths"),
        (lambda d: d["answer_sets"]["points"][0].update({"9": {}}), "must be given by number of paths"),
        (lambda d: d["answer_sets"]["points"][0].update({"14": {}}), "need the places of right answers"),
        (lambda d: d["answer_sets"]["points"][0]["12"].update(cut=0.0), "does not follow from its evidence"),
        (lambda d: d["answer_sets"]["points"][0]["12"].update(places="x"), "need the places of right answers"),
        (lambda d: d["answer_sets"]["points"][0]["12"].update(places=[]), "need the places of right answers"),
        (lambda d: d["answer_sets"]["points"][0]["12"].update(more=1), "does not follow from its evidence"),
        (lambda d: rows_of(d).reverse(), "each place once and in order"),
        (lambda d: rows_of(d)[0].append(1), "must hold a place and a count"),
        (lambda d: rows_of(d)[0].__setitem__(0, -0.5), "must hold a place and a count"),
        (lambda d: rows_of(d)[0].__setitem__(0, 1.5), "must hold a place and a count"),
        (lambda d: rows_of(d)[0].__setitem__(0, "1"), "must hold a place and a count"),
        (lambda d: rows_of(d)[0].__setitem__(1, 0), "whole numbers > 0"),
        (lambda d: rows_of(d)[0].__setitem__(1, 1.5), "whole numbers > 0"),
        (lambda d: rows_of(d)[0].__setitem__(1, True), "whole numbers > 0"),
    ],
)
def test_edited_sets_are_refused_even_with_a_fresh_digest(policy, tmp_path, change, complaint):
    path = tmp_path / "policy.json"
    policy.save(path)
    document = json.loads(path.read_text())
    change(document)
    document.pop("digest")
    document["digest"] = digest(document)
    path.write_text(json.dumps(document))
    with pytest.raises(PolicyFileError, match=complaint) as refused:
        dm.Policy.load(path)
    assert "\n" not in str(refused.value)


def test_answers_of_a_set_are_written_as_the_pool_writes_them(tmp_path):
    """Keys of a file are classes; a set shows the spelling of the pool, and an answer may be spelled OTHER."""
    pools = []
    for row in range(80):
        answers = ["1/2", "0.50", "OTHER", "3", "OTHER", "0.5"] if row % 2 else ["7"] * 6
        right = "OTHER" if row % 4 == 1 else "1/2" if row % 2 else "7"
        pools.append(Pool(Problem(f"q{row}", f"Question {row}?", (right,)), tuple(map(Path, answers))))
    given = dm.vote_pools(PoolSource(pools), dm.FieldChoice())
    policy = dm.calibrate(given, alpha=0.05, answer_sets=WANTED)
    policy.save(tmp_path / "policy.json")
    held = dm.Policy.load(tmp_path / "policy.json").decide(["0.5", "OTHER", "OTHER", "1/2", "0.50", "3"]).answer_set
    assert len(held) in (2, 3)
    assert held[1] == "OTHER"
    assert held[1] is not dm.OTHER
    assert dm.OTHER not in held
    with pytest.raises(LabelMismatch):
        dm.audit_policy(
            policy, dm.vote_pools(PoolSource(pools), dm.FieldChoice(), correct=dm.LabelRule(tolerance="0.1"))
        )
