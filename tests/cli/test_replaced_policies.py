"""A policy that takes the place of one of the same problems made with another seed says so, in file and output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import demur as dm
from demur.errors import PolicyFileError


def made(demur, *flags, out="p.json", pools="pools.jsonl"):
    """The seeds that the file names after a calibration, and the lines of the output about them."""
    ran = demur("calibrate", pools, "--alpha", 0.1, "-o", out, *flags)
    assert ran.code == 0, ran.err
    told = [line for line in ran.out.splitlines() if "made with other seeds" in line]
    return json.loads(Path(out).read_text()).get("replaced"), told


def test_another_hold_out_seed_is_named_in_file_and_output(demur, pools):
    assert made(demur, "--hold-out", 0.5) == (None, [])
    replaced, [told] = made(demur, "--hold-out", 0.5, "--seed", 1)
    assert replaced == [{"jitter": 0, "hold_out": 0}]
    assert told.startswith("warning: replaces 1 policy of the same problems made with other seeds (hold-out seed 0, ")
    assert "replaces 1 policy" in dm.Policy.load("p.json").summary()


def test_seeds_are_counted_across_repeated_replacing_each_once(demur, pools):
    for seed in range(4):
        made(demur, "--hold-out", 0.5, "--seed", seed)
    replaced, [told] = made(demur, "--hold-out", 0.5, "--seed", 0)
    assert [seeds["hold_out"] for seeds in replaced] == [0, 1, 2, 3]
    assert "replaces 4 policies" in told
    replaced, _ = made(demur, "--hold-out", 0.5, "--seed", 0)  # the same again loses nothing and adds nothing
    assert [seeds["hold_out"] for seeds in replaced] == [0, 1, 2, 3]


def test_another_jitter_seed_is_named(demur, pools):
    made(demur, "--tie-break", "jitter:0")
    replaced, [told] = made(demur, "--tie-break", "jitter:7")
    assert (replaced, "(jitter seed 0)" in told) == ([{"jitter": 0}], True)


@pytest.mark.parametrize("flags", [(), ("--hold-out", 0.5, "--seed", 3), ("--tie-break", "none")])
def test_the_same_seeds_are_no_replacement(demur, pools, flags):
    made(demur, *flags)
    assert made(demur, *flags) == (None, [])


def test_a_policy_of_other_problems_is_no_replacement(demur, pools):
    assert demur("simulate", "-o", "others.jsonl", "-n", 400, "-m", 8, "--seed", 9).code == 0
    made(demur, "--hold-out", 0.5)
    assert made(demur, "--hold-out", 0.5, "--seed", 1, pools="others.jsonl") == (None, [])


def test_a_file_that_is_no_usable_policy_names_nothing(demur, pools):
    made(demur, "--hold-out", 0.5)
    Path("p.json").write_text(Path("p.json").read_text().replace('"n":', '"m":'))
    assert made(demur, "--hold-out", 0.5, "--seed", 1) == (None, [])


def test_json_has_it_among_the_warnings_and_nonsense_in_a_file_is_refused(demur, pools):
    made(demur, "--hold-out", 0.5)
    ran = demur("calibrate", "pools.jsonl", "--alpha", 0.1, "-o", "p.json", "--hold-out", 0.5, "--seed", 1, "--json")
    assert any("made with other seeds" in warning for warning in ran.json["warnings"])
    document = dm.Policy.load("p.json").document()
    assert dm.Policy.of_document(document).replaced == ({"jitter": 0, "hold_out": 0},)
    for nonsense in ("x", [3], [{"jitter": "0"}], [{"other": 1}]):
        with pytest.raises(PolicyFileError, match="`replaced` must be a list of seeds"):
            dm.Policy.of_document({**document, "replaced": nonsense})


def test_an_older_policy_without_its_seed_is_read_as_it_was(demur, pools):
    made(demur, "--hold-out", 0.5)
    document = dm.Policy.load("p.json").document()
    del document["calibration"]["seed"]
    assert dm.Policy.of_document(document).seen.seed is None
