"""How figures are drawn: what bars, lines and labels they have, and that all of it is explained."""

from __future__ import annotations

import json
import math

import pytest

from demur.study import read_study, run_study
from demur.study.figures import draw, figures_of
from study_files import STUDY, write_pools

ONE_VALUE = STUDY.replace("m = [2, 4, 99]", "m = [4]").replace("n_cal = [30, 60, 9999]", "n_cal = [50]")
ONE_VALUE = ONE_VALUE.replace(
    'weights = ["uniform", "linear", "exponential:1", "exponential:5"]', 'weights = ["uniform"]'
)
ONE_CELL = ONE_VALUE.rpartition("[[cells]]")[0]


def figures(folder, text):
    write_pools(folder / "a.jsonl", 300, 1)
    write_pools(folder / "b.jsonl", 200, 2, prefix="r")
    (folder / "study.toml").write_text(text)
    study = read_study(folder / "study.toml")
    return {figure.name: figure for figure in figures_of(run_study(study, figures=()).results, study)}


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    return _made(tmp_path_factory, STUDY)


@pytest.fixture(scope="module")
def one_value(tmp_path_factory):
    return _made(tmp_path_factory, ONE_VALUE)


@pytest.fixture(scope="module")
def one_split(tmp_path_factory):
    return _made(tmp_path_factory, ONE_CELL.replace("splits = 20", "splits = 1"))


def _made(factory, text):
    with pytest.MonkeyPatch.context() as patch:
        folder = factory.mktemp("study")
        patch.chdir(folder)
        return figures(folder, text)


def parts(spec, name):
    """Every value of a name, wherever it stands in a specification."""
    if isinstance(spec, dict):
        return [value for key, value in spec.items() if key == name] + [
            found for value in spec.values() for found in parts(value, name)
        ]
    return [found for value in spec for found in parts(value, name)] if isinstance(spec, list) else []


def panels(figure):
    """The ablations' panels by measure and by what is varied: their layers."""
    rows = figure.chart().to_dict()["vconcat"]
    found = {}
    for row in rows:
        for panel in row["hconcat"]:
            point = next(layer for layer in panel["layer"] if layer["mark"]["type"] == "point")["encoding"]
            found[point["y"]["title"], point["x"]["title"]] = panel["layer"]
    return found


def marks(layers):
    return [layer["mark"]["type"] for layer in layers]


def test_numbers_are_joined_by_lines_and_names_are_not(several):
    for (_, what), layers in panels(several["ablations"]).items():
        assert ("line" in marks(layers)) == (what in ("m", "n_cal"))


def test_one_value_has_no_line_and_no_label_but_its_own(one_value):
    for (_, what), layers in panels(one_value["ablations"]).items():
        assert "line" not in marks(layers)
        point = next(layer for layer in layers if layer["mark"]["type"] == "point")["encoding"]
        assert point["x"]["type"] == "nominal"
        values = {"m": ["4"], "n_cal": ["50"], "weight": ["uniform"]}
        assert what not in values or point["x"]["sort"] == values[what]


def test_axes_of_numbers_are_labelled_where_something_was_measured(several):
    for (_, what), layers in panels(several["ablations"]).items():
        x = next(layer for layer in layers if layer["mark"]["type"] == "point")["encoding"]["x"]
        if what in ("m", "n_cal"):
            assert x["axis"]["values"] == {"m": [2, 4], "n_cal": [30, 60]}[what]
            assert x["scale"]["zero"] is False


def test_one_number_alone_is_its_axis_only_label_and_one_split_has_no_bars(one_split):
    figure = one_split["ablations"]
    for (measure, what), layers in panels(figure).items():
        rows = [row for row in figure.rows if (row["measure"], row["what"]) == (measure, what)]
        y = next(layer for layer in layers if layer["mark"]["type"] == "point")["encoding"]["y"]
        if len({row["mean"] for row in rows}) == 1:
            assert y["axis"]["values"] == [pytest.approx(rows[0]["mean"], abs=1e-6)]
            low, high = y["scale"]["domain"]
            assert low < rows[0]["mean"] < high
        assert all(math.isnan(row["sd"]) for row in rows)
    assert draw(figure, "svg")


def test_every_mean_has_its_spread_and_errors_have_the_line_of_alpha(several):
    for (measure, _), layers in panels(several["ablations"]).items():
        assert layers[0]["mark"]["type"] == "rule"
        assert (layers[0]["encoding"]["y"]["field"], layers[0]["encoding"]["y2"]["field"]) == ("low", "high")
        assert ("limit" in [layer["encoding"]["y"].get("field") for layer in layers]) == (measure == "CE")
    limits = {row["limit"] for row in several["ablations"].rows if row["measure"] == "CE"}
    assert limits == {0.1}
    assert "one standard deviation over 20 splits" in several["ablations"].note


def test_the_figures_of_alpha_have_its_line_and_bars(several):
    shares = several["shares"].chart().to_dict()["spec"]["layer"]
    assert marks(shares) == ["area", "rule", "line"]
    assert shares[2]["encoding"]["y"]["field"] == "alpha"
    control = several["error-control"].chart().to_dict()["spec"]["layer"]
    assert marks(control) == ["area", "rule", "line"]
    for name in ("shares", "error-control"):
        assert "± 2 se of the mean over 20 splits" in several[name].note
        assert all(row["se"] > 0 for row in several[name].rows if row.get("what", "answered wrong") == "answered wrong"
                   and 0.05 < row["alpha"] < 0.2)  # fmt: skip


def test_every_style_of_line_is_in_a_legend_and_none_is_set_beside_it(several):
    styles = {
        "error-control": ["mean over splits", "error = α"],
        "shares": ["limit α on what is answered wrong"],
        "predicted-observed": ["predicted", "observed", "threshold λ, upright", "all answered, p_v", "best of m"],
        "ablations": ["limit α"],
    }
    for name, figure in several.items():
        spec = figure.chart().to_dict()
        dashes = parts(spec, "strokeDash")
        encoded = [dash for dash in dashes if isinstance(dash, dict)]
        domains = {json.dumps(dash["scale"]["domain"], ensure_ascii=False) for dash in encoded}
        assert domains == ({json.dumps(styles[name], ensure_ascii=False)} if name in styles else set())
        assert all(dash["legend"] for dash in encoded)
        assert not [mark for mark in parts(spec, "mark") if isinstance(mark, dict) and "strokeDash" in mark]
        if name in styles:
            svg = draw(figure, "svg").decode()
            assert all(style in svg for style in styles[name])
            ranges = [tuple(map(tuple, dash["scale"]["range"])) for dash in encoded]
            assert all(len(set(each)) == len(each) for each in ranges)


def test_what_bars_and_bands_are_stands_under_the_title(several):
    for figure in several.values():
        svg = draw(figure, "svg").decode()
        assert figure.title in svg
        if figure.note:
            assert figure.note in svg
