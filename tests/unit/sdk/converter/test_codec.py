"""A codec reaches every payload of a record, and nothing else."""

from collections.abc import Sequence
from datetime import timedelta

from stepwell.api.commands import FailWorkflowExecution, RecordMarker, ScheduleActivityTask
from stepwell.api.payloads import Payload
from stepwell.converter import DataConverter, PayloadCodec, decode_record, default, encode_record
from stepwell.exceptions import ApplicationError


class Reversing(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata={"encoding": "reversed", **p.metadata}, data=p.data[::-1]) for p in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=p.metadata, data=p.data[::-1]) for p in payloads]


CONVERTER = DataConverter(payload_codec=Reversing())


async def test_values_and_failures() -> None:
    encoded = await CONVERTER.encode(["abc"])
    assert encoded[0].data == b'"cba"'
    assert await CONVERTER.decode(encoded, [str]) == ["abc"]
    error = ApplicationError("x", "detail", type="T")
    error.__cause__ = ApplicationError("y", "inner")
    failure = await CONVERTER.encode_failure(error)
    assert failure.cause is not None
    assert failure.cause.info.details[0].data == b'"renni"'  # type: ignore[union-attr]
    back = await CONVERTER.decode_failure(failure)
    assert isinstance(back, ApplicationError) and back.details == ("detail",)


async def test_records() -> None:
    codec = Reversing()
    payload = Payload(metadata={"encoding": "json/plain"}, data=b"ab")
    for record in (
        ScheduleActivityTask(
            activity_id="1",
            activity_type="a",
            task_queue="q",
            input=(payload, payload),
            headers={"h": payload},
            start_to_close_timeout=timedelta(seconds=1),
        ),
        RecordMarker(marker_name="m", details={"d": payload}),
        FailWorkflowExecution(failure=CONVERTER.to_failure(ApplicationError("x", "yz"))),
    ):
        encoded = await encode_record(codec, record)
        assert encoded != record
        assert await decode_record(codec, encoded) == record


async def test_without_a_codec_records_are_not_copied() -> None:
    record = RecordMarker(marker_name="m")
    assert await encode_record(None, record) is record
    assert default() is DataConverter.default
