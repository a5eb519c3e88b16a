"""Clients of the simulation: each starts one workflow and then signals, cancels, terminates, queries and reads as its
seed says, repeating what was not answered. What was promised to them is written down in a ledger."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from stepwell.api.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    NotFound,
    QueryFailed,
    ResourceExhausted,
    Unavailable,
    WorkflowExecutionAlreadyStarted,
    WorkflowExecutionClosing,
)
from stepwell.api.operations import Operation
from stepwell.transport import Transport

from tests.simulation.history_rules import Violation
from tests.simulation.ledger import Ledger, payload
from tests.simulation.operators import Operator
from tests.simulation.resets import Resetter
from tests.simulation.starters import Starter, start_fields
from tests.simulation.updaters import Updater

Req = TypeVar("Req")
Resp = TypeVar("Resp")

_TRANSIENT = (Unavailable, ResourceExhausted, DeadlineExceeded, WorkflowExecutionClosing)

_ASKS_AGAIN_SECONDS = 15.0
"""An engine that holds no calls has the caller ask again."""


class SimulatedClient:
    """``seconds`` is how long it does things at random; after that it only makes sure that the program can end."""

    def __init__(
        self, transport: Transport, random: Random, ledger: Ledger, task_queue: str, until: Callable[[], bool]
    ) -> None:
        self._transport = transport
        self._random = random
        self._ledger = ledger
        self._task_queue = task_queue
        self._calm = until
        self._run_id = ""
        self._requests = 0
        self.bursts = False
        self.replaces = False
        self.keys = False
        self.updates = False
        self.starts = False
        self.resets = False
        self.steers = False
        self.query_within: float | None = None
        self.pause = 0.0
        """Seconds between two calls that an engine which holds none answers with nothing."""
        self._keyed: list[r.SignalWorkflowRequest] = []

    async def live(self) -> None:
        """Returns when its workflow has ended."""
        random = self._random
        await asyncio.sleep(random.random() * 20.0)
        self._run_id = await self._start(self._request_id())
        extras = [self._send_signals()]
        if random.random() < 0.2:
            extras.append(self._cancel_sometime())
        if random.random() < 0.08 or self._ledger.program.cron:
            extras.append(self._terminate_sometime())
        if random.random() < 0.5:
            extras.append(self._read_history())
        if random.random() < 0.4 or self.query_within is not None:
            extras.append(self._ask())
        if random.random() < 0.3 or self.replaces:
            extras.append(self._replace() if self.replaces else self._start_again())
        extras += self._by_setting()
        await asyncio.gather(self._wait_for_end(), *extras)
        if self.resets and self._ledger.program.cron:
            await self._terminate()  # a reset may have come behind the other one
        self._ledger.finished = True

    def _by_setting(self) -> Iterator[Coroutine[Any, Any, None]]:
        how = (self._until_answered, self._random, self._ledger, self._some_time)
        if self.starts and self._ledger.may_restart:
            yield Starter(*how, self._task_queue).send_some()
        if self.resets:
            yield Resetter(*how).reset_some()
        if self.steers:
            yield Operator(*how).steer()
        if self.updates:
            yield Updater(*how).send_some()

    # --- what it does ---

    async def _start(
        self,
        request_id: str,
        conflict: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
        reuse: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    ) -> str:
        ledger = self._ledger
        fields = start_fields(ledger, self._task_queue, request_id)
        request = r.StartWorkflowRequest(**fields, workflow_id_conflict_policy=conflict, workflow_id_reuse_policy=reuse)
        response = await self._until_answered(o.START_WORKFLOW, request)
        if response.started:
            ledger.started[request_id] = response.run_id
        return response.run_id

    async def _start_again(self) -> None:
        """The same request again, or another one for the same id: neither may make a second open run."""
        if self._ledger.may_restart:
            await self._restart()
            return
        for _ in range(self._random.randint(1, 2)):
            await self._some_time(60.0)
            if self._calm():
                return
            if self._random.random() < 0.6:
                first = self._ledger.start_requests[0]
                run_id = await self._start(first)
                if run_id != self._run_id:
                    raise Violation(f"request {first} made run {self._run_id}, its repeat says {run_id}")
                continue
            try:
                run_id = await self._start(
                    self._request_id(),
                    conflict=self._random.choice(
                        [WorkflowIDConflictPolicy.FAIL, WorkflowIDConflictPolicy.USE_EXISTING]
                    ),
                    reuse=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                )
            except WorkflowExecutionAlreadyStarted:
                continue
            self._ledger.joined.append(run_id)

    async def _restart(self) -> None:
        """Another run of the id: over the open one, or behind the closed one."""
        await self._some_time(60.0)
        policy = self._random.choice(list(WorkflowIDConflictPolicy))
        with contextlib.suppress(WorkflowExecutionAlreadyStarted):
            self._run_id = await self._start(self._request_id(), conflict=policy)
            await self._wait_for_end()

    async def _replace(self) -> None:
        """Runs over the open one, soon one after the other, each waited for as the first one is."""
        waiting: list[asyncio.Task[None]] = []
        for _ in range(self._random.randint(1, 4)):
            await self._some_time(12.0)
            self._run_id = await self._start(self._request_id(), conflict=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
            waiting.append(asyncio.ensure_future(self._wait_for_end(self._execution(run=True))))
        await asyncio.gather(*waiting)

    async def _send_signals(self) -> None:
        needed = self._ledger.program.signals_needed
        total = needed + (self._random.randint(0, 8) if self._random.random() < 0.5 else 0)
        pace = self._random.choice([0.0, 0.3, 15.0, 15.0])
        if self._random.random() < 0.15:
            pace, total = 0.5, max(total, 60)
        for _ in range(total):
            await self._some_time(pace)
            try:
                await (self._burst() if self.bursts else self._signal())
            except NotFound:
                return

    async def _burst(self) -> None:
        """Up to a dozen signals at once; each is recorded or refused on its own."""
        signals = [self._signal() for _ in range(self._random.randint(1, 12))]
        for result in await asyncio.gather(*signals, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def _signal(self) -> None:
        signal_id = f"s{len(self._ledger.signals_sent)}"
        self._ledger.signals_sent.append(signal_id)
        chained = self._goes_on
        request = r.SignalWorkflowRequest(
            execution=WorkflowExecution(workflow_id=self._ledger.workflow_id) if chained else self._execution(),
            signal_name="note",
            input=(payload(signal_id),),
            request_id=self._request_id(),
            idempotency_key=signal_id if self.keys else "",
        )
        if not (chained and await self._signals_run(request)):
            await self._until_answered(o.SIGNAL_WORKFLOW, request)
        self._ledger.signals_acknowledged.append(signal_id)
        if self.keys:
            self._keyed.append(request)
            await self._until_answered(o.SIGNAL_WORKFLOW, self._random.choice(self._keyed))
        elif self._random.random() < 0.15:
            await self._until_answered(o.SIGNAL_WORKFLOW, request)

    async def _signals_run(self, request: r.SignalWorkflowRequest) -> bool:
        """To the run that it knows, which may have gone on as another."""
        if self._random.random() < 0.7:
            return False
        try:
            await self._until_answered(o.SIGNAL_WORKFLOW, replace(request, execution=self._execution(run=True)))
        except NotFound:
            return False
        return True

    async def _cancel_sometime(self) -> None:
        await self._some_time(60.0)
        self._ledger.cancel_sent = True
        request = r.CancelWorkflowRequest(execution=self._execution(), request_id=self._request_id(), reason="enough")
        try:
            await self._until_answered(o.CANCEL_WORKFLOW, request)
        except NotFound:
            if not self._goes_on:
                raise

    async def _terminate_sometime(self) -> None:
        await self._some_time(90.0)
        await self._terminate()

    async def _terminate(self) -> None:
        self._ledger.terminate_sent = True
        current = WorkflowExecution(workflow_id=self._ledger.workflow_id)
        execution = current if self._goes_on else self._execution()
        request = r.TerminateWorkflowRequest(execution=execution, reason="at once")
        try:
            await self._until_answered(o.TERMINATE_WORKFLOW, request)
        except NotFound:
            return

    async def _read_history(self) -> None:
        for _ in range(self._random.randint(1, 3)):
            token = b""
            page = self._random.choice([1, 3, 100])
            execution = self._execution(run=True)
            while True:
                request = r.GetHistoryRequest(execution=execution, maximum_page_size=page, next_page_token=token)
                response = await self._until_answered(o.GET_HISTORY, request)
                token = response.next_page_token
                if not token:
                    break
            await self._some_time(30.0)

    async def _ask(self) -> None:
        often = self.query_within is not None
        for _ in range(self._random.randint(1, 3) * (10 if often else 1)):
            await self._some_time(4.0 if often else 30.0)
            execution = self._execution(run=True)
            request = r.QueryWorkflowRequest(execution=execution, query_type="signals")
            began = asyncio.get_running_loop().time()
            try:
                response = await self._transport.call(o.QUERY_WORKFLOW, request)
                while response.query_token and asyncio.get_running_loop().time() - began < _ASKS_AGAIN_SECONDS:
                    await asyncio.sleep(0.2)
                    again = replace(request, query_token=response.query_token)
                    response = await self._transport.call(o.QUERY_WORKFLOW, again)
            except (FailedPrecondition, QueryFailed, *_TRANSIENT):
                continue
            finally:
                self._check_wait(asyncio.get_running_loop().time() - began)
            if response.query_token:
                continue
            answer = msgspec.json.decode(response.result[0].data, type=list[str])
            self._ledger.query_answers.append((execution.run_id, answer))

    def _check_wait(self, seconds: float) -> None:
        if self.query_within is not None and seconds > self.query_within:
            raise Violation(f"a query waited {seconds:.1f} s, and must not for more than {self.query_within:.1f} s")

    async def _wait_for_end(self, execution: WorkflowExecution | None = None) -> None:
        token = b""
        execution = execution or self._execution(run=True)
        while True:
            request = r.GetHistoryRequest(
                execution=execution, wait_new_event=True, close_event_only=True, next_page_token=token
            )
            response = await self._until_answered(o.GET_HISTORY, request)
            token = response.next_page_token
            if not response.events:
                if self.pause:
                    await asyncio.sleep(self.pause)
                continue
            following = getattr(response.events[0].attributes, "new_execution_run_id", "")
            if not following:
                return
            execution, token = replace(execution, run_id=following), b""

    # --- how ---

    async def _some_time(self, longest: float) -> None:
        if not self._calm():
            await asyncio.sleep(self._random.random() * longest)

    @property
    def _goes_on(self) -> bool:
        """The workflow may be open in another run than the one that it knows."""
        return self._ledger.program.goes_on or self.resets

    def _request_id(self) -> str:
        self._requests += 1
        return f"{self._ledger.workflow_id}-r{self._requests}"

    def _execution(self, run: bool = False) -> WorkflowExecution:
        run = run or self._random.random() < 0.3
        return WorkflowExecution(workflow_id=self._ledger.workflow_id, run_id=self._run_id if run else "")

    async def _until_answered(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        pause = 0.1
        while True:
            try:
                return await self._transport.call(operation, request)
            except _TRANSIENT:
                await asyncio.sleep(pause * (0.5 + self._random.random()))
                pause = min(5.0, pause * 2)
