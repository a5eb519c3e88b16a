"""A fan-out of 10,000 activities on the engine, in one run (PM-15)."""

from datetime import timedelta

from stepwell import activity, workflow
from stepwell.exceptions import ApplicationError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker

TIMEOUT = timedelta(minutes=2)
QUEUE = "fan-out"


@activity.defn
async def square(n: int) -> int:
    if n % 1000 == 999:
        raise ApplicationError(f"not {n}", non_retryable=True)
    return n * n


BEGUN: list[int] = []
"""One for each time that the workflow's code began: the first, and each replay of it all."""


@workflow.defn
async def squares(count: int, tolerated: int) -> list[int]:
    BEGUN.append(count)
    calls = (workflow.execute_activity(square, n, start_to_close_timeout=TIMEOUT) for n in range(count))
    result = await workflow.fan_out(calls, max_concurrency=1500, tolerated_failures=tolerated)
    return [len(result.results), sum(result.results), *(item.index for item in result.failed)]


async def test_ten_thousand_in_waves() -> None:
    """The worker keeps what it has computed: a replay for a step that does not count would cost what the whole run has
    cost so far."""
    BEGUN.clear()
    async with await DevEnvironment.start() as env:
        async with Worker(env.client, task_queue=QUEUE, workflows=[squares], activities=[square]):
            handle = await env.client.start_workflow(squares, args=[10_000, 10], id="squares", task_queue=QUEUE)
            result = await handle.result()
        failed = [n for n in range(10_000) if n % 1000 == 999]
        expected = [n * n for n in range(10_000) if n not in failed]
        assert result == [len(expected), sum(expected), *failed]
        kinds = [event.event_type for event in (await handle.fetch_history()).events]
        assert "WorkflowTaskFailed" not in kinds and len(BEGUN) == 1
