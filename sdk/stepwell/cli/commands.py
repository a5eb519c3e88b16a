"""The command tree, and its entry point, which turns every expected trouble into a sentence and an exit code."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points, version
from typing import Any, NoReturn

import click

from .extensions import Root
from .text import safe
from .troubles import BUG, Trouble, Usage

DEV_SERVER_GROUP = "stepwell.dev_server"
BACKUP_GROUP = "stepwell.backup"
AWS_GROUP = "stepwell.aws"
_DISTRIBUTIONS = {AWS_GROUP: "stepwell-server[aws]"}
SERVER_GROUP = "stepwell.server"
TRACEBACK = "STEPWELL_TRACEBACK"
"""Variable that lets the stack trace of a bug through."""

INTERRUPTED = 130
"""What shells report for Ctrl-C: 128 + SIGINT."""


_COMMANDS = {
    "activity": "standalone",
    "batch": "batches",
    "completion": "completion",
    "config": "config",
    "export": "exports",
    "namespace": "namespaces",
    "schedule": "schedules",
    "search-attribute": "namespaces",
    "system": "queues",
    "task-queue": "queues",
    "worker": "workers",
    "workflow": "workflow",
}
"""Each in its module, under its name with underscores. One is imported when it is used, which halves what a command
takes to begin."""


@click.group(
    cls=Root,
    modules={name: f"{__package__}.{module}" for name, module in _COMMANDS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(version("stepwell"), prog_name="stepwell")
def cli() -> None:
    """Stepwell: durable workflows in plain Python.

    Exit codes: 0 done, 1 the workflow did not succeed, 2 the command line or a setting is wrong, 3 not found or
    refused, 4 the engine cannot be reached or failed, 5 a bug in this command, 130 interrupted.
    """


def _of_server(group: str, arguments: Sequence[str]) -> NoReturn:
    """Hands a command over to the server distribution, which parses the rest itself."""
    found = list(entry_points(group=group))
    if not found:
        raise Usage(
            "the server distribution is not installed.\n"
            f"Install it beside this command:  python -m pip install '{_DISTRIBUTIONS.get(group, 'stepwell-server')}'"
        )
    sys.exit(found[0].load()(arguments))


_server_command: dict[str, Any] = {
    "context_settings": {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    "add_help_option": False,
}


@cli.command(**_server_command)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def dev(arguments: tuple[str, ...]) -> None:
    """Run the engine and its API on this machine."""
    _of_server(DEV_SERVER_GROUP, arguments)


@cli.command(**_server_command)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def server(arguments: tuple[str, ...]) -> None:
    """Serve the engine to other machines."""
    _of_server(SERVER_GROUP, arguments)


@cli.command(**_server_command)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def backup(arguments: tuple[str, ...]) -> None:
    """Copy a database file while its engine runs."""
    _of_server(BACKUP_GROUP, arguments)


@cli.command(**_server_command)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def aws(arguments: tuple[str, ...]) -> None:
    """Make the tables and queues of the control plane on AWS."""
    _of_server(AWS_GROUP, arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits. No user's mistake ends in a stack trace."""
    try:
        cli.main(None if arguments is None else list(arguments), prog_name="stepwell", standalone_mode=False)
    except Trouble as trouble:
        click.echo(f"Error: {trouble}", err=True)
        sys.exit(trouble.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader, such as head, has seen enough. Nothing may be flushed to it any more.
        sys.stdout = None
        sys.exit(0)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        words = f"{type(error).__name__}: {error}".strip().removesuffix(":")
        click.echo(
            f"Error: this is a bug in stepwell {version('stepwell')}: {safe(words)}\n"
            f"Please report it with what {TRACEBACK}=1 makes this command print.",
            err=True,
        )
        sys.exit(BUG)
