"""A list of DynamoDB reads many partitions, and a run that closes meanwhile moves from one to another."""

import asyncio
from typing import Any

import pytest

from stepwell_server.adapters.aws.client import ServiceClient
from stepwell_server.adapters.aws.visibility_search import VisibilitySearch
from stepwell_server.visibility.query import parse
from tests.integration.aws.conftest import Store
from tests.support.sample_commits import SampleRun

EVERYTHING = parse("", {})


class ClosesMeanwhile:
    """Whoever asks for closed runs has to wait until the open ones were read, and the run has closed."""

    def __init__(self, inner: ServiceClient, close: Any) -> None:
        self._inner = inner
        self._close = close
        self.get_all = inner.get_all
        self._closed = asyncio.Event()

    async def call(self, operation: str, /, **parameters: Any) -> dict[str, Any]:
        partition = parameters["ExpressionAttributeValues"][":partition"]["S"]
        if "#RUNNING#" not in partition.upper():
            await self._closed.wait()
        answer = await self._inner.call(operation, **parameters)
        if answer["Items"] and not self._closed.is_set():
            await self._close()
            self._closed.set()
        return answer


@pytest.mark.parametrize("counts", [False, True], ids=["listed", "counted"])
@pytest.mark.parametrize("others", [0, 30])
async def test_one_that_closes_meanwhile_is_found_once(store: Store, others: int, counts: bool) -> None:
    for number in range(2, 2 + others):
        for commit in SampleRun(number).commits():
            await store.backend.visibility.project(commit)
    start, *_, end = SampleRun(1).commits()
    await store.backend.visibility.project(start)

    async def close() -> None:
        await store.backend.visibility.project(end)

    async def counted(search: VisibilitySearch) -> int:
        return (await search.count("default", EVERYTHING, None)).count

    async def listed(search: VisibilitySearch) -> int:
        return len((await search.search("default", EVERYTHING, None, 100)).executions)

    dynamodb: Any = ClosesMeanwhile(store.clients.service("dynamodb"), close)
    search = VisibilitySearch(dynamodb, store.cell.names.vis_table, store.clock)
    assert await (counted if counts else listed)(search) == 1 + others
