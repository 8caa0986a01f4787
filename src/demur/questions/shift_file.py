"""Fitted shifts on disk: versioned JSON that is data only, sealed with a digest, written all at once."""

from __future__ import annotations

import hmac
import os
from pathlib import Path

from demur.descriptions import digest
from demur.errors import InvalidValue, ShiftFileError
from demur.files import strict_json
from demur.files.atomic import written_whole
from demur.files.inputs import text_of
from demur.files.strict_json import as_json
from demur.questions.density_ratio import DensityRatio
from demur.version import __version__

FORMAT = "demur-shift"
SCHEMA = 1


def write_shift(ratio: DensityRatio, path: str | os.PathLike[str]) -> None:
    """Write a fitted ratio; an interrupted write leaves the old file as it was."""
    sealed = {"format": FORMAT, "schema": SCHEMA, "demur": __version__, "ratio": ratio.document()}
    sealed["digest"] = digest(sealed)
    with written_whole(path, ShiftFileError) as unfinished:
        unfinished.write_text(as_json(sealed, finite=True) + "\n", encoding="utf-8", newline="\n")


def read_shift(path: str | os.PathLike[str]) -> DensityRatio:
    """Read a fitted ratio, check its seal and each of its values."""
    source = Path(path)
    try:
        document = strict_json.parse(text_of(source, ShiftFileError), finite=True)
    except (strict_json.RepeatedKey, strict_json.NotJson) as error:
        raise ShiftFileError(f"{source} is not JSON: line {error.line}: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ShiftFileError(f"{source} is not a fitted shift; `demur shift … -o shift.json` writes one")
    if document.get("schema") != SCHEMA:
        raise ShiftFileError(
            f"{source} has schema {document.get('schema')!r:.20}, and this demur reads {SCHEMA}; fit it again"
        )
    seal = str(document.pop("digest", None))
    if not hmac.compare_digest(seal.encode(), digest(document).encode()):
        raise ShiftFileError(
            f"{source} was changed after it was written (its digest does not match); fit it again instead of editing it"
        )
    try:
        return DensityRatio.of(document.get("ratio"))
    except InvalidValue as error:
        raise ShiftFileError(f"{source} is not a usable shift: {error}") from None
