"""The whole order through the functions of an installation: API event, commit, stream, queue, worker, result."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.client import WorkflowFailureError

from order_fulfilment import activities
from order_fulfilment.records import OrderStatus, Shipment
from order_fulfilment.run import NEVER_SHIPPED, NO_STOCK, SHIPPED, prepare
from order_fulfilment.shop import Shop
from order_fulfilment.worker import order_worker
from order_fulfilment.workflow import TASK_QUEUE, fulfil_order
from stepwell_server.common import metric_names as names
from tests.support.aws.cells import Cell
from tests.support.aws.event_pump import Faults
from tests.support.aws.lambda_functions import Functions, running_functions


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv(activities.SHOP_VARIABLE, str(tmp_path / "shop.db"))
    prepare(tmp_path)
    return Shop(tmp_path / "shop.db")


@pytest.fixture(params=["as it should", "twice, late and swapped"])
def functions(request: pytest.FixtureRequest, cell: Cell) -> Iterator[Functions]:
    faults = Faults() if request.param == "as it should" else Faults(twice=0.3, late=0.3, swapped=0.3)
    with running_functions(cell, seed=7, faults=faults) as functions:
        yield functions
    assert functions.failed == []


async def test_orders_go_from_start_to_result(functions: Functions, shop: Shop) -> None:
    client = functions.client()
    async with client, order_worker(client):
        orders = (SHIPPED, NO_STOCK, replace(NEVER_SHIPPED, ship_within=timedelta(seconds=1)))
        shipped, no_stock, late = [
            await client.start_workflow(fulfil_order, order, id=order.order_id, task_queue=TASK_QUEUE)
            for order in orders
        ]
        async with asyncio.timeout(120):
            while not shop.reserved(SHIPPED.item):
                await asyncio.sleep(0.1)
            await shipped.signal("shipped", Shipment("TRACK-77"))
            assert (await shipped.result()).status is OrderStatus.SHIPPED
            assert (await late.result()).status is OrderStatus.WITH_SUPPORT
            with pytest.raises(WorkflowFailureError):
                await no_stock.result()
            listed = [workflow.id async for workflow in client.list_workflows()]
            while len(listed) < 3:  # the feed projects them
                await asyncio.sleep(0.2)
                listed = [workflow.id async for workflow in client.list_workflows()]
    assert sorted(listed) == sorted(order.order_id for order in orders)
    assert len(shop.charges()) == 3
    _shows_metrics(functions)


def _shows_metrics(functions: Functions) -> None:
    """The first call of each function tells; dimensions are those of the table."""
    told: set[str] = set()
    for line in map(json.loads, functions.lines):
        (directive,) = line["_aws"]["CloudWatchMetrics"]
        assert directive["Namespace"] == names.NAMESPACE and line[names.CELL] == functions.cell.names.cell
        for metric in directive["Metrics"]:
            told.add(metric["Name"])
            assert set(directive["Dimensions"][0]) == {names.CELL, *names.DIMENSIONS.get(metric["Name"], ())}
    assert {names.REQUESTS, names.TIMER_LAG} <= told <= set(names.UNITS)
