"""What each managed policy allows and, above all, does not: patterns are matched as IAM matches them."""

import re
from typing import get_args

import pytest
from stepwell.api import operations, requests
from stepwell.api.common import WorkflowExecution

import access
from access import Grant, Role
from stepwell_server.frontend.roles import OPERATIONS
from stepwell_server.frontend.routes import ROUTES


def allowed(grant: Grant, path: str) -> bool:
    """IAM's matching: ``*`` is any text, slashes included, ``?`` one character."""
    for pattern in access.patterns(grant):
        expression = "".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in pattern)
        if re.fullmatch(expression, path):
            return True
    return False


def start(namespace: str, workflow_type: str, workflow_id: str) -> str:
    return f"/api/v1/namespaces/{namespace}/workflow-types/{workflow_type}/workflows/{workflow_id}/start"


def of_workflow(verb: str, workflow_id: str, namespace: str = "shop") -> str:
    return f"/api/v1/namespaces/{namespace}/workflows/{workflow_id}/{verb}"


def test_who_may_call_what() -> None:
    paths = {
        "start": start("shop", "fulfil_order", "order-1"),
        "signal": of_workflow("signal", "order-1"),
        "terminate": of_workflow("terminate", "order-1"),
        "history": of_workflow("history", "order-1"),
        "list": "/api/v1/namespaces/shop/list-workflows",
        "poll": "/api/v1/namespaces/shop/task-queues/orders/poll-workflow-task",
        "complete": "/api/v1/namespaces/shop/workflow-tasks/complete",
        "info": "/api/v1/system-info",
        "namespace": "/api/v1/namespaces/shop/describe-namespace",
        "limits": "/api/v1/namespaces/shop/update-namespace",
        "import": of_workflow("import", "order-1"),
    }
    may = {
        role: {name for name, path in paths.items() if allowed(Grant(role, "shop"), path)} for role in get_args(Role)
    }
    assert may == {
        "starter": {"start", "info"},
        "sender": {"signal", "info"},
        "reader": {"history", "list", "info", "namespace"},
        "activity-operator": {"info"},
        "operator": {"signal", "terminate", "history", "list", "info", "namespace"},
        "worker": {"poll", "complete", "history", "info"},
        "administrator": {"namespace", "limits", "info", "import"},
    }


@pytest.mark.parametrize("role", get_args(Role))
def test_another_namespace_is_out_of_reach(role: Role) -> None:
    for route in ROUTES:
        path = route.operation.path
        if "{namespace}" not in path:
            assert allowed(Grant(role), path) == (route.operation.name in OPERATIONS[role])
            assert allowed(Grant(role, "shop"), path) == (path == "/api/v1/system-info"), "it tells of all namespaces"
            continue
        names = {"workflow_type": "t", "workflow_id": "w", "task_queue": "q", "schedule_id": "s", "job_id": "j"}
        names["activity_id"] = "a"
        inside, outside = path.format(namespace="shop", **names), path.format(namespace="shop-2", **names)
        assert allowed(Grant(role, "shop"), inside) == (route.operation.name in OPERATIONS[role])
        assert not allowed(Grant(role, "shop"), outside)
        assert allowed(Grant(role), outside) == (route.operation.name in OPERATIONS[role])


def test_start_of_one_type_below_one_prefix() -> None:
    grant = Grant("starter", "shop", "fulfil_order", "order-")
    assert allowed(grant, start("shop", "fulfil_order", "order-17"))
    assert allowed(grant, start("shop", "fulfil_order", "order-17").removesuffix("start") + "signal-with-start")
    assert not allowed(grant, start("shop", "refund", "order-17"))
    assert not allowed(grant, start("shop", "fulfil_order", "invoice-17"))
    assert not allowed(grant, start("other", "fulfil_order", "order-17"))
    assert not allowed(grant, of_workflow("signal", "order-17"))
    activity = "/api/v1/namespaces/shop/activities/order-1/start-activity"
    assert not allowed(grant, activity) and not allowed(Grant("starter", "shop", "fulfil_order"), activity)
    assert allowed(Grant("starter", "shop"), activity) and not allowed(Grant("starter", "other"), activity)


def test_reading_below_a_prefix_does_not_list() -> None:
    grant = Grant("reader", "shop", id_prefix="order-")
    assert allowed(grant, of_workflow("history", "order-1"))
    assert not allowed(grant, of_workflow("history", "invoice-1"))
    assert not allowed(grant, "/api/v1/namespaces/shop/list-workflows")


@pytest.mark.parametrize("workflow_id", ["x/workflows/order-1", "../order-1", "x%2Fworkflows%2Forder-1"])
def test_an_id_with_slashes_passes_for_no_other(workflow_id: str) -> None:
    """The API decodes paths, so an id can look like the rest of a path."""
    assert not allowed(Grant("reader", "shop", id_prefix="order-"), of_workflow("history", workflow_id))
    starter = Grant("starter", "shop", "fulfil_order", "order-")
    assert not allowed(starter, start("shop", "refund", workflow_id))
    disguised = start("shop", "refund", "workflow-types/fulfil_order/workflows/order-1")
    assert not allowed(starter, disguised)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"role": "starter", "workflow_type": "t"}, "need a namespace that is named"),
        ({"role": "reader", "id_prefix": "order-"}, "need a namespace that is named"),
        ({"role": "starter", "namespace": "shop", "id_prefix": "order-"}, "needs a workflow_type that is named"),
        ({"role": "reader", "namespace": "shop", "workflow_type": "t"}, "for starters only"),
        ({"role": "worker", "namespace": "shop", "id_prefix": "order-"}, "not for workers"),
        ({"role": "reader", "namespace": "sh*p"}, "namespace may hold"),
        ({"role": "reader", "namespace": "shop/x"}, "namespace may hold"),
        ({"role": "reader", "namespace": ""}, "namespace must be a text"),
        ({"role": "reader", "namespace": "shop", "id_prefix": "*"}, "id_prefix may hold"),
        ({"role": "starter", "namespace": "shop", "workflow_type": "a?"}, "workflow_type may hold"),
    ],
)
def test_grants_that_would_allow_more_than_they_say(fields: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Grant(**fields)


def test_patterns_are_those_of_the_paths_that_clients_use() -> None:
    """Not of a copy: the client's own function makes the path."""
    request = requests.StartWorkflowRequest(
        namespace="shop", workflow_id="order-1", workflow_type="fulfil_order", task_queue="orders", request_id="r"
    )
    assert allowed(Grant("starter", "shop", "fulfil_order", "order-"), operations.START_WORKFLOW.url_path(request))
    execution = WorkflowExecution(workflow_id="order-1")
    described = requests.DescribeWorkflowRequest(namespace="shop", execution=execution)
    assert allowed(Grant("reader", "shop", id_prefix="order-"), operations.DESCRIBE_WORKFLOW.url_path(described))


def test_names_of_policies_tell_grants_apart_and_fit() -> None:
    grants = [
        Grant("starter", "shop", "a-b", "c"),
        Grant("starter", "shop", "a", "b-c"),
        Grant("starter", "n" * 60, "t" * 60, "p" * 60),
        Grant("starter", "n" * 60, "t" * 60, "p" * 61),
        *access.GENERAL,
    ]
    names = [grant.policy_name("stepwell-abcdefghijklmnop") for grant in grants]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w+=,.@-]{1,128}", name) for name in names)
