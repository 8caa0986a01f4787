"""Edges of reading pools that mutants of the readers slipped through."""

from __future__ import annotations

import pytest

from demur.pools.containment import holds
from demur.pools.fields import FieldChoice, read_table
from demur.pools.labels import read_labels
from demur.pools.scores import scores_or_dropped
from demur.pools.weights import read_weights
from demur.records import Path, Pool, Problem


def test_a_weight_of_nothing_is_a_weight():
    pools = [Pool(Problem("q", "Q?", extra={"w": 0}), (Path("a"),))]
    assert read_weights(pools, ["Q?"], "w").tolist() == [0.0]


@pytest.mark.parametrize("said", [(True, False), (False, True)])
def test_an_answer_with_both_labels_is_wrong_in_either_order(said):
    pools = [Pool(Problem("q"), tuple(Path("a", extra={"ok": label}) for label in said))]
    labels = read_labels(pools, read_table(pools, FieldChoice()), "ok")
    assert (labels.conflicts, labels.right) == (1, [dict.fromkeys(labels.right[0], False)])


@pytest.mark.parametrize("lacking", [0, 1, 2])
def test_a_score_that_any_path_lacks_drops_the_pool(lacking):
    paths = tuple(Path("a", scores={} if at == lacking else {"s": 1.0}) for at in range(3))
    pools = [Pool(Problem("q"), paths), Pool(Problem("r"), (Path("a", scores={"s": 1.0}),))]
    assert scores_or_dropped(pools, "s", "drop")[1] == [0]


def test_a_gold_answer_of_few_letters_is_no_part_of_a_longer_answer():
    from demur.pools import containment

    short, longer = "x" * containment._WHOLE_LETTERS, "x" * (containment._WHOLE_LETTERS + 1)
    assert not holds(f"{short} street", short)
    assert holds(f"{longer} street", longer)
