"""The full kill test: ``python tests/kill/run.py [--kills N] [--workflows N] [--pause S] [--seed N] [--aws]``.

Exit code 1 when a promise was broken.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.kill.harness import Plan, run


@contextlib.contextmanager
def _cell() -> Iterator[Mapping[str, str]]:
    from tests.support.aws.cells import Provisioning
    from tests.support.aws.moto_server import moto_server

    with moto_server() as environment:
        provisioning = Provisioning(environment)
        yield provisioning.cell().variables
        provisioning.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--workflows", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--concurrent", type=int, default=100, help="workflows at a time")
    parser.add_argument("--pause", type=float, default=1.0, help="the longest time between two kills, in seconds")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--aws", action="store_true", help="two containers on an emulated AWS, or AWS_ENDPOINT_URL")
    parser.add_argument("--folder", type=Path, help="where database and logs are kept; a temporary one when not given")
    options = parser.parse_args()
    plan = Plan(
        workflows=options.workflows,
        kills=options.kills,
        workers=options.workers,
        concurrent=options.concurrent,
        pause=options.pause,
        seed=options.seed,
    )
    sys.stdout.write(f"seed {options.seed}\n")
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(run(plan, folder, stack.enter_context(_cell()) if options.aws else None))
    sys.stdout.write(f"{report}\n{time.monotonic() - began:.0f} s\n")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
