"""Recent request ids find their own result, in this run and the next."""

from stepwell_server.history import request_ids
from tests.support.history_run import Run


def run_of(state, request_id):
    """The run that a start made."""
    found = request_ids.started(state, request_id)
    assert found is not None and found.started and found.first_run_id == found.run_id
    return found.run_id


def test_kinds_are_apart_and_empty_is_never_known():
    state = Run().s
    request_ids.remember(state, request_ids.SIGNAL, "a")
    assert request_ids.is_known(state, request_ids.SIGNAL, "a")
    assert not request_ids.is_known(state, request_ids.CANCEL, "a")
    request_ids.remember(state, request_ids.SIGNAL, "")
    assert not request_ids.is_known(state, request_ids.SIGNAL, "")
    assert len(state.request_ids) == 1


def test_the_last_ones_of_each_kind_are_kept():
    state = Run().s
    request_ids.remember_start(state, "start", "run-0")
    request_ids.remember(state, request_ids.CANCEL, "cancel")
    signals = request_ids.KEPT[request_ids.SIGNAL]
    for number in range(3 * signals):
        request_ids.remember(state, request_ids.SIGNAL, str(number))
    known = [request_ids.is_known(state, request_ids.SIGNAL, str(number)) for number in range(3 * signals)]
    assert known == [False] * 2 * signals + [True] * signals
    assert request_ids.is_known(state, request_ids.CANCEL, "cancel")
    assert run_of(state, "start") == "run-0"
    for number in range(30):
        request_ids.remember_start(state, f"start {number}", f"run {number}")
        request_ids.remember(state, request_ids.CANCEL, f"cancel {number}")
        request_ids.remember_reset(state, f"reset {number}", f"run {number}")
        request_ids.remember(state, request_ids.PAUSE, f"pause {number}")
    assert {kind: len(request_ids.ring(state, kind)) for kind in request_ids.KEPT} == request_ids.KEPT
    assert run_of(state, "start 14") == "run 14" and request_ids.started(state, "start") is None
    assert len(state.request_ids) == sum(request_ids.KEPT.values())


def test_what_release_0_1_0_remembered_is_found_and_makes_room():
    """It had one ring of 64: signals and cancels as bare digests, starts with their run."""
    state = Run().s
    entries = [request_ids.entry(request_ids.SIGNAL, str(number)) for number in range(60)]
    request_ids.remember_start(state, "old", "run-0")
    state.request_ids = (*state.request_ids, *entries)
    assert run_of(state, "old") == "run-0"
    assert request_ids.is_known(state, request_ids.SIGNAL, "0")
    for number in range(60, 70):
        request_ids.remember(state, request_ids.SIGNAL, str(number))
    assert not request_ids.is_known(state, request_ids.SIGNAL, "5")
    assert request_ids.is_known(state, request_ids.SIGNAL, "6")
    assert run_of(state, "old") == "run-0"


def test_starts_are_found_by_their_run():
    state = Run(request_id="x").s
    request_ids.remember_start(state, "old", "run-0")
    request_ids.remember_start(state, "", "run-none")
    assert run_of(state, "x") == "run-1"
    assert run_of(state, "old") == "run-0"
    assert request_ids.started(state, "new") is None
    assert request_ids.started(state, "") is None
