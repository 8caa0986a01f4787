"""`demur calibrate`: from labelled pools to a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import demur
from demur.cli import options, output, promise_flags, replacing, vote_flags
from demur.cli.policy_facts import audits_ahead, gate_facts, policy_facts, set_sizes
from demur.cli.policy_tables import show
from demur.cli.shift_options import ShiftFlags
from demur.cli.tuned_votes import tell_left_out, vote_as_tuned
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.calibration import Guarantee
    from demur.pipeline.label_file import LabelHeader

NAME = "calibrate"
HELP = """Calibrate an answer-or-abstain policy on labelled pools.

Uses every problem of the file; `--hold-out 0.5` keeps half of them back for `demur audit`.

Examples:

`demur calibrate pools.jsonl --score simulated --alpha 0.05 -o policy.json`

`demur calibrate pools.jsonl --alpha 0.05 --alpha 0.1 --hold-out 0.5 -o policy.json`

`demur calibrate pools.jsonl --score simulated --normaliser pool_z --tie-break mean_score --delta 0.1`

`demur calibrate pools.jsonl --selective --alpha 0.1 --delta 0.1 -o policy.json`

`demur calibrate pools.jsonl --alpha 0.05 --answer-sets 0.1 -o policy.json`

`demur calibrate pools.jsonl --correct judge_says --checked person_says --alpha 0.1 -o policy.json`

`demur calibrate pools.jsonl --simultaneous --delta 0.1 -o policy.json`

`demur calibrate pools.jsonl --tuned tuned.json --alpha 0.1 -o policy.json`

`demur calibrate pools.jsonl --score judge --chosen-from 4 --alpha 0.1 -o policy.json`

`demur calibrate pools.jsonl --shift shift.json --alpha 0.1 -o policy.json`

`demur calibrate pools.jsonl --outlier-level 0.05 --alpha 0.1 -o policy.json`

`demur calibrate pools.jsonl --by-group --group-field category --alpha 0.1 -o policy.json`
"""


def run(
    file: options.Pools,
    out: Annotated[Path | None, options.option("--out", "POLICY", "Where to write the policy.", "-o")] = None,
    key_file: options.KeyFile = None,
    alpha: options.Alpha = None,
    delta: options.Delta = None,
    smoothed: options.Smoothed = False,
    selective: options.Selective = False,
    answer_sets: options.AnswerSetAlpha = None,
    set_share: options.SetShare = None,
    simultaneous: options.Simultaneous = False,
    chosen_from: options.ChosenFrom = None,
    tuned_file: options.TunedFile = None,
    by_group: options.ByGroup = False,
    small_groups: options.SmallGroups = None,
    flags: vote_flags.VoteFlags = vote_flags.VoteFlags(),
    labels: vote_flags.LabelFlags = vote_flags.LabelFlags(),
    label_file: options.LabelFile = None,
    partly_labelled: options.PartlyLabelled = False,
    down_to: options.DownTo = None,
    checked: options.Checked = None,
    use_judge: options.UseJudge = False,
    traffic: ShiftFlags = ShiftFlags(),
    run_name: options.RunName = None,
    partial: options.Partial = False,
    config: options.Config = None,
    sizes_by_chance: options.SizesByChance = False,
    hold_out: options.HoldOut = 0.0,
    strict: options.Strict = False,
    seed: options.Seed = None,
    json: options.Json = False,
) -> None:
    replacing.refuse_overwriting(out, file, key_file, tuned_file, by=replacing.POLICY)
    if key_file is not None and out is None:
        raise InvalidValue("--key-file signs the policy that -o writes; name it")
    key = None if key_file is None else demur.read_key(key_file)  # before the work, not behind it
    guarantees = promise_flags.guarantees_of(
        alpha, delta, smoothed, seed, selective=selective, simultaneous=simultaneous, chosen_from=chosen_from
    )
    sets = promise_flags.answer_sets_of(answer_sets, set_share)
    guarantees = promise_flags.grouped(guarantees, small_groups, by_group=by_group)
    rule = labels.rule()
    header = None if label_file is None else label_header(label_file)
    is_check = checked is not None or (header is not None and header.check is not None)
    if header is not None and checked is not None:
        raise InvalidValue("--checked and --label-file are two places of people's labels; choose one")
    if header is not None and not is_check and (partly_labelled or down_to is not None or not rule.is_plain):
        raise InvalidValue("--label-file holds the labels; leave the other options about labels out")
    weights, gate = traffic.weights(), traffic.outlier_gate()
    wanted: dict[str, Any] = {"labelled": header is None or is_check, "partly_labelled": partly_labelled}
    tuned = None if tuned_file is None else demur.Tuned.load(tuned_file)
    if tuned is None:
        wanted |= {"checked": is_check, "weights": weights, "gate": gate}
        source, voted = flags.vote(file, run_name, config, rule, partial=partial, **wanted)
    elif weights is None and gate is None:
        source, voted = vote_as_tuned(tuned, file, run_name, flags, partial=partial, correct=rule, **wanted)
    else:
        raise InvalidValue("--tuned says how votes are made, without weights or a gate: leave one of the two out")
    if header is not None and label_file is not None:
        asked = alpha or delta or smoothed or by_group or chosen_from
        guarantees = guarantees_for(header, label_file, guarantees if asked else None)
        sizes_by_chance |= header.sizes_by_chance
        voted = voted if is_check else demur.labelled_by(voted, label_file)
    every = len(voted)
    voted = voted if tuned is None else tuned.rest(voted)
    policy = demur.calibrate(
        voted,
        guarantee=traffic.guarantees(_judged(guarantees, is_check=is_check) if use_judge else guarantees, weights),
        tuned=tuned,
        partly_labelled=partly_labelled or (header is not None and not is_check),
        down_to=down_to,
        checked=_checks(source, voted, checked, label_file) if is_check else None,
        sizes_by_chance=sizes_by_chance,
        answer_sets=sets,
        outlier_level=traffic.outlier_level,
        hold_out=hold_out,
        seed=seed or 0,
        strict=strict,
    )
    from demur.policy.groups import group_warnings
    from demur.policy.replaced import replaced_note, replacing_file

    policy = replacing_file(policy, out)
    if out is not None:
        policy.save(out, key=key)

    kept_back = voted.take(voted.split(hold_out=hold_out, seed=seed or 0).test) if hold_out else None
    held_out = 0 if kept_back is None else len(kept_back)
    facts = {
        "policy": None if out is None else str(out),
        "problems": policy.n if is_check else len(voted) - held_out - policy.unscored,
        "held_out": held_out,
        "left_out": source.left_out,
        **({} if tuned is None else {"tuned_on": every - len(voted), "tuned": tell_left_out(tuned, every, len(voted))}),
        **policy_facts(policy),
        **gate_facts(voted),
        "set_sizes": set_sizes(policy, voted),
        "audits": [] if kept_back is None else audits_ahead(policy, kept_back),
        "warnings": [*voted.score_warnings(), *policy.size_warnings(), *group_warnings(policy)],
    }
    facts["warnings"] += [note] if (note := replaced_note(policy)) else []
    if json:
        output.emit(facts)
    else:
        show(facts)


def _judged(guarantees: list[Guarantee], *, is_check: bool) -> list[Guarantee]:
    """The same promises, by the judge's labels too."""
    if not is_check:
        raise InvalidValue(
            "--use-judge is for labels by a judge that people checked: name --checked FIELD, or a --label-file that "
            "`label --check` wrote"
        )
    from demur.calibration.choices import choices_of

    kinds = {"marginal": demur.JudgeMarginal, "high_probability": demur.JudgeHighProbability}
    for one in guarantees:
        if one.name not in kinds:
            other = "by-group" if isinstance(one, demur.Grouped) else one.name
            raise InvalidValue(f"--use-judge and --{other} exclude each other: leave one out")
        if choices_of(one) > 1:
            raise InvalidValue("--use-judge knows no correction for a choice: leave it or --chosen-from out")
    made: list[Any] = [(kinds[one.name], one.parameters()) for one in guarantees]
    return [kind(**parameters) for kind, parameters in made]


def _checks(source: demur.PoolSource, voted: demur.VotedPools, field: str | None, file: Path | None) -> demur.Checks:
    """What people found, in a field of the pools or in a file of labels."""
    if field is None:
        assert file is not None
        return demur.checked_by(voted, file)
    from demur.pools.checked_field import read_checks

    return read_checks(source.pools, voted, field)


def label_header(file: Path) -> LabelHeader:
    """What a file of labels was begun for."""
    from demur.pipeline.label_file import read_label_file

    header = read_label_file(file).header
    if header is None:
        raise InvalidValue(f"{file} holds no labels", "make some with `demur label`")
    return header


def guarantees_for(header: LabelHeader, file: Path, asked: list[Guarantee] | None) -> list[Guarantee]:
    """What was asked for, or else what labels were begun for: a rank that is drawn was drawn before the first label."""
    if asked is None:
        return list(header.guarantees)
    drawn = {(one.name, one.alpha): one for one in header.guarantees if one.name.endswith("smoothed")}
    draws = [one for one in asked if one.name.endswith("smoothed")]
    lacking = [one.alpha for one in draws if (one.name, one.alpha) not in drawn]
    if lacking:
        raise InvalidValue(
            f"--smoothed draws a rank, and must before the first label; {file} was begun without one for alpha = "
            f"{lacking[0]:g}: leave --smoothed out, or label with it from the start"
        )
    return [drawn.get((one.name, one.alpha), one) for one in asked]
