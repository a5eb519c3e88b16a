"""Runs as those see them who start and end them from outside of any workflow, and for good: a schedule.

Whoever asks again, with the same run id, finds the run that was started.
"""

from enum import Enum

import msgspec
from stepwell.api.errors import NotFound

from ..namespaces.payloads import check_payloads
from ..namespaces.records import check_starts
from ..namespaces.registry import Namespaces
from ..visibility.attributes import MANAGED
from . import request_ids
from .answers import ChildClosed
from .attribute_types import AttributeTypes
from .commit import ExecutionKey
from .crossing_ends import ChainEnds
from .executions import Executions, unavailable
from .ports import ExecutionLog, StoreUnavailable
from .requests import EarlierStart, Request, RequestCancel, Start, Terminate
from .state import ExecutionState, ParentLink
from .transition import StartReply

_replace = msgspec.structs.replace


class Chain(Enum):
    OPEN = "open"
    GONE = "gone"
    """Never started, or no longer kept."""


class OutsideRuns:
    def __init__(
        self, log: ExecutionLog, executions: Executions, ends: ChainEnds, types: AttributeTypes, namespaces: Namespaces
    ) -> None:
        self.types = types
        self._namespaces = namespaces
        self._log = log
        self._executions = executions
        self._ends = ends

    async def start(self, start: Start, *, known: bool) -> StartReply:
        """``known``: it may have been started before, longer ago than request ids are remembered for. Raises what a
        start is refused with, and Unavailable."""
        key = ExecutionKey(start.start.namespace, start.start.workflow_id)
        check_starts(self._namespaces.get(key.namespace))
        largest = self._namespaces.limits(key.namespace).max_payload_bytes
        if largest is not None:
            check_payloads(start.start, largest, key.namespace)
        await self.types.admit(key.namespace, start.start.search_attributes, MANAGED)

        async def prepare(state: ExecutionState | None) -> Request:
            if known and state is not None and await self._is_there(key, state, start):
                return _replace(start, earlier=EarlierStart(run_id=start.run_id, first_run_id=start.run_id))
            return start

        outcome = await self._executions.transact(key, None, prepare)
        reply = outcome.transition.reply
        if not isinstance(reply, StartReply):
            raise TypeError(f"a start was answered with {type(reply).__name__}")
        return reply

    async def _is_there(self, key: ExecutionKey, state: ExecutionState, start: Start) -> bool:
        if request_ids.started(state, start.start.request_id) is not None:
            return False  # the state tells itself
        try:
            return await self._log.find_run(key, start.run_id) is not None
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def run_state(self, key: ExecutionKey, run_id: str) -> ExecutionState | None:
        """Of a run that is kept. Raises Unavailable."""
        try:
            commit = await self._log.find_run(key, run_id)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return None if commit is None else commit.state_of(run_id)

    async def open_run(self, key: ExecutionKey, first_run_id: str) -> str:
        """Of the chain that began with this run; empty when it has ended. Raises Unavailable."""
        state = await self._executions.read(key)
        if state is None or state.first_run_id != first_run_id or state.close_time is not None:
            return ""  # two chains of one id are never open
        return state.run_id

    async def end_of(self, key: ExecutionKey, first_run_id: str, waiter: ParentLink) -> ChildClosed | Chain:
        """Of the chain that began with this run. Raises Unavailable."""
        state = await self._executions.read(key)
        if state is None or state.first_run_id != first_run_id:
            state = await self._ends.last_of_chain(key, first_run_id)
        if state is None:
            return Chain.GONE
        if state.close_time is None:
            return Chain.OPEN
        return await self._ends.closed(key, state, waiter)

    async def cancel(self, key: ExecutionKey, first_run_id: str, reason: str, request_id: str) -> None:
        """Of a chain that has ended there is nothing to be done. Raises Unavailable."""
        asked = RequestCancel(run_id="", first_run_id=first_run_id, reason=reason, request_id=request_id)
        await self._end(key, asked)

    async def terminate(self, key: ExecutionKey, first_run_id: str, reason: str) -> None:
        await self._end(key, Terminate(run_id="", first_run_id=first_run_id, reason=reason))

    async def _end(self, key: ExecutionKey, asked: Request) -> None:
        try:
            await self._executions.transact(key, asked)
        except NotFound:
            pass  # it has ended
