"""Lists of the workers that poll (VI-20)."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ..api import operations as op
from ..api.requests import ListWorkersRequest, WorkerListEntry
from .lists import Calls

if TYPE_CHECKING:
    from .outbound import RootOutbound


class WorkerCalls:
    """The methods that a client has for workers."""

    namespace: str
    _root: "RootOutbound"

    def list_workers(
        self, *, task_queue: str = "", identity: str = "", identity_prefix: str = "", page_size: int = 100
    ) -> AsyncIterator[WorkerListEntry]:
        """Workers that poll now or did in the last five minutes, one entry for each task queue, in the order of task
        queues and identities. Only in memory and for a moment: no list of those there ever were. A control plane on
        AWS wants to be told ``task_queue`` where a namespace has more than 10,000."""
        asked = ListWorkersRequest(
            namespace=self.namespace,
            task_queue=task_queue,
            identity=identity,
            identity_prefix=identity_prefix,
            page_size=page_size,
        )
        return all_workers(self._root, asked)


async def all_workers(engine: Calls, asked: ListWorkersRequest) -> AsyncIterator[WorkerListEntry]:
    """Over all pages."""
    token = b""
    while True:
        request = ListWorkersRequest(
            namespace=asked.namespace,
            task_queue=asked.task_queue,
            identity=asked.identity,
            identity_prefix=asked.identity_prefix,
            page_size=asked.page_size,
            next_page_token=token,
        )
        page = await engine.call(op.LIST_WORKERS, request)
        for entry in page.workers:
            yield entry
        token = page.next_page_token
        if not token:
            return
