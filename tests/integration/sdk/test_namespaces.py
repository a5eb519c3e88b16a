"""``client.namespaces``."""

from datetime import timedelta

import pytest
from stepwell.client import Client, NamespaceLimits, RPCError
from stepwell.search_attributes import SearchAttributeKey


async def test_the_life_of_a_namespace() -> None:
    customer, total = SearchAttributeKey.for_keyword("Customer"), SearchAttributeKey.for_float("Total")
    async with await Client.connect("sqlite://:memory:") as client:
        namespaces = client.namespaces
        id = await namespaces.register(
            "shop", retention=timedelta(days=30), data={"team": "blue"}, search_attributes=(customer,)
        )
        info = await namespaces.describe("shop")
        assert (
            info.id == id and info.retention == timedelta(days=30) and info.search_attributes == {"Customer": "Keyword"}
        )
        changed = await namespaces.update(
            "shop", limits=NamespaceLimits(requests_per_second=50.0), search_attributes=(total,)
        )
        assert changed.limits.requests_per_second == 50.0
        assert changed.search_attributes == {"Customer": "Keyword", "Total": "Double"} and changed.data == info.data
        assert [each.name async for each in namespaces.list(page_size=1)] == ["default", "shop"]
        await namespaces.deprecate("shop")
        assert (await namespaces.describe("shop")).state == "DEPRECATED"
        with pytest.raises(RPCError, match="registered already"):
            await namespaces.register("shop")
