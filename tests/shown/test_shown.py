"""What people see in a notebook: one line, one small table, a DataFrame, a figure, a page."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pytest

import demur as dm
from demur.errors import DemurError, InfeasibleWarning, InvalidValue, MissingExtra
from demur.records import Path as SampledPath
from demur.shown import frames as tables

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def case():
    source = dm.PoolSource(dm.simulate_pools(300, n_paths=5, seed=4, missing=0.1).pools())
    voted = dm.vote_pools(source, dm.FieldChoice(score="simulated"))
    policy = dm.calibrate(voted, alpha=[0.05, 0.1], hold_out=0.5)
    audited = dm.audit_policy(policy, voted)
    decided = policy.decide_votes(voted.votes, alpha=0.1)
    evaluated = dm.evaluate(voted, alpha=0.1, splits=5)
    return {
        "source": source, "voted": voted, "votes": voted.votes, "policy": policy, "audited": audited,
        "audit": audited[0], "decided": decided, "decision": decided[0], "evaluated": evaluated,
        "frontier": evaluated.frontier,
    }  # fmt: skip


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


NAMES = ("source", "voted", "votes", "policy", "audited", "audit", "decided", "decision", "evaluated", "frontier")


@pytest.mark.parametrize("name", NAMES)
def test_every_result_is_one_line_and_a_small_table(case, name):
    shown, html = repr(case[name]), case[name]._repr_html_()
    assert "\n" not in shown
    assert len(shown) < 250
    assert "array(" not in shown
    assert "n:" not in shown
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert tags.seen <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert html.count("<tr>") <= 12


def test_short_forms_say_what_matters(case):
    assert repr(case["votes"]).startswith("Votes(300 pools of 5 paths, exponential:1.0, mean confidence 0.")
    assert "% right, Votes(300 pools" in repr(case["voted"])
    assert repr(case["policy"]).startswith("Policy(150 questions, score 'simulated'; alpha 0.05: answers above 0.")
    assert repr(case["source"]) == "PoolSource(300 pools; scores: simulated)"
    assert repr(dm.vote([["a", "a"], ["b"]])) == "Votes(2 pools of 1 to 2 paths, uniform, mean confidence 1)"
    with pytest.warns(InfeasibleWarning):
        always = dm.calibrate(dm.vote([["a"]] * 4), [True] * 4, alpha=0.1)
    assert "alpha 0.1: abstains always" in repr(always)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({}, "a score without a name"),
        ({"weight": dm.linear()}, "a score without a name"),
        ({"normaliser": dm.voting.normalisers.rank}, "a score without a name"),
        ({"score": "judge"}, "score 'judge'"),
        ({"weight": dm.uniform(), "tie_break": "none"}, "majority vote"),
        ({"weight": dm.uniform(), "tie_break": "none", "score": "judge"}, "majority vote"),
        ({"weight": dm.uniform()}, "majority vote, ties by a score without a name"),
        ({"weight": dm.uniform(), "score": "judge"}, "majority vote, ties by score 'judge'"),
        ({"confidence": dm.Learned(0.0, {"margin": 1.0})}, "a score without a name, confidence learned"),
    ],
)
def test_a_policy_names_the_vote_that_it_was_calibrated_on(how, told):
    table = dm.simulate_pools(60, n_paths=5, seed=1)
    scores = np.exp(table.scores)
    votes = dm.vote(table.answers, scores, ids=[f"q{row}" for row in range(60)], **how)
    policy = dm.calibrate(votes, votes.answer == table.gold, alpha=0.2)

    assert repr(policy).startswith(f"Policy(60 questions, {told}; alpha 0.2: ")


def test_a_majority_vote_without_scores_is_called_one():
    table = dm.simulate_pools(60, n_paths=5, seed=1)
    votes = dm.vote(table.answers)

    assert "60 questions, majority vote;" in repr(dm.calibrate(votes, votes.answer == table.gold, alpha=0.2))


def test_whatever_a_model_writes_stays_text():
    pool = dm.Pool(dm.Problem(HOSTILE, HOSTILE, (HOSTILE,)), (SampledPath(HOSTILE), SampledPath("b")))
    source = dm.PoolSource(
        [pool] + [dm.Pool(dm.Problem(f"q{k}", gold=("a",)), (SampledPath("a"),) * 2) for k in range(30)]
    )
    voted = dm.vote_pools(source)
    policy = dm.calibrate(voted, alpha=0.1)
    for thing in (source, voted, voted.votes, policy.decide_votes(voted.votes), policy.decide_votes(voted.votes)[0]):
        assert "<script" not in thing._repr_html_()
    page = dm.report(source, policy, title=HOSTILE)
    assert "<script" not in page._repr_html_()
    assert 'sandbox="allow-scripts"' in page._repr_html_()
    assert "html=" not in repr(page)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"audit", "decision"}))
@pytest.mark.parametrize(
    ("library", "kind"), [(None, pandas.DataFrame), ("pandas", pandas.DataFrame), ("arrow", pyarrow.Table)]
)
def test_every_table_comes_as_a_frame(case, name, library, kind):
    frame = case[name].to_frame(library)
    assert isinstance(frame, kind)
    assert len(frame) > 0


def test_frames_say_what_the_results_say(case):
    votes, decided = case["votes"].to_frame(), case["decided"].to_frame()
    assert votes["confidence"].tolist() == case["votes"].confidence.tolist()
    assert [None if pandas.isna(answer) else answer for answer in decided["answer"]] == [
        decision.answer for decision in case["decided"]
    ]
    assert case["voted"].to_frame()["correct"].tolist() == case["voted"].correct.tolist()
    assert case["policy"].to_frame()["threshold"].tolist() == [rule.threshold for rule in case["policy"].points]
    assert case["audited"].to_frame()["errors"].tolist() == [point.errors for point in case["audited"]]
    back = dm.read_pools(case["source"].to_frame())
    fields = dm.FieldChoice(score="simulated")
    assert list(dm.vote_pools(back, fields).votes) == list(case["votes"])
    assert dm.vote(np.array([[1, 1], [2, -1]])).to_frame()["answer"].tolist() == [1, 2]


def test_a_library_that_is_not_there_is_told_in_one_line(case, monkeypatch):
    with pytest.raises(InvalidValue, match="a table comes as pandas, polars, arrow, not 'excel'"):
        case["votes"].to_frame("excel")
    absent = set(tables.PACKAGES.values())
    real = builtins.__import__

    def blocked(name, *arguments, **named):
        if name.partition(".")[0] in absent:
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(tables, "import_module", lambda name: blocked(name))
    with pytest.raises(DemurError, match="polars is not installed; install it: pip install polars"):
        case["votes"].to_frame("polars")
    with pytest.raises(MissingExtra, match="an Arrow table needs pyarrow; install it with"):
        case["votes"].to_frame("arrow")
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="needs pandas, Polars or pyarrow, and none of them is installed"):
        case["votes"].to_frame()


def figures(case):
    voted, policy = case["voted"], case["policy"]
    majority = dm.vote_pools(case["source"])
    both = {"simulated": voted, "majority\nvote": majority}
    cascade = dm.calibrate_cascade([dm.Stage("a", majority), dm.Stage("b", voted)], alpha=0.1)
    return {
        "frontier": dm.plot.frontier(voted, policy),
        "frontier of a policy": dm.plot.frontier(policy),
        "frontiers": dm.plot.frontier(both),
        "frontier of an evaluation": dm.plot.frontier(case["evaluated"]),
        "frontier of an audit": dm.plot.frontier(case["audited"]),
        "expected": dm.plot.expected(policy),
        "confidence": dm.plot.confidence(voted),
        "confidence of a policy": dm.plot.confidence(policy),
        "roc": dm.plot.roc(both),
        "reliability": dm.plot.reliability(voted),
        "comparison": dm.plot.comparison(both),
        "audit": dm.plot.audit(case["audited"]),
        "audit to come": dm.plot.audit(policy, n=100),
        "cascade": dm.plot.cascade(cascade),
        "cascade at two alphas": dm.plot.cascade(cascade, [0.05, 0.2]),
    }


def test_every_figure_is_a_chart_that_can_be_drawn(case):
    vl_convert = pytest.importorskip("vl_convert")
    for name, chart in figures(case).items():
        drawn = vl_convert.vegalite_to_svg(chart.to_json())
        assert drawn.startswith("<svg"), name
        assert "NaN" not in drawn, name


def test_figures_show_the_numbers_of_the_results(case):
    document = json.loads(dm.plot.comparison({"simulated": case["voted"]}).to_json())
    values = [
        row for layer in document["layer"] for row in layer.get("data", document.get("data", {})).get("values", [])
    ]
    assert values[0]["accuracy"] == case["voted"].correct.mean()
    text = dm.plot.audit(case["audited"]).to_json()
    for point in case["audited"]:
        assert f"{point.errors} found" in text
    assert "above " in dm.plot.audit(case["policy"], n=50).to_json()


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda case: dm.plot.frontier("pools.jsonl"), "expected voted pools with labels, or a policy, got str"),
        (lambda case: dm.plot.audit(case["policy"]), "say on how many questions"),
        (lambda case: dm.plot.confidence(dm.vote_pools(case["source"], labelled=False)), "have no labels"),
        (lambda case: dm.plot.roc(dm.VotedPools.of(dm.vote([["a"]] * 5), [True] * 5)), "needs some of each"),
    ],
)
def test_what_cannot_be_drawn_is_said(case, draw, said):
    with pytest.raises(InvalidValue, match=said):
        draw(case)


def test_without_altair_a_figure_says_what_to_install(case, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtra, match="figures need Altair; install it with: ") as told:
        dm.plot.frontier(case["voted"])
    assert "\n" not in str(told.value)


def test_a_report_is_saved_opened_and_shown(case, tmp_path, monkeypatch):
    page = dm.report(case["source"], case["policy"], voted=case["voted"], title="Mine")
    assert page.save(tmp_path / "page.html").read_text() == page.html
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert page.open().as_uri() == opened[0]
    dm.write_pools(case["source"], tmp_path / "pools.csv")
    assert dm.report(tmp_path / "pools.csv", score="simulated").title == "pools.csv"
    assert dm.report(case["source"].to_frame(), case["policy"]).title == "Report"


def test_nothing_heavy_is_imported_until_it_is_used():
    heavy = {"altair", "pandas", "pyarrow", "numpy", "importlib.metadata"}
    code = f"import sys, demur; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
    code = "import sys, demur.plot; print(sorted({'altair', 'pandas', 'pyarrow'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_notebook_runs_and_shows_everything(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is installed with the extra dev")
    import nbformat

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)
    source = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert "from demur" not in source  # public names only
    assert "import demur." not in source
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    pages = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert sum("<table" in page for page in pages) >= 5
    assert sum("vega" in page for page in pages) >= 5
