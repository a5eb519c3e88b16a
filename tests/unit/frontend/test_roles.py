"""Every operation may be called by somebody, and nobody may call what is not one."""

from itertools import combinations
from typing import get_args

from stepwell.api.operations import OPERATIONS as ALL

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
    assert "GetHistory" not in OPERATIONS["worker"]
    for one, other in combinations(("starter", "sender", "worker"), 2):
        assert OPERATIONS[one] & OPERATIONS[other] == {"GetSystemInfo"}


def test_a_grant_over_all_namespaces_covers_no_other_operation() -> None:
    """A wildcard of IAM matches slashes, so that of a namespace also stands for what is below one."""
    tails = {path.partition("{namespace}")[2]: name for name, path in ((each.name, each.path) for each in ALL)}
    for tail, name in tails.items():
        passing = [each.name for each in ALL if tail and "{" not in tail and each.path.endswith(tail)]
        assert passing in ([], [name])
