"""Faults planted into what is done to activities from outside, and into waiting for others; found as those of
``plants``."""

from datetime import datetime
from typing import Any
from unittest import mock

import msgspec

from stepwell_server.history import activity_changes, activity_item
from stepwell_server.history.activity_item import ActivityItem
from stepwell_server.history.machines import parent_close
from stepwell_server.history.state import ExecutionState, PendingActivity


def stamp_kept_by_a_reset() -> Any:
    """An activity that begins again with its first attempt cannot tell it from the first one that it had."""
    original = activity_changes._from_the_first

    def same(item: ActivityItem, start: datetime, reset_heartbeat: bool) -> ActivityItem:
        return msgspec.structs.replace(original(item, start, reset_heartbeat), stamp=item.stamp)

    return mock.patch.object(activity_changes, "_from_the_first", same)


def left_open_attempt_forgotten() -> Any:
    """The item of an attempt that is left to somebody else to end is made as if there were none yet."""
    original = activity_item.new_item

    def forgetful(state: ExecutionState, pending: PendingActivity) -> ActivityItem:
        return original(state, msgspec.structs.replace(pending, detached=None))

    return mock.patch.object(activity_item, "new_item", forgetful)


def waiters_not_told() -> Any:
    """The end of a workflow is told to its parent only."""
    return mock.patch.object(parent_close, "waiting", lambda state: () if state.parent is None else (state.parent,))
