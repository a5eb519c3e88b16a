"""Runs the snippets of the guide that are no files of their own; ``test_guide`` has put them into a module."""

import asyncio

import pytest
import snippets as guide  # type: ignore[import-not-found]
from stepwell.client import Client, WorkflowFailureError
from stepwell.exceptions import CancelledError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker

WORKFLOWS = [
    guide.greet,
    guide.lottery,
    guide.write_to,
    guide.import_all,
    guide.greet_all,
    guide.ask,
    guide.quote,
    guide.Basket,
    guide.Account,
    guide.order,
    guide.rent,
    guide.first_of_two,
    guide.fulfil,
    guide.wrap,
    guide.Meter,
    guide.nightly,
    guide.pack,
    guide.pack_all,
    guide.put_into,
]
ACTIVITIES = [
    guide.make_greeting,
    guide.Mailer("shop").deliver,
    guide.import_rows,
    guide.ask_manager,
    guide.look_up_price,
    guide.reserve,
    guide.import_forever,
]


async def one_call_each(client: Client) -> None:
    expected = [
        (guide.greet, "Ann", "Hello Ann"),
        (guide.lottery, ["a"], "a of 1"),
        (guide.write_to, "bob", "from shop to bob"),
        (guide.import_all, 5, 5),
        (guide.greet_all, ["Ann", "Bob"], ["Hello Ann", "Hello Bob"]),
        (guide.quote, ["flute", "flute"], 240),
        (guide.order, "piano", "back-ordered"),
        (guide.wrap, "a flute", "a flute in golden paper"),
    ]
    for number, (workflow, argument, result) in enumerate(expected):
        assert await client.execute_workflow(workflow, argument, id=f"w{number}", task_queue="guide") == result
    boxes = ["flute in a box", "drum in a box"]
    assert await client.execute_workflow(guide.pack_all, ["flute", "drum"], id="order", task_queue="guide") == boxes
    basket = await client.start_workflow(guide.Basket.run, id="gift", task_queue="guide")
    assert await client.execute_workflow(guide.put_into, "gift", id="put", task_queue="guide") == "receipt-gift"
    assert await basket.result() == ["Hello drum"]
    receipt = client.get_workflow_handle("receipt-gift")
    assert await receipt.result() == "a receipt in a box"
    assert await client.execute_workflow(guide.first_of_two, id="first", task_queue="guide") == "stopped"


async def with_clients(client: Client) -> None:
    asking = await client.start_workflow(guide.ask, "a piano?", id="ask", task_queue="guide")
    while not guide.MAILBOX:
        await asyncio.sleep(0.01)
    await guide.while_mail_is_down(client, "ask")
    await guide.manager_answers(client, guide.MAILBOX[0])
    assert await asking.result() == "yes"
    assert await guide.use_basket(client) == ["Hello pear"]
    assert await guide.use_account(client) == 5
    assert await guide.order_flute(client) == "activity reserve: ConnectionError: the warehouse is away"
    with pytest.raises(WorkflowFailureError):
        await guide.try_again(client)  # the warehouse is still away
    kinds = [event.event_type for event in (await client.get_workflow_handle("order-1").fetch_history()).events]
    assert kinds[2:5] == ["WorkflowTaskStarted", "WorkflowTaskFailed", "WorkflowTaskScheduled"]
    shipping = await client.start_workflow(guide.fulfil, "lamp", id="fulfil", task_queue="guide")
    await shipping.signal("shipped")
    assert await shipping.result() == "lamp"
    meter = await client.start_workflow(guide.Meter.run, 0, id="meter", task_queue="guide")
    for amount in (1, 2, 3):
        await meter.signal(guide.Meter.add, amount)
    await meter.signal(guide.Meter.stop)
    assert await meter.result() == 6
    await guide.start_nightly(client)
    await client.get_workflow_handle("nightly").terminate()
    assert (await guide.open_a_shop(client)).description == "all of the shop"
    schedule = await guide.every_morning(client)
    await guide.later_in_the_morning(client)
    while (described := await schedule.describe()).info.num_actions < 3:
        await asyncio.sleep(0.01)
    assert described.schedule.state.paused
    assert await client.get_workflow_handle("report-2027-03-02T08:00:00Z", result_type=int).result() == 2
    await schedule.delete()


async def cancelled(client: Client) -> None:
    renting = await client.start_workflow(guide.rent, "12", id="rent", task_queue="guide")
    while not (await renting.describe()).pending_timers:
        await asyncio.sleep(0.01)
    (shown,) = await guide.show_open(client)
    assert shown.startswith("1 fires at 2")
    await renting.cancel()
    with pytest.raises(WorkflowFailureError) as caught:
        await renting.result()
    assert isinstance(caught.value.cause, CancelledError)
    kinds = [event.event_type for event in (await renting.fetch_history()).events]
    assert kinds[-1] == "WorkflowExecutionCanceled" and "ActivityTaskCompleted" in kinds


async def main() -> None:
    worker_of = {
        "task_queue": "guide",
        "workflows": WORKFLOWS,
        "activities": ACTIVITIES,
        "interceptors": [guide.Traced()],
    }
    async with await DevEnvironment.start() as env, Worker(env.client, **worker_of):
        await asyncio.gather(one_call_each(env.client), with_clients(env.client), cancelled(env.client))


if __name__ == "__main__":
    asyncio.run(main())
