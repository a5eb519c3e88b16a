"""AC-33: an activity goes to the queue that its call names, and waits there until somebody serves it."""

from stepwell.api.events import ActivityTaskScheduled

from tests.conformance.activity_queues.workflow import calls, where
from tests.support.cases import attributes, events_of
from tests.support.conformance import Feature


async def test_the_workflows_own_by_default(feature: Feature) -> None:
    async with feature.worker([calls], [where]):
        handle = await feature.start(calls, None)
        assert await handle.result() == feature.task_queue


async def test_a_queue_of_its_own(feature: Feature) -> None:
    """The workflow's worker has that activity, too, and leaves it alone."""
    elsewhere = feature.id_of("elsewhere")
    async with feature.worker([calls], [where]):
        handle = await feature.start(calls, elsewhere)
        await feature.idle(handle)
        (scheduled,) = attributes(await events_of(handle), ActivityTaskScheduled)
        assert scheduled.task_queue == elsewhere
        async with feature.worker([], [where], task_queue=elsewhere):
            assert await handle.result() == elsewhere
