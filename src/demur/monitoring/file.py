"""Files of monitors."""

from __future__ import annotations

from demur.errors import MonitorFileError
from demur.policy.sealed import Document as Document
from demur.policy.sealed import FilePath as FilePath
from demur.policy.sealed import Kind

FORMAT = "demur-monitor"
SCHEMA = 1
_KIND = Kind(
    FORMAT,
    SCHEMA,
    "a file of a monitor",
    "give one that a monitor's `save` wrote",
    "use a copy as it was saved, or begin a monitor anew",
    MonitorFileError,
)
write, read = _KIND.write, _KIND.read
