"""Payloads are found wherever a type may have them; and nothing else is looked at."""

import typing
from typing import Any

import msgspec
import pytest
from stepwell.api import events as ev
from stepwell.api.common import UserMetadata
from stepwell.api.enums import RetryState
from stepwell.api.failures import ActivityFailureInfo, ApplicationFailureInfo, Failure
from stepwell.api.payloads import Payload

from stepwell_server.history.activity_item import ActivityItem
from stepwell_server.history.commit import Commit
from stepwell_server.history.payload_fields import each_payload, fields_with_payloads, with_payloads
from stepwell_server.history.state import ExecutionState
from tests.support.sample_commits import SampleRun, chain

OLD, NEW = Payload(data=b"old"), Payload(data=b"new")


def new(payload: Payload) -> Payload:
    return NEW if payload == OLD else payload


def test_deep_in_a_chain_of_causes() -> None:
    inner = Failure(info=ApplicationFailureInfo(details=(OLD, Payload(data=b"kept"))), encoded_attributes=OLD)
    info = ActivityFailureInfo(
        scheduled_event_id=5, activity_type="charge", activity_id="1", retry_state=RetryState.TIMEOUT
    )
    changed = with_payloads(Failure(cause=Failure(cause=inner, info=info)), new)
    assert changed.cause is not None and changed.cause.cause is not None
    deepest = changed.cause.cause
    assert deepest.encoded_attributes == NEW
    assert isinstance(deepest.info, ApplicationFailureInfo)
    assert deepest.info.details == (NEW, Payload(data=b"kept"))


def test_in_dicts_tuples_and_metadata_of_events() -> None:
    event = ev.HistoryEvent(
        event_id=1,
        event_time=next(SampleRun(1).commits()).time,
        attributes=ev.MarkerRecorded(marker_name="m", details={"a": OLD}, workflow_task_completed_event_id=4),
        user_metadata=UserMetadata(summary=OLD),
    )
    ((changed,),) = with_payloads(((event,),), new)
    assert isinstance(changed.attributes, ev.MarkerRecorded) and changed.user_metadata is not None
    assert changed.attributes.details == {"a": NEW}
    assert changed.user_metadata.summary == NEW


def test_a_look_at_each_sees_what_a_change_would() -> None:
    for commit in [*SampleRun(1).commits(), *(commit for run in chain(2) for commit in run)]:
        seen: list[Payload] = []
        each_payload(commit, seen.append)
        others = [Payload(data=str(number).encode()) for number in range(len(seen))]
        numbered = iter(others)
        found: list[Payload] = []
        each_payload(with_payloads(commit, lambda _, numbers=numbered: next(numbers)), found.append)  # type: ignore[misc]
        assert found == others and seen


def test_what_does_not_change_is_the_same_object() -> None:
    for commit in SampleRun(1).commits():
        assert with_payloads(commit, lambda payload: payload) is commit


def records() -> list[Any]:
    return [*typing.get_args(ev.EventAttributes), ExecutionState, ActivityItem, Commit, Failure]


@pytest.mark.parametrize("kind", records(), ids=lambda kind: kind.__name__)
def test_no_field_that_mentions_payloads_is_overlooked(kind: type[msgspec.Struct]) -> None:
    """By the schema that msgspec itself has of the type: a field is listed exactly if a payload is reachable."""
    for field in msgspec.structs.fields(kind):
        assert (field.name in fields_with_payloads(kind)) == _reaches_payload(field.type), field.name


def _reaches_payload(annotation: Any) -> bool:
    schema = msgspec.json.schema_components((annotation,))
    return "Payload" in schema[1] or "Payload" in str(schema[0])
