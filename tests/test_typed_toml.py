"""Typed TOML: what a dataclass has is what a file may say, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from demur.errors import InvalidValue
from demur.typed_toml import read_toml, typed_fields


@dataclass(frozen=True)
class Settings:
    name: str
    count: int | None = None
    share: float = 0.5
    strict: bool = False
    levels: list[float] = field(default_factory=list)
    stop: tuple[str, ...] = ()
    anything: Any = None


def test_a_section_becomes_arguments():
    section = {"name": "x", "count": 3, "share": 1, "strict": True, "levels": [1, 0.5], "stop": ["a"], "anything": {}}
    assert Settings(**typed_fields(Settings, section, "here")) == Settings("x", 3, 1, True, [1, 0.5], ("a",), {})


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({}, "here needs 'name'"),
        ({"name": 3}, r"here\.name must be str, got 3"),
        ({"name": "x", "count": True}, "count must be int, got True"),
        ({"name": "x", "count": 1.5}, "count must be int"),
        ({"name": "x", "share": "half"}, "share must be float"),
        ({"name": "x", "strict": 1}, "strict must be bool"),
        ({"name": "x", "levels": [True]}, "levels must be list"),
        ({"name": "x", "levels": 1.0}, "levels must be list"),
        ({"name": "x", "stop": "a"}, "stop must be tuple"),
        ({"name": "x", "more": 1}, "unknown key 'more'; expected one of name, count"),
        ([], "here must be a section"),
        (None, "here must be a section"),
    ],
)
def test_what_does_not_fit_is_refused(section, said):
    with pytest.raises(InvalidValue, match=said):
        typed_fields(Settings, section, "here")


def test_flags_are_text_and_files_are_not():
    flags = {"name": "7", "count": "3", "share": "0.25", "strict": "TRUE"}
    assert typed_fields(Settings, flags, "here", as_text=True) == {
        "name": "7",
        "count": 3,
        "share": 0.25,
        "strict": True,
    }
    with pytest.raises(InvalidValue, match="count must be int, got '3'"):
        typed_fields(Settings, flags, "here")
    with pytest.raises(InvalidValue, match="count must be int, got 'many'"):
        typed_fields(Settings, {"name": "x", "count": "many"}, "here", as_text=True)


def test_only_some_fields_may_be_asked_for():
    assert typed_fields(Settings, {"count": 1}, "here", only=["count"]) == {"count": 1}
    with pytest.raises(InvalidValue, match="unknown key 'name'; expected one of count"):
        typed_fields(Settings, {"name": "x"}, "here", only=["count"])


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe", None])
def test_files_that_cannot_be_read_say_what_they_were_to_be(tmp_path, content):
    file = tmp_path / "a.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidValue, match=r"the study .*a\.toml cannot be read"):
        read_toml(file, "the study")


@pytest.mark.parametrize("part", ["a", "a ", '"a"', "'a'"])
@pytest.mark.parametrize("written", ["{key} = 1", "[{key}]", "x = {{ {key} = 1 }}"])
def test_a_key_of_very_many_parts_is_refused(tmp_path, part, written):
    file = tmp_path / "demur.toml"
    file.write_text(written.format(key=".".join([part] * 100_000)))
    with pytest.raises(InvalidValue, match="more than 100 parts"):
        read_toml(file, "settings")


def test_prompts_and_numbers_with_many_stops_are_read(tmp_path):
    file = tmp_path / "demur.toml"
    file.write_text(f'prompt = "{"One word. " * 40} {"." * 500} {"1.5, " * 500}"\nlevels = [{"0.5, " * 500}]\n')
    assert len(read_toml(file, "settings")["levels"]) == 500
