"""Runs workflows of Temporal's other SDKs against a server that speaks Temporal's protocol.

    python -m tests.temporal.polyglot typescript --address HOST:PORT     workflows and activities in TypeScript
    python -m tests.temporal.polyglot go --address HOST:PORT             in Go
    python -m tests.temporal.polyglot java --address HOST:PORT           in Java
    python -m tests.temporal.polyglot mixed --address HOST:PORT          a Python workflow, its activities in TypeScript

What a script needs is installed by its lock, once; it is built in a folder outside the repository. A line says of
each step if it passed; the exit code is 1 when one has not, and 75 when the packages or the tools cannot be had. With
--accept stepwell|temporal the outcome goes into docs/temporal-compatibility.md, as that of this server.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from ..exam import page
from . import go, java, mixed, outcomes, typescript
from .steps import Unavailable

UNAVAILABLE = 75
"""The exit code when something cannot be had, which is no fault of what is to be tested."""

RUNS = {"typescript": typescript.run, "go": go.run, "java": java.run, "mixed": mixed.run}
FOLDER = Path(tempfile.gettempdir()) / "stepwell-polyglot"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="tests.temporal.polyglot", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", choices=RUNS)
    parser.add_argument("--address", required=True, help="HOST:PORT of the server")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where scripts are built and what npm installs is kept"
    )
    parser.add_argument("--accept", choices=["stepwell", "temporal"], help="which server that is, for the page")
    options = parser.parse_args(arguments)
    try:
        steps = asyncio.run(RUNS[options.run](options.address, options.folder))
    except Unavailable as error:
        print(f"NOT TESTED: {options.run}: {error}")
        return UNAVAILABLE
    for step in steps:
        print(f"passed {step.step}" if step.passed else f"FAILED {step.step}: {step.reason}")
    if options.accept:
        outcomes.record(options.run, options.accept, steps)
        page.write(page.OUTCOMES)
    return 0 if all(step.passed for step in steps) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
