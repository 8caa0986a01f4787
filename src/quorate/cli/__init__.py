"""The command line: one file per verb. Errors become one line on standard error and exit code 2."""

from __future__ import annotations

import io
import sys
import warnings

import typer

from quorate.cli import calibrate, decide, evaluate, simulate
from quorate.errors import InfeasibleWarning, QuorateError
from quorate.version import __version__

app = typer.Typer(
    name="quorate",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Know when not to answer: a calibrated vote over sampled reasoning paths, with a guarantee.",
)
for verb in (simulate, calibrate, evaluate, decide):
    app.command(verb.NAME, help=verb.HELP)(verb.run)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Show the version and exit.", is_eager=True),
) -> None:
    if version:
        typer.echo(f"quorate {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a model wrote, it can be shown
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", InfeasibleWarning)
            warnings.showwarning = _show_warning
            app()
    except QuorateError as error:
        _fail(str(error))
    except (BrokenPipeError, KeyboardInterrupt) as error:
        # The reader went away or the user did: nothing to explain, but not a success either.
        sys.stderr.close()
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 141)


def _fail(message: str) -> None:
    typer.echo("error: " + " ".join(message.split()), err=True)
    sys.exit(2)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"warning: {message}", err=True)
