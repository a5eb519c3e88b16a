"""Which roles may call which RPC, and by what callers are known."""

from hashlib import sha256
from typing import Any

import pytest
from stepwell.api.errors import PermissionDenied, Unauthenticated
from stepwell.api.operations import GET_SYSTEM_INFO
from stepwell.api.operations import OPERATIONS as ALL
from stepwell.api.requests import GetSystemInfoRequest

from stepwell_server.common.principals import current
from stepwell_server.frontend.roles import OPERATIONS
from stepwell_server.temporal_gateway.access import Access, ApiKey, Grant, WithinNamespaces
from stepwell_server.temporal_gateway.permissions import NEEDS
from stepwell_server.temporal_gateway.server import RPCS

GRANT = Grant("API key 'team'", ("team-*", "shop"), ("reader", "worker"))
ACCESS = Access([ApiKey(sha256(b"secret").digest(), GRANT)], [], OPERATIONS)


def test_every_rpc_stands_for_operations_of_the_api() -> None:
    assert set(NEEDS) == {found.name for found in RPCS.values()}
    assert set[str]().union(*NEEDS.values()) <= {operation.name for operation in ALL}


def test_who_works_neither_starts_nor_steers_and_who_reads_changes_nothing() -> None:
    worker = Grant("worker", ("*",), ("worker",))
    allowed = {name for name, needs in NEEDS.items() if needs & OPERATIONS["worker"]}
    assert allowed - {"GetSystemInfo", "GetClusterInfo", "GetSearchAttributes", "DescribeNamespace"} == {
        "PollWorkflowTaskQueue",
        "PollActivityTaskQueue",
        "GetWorkflowExecutionHistory",
        "ResetStickyTaskQueue",
        "RespondWorkflowTaskCompleted",
        "RespondWorkflowTaskFailed",
        "RespondQueryTaskCompleted",
        "RespondActivityTaskCompleted",
        "RespondActivityTaskFailed",
        "RespondActivityTaskCanceled",
        "RecordActivityTaskHeartbeat",
        "ShutdownWorker",
        "GetWorkflowExecutionHistoryReverse",
    }
    with pytest.raises(PermissionDenied, match="StartWorkflowExecution: that takes one of the roles starter;"):
        ACCESS.check_role(worker, "StartWorkflowExecution")
    for name in ("StartWorkflowExecution", "TerminateWorkflowExecution", "PollWorkflowTaskQueue", "NoSuchRpc"):
        with pytest.raises(PermissionDenied):
            ACCESS.check_role(Grant("reader", ("*",), ("reader",)), name)


def test_an_rpc_for_activities_of_both_kinds_takes_the_role_for_the_one_that_is_named() -> None:
    operator, alone = Grant("operator", ("*",), ("operator",)), Grant("alone", ("*",), ("activity-operator",))
    for rpc in ("PauseActivityExecution", "RespondActivityTaskCompletedById"):
        ACCESS.check_role(operator, rpc)
        ACCESS.check_role(alone, rpc)
    for of_workflow, standalone in (
        ("PauseActivity", "PauseStandaloneActivity"),
        ("ResetActivity", "ResetStandaloneActivity"),
        ("RespondActivityById", "CompleteStandaloneActivity"),
    ):
        ACCESS.check_operation(operator, of_workflow)
        ACCESS.check_operation(alone, standalone)
        with pytest.raises(PermissionDenied, match=f"alone may not call {of_workflow}: that takes one of the roles op"):
            ACCESS.check_operation(alone, of_workflow)
        with pytest.raises(PermissionDenied, match=f"operator may not call {standalone}: .* activity-operator"):
            ACCESS.check_operation(operator, standalone)


@pytest.mark.parametrize("authorization", ["Bearer secret", "bearer  secret ", b"Bearer secret"])
def test_a_key_is_known_as_sdks_send_it(authorization: str | bytes) -> None:
    assert ACCESS.caller([("user-agent", "x"), ("authorization", authorization)], {}) is GRANT


@pytest.mark.parametrize("authorization", ["", "secret", "Basic secret", "Bearer", "Bearer secret2", "Bearer \udc80"])
def test_other_credentials_are_refused_without_a_word_of_them(authorization: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        ACCESS.caller([("authorization", authorization)], {"x509_pem_cert": [b"none"]})
    assert "secret" not in str(refused.value)


async def test_what_a_handler_calls_is_called_by_whom_the_credentials_are_of() -> None:
    class Calls:
        async def call(self, operation: Any, request: Any) -> str:
            return current()

        async def undelivered(self, response: Any) -> None: ...

    grant = Grant("API key 'billing'", ("billing",), ("worker",))
    within = WithinNamespaces(Calls(), grant, ACCESS)  # type: ignore[arg-type]
    assert await within.call(GET_SYSTEM_INFO, GetSystemInfoRequest()) == "API key 'billing'"
    assert current() == ""


def test_names_of_namespaces_may_have_stars() -> None:
    for name in ("team-", "team-a", "shop"):
        GRANT.check_namespace(name)
    for name in ("", "team", "a-team-a", "shops", "Shop"):
        with pytest.raises(PermissionDenied, match="does not reach"):
            GRANT.check_namespace(name)
