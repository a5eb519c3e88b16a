"""Generated workflow programs against Temporal's own server and against Stepwell's gateway, by the same SDK.

    python -m tests.temporal.oracle --seeds 0-20
    python -m tests.temporal.oracle --seeds 7 --show            the program, and both histories
    python -m tests.temporal.oracle --seeds 0-8 --record        keeps what Temporal's server did, for CI

Servers are started here unless --temporal ADDRESS or --stepwell ADDRESS says where one is. One difference of each
kind is printed, or --each; those that are known (explanations.py) are counted. The exit code is
1 when there is another one.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator

from .. import our_server, real_server
from .compare import Difference, explained
from .examining import differences, run_all
from .explanations import EXPLANATIONS, OPEN
from .programs import generate
from .recorded import record


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="tests.temporal.oracle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="0-10", help="one seed, or FIRST-END (without the end)")
    parser.add_argument("--temporal", help="address of Temporal's server")
    parser.add_argument("--stepwell", help="address of the gateway")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--each", action="store_true", help="every difference, not one of each kind")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    logging.getLogger("temporalio").setLevel(logging.CRITICAL)
    return asyncio.run(_examine(options))


async def _examine(options: argparse.Namespace) -> int:
    first, dash, end = options.seeds.partition("-")
    seeds = range(int(first), int(end) if dash else int(first) + 1)
    programs = {seed: generate(seed) for seed in seeds}
    tag = uuid.uuid4().hex[:8]
    async with _at(options.temporal, real_server.running(settings=())) as address:
        theirs = await run_all(address, programs, tag)
    if options.record:
        for seed in seeds:
            record(seed, theirs[seed])
        return 0
    async with _at(options.stepwell, our_server.running()) as address:
        ours = await run_all(address, programs, tag)
    if options.show:
        for seed in seeds:
            for title, shown in (("program", generate(seed)), ("Temporal", theirs[seed]), ("Stepwell", ours[seed])):
                print(f"== {title}\n{json.dumps(shown, indent=1, sort_keys=True)}")
    return _tell([(seed, found) for seed in seeds for found in differences(theirs[seed], ours[seed])], options.each)


def _tell(found: list[tuple[int, Difference]], each: bool) -> int:
    reasons = {**EXPLANATIONS, **OPEN}
    known = Counter(why for _, difference in found if (why := explained(difference, reasons)))
    new = [(seed, difference) for seed, difference in found if not explained(difference, reasons)]
    kinds = Counter(difference.kind for _, difference in new)
    told: set[str] = set()
    for seed, difference in new:
        if each or difference.kind not in told:
            told.add(difference.kind)
            print(f"{kinds[difference.kind]:4} times, first by seed {seed}: {difference}")
    for why, count in known.most_common():
        print(f"{count} times, and known: {why}")
    print(f"{len(new)} differences that are not known, of {len(kinds)} kinds")
    return 1 if new else 0


@contextlib.asynccontextmanager
async def _at(address: str | None, starting: contextlib.AbstractAsyncContextManager[str]) -> AsyncIterator[str]:
    if address is not None:
        yield address
        return
    async with starting as started:
        yield started


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
