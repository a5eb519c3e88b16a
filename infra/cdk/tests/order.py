"""An order through the deployed control plane: the example's worker and its caller, each with a key of its own.

``order.py worker URL`` takes tasks from the queues until it is ended; ``order.py caller URL`` starts an order, ships it
when it waits for the carrier, and prints the outcome. test_deploy.py runs both.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from stepwell.client import Client, RPCError, WorkflowHandle

from order_fulfilment.activities import SHOP_VARIABLE
from order_fulfilment.records import Order, Outcome, Shipment
from order_fulfilment.shop import Shop
from order_fulfilment.worker import STOCK, order_worker
from order_fulfilment.workflow import TASK_QUEUE, fulfil_order

NAMESPACE = "shop"
ORDER = Order("order-17", "lamp", 2, 9800)


async def connected(url: str) -> Client:
    """The emulator unpacks the package for each process of a function, which may take longer than one try."""
    for _ in range(5):
        try:
            return await Client.connect(url, namespace=NAMESPACE, sign=True)
        except RPCError as error:
            if not error.retryable:
                raise
    return await Client.connect(url, namespace=NAMESPACE, sign=True)


async def work(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ[SHOP_VARIABLE] = str(Path(folder) / "shop.db")
        Shop(os.environ[SHOP_VARIABLE]).set_up(STOCK)
        client = await connected(url)
        async with client, order_worker(client):
            print("worker is there", flush=True)
            await asyncio.Event().wait()


async def outcome_of(handle: WorkflowHandle[Outcome]) -> Outcome:
    """Likewise: a first call of another process of the function may take longer than the client waits for it."""
    for _ in range(5):
        try:
            return await handle.result()
        except RPCError as error:
            if not error.retryable:
                raise
    return await handle.result()


async def call(url: str) -> None:
    client = await connected(url)
    async with client:
        handle = await client.start_workflow(fulfil_order, ORDER, id=ORDER.order_id, task_queue=TASK_QUEUE)
        await handle.signal("shipped", Shipment("TRACK-1"))
        outcome = await outcome_of(handle)
        print(f"{outcome.order_id}: {outcome.status}, {outcome.reference}")


if __name__ == "__main__":
    asyncio.run({"worker": work, "caller": call}[sys.argv[1]](sys.argv[2]))
