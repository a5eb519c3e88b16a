"""Message and stack trace as a payload, so that the codec encrypts them (ER-20)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from stepwell import activity, workflow
from stepwell.api.failures import ApplicationFailureInfo
from stepwell.api.payloads import Payload
from stepwell.client import Client, WorkflowFailureError
from stepwell.common import RetryPolicy
from stepwell.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes, PayloadCodec
from stepwell.converter.failure_converter import ENCODED, readable
from stepwell.exceptions import ActivityError, ApplicationError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker


class Reversed(PayloadCodec):
    """Stands for encryption: what it wrote cannot be read as it is."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata={"encoding": "test/reversed"}, data=each.data[::-1]) for each in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": "json/plain"}, data=each.data[::-1])
            if each.metadata.get("encoding") == "test/reversed"
            else each
            for each in payloads
        ]


SECRET = DataConverter(payload_codec=Reversed(), failure_converter_class=DefaultFailureConverterWithEncodedAttributes)


def raised(cause: BaseException | None = None) -> BaseException:
    try:
        raise ApplicationError("card 4711", "detail", type="Declined") from cause
    except ApplicationError as error:
        return error


def test_every_link_of_the_chain_is_encoded_and_comes_back() -> None:
    failure = SECRET.to_failure(raised(ValueError("pin 1234")))
    assert failure.cause is not None
    for link in (failure, failure.cause):
        assert (link.message, link.stack_trace) == (ENCODED, "")
    assert isinstance(failure.info, ApplicationFailureInfo) and failure.info.failure_type == "Declined"
    error = SECRET.from_failure(failure)
    assert isinstance(error, ApplicationError) and isinstance(error.cause, ApplicationError)
    assert (error.message, error.type, list(error.details)) == ("card 4711", "Declined", ["detail"])
    assert (error.cause.message, error.cause.type) == ("pin 1234", "ValueError")
    assert "in raised" in readable(failure, SECRET.payload_converter).stack_trace
    assert SECRET.to_failure(error) == failure


def test_the_default_converter_reads_them_and_writes_them_back_as_they_came() -> None:
    failure = SECRET.to_failure(raised())
    error = DataConverter.default.from_failure(failure)
    assert str(error) == "Declined: card 4711"
    assert DataConverter.default.to_failure(error) == failure


def test_what_cannot_be_decoded_stays_readable_as_a_failure() -> None:
    failure = SECRET.to_failure(raised())
    assert failure.encoded_attributes is not None
    foreign = Payload(metadata={"encoding": "test/reversed"}, data=b"?")
    error = SECRET.from_failure(type(failure)(message=failure.message, info=failure.info, encoded_attributes=foreign))
    assert isinstance(error, ApplicationError) and error.message == ENCODED


@activity.defn
async def pay() -> None:
    raise ApplicationError("card 4711", type="Declined")


@workflow.defn
async def order() -> None:
    await workflow.execute_activity(
        pay, start_to_close_timeout=timedelta(seconds=10), retry_policy=RetryPolicy(maximum_attempts=1)
    )


@workflow.defn
async def buggy() -> None:
    raise KeyError("bug in the open")


async def test_the_engine_never_sees_the_text(caplog: pytest.LogCaptureFixture) -> None:
    async with await DevEnvironment.start(data_converter=SECRET) as env:
        async with Worker(env.client, task_queue="q", workflows=[order, buggy], activities=[pay]):
            handle = await env.client.start_workflow(order, id="w", task_queue="q")
            with pytest.raises(WorkflowFailureError) as caught:
                await handle.result()
            error: Any = caught.value.cause
            assert isinstance(error, ActivityError) and error.cause.message == "card 4711"
            stuck = await env.client.start_workflow(buggy, id="b", task_queue="q")
            async for event in stuck.fetch_history_events(wait_new_event=True):
                if event.event_type == "WorkflowTaskFailed":
                    break
        history = await Client(env.client.transport._transport).get_workflow_handle("w").fetch_history()
    stored = msgspec.msgpack.encode(history.events)  # digits alone might be of an id or of a time
    assert b"card 4711" not in stored and b"1174 drac" in stored
    assert "card 4711" in caplog.text and "bug in the open" in caplog.text
