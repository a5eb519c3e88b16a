"""MS-01, MS-08, MS-12, MS-14, MS-15: signals are recorded, kept until they are wanted, and taken in their order."""

import pytest
from stepwell.client import RPCError

from tests.conformance.signals.workflow import Basket, takes_late
from tests.support.conformance import Feature


@pytest.mark.continued
async def test_signals_reach_their_handlers_in_order(feature: Feature) -> None:
    async with feature.worker([Basket]):
        basket = await feature.start(Basket.run, ["bread"])
        await feature.idle(basket)
        for item in ("milk", "honey"):
            await basket.signal(Basket.add, item)
            await feature.idle(basket)
        await basket.signal(Basket.close)
        assert await basket.result() == ["bread", "milk", "honey"]


async def test_signals_before_the_first_task_share_it(feature: Feature) -> None:
    basket = await feature.start(Basket.run, [])
    await basket.signal(Basket.add, "milk")
    await basket.signal(Basket.close)
    async with feature.worker([Basket]):
        assert await basket.result() == ["milk"]


async def test_signals_wait_for_somebody_who_wants_them(feature: Feature) -> None:
    handle = await feature.start(takes_late)
    await handle.signal("item", "first")
    await handle.signal("item", "second")
    async with feature.worker([takes_late]):
        await feature.idle(handle)
        await handle.signal("go")
        assert await handle.result() == ["first", "second"]


async def test_a_closed_or_unknown_run_takes_none(feature: Feature) -> None:
    async with feature.worker([Basket]):
        basket = await feature.start(Basket.run, [])
        await feature.idle(basket)
        await basket.signal(Basket.close)
        await basket.result()
        unknown = feature.client.get_workflow_handle(feature.id_of("unknown"))
        for handle, code in ((basket, "WORKFLOW_EXECUTION_CLOSED"), (unknown, "NOT_FOUND")):
            with pytest.raises(RPCError) as refused:
                await handle.signal(Basket.add, "late")
            assert refused.value.code == code
