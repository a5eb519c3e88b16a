"""PM-31, MS-11, CH-10, CH-18, CH-19: signals and requests to cancel reach other workflows once and in order, or say why
not; a workflow waits for any other."""

import pytest
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.workflow import ParentClosePolicy

from tests.conformance.other_workflows.workflow import (
    Shop,
    attaches,
    closes_behind_its_signal,
    counts_on,
    opens_again,
    orders_at_once,
    orders_from,
    says_why_not,
    tells_why_it_was_cancelled,
    waits_for_end_of,
)
from tests.support.cases import until
from tests.support.conformance import Feature

WATCHING = [Shop, attaches, opens_again, waits_for_end_of]
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
            assert said[0] == NOT_FOUND and wanted in said[1]
            assert ("cannot mean itself" if target == "itself" else "no such workflow that is open") in said[1]


async def test_a_request_to_cancel_and_its_reason(feature: Feature) -> None:
    async with feature.worker(ALL):
        other = await feature.start(tells_why_it_was_cancelled, id="other")
        await feature.idle(other)
        sender = await feature.start(says_why_not, other.id, None, True, id="sender")
        assert await sender.result() == []
        assert await other.result() == "late"
        assert (await other.describe()).status is Status.COMPLETED


async def _is_watched(feature: Feature, watcher_id: str) -> bool:
    shown = await feature.client.get_workflow_handle(feature.id_of(watcher_id)).describe()
    return any(pending.watched and pending.run_id for pending in shown.pending_children)


async def test_waiting_for_the_end_of_any_workflow(feature: Feature) -> None:
    """One that is open, and one that has ended already."""
    async with feature.worker(WATCHING):
        shop = await feature.start(Shop.run, id="shop")
        early = await feature.start(waits_for_end_of, shop.id, 30, id="early")
        await until(lambda: _is_watched(feature, "early"))
        await shop.signal(Shop.order, "bread")
        await shop.signal(Shop.close)
        assert await early.result() == ["bread"]
        late = await feature.start(waits_for_end_of, shop.id, 30, id="late")
        assert await late.result() == ["bread"]


async def test_waiting_goes_on_over_the_runs_of_a_chain(feature: Feature) -> None:
    async with feature.worker([*WATCHING, counts_on]):
        chain = await feature.client.start_workflow(
            opens_again, 2, id=feature.id_of("chain"), task_queue=feature.task_queue
        )
        watcher = await feature.start(counts_on, chain.id, id="watcher")
        await until(lambda: _is_watched(feature, "watcher"))
        for _ in range(3):
            shown = feature.client.get_workflow_handle(chain.id)
            run_id = (await shown.describe()).run_id
            await shown.signal("go")

            async def went_on(run_id: str = run_id) -> bool:
                now = await feature.client.get_workflow_handle(chain.id).describe()
                return now.run_id != run_id or now.status is not Status.RUNNING

            await until(went_on)
        assert await watcher.result() == 7


async def test_what_cannot_be_waited_for(feature: Feature) -> None:
    async with feature.worker(WATCHING):
        unknown = await feature.start(waits_for_end_of, feature.id_of("nobody"), 30, id="of nobody")
        assert (await unknown.result())[0] == NOT_FOUND
        itself = await feature.start(waits_for_end_of, feature.id_of("itself"), 30, id="itself")
        assert (await itself.result())[0] == NOT_FOUND


async def test_another_end_of_what_is_waited_for(feature: Feature) -> None:
    async with feature.worker(WATCHING):
        shop = await feature.start(Shop.run, id="shop")
        watcher = await feature.start(waits_for_end_of, shop.id, 30, id="watcher")
        await until(lambda: _is_watched(feature, "watcher"))
        await shop.terminate("enough")
        assert await watcher.result() == [f"workflow {shop.id!r} was terminated", "TerminatedError", "Shop"]


async def test_giving_up_the_wait_touches_nothing(feature: Feature) -> None:
    async with feature.worker(WATCHING):
        shop = await feature.start(Shop.run, id="shop")
        watcher = await feature.start(waits_for_end_of, shop.id, 0.2, id="watcher")
        assert await watcher.result() == ["not waited for any more"]
        await shop.signal(Shop.close)
        assert await shop.result() == []


@pytest.mark.parametrize("policy", list(ParentClosePolicy))
async def test_attaching_to_a_workflow_that_is_there(feature: Feature, policy: ParentClosePolicy) -> None:
    """CH-18: its result is waited for; the end of who waits is nothing to it, and one that is not there is started."""
    async with feature.worker(WATCHING):
        shop = await feature.start(Shop.run, id=f"shop {policy}")
        first = await feature.start(attaches, shop.id, policy, id=f"first {policy}")
        second = await feature.start(attaches, shop.id, policy, id=f"second {policy}")
        for name in ("first", "second"):
            await until(lambda name=name: _is_watched(feature, f"{name} {policy}"))
        await second.terminate()
        await first.signal("go")
        await shop.signal(Shop.order, "milk")
        await shop.signal(Shop.close)
        assert await shop.result() == await first.result() == ["milk"]
        third = await feature.start(attaches, feature.id_of(f"new {policy}"), policy, id=f"third {policy}")
        await until(lambda: _is_watched(feature, f"third {policy}"))
        await third.terminate()
        new = feature.client.get_workflow_handle(feature.id_of(f"new {policy}"))
        await new.signal("close")
        assert await new.result() == []
