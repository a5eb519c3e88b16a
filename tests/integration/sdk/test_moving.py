"""Runs that move from one engine to another with their histories, and are worked on there (LC-46)."""

from datetime import timedelta

from stepwell import activity, workflow
from stepwell.client import WorkflowExecutionStatus, WorkflowHistory
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker

QUEUE = "moving"


@activity.defn
async def pack(what: str) -> str:
    return f"{what} in paper"


@workflow.defn
class Moving:
    def __init__(self) -> None:
        self._packed: list[str] = []
        self._is_over = False

    @workflow.run
    async def run(self, what: str) -> list[str]:
        for number in range(2):
            thing = f"{what} {number}"
            self._packed.append(
                await workflow.execute_activity(pack, thing, start_to_close_timeout=timedelta(minutes=1))
            )
        await workflow.wait_condition(lambda: self._is_over)
        return self._packed

    @workflow.query
    def packed(self) -> list[str]:
        return self._packed

    @workflow.update
    async def again(self, what: str) -> int:
        self._packed.append(await workflow.execute_activity(pack, what, start_to_close_timeout=timedelta(minutes=1)))
        return len(self._packed)

    @workflow.signal
    def finish(self) -> None:
        self._is_over = True


async def test_an_open_run_is_asked_changed_and_ended_where_it_was_imported() -> None:
    async with await DevEnvironment.start() as there:
        async with Worker(there.client, task_queue=QUEUE, workflows=[Moving], activities=[pack]):
            handle = await there.client.start_workflow(Moving.run, "cup", id="moving", task_queue=QUEUE)
            assert await handle.execute_update(Moving.again, "plate") in (1, 2, 3)
            while len(await handle.query(Moving.packed)) < 3:
                pass  # each query waits for the code
            stored = (await handle.fetch_history()).to_json()
    async with await DevEnvironment.start() as here:
        history = WorkflowHistory.from_json("", stored)
        moved = await here.client.import_workflow(history)
        async with Worker(here.client, task_queue=QUEUE, workflows=[Moving], activities=[pack]):
            packed = await moved.query(Moving.packed)
            assert sorted(packed) == ["cup 0 in paper", "cup 1 in paper", "plate in paper"]
            assert await moved.execute_update(Moving.again, "spoon") == 4
            await moved.signal(Moving.finish)
            assert await moved.result() == [*packed, "spoon in paper"]
            described = await moved.describe()
            assert described.status is WorkflowExecutionStatus.COMPLETED and described.run_id == history.run_id
        events = list((await moved.fetch_history()).events)
        assert events[: len(history.events)] == list(history.events)
        closed = WorkflowHistory("moving", events)
    async with await DevEnvironment.start() as archive:
        async with Worker(archive.client, task_queue=QUEUE, workflows=[Moving], activities=[pack]):
            kept = await archive.client.import_workflow(closed)
            assert await kept.query(Moving.packed) == [*packed, "spoon in paper"]
            assert await kept.result() == [*packed, "spoon in paper"]
