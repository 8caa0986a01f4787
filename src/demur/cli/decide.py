"""`demur decide`: a policy on pools, labelled or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import demur
from demur.cli import cascade_use, decision_files, options, output, policy_files, replacing, vote_flags
from demur.cli.decision_folders import DecisionFolder, is_folder
from demur.errors import InvalidValue

NAME = "decide"
HELP = """Answer or abstain on every problem of a file, by a policy.

Reads answers and scores as the policy was calibrated; gold, if the file has any, is not looked at. With `--fdr` the
file is one batch: of the answers given to it, the expected share that is wrong is at most that, whatever the policy
promises for single questions. Where the policy has answer sets, a question that is abstained from comes with one. With
`--cascade` give the pools of each stage in order; later ones may lack what an earlier stage answers, and `--needed`
writes the questions that a stage has still to be sampled for. Decisions go to JSON lines or CSV, to Parquet, here or at
an address such as s3://, or with a name that ends in / to a folder: one Parquet file for each of the input, written
whole, so that the same command goes on where one was ended.

Examples:

`demur decide new.jsonl --policy policy.json -o decisions.jsonl`

`demur decide shards/ --policy policy.json -o decisions.parquet`

`demur decide s3://bucket/new --policy policy.json -o s3://bucket/decided/`

`demur decide new.jsonl --policy policy.json --fdr 0.1`

`demur decide cheap.jsonl --cascade cascade.json --needed ask-strong.jsonl`
"""

_OUT = (
    "Write one decision per line (.jsonl, .jsonl.gz) or row (.csv, .tsv, .parquet); FOLDER/: a .parquet file per file "
    "of the input."
)
_SHOWN = 20
_ANSWERS = 6
"""Answers of a set that are shown."""


def run(
    files: options.ManyPools,
    policy: options.MaybePolicyFile = None,
    cascade: options.CascadeFile = None,
    key_file: options.KeyFile = None,
    out: Annotated[options.Text, options.option("--out", "FILE", _OUT, "-o")] = None,
    alpha: options.OneAlpha = None,
    guarantee: options.GuaranteeName = None,
    fdr: options.Fdr = None,
    drop_seen: options.DropSeen = False,
    needed: Annotated[
        Path | None, options.option("--needed", "FILE", "With --cascade: write the questions that need another stage.")
    ] = None,
    task: options.Task = None,
    stop: options.StopRule = None,
    wave: options.Wave = None,
    run_name: options.RunName = None,
    json: options.Json = False,
) -> None:
    from demur.policy.set_notes import set_note

    if out == "":
        raise InvalidValue("'' is not a file name; name one with -o")
    if not is_folder(out):
        replacing.refuse_overwriting(out, *files, policy, cascade, key_file, by=decision_files.written_as(out))
    if cascade is not None:
        if is_folder(out):
            raise InvalidValue(f"with --cascade decisions go to one file, and {out} is a folder; name a file")
        policy_files.refuse_beside_cascade(policy=policy, alpha=alpha, guarantee=guarantee, fdr=fdr)
        policy_files.refuse_beside_cascade(stop=stop, wave=wave)
        loaded_cascade = policy_files.load_cascade(cascade, key_file)
        cascade_use.decide(loaded_cascade, files, run_name, out, needed, task=task, json=json)
        return
    if policy is None:
        raise InvalidValue("name the policy with --policy, or a cascade with --cascade")
    if needed is not None:
        raise InvalidValue("--needed is for --cascade: one policy needs no other stage")
    file = policy_files.one_of(files, "policy")
    if fdr is not None and (alpha is not None or guarantee is not None):
        raise InvalidValue("--fdr is a promise of its own, for a whole file: leave --alpha and --guarantee out")
    if drop_seen and fdr is None:
        raise InvalidValue("--drop-seen goes with --fdr: a promise about single questions needs no batch of new ones")
    loaded = policy_files.load_policy(policy, key_file)
    flags = {
        "alpha": alpha,
        "guarantee": guarantee,
        "fdr": fdr,
        **({"drop_seen": True} if drop_seen else {}),
        "task": task,
        "stop": stop,
        "wave": wave,
    }
    folder = DecisionFolder.opened(out, file, policy, flags) if out is not None and is_folder(out) else None
    how: dict[str, Any] = {"partial": True, "task": task, "stop": vote_flags.stopping_flags(stop, wave)}
    voted = vote_flags.vote_by_policy(file, run_name, loaded, labelled=False, **how)
    selected = None if fdr is None else loaded.select(voted, fdr=fdr, drop_seen=drop_seen)
    decided = selected or loaded.decide_votes(voted.votes, alpha=alpha, guarantee=guarantee)
    names = loaded.recipe.names
    some = decided if json else (decided[row] for row in range(min(len(decided), _SHOWN)))
    lines = [decision_line(decision, names) for decision in some]
    if folder is not None:
        folder.write(decided, lambda decision: decision_line(decision, names), names)
    elif out is not None and json:
        decision_files.write_decisions(lines, out, key=names)
    elif out is not None:
        decision_files.write_decided(decided, lambda decision: decision_line(decision, names), out, names)
    if selected is not None and (seen := len(voted) - len(selected)):
        output.say_in_the_end(f"{seen} of {len(voted)} problems calibrated this policy, and are left out of the batch.")
    rule, n, n_answered = decided.rule, len(decided), int(decided.answered.sum())
    if json:
        how = {"alpha": rule.alpha, "threshold": rule.threshold, "guarantee": rule.guarantee.name}
        how |= {} if selected is None else {"fdr": selected.fdr, "cut_off": selected.cut_off}
        how |= {"by_size": {size: list(rule.threshold_of(size)) for size in loaded.sizes}} if rule.by_size else {}
        how |= {"by_group": rule.document()["by_group"]} if rule.needs_groups else {}
        counts = {"problems": n, "n_answered": n_answered, "answered": n_answered / n}
        how |= (
            {}
            if decided.sets is None
            else {"answer_sets": {"alpha": decided.sets.alpha, "note": set_note(loaded, rule)}}
        )
        counts |= {} if selected is None else {"left_out": len(voted) - n}
        counts |= {"of_rare_size": int(decided.of_rare_size.sum()), "unscored": int(decided.unscored.sum())}
        how |= {"size_shift": decided.size_shift} if decided.size_shift else {}
        counts |= {} if decided.likeness is None else {"outliers": int(decided.outliers.sum())}
        counts |= {"of_small_group": int(decided.of_small_group.sum())} if rule.needs_groups else {}
        output.emit({**how, "promise": rule.promise, **counts, "decisions": lines})
        return
    title = f"Decisions at alpha {rule.alpha:g}, which {rule.told}"
    if selected is not None:
        title = f"Selection at fdr {selected.fdr:g}: of this batch, p-values up to {selected.cut_off:.4g} are answered"
    if rule.by_size and selected is None:
        title += " (more for some numbers of paths)"
    ties: output.Columns = {}
    by_group, says_key = rule.needs_groups, len(names) > 1 and not rule.needs_groups
    if selected is None and says_key and rule.threshold > 0 and not rule.never_answers:
        title += f" or, at that confidence, above {rule.threshold_key[1]:.4g} in {names[1].replace('_', ' ')}"
        ties = {name.replace("_", " "): _tie(name) for name in names[1:] if name != "jitter"}
    columns: output.Columns = {
        "problem": lambda line: output.visible(line["id"], 80),
        **({"group": lambda line: output.visible(", ".join(line.get("groups", ())), 40)} if by_group else {}),
        "answer": lambda line: output.DASH if line["answer"] is None else output.visible(line["answer"]),
        **({} if decided.sets is None else {"or one of": _set}),
        "confidence": lambda line: f"{line['confidence']:.4f}",
        **ties,
        "p-value": lambda line: f"{line['p_value']:.4f}",
        "paths per answer": _votes,
    }
    output.table_of(title, lines, columns)
    if n > _SHOWN:
        output.say(f"… and {n - _SHOWN} more" + ("" if out is not None else "; -o FILE writes them all"))
    share = output.percent(n_answered / n)
    output.say(f"Answered {n_answered} of {n} ({share}), abstained on the rest.", rule.promise)
    if decided.sets is not None and n_answered < n:
        output.say(*dict.fromkeys([decided.set_note(), set_note(loaded, rule)]))
    output.warn(decided.notes())
    if folder is not None:
        output.say(folder.told)
    else:
        output.wrote(out)


def _votes(line: dict[str, Any]) -> str:
    """How many paths gave each answer, and how many none."""
    shown, hidden = list(line["support"].items())[:4], list(line["support"].items())[4:]
    votes = [f"{output.visible(key, 20)} ×{paths}" for key, paths in shown]
    votes += [f"others ×{sum(paths for _, paths in hidden)}"] if hidden else []
    return ", ".join([*votes, *([f"no answer ×{line['without_answer']}"] if line["without_answer"] else [])])


def _set(line: dict[str, Any]) -> str:
    return output.DASH if line.get("answer_set") is None else told_set(line, 20)


def told_set(line: dict[str, Any], width: int) -> str:
    """The answers of a set, and OTHER where it holds that; a few of them where there are many."""
    answers = [output.visible(answer, width) for answer in line["answer_set"]]
    some = answers if len(answers) <= _ANSWERS else [*answers[:_ANSWERS], f"{len(answers) - _ANSWERS} more"]
    return " · ".join([*some, *(["OTHER"] if line["or_other"] else [])]) or "none of the paths' answers"


def _tie(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda line: output.number(line["key"][name])


def decision_line(decision: demur.Decision, names: Sequence[str]) -> dict[str, Any]:
    """A decision as a line of a file; `names` are those of the numbers of its key."""
    compared = ("confidence", "threshold", "threshold_key", "p_value", "alpha")
    return {
        "id": decision.id,
        "decision": "abstain" if decision.abstained else "answer",
        "answer": decision.answer,
        **{name: getattr(decision, name) for name in compared},
        "support": dict(decision.support),
        "n_paths": decision.n_paths,
        "without_answer": decision.without_answer,
        "shares": dict(decision.shares),
        "key": dict(zip(names, decision.key, strict=True)),
        **({} if decision.answer_set is None else _set_fields(decision.answer_set)),
        **({"groups": list(decision.groups)} if decision.groups else {}),
        **({} if decision.outlier_p_value is None else {"outlier_p_value": decision.outlier_p_value}),
        "explanation": decision.explanation,
    }


def _set_fields(held: tuple[Any, ...]) -> dict[str, Any]:
    """An answer set as a line of a file holds it: an answer may be spelled OTHER too."""
    other = demur.OTHER in held
    return {"answer_set": [answer for answer in held if answer is not demur.OTHER], "or_other": other}
