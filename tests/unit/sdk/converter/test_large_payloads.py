"""DA-08: payloads on their way to the limit are warned of, wherever they leave the SDK."""

import logging
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.api.limits import WARN_PAYLOAD_BYTES
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker

LARGE = "x" * WARN_PAYLOAD_BYTES


@activity.defn
async def echo(text: str) -> str:
    return text


@workflow.defn
async def passes_on(text: str) -> int:
    return len(await workflow.execute_activity(echo, text, start_to_close_timeout=timedelta(seconds=30)))


async def test_inputs_and_results_of_half_a_mebibyte_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    async with await DevEnvironment.start() as env:
        async with Worker(env.client, task_queue="q", workflows=[passes_on], activities=[echo]):
            with caplog.at_level(logging.WARNING, "stepwell"):
                args = {"id": "small", "task_queue": "q"}
                await env.client.execute_workflow(passes_on, LARGE[:-40], **args)
                assert not [record for record in caplog.records if "above" in record.message]
                await env.client.execute_workflow(passes_on, LARGE, **args)
    said = [record.message.partition(" has ")[0] for record in caplog.records if "above 2097152" in record.message]
    assert said == ["Input of workflow 'passes_on'", "Input of activity 'echo' (1)", "Result of activity echo"]
