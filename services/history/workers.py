"""Lists of workers (VI-20), made of polls: pages, and one entry for all that a worker polls of one queue. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import InvalidArgument
from stepwell.api.limits import MAX_LIST_PAGE
from stepwell.api.requests import ListWorkersRequest, ListWorkersResponse, PollerInfo, WorkerInfo, WorkerListEntry

_TOKEN = "next_page_token"


class Seen(NamedTuple):
    """A poller of one queue; ``worker`` as far as this process has heard it itself."""

    task_queue: str
    kind: TaskQueueKind
    poller: PollerInfo
    worker: WorkerInfo | None


class Place(NamedTuple):
    """Where in a list an entry is."""

    task_queue: str
    identity: str


def place_of(token: bytes) -> Place | None:
    """Behind which a page begins. Raises InvalidArgument."""
    if not token:
        return None
    try:
        return Place(*msgspec.json.decode(token, type=tuple[str, str]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidArgument(
            f"{_TOKEN} is none of ListWorkers; send back the one that came with the page before", field=_TOKEN
        ) from None


def page_of(request: ListWorkersRequest, seen: Iterable[Seen]) -> ListWorkersResponse:
    """Those that fit, by task queue and identity."""
    after = place_of(request.next_page_token)
    found: dict[Place, WorkerListEntry] = {}
    for each in seen:
        identity = each.poller.identity
        if (request.identity and identity != request.identity) or not identity.startswith(request.identity_prefix):
            continue
        place = Place(each.task_queue, identity)
        if after is None or place > after:
            found[place] = _with(found.get(place), each)
    in_order = sorted(found)
    limit = request.page_size or MAX_LIST_PAGE
    return ListWorkersResponse(
        workers=tuple(found[place] for place in in_order[:limit]),
        next_page_token=msgspec.json.encode(in_order[limit - 1]) if len(in_order) > limit else b"",
    )


def _with(entry: WorkerListEntry | None, seen: Seen) -> WorkerListEntry:
    """What was heard last counts, of a worker that polls for several kinds of tasks."""
    time, worker = seen.poller.last_access_time, seen.worker
    if entry is None:
        entry = WorkerListEntry(
            identity=seen.poller.identity, task_queue=seen.task_queue, kinds=(), last_poll_time=time
        )
    later = time >= entry.last_poll_time
    changed = msgspec.structs.replace(
        entry, kinds=(*entry.kinds, seen.kind), last_poll_time=max(time, entry.last_poll_time)
    )
    if worker is None or (entry.worker_key and not later):
        return changed
    return msgspec.structs.replace(changed, worker_key=worker.worker_key, build_id=worker.build_id)
