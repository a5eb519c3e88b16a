"""What programs do with other workflows: they start children, and signal or wait for whoever has an id."""

import asyncio
import contextlib
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

from stepwell import workflow
from stepwell.common import RetryPolicy, WorkflowIDConflictPolicy
from stepwell.exceptions import (
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    TerminatedError,
    TimeoutError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)

WORKFLOW_TYPE = "simulated-program"


async def tell(workflow_id: str) -> str:
    """Each signal has a name of its own."""
    handle = workflow.get_external_workflow_handle(workflow_id)
    try:
        await handle.signal("note", f"x {workflow.info().run_id} {workflow.uuid4()}")
    except ApplicationError:
        return "untold"
    return "told"


async def child(spec: dict[str, Any], root: list[Any], left: list[asyncio.Task[Any]]) -> Any:
    """The value of the child's program, or what has become of it instead. ``left`` keeps what goes on."""
    if spec["then"] == "rash":
        left.append(asyncio.create_task(_rashly(spec, root)))
        await asyncio.sleep(0)
        return "left"
    try:
        handle = await _start(spec, root)
    except WorkflowAlreadyStartedError:
        return ["taken"]
    if spec["then"] == "attach":
        return ["joined", await _how(handle)]
    if spec["then"] == "leave":
        _let_go(handle)
        return "left"
    if spec["then"] == "cancel":
        await workflow.wait([handle], timeout=spec["after"])
        handle.cancel()
    if spec["then"] == "signal":
        with contextlib.suppress(ApplicationError):  # it has ended
            await handle.signal("note", f"x {workflow.info().run_id} {workflow.uuid4()}")
    return await _end_of(handle, cancelled=spec["then"] == "cancel")


async def _start(spec: dict[str, Any], root: list[Any]) -> workflow.ChildWorkflowHandle[Any]:
    shared = spec["id"].startswith("shared/")
    return await workflow.start_child_workflow(
        WORKFLOW_TYPE,
        root,
        id=spec["id"] if shared else f"{workflow.info().workflow_id}/{spec['id']}",
        id_conflict_policy=(
            WorkflowIDConflictPolicy.USE_EXISTING if spec["then"] == "attach" else WorkflowIDConflictPolicy.FAIL
        ),
        retry_policy=_retries(spec.get("attempts", 0)),
        parent_close_policy=workflow.ParentClosePolicy[spec["policy"]],
        cancellation_type=workflow.ChildWorkflowCancellationType[spec["cancellation"]],
    )


def _retries(attempts: int) -> RetryPolicy | None:
    if not attempts:
        return None
    return RetryPolicy(
        initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=5), maximum_attempts=attempts
    )


async def wait_for(workflow_id: str) -> list[str]:
    """Of somebody else's workflow, which may not be there."""
    try:
        return ["ended", await _how(workflow.get_external_workflow_handle(workflow_id).result())]
    except ApplicationError:
        return ["ended", "absent"]


async def _how(ends: Awaitable[Any]) -> str:
    try:
        await ends
    except ChildWorkflowError as error:
        match error.cause:
            case CancelledError():
                return "cancelled"
            case TerminatedError():
                return "terminated"
            case TimeoutError():
                return "timed-out"
            case _:
                return "failed"
    return "completed"


async def _rashly(spec: dict[str, Any], root: list[Any]) -> None:
    """Nobody waits for its start, so that the run may be over before."""
    with contextlib.suppress(WorkflowAlreadyStartedError):
        _let_go(await _start(spec, root))


def _let_go(handle: "asyncio.Future[Any]") -> None:
    handle.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


async def _end_of(handle: "asyncio.Future[Any]", *, cancelled: bool) -> Any:
    """``cut`` is a child that the close of its parent's run has reached, when a reset lets the parent go on behind."""
    try:
        result = await handle
    except ChildWorkflowError as error:
        if isinstance(error.cause, ApplicationError):
            return ["failed", error.cause.type]
        if cancelled and is_cancelled_exception(error):
            return ["cancelled"]
        if isinstance(error.cause, CancelledError | TerminatedError):
            return ["cut"]
        raise
    except asyncio.CancelledError:
        if cancelled and handle.cancelled():
            return ["cancelled"]
        raise
    return result["value"]
