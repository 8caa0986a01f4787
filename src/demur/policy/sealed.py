"""Small files that are data only: versioned JSON, sealed with a digest, written all at once."""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demur.descriptions import digest
from demur.errors import DemurError
from demur.files import strict_json
from demur.files.atomic import written_whole
from demur.files.inputs import text_of
from demur.files.strict_json import as_json

Document = dict[str, Any]
FilePath = str | os.PathLike[str]


@dataclass(frozen=True)
class Kind:
    """What a file is, and what is said of one that is not."""

    format: str
    schema: int
    what: str
    """In words: "a file of a monitor"."""
    source: str
    """Where such a file comes from, as a remedy."""
    afresh: str
    """What to do where one was changed."""
    error: type[DemurError]

    def write(self, document: Document, path: FilePath) -> None:
        """Seal and write; an interrupted write leaves the old file as it was."""
        sealed: Document = {"format": self.format, "schema": self.schema, **document}
        sealed["digest"] = digest(sealed)
        with written_whole(path, self.error) as unfinished:
            unfinished.write_text(as_json(sealed, finite=True) + "\n", encoding="utf-8", newline="\n")

    def read(self, path: FilePath) -> Document:
        """Read and verify the seal; nothing in the file is ever executed."""
        source = Path(path)
        document = self._parse(source, text_of(source, self.error))
        if not isinstance(document, dict) or document.get("format") != self.format:
            raise self.error(f"{source} is not {self.what}", self.source)
        schema = document.get("schema")
        if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
            raise self.error(f"{source} has schema {schema!r:.60}, expected {self.schema}", self.afresh)
        if schema > self.schema:
            told = f"{source} has schema {schema}, and this demur reads up to {self.schema}"
            raise self.error(told, "upgrade demur")
        try:
            seal = str(document.pop("digest", None))
            intact = hmac.compare_digest(seal.encode(), digest(document).encode())
        except ValueError:  # a number that JSON cannot hold, such as 1e999
            intact = False
        if not intact:
            raise self.error(f"{source} was changed after it was written (its digest does not match)", self.afresh)
        return document

    def _parse(self, path: Path, text: str) -> Any:
        try:
            return strict_json.parse(text, finite=True)
        except strict_json.NotJson as error:
            raise self.error(f"{path} is cut off or damaged: line {error.line}: {error}", self.afresh) from None
