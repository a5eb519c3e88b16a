"""A worker process for WC-07 that is killed: ``python progress_worker.py ADDRESS QUEUE LOG THROTTLE_SECONDS``."""

import asyncio
import sys
import time
from datetime import timedelta
from pathlib import Path

from stepwell import activity
from stepwell.client import Client
from stepwell.worker import Worker


async def main(address: str, queue: str, log: str, throttle: float) -> None:
    with Path(log).open("a") as reported:

        @activity.defn
        async def report() -> int:
            """Progress goes up for ever; each is written down, with its time, before it is reported."""
            progress = 0
            while True:
                progress += 1
                reported.write(f"{progress} {time.time()}\n")
                reported.flush()
                activity.heartbeat(progress)
                await asyncio.sleep(0.01)

        worker = Worker(
            await Client.connect(address),
            task_queue=queue,
            activities=[report],
            max_heartbeat_throttle_interval=timedelta(seconds=throttle),
        )
        await worker.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])))
