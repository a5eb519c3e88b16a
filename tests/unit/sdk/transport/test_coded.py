"""A codec between client and engine: the engine holds only what the codec made."""

import zlib
from collections.abc import Sequence
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.api.payloads import Payload
from stepwell.client import Client
from stepwell.converter import DataConverter, PayloadCodec
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker


class Squeeze(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": "zip", "inner": p.metadata["encoding"]}, data=zlib.compress(p.data))
            for p in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata={"encoding": p.metadata["inner"]}, data=zlib.decompress(p.data)) for p in payloads]


@activity.defn
async def shout(text: str) -> str:
    return text.upper()


@workflow.defn
class Talk:
    def __init__(self) -> None:
        self.said = ""

    @workflow.run
    async def run(self, text: str) -> str:
        self.said = await workflow.execute_activity(shout, text, start_to_close_timeout=timedelta(seconds=5))
        return self.said

    @workflow.query
    def last(self) -> str:
        return self.said


async def test_everything_goes_through_the_codec() -> None:
    async with await DevEnvironment.start() as env:
        coded = Client(env.client.transport, data_converter=DataConverter(payload_codec=Squeeze()))
        async with Worker(coded, task_queue="q", workflows=[Talk], activities=[shout]):
            handle = await coded.start_workflow(Talk.run, "hello", id="w", task_queue="q", memo={"note": "x"})
            assert await handle.result() == "HELLO"
            assert await handle.query(Talk.last) == "HELLO"
            assert await (await handle.describe()).memo() == {"note": "x"}
        raw = (await env.client.get_workflow_handle("w").fetch_history()).to_json()
        assert "hello" not in raw and '"encoding":"zip"' in raw
