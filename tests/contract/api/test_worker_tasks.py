"""What workers ask and report, the same over every transport."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution, ScheduleActivityTask
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CompletionOutcome, TaskQueueKind, WorkflowTaskFailedCause
from stepwell.api.errors import InvalidArgument, QueryFailed
from stepwell.api.failures import Failure
from stepwell.api.limits import MAX_FAILURE_MESSAGE_BYTES, MAX_PAYLOAD_BYTES
from stepwell.api.payloads import Payload

from .client import QUEUE, SOON, WORKER, ApiClient, json_payload


def _charge(**fields: Any) -> ScheduleActivityTask:
    return ScheduleActivityTask(
        **(
            {
                "activity_id": "1",
                "activity_type": "charge",
                "task_queue": QUEUE,
                "input": json_payload("12"),
                "start_to_close_timeout": timedelta(seconds=10),
                "request_eager_execution": False,
            }
            | fields
        )
    )


async def _activity_task(api: ApiClient) -> r.ActivityTask:
    response = await api.call(o.POLL_ACTIVITY_TASK, task_queue=QUEUE, worker=WORKER, timeout=timedelta(seconds=5))
    (task,) = response.tasks
    return task


async def _respond(api: ApiClient, *outcomes: r.ActivityOutcome) -> list[r.ActivityOutcomeReply]:
    response = await api.call(o.RESPOND_ACTIVITY_TASKS, worker=WORKER, outcomes=outcomes)
    return list(response.replies)


async def test_a_workflow_with_an_activity(api: ApiClient) -> None:
    await api.start()
    await api.complete(await api.workflow_task(), _charge())
    task = await _activity_task(api)
    assert (task.activity_type, task.input, task.attempt) == ("charge", json_payload("12"), 1)
    beat = await api.call(o.RECORD_ACTIVITY_HEARTBEAT, task_token=task.task_token, details=json_payload("1"))
    assert not beat.cancel_requested
    described = await api.describe()
    assert described.pending_activities[0].heartbeat_details == json_payload("1")
    (reply,) = await _respond(api, r.ActivityCompleted(task_token=task.task_token, result=json_payload('"paid"')))
    assert reply.error_code == ""
    await api.complete(await api.workflow_task(), CompleteWorkflowExecution(result=json_payload("true")))
    kinds = [event.event_type for event in await api.history()]
    assert kinds == [
        "WorkflowExecutionStarted",
        "WorkflowTaskScheduled",
        "WorkflowTaskStarted",
        "WorkflowTaskCompleted",
        "ActivityTaskScheduled",
        "ActivityTaskStarted",
        "ActivityTaskCompleted",
        "WorkflowTaskScheduled",
        "WorkflowTaskStarted",
        "WorkflowTaskCompleted",
        "WorkflowExecutionCompleted",
    ]


async def test_fused_steps(api: ApiClient) -> None:
    await api.start()
    eager = r.EagerActivities(task_queue=QUEUE, slots=1)
    first = await api.complete(await api.workflow_task(), _charge(request_eager_execution=True), eager_activities=eager)
    (lease,) = first.leases
    assert first.fusible
    second = await api.call(
        o.RESPOND_WORKFLOW_TASK_COMPLETED,
        task_token=first.continuation_token,
        nonce="fused",
        worker=WORKER,
        commands=(CompleteWorkflowExecution(),),
        activity_outcomes=(r.ActivityCompleted(task_token=lease.task_token, result=json_payload("1")),),
        workflow_time=first.commit_time,
    )
    assert second.outcome is CompletionOutcome.ACCEPTED
    assert [reply.error_code for reply in second.activity_replies] == [""]


@pytest.mark.parametrize("size", [MAX_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES + 1])
async def test_a_result_above_the_limit_fails_the_activity_for_good(api: ApiClient, size: int) -> None:
    """WC-26: exactly the limit passes; one byte more is a failure without retry that names size and limit."""
    await api.start()
    await api.complete(await api.workflow_task(), _charge())
    task = await _activity_task(api)
    payload = Payload(data=b"x" * size)
    (reply,) = await _respond(api, r.ActivityCompleted(task_token=task.task_token, result=(payload,)))
    assert reply.error_code == ""
    ends = [event for event in await api.history() if event.event_type.startswith("ActivityTask")][-1]
    if size <= MAX_PAYLOAD_BYTES:
        assert ends.attributes.result == (payload,)
    else:
        assert ends.event_type == "ActivityTaskFailed"
        assert ends.attributes.failure.info.failure_type == "PayloadTooLarge"
        assert str(size) in ends.attributes.failure.message
        assert str(MAX_PAYLOAD_BYTES) in ends.attributes.failure.message


async def test_a_failed_workflow_task_shows_in_describe_with_a_message_that_fits(api: ApiClient) -> None:
    await api.start()
    task = await api.workflow_task()
    await api.call(
        o.RESPOND_WORKFLOW_TASK_FAILED,
        task_token=task.task_token,
        worker=WORKER,
        cause=WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR,
        failure=Failure(message="ü" * MAX_FAILURE_MESSAGE_BYTES),
    )
    pending = (await api.describe()).pending_workflow_task
    assert pending is not None
    assert pending.last_cause is WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR
    assert pending.last_failure is not None
    assert len(pending.last_failure.message.encode()) <= MAX_FAILURE_MESSAGE_BYTES


async def test_a_query_is_answered_by_a_worker(api: ApiClient) -> None:
    await api.start()
    await api.complete(await api.workflow_task())
    asked = [
        asyncio.create_task(
            api.call(
                o.QUERY_WORKFLOW,
                execution=WorkflowExecution(workflow_id="order-1"),
                query_type=query_type,
                query_args=json_payload("1"),
            )
        )
        for query_type in ("good", "bad")
    ]
    for _ in asked:
        task = await api.workflow_task()
        assert task.query is not None
        bad = task.query.query_type == "bad"
        await api.call(
            o.RESPOND_QUERY_TASK_COMPLETED,
            task_token=task.task_token,
            result=() if bad else json_payload("42"),
            failure=Failure(message="no handler") if bad else None,
        )
    assert (await asked[0]).result == json_payload("42")
    with pytest.raises(QueryFailed, match="no handler"):
        await asked[1]


async def test_waiting_workflow_tasks_come_together(api: ApiClient, request: pytest.FixtureRequest) -> None:
    for number in range(3):
        await api.start(f"order-{number}")
    poll = {"task_queue": QUEUE, "worker": WORKER, "timeout": SOON}
    batches: list[list[str]] = []
    while sum(map(len, batches)) < 3:
        answer = await api.call(o.POLL_WORKFLOW_TASK, **poll, maximum_tasks=2)
        batches.append([task.execution.workflow_id for task in answer.tasks])
    if "container" in request.node.name:  # its tasks wait in SQS, which keeps no order and brings what it has
        assert max(map(len, batches)) <= 2
        assert sorted(each for batch in batches for each in batch) == ["order-0", "order-1", "order-2"]
    else:
        assert batches == [["order-0", "order-1"], ["order-2"]]


async def test_completions_of_several_runs_are_each_answered_as_if_alone(api: ApiClient) -> None:
    for number in range(2):
        await api.start(f"order-{number}")
    tasks = [await api.workflow_task() for _ in range(2)]
    completions = [
        r.RespondWorkflowTaskCompletedRequest(task_token=token, nonce=f"several {number}", worker=WORKER)
        for number, token in enumerate([tasks[0].task_token, b"made up", tasks[1].task_token])
    ]
    response = await api.call(o.RESPOND_WORKFLOW_TASKS_COMPLETED, completions=tuple(completions))
    first, made_up, second = response.answers
    assert first.response.outcome == second.response.outcome == "ACCEPTED"
    assert made_up.response is None and made_up.error.code == "INVALID_ARGUMENT"
    again = await api.call(o.RESPOND_WORKFLOW_TASKS_COMPLETED, completions=tuple(completions))
    assert again.answers[0].response.continuation_token == first.response.continuation_token


async def test_polls_end_empty(api: ApiClient) -> None:
    poll = {"task_queue": QUEUE, "worker": WORKER, "timeout": SOON}
    assert not (await api.call(o.POLL_WORKFLOW_TASK, **poll)).tasks
    assert (await api.call(o.POLL_ACTIVITY_TASK, **poll)).tasks == ()
    assert (await api.call(o.DESCRIBE_TASK_QUEUE, task_queue=QUEUE)).pollers[0].identity == WORKER.identity
    (listed,) = (await api.call(o.LIST_WORKERS, task_queue=QUEUE, identity_prefix=WORKER.identity[:2])).workers
    assert (listed.identity, listed.worker_key, listed.kinds) == (
        WORKER.identity,
        WORKER.worker_key,
        tuple(TaskQueueKind),
    )


async def test_a_worker_that_shuts_down_ends_its_polls(api: ApiClient) -> None:
    waiting = asyncio.create_task(
        api.call(o.POLL_WORKFLOW_TASK, task_queue=QUEUE, worker=WORKER, timeout=timedelta(seconds=15))
    )
    await asyncio.sleep(0.1)
    await api.call(o.SHUTDOWN_WORKER, task_queue=QUEUE, worker=WORKER)
    async with asyncio.timeout(10):
        assert not (await waiting).tasks


async def test_a_made_up_token_is_refused(api: ApiClient) -> None:
    await api.start()
    with pytest.raises(InvalidArgument, match="task_token"):
        await api.call(o.RESPOND_WORKFLOW_TASK_COMPLETED, task_token=b"made up", nonce="1", worker=WORKER, commands=())


async def test_a_poll_that_is_given_up_takes_no_task(held_api: ApiClient) -> None:
    """A worker that hangs up is handed nothing; the next poll gets the task at once."""
    gone = asyncio.create_task(
        held_api.call(o.POLL_WORKFLOW_TASK, task_queue=QUEUE, worker=WORKER, timeout=timedelta(seconds=15))
    )
    await asyncio.sleep(0.1)
    gone.cancel()
    await asyncio.wait((gone,))
    await asyncio.sleep(0.1)
    await held_api.start()
    async with asyncio.timeout(10):
        await held_api.complete(await held_api.workflow_task())
