"""What workflows ask of workflows of other namespaces (MT-11): refused, unless the other namespace lists theirs."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import RequestCancelExternalWorkflowExecution, SignalExternalWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import NotFound
from stepwell.api.namespaces import NamespaceLimits
from stepwell.api.payloads import Payload

from stepwell_server.history.commit import ExecutionKey
from tests.support.crossing import BRIEF, DONE, begin, drive, kid, terminate, until
from tests.support.engine import QUEUE, Driver, payload, running, types

SHOP = "shop"
THERE = ExecutionKey(SHOP, "kid")


async def register(driver: Driver, *callers: str, **more: Any) -> None:
    await driver.engine.namespaces.register(r.RegisterNamespaceRequest(namespace=SHOP, callers_allowed=callers, **more))


async def allow(driver: Driver, *callers: str) -> None:
    await driver.engine.namespaces.update(r.UpdateNamespaceRequest(namespace=SHOP, callers_allowed=callers))


async def events_there(driver: Driver) -> list[str]:
    request = r.GetHistoryRequest(namespace=SHOP, execution=WorkflowExecution(workflow_id="kid"))
    try:
        return types((await driver.engine.get_history(request)).events)
    except NotFound:
        return []


async def finish_there(driver: Driver) -> None:
    poll = r.PollWorkflowTaskRequest(
        namespace=SHOP, task_queue=QUEUE, worker=driver.worker, timeout=timedelta(seconds=20)
    )
    (task,) = (await driver.engine.poll_workflow_task(poll)).tasks
    answer = r.RespondWorkflowTaskCompletedRequest(
        namespace=SHOP, task_token=task.task_token, nonce="n", worker=driver.worker, commands=(DONE,)
    )
    assert (await driver.engine.respond_workflow_task_completed(answer)).outcome == "ACCEPTED"


async def cause(driver: Driver, event: str) -> str:
    """Why it failed, at the parent."""
    await drive(driver, "parent", event)
    (found,) = [each for each in await driver.history("parent") if each.event_type == event]
    return str(getattr(found.attributes, "cause"))  # noqa: B009


signal = SignalExternalWorkflowExecution(
    namespace=SHOP, execution=WorkflowExecution(workflow_id="kid"), signal_name="ship"
)
cancel = RequestCancelExternalWorkflowExecution(namespace=SHOP, workflow_id="kid")
start = kid(namespace=SHOP)
watch = kid(namespace=SHOP, watch_only=True)

ALL = [
    (start, "StartChildWorkflowExecutionFailed", "ChildWorkflowExecutionStarted"),
    (watch, "StartChildWorkflowExecutionFailed", "ChildWorkflowExecutionStarted"),
    (signal, "SignalExternalWorkflowExecutionFailed", "ExternalWorkflowExecutionSignaled"),
    (cancel, "RequestCancelExternalWorkflowExecutionFailed", "ExternalWorkflowExecutionCancelRequested"),
]
NAMES = ["start", "watch", "signal", "cancel"]


@pytest.mark.parametrize(("command", "failed", "done"), ALL, ids=NAMES)
async def test_what_is_not_allowed_fails_for_good_and_touches_nothing(command: Any, failed: str, done: str) -> None:
    async with running(keeps_namespaces=True) as driver:
        await register(driver, "another")
        if command is not start:
            await driver.start("kid", namespace=SHOP)
        before = await events_there(driver)
        await begin(driver, command)
        assert await cause(driver, failed) == "NAMESPACE_NOT_ALLOWED"
        assert await events_there(driver) == before
        assert "WorkflowTaskFailed" not in types(await driver.history("parent"))


@pytest.mark.parametrize(("command", "failed", "done"), ALL, ids=NAMES)
@pytest.mark.parametrize("callers", [("another", "default"), ("*",)], ids=["listed", "all"])
async def test_what_is_allowed_is_done(command: Any, failed: str, done: str, callers: tuple[str, ...]) -> None:
    async with running(keeps_namespaces=True) as driver:
        await register(driver, *callers)
        if command is not start:
            await driver.start("kid", namespace=SHOP)
        await begin(driver, command)
        await drive(driver, "parent", done)
        assert failed not in types(await driver.history("parent"))


async def test_a_child_elsewhere_tells_its_end_and_is_ended_with_its_parent() -> None:
    """Also when its namespace lets nobody in any more."""
    async with running(keeps_namespaces=True) as driver:
        await register(driver, "default")
        await begin(driver, start)
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        await allow(driver)
        await finish_there(driver)
        await drive(driver, "parent", "ChildWorkflowExecutionCompleted")
        await allow(driver, "default")
        await terminate(driver, "parent")
        await begin(driver, start)
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        await allow(driver)
        await terminate(driver, "parent")

        async def ended() -> bool:
            return (await events_there(driver))[-1] == "WorkflowExecutionTerminated"

        await until(ended)


@pytest.mark.parametrize(("command", "failed", "done"), ALL, ids=NAMES)
async def test_what_was_let_in_and_not_confirmed_was_let_in(
    tmp_path: Path, command: Any, failed: str, done: str
) -> None:
    """The process dies in between, and the list is another one when what it asked is asked again."""
    async with running(tmp_path / "orders.db", keeps_namespaces=True, **BRIEF) as driver:
        await register(driver, "default")
        if command is not start:
            await driver.start("kid", namespace=SHOP)
        before = await driver.store.head(THERE)
        driver.store.refuse_kinds.add("ExternalDelivered")
        await begin(driver, command)

        async def is_there() -> bool:
            head = await driver.store.head(THERE)
            return head is not None and (before is None or head.seq > before.seq)

        await until(is_there)
        await allow(driver)
    async with running(tmp_path / "orders.db", keeps_namespaces=True) as driver:
        await drive(driver, "parent", failed if command is watch else done)
        head = await driver.store.head(THERE)
        assert head is not None and (command is not watch or not head.state.waiters), "it waits for nothing any more"


async def test_a_list_that_another_process_has_changed_is_read_before_anything_is_refused() -> None:
    async with running(keeps_namespaces=True) as driver:
        namespaces = driver.engine.namespaces
        await register(driver)
        before = namespaces._known
        await allow(driver, "default")
        namespaces._known = before
        await begin(driver, start)
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        assert namespaces.get(SHOP).callers_allowed == ("default",)


@pytest.mark.parametrize("registered", [True, False])
async def test_namespaces_that_nobody_registered_or_that_are_deleted_are_not_there(registered: bool) -> None:
    async with running(keeps_namespaces=True) as driver:
        if registered:
            await register(driver, "*")
            request = r.DeleteNamespaceRequest(namespace=SHOP, force=True, delay=timedelta(hours=1))
            await driver.engine.namespaces.delete(request, never)
        await begin(driver, start)
        assert await cause(driver, "StartChildWorkflowExecutionFailed") == "NAMESPACE_NOT_FOUND"


async def never(_: str) -> bool:
    return False


# --- what holds for starts there ----------------------------------------------------------------------------------


async def test_nothing_is_started_in_a_deprecated_namespace() -> None:
    async with running(keeps_namespaces=True) as driver:
        await register(driver, "*")
        await driver.engine.namespaces.deprecate(r.DeprecateNamespaceRequest(namespace=SHOP))
        await begin(driver, start)
        assert await cause(driver, "StartChildWorkflowExecutionFailed") == "NAMESPACE_NOT_ALLOWED"


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({"limits": NamespaceLimits(max_payload_bytes=1_024)}, {"memo": {"note": payload("x" * 2_000)[0]}}),
        ({"implicit_search_attributes": False}, {"search_attributes": {"City": payload("Rome")[0]}}),
        ({}, {"search_attributes": {"City": Payload(metadata={"encoding": "binary/plain"}, data=b"\0")}}),
    ],
    ids=["payload", "attribute", "no value"],
)
async def test_what_the_namespace_does_not_take_is_not_started(settings: Any, more: Any) -> None:
    async with running(keeps_namespaces=True) as driver:
        await register(driver, "*", **settings)
        await begin(driver, kid(namespace=SHOP, **more))
        assert await cause(driver, "StartChildWorkflowExecutionFailed") == "INVALID_ARGUMENT"


async def test_attributes_of_a_child_are_those_of_its_namespace() -> None:
    async with running(keeps_namespaces=True) as driver:
        await register(driver, "*")
        await begin(driver, kid(namespace=SHOP, search_attributes={"City": payload("Rome")[0]}))
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        namespaces = driver.engine.namespaces
        assert "City" in namespaces.get(SHOP).search_attributes
        assert "City" not in namespaces.get("default").search_attributes


async def test_a_namespace_that_has_used_up_its_starts_has_the_child_later() -> None:
    async with running(keeps_namespaces=True) as driver:
        await register(driver, "*", limits=NamespaceLimits(starts_per_second=0.0001))
        bucket = driver.engine.namespaces.starts(SHOP)
        assert bucket is not None
        bucket.owe(1.0)
        before = bucket.since
        await begin(driver, start)

        async def asked() -> bool:
            return bucket.since > before

        await until(asked)
        assert await driver.store.head(THERE) is None
        bucket.owe(-1.0)
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        assert bucket.available(bucket.since) == 0, "it has paid"
