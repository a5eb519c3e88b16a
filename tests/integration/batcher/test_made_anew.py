"""A batch that is deleted, and another one under its id, while a process stands still that was to take it away."""

from stepwell.api.batches import BatchTerminate

from stepwell_server.batcher import records
from stepwell_server.common.control import ControlRecord
from tests.integration.batcher.places import embedded


async def test_a_job_that_is_taken_away_late_leaves_the_next_one_of_its_id_and_its_list() -> None:
    """By a process that stood still when it was about to."""
    async with embedded() as place:
        first, *runs = await place.runs("order-0", "order-1", "order-2")
        control, real = place.backend.control, place.batches._store.get
        await place.batch(BatchTerminate(), [first])
        await place.over()
        known = await control.get("batch", "default", "job")
        assert known is not None

        async def get(kind: str, namespace: str, id: str) -> ControlRecord | None:
            place.batches._store.get = real  # type: ignore[method-assign]
            await place.batches._drop(known, records.decode(known.value))
            await place.batch(BatchTerminate(), runs)
            return await real(kind, namespace, id)

        place.batches._store.get = get  # type: ignore[method-assign]
        await place.batches._drop(known, records.decode(known.value))
        assert len(await control.list("batch-list", "default", limit=9)) == 1
        assert (await place.over()).info.complete_operation_count == 2
