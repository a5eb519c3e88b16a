"""Completion callbacks: those of a start, and what became of them. There they are in the form of Nexus."""

from collections.abc import Iterable

from stepwell.api.callbacks import Callback, CallbackInfo
from stepwell.api.enums import CallbackForm
from stepwell.api.errors import Unimplemented
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import CallbackState
from temporalio.api.failure.v1 import message_pb2 as failure_pb2
from temporalio.api.workflow.v1 import message_pb2 as pb

from .names import number
from .times import timestamp


def callbacks_of(values: Iterable[common_pb2.Callback]) -> tuple[Callback, ...]:
    """Raises Unimplemented for those that are not addressed by a URL."""
    return tuple([_callback_of(value) for value in values])


def _callback_of(value: common_pb2.Callback) -> Callback:
    if not value.HasField("nexus"):
        raise Unimplemented(
            "completion_callbacks has one that is not for a URL, which this server does not know; use nexus, with a url"
        )
    return Callback(url=value.nexus.url, headers=dict(value.nexus.header), form=CallbackForm.NEXUS)


def to_callbacks(callbacks: Iterable[Callback]) -> list[common_pb2.Callback]:
    return [
        common_pb2.Callback(nexus=common_pb2.Callback.Nexus(url=callback.url, header=dict(callback.headers)))
        for callback in callbacks
    ]


def to_infos(infos: Iterable[CallbackInfo]) -> list[pb.CallbackInfo]:
    return [_info(info) for info in infos]


def _info(info: CallbackInfo) -> pb.CallbackInfo:
    last, following = info.last_attempt_complete_time, info.next_attempt_schedule_time
    failure = failure_pb2.Failure(message=info.last_attempt_failure) if info.last_attempt_failure else None
    return pb.CallbackInfo(
        callback=common_pb2.Callback(nexus=common_pb2.Callback.Nexus(url=info.url)),
        trigger=pb.CallbackInfo.Trigger(workflow_closed=pb.CallbackInfo.WorkflowClosed()),
        state=number(info.state, "CALLBACK_STATE_", CallbackState),
        attempt=info.attempt,
        last_attempt_complete_time=None if last is None else timestamp(last),
        last_attempt_failure=failure,
        next_attempt_schedule_time=None if following is None else timestamp(following),
    )
