"""The table is complete, and both indexes made from it find every row."""

import logging

import pytest
from stepwell.api.errors import Internal, NotFound, Unavailable
from stepwell.api.operations import OPERATIONS

from stepwell_server.frontend.refusals import api_error
from stepwell_server.frontend.routes import HANDLERS, ROUTES
from stepwell_server.history.ports import StoreUnavailable


def test_every_operation_has_one_row_in_order() -> None:
    assert tuple(route.operation for route in ROUTES) == OPERATIONS
    assert len(HANDLERS) == len(OPERATIONS)


def test_handlers_are_named_for_their_operation() -> None:
    for route in ROUTES:
        assert route.handler.__name__.replace("_", "") == route.operation.name.lower()


def test_refusals_pass_as_they_are() -> None:
    refusal = NotFound("nobody")
    assert api_error(refusal, "StartWorkflow") is refusal


def test_a_store_that_cannot_serve_may_be_asked_again() -> None:
    error = api_error(StoreUnavailable("disk full"), "StartWorkflow")
    assert isinstance(error, Unavailable)
    assert error.retryable
    assert "disk full" in str(error)


def test_a_fault_of_ours_is_logged_and_tells_the_caller_nothing_inner(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        error = api_error(KeyError("secret"), "StartWorkflow")
    assert isinstance(error, Internal)
    assert "secret" not in str(error)
    assert "secret" in caplog.text
