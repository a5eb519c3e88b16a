"""Workflows that send signals and requests to cancel to workflows which they did not start."""

import asyncio

from stepwell import workflow
from stepwell.common import WorkflowIDConflictPolicy
from stepwell.exceptions import ApplicationError, ChildWorkflowError
from stepwell.workflow import ParentClosePolicy


@workflow.defn
class Shop:
    """Takes orders until it is told that it is closing time."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.closing = False

    @workflow.signal
    def order(self, article: str) -> None:
        self.orders.append(article)

    @workflow.signal
    def close(self) -> None:
        self.closing = True

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: self.closing)
        return self.orders


@workflow.defn
async def orders_from(shop_id: str, run_id: str | None, articles: list[str]) -> str:
    shop = workflow.get_external_workflow_handle_for(Shop.run, shop_id, run_id=run_id)
    for article in articles:
        await shop.signal(Shop.order, article)
    await workflow.get_external_workflow_handle(shop_id).signal("close")
    return "sent"


@workflow.defn
async def orders_at_once(shop_id: str, count: int) -> int:
    shop = workflow.get_external_workflow_handle(shop_id)
    await asyncio.gather(*(shop.signal("order", str(number)) for number in range(count)))
    await shop.signal("close")
    return count


@workflow.defn
async def says_why_not(workflow_id: str, run_id: str | None, cancel: bool) -> list[str]:
    other = workflow.get_external_workflow_handle(workflow_id, run_id=run_id)
    try:
        await (other.cancel(reason="late") if cancel else other.signal("order", "late"))
    except ApplicationError as error:
        return [error.type or "", error.message]
    return []


@workflow.defn
async def tells_why_it_was_cancelled() -> str:
    try:
        await workflow.wait_condition(lambda: False)
    except asyncio.CancelledError:
        return workflow.cancellation_reason() or ""
    return "never"


@workflow.defn
async def closes_behind_its_signal(shop_id: str) -> None:
    """Waits for no answer."""
    shop = workflow.get_external_workflow_handle(shop_id)
    sending = [asyncio.create_task(shop.signal("order", "last")), asyncio.create_task(shop.signal("close"))]
    await asyncio.sleep(0)
    assert not any(task.done() for task in sending)


@workflow.defn
async def waits_for_end_of(workflow_id: str, seconds: float) -> list[str]:
    try:
        async with asyncio.timeout(seconds):
            ended: list[str] = await workflow.get_external_workflow_handle(workflow_id).result(result_type=list[str])
            return ended
    except ChildWorkflowError as error:
        return [error.message, type(error.cause).__name__, error.workflow_type]
    except ApplicationError as error:
        return [error.type or "", error.message]
    except TimeoutError:
        return ["not waited for any more"]


@workflow.defn
async def attaches(workflow_id: str, policy: ParentClosePolicy) -> list[str]:
    child = await workflow.start_child_workflow(
        Shop.run,
        id=workflow_id,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        parent_close_policy=ParentClosePolicy(policy),
    )
    await workflow.wait_for_signal("go")
    return await child


@workflow.defn
async def opens_again(runs: int) -> int:
    """Goes on twice."""
    await workflow.wait_for_signal("go")
    if runs:
        workflow.continue_as_new(runs - 1)
    return 7


@workflow.defn
async def counts_on(workflow_id: str) -> int:
    count: int = await workflow.get_external_workflow_handle(workflow_id).result(result_type=int)
    return count
