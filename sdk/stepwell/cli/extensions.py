"""Programs named ``stepwell-<verb>`` on the path are commands (DX-07); one of our own with that name goes first."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from .grammar import Group
from .troubles import Usage

PREFIX = "stepwell-"
_VERB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class Root(Group):
    """The command tree with what others have added. ``modules``: by name, where the command of that name is found when
    it is asked for, with underscores for hyphens."""

    def __init__(self, *args: Any, modules: dict[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._modules = modules or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *self._modules})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self._modules:
            found: click.Command = getattr(importlib.import_module(self._modules[cmd_name]), cmd_name.replace("-", "_"))
            return found
        return super().get_command(ctx, cmd_name) or _extension(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_commands(ctx, formatter)
        found = [(verb, str(path)) for verb, path in extensions().items() if verb not in self.list_commands(ctx)]
        if found:
            with formatter.section("Extensions"):
                formatter.write_dl(found)


def extensions() -> dict[str, Path]:
    """What the path has, by verb; of two with one name the first one on the path."""
    found: dict[str, Path] = {}
    for folder in os.get_exec_path():
        try:
            names = sorted(entry.name for entry in os.scandir(folder or "."))
        except OSError:
            continue
        for name in names:
            verb = Path(name).stem if os.name == "nt" else name
            verb = verb.removeprefix(PREFIX)
            if name.startswith(PREFIX) and _VERB.fullmatch(verb) and verb not in found:
                program = shutil.which(PREFIX + verb)
                if program is not None:
                    found[verb] = Path(program)
    return dict(sorted(found.items()))


def _extension(verb: str) -> click.Command | None:
    program = shutil.which(PREFIX + verb) if _VERB.fullmatch(verb) else None
    if program is None:
        return None

    @click.command(
        verb,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
        add_help_option=False,
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def extension(arguments: tuple[str, ...]) -> None:
        _become(program, arguments)

    return extension


def _become(program: str, arguments: tuple[str, ...]) -> NoReturn:
    """Its exit code and what signals do to it are those of this command."""
    try:
        if os.name == "nt":
            sys.exit(subprocess.run([program, *arguments], check=False).returncode)
        os.execv(program, [program, *arguments])
    except OSError as error:
        raise Usage(f"{program} cannot be run: {error.strerror}") from error
