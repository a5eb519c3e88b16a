"""A worker for orders, beside a server: ``python -m order_fulfilment.worker --address http://127.0.0.1:7400``."""

import argparse
import asyncio
import os
import signal

from stepwell.client import Client
from stepwell.worker import Worker

from .activities import SHOP_VARIABLE, capture_payment, open_support_case, refund_payment, reserve_stock
from .output import show_log
from .shop import Shop
from .workflow import TASK_QUEUE, fulfil_order

STOCK = {"lamp": 100, "chair": 10, "piano": 0}


def order_worker(client: Client) -> Worker:
    """A worker with the order workflow and its activities; these are plain functions and run in threads."""
    return Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[fulfil_order],
        activities=[capture_payment, refund_payment, reserve_stock, open_support_case],
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="http://127.0.0.1:7400", help="of the engine (default: %(default)s)")
    parser.add_argument("--shop", default="shop.db", help="file of the example's services (default: %(default)s)")
    options = parser.parse_args()
    os.environ[SHOP_VARIABLE] = options.shop
    Shop(options.shop).set_up(STOCK)
    show_log()

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await Client.connect(options.address)
    async with client, order_worker(client):
        print(f"worker waits for orders of {options.address}; Ctrl-C ends it", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
