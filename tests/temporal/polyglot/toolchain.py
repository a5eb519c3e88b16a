"""What the languages' scripts are built by, which a machine need not have."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

UNAVAILABLE = 75
"""The exit code when something cannot be had, which is no fault of what is to be tested."""


class Unavailable(Exception):
    """Packages or tools cannot be had on this machine."""


def require(*commands: str) -> None:
    for command in commands:
        if shutil.which(command) is None:
            raise Unavailable(f"the command `{command}` is not there")


def fetch(command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None) -> None:
    """Runs what asks a registry for packages."""
    done = subprocess.run(command, cwd=folder, env={**os.environ, **(variables or {})}, check=False)
    if done.returncode != 0:
        asked = " ".join(command[:2])
        raise Unavailable(f"`{asked}` ended with exit code {done.returncode}; its message is above")
