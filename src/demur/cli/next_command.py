"""Commands to paste, which a verb says to go on with."""

from __future__ import annotations

import shlex

import demur


def next_place(store: str, run_name: str) -> str:
    """A store and its run as a command names them: quoted, without a password, and the run where there are several."""
    from demur.store.connection import pasted

    with demur.Store(store) as opened:
        several = f" --run {shlex.quote(run_name)}" if len(opened.names()) > 1 else ""
    return f"{pasted(store)[0]}{several}"
