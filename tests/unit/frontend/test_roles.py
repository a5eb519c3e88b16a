"""Every operation may be called by somebody, and nobody may call what is not one."""

from collections.abc import Callable
from importlib import import_module
from itertools import combinations
from pkgutil import iter_modules
from string import Formatter
from typing import Any, get_args

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
    """Policies of IAM go by the decoded path, and their wildcards match slashes: what stands below a namespace, and ids
    that have slashes themselves, such as that of a workflow ``x/activities/y``, make it pass for no other operation."""
    covered = {
        (role, called.name, allowed.name)
        for role, names in OPERATIONS.items()
        for allowed in ALL
        if allowed.name in names
        for called in ALL
        if called.name not in names and _meet(_pattern(allowed), _path(called))
    }
    assert covered == set()


_ANY, _SEGMENT = "any", "segment"
_WITHOUT_SLASH = {"namespace", "workflow_type", "task_queue"}
"""Names in which the function behind the API refuses a slash."""


def _parts(operation: Operation[Any, Any], wildcard: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Single characters, and wildcards."""
    found: list[tuple[str, str]] = []
    for text, name, _, _ in Formatter().parse(operation.path):
        found += [("is", character) for character in text]
        found += [] if name is None else [(wildcard(name), "")]
    return tuple(found)


def _pattern(operation: Operation[Any, Any]) -> tuple[tuple[str, str], ...]:
    """Of IAM."""
    return _parts(operation, lambda name: _ANY)


def _path(operation: Operation[Any, Any]) -> tuple[tuple[str, str], ...]:
    """As it may be called."""
    return _parts(operation, lambda name: _SEGMENT if name in _WITHOUT_SLASH else _ANY)


def _meet(one: tuple[tuple[str, str], ...], other: tuple[tuple[str, str], ...]) -> bool:
    """Whether there is a text that both match."""
    places, seen = [(0, 0)], {(0, 0)}
    while places:
        i, j = places.pop()
        if (i, j) == (len(one), len(other)):
            return True
        here, there = (parts[at] if at < len(parts) else ("end", "") for parts, at in ((one, i), (other, j)))
        reached = [(i + 1, j)] if here[0] in (_ANY, _SEGMENT) else []
        reached += [(i, j + 1)] if there[0] in (_ANY, _SEGMENT) else []
        reached += [(i + 1, j + 1)] if here[0] == there[0] == "is" and here == there else []
        reached += [(i + 1, j)] if here[0] == "is" and _takes(there[0], here[1]) else []
        reached += [(i, j + 1)] if there[0] == "is" and _takes(here[0], there[1]) else []
        places += [place for place in reached if place not in seen]
        seen.update(reached)
    return False


def _takes(wildcard: str, character: str) -> bool:
    return wildcard == _ANY or (wildcard == _SEGMENT and character != "/")
