"""Faults planted into resets; found as those of ``plants``."""

from typing import Any
from unittest import mock

from stepwell_server.history import request_ids, resetting
from stepwell_server.history.machines import reset
from stepwell_server.history.state import ExecutionState


def buffered_forgotten() -> Any:
    """What the current run has not numbered is not taken over."""
    return mock.patch.object(reset, "_buffered", return_value=[])


def repeats_not_known() -> Any:
    """A reset that is asked for again is made again."""
    return mock.patch.object(request_ids, "reset_run", return_value=None)


def late_messages_forgotten() -> Any:
    """What came in behind the point is not taken over."""
    return mock.patch.object(reset, "reapplied", return_value=None)


def strangers_taken_over() -> Any:
    """What came in at runs of other chains of the workflow id is taken over as well (WC-31)."""
    go_on = resetting._Walk._go_on

    async def of_any(self: resetting._Walk) -> bool:
        goes_on = await go_on(self)
        self._is_of_chain = True
        return goes_on

    return mock.patch.object(resetting._Walk, "_go_on", of_any)


def child_not_taken_over() -> Any:
    """The end of the run that a reset goes on from reaches the children that the new run has (WC-30)."""

    def nothing(_: object, __: ExecutionState, ___: object) -> bool:
        return False

    return mock.patch.object(reset, "_is_taken_over", nothing)


def known_update_passed_on() -> Any:
    """An update of the current run is the new run's, also where that has one of the same id."""
    return mock.patch.object(reset, "knows_update", return_value=False)
