"""Starts an order at a server and waits for its outcome: ``python -m order_fulfilment.starter order-1``.

The carrier's signal comes from elsewhere, such as the command line; the README of this example shows it.
"""

import argparse
import asyncio
from datetime import timedelta

from stepwell.client import Client, WorkflowFailureError
from stepwell.common import WorkflowIDReusePolicy
from stepwell.exceptions import WorkflowAlreadyStartedError

from .records import Order, Outcome
from .workflow import TASK_QUEUE, fulfil_order


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("order_id", help="also the workflow id; an order that is there already is joined")
    parser.add_argument("--address", default="http://127.0.0.1:7400", help="of the engine (default: %(default)s)")
    parser.add_argument("--item", default="lamp")
    parser.add_argument("--quantity", type=int, default=1)
    parser.add_argument("--amount-cents", type=int, default=4900)
    parser.add_argument("--ship-within", type=float, default=14 * 86400, metavar="SECONDS")
    options = parser.parse_args()
    order = Order(
        order_id=options.order_id,
        item=options.item,
        quantity=options.quantity,
        amount_cents=options.amount_cents,
        ship_within=timedelta(seconds=options.ship_within),
    )
    client = await Client.connect(options.address)
    async with client:
        return await _order(client, order)


async def _order(client: Client, order: Order) -> int:
    """The exit code: 1 when the order failed."""
    try:
        handle = await client.start_workflow(
            fulfil_order,
            order,
            id=order.order_id,
            task_queue=TASK_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        )
        print(f"started {order.order_id}", flush=True)
    except WorkflowAlreadyStartedError:
        handle = client.get_workflow_handle_for(fulfil_order, order.order_id)
        print(f"{order.order_id} is there already", flush=True)
    try:
        outcome: Outcome = await handle.result()
    except WorkflowFailureError as error:
        print(f"{order.order_id} failed: {error.cause}")
        return 1
    print(f"{outcome.order_id}: {outcome.status}, payment {outcome.payment_id}, {outcome.reference}")
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
