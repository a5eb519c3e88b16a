"""``stepwell server --aws``: the whole cell in one process, and two of them side by side."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell import workflow
from stepwell.client import Client
from stepwell.worker import Worker

from order_fulfilment import activities
from order_fulfilment.records import OrderStatus, Shipment
from order_fulfilment.run import NEVER_SHIPPED, SHIPPED, prepare
from order_fulfilment.shop import Shop
from order_fulfilment.worker import order_worker
from order_fulfilment.workflow import TASK_QUEUE, fulfil_order
from stepwell_server.adapters.aws.faults import AwsRefused
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.entrypoints.aws_server import AwsContainer
from tests.support.aws.cells import Cell
from tests.support.aws.containers import served_container


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv(activities.SHOP_VARIABLE, str(tmp_path / "shop.db"))
    prepare(tmp_path)
    return Shop(tmp_path / "shop.db")


@workflow.defn
class Counter:
    def __init__(self) -> None:
        self.total = 0

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self.total >= 10)
        return self.total

    @workflow.signal
    def add(self, amount: int) -> None:
        self.total += amount

    @workflow.query
    def value(self) -> int:
        return self.total

    @workflow.update
    async def add_more(self, amount: int) -> int:
        self.total += amount
        return self.total


async def test_orders_go_from_start_to_result(cell: Cell, shop: Shop) -> None:
    async with served_container(cell) as served, await Client.connect(served.address) as client, order_worker(client):
        orders = (SHIPPED, replace(NEVER_SHIPPED, ship_within=timedelta(seconds=1)))
        shipped, late = [
            await client.start_workflow(fulfil_order, order, id=order.order_id, task_queue=TASK_QUEUE)
            for order in orders
        ]
        async with asyncio.timeout(120):
            while not shop.reserved(SHIPPED.item):
                await asyncio.sleep(0.1)
            await shipped.signal("shipped", Shipment("TRACK-77"))
            assert (await shipped.result()).status is OrderStatus.SHIPPED
            assert (await late.result()).status is OrderStatus.WITH_SUPPORT
            while len([workflow async for workflow in client.list_workflows()]) < 2:
                await asyncio.sleep(0.2)


async def test_a_worker_at_one_serves_callers_at_the_other(cell: Cell) -> None:
    """Tasks go by SQS, queries by the board, results and updates by looking again."""
    async with (
        served_container(cell, "one") as one,
        served_container(cell, "two") as two,
        await Client.connect(one.address) as client,
        await Client.connect(two.address) as other,
        Worker(other, task_queue="counters", workflows=[Counter]),
        asyncio.timeout(120),
    ):
        handle = await client.start_workflow(Counter.run, id="counter", task_queue="counters")
        await handle.signal(Counter.add, 1)
        assert await handle.query(Counter.value) == 1
        assert await handle.execute_update(Counter.add_more, 3) == 4
        await handle.signal(Counter.add, 6)
        assert await handle.result() == 10


async def test_a_cell_that_is_not_there_is_named_with_the_way_out(cell: Cell) -> None:
    with pytest.raises(AwsRefused, match=r"stepwell-nowhere-ctl.*stepwell aws bootstrap"):
        await AwsContainer.start(AwsSettings("nowhere"))
