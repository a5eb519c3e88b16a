"""Operations on activities without a workflow (AC-28)."""

from stepwell.api import requests as r
from stepwell.api.commands import ScheduleActivityTask

from ..common import principals, spaces
from ..visibility.attributes import CHANGE_VERSION
from . import earlier_starts, standalone
from .commit import ExecutionKey
from .engine_parts import EngineParts
from .requests import Request, RequestCancel, Start, StartActivity, Terminate
from .state import ExecutionState
from .transition import StartReply

_FOR_CODE = frozenset({CHANGE_VERSION})
"""Of the attributes that the system sets the one that is for code to say."""


class StandaloneOperations(EngineParts):
    """For clients. Workers do not tell them from others."""

    @property
    def _activities_alone(self) -> standalone.StandaloneActivities:
        return standalone.StandaloneActivities(self._reader, self._items)

    async def start_activity(self, request: r.StartActivityRequest) -> r.StartActivityResponse:
        self._check_serving()
        if request.search_attributes:
            await self._attribute_types.admit(request.namespace, request.search_attributes, _FOR_CODE)
        key = standalone.key_of(request.namespace, request.activity_id)
        asked = Start(run_id=self._ids.run_id(), start=_as_run(request), principal=principals.current())
        command = _command(request)

        async def prepare(state: ExecutionState | None) -> Request:
            marked = await earlier_starts.marked(self._log, key, state, asked, self._clock.now())
            return StartActivity(start=marked, command=command, start_delay=request.start_delay)

        starting = self._starting
        if not starting.try_enter():
            await starting.enter()
        try:
            outcome = await self._executions.transact(key, None, prepare)
        finally:
            starting.leave()
        reply = outcome.transition.reply
        if not isinstance(reply, StartReply):
            raise TypeError(f"a start was answered with {type(reply).__name__}")
        return r.StartActivityResponse(run_id=reply.run_id, started=reply.started)

    async def poll_activity(self, request: r.PollActivityRequest) -> r.PollActivityResponse:
        self._check_serving()
        return await self._activities_alone.poll(request)

    async def describe_activity(self, request: r.DescribeActivityRequest) -> r.DescribeActivityResponse:
        return await self._activities_alone.describe(request)

    async def cancel_activity(self, request: r.CancelActivityRequest) -> r.CancelActivityResponse:
        self._check_serving()
        key = standalone.key_of(request.namespace, request.activity_id)
        asked = RequestCancel(
            run_id=request.run_id,
            reason=request.reason,
            identity=request.identity,
            request_id=request.request_id,
            principal=principals.current(),
        )
        with standalone.spoken_of(key):
            await self._executions.transact(key, asked)
        return r.CancelActivityResponse()

    async def terminate_activity(self, request: r.TerminateActivityRequest) -> r.TerminateActivityResponse:
        self._check_serving()
        key = standalone.key_of(request.namespace, request.activity_id)
        asked = Terminate(
            run_id=request.run_id, reason=request.reason, identity=request.identity, principal=principals.current()
        )
        with standalone.spoken_of(key):
            await self._take_in_its_end(key)
            await self._executions.transact(key, asked)
        return r.TerminateActivityResponse()

    async def delete_activity(self, request: r.DeleteActivityRequest) -> r.DeleteActivityResponse:
        self._check_serving()
        key = standalone.key_of(request.namespace, request.activity_id)
        with standalone.spoken_of(key):
            await self._take_in_its_end(key)
            await self._deleting.ask(key, request.run_id, request.identity, "")
        return r.DeleteActivityResponse()

    async def _take_in_its_end(self, key: ExecutionKey) -> None:
        """What its worker was told is recorded counts before what is asked now, also when who was to take it in has
        died."""
        state = await self._executions.read(key)
        if state is not None:
            await self._activities.wake_up(key, state.run_id)

    async def list_activities(self, request: r.ListActivitiesRequest) -> r.ListActivitiesResponse:
        asked = r.ListWorkflowsRequest(
            namespace=spaces.of_activities(request.namespace),
            page_size=request.page_size,
            next_page_token=request.next_page_token,
            query=request.query,
        )
        found = await self._listing.list_workflows(asked)
        return r.ListActivitiesResponse(
            executions=tuple(map(standalone.listed, found.executions)), next_page_token=found.next_page_token
        )

    async def count_activities(self, request: r.CountActivitiesRequest) -> r.CountActivitiesResponse:
        asked = r.CountWorkflowsRequest(
            namespace=spaces.of_activities(request.namespace),
            query=request.query,
            next_page_token=request.next_page_token,
        )
        found = await self._listing.count_workflows(asked)
        return r.CountActivitiesResponse(count=found.count, groups=found.groups, next_page_token=found.next_page_token)


def _as_run(request: r.StartActivityRequest) -> r.StartWorkflowRequest:
    """The run that the activity is all of; what belongs to the activity alone is in its command."""
    return r.StartWorkflowRequest(
        namespace=spaces.of_activities(request.namespace),
        workflow_id=request.activity_id,
        workflow_type=request.activity_type,
        task_queue=request.task_queue,
        memo=request.memo,
        search_attributes=request.search_attributes,
        workflow_id_reuse_policy=request.id_reuse_policy,
        workflow_id_conflict_policy=request.id_conflict_policy,
        priority=request.priority,
        identity=request.identity,
        request_id=request.request_id,
    )


def _command(request: r.StartActivityRequest) -> ScheduleActivityTask:
    fields = set(ScheduleActivityTask.__struct_fields__) & set(r.StartActivityRequest.__struct_fields__)
    given = {name: getattr(request, name) for name in fields}
    return ScheduleActivityTask(**given, request_eager_execution=False)
