"""AC-18 to AC-20: the three cancellation types; a running attempt hears of it by heartbeats or its worker's poll."""

from datetime import timedelta
from typing import Any

import pytest
from stepwell.api.events import ActivityTaskCanceled, ActivityTaskCompleted
from stepwell.client import WorkflowHandle

from tests.conformance.activity_cancellation.workflow import cancels, deaf, until_cancelled
from tests.support.cases import attributes, events_of, until
from tests.support.conformance import Feature

ELSEWHERE = "activities"


def ended(handle: WorkflowHandle[Any], kind: type[Any]) -> Any:
    async def found() -> bool:
        return bool(attributes(await events_of(handle), kind))

    return until(found)


@pytest.mark.parametrize(
    ("kind", "answer", "got"),
    [
        ("TRY_CANCEL", "cancelled", "cancelled"),
        ("WAIT_CANCELLATION_COMPLETED", "cancelled", "cancelled"),
        ("WAIT_CANCELLATION_COMPLETED", "all the same", "all the same"),
    ],
    ids=["try", "wait", "wait, completed"],
)
async def test_a_running_activity(feature: Feature, kind: str, answer: str, got: str) -> None:
    queue = feature.id_of(ELSEWHERE)
    async with (
        feature.worker([cancels]),
        feature.worker(
            [], [until_cancelled], task_queue=queue, max_heartbeat_throttle_interval=timedelta(seconds=0.02)
        ),
    ):
        handle = await feature.start(cancels, "until_cancelled", [answer], kind, queue, name=f"{kind} {answer}")
        await feature.started(handle)
        await handle.signal("cancel")
        await ended(handle, ActivityTaskCanceled if answer == "cancelled" else ActivityTaskCompleted)
        await feature.idle(handle)
        await handle.signal("end")
        assert await handle.result() == got


async def test_an_abandoned_activity_is_not_asked(feature: Feature) -> None:
    queue = feature.id_of(ELSEWHERE)
    async with feature.worker([cancels]), feature.worker([], [deaf], task_queue=queue):
        handle = await feature.start(cancels, "deaf", [0.5], "ABANDON", queue)
        await feature.started(handle)
        await handle.signal("cancel")
        await ended(handle, ActivityTaskCompleted)
        await feature.idle(handle)
        await handle.signal("end")
        assert await handle.result() == "cancelled"


async def test_without_heartbeats_it_hears_by_the_open_poll(feature: Feature) -> None:
    """AC-20: its worker's next poll brings the cancellation, long before it would end by itself."""
    queue = feature.id_of(ELSEWHERE)
    async with feature.worker([cancels]), feature.worker([], [deaf], task_queue=queue):
        handle = await feature.start(cancels, "deaf", [25.0], "WAIT_CANCELLATION_COMPLETED", queue)
        await feature.started(handle)
        await handle.signal("cancel")
        await ended(handle, ActivityTaskCanceled)
        await feature.idle(handle)
        await handle.signal("end")
        assert await handle.result() == "cancelled"


async def test_what_nobody_took_is_canceled_at_once(feature: Feature) -> None:
    async with feature.worker([cancels]):
        handle = await feature.start(
            cancels, "deaf", [0.0], "WAIT_CANCELLATION_COMPLETED", feature.id_of("a queue without a worker")
        )
        await feature.idle(handle)
        await handle.signal("cancel")
        await ended(handle, ActivityTaskCanceled)
        await feature.idle(handle)
        await handle.signal("end")
        assert await handle.result() == "cancelled"
