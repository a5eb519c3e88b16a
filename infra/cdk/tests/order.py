"""An order through the deployed control plane: the example's worker and its caller, each with a key of its own.

``order.py worker URL`` takes tasks from the queues until it is ended; ``order.py starter URL`` starts an order and ends
when it waits for the carrier; ``order.py carrier URL`` ships it and prints the outcome. test_deploy.py runs them.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from stepwell.client import Client, RPCError
from stepwell.common import WorkflowIDConflictPolicy

from order_fulfilment.activities import SHOP_VARIABLE
from order_fulfilment.records import Order, Shipment
from order_fulfilment.shop import Shop
from order_fulfilment.worker import STOCK, order_worker
from order_fulfilment.workflow import TASK_QUEUE, fulfil_order

NAMESPACE = "shop"
T = TypeVar("T")
ORDER = Order("order-17", "lamp", 2, 9800)


async def answered(ask: Callable[[], Awaitable[T]]) -> T:
    """The emulator unpacks the package for each process of a function, which may take longer than a call waits."""
    for _ in range(5):
        try:
            return await ask()
        except RPCError as error:
            if not error.retryable:
                raise
    return await ask()


async def connected(url: str) -> Client:
    return await answered(lambda: Client.connect(url, namespace=NAMESPACE, sign=True))


async def work(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ[SHOP_VARIABLE] = str(Path(folder) / "shop.db")
        Shop(os.environ[SHOP_VARIABLE]).set_up(STOCK)
        client = await connected(url)
        async with client, order_worker(client):
            print("worker is there", flush=True)
            await asyncio.Event().wait()


async def start(url: str) -> None:
    client = await connected(url)
    async with client:
        handle = await answered(
            lambda: client.start_workflow(
                fulfil_order,
                ORDER,
                id=ORDER.order_id,
                task_queue=TASK_QUEUE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
        )
        while not any(event.event_type == "TimerStarted" for event in (await answered(handle.fetch_history)).events):
            await asyncio.sleep(0.5)


async def carry(url: str) -> None:
    client = await connected(url)
    async with client:
        handle = client.get_workflow_handle_for(fulfil_order, ORDER.order_id)
        await answered(lambda: handle.signal("shipped", Shipment("TRACK-1")))
        outcome = await answered(handle.result)
        print(f"{outcome.order_id}: {outcome.status}, {outcome.reference}")


if __name__ == "__main__":
    asyncio.run({"worker": work, "starter": start, "carrier": carry}[sys.argv[1]](sys.argv[2]))
