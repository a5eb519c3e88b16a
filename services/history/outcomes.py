"""RespondActivityTasks: outcomes of any runs in one request. Each is durable before it is answered.

Outcomes of one run share their commits: all leased ones make one, and all item-held ones one wake-up between them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable

from stepwell.api.errors import ApiError, Unavailable
from stepwell.api.requests import (
    ActivityOutcome,
    ActivityOutcomeReply,
    RespondActivityTasksRequest,
    RespondActivityTasksResponse,
)

from .activities_shell import ActivityShell
from .commit import ExecutionKey
from .requests import ActivityToken
from .tokens import TokenSigner
from .workflow_tasks_shell import WorkflowTaskShell, leased_outcome

Asked = list[tuple[int, ActivityToken, ActivityOutcome]]
"""Position in the request, token, outcome."""


class ActivityOutcomes:
    def __init__(self, activities: ActivityShell, workflow_tasks: WorkflowTaskShell, signer: TokenSigner) -> None:
        self._activities = activities
        self._workflow_tasks = workflow_tasks
        self._signer = signer

    async def respond(self, request: RespondActivityTasksRequest) -> RespondActivityTasksResponse:
        """Raises Unavailable when any of them could not be recorded; repeating the whole request is safe."""
        replies: dict[int, ActivityOutcomeReply] = {}
        leased: dict[tuple[ExecutionKey, str], Asked] = defaultdict(list)
        held: dict[tuple[ExecutionKey, str], Asked] = defaultdict(list)
        for position, outcome in enumerate(request.outcomes):
            try:
                token = self._signer.open_as(
                    outcome.task_token, ActivityToken, request.namespace, f"outcomes[{position}].task_token"
                )
            except ApiError as error:
                replies[position] = ActivityOutcomeReply(error_code=error.code, message=error.message)
                continue
            run = (ExecutionKey(token.namespace, token.workflow_id), token.run_id)
            (leased if token.leased else held)[run].append((position, token, outcome))
        work: list[Awaitable[dict[int, ActivityOutcomeReply]]] = [
            self._leased(key, run_id, asked) for (key, run_id), asked in leased.items()
        ]
        worker_key = request.worker.worker_key
        work += [self._held(key, run_id, asked, worker_key) for (key, run_id), asked in held.items()]
        for answered in [await work[0]] if len(work) == 1 else await asyncio.gather(*work):
            replies.update(answered)
        return RespondActivityTasksResponse(replies=tuple([replies[at] for at in range(len(request.outcomes))]))

    async def _leased(self, key: ExecutionKey, run_id: str, asked: Asked) -> dict[int, ActivityOutcomeReply]:
        outcomes = tuple([leased_outcome(token, outcome) for _, token, outcome in asked])
        try:
            replies = await self._workflow_tasks.record_outcomes(key, run_id, outcomes)
        except Unavailable:
            raise
        except ApiError as error:
            replies = (ActivityOutcomeReply(error_code=error.code, message=error.message),) * len(asked)
        return {position: reply for (position, _, _), reply in zip(asked, replies, strict=True)}

    async def _held(
        self, key: ExecutionKey, run_id: str, asked: Asked, worker_key: str
    ) -> dict[int, ActivityOutcomeReply]:
        respond = self._activities.respond
        if len(asked) == 1:
            replies = [await respond(asked[0][1], asked[0][2], worker_key)]
        else:
            replies = list(await asyncio.gather(*(respond(token, outcome, worker_key) for _, token, outcome in asked)))
        await self._activities.wake_up(key, run_id)
        return {position: reply for (position, _, _), reply in zip(asked, replies, strict=True)}
