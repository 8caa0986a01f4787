"""Policies whose labels ended at a key fixed beforehand: batches may be selected from, and files are checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue
from demur.policy.document import from_document, to_document

N = 300


def votes_of(seed, n=N, **how):
    """Votes with ids of their own, and whether each is right."""
    pools = dm.simulate_pools(n, n_paths=16, seed=seed)
    made = dm.vote(
        pools.answers, pools.scores, tie_break=dm.jitter(0), ids=[f"{seed}-{row}" for row in range(n)], **how
    )
    return made, made.answer == pools.gold


def labels_above(confidence, skipped=0, seed=1):
    """Votes with labels above a confidence alone, all but the few most confident of them."""
    made, right = votes_of(seed)
    labels = np.where(made.key[:, 0] > confidence, right, None)
    labels[np.argsort(-made.key[:, 0])[:skipped]] = None
    return made, labels


def calibrated(confidence=0.4, skipped=0, **how):
    known = {"partly_labelled": True, "down_to": dm.DownTo(confidence)}
    return dm.calibrate(*labels_above(confidence, skipped), **{"alpha": 0.1, **known, **how})


@pytest.fixture(scope="module")
def policy():
    return calibrated()


def test_a_batch_is_selected_as_by_full_labels_where_it_ends_above_the_key(policy):
    batch, _ = votes_of(2, 400)
    full = dm.calibrate(*votes_of(1), alpha=0.1).select(batch, fdr=0.1)
    part = policy.select(batch, fdr=0.1)
    assert part.answered.tolist() == full.answered.tolist()
    assert 0 < part.answered.sum() < 400
    assert batch.key[part.answered, 0].min() > 0.4
    labelled = policy.n - policy.evidence.n_unlabelled
    assert part.promise.endswith(
        "if the batch is exchangeable with the 300 calibration questions and the key at which labelling ended was "
        f"fixed before the first label. {labelled} of the 300 were labelled, and the others count as wrong."
    )
    assert part.promise in part[0].explanation
    assert "fixed before" not in full.promise


def test_below_the_key_a_vote_counts_as_wrong(policy):
    batch, _ = votes_of(2, 400)
    as_wrong = dm.calibrate(votes_of(1)[0], np.array([label is True for label in labels_above(0.4)[1]]), alpha=0.1)
    assert policy.p_value(batch).tolist() == as_wrong.p_value(batch).tolist()


def test_other_parts_of_the_labels_are_refused_with_their_count_and_the_way_out():
    batch, _ = votes_of(2, 50)
    made, labels = labels_above(0.4)
    lacking = sum(label is None for label in labels)
    by_labels = dm.calibrate(made, labels, alpha=0.1, partly_labelled=True)
    with pytest.raises(InvalidValue, match=f"{lacking} of the 300 votes .* fixed before the first label; .* down_to"):
        by_labels.select(batch, fdr=0.1)
    unfinished = calibrated(skipped=3)
    with pytest.raises(InvalidValue, match=r"3 of the votes above 0\.4, where labelling was to end, have no label"):
        unfinished.select(batch, fdr=0.1)
    assert "3 questions above it have no label: no batch" in unfinished.summary()
    assert unfinished.decide_votes(batch).answered.any()  # its own promise stands, whatever is missing


def test_a_label_below_the_key_is_refused_if_it_says_right():
    made, labels = labels_above(0.4)
    low = np.flatnonzero((made.key[:, 0] <= 0.4) & made.has_answer)
    labels[low[:2]] = False  # wrong with a label as without one
    same = dm.calibrate(made, labels, alpha=0.1, partly_labelled=True, down_to=dm.DownTo(0.4))
    assert same.point().threshold_key == calibrated().point().threshold_key
    labels[low[:2]] = True
    with pytest.raises(InvalidValue, match=r"2 votes are labelled right at or below 0\.4"):
        dm.calibrate(made, labels, alpha=0.1, partly_labelled=True, down_to=dm.DownTo(0.4))


def test_it_is_asked_for_with_labels_in_part_and_once():
    made, labels = labels_above(0.4)
    with pytest.raises(InvalidValue, match=r"votes that are labelled in part.*partly_labelled=True"):
        dm.calibrate(*votes_of(1), alpha=0.1, down_to=dm.DownTo(0.4))
    with pytest.raises(InvalidValue, match="must be a DownTo object, got 0"):
        dm.calibrate(made, labels, alpha=0.1, partly_labelled=True, down_to=0.4)
    queue = dm.LabelQueue(dm.VotedPools.of(made), [dm.Marginal(0.1)], down_to=dm.DownTo(0.4))
    with pytest.raises(InvalidValue, match="know where their labels end"):
        dm.calibrate(queue.labelled_votes(), alpha=0.1, partly_labelled=True, down_to=dm.DownTo(0.4))


def test_full_labels_have_no_end():
    made, right = votes_of(1)
    policy = dm.calibrate(made, right & (made.key[:, 0] > 0.4), alpha=0.1, partly_labelled=True, down_to=dm.DownTo(0.4))
    assert policy.down_to is None
    assert "down_to" not in to_document(policy)


def test_a_summary_says_that_batches_may_be_selected_from(policy):
    assert "labelling was to end at 0.4, a key that was fixed before the first label, and did" in policy.summary()


@pytest.mark.parametrize("end", [dm.DownTo(0.4), dm.DownTo(share=0.4)])
def test_a_file_keeps_where_labels_ended(end, tmp_path):
    made, right = votes_of(1)
    queue = dm.LabelQueue(dm.VotedPools.of(made), [dm.Marginal(0.1)], down_to=end)
    for row in queue.wanted:
        queue.label(row, right=bool(right[row]))
    policy = dm.calibrate(queue.labelled_votes(), alpha=0.1, partly_labelled=True)
    policy.save(tmp_path / "policy.json")
    loaded = dm.Policy.load(tmp_path / "policy.json")
    assert loaded.down_to == policy.down_to == queue.down_to
    batch, _ = votes_of(2, 200)
    assert loaded.select(batch, fdr=0.1).answered.tolist() == policy.select(batch, fdr=0.1).answered.tolist()
    assert loaded.select(batch, fdr=0.1).answered.any()


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ([0.2], "labelled right at or below|have no label"),
        ([], "key of up to 3 numbers"),
        ([0.4, 0.0, 0.0, 0.0], "key of up to 3 numbers"),
        (0.4, "key of up to 3 numbers"),
        ([1.5], r"must lie in \[0, 1\]"),
        ([True], r"must lie in \[0, 1\]"),
        ([None], r"must lie in \[0, 1\]"),
        ([0.4, "high"], "tie-breaks of `down_to` must be numbers"),
        ([0.9], "labelled right at or below 0.9"),
    ],
)
def test_a_file_whose_end_does_not_fit_its_labels_is_refused(policy, stored, said):
    document = to_document(policy)
    width = len(policy.recipe.key)
    document["down_to"] = stored
    if stored == [0.2]:  # lower than labels go: the policy may be loaded, and no batch selected from
        with pytest.raises(InvalidValue, match=said):
            dm.Policy(**vars(from_document(document))).select(votes_of(2, 20)[0], fdr=0.1)
        return
    with pytest.raises(ValueError, match=said.replace("3", str(width))):
        from_document(document)
    full = to_document(dm.calibrate(*votes_of(1), alpha=0.1)) | {"down_to": [0.4]}
    with pytest.raises(ValueError, match="all of its votes are labelled"):
        from_document(full)


def test_promises_about_answers_take_any_part_of_the_labels():
    guarantees = [dm.Marginal(0.1), dm.Selective(0.1, 0.1)]
    made, labels = labels_above(0.4)
    part = dm.calibrate(made, labels, guarantee=guarantees, partly_labelled=True)
    full = dm.calibrate(*votes_of(1), guarantee=guarantees)
    assert part.point(0.1, "selective").threshold_key == full.point(0.1, "selective").threshold_key
    assert part.point(0.1, "selective").promise.endswith("were labelled, and the others count as wrong.")
    assert from_document(to_document(part)).points == part.points
    few = dm.calibrate(*labels_above(0.8), guarantee=guarantees, partly_labelled=True)
    assert few.point(0.1, "selective").threshold_key >= full.point(0.1, "selective").threshold_key
    with pytest.raises(InvalidValue, match="a promise about the answers given has none"):
        dm.LabelQueue(dm.VotedPools.of(made), guarantees)


def test_pools_of_several_sizes_and_groups_end_at_one_key():
    parts = [dm.simulate_pools(150, n_paths=m, seed=m) for m in (8, 16)]
    answers = [row.tolist() for part in parts for row in part.answers]
    gold = np.concatenate([part.gold for part in parts])
    made = dm.vote(answers, tie_break=dm.jitter(0), ids=[str(row) for row in range(300)])
    labels = np.where(made.key[:, 0] > 0.4, made.answer == gold, None)
    policy = dm.calibrate(made, labels, alpha=0.1, partly_labelled=True, down_to=dm.DownTo(0.4))
    full = dm.calibrate(made, made.answer == gold, alpha=0.1)
    batch = replace(made.take(np.arange(0, 300, 3)), ids=[f"new-{row}" for row in range(100)])
    assert policy.select(batch, fdr=0.1).answered.tolist() == full.select(batch, fdr=0.1).answered.tolist()
    assert policy.select(batch, fdr=0.1).answered.any()
