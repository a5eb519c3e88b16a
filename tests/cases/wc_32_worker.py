"""A worker process of case WC-32: ``python wc_32_worker.py ADDRESS NAME GRACE_SECONDS``. Stops on SIGTERM.

An activity without seconds works until the file ``released`` is there.
"""

import asyncio
import signal
import sys
from datetime import timedelta
from pathlib import Path

from stepwell import activity, workflow
from stepwell.client import Client
from stepwell.common import RetryPolicy
from stepwell.worker import Worker

QUEUE = "rolling"
NAME = ""
RELEASED = Path("released")


def say(text: str) -> None:
    sys.stdout.write(f"{NAME}: {text}\n")
    sys.stdout.flush()


@activity.defn
async def work(seconds: float | None) -> str:
    attempt = activity.info().attempt
    say(f"attempt {attempt} begins")
    try:
        await asyncio.sleep(seconds or 0.0)
        while seconds is None and not RELEASED.exists():
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        say(f"attempt {attempt} is told: shutdown {activity.is_worker_shutdown()}")
        raise
    return f"{NAME} {attempt}"


@workflow.defn
async def job(seconds: float | None, limit: float, attempts: int) -> str:
    return await workflow.execute_activity(
        work,
        seconds,
        start_to_close_timeout=timedelta(seconds=limit),
        retry_policy=RetryPolicy(maximum_attempts=attempts, initial_interval=timedelta(seconds=60)),
    )


async def main(address: str, grace: float) -> None:
    async with await Client.connect(address, identity=NAME) as client:
        worker = Worker(
            client,
            task_queue=QUEUE,
            workflows=[job],
            activities=[work],
            graceful_shutdown_timeout=timedelta(seconds=grace),
        )
        running = asyncio.create_task(worker.run())
        stopping: list[asyncio.Task[None]] = []

        def stop() -> None:
            stopping.append(asyncio.create_task(worker.shutdown()))
            say("stopping")

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        say("ready")
        await running
    say("stopped")


if __name__ == "__main__":
    NAME = sys.argv[2]
    asyncio.run(main(sys.argv[1], float(sys.argv[3])))
