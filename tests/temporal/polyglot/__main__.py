"""Runs workflows of Temporal's other SDKs against a server that speaks Temporal's protocol.

    python -m tests.temporal.polyglot RUN… [--address HOST:PORT]

    typescript, go, java    workflows and activities in this language
    mixed                   a Python workflow, its activities in TypeScript

Without an address the server is a gateway in this process. What a script needs is installed by its lock, once; it is
built in a folder outside the repository. A line says of each step if it passed; the exit code is 1 when one has not,
else 75 when the packages or the tools of a run cannot be had. With --accept stepwell|temporal the outcome goes into
docs/temporal-compatibility.md, as that of this server.
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from .. import our_server
from ..exam import page
from . import go, java, mixed, outcomes, typescript
from .steps import Step, run_script
from .toolchain import UNAVAILABLE, Unavailable


async def _typescript(address: str, folder: Path) -> list[Step]:
    built = await asyncio.to_thread(typescript.build, folder / "typescript")
    return await run_script(typescript.command(address), built)


RUNS: dict[str, Callable[[str, Path], Awaitable[list[Step]]]] = {
    "typescript": _typescript,
    "go": go.run,
    "java": java.run,
    "mixed": mixed.run,
}


@contextlib.asynccontextmanager
async def _server(address: str | None) -> AsyncIterator[str]:
    if address:
        yield address
        return
    async with our_server.running() as started:
        yield started


async def _run(options: argparse.Namespace) -> int:
    codes = set()
    async with _server(options.address) as address:
        for run in options.runs:
            try:
                steps = await RUNS[run](address, options.folder)
            except Unavailable as error:
                print(f"NOT TESTED: {run}: {error}", flush=True)
                codes.add(UNAVAILABLE)
                continue
            codes.add(0 if _told(run, steps) else 1)
            if options.accept:
                outcomes.record(run, options.accept, steps)
    return 1 if 1 in codes else max(codes)


def _told(run: str, steps: list[Step]) -> bool:
    for step in steps:
        print(f"{run}: passed {step.step}" if step.passed else f"{run}: FAILED {step.step}: {step.reason}", flush=True)
    return all(step.passed for step in steps)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="tests.temporal.polyglot", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", choices=RUNS, metavar="RUN")
    parser.add_argument("--address", help="HOST:PORT of the server")
    parser.add_argument("--folder", type=Path, default=typescript.FOLDER, help="where scripts are built")
    parser.add_argument("--accept", choices=["stepwell", "temporal"], help="which server that is, for the page")
    options = parser.parse_args(arguments)
    code = asyncio.run(_run(options))
    if options.accept:
        page.write(page.OUTCOMES)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
