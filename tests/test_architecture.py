"""What the layout promises, checked: the wings stay apart, labels stay downstream, public names are one list."""

from __future__ import annotations

import ast
import re
import tomllib
from copy import deepcopy
from pathlib import Path

import grimp
import pytest
from importlinter.configuration import configure
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract

import demur as dm

configure()

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(dm.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted(entry.name for entry in SOURCE.iterdir() if (entry / "__init__.py").exists())

MACHINE = ("engine", "scoring", "store", "backends", "datasets")
METHOD = ("monitoring", "evaluation", "policy", "calibration", "evidence", "pools", "voting", "questions")
ABOVE = {
    "answers": "tasks",
    "prompts": "tasks",
    "pipeline": "study",
    "reports": "server",
    "server": "cli",
    "study": "reports",
    "cli": None,
    "files": "records",
    "shown": "records",
    "stopping": "tasks",
}
"""For each other package something that it must not import; the command line may import all."""
MAY_READ_GOLD = {
    "records.py",
    "pools/jsonl.py",
    "pools/frame_rows.py",
    "pools/gold.py",
    "pools/parquet.py",
    "pools/labels.py",
    "pools/respelled.py",
    "pools/simulated.py",
    "store/rows.py",
    "cli/simulate.py",
    "cli/demo.py",  # shows it beside votes, once all is decided
}


WRITES_JSON = {
    "files/strict_json.py",
    "answers/equivalence/_slow_worker.py",  # these two run as scripts of their own, without demur, and answer in texts
    "backends/_template_worker.py",
}
NOT_STRICT = {"dump", "dumps", "JSONEncoder", "JSONResponse", "ORJSONResponse", "UJSONResponse"}
"""What writes JSON by other rules than ours: with NaN in it, or not at all where a number is infinite."""


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("demur", include_external_packages=True, cache_dir=None)


def broken(graph, importer=None, imported=None):
    """The contracts that break when one import is added."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    changed = deepcopy(graph)
    if importer is not None:
        changed.add_import(importer=importer, imported=imported)
    kinds = {"layers": LayersContract, "forbidden": ForbiddenContract}
    session = {"root_packages": ["demur"], "include_external_packages": True}
    names = []
    for options in settings["contracts"]:
        plain = {key: str(value) if isinstance(value, bool) else value for key, value in options.items()}
        contract = kinds[options["type"]](options["name"], session, plain)
        if not contract.check(changed, verbose=False).kept:
            names.append(options["name"])
    return names


def test_all_contracts_are_kept(graph):
    assert broken(graph) == []


@pytest.mark.parametrize("package", MACHINE)
@pytest.mark.parametrize("imported", ["pools.labels", "evidence.counts", "policy.policy"])
def test_a_machine_that_looks_at_labels_breaks_a_contract(graph, package, imported):
    module = next(name for name in sorted(graph.modules) if name.startswith(f"demur.{package}."))
    assert "The machine cannot see the method, and so no label" in broken(graph, module, f"demur.{imported}")


@pytest.mark.parametrize("package", METHOD)
def test_a_method_that_asks_a_model_breaks_a_contract(graph, package):
    module = next(name for name in sorted(graph.modules) if name.startswith(f"demur.{package}."))
    assert "The method does without the machine" in broken(graph, module, "demur.backends.openai")


@pytest.mark.parametrize(("package", "above"), [(name, above) for name, above in ABOVE.items() if above])
def test_every_other_package_has_a_floor_above_it(graph, package, above):
    module = next(name for name in sorted(graph.modules) if name.startswith(f"demur.{package}."))
    target = f"demur.{above}" if f"demur.{above}" in graph.modules else f"demur.{above}.facts"
    assert broken(graph, module, target)


def test_every_package_stands_in_one_of_these_lists():
    assert sorted([*MACHINE, *METHOD, *ABOVE]) == PACKAGES


def test_a_private_module_is_its_packages_own_business(graph):
    private = [name for name in graph.modules if any(part.startswith("_") for part in name.split(".")[2:])]
    assert len(private) > 5
    for module in private:
        package = ".".join(module.split(".")[:2])
        outside = {name for name in graph.find_modules_that_directly_import(module) if not name.startswith(package)}
        assert not outside, f"{module} is imported by {outside}"


def test_the_order_within_a_wing_is_held(graph):
    assert broken(graph, "demur.store.run", "demur.scoring.own")
    assert broken(graph, "demur.voting.votes", "demur.evidence.counts")
    assert broken(graph, "demur.evidence.laws", "pathlib")


def test_only_what_keeps_gold_the_labels_and_the_simulator_touch_it():
    for module in MODULES:
        name = module.relative_to(SOURCE).as_posix()
        reads = [
            node
            for node in ast.walk(ast.parse(module.read_text()))
            if isinstance(node, ast.Attribute) and node.attr == "gold"
        ]
        assert not reads or name in MAY_READ_GOLD, f"{name} reads .gold"


def not_strict(source):
    """The ways to write JSON that a module names, but for pickle's and our own reply's."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield from ({alias.name for alias in node.names} & NOT_STRICT)
        elif isinstance(node, ast.Attribute) and node.attr in NOT_STRICT and getattr(node.value, "id", "") != "pickle":
            yield node.attr


def test_all_json_is_written_in_one_place_which_knows_no_infinite_numbers():
    for module in MODULES:
        name, found = module.relative_to(SOURCE).as_posix(), set(not_strict(module.read_text()))
        if name == "server/api/written.py":
            found.remove("JSONResponse")  # the reply that is written there
        assert not found or name in WRITES_JSON, f"{name} uses {found}; write JSON by files.strict_json.as_json"


@pytest.mark.parametrize(
    "line",
    ["import json as j; j.dumps(1)", "from json import dumps as d", "from json import dump", "json.JSONEncoder()"],
)
def test_json_that_is_written_elsewhere_is_found(line):
    assert list(not_strict(line))


def test_the_check_on_gold_can_fail():
    assert ".gold" in (SOURCE / "pools" / "labels.py").read_text()


def test_aliases_of_gold_are_read_where_gold_is_and_by_nothing_else():
    for module in MODULES:
        name = module.relative_to(SOURCE).as_posix()
        constants = [node.value for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Constant)]
        assert "aliases" not in constants or name in {"pools/gold.py", "pools/frame_rows.py"}, name


def test_verdicts_on_labels_reach_the_labels_the_report_and_those_who_ask_for_them(graph):
    """A judge of labels is no scorer: nothing that samples, scores, votes or decides imports it or its verdicts."""
    asking = {f"demur.pipeline.{name}" for name in ("label_judge", "check_sheet", "verdicts")}
    may = asking | {
        "demur.pools.labels",
        "demur.pools.label_rule",
        "demur.cli.judge_labels",
        "demur.reports.verdicts",
        "demur.study.cells",
    }
    for module in ("demur.pools.gold", "demur.pools.verdicts", *asking):
        assert graph.find_modules_that_directly_import(module) - may <= {"demur"}, module


def test_every_public_name_exists_and_is_listed():
    for name in dm.__all__:
        assert getattr(dm, name) is not None
    assert set(dir(dm)) == set(dm.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dm.nothing


def test_the_public_names_are_one_list():
    """What a type checker sees and what is looked up when it is used are the same names at the same homes."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {}
    for node in checked.body:
        for alias in node.names:
            seen[alias.name] = node.module.removeprefix("demur").lstrip(".")
    looked_up = dict(dm._MODULE_OF)
    for name, module in dm._MODULES.items():
        looked_up[name] = module.rpartition(".")[0]
    assert seen == looked_up
    assert set(dm.__all__) == {"__version__", *looked_up}
    assert len(dm.__all__) == len(set(dm.__all__))


def test_public_functions_never_hide_behind_a_module_of_the_same_name():
    modules = {entry.stem for entry in SOURCE.iterdir()}
    assert not (set(dm._MODULE_OF) & modules)


def test_no_junk_drawers_and_no_file_that_holds_two_ideas():
    for module in MODULES:
        assert module.stem not in {"utils", "util", "helpers", "common", "misc"}
        assert len(module.read_text().splitlines()) <= 400, module


def test_the_corridor_is_short():
    files = [entry.name for entry in SOURCE.iterdir() if entry.is_file()]
    assert len(files) <= 12, files


def test_the_tests_mirror_the_tree():
    folders = {entry.name for entry in (ROOT / "tests").iterdir() if any(entry.glob("test_*.py"))}
    assert set(PACKAGES) - folders == set()


def test_the_library_speaks_no_flags():
    """Remedies name options as {name}; only the command line words them as flags."""
    flag = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    for module in MODULES:
        name = module.relative_to(SOURCE).as_posix()
        if not name.startswith("cli/"):
            constants = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Constant)]
            texts = {node.value for node in constants if isinstance(node.value, str) and flag.search(node.value)}
            assert not texts - PIP_ARGUMENTS, name


PIP_ARGUMENTS = {"--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", "--dest", "uv pip --python "}
"""Arguments of another program, not words to anybody."""


def test_nothing_draws_from_the_generator_that_a_program_may_have_seeded():
    drawn = re.compile(r"(?<![\w.])(?:np\.)?random\.(?!Random\b|default_rng\b|Generator\b|SeedSequence\b|PCG64)\w+\(")
    assert {path.name: found for path in MODULES if (found := drawn.findall(path.read_text()))} == {}
