"""What is refused at the call, the same over every transport: field, limit and way out are named."""

import re
from datetime import timedelta
from typing import Any

import pytest
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.callbacks import Callback
from stepwell.api.common import Priority, ProcessIdentity, WorkflowExecution
from stepwell.api.enums import DeduplicationPolicy, ResetType, WorkflowIDConflictPolicy
from stepwell.api.errors import InvalidArgument, NotFound, PayloadTooLarge
from stepwell.api.limits import MAX_PAYLOAD_BYTES
from stepwell.api.operations import Operation
from stepwell.api.payloads import Payload

from .client import QUEUE, WORKER, ApiClient, json_payload

EXECUTION = WorkflowExecution(workflow_id="order-1")
START = {"workflow_id": "order-1", "workflow_type": "Order", "task_queue": QUEUE}
UPDATE = {"execution": EXECUTION, "update_id": "u", "update_name": "add"}
SIGNAL = {"execution": EXECUTION, "signal_name": "ship"}
RESET = {"execution": EXECUTION, "workflow_task_finish_event_id": 4}
COMPLETED = {"task_token": b"token", "nonce": "nonce", "worker": WORKER}
OUTCOME = r.ActivityCompleted(task_token=b"token")
LONG = "x" * 1_001
BY_ID = {"execution": EXECUTION, "activity_id": "1"}
TOO_LONG_IN_UTF8 = "語" * 334
BIG = (Payload(data=b"x" * (MAX_PAYLOAD_BYTES + 1)),)
FULL = Payload(data=b"x" * MAX_PAYLOAD_BYTES)
NEGATIVE = timedelta(seconds=-1)
CENTURY = timedelta(days=36_500)

CALLBACK = Callback(url="https://hooks.example.com/")
USE_HOLDER = DeduplicationPolicy.USE_EXISTING


def hooked(headers: dict[str, str]) -> Callback:
    return Callback(url="https://hooks.example.com/", headers=headers)


Case = tuple[Operation[Any, Any], dict[str, Any], str]

CASES: list[Case] = [
    (o.START_WORKFLOW, START | {"namespace": "a#b"}, "namespace.*'#'.*use another character"),
    (o.START_WORKFLOW, START | {"namespace": "n" * 256}, "namespace has 256 bytes.*limit of 255"),
    (o.START_WORKFLOW, START | {"namespace": ""}, "namespace is empty"),
    (o.START_WORKFLOW, START | {"workflow_id": ""}, "workflow_id is empty"),
    (o.START_WORKFLOW, START | {"workflow_id": LONG}, "workflow_id has 1001 bytes.*limit of 1000.*shorter"),
    (o.START_WORKFLOW, START | {"workflow_id": TOO_LONG_IN_UTF8}, "workflow_id has 1002 bytes in UTF-8"),
    (o.START_WORKFLOW, START | {"workflow_id": "a\nb"}, "workflow_id contains the control character.*position 1"),
    (o.START_WORKFLOW, START | {"workflow_id": "a\x85b"}, "workflow_id contains the control character"),
    (o.START_WORKFLOW, START | {"workflow_id": "a\x00"}, "workflow_id contains the control character"),
    (o.START_WORKFLOW, START | {"workflow_id": "\ud800"}, "lone surrogate"),
    (o.START_WORKFLOW, START | {"workflow_id": ".."}, "workflow_id is '..', which no URL can carry"),
    (o.START_WORKFLOW, START | {"workflow_type": ""}, "workflow_type is empty"),
    (o.START_WORKFLOW, START | {"workflow_type": LONG}, "workflow_type has 1001 bytes"),
    (o.START_WORKFLOW, START | {"task_queue": ""}, "task_queue is empty"),
    (o.START_WORKFLOW, START | {"task_queue": "\x1b[1m"}, "task_queue contains the control character"),
    (o.START_WORKFLOW, START | {"identity": LONG}, "identity has 1001 bytes"),
    (o.START_WORKFLOW, START | {"request_id": LONG}, "request_id has 1001 bytes"),
    (o.START_WORKFLOW, START | {"workflow_execution_timeout": NEGATIVE}, "workflow_execution_timeout is -1 s.*above"),
    (o.START_WORKFLOW, START | {"workflow_run_timeout": timedelta(0)}, "workflow_run_timeout is 0 s.*leave it out"),
    (o.START_WORKFLOW, START | {"workflow_run_timeout": CENTURY}, "workflow_run_timeout is 36500 days.*3650 days"),
    (o.START_WORKFLOW, START | {"workflow_task_timeout": timedelta(seconds=121)}, "workflow_task_timeout.*120 s"),
    (o.START_WORKFLOW, START | {"input": BIG}, "input has 2097153 bytes.*2097152.*reference"),
    (o.START_WORKFLOW, START | {"memo": {"": FULL}}, "memo name is empty"),
    (o.START_WORKFLOW, START | {"memo": {"m": FULL}}, "memo has 2097153 bytes"),
    (o.START_WORKFLOW, START | {"headers": {"h": BIG[0]}}, "headers has"),
    (
        o.START_WORKFLOW,
        START
        | {"input": (FULL,), "memo": {"m": Payload(data=b"x" * 2**20)}, "headers": {"h": Payload(data=b"x" * 2**20)}},
        "together have .* limit of 4194304",
    ),
    (o.START_WORKFLOW, START | {"completion_callbacks": (CALLBACK,) * 33}, "callbacks is 33, above the limit of 32"),
    (o.START_WORKFLOW, START | {"completion_callbacks": (CALLBACK,)}, "not among the addresses"),
    (o.START_WORKFLOW, START | {"completion_callbacks": (Callback(url=""),)}, r"\[0\].url is empty"),
    (o.START_WORKFLOW, START | {"completion_callbacks": (Callback(url="https://a.b/" + LONG),)}, "url has .* 1000"),
    (o.START_WORKFLOW, START | {"completion_callbacks": (Callback(url="ftp://a.b"),)}, "no URL that can be called"),
    (o.START_WORKFLOW, START | {"completion_callbacks": (Callback(url="https://u@a.b"),)}, "no URL that can be called"),
    (o.START_WORKFLOW, START | {"completion_callbacks": (hooked({"a b": "c"}),)}, "'a b', of which name or value"),
    (o.START_WORKFLOW, START | {"completion_callbacks": (hooked({"a": "b\r\nc: d"}),)}, "'a', of which name or value"),
    (
        o.START_WORKFLOW,
        START | {"completion_callbacks": (hooked({"Host": "x"}),)},
        "'Host', which is set by what sends",
    ),
    (
        o.START_WORKFLOW,
        START | {"completion_callbacks": (hooked({"a": "x" * 66_000}),)},
        "66.* above the limit of 65536",
    ),
    (
        o.START_WORKFLOW,
        START | {"completion_callbacks": (CALLBACK,), "deduplication": r.Deduplication(key="k", policy=USE_HOLDER)},
        "cannot go with deduplication.policy USE_EXISTING",
    ),
    (
        o.START_WORKFLOW,
        START | {"on_conflict_options": r.OnConflictOptions(attach_completion_callbacks=True)},
        "attach_completion_callbacks needs attach_request_id",
    ),
    (o.START_WORKFLOW, START | {"deduplication": r.Deduplication(key="")}, "deduplication.key is empty"),
    (o.START_WORKFLOW, START | {"deduplication": r.Deduplication(key=LONG)}, "deduplication.key has 1001 bytes"),
    (o.START_WORKFLOW, START | {"deduplication": r.Deduplication(key="k", ttl=CENTURY)}, "ttl is .* limit of 365 days"),
    (
        o.START_WORKFLOW,
        START | {"deduplication": r.Deduplication(key="k", ttl=timedelta(milliseconds=99))},
        "deduplication.ttl is 0.099 s; use 0.1 s or more",
    ),
    (
        o.SIGNAL_WITH_START_WORKFLOW,
        START | {"signal_name": "s", "deduplication": r.Deduplication(key="k")},
        "deduplication cannot go with a message",
    ),
    (o.SIGNAL_WORKFLOW, SIGNAL | {"signal_name": ""}, "signal_name is empty"),
    (o.SIGNAL_WORKFLOW, SIGNAL | {"signal_name": LONG}, "signal_name has 1001 bytes"),
    (o.SIGNAL_WORKFLOW, SIGNAL | {"input": BIG}, "input has 2097153 bytes"),
    (o.SIGNAL_WORKFLOW, SIGNAL | {"execution": WorkflowExecution(workflow_id="")}, "execution.workflow_id is empty"),
    (o.SIGNAL_WORKFLOW, SIGNAL | {"execution": WorkflowExecution(workflow_id="a", run_id=LONG)}, "execution.run_id"),
    (o.SIGNAL_WORKFLOW, SIGNAL | {"request_id": "a\tb"}, "request_id contains the control character"),
    (o.UPDATE_WORKFLOW, UPDATE | {"update_id": ""}, "update_id is empty"),
    (o.UPDATE_WORKFLOW, UPDATE | {"update_id": LONG}, "update_id has 1001 bytes"),
    (o.UPDATE_WORKFLOW, UPDATE | {"update_name": ""}, "update_name is empty"),
    (o.UPDATE_WORKFLOW, UPDATE | {"input": BIG}, "input has 2097153 bytes"),
    (o.UPDATE_WORKFLOW, UPDATE | {"headers": {"h": BIG[0]}}, "headers has"),
    (o.UPDATE_WORKFLOW, UPDATE | {"timeout": NEGATIVE}, "timeout is -1 s"),
    (o.UPDATE_WORKFLOW, UPDATE | {"first_execution_run_id": LONG}, "first_execution_run_id has 1001 bytes"),
    (o.POLL_WORKFLOW_UPDATE, {"execution": EXECUTION, "update_id": ""}, "update_id is empty"),
    (o.POLL_WORKFLOW_UPDATE, {"execution": EXECUTION, "update_id": "u", "timeout": NEGATIVE}, "timeout is -1 s"),
    (o.SIGNAL_WITH_START_WORKFLOW, START | {"signal_name": ""}, "signal_name is empty"),
    (o.SIGNAL_WITH_START_WORKFLOW, START | {"signal_name": "s", "signal_input": BIG}, "signal_input has 2097153"),
    (
        o.SIGNAL_WITH_START_WORKFLOW,
        START | {"signal_name": "s", "workflow_id_conflict_policy": WorkflowIDConflictPolicy.FAIL},
        "conflict_policy FAIL cannot go with a signal.*USE_EXISTING",
    ),
    (
        o.SIGNAL_WITH_START_WORKFLOW,
        START
        | {"signal_name": "s", "input": (FULL,), "signal_input": (FULL,), "signal_headers": {"h": Payload(data=b"x")}},
        "together have .* limit of 4194304",
    ),
    (o.UPDATE_WITH_START_WORKFLOW, START | {"update_id": "", "update_name": "u"}, "update_id is empty"),
    (o.UPDATE_WITH_START_WORKFLOW, START | {"update_id": "u", "update_name": ""}, "update_name is empty"),
    (o.UPDATE_WITH_START_WORKFLOW, START | {"update_id": "u", "update_name": "n", "task_queue": ""}, "task_queue is"),
    (o.QUERY_WORKFLOW, {"execution": EXECUTION, "query_type": ""}, "query_type is empty"),
    (o.QUERY_WORKFLOW, {"execution": EXECUTION, "query_type": "q", "query_args": BIG}, "query_args has"),
    (o.QUERY_WORKFLOW, {"execution": EXECUTION, "query_type": "q", "timeout": NEGATIVE}, "timeout is -1 s"),
    (o.CANCEL_WORKFLOW, {"execution": EXECUTION, "reason": LONG}, "reason has 1001 bytes"),
    (o.CANCEL_WORKFLOW, {"execution": EXECUTION, "first_execution_run_id": LONG}, "first_execution_run_id"),
    (o.TERMINATE_WORKFLOW, {"execution": EXECUTION, "reason": "a\x1bb"}, "reason contains the control character"),
    (o.TERMINATE_WORKFLOW, {"execution": EXECUTION, "details": BIG}, "details has"),
    (o.DELETE_WORKFLOW, {"execution": WorkflowExecution(workflow_id="")}, "workflow_id is empty"),
    (o.GET_HISTORY, {"execution": EXECUTION, "reverse": True, "wait_new_event": True}, "reverse .* waits for nothing"),
    (o.RESET_WORKFLOW, RESET | {"execution": WorkflowExecution(workflow_id="")}, "workflow_id is empty"),
    (o.RESET_WORKFLOW, RESET | {"reset_type": ResetType.LAST_WORKFLOW_TASK}, "either .* set exactly one of them"),
    (o.RESET_WORKFLOW, {"execution": EXECUTION}, "either .* set exactly one of them"),
    (o.RESET_WORKFLOW, RESET | {"workflow_task_finish_event_id": -1}, "is -1; events are numbered from 1 on"),
    (o.RESET_WORKFLOW, RESET | {"build_id": "b1"}, "build_id goes with reset_type BUILD_ID"),
    (o.RESET_WORKFLOW, {"execution": EXECUTION, "reset_type": ResetType.BUILD_ID}, "build_id goes with reset_type"),
    (o.RESET_WORKFLOW, RESET | {"build_id": "b" * 256}, "build_id has 256 bytes.*limit of 255"),
    (o.RESET_WORKFLOW, RESET | {"reason": LONG}, "reason has 1001 bytes"),
    (o.RESET_WORKFLOW, RESET | {"identity": LONG}, "identity has 1001 bytes"),
    (o.RESET_WORKFLOW, RESET | {"request_id": LONG}, "request_id has 1001 bytes"),
    (o.DESCRIBE_WORKFLOW, {"execution": WorkflowExecution(workflow_id=LONG)}, "execution.workflow_id has 1001"),
    (o.GET_HISTORY, {"execution": EXECUTION, "maximum_page_size": -1}, "maximum_page_size is -1.*at least 0"),
    (o.GET_HISTORY, {"execution": EXECUTION, "maximum_page_size": 1_001}, "maximum_page_size.*limit of 1000.*token"),
    (o.GET_HISTORY, {"execution": EXECUTION, "timeout": NEGATIVE}, "timeout is -1 s"),
    (o.LIST_WORKFLOWS, {"page_size": 1_001}, "page_size is 1001.*limit of 1000.*next_page_token"),
    (o.LIST_WORKFLOWS, {"workflow_type": LONG}, "workflow_type"),
    (o.POLL_WORKFLOW_TASK, {"task_queue": "", "worker": WORKER}, "task_queue is empty"),
    (o.POLL_WORKFLOW_TASK, {"task_queue": "q", "worker": WORKER, "timeout": NEGATIVE}, "timeout is -1 s"),
    (o.POLL_WORKFLOW_TASK, {"task_queue": "q", "worker": r.WorkerInfo(identity=LONG)}, "worker.identity has 1001"),
    (
        o.POLL_WORKFLOW_TASK,
        {"task_queue": "q", "worker": r.WorkerInfo(identity="", build_id="b" * 256)},
        "build_id.*255",
    ),
    (o.POLL_WORKFLOW_TASK, {"task_queue": "q", "worker": r.WorkerInfo(identity="", worker_key=LONG)}, "worker_key"),
    (
        o.POLL_WORKFLOW_TASK,
        {
            "task_queue": "q",
            "worker": r.WorkerInfo(identity="", process=ProcessIdentity(machine=LONG, pid=1, started="")),
        },
        "machine",
    ),
    (o.POLL_WORKFLOW_TASK, {"task_queue": "q", "worker": WORKER, "maximum_tasks": 101}, "maximum_tasks.*limit of 100"),
    (o.RESPOND_WORKFLOW_TASKS_COMPLETED, {"completions": ()}, "number of completions is 0"),
    (
        o.RESPOND_WORKFLOW_TASKS_COMPLETED,
        {"completions": (r.RespondWorkflowTaskCompletedRequest(**COMPLETED),) * 101},
        "number of completions is 101.*limit of 100",
    ),
    (
        o.RESPOND_WORKFLOW_TASKS_COMPLETED,
        {"namespace": "n", "completions": (r.RespondWorkflowTaskCompletedRequest(**COMPLETED),)},
        "of namespace 'default' in a request of 'n'",
    ),
    (o.POLL_ACTIVITY_TASK, {"task_queue": "q", "worker": WORKER, "max_tasks_per_second": 0.0}, "per_second is 0; use"),
    (o.POLL_ACTIVITY_TASK, {"task_queue": "q", "worker": WORKER, "max_tasks_per_second": 1e6 + 1}, "at most 1e.06"),
    (o.START_WORKFLOW, START | {"priority": Priority(priority_key=6)}, "priority_key is 6; use 1"),
    (o.START_WORKFLOW, START | {"priority": Priority(fairness_key="k" * 65)}, "fairness_key has 65 bytes"),
    (o.START_WORKFLOW, START | {"priority": Priority(fairness_weight=1e-4)}, "fairness_weight is 0.0001; use"),
    (o.POLL_ACTIVITY_TASK, {"task_queue": "q", "worker": WORKER, "maximum_tasks": 0}, "maximum_tasks is 0.*at least 1"),
    (o.POLL_ACTIVITY_TASK, {"task_queue": "q", "worker": WORKER, "maximum_tasks": 101}, "maximum_tasks.*limit of 100"),
    (o.RESPOND_WORKFLOW_TASK_COMPLETED, COMPLETED | {"task_token": b""}, "task_token is empty"),
    (o.RESPOND_WORKFLOW_TASK_COMPLETED, COMPLETED | {"nonce": ""}, "nonce is empty"),
    (o.RESPOND_WORKFLOW_TASK_COMPLETED, COMPLETED | {"nonce": "n" * 101}, "nonce has 101 bytes.*limit of 100"),
    (
        o.RESPOND_WORKFLOW_TASK_COMPLETED,
        COMPLETED | {"activity_outcomes": (OUTCOME,) * 1_001},
        "activity_outcomes.*1000",
    ),
    (
        o.RESPOND_WORKFLOW_TASK_COMPLETED,
        COMPLETED | {"eager_activities": r.EagerActivities(task_queue="q", slots=-1)},
        "slots is -1",
    ),
    (
        o.RESPOND_WORKFLOW_TASK_COMPLETED,
        COMPLETED | {"eager_activities": r.EagerActivities(task_queue="", slots=1)},
        "eager_activities.task_queue is empty",
    ),
    (o.RESPOND_ACTIVITY_TASKS, {"worker": WORKER, "outcomes": ()}, "outcomes is empty"),
    (o.RESPOND_ACTIVITY_TASKS, {"worker": WORKER, "outcomes": (OUTCOME,) * 1_001}, "outcomes is 1001.*limit of 1000"),
    (
        o.RESPOND_ACTIVITY_TASKS,
        {"worker": WORKER, "outcomes": (r.ActivityCompleted(task_token=b""),)},
        "task_token is empty",
    ),
    (o.RESPOND_ACTIVITY_BY_ID, BY_ID | {"activity_id": "", "outcome": OUTCOME}, "activity_id is empty"),
    (o.RESPOND_ACTIVITY_BY_ID, BY_ID | {"activity_id": LONG, "outcome": OUTCOME}, "activity_id has 1001 bytes"),
    (o.RESPOND_ACTIVITY_BY_ID, BY_ID | {"identity": LONG, "outcome": OUTCOME}, "identity has 1001 bytes"),
    (o.RESPOND_ACTIVITY_BY_ID, BY_ID | {"outcome": r.ActivityPending(task_token=b"t")}, "outcome is ActivityPending"),
    (o.PAUSE_ACTIVITY, {"execution": EXECUTION}, "either activity_id, or activity_type"),
    (o.PAUSE_ACTIVITY, BY_ID | {"activity_type": "t"}, "either activity_id, or activity_type.*not both"),
    (o.PAUSE_ACTIVITY, BY_ID | {"reason": LONG}, "reason has 1001 bytes"),
    (o.UNPAUSE_ACTIVITY, BY_ID | {"jitter": NEGATIVE}, "jitter is -1 s"),
    (o.RESET_ACTIVITY, BY_ID | {"jitter": CENTURY}, "jitter is 36500 days"),
    (o.RESET_ACTIVITY, {"execution": EXECUTION, "activity_type": LONG}, "activity_type has 1001 bytes"),
    (o.UPDATE_ACTIVITY_OPTIONS, BY_ID | {"options": r.ActivityOptionsChange()}, "options names nothing to change"),
    (
        o.UPDATE_ACTIVITY_OPTIONS,
        BY_ID | {"options": r.ActivityOptionsChange(heartbeat_timeout=NEGATIVE)},
        "options.heartbeat_timeout is -1 s",
    ),
    (
        o.UPDATE_ACTIVITY_OPTIONS,
        BY_ID | {"options": r.ActivityOptionsChange(task_queue=LONG)},
        "options.task_queue has 1001 bytes",
    ),
    (o.RECORD_ACTIVITY_HEARTBEAT_BY_ID, BY_ID | {"details": BIG}, "details has 2097153 bytes"),
    (o.RECORD_ACTIVITY_HEARTBEAT, {"task_token": b""}, "task_token is empty"),
    (o.RECORD_ACTIVITY_HEARTBEAT, {"task_token": b"t", "details": BIG}, "details has"),
    (o.SHUTDOWN_WORKER, {"task_queue": "", "worker": WORKER}, "task_queue is empty"),
    (o.DESCRIBE_TASK_QUEUE, {"task_queue": LONG}, "task_queue has 1001 bytes"),
    (o.LIST_WORKERS, {"task_queue": LONG}, "task_queue has 1001 bytes"),
    (o.LIST_WORKERS, {"task_queue": "q", "next_page_token": b"x"}, "next_page_token is none of ListWorkers"),
]


async def test_refused(api: ApiClient) -> None:
    """All in one test, since each transport takes a moment to start."""
    wrong = [found for case in CASES if (found := await _wrong(api, *case))]
    assert wrong == []
    assert not (await api.call(o.LIST_WORKFLOWS)).executions


async def _wrong(api: ApiClient, operation: Operation[Any, Any], fields: dict[str, Any], message: str) -> str:
    try:
        response = await api.call(operation, **fields)
    except InvalidArgument as error:
        return "" if re.search(message, str(error)) else f"{operation.name}: {message!r} is not in {str(error)!r}"
    return f"{operation.name}: {message!r} expected, got {response!r}"


async def test_too_large_has_a_code_of_its_own(api: ApiClient) -> None:
    with pytest.raises(PayloadTooLarge) as refused:
        await api.start(input=BIG)
    assert refused.value.details["field"] == "input"
    assert not refused.value.retryable


async def test_exactly_the_limits_pass(api: ApiClient) -> None:
    """WC-26: exactly L passes everywhere."""
    name = "語" * 333 + "x"
    await api.start(name, workflow_type=name, task_queue=name, request_id=name, identity=name, input=(FULL,))
    await api.signal(name, signal_name=name, input=(FULL,), request_id=name)
    assert (await api.history(name))[0].attributes.input == (FULL,)


async def test_a_refused_signal_leaves_nothing(api: ApiClient) -> None:
    await api.start()
    before = await api.history()
    with pytest.raises(InvalidArgument):
        await api.signal(input=BIG)
    with pytest.raises(NotFound):
        await api.signal("another", input=json_payload("1"))
    assert await api.history() == before
    assert (await api.describe()).buffered_events == 0
