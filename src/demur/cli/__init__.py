"""The command line: one file per verb. Errors become one line on standard error and exit code 2."""

from __future__ import annotations

import io
import os
import sys
import warnings
from importlib import import_module
from typing import Any

import typer

from demur.cli import output
from demur.cli.flag_groups import with_flags
from demur.errors import DemurError, InfeasibleWarning
from demur.version import __version__

# The command-line parser's own complaints; typer exports only the leaf of their family.
UsageProblem: type[Any] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    name="demur",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Know when not to answer: a calibrated vote over sampled reasoning paths, with a guarantee.",
)
_MAKING = (
    "demo",
    "sample",
    "score",
    "plan",
    "tune",
    "label",
    "judge_labels",
    "shift",
    "calibrate",
    "cascade",
    "evaluate",
    "audit",
    "report",
    "study",
)
_USING = (
    "decide",
    "ask",
    "serve",
    "recalibrate",
    "keys",
    "answers",
    "runs",
    "importing",
    "exporting",
    "models",
    "doctor",
    "simulate",
)
for verb in (import_module(f"demur.cli.{name}") for name in (*_MAKING, *_USING)):
    app.command(verb.NAME, help=verb.HELP)(with_flags(verb.run))
_LONGEST_ERROR = 2000


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: bool = typer.Option(False, "--version", help="Show the version and exit.", is_eager=True),
) -> None:
    if version:
        typer.echo(f"demur {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a model wrote, it can be shown
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", InfeasibleWarning)
            warnings.showwarning = _show_warning
            output.end(well=False)
            code = app(standalone_mode=False, prog_name="demur")
        output.end(well=True)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except (DemurError, UsageProblem) as error:
        _fail(output.told(error) if isinstance(error, DemurError) else error.format_message())
    except typer.Abort:
        sys.exit(130)
    except (BrokenPipeError, KeyboardInterrupt) as error:
        # The reader went away or the user did: nothing to explain, but not a success either.
        _forget_output()
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 141)
    except MemoryError:
        _fail("there is not enough memory for this; give it less, or the process more")
    except OSError as error:
        _forget_output()
        _fail(f"{error.strerror or error}")


def _forget_output() -> None:
    """What is left in the buffer has nowhere to go, and must not fail again when the process ends."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # not a file of the system's
        sys.stdout = io.StringIO()
        return
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), number)


def _fail(message: str) -> None:
    from demur.backends.redaction import redacted  # only where it is needed: `demur --help` waits for nothing

    output.mention("error: " + output.visible(" ".join(redacted(message).split()), _LONGEST_ERROR))
    sys.exit(2)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    output.mention(f"warning: {message}")
