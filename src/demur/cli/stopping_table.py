"""Stopping rules compared on a run or file, for `demur plan --stop`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import demur
from demur.cli import options, output, vote_flags

if TYPE_CHECKING:
    from demur.calibration import Guarantee
    from demur.evaluation.stopping_rules import StoppingRow


def compare(
    place: str,
    run: str | None,
    config: Path | None,
    flags: vote_flags.VoteFlags,
    correct: demur.LabelRule,
    guarantees: list[Guarantee],
    n: list[int] | None,
    seed: int | None,
    *,
    partial: bool,
) -> demur.StoppingComparison:
    """The rules that `--stop` names, with commas, beside all paths."""
    stops = [vote_flags.stopping_flags(text.strip(), flags.wave) for text in str(flags.stop).split(",")]
    score, how = flags.vote_settings(config)
    fields = flags.fields(score)
    wanted = vote_flags.wanted_of(fields, (), facts=correct.label_field is not None)
    source = demur.read_pools(place, run, **wanted, partial=partial, say=options.mention)
    return demur.compare_stopping(
        source,
        [stop for stop in stops if stop is not None],
        fields,
        guarantee=guarantees,
        n_cal=n[0] if n else None,
        seed=seed or 0,
        correct=correct,
        say=options.mention,
        **how,
    )


def show_compared(compared: demur.StoppingComparison, *, json: bool) -> None:
    """The table, what it means, and what to be warned of."""
    facts: dict[str, Any] = {name: getattr(compared, name) for name in ("n", "n_cal", "splits", "left_out", "warnings")}
    if json:
        output.emit({**facts, "rows": [row.document() for row in compared.rows]})
        return
    output.say(
        f"{compared.n} questions, {compared.splits} random splits: {compared.n_cal} calibrate, the rest test. Rules "
        "are replayed on the same pools, and keep the same promise."
        + (f" {compared.left_out} pools that lack paths or a score are left out." if compared.left_out else "")
    )
    output.table_of("Stopping rules at equal alpha (± standard error)", compared.rows, _COLUMNS, keys=2)
    output.say(
        "Paths are per question; against all paths, yields are compared split by split. ± is by the chance of the "
        "questions, which more splits do not make smaller. Calibrate with the rule that you choose, as `demur "
        "calibrate … --stop RULE`, and on other questions than you chose it by: a choice by the labels that calibrate "
        "is paid for with --chosen-from."
    )
    output.warn(facts["warnings"])


def _points(row: StoppingRow) -> str:
    return f"{100 * row.against_all.mean:+.1f} ± {100 * row.against_all.se:.1f}"


_COLUMNS: output.Columns = {
    "alpha": lambda row: f"{row.result.alpha:g}",
    "rule": lambda row: row.stopping.rule.spec,
    "paths": lambda row: f"{row.paths.mean:.2f} ± {row.paths.se:.2f}",
    "of all": lambda row: output.percent(row.share),
    "answered": lambda row: output.percent(row.answered.mean, row.answered.se),
    "against all paths": _points,
    "vote accuracy": lambda row: output.percent(row.vote_accuracy.mean, row.vote_accuracy.se),
    "answered wrongly": lambda row: output.percent(row.result.confident_error.mean),
    "exact mean": lambda row: output.percent(row.result.expected_confident_error),
    "paths per answer": lambda row: f"{row.paths_per_answer:.2f}",
}
