"""The history that a workflow task shows: what is new to a worker that has the run in memory, else all of it.

All of it comes by pages: the first with the task, those behind it by GetWorkflowExecutionHistory. Numbered events come
from the log; the last ones are the task's own (``shown_events``).
"""

from typing import NamedTuple

import msgspec
from stepwell.api import limits
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import InvalidArgument, NotFound
from stepwell.api.events import HistoryEvent

from .gateway import Gateway

PAGE_EVENTS = limits.MAX_HISTORY_PAGE_EVENTS
_OF_A_TASK = b"\x02"


class _TaskPage(msgspec.Struct, frozen=True, array_like=True):
    task_token: bytes
    history: bytes


class Page(NamedTuple):
    events: tuple[HistoryEvent, ...]
    next_page_token: bytes


async def first_page(gateway: Gateway, namespace: str, task: r.WorkflowTask) -> Page:
    """What comes with the task."""
    if task.query is not None:
        return Page((), b"") if task.same_worker else await _numbered(gateway, namespace, task.execution, b"")
    incremental = task.same_worker and task.attempt == 1
    if incremental or not task.events or task.events[0].event_id == 1:
        return Page(task.events, b"")
    return await _page(gateway, namespace, task.execution, task.task_token, task.events, b"")


def is_of_task(token: bytes) -> bool:
    return token.startswith(_OF_A_TASK)


async def further_page(gateway: Gateway, namespace: str, execution: WorkflowExecution, token: bytes) -> Page:
    """Raises NotFound when the task's own events are not known here any more."""
    try:
        page = msgspec.msgpack.decode(token[1:], type=_TaskPage)
    except msgspec.DecodeError as error:
        raise InvalidArgument(
            "next_page_token is not one that came with a workflow task; send back the one that did",
            field="next_page_token",
        ) from error
    shown = gateway.shown.get(_of(namespace, page.task_token))
    if shown is None:
        raise NotFound("the workflow task of this page is over, or was given out elsewhere; drop it and poll again")
    return await _page(gateway, namespace, execution, page.task_token, shown, page.history)


async def _page(
    gateway: Gateway,
    namespace: str,
    execution: WorkflowExecution,
    task_token: bytes,
    shown: tuple[HistoryEvent, ...],
    token: bytes,
) -> Page:
    page = await _numbered(gateway, namespace, execution, token)
    last = shown[0].event_id - 1
    before = tuple([event for event in page.events if event.event_id <= last])
    if before and before[-1].event_id == last:
        drop_shown(gateway, namespace, task_token)
        return Page((*before, *shown), b"")
    if not page.next_page_token:
        raise NotFound("the history of this workflow task ends before the task does; drop it and poll again")
    gateway.shown.keep(_of(namespace, task_token), shown)
    following = msgspec.msgpack.encode(_TaskPage(task_token, page.next_page_token))
    return Page(before, _OF_A_TASK + following)


def drop_shown(gateway: Gateway, namespace: str, task_token: bytes) -> None:
    """The task is over."""
    gateway.shown.drop(_of(namespace, task_token))


def _of(namespace: str, task_token: bytes) -> bytes:
    """A token shows nothing in another namespace than its own (MT-09)."""
    return namespace.encode() + b"\0" + task_token


async def _numbered(gateway: Gateway, namespace: str, execution: WorkflowExecution, token: bytes) -> Page:
    asked = r.GetHistoryRequest(
        namespace=namespace,
        execution=execution,
        maximum_page_size=PAGE_EVENTS,
        next_page_token=token,
    )
    answer = await gateway.call(o.GET_HISTORY, asked)
    return Page(answer.events, answer.next_page_token)
