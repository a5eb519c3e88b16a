"""Many callers who start one workflow after another: the first tasks keep up with the starts (W5 rests on it)."""

import asyncio

from stepwell import workflow
from stepwell.client import Client
from stepwell.worker import Worker

begun: list[str] = []


@workflow.defn
async def paced(n: int) -> int:
    with workflow.unsafe.sandbox_unrestricted():
        begun.append(workflow.info().workflow_id)
    await workflow.sleep(0.2)
    return n


async def test_first_tasks_follow_their_starts() -> None:
    """Without a bound on starts at once, up to 500 of these 600 were started before their first task was done."""
    behind: list[int] = []
    client = await Client.connect("sqlite://:memory:")
    try:
        async with Worker(client, task_queue="pace", workflows=[paced]):
            started = 0

            async def starts(caller: int) -> None:
                nonlocal started
                for number in range(3):
                    await client.start_workflow(paced, 1, id=f"paced-{caller}-{number}", task_queue="pace")
                    started += 1
                    behind.append(started - len(begun))

            await asyncio.gather(*[starts(caller) for caller in range(200)])
            for caller in range(200):
                await client.get_workflow_handle(f"paced-{caller}-2").result()
    finally:
        await client.close()
    assert len(behind) == 600
    assert max(behind) <= 100, "a few turns of 16 starts each"
