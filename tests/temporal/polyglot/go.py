"""The script of the Go SDK: built by its checksums, run as the program that it is."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

from .steps import Step, run_script
from .toolchain import fetch, require

SOURCE = Path(__file__).parent / "go"


async def run(address: str, folder: Path) -> list[Step]:
    program = await asyncio.to_thread(build, folder / "go")
    return await run_script([str(program), address], folder)


def build(folder: Path) -> Path:
    """Fetches what the checksums name, if Go's own cache has it not, and compiles the script."""
    require("go")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE, folder)
    # the toolchain that is there, or none; what the lock does not have is an error
    variables = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    fetch(["go", "mod", "download"], folder, variables)
    subprocess.run(["go", "build", "-o", "polyglot", "."], cwd=folder, env={**os.environ, **variables}, check=True)
    return folder / "polyglot"
