"""The end of a run, waited for."""

from typing import TYPE_CHECKING

from ..api import operations as op
from ..api.common import WorkflowExecution
from ..api.errors import ApiError
from ..api.events import EventAttributes
from ..api.limits import POLL_TIMEOUT
from ..api.requests import GetHistoryRequest
from .checked import checked
from .errors import RPCError
from .pacing import Pace

if TYPE_CHECKING:
    from .client import Client


async def close_event(client: "Client", workflow_id: str, run_id: str) -> EventAttributes:
    """Of that run, or of the newest one. Raises :class:`RPCError`."""
    token = b""
    pace = Pace()
    while True:
        pace.asking()
        request = checked(
            GetHistoryRequest(
                namespace=client.namespace,
                execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
                next_page_token=token,
                wait_new_event=True,
                close_event_only=True,
                timeout=POLL_TIMEOUT,
            )
        )
        try:
            response = await client.transport.call(op.GET_HISTORY, request)
        except ApiError as error:
            raise RPCError(error) from error
        if response.events:
            return response.events[-1].attributes
        token, run_id = response.next_page_token, response.run_id
        await pace.came_empty()
