"""Schedules of a namespace, page by page."""

from collections.abc import Awaitable, Callable, Sequence

from ..api.requests import ListSchedulesResponse
from ..converter import DataConverter
from .schedule_descriptions import ScheduleListDescription


class ScheduleAsyncIterator:
    """For ``async for``. ``fetch_next_page`` and ``current_page`` are for who wants pages; after a page,
    ``next_page_token`` goes on from there in another call."""

    def __init__(
        self,
        fetch: Callable[[bytes], Awaitable[ListSchedulesResponse]],
        next_page_token: bytes | None,
        converter: DataConverter,
    ) -> None:
        self._fetch = fetch
        self._converter = converter
        self._page: Sequence[ScheduleListDescription] | None = None
        self._given = 0
        self._token = next_page_token

    @property
    def current_page(self) -> Sequence[ScheduleListDescription] | None:
        """None before the first."""
        return self._page

    @property
    def next_page_token(self) -> bytes | None:
        """None behind the last page."""
        return self._token

    async def fetch_next_page(self) -> None:
        """An empty page at the end of all."""
        if self._page is not None and self._token is None:
            self._page, self._given = (), 0
            return
        response = await self._fetch(self._token or b"")
        self._page = [ScheduleListDescription(entry, self._converter) for entry in response.schedules]
        self._given, self._token = 0, response.next_page_token or None

    def __aiter__(self) -> "ScheduleAsyncIterator":
        return self

    async def __anext__(self) -> ScheduleListDescription:
        while self._page is None or self._given >= len(self._page):
            if self._page is not None and self._token is None:
                raise StopAsyncIteration
            await self.fetch_next_page()
        self._given += 1
        return self._page[self._given - 1]
