"""A worker that is a function: what an event brings is done when the call ends, or comes again.

The engine is the real one, living for one call at a time; the queues are lists in memory.
"""

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.errors import PermissionDenied, Unavailable
from stepwell.api.events import WorkflowTaskCompleted
from stepwell.worker import lambda_handler

from tests.support.function_worker import ACTIVITY, BASE, WORKFLOW, Context, Function, made, record
from tests.unit.sdk.transport.test_queue_fed import Order


@pytest.fixture
def function() -> Iterator[Function]:
    function = Function()
    yield function
    function.handler.close()


@pytest.mark.parametrize("eager", [0, None])
@pytest.mark.parametrize("repeats", [1, 3])
def test_an_order_runs_by_events_alone(request: pytest.FixtureRequest, repeats: int, eager: int | None) -> None:
    function = made(request, max_eager_activity_reservations_per_workflow_task=eager)
    function.engine.repeats = repeats
    order = function.start()
    function.all()
    function.run(order.signal(Order.ship))
    function.all()
    assert function.run(order.result()) == 6


def test_steps_go_on_within_one_call_and_the_run_stays_in_memory(function: Function) -> None:
    order = function.start()
    assert function.all() == 1  # three activities, none of them by the queue
    function.run(order.signal(Order.ship))
    assert function.all() == 1
    assert function.run(order.result()) == 6
    asked = function.engine.asked
    own = asked[: len(asked) - asked[::-1].index("RespondWorkflowTaskCompleted")]
    assert "GetHistory" not in own and own.count("GetTaskSources") == 1


def test_the_worker_goes_by_the_call_that_made_it_at_its_function(request: pytest.FixtureRequest) -> None:
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:orders"
    calls = [Context(60.0, request_id, arn) for request_id in ("request-1", "request-2")]
    function = made(request, context=calls[0])
    assert function.handler._settings.options["max_cached_workflows"] == 30
    function.start()
    function.once(calls[1])
    events = function.run(function.client.get_workflow_handle("order-1").fetch_history()).events
    completed = [event.attributes for event in events if isinstance(event.attributes, WorkflowTaskCompleted)]
    assert {each.identity for each in completed} == {f"request-1@{arn}"}


def test_a_query_is_answered(function: Function) -> None:
    order = function.start()
    function.all()

    async def asked() -> int:
        answer = asyncio.ensure_future(order.query(Order.status))
        while not function.engine.queues.waiting():
            await asyncio.sleep(0)
        records = function.event()["Records"]
        assert await function.handler._serve({each["messageId"]: each for each in records}, None) == []
        return await answer

    assert function.run(asked()) == 6


def test_one_message_twice_in_an_event_is_one(function: Function) -> None:
    order = function.start()
    event = function.event()
    event["Records"] *= 2
    assert function.handler(event, None) == {"batchItemFailures": []}
    assert function.engine.asked.count("StartWorkflowTask") == 1
    function.engine.queues.by_address[WORKFLOW].messages.clear()
    function.run(order.signal(Order.ship))
    function.all()
    assert function.run(order.result()) == 6


def test_a_message_that_is_old_is_done(function: Function) -> None:
    function.start()
    event = function.event()
    for _ in range(2):
        assert function.handler(event, None) == {"batchItemFailures": []}
    assert function.engine.asked.count("RespondWorkflowTaskCompleted") == 4  # of the first call


def test_a_message_that_nobody_can_read_is_dropped_and_takes_no_other_along(
    function: Function, caplog: pytest.LogCaptureFixture
) -> None:
    order = function.start()
    for queue in function.engine.queues.by_address.values():
        queue.send("hello")
    assert function.once() == [] and function.engine.queues.waiting() == 0
    assert caplog.text.count("is dropped") == 2
    function.run(order.signal(Order.ship))
    function.all()
    assert function.run(order.result()) == 6


async def _waits() -> None:
    await asyncio.Event().wait()


told: list[bool] = []


@activity.defn
async def endless() -> int:
    try:
        await asyncio.wait_for(_waits(), 60)
    except asyncio.CancelledError:
        told.append(activity.is_worker_shutdown())
        raise
    return 1


@workflow.defn
class Long:
    @workflow.run
    async def run(self, amount: int) -> int:
        return await workflow.execute_activity(endless, start_to_close_timeout=timedelta(minutes=5))


@pytest.mark.parametrize("eager", [0, None])
def test_an_activity_that_goes_on_is_ended_with_the_time_and_tried_again(
    request: pytest.FixtureRequest, eager: int | None
) -> None:
    told.clear()
    function = made(
        request,
        workflows=[Long],
        activities=[endless],
        max_eager_activity_reservations_per_workflow_task=eager,
    )
    function.start(Long.run)
    if eager == 0:
        assert function.once() == []
    assert function.once(Context(4.0)) == []
    assert told == [True]
    described = function.run(function.client.get_workflow_handle("order-1").describe())
    assert described.pending_activities[0].attempt == 2
    assert len(function.engine.queues.by_address[ACTIVITY].messages) == 1  # it waits for another worker
    assert function.once(Context(4.0)) == []
    assert told == [True, True]


let_go = threading.Event()


@activity.defn
def stuck() -> int:
    let_go.wait(60)
    return 1


@workflow.defn
class Stuck:
    @workflow.run
    async def run(self, amount: int) -> int:
        return await workflow.execute_activity(stuck, start_to_close_timeout=timedelta(minutes=5))


def test_a_thread_that_hears_nothing_does_not_hold_the_function(request: pytest.FixtureRequest) -> None:
    let_go.clear()
    function = made(request, workflows=[Stuck], activities=[stuck])
    order = function.start(Stuck.run)
    context = Context(5.0)
    assert function.once(context) == []
    assert context.get_remaining_time_in_millis() > 0
    assert len(function.engine.queues.by_address[ACTIVITY].messages) == 1  # for another worker
    let_go.set()
    function.all()
    assert function.run(order.result()) == 1


begun: list[int] = []


@activity.defn
async def long_at_first() -> int:
    begun.append(1)
    if len(begun) == 1:
        await _waits()
    return len(begun)


@workflow.defn
class Local:
    @workflow.run
    async def run(self, amount: int) -> int:
        return await workflow.execute_local_activity(long_at_first, start_to_close_timeout=timedelta(minutes=5))


def test_a_local_activity_that_is_cut_off_runs_anew_with_the_next_task(request: pytest.FixtureRequest) -> None:
    begun.clear()
    function = made(request, workflows=[Local], activities=[long_at_first])
    order = function.start(Local.run)
    assert function.once(Context(5.0)) == []
    assert (
        len(function.engine.queues.by_address[WORKFLOW].messages) == 1
    )  # answered as far as it came, and offered anew
    function.all()
    assert function.run(order.result()) == 2


def test_a_task_that_cannot_be_answered_in_time_comes_again(function: Function) -> None:
    order = function.start()
    function.engine.failing["RespondWorkflowTaskCompleted"] = Unavailable("away")
    failed = function.once(Context(3.0))
    assert len(failed) == 1
    assert "ShutdownWorker" in function.engine.asked
    function.engine.failing.clear()
    function.all()
    function.run(order.signal(Order.ship))
    function.all()
    assert function.run(order.result()) == 6


@pytest.mark.parametrize("operation", ["StartWorkflowTask", "StartActivityTask"])
def test_a_task_that_cannot_be_started_comes_again(request: pytest.FixtureRequest, operation: str) -> None:
    function = made(request, max_eager_activity_reservations_per_workflow_task=0)
    function.start()
    if operation == "StartActivityTask":
        function.once()
    function.engine.failing[operation] = Unavailable("away")
    assert len(function.once()) == 1
    function.engine.failing.clear()
    function.all()
    assert function.run(function.client.get_workflow_handle("order-1").describe()).pending_activities == ()


@activity.defn
async def beats(amount: int) -> int:
    activity.heartbeat(amount)
    return amount


@workflow.defn
class Beating:
    @workflow.run
    async def run(self, amount: int) -> int:
        return await workflow.execute_activity(
            beats,
            amount,
            start_to_close_timeout=timedelta(seconds=20),
            heartbeat_timeout=timedelta(seconds=10),
        )


def test_no_heartbeat_is_on_its_way_behind_the_call(request: pytest.FixtureRequest) -> None:
    function = made(request, workflows=[Beating], activities=[beats])
    order = function.start(Beating.run, 7)
    function.all()  # looks at what is in flight
    assert function.run(order.result()) == 7
    assert function.engine.asked.count("RecordActivityHeartbeat") == 1


@workflow.defn
class Broken:
    @workflow.run
    async def run(self, amount: int) -> int:
        raise KeyError(amount)


def test_a_task_that_fails_is_answered(request: pytest.FixtureRequest) -> None:
    function = made(request, workflows=[Broken], activities=[])
    function.start(Broken.run)
    assert function.once() == []
    assert function.engine.asked.count("RespondWorkflowTaskFailed") == 1


def test_messages_of_other_queues_come_again_and_are_named(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    function = made(request, activities=[])
    address = f"https://sqs.eu-west-1.amazonaws.com/123456789012/{BASE.rpartition(':')[2]}"
    function.engine.sources = (f"{address}-wft-0", f"{address}-act-0")
    function.handler._sources_until = 0.0
    function.start()
    (first,) = function.event()["Records"]
    strangers = [
        record(WORKFLOW, first["body"], base=BASE[:-2] + "aa"),
        record(ACTIVITY, first["body"]),
        {**record(WORKFLOW, first["body"]), "eventSourceARN": "arn:aws:sqs:eu-west-1:1:mine"},
    ]
    answer = function.handler({"Records": [*strangers, {**first, "eventSourceARN": f"{BASE}-wft-3"}]}, None)
    assert [each["itemIdentifier"] for each in answer["batchItemFailures"]] == [each["messageId"] for each in strangers]
    assert "is not a queue of task queue 'orders'" in caplog.text
    assert "this function has no activities" in caplog.text
    assert "no task queue of Stepwell" in caplog.text
    assert "StartActivityTask" not in function.engine.asked


def test_a_function_without_permission_fails_as_a_whole_until_it_has_it(function: Function) -> None:
    function.start()
    function.handler._sources_until = 0.0
    function.engine.failing["GetTaskSources"] = PermissionDenied("this role may not poll orders")
    with pytest.raises(PermissionDenied, match="may not poll orders"):
        function.once()
    function.engine.failing.clear()
    assert function.all() == 1


@pytest.mark.parametrize(
    "event", [{}, None, {"Records": "x"}, {"Records": [{"eventSource": "aws:dynamodb", "dynamodb": {}}]}]
)
def test_an_event_of_anything_but_a_queue_is_refused(event: Any) -> None:
    handler = lambda_handler("https://engine.example.com", task_queue="orders", workflows=[Order])
    with pytest.raises(ValueError, match="event source mapping"):
        handler(event, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"address": "sqlite:///orders.db", "workflows": [Order]}, "use https://host"),
        ({"workflows": []}, "needs workflows or activities"),
        ({"workflows": [Order], "max_concurrent_activities": 0}, "max_concurrent_activities must be at least 1"),
        ({"workflows": [Order], "stop_before": timedelta(0)}, "stop_before must be above zero"),
        ({"workflows": [Order], "task_queue": ""}, "task_queue must not be empty"),
    ],
)
def test_bad_arguments_are_refused_when_the_function_is_made(arguments: dict[str, Any], message: str) -> None:
    arguments = {"address": "https://engine.example.com", "task_queue": "orders", **arguments}
    with pytest.raises(ValueError, match=message):
        lambda_handler(arguments.pop("address"), **arguments)
