"""Options that several commands share, and what their values are."""

import re
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

import click

from ..envconfig import DEFAULT_ADDRESS, DEFAULT_NAMESPACE, DEFAULT_PROFILE
from .completion import complete_profile
from .connection import Target
from .settings import settings
from .troubles import Usage

F = TypeVar("F", bound=Callable[..., Any])

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


class Duration(click.ParamType[timedelta]):
    """``30s``, ``1h30m``, ``14d``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        text = str(value).strip()
        position, seconds = 0, 0.0
        while position < len(text):
            found = _SPAN.match(text, position)
            if found is None:
                break
            seconds += float(found.group(1)) * _UNITS[found.group(2)]
            position = found.end()
        if not text or position < len(text):
            self.fail(f"{text!r} is no duration; write a number and ms, s, m, h or d, such as 30s or 1h30m", param, ctx)
        try:
            return timedelta(seconds=seconds)
        except OverflowError:
            self.fail(f"{text!r} is too long", param, ctx)


DURATION = Duration()


class Whole(click.IntRange):
    """A whole number; click's own name for it, "integer range", says nothing to who has mistyped one."""

    name = "integer"


class Number(click.FloatRange):
    name = "number"


def choice_of(values: type[StrEnum]) -> click.Choice[str]:
    return click.Choice([value.value for value in values], case_sensitive=False)


def engine_options(command: F) -> F:
    """As :func:`target_options`, for a command that is not about one namespace."""

    def wrapped(
        *args: Any, address: str | None, profile: str | None, output: str, namespace: str | None = None, **kwargs: Any
    ) -> Any:
        said = settings(address, namespace, profile)
        target = Target(said.address or "", said.namespace or "", output == "json", said.sign)
        return command(*args, target=target, **kwargs)

    wrapped = in_place_of(command, wrapped)
    for option in (output_option, profile_option, _ADDRESS):
        wrapped = option(wrapped)
    return wrapped


def target_options(command: F) -> F:
    """``--address``, ``--namespace``, ``--profile`` and ``--output``, given to the command as one ``target``."""
    return _NAMESPACE(engine_options(command))


_ADDRESS = click.option(
    "--address",
    metavar="URL",
    help="The engine: http://host:port, or sqlite:///file.db to open a file here. Else that of STEPWELL_ADDRESS or of "
    f"the profile, else {DEFAULT_ADDRESS}.",
)
_NAMESPACE = click.option(
    "--namespace", "-n", help=f"Else that of STEPWELL_NAMESPACE or of the profile, else {DEFAULT_NAMESPACE}."
)


def profile_option(command: F) -> F:
    return click.option(
        "--profile",
        metavar="NAME",
        shell_complete=complete_profile,
        help=f"Settings kept by `stepwell config`. Else STEPWELL_PROFILE, else {DEFAULT_PROFILE}.",
    )(command)


def output_option(command: F) -> F:
    return click.option(
        "--output",
        "-o",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="json: nothing but JSON on standard output.",
    )(command)


def workflow_id_argument(command: F, *, required: bool = True) -> F:
    """The workflow's id: an argument, or ``--workflow-id``, as ``start`` has it; given as ``workflow_id``, empty if it
    is not ``required`` and not there."""

    def wrapped(*args: Any, workflow_id: str | None, by_option: str | None, **kwargs: Any) -> Any:
        given = [text for text in (workflow_id, by_option) if text is not None]
        if not given and not required:
            return command(*args, workflow_id="", **kwargs)
        if not given:
            raise click.UsageError("Missing argument 'WORKFLOW_ID'.", click.get_current_context())
        if len(given) > 1:
            raise Usage(f"the workflow's id is given as {given[0]!r} and by --workflow-id as {given[1]!r}; use one")
        return command(*args, workflow_id=given[0], **kwargs)

    wrapped = in_place_of(command, wrapped)
    option = click.option("--workflow-id", "-w", "by_option", metavar="ID", help="In place of the argument.")
    return click.argument("workflow_id", required=False, metavar="WORKFLOW_ID")(option(wrapped))


def in_place_of(command: F, wrapped: Callable[..., Any]) -> F:
    """With the command's name, words and options."""
    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    wrapped.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    return wrapped  # type: ignore[return-value]


def run_id_option(command: F) -> F:
    return click.option("--run-id", "-r", default="", help="A certain run of the id; the newest one without it.")(
        command
    )


def input_options(command: F) -> F:
    """``--input`` and ``--input-file``, for ``inputs.read_inputs``."""
    file_option = click.option(
        "--input-file",
        "input_files",
        multiple=True,
        metavar="FILE",
        help="A file with any number of JSON values, each one an argument; - is standard input.",
    )
    input_option = click.option(
        "--input",
        "-i",
        "inputs",
        multiple=True,
        metavar="JSON",
        help="One argument as JSON; repeat it for more. Text needs its double quotes: --input '\"joe\"'.",
    )
    return input_option(file_option(command))
