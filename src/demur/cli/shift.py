"""`demur shift`: how much more often questions occur in use than in calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import demur
from demur.cli import options, output, replacing
from demur.cli.shift_options import questions_in

NAME = "shift"
HELP = """Fit how unlike the calibration questions the traffic is, from questions alone: no answers, no labels.

A classifier tells the words of the traffic from those of reference questions, which must be drawn as the calibration
questions are and calibrate nothing; its odds are the weights. `calibrate --shift` then promises for the traffic,
approximately, and refuses the questions that the weights were fitted on.

Examples:

`demur shift traffic.jsonl --reference spare.jsonl -o shift.json`

`demur shift s3://bucket/traffic --reference shards/ -o shift.json`

`demur calibrate pools.jsonl --shift shift.json --alpha 0.1 -o policy.json`
"""
_TRAFFIC = "Questions as they occur in use: a question or pool file, a folder of them or s3:// address, or a run."
_REFERENCE = "Questions drawn as the calibration ones are, which calibrate nothing; in the same places."


def run(
    traffic: Annotated[str, options.argument("TRAFFIC", _TRAFFIC)],
    reference: Annotated[str, options.option("--reference", "QUESTIONS", _REFERENCE)],
    out: Annotated[Path | None, options.option("--out", "FILE", "Where to write the fitted shift.", "-o")] = None,
    clip: Annotated[float, options.option("--clip", "W", "Cut weights above this many times the mean.")] = 10.0,
    json: options.Json = False,
) -> None:
    replacing.refuse_overwriting(out, traffic, reference, by=replacing.SHIFT)
    ratio = demur.fit_shift(questions_in(traffic), questions_in(reference), clip=clip)
    if out is not None:
        demur.write_shift(ratio, out)
    facts = {
        "shift": None if out is None else str(out),
        **{name: value for name, value in ratio.document().items() if name not in ("coefficients", "fitted_on")},
        "shift_seen": ratio.shift_seen,
        "fingerprint": ratio.fingerprint,
    }
    if json:
        output.emit(facts)
        return
    output.say(*(f"{line[0].upper()}{line[1:]}." for line in ratio.told()))
    if not ratio.shift_seen:
        output.say("Calibrating with it would change little; differences that words do not show are not seen.")
    output.say(
        "Weights tell which questions are asked. They do not cover a model that answers the same question otherwise "
        "than before, nor answers that have become wrong."
    )
    output.wrote(facts["shift"])
