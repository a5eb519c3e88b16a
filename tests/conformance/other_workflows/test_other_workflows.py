"""PM-31, MS-11, CH-10: signals and requests to cancel reach other workflows once and in order, or say why not."""

import pytest
from stepwell.api.enums import WorkflowExecutionStatus as Status

from tests.conformance.other_workflows.workflow import (
    Shop,
    closes_behind_its_signal,
    orders_at_once,
    orders_from,
    says_why_not,
    tells_why_it_was_cancelled,
)
from tests.support.conformance import Feature

ALL = [Shop, closes_behind_its_signal, orders_at_once, orders_from, says_why_not, tells_why_it_was_cancelled]
NOT_FOUND = "ExternalWorkflowExecutionNotFound"


async def test_signals_by_method_and_by_name(feature: Feature) -> None:
    async with feature.worker(ALL):
        shop = await feature.start(Shop.run, id="shop")
        sender = await feature.start(orders_from, shop.id, shop.result_run_id, ["bread", "milk"], id="sender")
        assert await sender.result() == "sent"
        assert await shop.result() == ["bread", "milk"]


async def test_many_signals_at_once_keep_their_order(feature: Feature) -> None:
    async with feature.worker(ALL):
        shop = await feature.start(Shop.run, id="shop")
        sender = await feature.start(orders_at_once, shop.id, 60, id="sender")
        assert await sender.result() == 60
        assert await shop.result() == [str(number) for number in range(60)]


async def test_what_was_sent_arrives_behind_the_senders_close(feature: Feature) -> None:
    async with feature.worker(ALL):
        shop = await feature.start(Shop.run, id="shop")
        sender = await feature.start(closes_behind_its_signal, shop.id, id="sender")
        await sender.result()
        assert await shop.result() == ["last"]


@pytest.mark.parametrize("target", ["unknown", "closed", "itself"])
@pytest.mark.parametrize("cancel", [False, True], ids=["signal", "cancel"])
async def test_one_that_is_not_open(feature: Feature, target: str, cancel: bool) -> None:
    """A closed one needs no cancelling; to anything else that cannot be reached the sender is told so."""
    async with feature.worker(ALL):
        what = f"{'cancel' if cancel else 'signal'} {target}"
        if target == "closed":
            shop = await feature.start(Shop.run, id=what)
            await shop.signal(Shop.close)
            await shop.result()
        sender_id = feature.id_of(what if target == "itself" else f"sender {what}")
        wanted = feature.id_of(what)
        sender = await feature.client.start_workflow(
            says_why_not, args=[wanted, None, cancel], id=sender_id, task_queue=feature.task_queue
        )
        said = await sender.result()
        if target == "closed" and cancel:
            assert said == []
        else:
            assert said[0] == NOT_FOUND and wanted in said[1] and "no such workflow that is open" in said[1]


async def test_a_request_to_cancel_and_its_reason(feature: Feature) -> None:
    async with feature.worker(ALL):
        other = await feature.start(tells_why_it_was_cancelled, id="other")
        await feature.idle(other)
        sender = await feature.start(says_why_not, other.id, None, True, id="sender")
        assert await sender.result() == []
        assert await other.result() == "late"
        assert (await other.describe()).status is Status.COMPLETED
