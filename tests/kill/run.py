"""The full kill test: ``python tests/kill/run.py [--kills N] [--workflows N] [--seed N]``.

Exit code 1 when a promise was broken.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.kill.harness import Plan, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--workflows", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", type=Path, help="where database and logs are kept; a temporary one when not given")
    options = parser.parse_args()
    plan = Plan(workflows=options.workflows, kills=options.kills, workers=options.workers, seed=options.seed)
    sys.stdout.write(f"seed {options.seed}\n")
    began = time.monotonic()
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(run(plan, options.folder))
    else:
        with tempfile.TemporaryDirectory() as folder:
            report = asyncio.run(run(plan, Path(folder)))
    sys.stdout.write(f"{report}\n{time.monotonic() - began:.0f} s\n")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
