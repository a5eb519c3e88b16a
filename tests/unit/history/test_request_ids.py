"""Recent request ids find their own result, in this run and the next."""

from stepwell_server.history import request_ids
from tests.support.history_run import Run


def test_kinds_are_apart_and_empty_is_never_known():
    state = Run().s
    request_ids.remember(state, request_ids.SIGNAL, "a")
    assert request_ids.is_known(state, request_ids.SIGNAL, "a")
    assert not request_ids.is_known(state, request_ids.CANCEL, "a")
    request_ids.remember(state, request_ids.SIGNAL, "")
    assert not request_ids.is_known(state, request_ids.SIGNAL, "")
    assert len(state.request_ids) == 1


def test_the_last_ones_are_kept():
    state = Run().s
    for number in range(request_ids.REMEMBERED + 1):
        request_ids.remember(state, request_ids.SIGNAL, str(number))
    assert len(state.request_ids) == request_ids.REMEMBERED
    assert not request_ids.is_known(state, request_ids.SIGNAL, "0")
    assert request_ids.is_known(state, request_ids.SIGNAL, "1")


def test_starts_are_found_by_their_run():
    state = Run(request_id="x").s
    request_ids.remember_start(state, "old", "run-0")
    request_ids.remember_start(state, "", "run-none")
    assert request_ids.started_run(state, "x") == "run-1"
    assert request_ids.started_run(state, "old") == "run-0"
    assert request_ids.started_run(state, "new") is None
    assert request_ids.started_run(state, "") is None
