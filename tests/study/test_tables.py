"""Each figure of each table is the one that its title names, and each result comes from the rows that it should."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import demur as dm
from demur.errors import InvalidValue
from demur.evaluation.comparison import JITTERED, MAJORITY
from demur.evaluation.summaries import Summary
from demur.study import read_study, run_study
from demur.study.cells import TIED, open_cell
from demur.study.description import Ablations
from demur.study.protocol import evaluate_cell, fresh_law
from demur.study.tables import Table, tables_of
from study_files import STUDY, write_pools


@pytest.fixture
def table_of(found):
    """A table's rows as dictionaries, by its name."""
    tables = {table.name: table for table in found.tables}
    return lambda name: [dict(zip(tables[name].header, row, strict=True)) for row in tables[name].rows]


def every(found):
    return [(result, method) for result in found.results for method in result.methods]


def test_confident_errors(found, table_of):
    for row, (result, method) in zip(table_of("ce-sums"), every(found), strict=True):
        assert (row["Model"], row["Method"]) == (result.cell.description.model, method.name)
        for point, check in zip(method.points, method.checks, strict=True):
            at = f"{point.alpha:g}"
            assert row[f"alpha {at}"] == point.confident_error
            assert row[f"exact {at}"] == point.law.mean
            assert row[f"fresh {at}"].mean == fresh_law(method, point).mean
            assert row[f"fresh {at}"].sd == fresh_law(method, point).sd
            assert (row[f"z {at}"], row[f"p {at}"]) == (check.z, check.p_value)


def test_accuracy_and_yield(found, table_of):
    rows = [row for row in table_of("main-sums") if row["p_v"] is not None]
    for row, (_, method) in zip(rows, every(found), strict=True):
        assert row["p_v"] == method.vote_accuracy
        for point in method.points:
            at = f"{point.alpha:g}"
            assert (row[f"A_c {at}"], row[f"Y {at}"]) == (point.selective_accuracy, point.answered)
            assert row[f"empty {at}"] == point.empty_splits
    (single,) = (row for row in table_of("main-sums") if row["Method"] == "single path" and row["Model"] == "A")
    assert single["A_c 0.1"] == found.results[0].baselines["single path"]
    assert single["Y 0.1"] == 1


def test_a_yield_under_one_percent_is_marked_and_one_above_is_not(found, folder):
    first = found.results[0]
    scarce, enough = Summary(0.009, 0.0, 0.0), Summary(0.01, 0.0, 0.0)
    points = [
        replace(point, answered=rate) for point, rate in zip(first.methods[0].points, (scarce, enough), strict=True)
    ]
    result = replace(first, methods=[replace(first.methods[0], points=points)])
    main = next(t for t in tables_of([result], read_study(folder / "study.toml")) if t.name == "main-sums")
    marked = dict(zip(main.header, main.rows[-1], strict=True))
    assert (marked["† 0.1"], marked["† 0.05"]) == ("†", "")


def test_areas_sizes_and_steps_are_those_of_the_first_alpha(found, table_of):
    for row, result in zip(table_of("frontier-auc"), found.results, strict=True):
        for method in result.methods:
            assert row[method.name].mean == method.frontier.auc != method.frontier.auc_normalised
            assert row[method.name].se > 0
    (row, *_) = table_of("sizes")
    for name in ("small", "large"):
        point = found.results[0].method(name).points[0]
        assert (row[f"A_c {name}"], row[f"Y {name}"]) == (point.selective_accuracy, point.answered)
    (row, *_) = table_of("jitter")
    names = (MAJORITY, JITTERED, row["Score"], f"{row['Score']}{TIED}")
    yields = [found.results[0].method(name).points[0].answered for name in names]
    assert list(row.values())[2:] == yields


def test_ablations_have_their_own_settings(found, table_of):
    for name, what in (("ablation-m", "m"), ("ablation-n-cal", "n_cal"), ("ablation-weight", "weight")):
        variations = [v for result in found.results for v in result.variations if v.what == what]
        for row, varied in zip(table_of(name), variations, strict=True):
            assert row[what] == varied.value
            assert (row["A_c"], row["Y"]) == (varied.result.selective_accuracy, varied.result.answered)
            assert (row["CE"], row["exact CE"]) == (varied.result.confident_error, varied.result.law.mean)
            assert (row["p_v"], row["threshold"]) == (varied.vote_accuracy, varied.result.threshold)
            assert varied.result.n_cal == (int(varied.value) if what == "n_cal" else 60)
            assert varied.result.alpha == 0.1
    assert [row["m"] for row in table_of("ablation-m")] == ["2", "4"] * 2


def test_settings_of_cells_and_ablations_go_before_those_of_the_study(folder):
    study = read_study(folder / "study.toml")
    cell = open_cell(replace(study.cells[0], n_cal=80), {})
    wanted = replace(study.ablations, alpha=0.2, m=[8], n_cal=[299, 300], weights=[])
    result = evaluate_cell(cell, replace(study, ablations=wanted))
    assert {point.n_cal for method in result.methods for point in [*method.points, *method.checks]} == {80}
    assert [(v.what, v.value, v.result.alpha) for v in result.variations] == [("m", "8", 0.2), ("n_cal", "299", 0.2)]
    assert any("n_cal = 300 is left out" in note for note in result.notes)
    with pytest.raises(InvalidValue, match="set n_cal below 300"):
        evaluate_cell(open_cell(study.cells[0], {}), replace(study, n_cal=300))


def test_pools_that_differ_in_size_are_varied_up_to_the_smallest(folder):
    lines = [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()]
    lines[0]["paths"] = lines[0]["paths"][:5]
    (folder / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    study = read_study(folder / "study.toml")
    result = evaluate_cell(open_cell(study.cells[0], {}), replace(study, ablations=Ablations(m=[5, 6])))
    assert [v.value for v in result.variations if v.what == "m"] == ["5"]
    assert any("so m = 6 is left out" in note for note in result.notes)


def test_curves_predict_from_the_calibration_part_and_observe_the_rest(found):
    """Rows stand in a drawn order: the first 60 calibrate."""
    for result, method in every(found):
        votes, correct = result.cell.votes(method.name)
        calibration = dm.Evidence.of(votes.key[:60], correct[:60])
        test = dm.Evidence.of(votes.key[60:], correct[60:])
        curves, at = method.curves, method.curves.band.threshold
        np.testing.assert_array_equal(curves.band.predicted, dm.Separability.of(calibration, at).selective_accuracy)
        np.testing.assert_array_equal(curves.observed, dm.Separability.of(test, at).selective_accuracy)
        np.testing.assert_array_equal(curves.gap, dm.Separability.of(calibration, at).separability_gap)
        assert curves.calibrated == dm.Marginal(0.1).settle(calibration).threshold


def test_a_mean_its_deviation_and_its_error_are_three_columns():
    rows = list(csv.reader(io.StringIO(Table("t", "t", ["x"], [[Summary(0.5, 0.25, 0.125)]]).csv())))
    assert rows == [["x", "x sd", "x se"], ["0.5", "0.25", "0.125"]]
    assert "0.500 ± 0.250" in Table("t", "t", ["x"], [[Summary(0.5, 0.25, 0.125)]]).markdown()
    assert "0.500 |" in Table("t", "t", ["x"], [[Summary(0.5, math.nan, math.nan)]]).markdown()


def test_cells_of_files_of_one_question_are_refused(folder):
    write_pools(folder / "one.jsonl", 1, 5)
    (folder / "study.toml").write_text(STUDY + '\n[[cells]]\ndataset = "x"\nmodel = "y"\npools = "one.jsonl"\n')
    found = run_study(read_study(folder / "study.toml"), figures=())
    assert "it needs more questions" in found.failed["x / y"]
