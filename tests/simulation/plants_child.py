"""Faults planted into what goes on between parents and children; found as those of ``plants``."""

import uuid
from typing import Any
from unittest import mock

from stepwell_server.history import crossing_children
from stepwell_server.history.crossing_children import ChildDelivery
from stepwell_server.history.crossing_entries import Delivered, Entry, Pair
from stepwell_server.history.machines import parent_close
from stepwell_server.history.requests import Terminate


def parent_close_by_id() -> Any:
    """A parent's close ends whatever run has its child's workflow id now."""

    def whoever(**fields: Any) -> Terminate:
        return Terminate(**(fields | {"first_run_id": ""}))

    return mock.patch.object(crossing_children, "Terminate", whoever)


def child_named_anew() -> Any:
    """A start that is made again does not know the run that the one before it has made."""
    return mock.patch.object(crossing_children, "first_run_of", side_effect=lambda *_: str(uuid.uuid4()))


def children_forgotten_by_a_close() -> Any:
    """A parent's close leaves its children as they are."""
    return mock.patch.object(parent_close, "owed_children", return_value=[])


def news_done_before_it_is_told() -> Any:
    """The end of a child is told to its parent, unless the parent cannot take it at that moment."""
    notify = ChildDelivery.notify

    async def half(self: ChildDelivery, pair: Pair, entry: Entry) -> Delivered:
        delivered = await notify(self, pair, entry)
        state = await self._executions.read(pair.target)
        if state is None or state.workflow_task is None:
            return delivered
        return Delivered(tried=delivered.tried, answers=delivered.answers)

    return mock.patch.object(ChildDelivery, "notify", half)
