"""Every operation may be called by somebody, and nobody may call what is not one."""

from importlib import import_module
from itertools import combinations
from pkgutil import iter_modules
from typing import get_args

import stepwell.worker
from stepwell.api.operations import OPERATIONS as ALL
from stepwell.api.operations import Operation

from stepwell_server.frontend.roles import OPERATIONS, Role

NAMES = {operation.name for operation in ALL}


def test_every_operation_has_a_role() -> None:
    assert NAMES - set[str]().union(*OPERATIONS.values()) == set()


def test_every_name_is_an_operation() -> None:
    assert set[str]().union(*OPERATIONS.values()) - NAMES == set()
    assert set(OPERATIONS) == set(get_args(Role))


def test_who_reads_changes_nothing_and_who_works_steers_nothing() -> None:
    changes = {
        name for name in NAMES if not name.startswith(("Count", "Describe", "Get", "List", "Query", "Poll", "Scan"))
    }
    assert not OPERATIONS["reader"] & changes
    for one, other in combinations(("starter", "sender", "worker"), 2):
        assert OPERATIONS[one] & OPERATIONS[other] == {"GetSystemInfo"}


def test_who_works_may_call_what_the_sdks_worker_calls() -> None:
    """GetHistory among it: without it a worker that has begun anew could not replay the runs that are under way."""
    called = {
        value.name
        for module in iter_modules(stepwell.worker.__path__, "stepwell.worker.")
        for value in vars(import_module(module.name)).values()
        if isinstance(value, Operation)
    }
    assert {"PollWorkflowTask", "GetHistory", "RespondActivityTasks"} <= called
    assert called - OPERATIONS["worker"] == set()


def test_a_grant_over_all_namespaces_covers_no_other_operation() -> None:
    """A wildcard of IAM matches slashes, so that of a namespace also stands for what is below one."""
    tails = {path.partition("{namespace}")[2]: name for name, path in ((each.name, each.path) for each in ALL)}
    for tail, name in tails.items():
        passing = [each.name for each in ALL if tail and "{" not in tail and each.path.endswith(tail)]
        assert passing in ([], [name])
