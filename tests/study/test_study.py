"""Studies: every table and figure from data, identities and exact laws on each cell, and cells that fail."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from html import escape

import numpy as np
import pytest
from markdown_it import MarkdownIt

import demur as dm
from demur.errors import InvalidValue
from demur.evaluation.comparison import JITTERED, MAJORITY
from demur.evaluation.summaries import Summary
from demur.evidence.predictor import predicted_accuracy
from demur.study import read_study, run_study
from demur.study.cells import TIED, open_cell
from demur.study.figures import Figure, draw, figures_of
from demur.study.protocol import evaluate_cell
from demur.study.tables import Table
from study_files import STUDY, write_pools


def test_every_table_is_there_in_four_formats(found, folder):
    names = {table.name for table in found.tables}
    assert {"grid", "scorers", "ce-sums", "main-sums", "frontier-auc", "frontier-shared", "sizes", "jitter",
            "ablation-m", "ablation-n-cal", "ablation-weight"} <= names  # fmt: skip
    for table in found.tables:
        for suffix in ("md", "tex", "csv", "json"):
            assert (folder / "results/two/tables" / f"{table.name}.{suffix}").stat().st_size
    assert (folder / "results/two/results.md").read_text().count("### ") == len(found.tables)


def test_realised_means_agree_with_the_exact_law_in_every_cell(found):
    for result in found.results:
        for method in result.methods:
            for check in method.checks:
                assert check.p_value > 1e-4
    assert found.verdict.startswith("All 20 mean error rates")


def test_the_identities_of_the_theory_hold_on_every_cell(found):
    """The plug-in predictor is the selective accuracy; CE = (1 − A_c) Y; hazards multiply to survival."""
    for result in found.results:
        for method in result.methods:
            table = dm.Separability.of(method.evidence)
            closed = predicted_accuracy(table.vote_accuracy, table.survival_right, table.survival_wrong)
            some = table.answered > 0
            assert np.abs(closed - table.selective_accuracy)[some].max() < 1e-12
            error = (1 - table.selective_accuracy[some]) * table.answered[some]
            assert np.abs(error - table.confident_error[some]).max() < 1e-12
            hazards = dm.Hazards.of(method.evidence)
            survival = np.cumprod(1 - np.nan_to_num(hazards.hazard_wrong))
            at = np.searchsorted(table.threshold, hazards.edges)
            assert np.abs(survival - table.survival_wrong[at]).max() < 1e-12


def test_results_are_the_same_byte_for_byte(folder):
    study = read_study(folder / "study.toml")
    first, second = (run_study(study, out=folder / name) for name in ("one", "two"))
    for one, two in zip(first.files, second.files, strict=True):
        assert one.read_bytes() == two.read_bytes(), one.name


def test_figures_are_drawn_with_their_numbers_beside_them(found, folder):
    study = read_study(folder / "study.toml")
    figures = figures_of(found.results, study)
    assert [figure.name for figure in figures] == [
        "error-control", "shares", "predicted-observed", "frontiers", "separability", "hazards", "ablations",
    ]  # fmt: skip
    for figure in figures:
        svg = draw(figure, "svg").decode()
        assert svg.startswith("<svg")
        assert figure.title in svg
        assert "http://" not in svg.replace("http://www.w3.org", "")
        assert len(figure.csv().splitlines()) == len(figure.rows) + 1
    assert draw(figures[0], "png").startswith(b"\x89PNG")
    assert draw(figures[0], "pdf").startswith(b"%PDF")


def test_shares_of_questions_add_up_to_one(found, folder):
    shares = next(f for f in figures_of(found.results, read_study(folder / "study.toml")) if f.name == "shares")
    totals: dict[tuple[str, float], float] = {}
    for row in shares.rows:
        totals[row["cell"], row["alpha"]] = totals.get((row["cell"], row["alpha"]), 0.0) + row["share"]
    assert all(math.isclose(total, 1.0) for total in totals.values())


def test_values_out_of_reach_are_left_out_and_said(found):
    assert "sums / A: pools have 8 paths, so m = 99 is left out" in found.notes
    assert "sums / B: 200 questions, so n_cal = 9999 is left out" in found.notes
    values = {(v.what, v.value) for v in found.results[0].variations}
    assert values == {("m", "2"), ("m", "4"), ("n_cal", "30"), ("n_cal", "60"),
                      *(("weight", w) for w in ("uniform", "linear", "exponential:1", "exponential:5"))}  # fmt: skip


def test_a_prefix_of_paths_is_voted_on_as_if_there_were_no_others(folder):
    study = read_study(folder / "study.toml")
    cell = open_cell(study.cells[0], {})
    votes, _ = cell.votes("large", m=3)
    answers = [pool[:3] for pool in cell.table.answers]
    scores = [pool[:3] for pool in cell.scores["large"]]
    again = dm.vote(answers, scores, normaliser=dm.normalisers.pool_z).take(cell.rows)
    assert votes.confidence.tolist() == again.confidence.tolist()


def test_a_cell_without_a_score_has_a_dash(found):
    table = next(table for table in found.tables if table.name == "frontier-auc")
    small = table.header.index("small")
    assert table.rows[0][small].mean > 0 < table.rows[0][small].se
    assert table.rows[1][small] is None


def test_baselines_stand_beside_the_policies(found):
    table = next(table for table in found.tables if table.name == "main-sums")
    assert [row[1] for row in table.rows if row[0] == "A"] == [
        "single path", "oracle", MAJORITY, JITTERED, "large", "small", f"large{TIED}", f"small{TIED}",
    ]  # fmt: skip


def test_cells_that_fail_are_named_and_the_others_go_on(folder):
    write_pools(folder / "bare.jsonl", 100, 3, gold=False)
    more = STUDY + (
        '\n[[cells]]\ndataset = "x"\nmodel = "no labels"\npools = "bare.jsonl"\n'
        '\n[[cells]]\ndataset = "x"\nmodel = "missing"\npools = "nowhere.jsonl"\n'
        '\n[[cells]]\ndataset = "x"\nmodel = "small"\npools = "small.jsonl"\n'
    )
    write_pools(folder / "small.jsonl", 50, 4)
    (folder / "study.toml").write_text(more)
    found = run_study(read_study(folder / "study.toml"), figures=())
    assert [result.name for result in found.results] == ["sums / A", "sums / B"]
    assert "no gold answer" in found.failed["x / no labels"]
    assert "nowhere.jsonl" in found.failed["x / missing"]
    assert "set n_cal below 50" in found.failed["x / small"]


def test_names_that_do_not_exist_are_not_passed_over(folder):
    text = STUDY.replace('scores = ["large"]', 'scores = ["typo"]').replace('["small", "large"]', '["zip"]')
    (folder / "study.toml").write_text(text)
    found = run_study(read_study(folder / "study.toml"), figures=())
    assert "no path has the score 'typo'; there is: large, small" in found.failed["sums / B"]
    assert any("no cell has the score 'zip'" in note for note in found.notes)


def test_results_stay_in_their_folder(folder):
    (folder / "study.toml").write_text(STUDY.replace('name = "two"', 'name = "../../up"'))
    found = run_study(read_study(folder / "study.toml"), figures=())
    assert all(folder / "results" in path.resolve().parents for path in found.files)


def test_cells_that_share_problems_are_pointed_out(folder):
    (folder / "b.jsonl").write_text((folder / "a.jsonl").read_text())
    found = run_study(read_study(folder / "study.toml"), figures=())
    assert any("sums / A and sums / B share 300 questions" in note for note in found.notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("splits = 20", "spilts = 20"), "unknown key 'spilts'"),
        (("[ablations]", "[ablation]"), "unknown section 'ablation'"),
        (("n_cal = 60", 'n_cal = "many"'), "study.n_cal must be int"),
        (('model = "B"', 'model = "A"'), "two cells are called 'sums / A'"),
        (('pools = "b.jsonl"', ""), "needs either pools or store"),
        (('pools = "b.jsonl"', 'pools = "b.jsonl"\nquestions = "gsm8k"'), "is sampled into a store"),
        (("m = [2, 4, 99]", 'm = [2]\ncells = ["C"]'), "no such cell as 'C'"),
        (("alphas = [0.1, 0.05]", "alphas = []"), "there must be an alpha"),
        (("[study]", "[study"), "cannot be read"),
        (('model = "B"', ""), "cell 2 needs 'model'"),
        (('model = "B"', 'model = "a\\u001b[31m"'), "names must be printable"),
        (('name = "two"', 'name = " "'), "names must be printable and not empty"),
        (("alphas = [0.1, 0.05]", "alphas = [10]"), "alpha must lie strictly between 0 and 1"),
        (("alphas = [0.1, 0.05]", "alphas = [0.1, 0.1]"), "an alpha occurs twice"),
        (('"uniform"', '"unifrm"'), "unknown weight 'unifrm'"),
        (("m = [2, 4, 99]", "m = [-1]"), "m and n_cal must be at least 1"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused(folder, change, said):
    (folder / "study.toml").write_text(STUDY.replace(*change))
    with pytest.raises(InvalidValue, match=said):
        read_study(folder / "study.toml")


def test_each_check_stands_beside_the_rate_of_its_own_alpha(found):
    for result in found.results:
        for method in result.methods:
            for point, check in zip(method.points, method.checks, strict=True):
                assert point.alpha == check.alpha
                assert point.expected_confident_error == check.expected_confident_error
    table = next(table for table in found.tables if table.name == "ce-sums")
    first = found.results[0].methods[0]
    assert table.rows[0][table.header.index("z 0.1")] == next(c.z for c in first.checks if c.alpha == 0.1)


def test_fewer_paths_are_not_scored_by_those_that_are_left_out(folder):
    """Self-consistency compares a path with all others, so its values say nothing of a prefix."""
    from demur.pools.source import PoolSource
    from demur.study.cells import read_cell

    study = read_study(folder / "study.toml")
    source = PoolSource(open_cell(study.cells[0], {}).source.pools, scorers={"large": {"scorer": "self-consistency"}})
    cell = read_cell(replace(study.cells[0], scores=["large"]), source)
    result = evaluate_cell(cell, study)
    assert {v.method for v in result.variations if v.what == "m"} == {JITTERED}
    assert {v.method for v in result.variations if v.what == "n_cal"} == {"large"}


def test_cells_that_differ_in_temperature_are_told_apart(folder):
    one = '\n[[cells]]\ndataset = "d"\nmodel = "m"\npools = "a.jsonl"\ntemperature = {}\n'
    (folder / "study.toml").write_text(one.format(0.5) + one.format(1.0))
    assert [cell.name for cell in read_study(folder / "study.toml").cells] == ["d / m, T 0.5", "d / m, T 1"]


def test_datasets_with_names_alike_have_files_of_their_own(folder):
    text = STUDY.replace('dataset = "sums"\nmodel = "A"', 'dataset = "C"\nmodel = "A"').replace(
        'dataset = "sums"\nmodel = "B"', f'dataset = "C++{"x" * 300}"\nmodel = "B"'
    )
    (folder / "study.toml").write_text(text)
    found = run_study(read_study(folder / "study.toml"), figures=())
    assert len({path.name for path in found.files}) == len(found.files)


def test_what_failed_and_what_was_noted_is_in_the_files(folder):
    (folder / "study.toml").write_text(STUDY + '\n[[cells]]\ndataset = "x"\nmodel = "y"\npools = "none.jsonl"\n')
    found = run_study(read_study(folder / "study.toml"), figures=())
    text = (folder / "results/two/results.md").read_text()
    assert found.verdict in text
    assert "Failed: x / y" in text
    assert "so m = 99 is left out" in text
    assert json.loads((folder / "results/two/study.json").read_text())["failed"].keys() == {"x / y"}


def test_a_greedy_file_must_have_the_cells_questions(folder):
    write_pools(folder / "greedy.jsonl", 300, 1)
    (folder / "study.toml").write_text(STUDY.replace('pools = "a.jsonl"', 'pools = "a.jsonl"\ngreedy = "greedy.jsonl"'))
    found = run_study(read_study(folder / "study.toml"), figures=())
    assert "greedy" in found.results[0].baselines
    lines = (folder / "greedy.jsonl").read_text().splitlines()
    (folder / "greedy.jsonl").write_text("\n".join(lines[:5]))
    found = run_study(read_study(folder / "study.toml"), figures=())
    assert "greedy" not in found.results[0].baselines
    assert any("295 questions have no greedy path" in note for note in found.notes)


def test_a_table_in_each_format():
    table = Table(
        "t", "A & B", ["Model", "p_v", "A_c"], [["x_1|y", 0.5, Summary(0.9, 0.01, 0.002)], ["z", None, "–"]], "50 %"
    )
    assert "| x_1\\|y | 0.5 | 0.900 ± 0.010 |" in table.markdown()
    tex = table.latex()
    assert r"x\_1|y & 0.5 & 0.900 $\pm$ 0.010 \\" in tex
    assert r"A \& B" in tex
    rows = list(csv.reader(io.StringIO(table.csv())))
    assert rows[0] == ["Model", "p_v", "A_c", "A_c sd", "A_c se"]
    assert rows[1] == ["x_1|y", "0.5", "0.9", "0.01", "0.002"]
    assert "'=cmd" in Table("t", "t", ["=cmd"], [["=cmd"]]).csv()
    assert json.loads(table.json())["rows"][0]["A_c"] == {"mean": 0.9, "sd": 0.01, "se": 0.002}


def test_the_papers_study_is_ready_to_run():
    from pathlib import Path

    study = read_study(Path(__file__).resolve().parents[2] / "examples" / "paper.toml")
    assert len(study.cells) == 10
    assert {cell.temperature for cell in study.cells} == {0.65, 0.75, 0.8, 1.0}


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n@x", "＝1"])
def test_no_name_is_a_formula_in_any_csv(name):
    table = Table("t", "t", ["Cell"], [[name]])
    figure = Figure("f", "f", [{"cell": name, name: 0.5}], lambda _: None)
    for text in (table.csv(), figure.csv()):
        cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
        assert f"'{' '.join(name.splitlines())}" in cells
        assert not any(cell.strip()[:1] in ("=", "+", "-", "@", "＝") for cell in cells)


@pytest.mark.parametrize("name", ["plain", "mean_score", "x - y", "a=b", "1e-3"])
def test_other_names_stay_as_they_are_in_csv(name):
    assert Table("t", "t", ["Cell"], [[name]]).csv() == f"Cell\n{name}\n"


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "![x](http://a.test/p)",
        "[x](javascript:1)",
        "`x`",
        "**x**",
        "a\n# b",
        "a|b",
        "&lt;",
        "a\\b",
    ],
)
def test_markdown_shows_names_and_runs_none(name):
    text = Table("t", name, ["Cell", name], [[name, name]], name).markdown()
    html = MarkdownIt("commonmark").enable("table").render(text)
    shown = " ".join(name.split("\n"))
    assert re.sub(r"<[^>]*>", "\n", html).split("\n").count(escape(shown)) == 5  # title, header, two cells, note
    assert set(re.findall(r"<(\w+)", html)) <= {"h3", "table", "thead", "tbody", "tr", "th", "td", "p"}


def test_a_cell_says_what_counts_as_right(folder):
    text = STUDY.replace('normaliser = "pool_z"', 'normaliser = "pool_z"\ngold_tolerance = 0.5')
    (folder / "lenient.toml").write_text(text)
    described = read_study(folder / "lenient.toml")
    strict, lenient = (open_cell(replace(described.cells[0], gold_tolerance=share), {}) for share in (None, 0.5))
    assert lenient.labels.rule == dm.LabelRule(tolerance="0.5")
    assert "sums / A: right is gold by the relation, or within 0.5 of its value" in lenient.notes
    assert lenient.baselines()["single path"] > strict.baselines()["single path"]
    assert lenient.votes(MAJORITY)[0].answer.tolist() == strict.votes(MAJORITY)[0].answer.tolist()
    (folder / "v.jsonl").write_text("")
    with pytest.raises(InvalidValue, match=r"v\.jsonl holds no verdicts"):
        open_cell(replace(described.cells[0], gold_tolerance=None, label_verdicts="v.jsonl"), {})
    with pytest.raises(InvalidValue, match="strictly between 0 and 1"):
        open_cell(replace(described.cells[0], gold_tolerance=3.0), {})
