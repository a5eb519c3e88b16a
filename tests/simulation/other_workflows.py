"""What programs do with other workflows: they start children and signal whoever has an id."""

import asyncio
import contextlib
from typing import Any

from stepwell import workflow
from stepwell.exceptions import (
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    TerminatedError,
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
        parent_close_policy=workflow.ParentClosePolicy[spec["policy"]],
        cancellation_type=workflow.ChildWorkflowCancellationType[spec["cancellation"]],
    )


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
