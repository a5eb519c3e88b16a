"""Reports of workers are made to fit the limits; what fits is passed on as the same object."""

from typing import Any

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.commands import CompleteUpdate, CompleteWorkflowExecution, FailWorkflowExecution, RejectUpdate
from stepwell.api.enums import TimeoutType
from stepwell.api.failures import (
    ActivityFailureInfo,
    ApplicationFailureInfo,
    CanceledFailureInfo,
    Failure,
    TimeoutFailureInfo,
)
from stepwell.api.limits import MAX_FAILURE_CAUSES, MAX_FAILURE_MESSAGE_BYTES, MAX_PAYLOAD_BYTES
from stepwell.api.payloads import Payload
from stepwell.api.updates import UpdateOutcome

from stepwell_server.frontend.outcomes import fit_commands, fit_failure, fit_outcomes

BIG = (Payload(data=b"x" * (MAX_PAYLOAD_BYTES + 1)),)
FULL = (Payload(data=b"x" * MAX_PAYLOAD_BYTES),)


def _depth(failure: Failure | None) -> int:
    return 0 if failure is None else 1 + _depth(failure.cause)


def test_what_fits_is_the_same_object() -> None:
    failure = Failure(
        message="declined",
        cause=Failure(message="ü" * 100, stack_trace="line\n" * 100),
        info=ApplicationFailureInfo(failure_type="Declined", details=FULL),
    )
    outcomes = (
        r.ActivityCompleted(task_token=b"1", result=FULL),
        r.ActivityFailed(task_token=b"2", failure=failure, last_heartbeat_details=FULL),
        r.ActivityCanceled(task_token=b"3", details=FULL),
    )
    assert fit_outcomes(outcomes) is outcomes
    assert fit_failure(failure) is failure


def test_a_result_that_is_too_large_becomes_a_failure_without_retry() -> None:
    good = r.ActivityCompleted(task_token=b"2")
    first, second = fit_outcomes((r.ActivityCompleted(task_token=b"1", result=BIG), good))
    assert second is good
    assert isinstance(first, r.ActivityFailed)
    assert first.task_token == b"1"
    assert isinstance(first.failure.info, ApplicationFailureInfo)
    assert first.failure.info.non_retryable
    assert str(MAX_PAYLOAD_BYTES + 1) in first.failure.message
    assert str(MAX_PAYLOAD_BYTES) in first.failure.message


@pytest.mark.parametrize("text", ["x" * 20_000, "ü" * 20_000, "語" * 6_000, "a😀" * 5_000])
def test_long_messages_and_stack_traces_are_cut_at_a_character(text: str) -> None:
    fitted = fit_failure(Failure(message=text, stack_trace=text, info=ApplicationFailureInfo(failure_type="T")))
    for cut in (fitted.message, fitted.stack_trace):
        assert MAX_FAILURE_MESSAGE_BYTES - 20 < len(cut.encode()) <= MAX_FAILURE_MESSAGE_BYTES
        assert cut.endswith(" … (cut)")
        assert text.startswith(cut.removesuffix(" … (cut)"))
    assert fitted.info == ApplicationFailureInfo(failure_type="T")


@pytest.mark.parametrize(
    "info",
    [
        ApplicationFailureInfo(failure_type="T", details=BIG),
        CanceledFailureInfo(details=BIG),
        TimeoutFailureInfo(timeout_type=TimeoutType.HEARTBEAT, last_heartbeat_details=BIG),
    ],
)
def test_details_that_are_too_large_are_dropped_and_the_message_says_so(info: Any) -> None:
    fitted = fit_failure(Failure(message="declined", info=info))
    assert type(fitted.info) is type(info)
    assert fitted.message.startswith("declined [details of 2097153 bytes")
    assert getattr(fitted.info, "failure_type", "T") == "T"
    assert fit_failure(fitted) is fitted


def test_deep_causes_are_dropped() -> None:
    failure = Failure(message="root")
    for level in range(100):
        failure = Failure(message=str(level), cause=failure)
    fitted = fit_failure(failure)
    assert _depth(fitted) == MAX_FAILURE_CAUSES + 1
    assert fit_failure(fitted) is fitted


def test_a_very_deep_chain_is_no_trouble() -> None:
    failure = Failure(message="root")
    for level in range(50_000):
        failure = Failure(message=str(level), cause=failure)
    assert _depth(fit_failure(failure)) == MAX_FAILURE_CAUSES + 1


def test_causes_are_fitted_too() -> None:
    fitted = fit_failure(
        Failure(
            message="outer",
            cause=Failure(message="x" * 20_000),
            info=ActivityFailureInfo(scheduled_event_id=5, activity_type="charge", activity_id="1"),
        )
    )
    assert fitted.cause is not None
    assert len(fitted.cause.message) <= MAX_FAILURE_MESSAGE_BYTES
    assert fitted.message == "outer"


def test_heartbeat_details_of_a_failure_and_of_a_cancellation() -> None:
    failed, canceled = fit_outcomes(
        (
            r.ActivityFailed(task_token=b"1", failure=Failure(message="m"), last_heartbeat_details=BIG),
            r.ActivityCanceled(task_token=b"2", details=BIG),
        )
    )
    assert isinstance(failed, r.ActivityFailed)
    assert failed.last_heartbeat_details == ()
    assert failed.failure.message == "m"
    assert canceled == r.ActivityCanceled(task_token=b"2")


def test_encoded_attributes_are_kept_unless_too_large() -> None:
    attributes = Payload(metadata={"encoding": "json/plain"}, data=b"x" * 100)
    failure = Failure(message="m" * 20_000, encoded_attributes=attributes)
    assert fit_failure(failure).encoded_attributes is attributes
    large = Payload(metadata={"encoding": "json/plain"}, data=b"x" * (MAX_PAYLOAD_BYTES + 1))
    assert fit_failure(Failure(message="m", encoded_attributes=large)) == Failure(message="m")


SMALL = 2_000
"""The limit of a namespace."""


def test_a_failure_is_within_the_limit_of_its_namespace_with_all_that_is_in_it() -> None:
    details = ApplicationFailureInfo(failure_type="Declined", details=(Payload(data=b"x" * 1_900),))
    cause = Failure(message="deeper", stack_trace="line\n" * 300)
    given = Failure(message="m" * 1_500, stack_trace="s" * 3_000, cause=cause, info=details)
    fitted = fit_failure(given, SMALL)
    assert len(msgspec.json.encode(fitted)) <= SMALL and fitted.message.startswith("mmm")
    assert isinstance(fitted.info, ApplicationFailureInfo) and fitted.info.failure_type == "Declined"
    little = Failure(message="no", cause=Failure(message="deeper"))
    assert fit_failure(little, SMALL) is little and fit_failure(given) is given


def test_reports_obey_the_limit_of_their_namespace() -> None:
    over = (Payload(data=b"x" * (SMALL + 1)),)
    completed, failed, canceled = fit_outcomes(
        (
            r.ActivityCompleted(task_token=b"1", result=over),
            r.ActivityFailed(task_token=b"2", failure=Failure(message="no"), last_heartbeat_details=over),
            r.ActivityCanceled(task_token=b"3", details=over),
        ),
        SMALL,
    )
    assert isinstance(completed, r.ActivityFailed) and "limit of 2000" in completed.failure.message
    assert "have the limit of the namespace raised" in completed.failure.message
    assert isinstance(failed, r.ActivityFailed) and failed.last_heartbeat_details == ()
    assert isinstance(canceled, r.ActivityCanceled) and canceled.details == ()


def test_failures_that_end_runs_and_updates_are_cut_and_other_commands_left() -> None:
    large = Failure(message="no", stack_trace="s" * 3_000)
    commands = (
        RejectUpdate(update_id="u", failure=large),
        CompleteUpdate(update_id="u", outcome=UpdateOutcome(failure=large)),
        CompleteWorkflowExecution(result=BIG),
        FailWorkflowExecution(failure=large),
    )
    rejected, completed, result, failed = fit_commands(commands, SMALL)
    assert isinstance(rejected, RejectUpdate) and isinstance(failed, FailWorkflowExecution)
    assert rejected.failure == failed.failure == Failure(message="no")
    assert isinstance(completed, CompleteUpdate) and completed.outcome.failure == Failure(message="no")
    assert result is commands[2]
