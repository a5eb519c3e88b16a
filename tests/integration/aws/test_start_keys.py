"""Deduplication keys on DynamoDB, where several processes start at once (LC-48)."""

import asyncio

from stepwell.api import requests as r
from stepwell.api.enums import DeduplicationPolicy

from stepwell_server.frontend.routes import HANDLERS
from tests.integration.aws.test_wake_ups import process
from tests.support.aws.cells import Cell
from tests.support.engine import QUEUE

ONE = r.Deduplication(key="customer 7", policy=DeduplicationPolicy.USE_EXISTING)


async def test_of_two_processes_one_start_counts(cell: Cell) -> None:
    async with process(cell, functions=True) as one, process(cell, functions=True) as other:
        calls = [
            HANDLERS["StartWorkflow"](
                (one, other)[number % 2].engine,
                r.StartWorkflowRequest(
                    workflow_id=f"w-{number}", workflow_type="order", task_queue=QUEUE, deduplication=ONE
                ),
            )
            for number in range(6)
        ]
        answers = await asyncio.gather(*calls)
        assert [answer.started for answer in answers].count(True) == 1
        (run_id,) = {answer.run_id for answer in answers}
        holder = next(f"w-{number}" for number, answer in enumerate(answers) if answer.started)
        assert all(answer.workflow_id in ("", holder) and answer.run_id == run_id for answer in answers)
