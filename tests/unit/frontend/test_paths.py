"""Raw paths find their route, whatever the ids in them are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import InvalidArgument

from stepwell_server.frontend.paths import PathIndex, check_agreement
from stepwell_server.frontend.routes import ROUTES

INDEX = PathIndex()
TEXT = st.text(st.characters(codec="utf-8"), min_size=1)


def test_every_route_is_found_by_its_own_path() -> None:
    for route in ROUTES:
        path = route.operation.path.replace("{", "").replace("}", "")
        found = INDEX.find(path)
        assert found is not None
        assert found[0].route is route


@given(namespace=TEXT, workflow_id=TEXT, workflow_type=TEXT)
def test_any_names_make_the_round_trip(namespace: str, workflow_id: str, workflow_type: str) -> None:
    request = r.StartWorkflowRequest(
        namespace=namespace, workflow_id=workflow_id, workflow_type=workflow_type, task_queue="q"
    )
    found = INDEX.find(o.START_WORKFLOW.url_path(request))
    assert found is not None
    target, segments = found
    assert target.route.operation is o.START_WORKFLOW
    check_agreement(target, segments, request)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api/v1/",
        "/api/v1/namespaces/default/workflows/a/b/signal",
        "/api/v1/namespaces/default/workflows/a/signal/",
        "/api/v1/namespaces/default/workflows/a/unknown",
        "/api/v2/system-info",
        "//api/v1/system-info",
    ],
)
def test_other_paths_are_no_operation(path: str) -> None:
    assert INDEX.find(path) is None


def _signal(path: str, request: r.SignalWorkflowRequest) -> None:
    found = INDEX.find(path)
    assert found is not None
    check_agreement(*found, request)


SIGNAL = r.SignalWorkflowRequest(execution=WorkflowExecution(workflow_id="a"), signal_name="s")


@pytest.mark.parametrize(
    "path", ["default/workflows/b/signal", "other/workflows/a/signal", "default/workflows/A/signal"]
)
def test_a_body_that_names_something_else_is_refused(path: str) -> None:
    with pytest.raises(InvalidArgument, match=r"in the path and .* in the body; send the same in both"):
        _signal(f"/api/v1/namespaces/{path}", SIGNAL)


def test_a_path_that_is_no_utf8_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="workflow_id in the path is not percent-encoded UTF-8"):
        _signal("/api/v1/namespaces/default/workflows/%ff/signal", SIGNAL)


def test_encoding_more_than_needed_is_the_same_path() -> None:
    _signal("/api/v1/namespaces/%64efault/workflows/%61/signal", SIGNAL)
