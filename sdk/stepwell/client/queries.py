"""Queries as a client asks them: once where the engine holds the call, in turns where it answers at once."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ..api.errors import DeadlineExceeded
from ..api.limits import QUERY_TIMEOUT
from ..api.operations import QUERY_WORKFLOW
from ..api.requests import QueryWorkflowRequest, QueryWorkflowResponse
from .pacing import Pace


async def answer_of(
    call: Callable[[Any, QueryWorkflowRequest], Awaitable[QueryWorkflowResponse]], request: QueryWorkflowRequest
) -> QueryWorkflowResponse:
    """The worker's answer. Raises what ``call`` does, and DeadlineExceeded when there is none within the query's
    timeout."""
    longest = (request.timeout or QUERY_TIMEOUT).total_seconds()
    ends = time.monotonic() + longest
    pace = Pace()
    while True:
        pace.asking()
        response = await call(QUERY_WORKFLOW, request)
        if not response.query_token:
            return response
        left = ends - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(
                f"no worker has answered query {request.query_type!r} of {request.execution.workflow_id!r} within "
                f"{longest:g} s; look whether one serves its task queue, or ask with a longer rpc_timeout"
            )
        await pace.came_empty(left)
        request = msgspec.structs.replace(request, query_token=response.query_token)
