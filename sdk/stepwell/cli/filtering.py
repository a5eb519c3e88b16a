"""Options that filter lists and counts of workflows, in place of a query or beside one."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from ..api.enums import WorkflowExecutionStatus
from ..client.filters import query_of
from ..search_attributes import TypedSearchAttributes
from .inputs import parse_attributes
from .options import choice_of, in_place_of
from .schedule_options import Moment
from .troubles import Usage

F = TypeVar("F", bound=Callable[..., Any])

_MOMENT = Moment()
_OPTIONS = (
    click.option(
        "--query", "-q", default="", help="Only what this finds, such as \"Customer = 'acme' AND Amount > 5\"."
    ),
    click.option(
        "--status",
        "statuses",
        multiple=True,
        type=choice_of(WorkflowExecutionStatus),
        help="Only runs with this status.",
    ),
    click.option("--type", "types", multiple=True, help="Only workflows of this type."),
    click.option("--workflow-id", "-w", "ids", multiple=True, metavar="ID", help="Only runs of this workflow."),
    click.option("--id-prefix", default="", help="Only workflows whose id begins so."),
    click.option("--task-queue", "queues", multiple=True, help="Only runs on this task queue."),
    click.option("--parent", "parents", multiple=True, metavar="ID", help="Only children of this workflow."),
    click.option("--started-from", type=_MOMENT, help="Only runs that began then or later, such as -2h."),
    click.option("--started-before", type=_MOMENT, help="Only runs that began before."),
    click.option("--closed-from", type=_MOMENT, help="Only runs that closed then or later."),
    click.option("--closed-before", type=_MOMENT, help="Only runs that closed before."),
    click.option(
        "--search-attribute",
        "attributes",
        multiple=True,
        metavar="NAME=JSON",
        help="Only runs with this value, such as City='\"Rome\"'. NAME:TYPE=JSON where the value shows another type.",
    ),
)


def filter_options(command: F) -> F:
    """``--query`` and the filters, given to the command as one ``query``."""

    def wrapped(
        *args: Any,
        query: str,
        statuses: tuple[str, ...],
        types: tuple[str, ...],
        ids: tuple[str, ...],
        id_prefix: str,
        queues: tuple[str, ...],
        parents: tuple[str, ...],
        started_from: datetime | None,
        started_before: datetime | None,
        closed_from: datetime | None,
        closed_before: datetime | None,
        attributes: tuple[str, ...],
        **kwargs: Any,
    ) -> Any:
        try:
            asked = query_of(
                query,
                status=[WorkflowExecutionStatus(each) for each in statuses] or None,
                workflow_type=types or "",
                workflow_id=ids or None,
                workflow_id_prefix=id_prefix,
                task_queue=queues or None,
                parent_workflow_id=parents or None,
                start_time_from=started_from,
                start_time_before=started_before,
                close_time_from=closed_from,
                close_time_before=closed_before,
                search_attributes=TypedSearchAttributes.of_payloads(parse_attributes(attributes, "--search-attribute")),
            )
        except ValueError as error:
            raise Usage(str(error)) from None
        return command(*args, query=asked, **kwargs)

    wrapped = in_place_of(command, wrapped)
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
