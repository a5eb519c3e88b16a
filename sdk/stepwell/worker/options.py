"""What a worker is given, checked: its workflows and activities by name, its numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..activity import ActivityDefinition
from ..api.limits import MAX_TASKS_PER_SECOND
from ..workflow.definition import WorkflowDefinition
from ..workflow.dynamic import DYNAMIC


def check_numbers(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, not {count}")


def check_rate(rate: float | None) -> None:
    if rate is not None and not 0 < rate <= MAX_TASKS_PER_SECOND:
        raise ValueError(
            f"max_task_queue_activities_per_second must be above 0 and at most {MAX_TASKS_PER_SECOND:g}, "
            f"not {rate}; leave it out for no limit"
        )


def check_sessions(most: int, activities: Mapping[str, ActivityDefinition]) -> None:
    if most < 0:
        raise ValueError(f"max_concurrent_sessions must not be negative, not {most}")
    if most and not activities:
        raise ValueError("max_concurrent_sessions is for workers with activities; give it activities=[…]")


def _check_list(field: str, given: object) -> None:
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise TypeError(f"{field} is a list, not {given!r}; write {field}=[…]")


def workflow_definitions(workflows: Sequence[Any]) -> dict[str, WorkflowDefinition]:
    _check_list("workflows", workflows)
    found: dict[str, WorkflowDefinition] = {}
    for workflow in workflows:
        definition = WorkflowDefinition.must_of(workflow)
        name = DYNAMIC if definition.dynamic else definition.name
        if name in found:
            raise ValueError(_twice("workflow", name))
        found[name] = definition
    return found


def activity_definitions(activities: Sequence[Callable[..., Any]]) -> dict[str, ActivityDefinition]:
    _check_list("activities", activities)
    found: dict[str, ActivityDefinition] = {}
    for activity in activities:
        definition = ActivityDefinition.must_of(activity)
        name = DYNAMIC if definition.dynamic else definition.name
        if name in found:
            raise ValueError(_twice("activity", name))
        found[name] = definition
    return found


def _twice(kind: str, name: str) -> str:
    kinds = {"workflow": "workflows", "activity": "activities"}[kind]
    if name == DYNAMIC:
        return f"two {kinds} are dynamic; a worker has one at most"
    return f"two {kinds} are named {name!r}; give one of them another name"
