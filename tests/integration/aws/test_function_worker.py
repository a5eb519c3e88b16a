"""Workers that are functions: what the task queue's messages lead to, without any process that waits."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import boto3
import pytest
from stepwell import activity, workflow
from stepwell.client import WorkflowFailureError
from stepwell.worker import LambdaHandler, lambda_handler

from lambda_worker.trial import TASK_QUEUE as TRIALS
from lambda_worker.trial import Trial, TrialMonth
from lambda_worker.worker import trial_worker
from order_fulfilment import activities
from order_fulfilment.records import OrderStatus, Shipment
from order_fulfilment.run import NO_STOCK, SHIPPED, prepare
from order_fulfilment.shop import Shop
from order_fulfilment.workflow import TASK_QUEUE, fulfil_order
from tests.support.aws.cells import Cell
from tests.support.aws.event_pump import Faults
from tests.support.aws.lambda_functions import Functions, running_functions
from tests.support.aws.worker_functions import OpenTransport, worker_functions


@pytest.fixture
def functions(cell: Cell) -> Iterator[Functions]:
    with running_functions(cell, seed=7, faults=Faults(twice=0.3, late=0.3, swapped=0.3)) as functions:
        yield functions
    assert functions.failed == []


def waiting(urls: list[str]) -> int:
    sqs = boto3.client("sqs")
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = [sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"] for url in urls]
    sqs.close()
    return sum(int(attributes[name]) for attributes in found for name in names)


async def test_orders_go_from_start_to_result(
    functions: Functions, cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(activities.SHOP_VARIABLE, str(tmp_path / "shop.db"))
    prepare(tmp_path)
    shop = Shop(tmp_path / "shop.db")

    def make(open_transport: OpenTransport) -> LambdaHandler:
        steps = [activities.capture_payment, activities.refund_payment, activities.reserve_stock]
        return lambda_handler(open_transport, task_queue=TASK_QUEUE, workflows=[fulfil_order], activities=steps)

    with worker_functions(functions, cell.names, TASK_QUEUE, make) as workers:
        async with functions.client() as client, asyncio.timeout(120):
            shipped, no_stock = [
                await client.start_workflow(fulfil_order, order, id=order.order_id, task_queue=TASK_QUEUE)
                for order in (SHIPPED, NO_STOCK)
            ]
            while not shop.reserved(SHIPPED.item):
                await asyncio.sleep(0.1)
            await shipped.signal("shipped", Shipment("TRACK-77"))
            assert (await shipped.result()).status is OrderStatus.SHIPPED
            with pytest.raises(WorkflowFailureError):
                await no_stock.result()
            while waiting(workers.urls):
                await asyncio.sleep(0.1)
    assert len(shop.charges()) == 2


async def test_the_example_waits_is_asked_and_goes_on(functions: Functions, cell: Cell) -> None:
    with worker_functions(functions, cell.names, TRIALS, trial_worker, processes=1):
        async with functions.client() as client, asyncio.timeout(120):
            left, stays = [
                await client.start_workflow(TrialMonth.run, Trial(customer, lasts), id=customer, task_queue=TRIALS)
                for customer, lasts in (("ann", timedelta(days=30)), ("bob", timedelta(seconds=3)))
            ]
            while (await left.describe()).history_length < 5:  # before, nobody is known to serve the queue
                await asyncio.sleep(0.1)
            while await left.query(TrialMonth.how_far) != "on trial":
                await asyncio.sleep(0.1)
            await left.signal(TrialMonth.cancel)
            assert await left.result() == "no bill"
            assert await stays.result() == "bill-bob-bob"
    # Queries are not refused for want of a poller, however long nothing happens (tests/unit/history/test_pollers.py).
    dynamodb = boto3.client("dynamodb")
    key = {"pk": {"S": f"CALLED#WORKFLOW#default#{TRIALS}"}, "sk": {"S": "-"}}
    assert "Item" in dynamodb.get_item(TableName=cell.names.ctl_table, Key=key)
    dynamodb.close()


told: list[int] = []


@activity.defn
async def long_at_first() -> int:
    attempt = activity.info().attempt
    if attempt == 1:
        await activity.wait_for_worker_shutdown()
        told.append(attempt)
        await asyncio.Event().wait()
    return attempt


@workflow.defn
class Long:
    @workflow.run
    async def run(self) -> int:
        return await workflow.execute_activity(long_at_first, start_to_close_timeout=timedelta(minutes=5))


async def test_what_outlasts_the_function_and_what_nobody_can_read(functions: Functions, cell: Cell) -> None:
    told.clear()

    def make(open_transport: OpenTransport) -> LambdaHandler:
        return lambda_handler(open_transport, task_queue="long", workflows=[Long], activities=[long_at_first])

    with worker_functions(functions, cell.names, "long", make, processes=1, timeout=12.0, hidden_for=2) as workers:
        sqs = boto3.client("sqs")
        for url in workers.urls:
            sqs.send_message(QueueUrl=url, MessageBody="hello")
        sqs.close()
        async with functions.client() as client, asyncio.timeout(120):
            handle = await client.start_workflow(Long.run, id="long", task_queue="long")
            assert await handle.result() == 2
            assert told == [1]
            while waiting(workers.urls):
                await asyncio.sleep(0.1)
