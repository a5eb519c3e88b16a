"""VI-09: memo and search attributes, changed by workflow code; seen by it, by describe and by list."""

from tests.conformance.attributes.workflow import CITY, PAID, TAGS, Parcel
from tests.support.conformance import Feature

ARRIVED = [{"weight": 7, "city": "Oslo"}, "Oslo", None, ["a", "b"]]


async def test_code_describe_and_list_see_the_same(feature: Feature) -> None:
    async with feature.worker([Parcel]):
        handle = await feature.start(Parcel.run, memo={"note": "fragile"})
        await feature.idle(handle)
        assert await handle.query(Parcel.known) == [{"note": "fragile", "weight": 7}, "Rome", True, ["a", "b"]]
        described = await handle.describe()
        assert await described.memo() == {"note": "fragile", "weight": 7}
        found = described.typed_search_attributes
        assert (found[CITY], found[PAID], found[TAGS]) == ("Rome", True, ["a", "b"])
        (row,) = [row async for row in feature.client.list_workflows() if row.id == handle.id]
        assert row.typed_search_attributes == found and await row.memo() == await described.memo()
        await handle.signal(Parcel.arrive, "Oslo")
        assert await handle.result() == ARRIVED
        described = await handle.describe()
        assert await described.memo() == ARRIVED[0]
        assert PAID not in described.typed_search_attributes and len(described.typed_search_attributes) == 2
        (row,) = [row async for row in feature.client.list_workflows() if row.id == handle.id]
        assert row.typed_search_attributes == described.typed_search_attributes
