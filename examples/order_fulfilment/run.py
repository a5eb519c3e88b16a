"""Engine, worker and caller in one process on one SQLite file: starts three orders, or goes on with them after a crash.

order-1001 is paid at the third attempt and shipped, order-1002 is out of stock and refunded, order-1003 is not shipped.
"""

import argparse
import asyncio
import os
from datetime import timedelta
from pathlib import Path

from stepwell.client import Client, WorkflowFailureError, WorkflowHandle
from stepwell.common import WorkflowIDReusePolicy
from stepwell.exceptions import ActivityError, WorkflowAlreadyStartedError

from .activities import SHOP_VARIABLE
from .output import say, show_log
from .records import Order, Outcome, Shipment
from .shop import Shop, Trouble
from .worker import STOCK, order_worker
from .workflow import TASK_QUEUE, fulfil_order

SHIPPED = Order("order-1001", "lamp", 2, 9800)
NO_STOCK = Order("order-1002", "piano", 1, 1_250_000)
NEVER_SHIPPED = Order("order-1003", "chair", 4, 31_600, ship_within=timedelta(seconds=3))
ORDERS = (SHIPPED, NO_STOCK, NEVER_SHIPPED)


def prepare(folder: Path, hang: bool = False) -> None:
    """The shop's file, with the trouble that the payment service will have."""
    shop = Shop(folder / "shop.db")
    shop.set_up(STOCK)
    trouble = (Trouble.HANGS, Trouble.REFUSED) if hang else (Trouble.REFUSED, Trouble.ANSWER_LOST)
    shop.expect_trouble(SHIPPED.order_id, *trouble)


async def run(folder: Path, carrier_delay: float) -> None:
    """All orders to their end; the carrier picks the first up ``carrier_delay`` seconds after it was asked for."""
    os.environ[SHOP_VARIABLE] = str(folder / "shop.db")
    client = await Client.connect(f"sqlite:///{folder / 'orders.db'}")
    async with client, order_worker(client):
        handles = [await _start(client, order) for order in ORDERS]
        carrier = asyncio.create_task(_carrier(client, folder, carrier_delay))
        await asyncio.gather(carrier, *(_report(handle) for handle in handles))


async def _start(client: Client, order: Order) -> WorkflowHandle[Outcome]:
    """An order id is used once, so a start of one that is there already, open or closed, is refused and joined."""
    try:
        handle = await client.start_workflow(
            fulfil_order,
            order,
            id=order.order_id,
            task_queue=TASK_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        )
        say(order.order_id, f"started: {order.quantity} x {order.item}")
    except WorkflowAlreadyStartedError:
        handle = client.get_workflow_handle_for(fulfil_order, order.order_id)
        say(order.order_id, "is in the file already")
    return handle


async def _carrier(client: Client, folder: Path, delay: float) -> None:
    """Ships what the warehouse has set aside, after a while."""
    shop = Shop(folder / "shop.db")
    while not await asyncio.to_thread(shop.reserved, SHIPPED.item):
        await asyncio.sleep(0.1)
    await asyncio.sleep(delay)
    say(SHIPPED.order_id, "carrier: picked up, signal sent")
    handle = client.get_workflow_handle(SHIPPED.order_id)
    await handle.signal("shipped", Shipment("TRACK-77"))


async def _report(handle: WorkflowHandle[Outcome]) -> None:
    try:
        outcome = await handle.result()
        text = f"result: {outcome.status}, {outcome.payment_id}, {outcome.reference}"
    except WorkflowFailureError as error:
        cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
        text = f"failed as it should: {cause}"
    say(handle.id, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("."), help="for orders.db and shop.db (default: here)")
    parser.add_argument("--carrier-delay", type=float, default=1.0, metavar="SECONDS")
    options = parser.parse_args()
    show_log()
    asyncio.run(run(options.folder.resolve(), options.carrier_delay))


if __name__ == "__main__":
    main()
