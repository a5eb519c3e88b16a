"""Progress that log-leased attempts report reaches the next attempt (WC-07); it is kept within bounds."""

from stepwell.api.payloads import Payload

from stepwell_server.history import activity_item
from stepwell_server.history.apply import durable_part, rebuild
from stepwell_server.history.machines.activity import MAX_KEPT_DETAILS_BYTES
from stepwell_server.history.requests import LeasedHeartbeat
from tests.support.history_run import EAGER, Run, activity, done, failed, payload, seconds


def leased(*ids, **fields):
    run = Run()
    run.accept(*(activity(name, **fields) for name in ids or ("1",)), eager=EAGER)
    return run


def beat(run, details, scheduled_event_id=5, attempt=1):
    request = LeasedHeartbeat(
        run_id=run.s.run_id, scheduled_event_id=scheduled_event_id, attempt=attempt, details=details
    )
    return run.step(request)


def next_item(run, scheduled_event_id=5):
    return activity_item.new_item(run.s, run.s.activities[scheduled_event_id])


def test_a_failure_brings_the_last_progress_along():
    run = leased()
    beat(run, payload("1"))
    run.outcomes(failed(5, details=payload("50")))
    assert next_item(run).heartbeat_details == payload("50")


def test_without_a_last_one_what_was_sent_counts():
    run = leased()
    assert beat(run, payload("7")).changed and run.last.events == () and run.last.tasks == ()
    assert not beat(run, payload("7")).changed, "a repeat costs no write"
    run.outcomes(failed(5))
    assert next_item(run).heartbeat_details == payload("7")


def test_a_lost_worker_and_a_timeout_keep_it():
    run = leased()
    beat(run, payload("7"))
    run.end_leases(5)
    assert next_item(run).heartbeat_details == payload("7")
    run = leased(start_to_close_timeout=seconds(1))
    beat(run, payload("7"))
    run.wait(2)
    run.fire()
    pending = run.s.activities[5]
    assert (pending.attempt, pending.heartbeat_details) == (2, payload("7"))
    assert pending.last_failure.info.last_heartbeat_details == payload("7")


def test_it_takes_no_number_and_history_knows_nothing_of_it():
    run = leased()
    before = (run.s.numbered_seq, len(run.events))
    beat(run, payload("7"))
    assert (run.s.numbered_seq, len(run.events)) == before
    assert durable_part(run.s) == durable_part(rebuild(run.events, run.s.namespace))
    run.fused([done(5)])
    assert run.last.reply.outcome == "ACCEPTED", "a fused step goes on from where it was"


def test_of_an_attempt_that_is_over_it_is_nothing():
    run = leased()
    assert not beat(run, payload("7"), attempt=2).changed
    assert not beat(run, payload("7"), scheduled_event_id=99).changed
    run.signal()
    run.outcomes(done(5))
    assert not beat(run, payload("7")).changed
    run = leased()
    run.outcomes(failed(5))
    assert not beat(run, payload("7")).changed
    run.terminate()
    assert not beat(run, payload("7")).changed


def test_all_of_it_together_is_bounded():
    run = leased("1", "2")
    large = (Payload(data=b"x" * (MAX_KEPT_DETAILS_BYTES - 10)),)
    assert beat(run, large).changed
    assert not beat(run, payload("a little more"), scheduled_event_id=6).changed
    assert beat(run, payload("less"), scheduled_event_id=5).changed, "what it replaces does not count"
    assert beat(run, payload("a little more"), scheduled_event_id=6).changed
