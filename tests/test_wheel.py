"""The built wheel: its parts are in it, and a strictly typed consumer checks against it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONSUMER = Path(__file__).with_name("consumer.py")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """An environment that holds the wheel, and borrows what it needs from this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return folder, site


def check(environment, tmp_path):
    folder, _ = environment
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(folder / "bin" / "python"),
         "--cache-dir", str(tmp_path / "cache"), str(CONSUMER)],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip


def test_everything_ships(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    source = ROOT / "src"
    wanted = {
        p.relative_to(source).as_posix()
        for p in (source / "demur").rglob("*")
        if p.suffix in (".py", ".html", ".css", ".js", ".svg", ".typed")
    }
    assert wanted <= set(names)
    assert "demur/py.typed" in names
    assert not [name for name in names if not name.startswith(("demur/", "demur-"))]


def test_a_strict_consumer_type_checks_against_the_wheel(environment, tmp_path):
    checked = check(environment, tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_without_py_typed_it_would_not(environment, tmp_path):
    """Negative control: the check above does look at the wheel."""
    _, site = environment
    marker = site / "demur" / "py.typed"
    marker.rename(marker.with_suffix(".away"))
    try:
        assert check(environment, tmp_path).returncode != 0
    finally:
        marker.with_suffix(".away").rename(marker)


def test_the_wheel_runs(environment, tmp_path):
    folder, site = environment
    code = "import demur; print(demur.__file__); import demur as dm; print(dm.vote([['a', 'a', 'b']]).answer)"
    ran = subprocess.run(
        [folder / "bin" / "python", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert str(site) in ran.stdout, ran.stderr
    assert "['a']" in ran.stdout
