"""Whatever is raised, the caller gets a failure with type, message and trace (WC-24)."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from stepwell.api.codec import decode_json, encode_json
from stepwell.api.enums import RetryState, TimeoutType
from stepwell.api.failures import ActivityFailureInfo, ApplicationFailureInfo, Failure
from stepwell.api.limits import MAX_FAILURE_CAUSES, MAX_FAILURE_MESSAGE_BYTES
from stepwell.converter import DataConverter
from stepwell.exceptions import (
    ActivityError,
    ApplicationError,
    ApplicationErrorCategory,
    CancelledError,
    ServerError,
    TerminatedError,
    TimeoutError,
    is_cancelled_exception,
)

CONVERTER = DataConverter.default


class TwoArguments(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{reason} ({code})")


class HoldsALock(Exception):
    def __init__(self) -> None:
        super().__init__("locked", threading.Lock())


class BrokenStr(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def travel(error: BaseException) -> tuple[Failure, Any]:
    """To a failure, over the wire, and back."""
    failure = decode_json(encode_json(CONVERTER.to_failure(error)), Failure)
    return failure, CONVERTER.from_failure(failure)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (TwoArguments(5, "out of stock"), "out of stock (5)"),
        (HoldsALock(), "locked"),
        (BrokenStr(), "<str() of BrokenStr failed with RuntimeError>"),
        (KeyError("x"), "'x'"),
        (ValueError("bad \ud800 text"), "bad \\ud800 text"),
    ],
)
def test_odd_exceptions(error: Exception, message: str) -> None:
    failure, back = travel(error)
    assert message in failure.message
    assert isinstance(back, ApplicationError)
    assert (back.type, back.message) == (type(error).__name__, failure.message)


def test_long_messages_are_cut_with_a_marker() -> None:
    failure, _ = travel(ValueError("ü" * 500_000))
    assert len(failure.message.encode()) <= MAX_FAILURE_MESSAGE_BYTES
    assert failure.message.endswith("[cut: 1000000 bytes in all]")


def test_traces_and_causes() -> None:
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise TwoArguments(1, "outer") from inner
    except TwoArguments as error:
        failure, back = travel(error)
    assert "test_failure_converter" in failure.stack_trace
    assert isinstance(back.cause, ApplicationError) and back.cause.type == "KeyError"


def test_loops_and_long_chains_end() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    failure, _ = travel(first)
    assert failure.cause is not None and failure.cause.message == "second" and failure.cause.cause is None
    error: Exception = ValueError("0")
    for n in range(100):
        outer = ValueError(str(n))
        outer.__cause__ = error
        error = outer
    depth, link = 0, CONVERTER.to_failure(error)
    while link.cause is not None:
        depth, link = depth + 1, link.cause
    assert depth == MAX_FAILURE_CAUSES - 1


def test_groups_show_every_inner_failure() -> None:
    inner = ActivityError(
        "activity failed",
        scheduled_event_id=5,
        started_event_id=6,
        identity="w",
        activity_type="A",
        activity_id="1",
        retry_state=RetryState.TIMEOUT,
    )
    inner.__cause__ = KeyError("deep")
    failure, _ = travel(ExceptionGroup("several", [ValueError("one"), ExceptionGroup("more", [inner])]))
    assert "[1] ValueError: one" in failure.message
    assert "[2] ActivityError: activity failed <- KeyError: 'deep'" in failure.message
    assert isinstance(failure.info, ApplicationFailureInfo) and failure.info.failure_type == "ExceptionGroup"


def test_application_errors_keep_everything() -> None:
    error = ApplicationError(
        "no",
        {"a": 1},
        [2],
        type="Refused",
        non_retryable=True,
        next_retry_delay=timedelta(seconds=3),
        category=ApplicationErrorCategory.BENIGN,
    )
    _, back = travel(error)
    assert (back.message, back.type, back.non_retryable) == ("no", "Refused", True)
    assert list(back.details) == [{"a": 1}, [2]]
    assert back.next_retry_delay == timedelta(seconds=3)
    assert back.category is ApplicationErrorCategory.BENIGN
    assert str(back) == "Refused: no"


def test_a_subclass_of_application_error_has_its_own_type() -> None:
    class OutOfStock(ApplicationError):
        pass

    assert travel(OutOfStock("x"))[1].type == "OutOfStock"
    assert travel(ApplicationError("x"))[1].type is None


def test_details_that_cannot_be_encoded_do_not_hide_the_failure() -> None:
    _, back = travel(ApplicationError("no", threading.Lock(), 5))
    assert "detail could not be encoded" in back.details[0]
    assert back.details[1] == 5


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CancelledError("stop", 1), CancelledError),
        (asyncio.CancelledError(), CancelledError),
        (TerminatedError("killed"), TerminatedError),
        (ServerError("oops", non_retryable=True), ServerError),
    ],
)
def test_other_kinds(error: BaseException, kind: type) -> None:
    back = travel(error)[1]
    assert type(back) is kind
    assert is_cancelled_exception(back) == (kind is CancelledError)


def test_timeouts_and_wrappers() -> None:
    timeout = TimeoutError("late", type=TimeoutType.HEARTBEAT, last_heartbeat_details=[7])
    error = ActivityError(
        "failed",
        scheduled_event_id=5,
        started_event_id=6,
        identity="w",
        activity_type="A",
        activity_id="1",
        retry_state=RetryState.TIMEOUT,
    )
    error.__cause__ = timeout
    failure, back = travel(error)
    assert isinstance(failure.info, ActivityFailureInfo)
    assert (back.activity_type, back.activity_id, back.retry_state) == ("A", "1", RetryState.TIMEOUT)
    assert back.cause.type is TimeoutType.HEARTBEAT and list(back.cause.last_heartbeat_details) == [7]


def test_a_decoded_error_is_passed_on_as_it_came() -> None:
    failure, back = travel(ValueError("x"))
    assert CONVERTER.to_failure(back) == failure
