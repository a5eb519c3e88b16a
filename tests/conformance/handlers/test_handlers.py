"""MS-12 to MS-14: async handlers run beside the main function; what came before a handler was there reaches it."""

from tests.conformance.handlers.workflow import Till, sets_a_handler_late
from tests.support.conformance import Feature


async def test_async_handlers_keep_apart_by_a_lock(feature: Feature) -> None:
    handle = await feature.start(Till.run)
    for name in ("Ann", "Bob"):
        await handle.signal(Till.serve, name)
    await handle.signal(Till.close)
    async with feature.worker([Till]):
        assert await handle.result() == ["Ann comes", "Ann goes", "Bob comes", "Bob goes"]


async def test_a_handler_that_is_set_late_gets_what_came_before(feature: Feature) -> None:
    async with feature.worker([sets_a_handler_late]):
        handle = await feature.start(sets_a_handler_late)
        await handle.signal("item", "early")
        await feature.idle(handle)
        await handle.signal("go")
        await feature.idle(handle)
        await handle.signal("item", "late")
        assert await handle.result() == ["early", "late"]
