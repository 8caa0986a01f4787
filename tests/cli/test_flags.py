"""Flags mean the same everywhere: one default and one help text, `--json` and `-h` in every verb, and completion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from demur.calibration import GUARANTEES
from demur.cli import app

COMMANDS = get_command(app).commands
EXCEPTIONS = {
    "--out": "what is written is each verb's own",
    "--run": "sample and import name a run that they make, the others choose one that is there",
    "--alpha": "audit, decide and ask choose an operating point of a policy",
    "--hold-out": "calibrate uses every problem unless told; a report without others has nothing to show",
    "--max-tokens": "a judge's reply is not a path",
    "--task": "sample says what questions are that do not say it themselves",
    "--score": "score computes some, calibrate reads one, ask is given the function of its policy's",
    "--checked": "judge-labels reads a sheet that people filled in, calibrate a field",
    "--policy": "serve takes several, each under a name",
    "--batch": "export writes requests to a file, import is told that its files answer some",
    "--extract": "ask is given the function of its policy's",
}


def flags_of(command):
    return {parameter.opts[0]: parameter for parameter in command.params if parameter.opts[0].startswith("-")}


def variants():
    """By flag, its defaults and help texts, and the verbs that have them."""
    found = {}
    for verb, command in COMMANDS.items():
        for flag, parameter in flags_of(command).items():
            if not parameter.hidden:
                found.setdefault(flag, {}).setdefault((repr(parameter.default), parameter.help), []).append(verb)
    return found


def test_a_flag_has_one_default_and_one_help_text_in_all_verbs():
    differing = {flag: told for flag, told in variants().items() if len(told) > 1}
    assert set(differing) == set(EXCEPTIONS), {flag: differing[flag] for flag in set(differing) - set(EXCEPTIONS)}


def test_every_flag_of_every_verb_has_help():
    bare = {(verb, flag) for verb, command in COMMANDS.items() for flag, p in flags_of(command).items() if not p.help}
    assert bare == {("evaluate", "--policy")}  # hidden: it says where it went


def test_the_page_on_sampling_names_the_verbs_that_read_a_configuration():
    page = (Path(__file__).resolve().parents[2] / "docs" / "sampling.md").read_text(encoding="utf-8")
    told = page.partition("## One configuration")[2].partition("flags override it.")[2].partition(" read it.")[0]
    reading = {verb for verb, command in COMMANDS.items() if "--config" in flags_of(command)}
    assert set(re.findall(r"`([a-z-]+)`", told)) == reading


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_every_verb_can_speak_json(verb):
    assert "--json" in flags_of(COMMANDS[verb])


@pytest.mark.parametrize("verb", ["", *COMMANDS])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_verb_helps(demur, verb, flag):
    ran = demur(*([verb] if verb else []), flag)
    assert (ran.code, ran.err) == (0, "")
    assert "Usage" in ran.out


def test_demur_alone_shows_its_help_and_is_content(demur):
    ran = demur()
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == demur("--help").out
    assert all(verb in ran.out for verb in COMMANDS)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("cal", {"calibrate"}),
        ("calibrate pools.jsonl --gold", {"--gold-tolerance", "--gold-containment"}),
        ("calibrate pools.jsonl --score s", {"simulated"}),
        ("calibrate pools.parquet --score ju", {"judge"}),
        ("calibrate pools.jsonl --tie-break j", {"jitter:0"}),
        ("calibrate pools.jsonl --normaliser pool", {"pool_z", "pool_minmax"}),
        ("calibrate pools.jsonl --weight l", {"linear"}),
        ("calibrate pools.jsonl --relation m", {"mathematics"}),
        ("evaluate pools.jsonl --task gs", {"gsm8k"}),
        ("decide pools.jsonl --guarantee h", {"high_probability"}),
        ("sample builtin:w", {"builtin:word-problems"}),
        ("score run.db --score rew", {"reward"}),
        ("study study.toml --format p", {"png", "pdf"}),
    ],
)
def test_the_tab_key_completes(demur, pools, monkeypatch, typed, offered):
    words = typed.split(" ")
    monkeypatch.setenv("_DEMUR_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"demur {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    ran = demur()
    assert set(ran.out.split()) == offered


def test_a_shell_can_be_told_to_complete():
    root = {flag for parameter in get_command(app).params for flag in parameter.opts}
    assert {"--install-completion", "--show-completion"} <= root


def test_what_tab_offers_is_taken():
    from demur.answers.relations import relation_named
    from demur.calibration.grouped import FALLBACKS
    from demur.cli import completion
    from demur.tasks import task_named
    from demur.voting.key import key_of
    from demur.voting.normalisers import parse_normaliser
    from demur.voting.weights import parse_weight

    def tie_break(text):
        return key_of(f"{text}x" if text.endswith(":") else text, idle_score=False, told_apart=True)

    parsers = {
        relation_named: completion.RELATIONS,
        task_named: completion.TASKS,
        parse_weight: completion.WEIGHTS,
        lambda text: parse_normaliser(f"{text}0,1" if text.endswith(":") else text): completion.NORMALISERS,
        tie_break: completion.TIE_BREAKS,
    }
    for parse, values in parsers.items():
        for value in values:
            assert parse(value) is not None
    assert set(GUARANTEES) == set(completion.GUARANTEES)
    assert set(FALLBACKS) == set(completion.FALLBACKS)
    assert all(name in COMMANDS["sample"].params[0].help for name in completion.DATASETS)
