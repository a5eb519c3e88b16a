"""What callers are told of what went wrong inside."""

import logging

import pytest
from stepwell.api.errors import ApiError, Internal, NotFound, Unavailable

from stepwell_server.frontend.refusals import api_error
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.history.run_blobs import Owner, PayloadLost

LOST = PayloadLost(Owner(ExecutionKey("default", "order-1"), "run-1"), "p/default/aa/run-1/bb-1")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (NotFound("no such run"), NotFound, "no such run"),
        (StoreUnavailable("throttled"), Unavailable, "storage cannot be used now: throttled; retry"),
        (LOST, Internal, "GetHistory cannot read what is stored: run 'run-1' of workflow 'order-1' refers to the blob"),
        (KeyError("secret of the engine"), Internal, "GetHistory failed inside the engine (KeyError)"),
    ],
    ids=["refusal", "store", "blob", "fault"],
)
def test_by_kind(error: Exception, kind: type[ApiError], words: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        told = api_error(error, "GetHistory")
    assert type(told) is kind and words in str(told) and "secret" not in str(told)
    assert bool(caplog.records) == (kind is Internal)
