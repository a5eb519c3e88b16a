"""Updates in the core: limits, sizes, and what a history says of them."""

import pytest
from stepwell.api import commands as c
from stepwell.api import limits
from stepwell.api.enums import CompletionOutcome, SuggestContinueAsNewReason
from stepwell.api.errors import FailedPrecondition, ResourceExhausted
from stepwell.api.payloads import Payload
from stepwell.api.updates import UpdateInput, UpdateMeta, UpdateOutcome, UpdateRequest

from stepwell_server.history.requests import AdmitUpdate
from tests.support.history_run import Run, declined, payload


def admit(run: Run, update_id: str = "u", size: int = 10) -> None:
    args = (Payload(metadata={}, data=b"x" * size),)
    request = UpdateRequest(meta=UpdateMeta(update_id=update_id), input=UpdateInput(name="add", args=args))
    run.step(AdmitUpdate(run_id="", request=request))


def idle() -> Run:
    run = Run()
    run.accept()
    return run


def test_admission_numbers_nothing():
    run = idle()
    kinds = list(run.kinds)
    admit(run)
    assert run.kinds == kinds
    task = run.s.workflow_task
    assert task is not None and (task.scheduled_event_id, task.attempt) == (0, 1)
    assert run.s.numbered_seq < run.s.seq


def test_who_sent_an_update_is_said_at_its_end_too():
    run = idle()
    meta = UpdateMeta(update_id="u", identity="caller")
    run.step(AdmitUpdate(run_id="", request=UpdateRequest(meta=meta, input=UpdateInput(name="add", args=()))))
    run.complete(c.AcceptUpdate(update_id="u"), token=run.begin())
    run.signal()
    run.complete(c.CompleteUpdate(update_id="u", outcome=UpdateOutcome()))
    assert next(event.attributes.meta for event in run.events if event.event_type.endswith("UpdateCompleted")) == meta


def test_the_total_of_a_run():
    run = idle()
    run.s.update_count = limits.MAX_UPDATES_PER_RUN - 1
    run._folded.update_count = run.s.update_count
    admit(run)
    with pytest.raises(FailedPrecondition, match=r"has had 2000 updates.*continue as new") as refused:
        admit(run, "v")
    assert refused.value.details["cause"] == "TOTAL_UPDATES"


def test_in_flight_are_those_without_an_end():
    run = idle()
    for number in range(limits.MAX_UPDATES_IN_FLIGHT):
        admit(run, f"u{number}")
    with pytest.raises(ResourceExhausted, match="may be in flight"):
        admit(run, "v")
    token = run.begin()
    run.complete(
        c.AcceptUpdate(update_id="u0"),
        *(c.RejectUpdate(update_id=f"u{n}", failure=declined()) for n in range(1, 10)),
        token=token,
    )
    for number in range(limits.MAX_UPDATES_IN_FLIGHT - 1):
        admit(run, f"v{number}")
    with pytest.raises(ResourceExhausted):
        admit(run, "w")


def test_bytes_count_only_while_they_wait():
    run = idle()
    admit(run, "large", limits.MAX_UPDATE_BYTES_IN_FLIGHT)
    with pytest.raises(ResourceExhausted, match="bytes together"):
        admit(run, "small")
    run.complete(c.AcceptUpdate(update_id="large"), token=run.begin())
    admit(run, "small")


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (
            c.CompleteUpdate(update_id="u", outcome=UpdateOutcome(success=payload("x" * limits.MAX_PAYLOAD_BYTES))),
            "result",
        ),
        (
            c.CompleteUpdate(update_id="u", outcome=UpdateOutcome(failure=declined("x" * limits.MAX_PAYLOAD_BYTES))),
            "failure",
        ),
        (c.RejectUpdate(update_id="v", failure=declined("x" * limits.MAX_PAYLOAD_BYTES)), "rejection"),
    ],
)
def test_outcomes_over_the_limit_fail_the_task(command: c.Command, what: str):
    run = idle()
    admit(run)
    run.complete(c.AcceptUpdate(update_id="u"), token=run.begin())
    admit(run, "v")
    reply = run.complete(command, token=run.begin())
    assert reply.outcome is CompletionOutcome.FAILED
    assert f"{what} of update" in reply.message


def test_it_is_suggested_to_continue_as_new_before_the_total_is_reached():
    run = idle()
    for count, suggested in ((limits.SUGGEST_CONTINUE_UPDATES - 1, False), (limits.SUGGEST_CONTINUE_UPDATES, True)):
        run.s.update_count = count
        run._folded.update_count = count
        admit(run, f"u{count}")
        run.begin()
        started = run.shown[-1].attributes
        reasons = started.suggest_continue_as_new_reasons
        assert (SuggestContinueAsNewReason.TOO_MANY_UPDATES in reasons) is suggested
