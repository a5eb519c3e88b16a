"""A process that owns a database and appends to it, for tests that kill it: says ``id seq`` per acknowledged write.

python store_process.py DATABASE FIRST_NUMBER
"""

import asyncio
import sys

from stepwell_server.adapters.embedded import embedded_backend
from tests.support.sample_commits import SampleRun


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(path: str, first_number: int) -> None:
    backend = embedded_backend(path)
    say("open")
    numbers = iter(range(first_number, first_number + 100_000))

    async def worker() -> None:
        for number in numbers:
            for commit in SampleRun(number).commits():
                await backend.log.append(commit, arm=commit.deadline)
                say(f"{commit.workflow_id} {commit.seq}")

    await asyncio.gather(*(worker() for _ in range(8)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
