"""The policy: decisions as calibrated, refusals in words, files that are data and prove themselves."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demur as dm
from demur.descriptions import Description, digest
from demur.errors import (
    CalibrationLeak,
    InfeasibleWarning,
    InsufficientCalibration,
    InvalidValue,
    PipelineMismatch,
    PolicyFileError,
)
from demur.files import atomic
from demur.policy import file
from demur.records import Path, Pool, Problem, question_digest
from demur.voting.votes import vote_again


@pytest.fixture
def drawn():
    return dm.simulate_pools(400, n_paths=8, seed=1)


@pytest.fixture
def policy(drawn):
    votes = dm.vote(drawn.answers, drawn.scores, ids=range(400), score="judge", tie_break=dm.mean_score())
    return dm.calibrate(votes, votes.answer == drawn.gold, alpha=[0.1, 0.05])


def reseal(path, change):
    """Change a policy file the way someone who knows about the digest would."""
    document = json.loads(path.read_text())
    change(document)
    document.pop("digest", None)
    document["digest"] = digest(document)
    path.write_text(json.dumps(document))


def seal(document):
    document["fingerprint"] = digest(document["pipeline"])


def edit(stage, **changes):
    """Change a stage of the description, and its fingerprint with it."""

    def change(document):
        document["pipeline"].setdefault(stage, {}).update(changes)
        document["fingerprint"] = digest(document["pipeline"])

    return change


def test_deciding_one_pool_is_deciding_it_within_a_table(policy, drawn):
    fresh = dm.simulate_pools(60, n_paths=8, seed=2)
    names = [f"new-{row}" for row in range(60)]
    votes = dm.vote(fresh.answers, fresh.scores, score="judge", tie_break=dm.mean_score(), ids=names)
    for alpha in (0.05, 0.1):
        table = policy.decide_votes(votes, alpha=alpha)
        for row, expected in enumerate(table):
            how = {"alpha": alpha, "id": names[row]}
            assert policy.decide(fresh.answers[row], fresh.scores[row], **how) == expected
            assert policy.decide(fresh.answers[row].tolist(), fresh.scores[row].tolist(), **how) == expected


def test_a_decision_carries_what_a_person_needs(policy):
    decision = policy.decide([3, 3, 3, 3, 3, 3, 3, -1], [1.0] * 8, id="q")
    assert (decision.answer, decision.id, decision.alpha) == (3, "q", 0.05)
    assert decision.confidence == 0.875
    assert decision.support == {3: 7}
    assert decision.shares == {3: 0.875}
    assert 0 < decision.p_value <= 0.05
    assert not decision.abstained
    for words in ("Answered", "at most 0.05", "not a promise about this one question"):
        assert words in decision.explanation
    unsure = policy.decide([0, 1, 2, 3, 4, 5, 6, 7], [0.0] * 8)
    assert unsure.abstained
    assert "not above the threshold" in unsure.explanation
    assert "no path has an answer" in policy.decide([-1] * 8, [0.0] * 8).explanation
    weightless = policy.decide([3, *[-1] * 7], [-1000.0, *[0.0] * 7])
    assert "have no weight" in weightless.explanation


def test_the_strictest_alpha_is_the_default_and_others_must_be_held(policy):
    assert policy.point().alpha == 0.05
    assert policy.threshold == policy.point(0.05).threshold >= policy.point(0.1).threshold
    with pytest.raises(
        InvalidValue, match=r"not calibrated for alpha = 0.2; it holds 0.05 \(marginal\), 0.1 \(marginal\)"
    ):
        policy.decide([0] * 8, [0.0] * 8, alpha=0.2)


def test_votes_made_another_way_are_refused_with_the_list_of_differences(policy, drawn):
    other = dm.vote(drawn.answers[:, :4], drawn.scores[:, :4], weight=dm.exponential(2), score="reward")
    with pytest.raises(PipelineMismatch) as refused:
        policy.decide_votes(other)
    text = str(refused.value)
    for difference in (
        "score.name is 'judge' in the policy, 'reward' here",
        "vote.weight is 'exponential:1.0' in the policy, 'exponential:2.0' here",
        "vote.tie_break is ['mean_score@1', 'jitter@3:0'] in the policy, None here",
        "n_paths is 8 in the policy, 4 in pool 0",
        "these votes have none: give either when voting",
    ):
        assert difference in text
    assert len(refused.value.differences) == 5


@pytest.mark.parametrize(
    ("field", "other"),
    [("normaliser", {"normaliser": dm.normalisers.pool_z}), ("weight", {"weight": dm.exponential(3)}),
     ("tie_break", {"tie_break": dm.jitter(1)}), ("score.name", {"score": "other"}),
     ("sampling.prompt", {"upstream": Description(sampling={"prompt": "x"})})],
)  # fmt: skip
def test_each_part_of_the_pipeline_is_compared(policy, drawn, field, other):
    how = {"score": "judge", "tie_break": dm.mean_score(), **other}
    votes = dm.vote(drawn.answers, drawn.scores, ids=range(400), **how)
    for use in (policy.decide_votes, policy.p_value, policy.check):
        with pytest.raises(PipelineMismatch, match=f"{field} is"):
            use(votes)


def test_the_tie_rule_is_compared(policy, drawn):
    here = policy.description
    other = replace(here, vote={**here.vote, "tie_rule": "coin@1"})
    assert here.differences(other) == ["vote.tie_rule is 'paths-weight-key@1' in the policy, 'coin@1' here"]


@pytest.mark.parametrize("paths", [7, 9])
def test_pools_with_fewer_or_more_paths_than_calibrated_are_refused(policy, paths):
    with pytest.raises(PipelineMismatch, match=f"n_paths is 8 in the policy, {paths} in this pool"):
        policy.decide(np.zeros(paths, int), np.zeros(paths))


def test_alpha_may_be_given_in_any_form_that_prints_alike(policy):
    assert policy.point("0.1") is policy.point(0.1)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"clusters": ["c"]}, "clusters must hold one entry per vote"),
        ({"questions": ["q"] * 31}, "questions must hold one entry per vote"),
        ({"guarantee": "marginal", "alpha": None}, "guarantee must be Marginal"),
        ({"alpha": "1/0"}, "strictly between 0 and 1"),
    ],
)
def test_misuse_of_calibrate_is_named(wrong, rule):
    votes = dm.vote([["a"]] * 30)
    with pytest.raises(InvalidValue, match=rule):
        dm.calibrate(votes, [True] * 30, **{"alpha": 0.1, **wrong})


def test_a_fitted_normaliser_needs_ids_to_be_checked():
    fitted = dm.normalisers.FixedAffine.fit([1.0, 2.0], ids=["t"])
    votes = dm.vote([["a"]] * 30, [[1.0]] * 30, normaliser=fitted)
    with pytest.raises(InvalidValue, match="needs votes with ids"):
        dm.calibrate(votes, [True] * 30, alpha=0.1)


def test_another_model_is_refused_where_both_sides_name_one():
    votes = dm.vote([["a"]] * 30, upstream=Description(sampling={"model": "x", "temperature": 1}))
    policy = dm.calibrate(votes, [True] * 30, alpha=0.1)
    policy.check(dm.vote([["a"]]))
    with pytest.raises(PipelineMismatch, match="model is 'x' in the policy, 'y' here"):
        policy.check(dm.vote([["a"]], upstream=Description(sampling={"model": "y"})))


def test_keys_in_place_of_codes_are_refused():
    votes = dm.vote(np.zeros((20, 3), int))
    policy = dm.calibrate(votes, np.ones(20, bool), alpha=0.1)
    with pytest.raises((PipelineMismatch, InvalidValue)):
        policy.decide(["a", "b", "c"])


def test_a_column_breaks_ties_when_deciding_too():
    answers = [["a", "a"]] * 30
    column = np.linspace(0, 1, 30)
    policy = dm.calibrate(dm.vote(answers, tie_break=column), column > 0.2, alpha=0.1)
    assert policy.point().threshold == 1.0  # all votes tie at full confidence, and the column decides among them
    assert policy.decide(["a", "a"], tie_break=0.9).answer == "a"
    assert policy.decide(["a", "a"], tie_break=0.01).abstained
    assert "ties with the threshold" in policy.decide(["a", "a"], tie_break=0.01).explanation
    with pytest.raises(InvalidValue, match="give its value for this pool"):
        policy.decide(["a", "a"])


def test_too_few_labels_give_a_policy_that_abstains_always_and_says_what_it_needs():
    votes = dm.vote([["a", "a"]] * 5)
    with pytest.warns(InfeasibleWarning) as told:
        policy = dm.calibrate(votes, [True] * 5, alpha=0.05)
    assert [str(warning.message) for warning in told] == [
        "5 calibration questions are too few for alpha = 0.05 (marginal), which needs 19; the policy abstains always"
    ]
    assert not policy.feasible
    assert policy.threshold == 1.0
    decision = policy.decide(["a", "a"])
    assert decision.abstained
    assert "needs 19" in decision.explanation
    assert "never answers" in policy.summary()
    with pytest.raises(InsufficientCalibration, match="needs 19"):
        dm.calibrate(votes, [True] * 5, alpha=0.05, strict=True)


def test_a_warning_points_at_the_line_that_calibrates():
    with pytest.warns(InfeasibleWarning) as told:
        dm.calibrate(dm.vote([["a", "a"]] * 5), [True] * 5, alpha=0.05)
    assert [warning.filename for warning in told] == [__file__]


def test_the_seed_draws_which_problems_are_held_out():
    ids = [f"q{row}" for row in range(200)]
    votes = dm.vote([["a", "a"]] * 200, ids=ids)
    seen = {
        seed: dm.calibrate(votes, [True] * 200, alpha=0.1, hold_out=0.5, seed=seed).seen.rows(ids) for seed in (0, 1)
    }
    assert [len(rows) for rows in seen.values()] == [100, 100]
    assert seen[0] != seen[1]
    assert seen[0] == dm.calibrate(votes, [True] * 200, alpha=0.1, hold_out=0.5).seen.rows(ids)


def test_sets_that_are_all_right_or_all_wrong_are_valid_input():
    votes = dm.vote([["a", "a"]] * 30)
    sure = dm.calibrate(votes, [True] * 30, alpha=0.1)
    assert sure.decide(["a", "a"]).answer == "a"
    assert sure.threshold == 0.0
    hopeless = dm.calibrate(votes, [False] * 30, alpha=0.1)
    assert hopeless.decide(["a", "a"]).abstained
    assert "–" in hopeless.summary()


def test_high_probability_and_smoothed_policies_say_when_the_p_value_alone_would_decide_otherwise():
    rng = np.random.default_rng(0)
    answers = [["a"] * k + ["b"] * (40 - k) for k in rng.integers(21, 41, 200)]
    correct = rng.random(200) < 0.6
    votes = dm.vote(answers)
    strict = dm.calibrate(votes, correct, guarantee=dm.HighProbability(0.2, 0.05))
    loose = dm.calibrate(votes, correct, alpha=0.2)
    assert strict.threshold > loose.threshold
    between = int(40 * strict.threshold)
    decision = strict.decide(["a"] * between + ["b"] * (40 - between))
    assert decision.abstained
    assert decision.p_value <= 0.2
    assert "alone would say otherwise" in decision.explanation
    assert "alone" not in loose.decide(["a"] * between + ["b"] * (40 - between)).explanation


def test_clusters_and_repeated_questions_count_once():
    votes = dm.vote([["a", "a"]] * 6, ids=list("uvwxyz"))
    with pytest.warns(InfeasibleWarning):
        policy = dm.calibrate(
            votes, [True] * 6, alpha=0.1, clusters=["c", "c", None, None, None, None],
            questions=[None, None, "Q?", "Q? ", "R?", ""],
        )  # fmt: skip
    assert policy.n == 4
    # All of them are remembered, and so are their questions.
    digests = [None, None, question_digest(" R?"), question_digest("S?")]
    assert policy.seen.rows(["u", "v", "new", "new2"], digests) == [0, 1, 2]
    assert policy.seen.rows(["other"], None, ["c"]) == [0]
    with pytest.raises(CalibrationLeak, match=r"3 of 4.*'u'.*calibrate with hold_out=0.5"):
        policy.refuse_seen(["u", "v", "new", "new2"], [None, None, " R?", "S?"])


def test_a_policy_holds_each_guarantee_once_per_alpha_and_needs_one():
    votes = dm.vote([["a"]] * 30)
    with pytest.raises(InvalidValue, match=r"alpha = 0.1 occurs twice"):
        dm.calibrate(votes, [True] * 30, alpha=[0.1, "0.10"])
    for wrong in ({}, {"alpha": 0.1, "guarantee": dm.Marginal(0.1)}):
        with pytest.raises(InvalidValue, match="either alpha or guarantee"):
            dm.calibrate(votes, [True] * 30, **wrong)
    with pytest.raises(InvalidValue, match="at least one alpha"):
        dm.calibrate(votes, [True] * 30, alpha=[])


def test_one_alpha_may_have_several_guarantees_and_is_then_addressed_by_both(tmp_path):
    drawn = dm.simulate_pools(300, n_paths=6, seed=4)
    votes = dm.vote(drawn.answers, drawn.scores)
    both = [dm.HighProbability(0.1, 0.1), dm.Marginal(0.1), dm.Marginal(0.05)]
    policy = dm.calibrate(votes, votes.answer == drawn.gold, guarantee=both)
    assert [(rule.alpha, rule.guarantee.name) for rule in policy.points] == [
        (0.05, "marginal"),
        (0.1, "high_probability"),
        (0.1, "marginal"),
    ]
    policy.save(tmp_path / "p.json")
    loaded = dm.Policy.load(tmp_path / "p.json")
    assert loaded.points == policy.points
    assert loaded.point(0.1, "marginal").threshold < loaded.point(0.1, "high_probability").threshold
    assert loaded.point(guarantee="high_probability").alpha == 0.1
    pool = drawn.answers[0], drawn.scores[0]
    assert loaded.decide(*pool, alpha=0.1, guarantee="marginal").threshold == loaded.point(0.1, "marginal").threshold
    for use in (loaded.point, loaded.forecast):
        with pytest.raises(InvalidValue, match=r"several guarantees for alpha = 0\.1: .*name one as guarantee"):
            use(0.1)
    with pytest.raises(InvalidValue, match=r"not calibrated for alpha = 0\.05 and guarantee 'smoothed'"):
        loaded.point(0.05, "smoothed")
    assert len(dm.audit_policy(loaded, votes, votes.answer == drawn.gold)) == 3


def test_a_vote_without_an_answer_cannot_be_labelled_correct():
    with pytest.raises(InvalidValue, match="vote 1 has no answer"):
        dm.calibrate(dm.vote([["a"], [None]]), [True, True], alpha=0.1)


# --- files -------------------------------------------------------------------------------------------------------


@given(
    st.integers(0, 1000),
    st.sampled_from([dm.Marginal(0.1), dm.Smoothed(0.13, 3), dm.HighProbability(0.2, 0.1)]),
    st.sampled_from([None, dm.mean_score(), dm.jitter(4)]),
    st.sampled_from([dm.normalisers.none, dm.normalisers.pool_z, dm.normalisers.FixedAffine(0.1, 0.3)]),
)
def test_a_policy_survives_its_file(tmp_path_factory, seed, guarantee, tie_break, normaliser):
    drawn = dm.simulate_pools(40, n_paths=4, seed=seed, missing=0.3)
    votes = dm.vote(drawn.answers, drawn.scores, ids=range(40), tie_break=tie_break, normaliser=normaliser)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        policy = dm.calibrate(
            votes, votes.answer == drawn.gold, guarantee=guarantee, questions=[f"Q{i}" for i in range(40)]
        )
    path = tmp_path_factory.mktemp("policy") / "policy.json"
    policy.save(path)
    loaded = dm.Policy.load(path)
    assert loaded.points == policy.points
    assert loaded.pipeline == policy.pipeline
    assert loaded.fingerprint == policy.fingerprint
    assert loaded.seen == policy.seen
    np.testing.assert_array_equal(loaded.evidence.levels, policy.evidence.levels)
    fresh = dm.simulate_pools(20, n_paths=4, seed=seed + 1)
    for row in range(20):
        one = policy.decide(fresh.answers[row], fresh.scores[row], id=f"n{row}")
        assert loaded.decide(fresh.answers[row], fresh.scores[row], id=f"n{row}") == one


def test_a_policy_holds_fractions_exactly(tmp_path):
    third = Fraction(1, 3)
    wanted = [dm.Marginal(third), dm.Smoothed(third, seed=3), dm.HighProbability(third, Fraction(2, 7))]
    policy = dm.calibrate(dm.vote([["a", "a"], ["a", "b"]] * 10), [True, False] * 10, guarantee=wanted)
    policy.save(tmp_path / "p.json")
    loaded = dm.Policy.load(tmp_path / "p.json")
    assert [rule.guarantee for rule in loaded.points] == [rule.guarantee for rule in policy.points]
    assert loaded.point(third, "marginal").guarantee.level == third
    assert loaded.point(1 / 3, "marginal") is loaded.point("1/3", "marginal")


def test_saving_twice_gives_the_same_bytes(policy, tmp_path):
    policy.save(tmp_path / "a.json")
    dm.Policy.load(tmp_path / "a.json").save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_the_evidence_is_inside(policy, tmp_path):
    policy.save(tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    assert list(document["evidence"]) == ["8"]  # by number of paths
    assert sum(row[-1] + row[-2] for row in document["evidence"]["8"]) == document["n"] == 400
    assert [p["alpha"] for p in document["points"]] == [0.05, 0.1]
    assert document["fingerprint"].startswith("sha256:")
    assert len(document["calibration"]["ids"]) == 400


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d.update(schema=5), "has schema 5.*upgrade demur"),
        (lambda d: d.update(schema="x"), "has schema 'x'"),
        (lambda d: d.update(format="other"), "not a demur policy file"),
        (
            lambda d: d.update(format="earlier-policy"),
            "written by earlier, which this program was called before; calibrate",
        ),
        (lambda d: d["points"][0].update(threshold=[0.0, None]), "does not follow from its evidence"),
        (lambda d: d["points"][0].update(k=99), "does not follow from its evidence"),
        (lambda d: d["points"][0].update(alpha=0.5), "does not follow from its evidence"),
        (lambda d: d["points"][0].update(guarantee="magic"), "must name one of marginal"),
        (lambda d: d["points"][0].update(guarantee=[]), "must name one of marginal"),
        (lambda d: d["pipeline"].update(answers={"task": [[]]}) or seal(d), "answers.task must be a string"),
        (edit("answers", field=3), "answers.field must be a string, got 3"),
        (edit("answers", relation=["math"]), r"answers.relation must be a string, got \['math'\]"),
        (edit("answers", extract={}), "answers.extract must be a string, got {}"),
        (lambda d: d["pipeline"].update(answers={"missing": [[]]}) or seal(d), "answers.missing must hold strings"),
        (lambda d: d["points"][0].update(alpha="1/10"), "does not follow from its evidence"),
        (lambda d: d["points"][0].update(alpha="1e-99999999"), "must be numbers"),
        (lambda d: d["points"][0].update(alpha=[0.1]), "must be numbers"),
        (lambda d: d["points"][0].update(beta=1), "does not take"),
        (lambda d: d["points"].append(d["points"][0]), "each guarantee once per alpha"),
        (lambda d: d.update(points=[]), "at least one operating point"),
        (lambda d: d["evidence"]["8"].pop(), r"its evidence counts \d+ votes, and it says n = 400"),
        (lambda d: d["evidence"].update({"8": "rows"}), "its evidence must be a list of rows, got 'rows'"),
        (lambda d: d.update(points={}), "`points` must be a list, got {}"),
        (lambda d: d.update(evidence=[]), r"`evidence` must be an object, got \[\]"),
        (lambda d: d.update(unscored=-1), "unscored must be a count of pools, got -1"),
        (lambda d: d.update(unscored=True), "unscored must be a count of pools, got True"),
        (lambda d: d.update(unscored=10**15 + 1), "unscored must be a count of pools"),
        (lambda d: d.update(evidence={str((1 << 20) + 1): d["evidence"]["8"]}), "by number of paths"),
        (lambda d: d["evidence"]["8"][0].__setitem__(-1, -1), "whole numbers >= 0"),
        (lambda d: d["evidence"]["8"][0].__setitem__(-1, 0.5), "whole numbers >= 0"),
        (lambda d: d["evidence"]["8"][0].__setitem__(-1, 2**63), "whole numbers >= 0"),
        (lambda d: d["evidence"]["8"][0].__setitem__(0, 1.5), r"lie in \[0, 1\]"),
        (lambda d: d["evidence"]["8"][0].__setitem__(0, "nan"), r"lie in \[0, 1\]"),
        (lambda d: d["evidence"]["8"][0].__setitem__(1, "x"), "tie-breaks of its evidence"),
        (lambda d: d["evidence"]["8"].reverse(), "each level once and in order"),
        (lambda d: d["evidence"]["8"].append(d["evidence"]["8"][-1]), "each level once and in order"),
        (lambda d: d["evidence"]["8"][0].append(1), "must hold 5 numbers"),
        (lambda d: d.update(evidence={"-1": d["evidence"]["8"]}), "by number of paths"),
        (lambda d: d.update(evidence={"0": d["evidence"]["8"]}), "by number of paths"),
        (lambda d: d.update(evidence={"²": d["evidence"]["8"]}), "by number of paths"),
        (lambda d: d.update(evidence={"9" * 5000: d["evidence"]["8"]}), "by number of paths"),
        (lambda d: d["evidence"].update({"8 ": d["evidence"]["8"]}), "by number of paths"),
        (lambda d: d["evidence"].update({"4": d["evidence"]["8"]}), "by number of paths, ascending"),
        (lambda d: d["evidence"].update({"9": d["evidence"]["8"]}), "its evidence counts 800 votes"),
        (lambda d: d.update(evidence={}), "by number of paths"),
        (lambda d: d.update(evidence={"9": d["evidence"]["8"], "10": []}), "at least one row"),
        (lambda d: d.update(sizes_by_chance=1), "needs sizes_by_chance and a unit"),
        (lambda d: d.update(unit="word"), "needs sizes_by_chance and a unit"),
        (lambda d: d.update(unit="cluster"), "`every_question` must be an object"),
        (lambda d: d["points"][0].update(by_size={"8": [0.0, None]}), "does not follow from its evidence"),
        (edit("score", name=3), "score.name must be a string or null, got 3"),
        (edit("score", unscored="keep"), "unscored must be None, 'drop' or a finite number, got 'keep'"),
        (edit("score", unscored=True), "unscored must be None, 'drop' or a finite number, got True"),
        (edit("vote", answers="x"), "codes or keys"),
        (edit("vote", tie_break=3), "tie_break must be a string, a list or null, got 3"),
        (lambda d: d["pipeline"].update(magic={}), "no stage 'magic'"),
        (lambda d: d["pipeline"].update(vote=3), "stage 'vote' .* must be an object"),
        (lambda d: d["calibration"].update(ids=[1, 2]), "`ids` must hold strings"),
        (lambda d: d["calibration"].update(hold_out="x"), "hold_out must be a share, got 'x'"),
        (lambda d: d["calibration"].update(hold_out=0), "hold_out must be a share, got 0"),
        (lambda d: d["calibration"].update(hold_out=1), "hold_out must be a share, got 1"),
        (lambda d: d["calibration"].update(hold_out=1.5), "hold_out must be a share, got 1.5"),
        (lambda d: d["calibration"].update(hold_out=True), "hold_out must be a share, got True"),
        (lambda d: d.pop("pipeline"), "`pipeline` must be an object"),
        (lambda d: d["pipeline"]["vote"].update(weight="exponential:9"), "fingerprint does not match"),
        (edit("vote", weight="cubic"), "unknown weight 'cubic'"),
        (edit("vote", tie_rule="coin@1"), "tie rule is coin@1"),
        (lambda d: d.update(evidence="none"), "not a usable policy"),
        (lambda d: d.update(points=[{}]), "not a usable policy"),
        (lambda d: d.update(calibration=[]), "not a usable policy"),
    ],
)
def test_edited_files_are_refused_even_with_a_fresh_digest(policy, tmp_path, change, complaint):
    path = tmp_path / "policy.json"
    policy.save(path)
    reseal(path, change)
    with pytest.raises(PolicyFileError, match=complaint) as refused:
        dm.Policy.load(path)
    assert "\n" not in str(refused.value)


def test_a_file_edited_by_hand_is_refused(policy, tmp_path):
    path = tmp_path / "policy.json"
    policy.save(path)
    path.write_text(path.read_text().replace('"alpha": 0.05', '"alpha": 0.04'))
    with pytest.raises(PolicyFileError, match="changed after it was written"):
        dm.Policy.load(path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"a": NaN}', "not json", '{"format": "demur-policy"}', "[" * 100_000]
)
def test_what_is_no_policy_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "policy.json"
    path.write_text(text)
    with pytest.raises(PolicyFileError) as refused:
        dm.Policy.load(path)
    assert "\n" not in str(refused.value)


def test_missing_and_unreadable_files_and_folders_are_named(policy, tmp_path):
    with pytest.raises(PolicyFileError, match="there is no file"):
        dm.Policy.load(tmp_path / "none.json")
    with pytest.raises(PolicyFileError, match="cannot read"):
        dm.Policy.load(tmp_path)
    with pytest.raises(PolicyFileError, match="cannot write"):
        policy.save(tmp_path / "nowhere" / "policy.json")
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyFileError, match="cannot read"):
        dm.Policy.load(tmp_path / "latin.json")


def test_long_lists_of_problems_go_to_a_sidecar_that_is_checked(policy, tmp_path, monkeypatch):
    monkeypatch.setattr("demur.policy.file.INLINE_LIMIT", 100)
    path = tmp_path / "policy.json"
    policy.save(path)
    assert "ids" not in json.loads(path.read_text())["calibration"]
    assert dm.Policy.load(path).seen == policy.seen
    (sidecar,) = tmp_path.glob("policy.json.*.calibration")
    sidecar.write_text(sidecar.read_text().replace('"17"', '"1700"'))
    with pytest.raises(PolicyFileError, match="does not belong"):
        dm.Policy.load(path)
    sidecar.unlink()
    with pytest.raises(PolicyFileError, match="there is no file"):
        dm.Policy.load(path)


def test_an_interrupted_rewrite_leaves_the_old_policy_and_its_sidecar_whole(policy, drawn, tmp_path, monkeypatch):
    monkeypatch.setattr("demur.policy.file.INLINE_LIMIT", 100)
    path = tmp_path / "policy.json"
    policy.save(path)
    other = dm.calibrate(dm.vote(drawn.answers, ids=[f"n{row}" for row in range(400)]), [False] * 400, alpha=0.1)
    written = file._write_whole

    def interrupted(place, text):
        if place == path:
            raise KeyboardInterrupt
        written(place, text)

    monkeypatch.setattr(file, "_write_whole", interrupted)
    with pytest.raises(KeyboardInterrupt):
        other.save(path)
    assert dm.Policy.load(path).seen == policy.seen
    monkeypatch.setattr(file, "_write_whole", written)
    other.save(path)
    assert dm.Policy.load(path).seen == other.seen
    assert len(list(tmp_path.glob("policy.json.*"))) == 1  # the old one's is gone


def test_a_sidecar_takes_the_place_of_nothing_else(policy, tmp_path, monkeypatch):
    monkeypatch.setattr("demur.policy.file.INLINE_LIMIT", 100)
    path = tmp_path / "policy.json"
    policy.save(path)
    (sidecar,) = tmp_path.glob("policy.json.*.calibration")
    sidecar.write_text("a diary")
    with pytest.raises(PolicyFileError, match="is there already and is something else"):
        policy.save(path)
    assert sidecar.read_text() == "a diary"


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "a\0b"])
def test_a_sidecar_outside_the_folder_is_never_opened(policy, tmp_path, name):
    path = tmp_path / "policy.json"
    policy.save(path)
    reseal(path, lambda d: d.update(calibration={"file": name, "sha256": "0"}))
    with pytest.raises(PolicyFileError, match="outside its folder"):
        dm.Policy.load(path)


def test_a_number_beyond_json_is_an_edit(policy, tmp_path):
    path = tmp_path / "policy.json"
    policy.save(path)
    path.write_text(path.read_text().replace('"n": 400', '"n": 1e999'))
    with pytest.raises(PolicyFileError, match="changed after it was written"):
        dm.Policy.load(path)


def test_an_interrupted_write_leaves_the_old_policy(policy, tmp_path, monkeypatch):
    path = tmp_path / "policy.json"
    policy.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "replace", fail)
    with pytest.raises(PolicyFileError, match="No space left"):
        policy.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["policy.json"]


def test_the_largest_values_that_a_file_may_hold_are_taken(policy, tmp_path):
    path = tmp_path / "policy.json"
    policy.save(path)
    reseal(path, lambda d: d.update(unscored=10**15, evidence={str(1 << 20): d["evidence"]["8"]}))
    loaded = dm.Policy.load(path)
    assert (loaded.unscored, loaded.n_paths) == (10**15, 1 << 20)
    policy.save(path)
    reseal(path, lambda d: d["evidence"]["8"][-1].__setitem__(1, 1e300))  # the most confident vote's mean score
    assert dm.Policy.load(path).evidence.levels[-1, :2].tolist() == [1.0, 1e300]


def test_a_file_says_which_demur_wrote_it(policy, tmp_path):
    policy.save(tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    assert document["demur"] == dm.__version__
    document.pop("unscored")  # written before pools could lack a score
    document.pop("digest")
    (tmp_path / "p.json").write_text(json.dumps({**document, "digest": digest(document)}))
    assert dm.Policy.load(tmp_path / "p.json").unscored == 0


def test_votes_with_another_recipe_are_refused_though_all_else_is_the_same_object():
    """Nothing is known of the stages before either vote, so both hold one and the same description of them."""
    answers, scores = [["a", "b"]] * 30, [[1.0, 0.0]] * 30
    votes = dm.vote(answers, scores)
    policy = dm.calibrate(votes, [True] * 30, alpha=0.1)
    other = dm.vote(answers, scores, weight=dm.exponential(2))
    assert other.upstream is votes.upstream
    with pytest.raises(
        PipelineMismatch, match=r"vote\.weight is 'exponential:1.0' in the policy, 'exponential:2.0' here"
    ):
        policy.check(other)
    with pytest.raises(PipelineMismatch, match=r"score\.name"):
        policy.check(replace(votes, upstream=Description(score={"name": "judge"})))


def test_pools_of_no_size_that_calibrated_are_refused_however_they_were_voted_on(policy):
    answers, scores = np.zeros((2, 5), dtype=int), np.zeros((2, 5))
    made_alike = vote_again(policy.recipe, answers, scores, ids=["x", "y"], upstream=policy.upstream)
    with pytest.raises(PipelineMismatch, match="n_paths is 8 in the policy, 5 in pool 'x'") as refused:
        policy.check(made_alike)
    assert len(refused.value.differences) == 1
    with pytest.raises(PipelineMismatch, match="n_paths is 8 in the policy, 5 in pool 0"):
        policy.check(replace(made_alike, ids=None))


def test_codes_in_place_of_keys_are_refused():
    policy = dm.calibrate(dm.vote([["a", "a"]] * 30), [True] * 30, alpha=0.1)
    with pytest.raises(PipelineMismatch, match=r"vote\.answers is 'keys' in the policy, 'codes' here"):
        policy.decide(np.array([1, 1]))
    assert policy.decide(np.array(["b", "b"])).answer == "b"
    assert policy.decide(np.array([1.5, 1.5])).answer == 1.5
    numbers = dm.calibrate(dm.vote(np.zeros((30, 2), dtype=int)), [True] * 30, alpha=0.1)
    assert numbers.decide(np.array([4, 4])).answer == 4


def test_one_pool_draws_its_jitter_from_its_question_as_a_table_does():
    questions = [f"Question {row}" for row in range(60)]
    votes = dm.vote([["a", "a"]] * 60, tie_break=dm.jitter(3), questions=questions)
    policy = dm.calibrate(votes, np.arange(60) % 4 > 0, alpha=0.2)
    fresh = [f"New question {row}" for row in range(40)]
    table = policy.decide_votes(dm.vote([["a", "a"]] * 40, tie_break=dm.jitter(3), questions=fresh))
    assert 0 < table.answered.sum() < 40
    for question, expected in zip(fresh, table, strict=True):
        for asked in (question, f"  {question} ", Problem("other", question)):
            assert policy.decide(["a", "a"], question=asked) == expected
    plain, with_options = (
        policy.decide(["a", "a"], question=Problem("q", "Which?", extra=extra)) for extra in ({}, {"options": ["1"]})
    )
    assert plain.key[-1] != with_options.key[-1]  # other options, another question


def test_a_policy_of_a_file_decides_one_pool_by_all_it_is_told():
    made = [
        Pool(Problem(f"q{row}", f"Question {row}", ("1/2",), extra={"margin": row / 40}), (Path(answer),) * 2)
        for row in range(40)
        for answer in ("0.5" if row % 4 else "7",)
    ]
    source = dm.PoolSource(made)
    choice = dm.FieldChoice(relation="mathematics")
    voted = dm.vote_pools(source, choice, source.recipe(tie_break="column:margin"))
    policy = dm.calibrate(voted, guarantee=[dm.Marginal(0.1), dm.HighProbability(0.2, 0.1), dm.Marginal(0.2)])
    decided = policy.decide(
        ["0.5", "1/2"], tie_break=0.97, id="new", alpha=0.2, guarantee="marginal", question="Question?"
    )
    assert (decided.answer, decided.id, decided.alpha, decided.key[1]) == ("0.5", "new", 0.2, 0.97)
    assert decided.threshold_key == policy.point(0.2, "marginal").threshold_key
    assert policy.decide(["0.5", "1/2"], tie_break=0.97).alpha == 0.1


def test_a_policy_votes_on_a_file_as_it_was_told_of_labels_and_of_how_pools_were_made():
    def pools(names, **extra):
        return dm.PoolSource([
            Pool(Problem(name, f"Question {name}", extra=extra), tuple(Path("a", extra={"ok": True}) for _ in range(2)))
            for name in names
        ])  # fmt: skip

    voted = dm.vote_pools(pools(map(str, range(30)), model="m"), correct="ok")
    policy = dm.calibrate(voted, alpha=0.1)
    said = []
    bare = policy.vote(pools(["x", "y"]), labelled=True, correct="ok", say=said.append)
    assert bare.labelled.tolist() == [True, True]
    assert bare.votes.upstream.sampling["model"] == "m"  # taken to be so where the file says nothing
    assert said == []
    policy.check(bare.votes)
    none = dm.PoolSource([Pool(Problem("z", "Z?"), (Path("None"), Path("a")))])
    policy.vote(none, say=said.append)
    assert "1 paths answer 'None'" in said[0]
    with pytest.raises(PipelineMismatch, match="model is 'm' in the policy, 'other' here"):
        policy.check(policy.vote(pools(["x"], model="other")).votes)
