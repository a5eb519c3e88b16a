"""RespondActivityTasks: outcomes of any runs in one request. Each is durable before it is answered.

Outcomes of one run share their commits: all leased ones make one, and all item-held ones one wake-up between them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Sequence

from stepwell.api.errors import ApiError, Unavailable
from stepwell.api.requests import (
    ActivityOutcome,
    ActivityOutcomeReply,
    ActivityPending,
    RespondActivityTasksRequest,
    RespondActivityTasksResponse,
)

from .activities_shell import ActivityShell
from .commit import ExecutionKey
from .leased_outcomes import leased_outcome
from .task_tokens import ActivityToken
from .tokens import TokenSigner
from .workflow_tasks_shell import WorkflowTaskShell

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
        released: dict[tuple[ExecutionKey, str], Asked] = defaultdict(list)
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
            kind = held if not token.leased else released if isinstance(outcome, ActivityPending) else leased
            kind[run].append((position, token, outcome))
        worker_key = request.worker.worker_key
        work: list[Awaitable[dict[int, ActivityOutcomeReply]]] = [
            self._leased(key, run_id, asked, worker_key) for (key, run_id), asked in leased.items()
        ]
        work += [self._released(key, run_id, asked, worker_key) for (key, run_id), asked in released.items()]
        work += [self._held(key, run_id, asked, worker_key) for (key, run_id), asked in held.items()]
        for answered in [await work[0]] if len(work) == 1 else await asyncio.gather(*work):
            replies.update(answered)
        return RespondActivityTasksResponse(replies=tuple([replies[at] for at in range(len(request.outcomes))]))

    async def left_to_items(
        self,
        namespace: str,
        worker_key: str,
        outcomes: Sequence[ActivityOutcome],
        replies: tuple[ActivityOutcomeReply, ...],
    ) -> tuple[ActivityOutcomeReply, ...]:
        """The replies to ends of leased attempts that came with a workflow task, after those that were refused since
        an item is the authority on them by now have been given to it."""
        runs: dict[tuple[ExecutionKey, str], Asked] = defaultdict(list)
        for position, (outcome, reply) in enumerate(zip(outcomes, replies, strict=True)):
            if reply.error_code:
                token = self._signer.open_as(outcome.task_token, ActivityToken, namespace, "activity_outcomes")
                runs[ExecutionKey(token.namespace, token.workflow_id), token.run_id].append((position, token, outcome))
        answers = dict(enumerate(replies))
        for (key, run_id), asked in runs.items():
            answers.update(await self._of_items(key, run_id, asked, worker_key))
        return tuple([answers[position] for position in range(len(replies))])

    async def _of_items(
        self, key: ExecutionKey, run_id: str, asked: Asked, worker_key: str
    ) -> dict[int, ActivityOutcomeReply]:
        detached = await self._activities.detached(key, run_id)
        theirs = [one for one in asked if one[1].scheduled_event_id in detached]
        return await self._held(key, run_id, theirs, worker_key) if theirs else {}

    async def _released(
        self, key: ExecutionKey, run_id: str, asked: Asked, worker_key: str
    ) -> dict[int, ActivityOutcomeReply]:
        """One commit for all of a run. Those that are item-held already only lose their holder."""
        attempts = tuple([(token.scheduled_event_id, token.attempt) for _, token, _ in asked])
        try:
            replies = await self._activities.detach(key, run_id, attempts, released=True)
        except Unavailable:
            raise
        except ApiError as error:
            replies = (ActivityOutcomeReply(error_code=error.code, message=error.message),) * len(asked)
        return {position: reply for (position, _, _), reply in zip(asked, replies, strict=True)}

    async def _leased(
        self, key: ExecutionKey, run_id: str, asked: Asked, worker_key: str
    ) -> dict[int, ActivityOutcomeReply]:
        outcomes = tuple([leased_outcome(token, outcome) for _, token, outcome in asked])
        try:
            replies = await self._workflow_tasks.record_outcomes(key, run_id, outcomes)
        except Unavailable:
            raise
        except ApiError as error:
            replies = (ActivityOutcomeReply(error_code=error.code, message=error.message),) * len(asked)
        answers = {position: reply for (position, _, _), reply in zip(asked, replies, strict=True)}
        if any(reply.error_code for reply in replies):
            refused = [one for one in asked if answers[one[0]].error_code]
            answers.update(await self._of_items(key, run_id, refused, worker_key))
        return answers

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
