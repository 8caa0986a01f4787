"""What a command's work finds around it: the folder it was given in, and variables that name endpoints and keys.

Workers of a cluster stand elsewhere and know no keys. What they need is sent to them as one object that nobody prints:
as part of a runtime environment, Ray would write it to its logs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Self

_OF_AN_ENDPOINT = ("BASE_URL", "API_KEY", "MODEL")
_OWN = "DEMUR_"


@dataclass(frozen=True)
class Surroundings:
    """A folder and variables; what is in the variables is shown to nobody."""

    folder: str
    variables: Mapping[str, str] = field(repr=False)

    @classmethod
    def here(cls, endpoints: Collection[str] = ()) -> Self:
        """This process's own, as far as work with these endpoints (OPENAI, JUDGE) needs them."""
        prefixes = {re.sub(r"\W", "_", name).upper() for name in endpoints}
        names = {f"{prefix}_{part}" for prefix in prefixes for part in _OF_AN_ENDPOINT}
        known = {name: value for name, value in os.environ.items() if name in names or name.startswith(_OWN)}
        return cls(os.getcwd(), known)

    def take_up(self) -> None:
        """Make them this process's own; a folder that is not on this machine is left alone."""
        if os.path.isdir(self.folder):
            os.chdir(self.folder)
        os.environ.update(self.variables)
