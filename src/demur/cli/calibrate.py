"""`demur calibrate`: from labelled pools to a policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import demur
from demur.cli import options, output, promise_flags, replacing, vote_flags
from demur.cli.shift_options import ShiftFlags
from demur.cli.tuned_votes import tell_left_out, vote_as_tuned
from demur.errors import InvalidValue

if TYPE_CHECKING:
    from demur.calibration import Guarantee, Rule
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

`demur calibrate pools.jsonl --by-group --group-field category --alpha 0.1 -o policy.json`
"""
_OFFERED = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
"""Alphas that are shown where each may be chosen."""


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
    if header is not None and not is_check and (partly_labelled or not rule.is_plain):
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
        guarantees = guarantees_for(header, label_file, guarantees if alpha or delta or smoothed or by_group else None)
        sizes_by_chance |= header.sizes_by_chance
        voted = voted if is_check else demur.labelled_by(voted, label_file)
    every = len(voted)
    voted = voted if tuned is None else tuned.rest(voted)
    policy = demur.calibrate(
        voted,
        guarantee=traffic.guarantees(_judged(guarantees, is_check=is_check) if use_judge else guarantees, weights),
        tuned=tuned,
        partly_labelled=partly_labelled or (header is not None and not is_check),
        checked=_checks(source, voted, checked, label_file) if is_check else None,
        sizes_by_chance=sizes_by_chance,
        answer_sets=sets,
        hold_out=hold_out,
        seed=seed or 0,
        strict=strict,
    )
    if out is not None:
        policy.save(out, key=key)
    from demur.policy.groups import group_warnings

    kept_back = voted.take(voted.split(hold_out=hold_out, seed=seed or 0).test) if hold_out else None
    held_out = 0 if kept_back is None else len(kept_back)
    facts = {
        "policy": None if out is None else str(out),
        "problems": policy.n if is_check else len(voted) - held_out - policy.unscored,
        "held_out": held_out,
        "left_out": source.left_out,
        **({} if tuned is None else {"tuned_on": every - len(voted), "tuned": tell_left_out(tuned, every, len(voted))}),
        **policy_facts(policy),
        "set_sizes": _set_sizes(policy, voted),
        "audits": [] if kept_back is None else _audits_ahead(policy, kept_back),
        "warnings": [*voted.score_warnings(), *policy.size_warnings(), *group_warnings(policy)],
    }
    if json:
        output.emit(facts)
    else:
        _show(facts)


def _judged(guarantees: list[Guarantee], *, is_check: bool) -> list[Guarantee]:
    """The same promises, by the judge's labels too."""
    if not is_check:
        raise InvalidValue(
            "--use-judge is for labels by a judge that people checked: name --checked FIELD, or a --label-file that "
            "`label --check` wrote"
        )
    kinds = {"marginal": demur.JudgeMarginal, "high_probability": demur.JudgeHighProbability}
    if others := {one.name for one in guarantees} - set(kinds):
        raise InvalidValue(f"--use-judge and --{others.pop()} exclude each other: leave one out")
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


def _set_sizes(policy: demur.Policy, voted: demur.VotedPools) -> list[str]:
    """How large the answer sets of this file are at each operating point, in words; no label has a say in that."""
    rules = policy.points if policy.sets else ()
    decided = [policy.decide_votes(voted.votes, alpha=rule.alpha, guarantee=rule.guarantee.name) for rule in rules]
    return [decisions.set_note() for decisions in decided]


def _audits_ahead(policy: demur.Policy, kept_back: demur.VotedPools) -> list[dict[str, Any]]:
    """What an audit of the problems that were kept back may find."""
    cases = kept_back.votes.cases.take(kept_back.counted)
    audits = []
    for rule in policy.points:
        if rule.feasible:
            counts = (cases if rule.needs_groups else cases.without_groups()).counts()
            audits.append(demur.audit_outlook(policy, counts, alpha=rule.alpha, guarantee=rule.guarantee.name))
    return [audit.document() for audit in audits]


def policy_facts(policy: demur.Policy) -> dict[str, Any]:
    """What a policy is, and what to expect of it."""
    from demur.policy.label_notes import label_notes
    from demur.policy.points import held_at_once
    from demur.policy.prices import price_of
    from demur.policy.weighing import weight_notes

    evidence = policy.evidence
    gaps, top = demur.Separability.of(evidence), evidence.by_confidence
    gap = gap_at = math.nan
    if evidence.n_right and evidence.n_wrong and not evidence.n_unlabelled:
        widest = int(gaps.separability_gap.argmax())
        gap, gap_at = float(gaps.separability_gap[widest]), float(gaps.threshold[widest])
    points = []
    for rule in policy.points:
        forecast = asdict(policy.forecast(rule.alpha, rule.guarantee.name))
        rates = {name: rate for name, rate in forecast.items() if name not in ("alpha", "threshold")}
        known = {"feasible": rule.feasible, "n_needed": rule.guarantee.n_needed(), "threshold": rule.threshold}
        promised = {"threshold_key": list(rule.threshold_key), "promise": rule.promise, "forecast": rates}
        every = policy.forecast_per_question(rule.alpha, rule.guarantee.name)
        if every is not None:
            promised["per_question"] = {"answered": every.answered, "confident_error": every.confident_error}
        promised |= {"told": rule.told, "tie_note": policy.tie_note(rule)}
        known |= {"among_answers": rule.among_answers}
        promised |= {"answer_sets": _set_facts(policy, rule)} if policy.sets else {}
        if (price := price_of(policy, rule)) is not None:
            known |= {"price": price[0]}
            promised |= {"price_note": price[1]}
        if rule.needs_groups:
            promised["groups"] = _group_facts(policy, rule)
        points.append(rule.document() | {"alpha": rule.alpha} | known | promised)
    return {
        "n": policy.n,
        "unit": policy.unit,
        "sizes": policy.sizes,
        "sizes_by_chance": policy.strata.by_chance,
        "size_note": policy.size_note(),
        "unscored": policy.unscored,
        "labelled": policy.n - evidence.n_unlabelled,
        "label_notes": label_notes(policy),
        "effective_size": evidence.effective_size,
        "weight_notes": weight_notes(policy),
        "key": list(policy.recipe.names),
        **({} if policy.judge is None else {"judge": policy.judge.facts()}),
        "pipeline": policy.pipeline,
        "labels": policy.labels.describe(),
        "fingerprint": policy.fingerprint,
        "vote_accuracy": evidence.vote_accuracy,
        **output.frontier_facts(demur.Frontier.of(evidence)),
        "separability_gap": gap,
        "separability_gap_at": gap_at,
        "confident_and_wrong": int(top.not_right[-1]) / evidence.n if top.levels[-1, 0] == 1 else 0.0,
        "points": points,
        **({} if held_at_once(policy) is None else {"bounds": policy.bounds(_OFFERED).columns()}),
    }


def _set_facts(policy: demur.Policy, rule: Rule) -> dict[str, Any]:
    """What is known of the answer sets of one operating point."""
    from demur.policy.set_notes import set_note

    sets = policy.sets_of(rule)
    assert sets is not None
    counts = {"n": sets.n, "n_needed": sets.needed, "questions": sets.questions}
    return {"alpha": sets.alpha, **counts, "note": set_note(policy, rule)}


def _group_facts(policy: demur.Policy, rule: Rule) -> list[dict[str, Any]]:
    """What to expect in each group, small ones too."""
    rows = []
    for name, told in policy.forecast_by_group(rule.alpha, rule.guarantee.name).items():
        own, part = rule.of_kind((name,)), policy.strata.of_group(name)
        right, wrong = rule.answered(part)
        rows.append(
            {
                "group": name,
                "n": part.n,
                "threshold": own.threshold,
                "threshold_key": list(own.threshold_key),
                "told": own.told,
                "stand_in": bool(rule.stand_in((name,))),
                "n_answered": right + wrong,
                "n_wrong": wrong,
                "forecast": {key: value for key, value in asdict(told).items() if key not in ("alpha", "threshold")},
            }
        )
    return rows


def _by(score: dict[str, Any]) -> str:
    """Which model a score comes from, where it comes from one."""
    model = (score.get("scorer") or {}).get("model")
    return f" by {output.visible(model)}" if model else ""


def _bound(key: list[str]) -> Callable[[dict[str, Any]], str]:
    """What must be exceeded: the confidence and, behind it, what breaks ties; a draw says nothing to anybody."""

    def told(point: dict[str, Any]) -> str:
        if not point["told"].startswith("answers above"):
            return str(point["told"])
        parts = zip(key, point["threshold_key"], strict=True)
        bound = " / ".join(f"{part:.4f}" for name, part in parts if name != "jitter" and math.isfinite(part))
        if "by_group" in point:
            return f"{bound} or more, by group"
        return f"{bound} or more, by paths" if "by_size" in point else bound

    return told


def _show(facts: dict[str, Any]) -> None:
    vote, score = facts["pipeline"]["vote"], facts["pipeline"]["score"]
    sets = [point["answer_sets"] for point in facts["points"] if "answer_sets" in point]
    for_sets = sets[0]["questions"] if sets else 0
    again = facts["problems"] - facts["n"] - for_sets
    output.say(
        f"{facts['n']} calibration {facts['unit']}s"
        + (f" ({again} more share a cluster or question with one of them and are not counted)" if again else "")
        + (f", {for_sets} more kept for answer sets" if for_sets else "")
        + (f", {facts['unscored']} pools left out for want of a score" if facts["unscored"] else "")
        + (f", {facts['held_out']} problems held out" if facts["held_out"] else "")
        + f"; score {score['name'] or 'none (majority vote)'}{_by(score)}, normaliser {vote['normaliser']}, "
        f"weight {vote['weight']}, ties broken by {vote_flags.told_ties(vote)}"
    )

    if "tuned" in facts:
        output.say(facts["tuned"])

    def forecast(name: str) -> Callable[[dict[str, Any]], str]:
        return lambda point: output.percent(point["forecast"][name])

    columns: output.Columns = {
        "alpha": lambda point: f"{point['alpha']:g}",
        "answers above": _bound(facts["key"]),
        "answered": forecast("answered"),
        "of those right": forecast("selective_accuracy_corrected"),
        "at least (95 %)": forecast("accuracy_at_least"),
        "answered wrongly": forecast("expected_confident_error"),
        "right, withheld": forecast("false_abstention"),
    }
    if facts["unit"] == "cluster":
        columns = {
            **columns,
            "of clusters, in calibration": forecast("confident_error"),
            "of all questions there": lambda point: output.percent(point["per_question"]["confident_error"]),
        }
    if len({point["alpha"] for point in facts["points"]}) < len(facts["points"]):
        columns = {"guarantee": lambda point: point["guarantee"].replace("_", " "), **columns}
    output.table_of("What to expect", facts["points"], columns)
    for point in facts["points"]:
        if "groups" in point:
            _show_groups(point, facts["key"])
    if "bounds" in facts:
        _show_bounds(facts["bounds"])
    output.say(*(point["price_note"] for point in facts["points"] if "price_note" in point))
    output.say(*(f"{note}." for note in (*facts["label_notes"], *facts["weight_notes"])))
    if facts["labelled"] == facts["n"] and not math.isnan(facts["vote_accuracy"]):
        _show_vote(facts)
    for point in facts["points"]:
        if point["feasible"] and point["among_answers"] and point["told"] == "never answers":
            output.say(
                f"At no threshold are errors few enough to promise alpha = {point['alpha']:g} of the answers: more "
                "calibration questions, a larger alpha or a better score would be needed, or `demur decide --fdr`."
            )
        elif point["feasible"] and vote["tie_break"] is None and point["threshold"] == 1 and "groups" not in point:
            wrong = "wrong" if facts["labelled"] == facts["n"] else "wrong, or not known to be right"
            output.say(
                f"At full confidence {output.percent(facts['confident_and_wrong'])} of all votes are {wrong}, too many "
                f"for alpha = {point['alpha']:g}: no threshold on this confidence can answer. {options.TIES_REMAIN}"
            )
        elif point["tie_note"]:
            output.say(f"{point['tie_note']} {options.TIES_REMAIN}")
    output.warn(facts["warnings"])
    output.say(*([facts["size_note"]] if facts["size_note"] else []), *(point["promise"] for point in facts["points"]))
    if any(point["among_answers"] for point in facts["points"]):
        output.say(
            "The promise is about the answers given, in the long run: it is not that any one answer is right. It is "
            "paid for with answers; `demur decide --fdr` promises an average over batches instead, and answers more."
        )
    else:
        whole = "all questions of a group" if any("groups" in point for point in facts["points"]) else "all questions"
        output.say(
            f"The promise is about {whole} together: it is not that any one answer is right, nor that a share "
            "1 − alpha of the answers given are."
        )
    for point, sizes in zip(facts["points"], facts["set_sizes"], strict=False):
        note = f"Answer sets, where alpha = {point['alpha']:g} abstains: {point['answer_sets']['note']}"
        output.say(note, *([f"In this file, {sizes}"] if sizes else []))
    output.say(*(f"Before you audit: {ahead['sentence']}" for ahead in facts["audits"]))
    output.wrote(facts["policy"])


def _show_bounds(bounds: dict[str, list[float]]) -> None:
    """What each alpha would bring, where every alpha is promised."""
    rows = [dict(zip(bounds, row, strict=True)) for row in zip(*bounds.values(), strict=True)]
    columns: output.Columns = {
        "any of these alphas": lambda row: f"{row['alpha']:g}",
        "answers above": lambda row: f"{row['threshold']:.4f}" if row["answered"] else "never answers",
        "answered": lambda row: output.percent(row["answered"]),
        "of those right": lambda row: output.percent(row["selective_accuracy"]),
    }
    output.table_of("Choose after looking: decide with --alpha, be it here or in between", rows, columns)


def _show_groups(point: dict[str, Any], key: list[str]) -> None:
    """A row per group."""
    bound = _bound(key)
    columns: output.Columns = {
        "group": lambda row: output.visible(row["group"], 60),
        "questions": lambda row: str(row["n"]),
        "answers above": lambda row: bound(row) + (" (of all)" if row["stand_in"] else ""),
        "answered": lambda row: str(row["n_answered"]),
        "of those wrong": lambda row: str(row["n_wrong"]),
        "expect answered": lambda row: output.percent(row["forecast"]["answered"]),
        "expect answered wrongly": lambda row: output.percent(row["forecast"]["expected_confident_error"]),
    }
    output.table_of(f"By group, alpha {point['alpha']:g}", point["groups"], columns)


def _show_vote(facts: dict[str, Any]) -> None:
    """What the labels say of the vote itself."""
    output.say(
        f"Vote accuracy without abstaining {output.percent(facts['vote_accuracy'])}; confidence ranks a right vote "
        f"above a wrong one {output.percent(facts['auroc'])} of the time (50 % is no better than chance); largest "
        f"separability gap {output.number(facts['separability_gap'])} at {output.number(facts['separability_gap_at'])}."
    )
