"""What a conformance feature is tried in: a :class:`Case` that knows the runs it started and checks each at the end."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from stepwell.api import operations as op
from stepwell.api import requests as r
from stepwell.api.commands import Command
from stepwell.api.enums import CompletionOutcome, PendingActivityState
from stepwell.client import Client, WorkflowHandle
from stepwell.replay.replayer import Replayer
from stepwell.worker import Worker
from stepwell.workflow.definition import WorkflowDefinition

from tests.simulation.history_rules import HistoryRules
from tests.support.api_server import served_api
from tests.support.cases import Case, Setting, until
from tests.support.expected_history import Line, as_text, first_misfit


class Addressed(Protocol):
    @property
    def address(self) -> str: ...


BY_HAND = r.WorkerInfo(identity="by hand", worker_key="by hand")
_PATIENCE = timedelta(seconds=30)
"""Code that only stands still because others have the machine is not stuck."""

_ALSO_OF_REPLAYS = ("workflow_failure_exception_types", "interceptors")
"""Options of workers that replays need, too."""


@dataclass(frozen=True)
class _Started:
    name: str
    handle: WorkflowHandle[Any]
    run_id: str


class Feature(Case):
    """Ids and the task queue are the test's own, since tests share a server. At its end each run that was started
    obeys the history rules, is what ``expected.txt`` says, and can be replayed."""

    def __init__(
        self, setting: Setting, address: str, client: Client, test: str, expected: Mapping[str, Sequence[Line]]
    ) -> None:
        super().__init__(setting, address, client, task_queue=f"{test}-{setting}")
        self._test = test
        self._expected = expected
        self._started: list[_Started] = []
        self._definitions: dict[str, Any] = {}
        self._replaying: dict[str, Any] = {}

    def worker(self, workflows: Sequence[Any] = (), activities: Sequence[Any] = (), **options: Any) -> Worker:
        """Of two workflows of one name, the one given last is the one that histories are replayed with."""
        options.setdefault("deadlock_timeout", _PATIENCE)
        self._definitions |= {WorkflowDefinition.must_of(workflow).name: workflow for workflow in workflows}
        self._replaying |= {option: options[option] for option in _ALSO_OF_REPLAYS if option in options}
        return super().worker(workflows, activities, **options)

    async def start(self, workflow: Any, *args: Any, id: str = "run", **options: Any) -> WorkflowHandle[Any]:
        """``name`` is the run's name in ``expected.txt`` where that is not its id: two runs of one id have two.
        A start that finds a run which is known already adds none."""
        name = options.pop("name", id)
        handle = await super().start(workflow, *args, id=self.id_of(id), **options)
        await self.follow(handle, name)
        return handle

    async def follow(self, handle: WorkflowHandle[Any], name: str) -> None:
        """Checks this run, too, which somebody else started: its section of ``expected.txt`` is ``[test name]``."""
        run_id = handle.result_run_id or handle.run_id or (await handle.describe()).run_id
        if run_id not in {known.run_id for known in self._started}:
            self._started.append(_Started(name, handle, run_id))

    def id_of(self, id: str) -> str:
        """The workflow id that stands for the one a test has chosen."""
        return f"{self.task_queue}-{id}"

    def run(self, handle: WorkflowHandle[Any]) -> WorkflowHandle[Any]:
        """Bound to the run that this handle's start made, whatever became of its id."""
        return self.client.get_workflow_handle(handle.id, run_id=handle.result_run_id)

    async def idle(self, handle: WorkflowHandle[Any]) -> None:
        """Waits until the workflow has seen all that came, so that what comes next has a task of its own."""

        current = self.client.get_workflow_handle(handle.id) if self.setting.continued else handle

        async def without_task() -> bool:
            return (await current.describe()).pending_workflow_task is None

        await until(without_task)

    async def started(self, handle: WorkflowHandle[Any]) -> None:
        """Waits until an activity of the run is with a worker."""

        async def with_a_worker() -> bool:
            pending = (await handle.describe()).pending_activities
            return any(activity.state is PendingActivityState.STARTED for activity in pending)

        await until(with_a_worker)

    async def take_task(self) -> r.WorkflowTask:
        """The next workflow task, taken by hand: it is started, and stays so until :meth:`complete_task`."""
        request = r.PollWorkflowTaskRequest(task_queue=self.task_queue, worker=BY_HAND, timeout=timedelta(seconds=10))
        (task,) = (await self.client.transport.call(op.POLL_WORKFLOW_TASK, request)).tasks
        return task

    async def complete_task(self, task: r.WorkflowTask, *commands: Command) -> CompletionOutcome:
        """With the commands that the workflow's code would give: the history is replayed at the end."""
        request = r.RespondWorkflowTaskCompletedRequest(
            task_token=task.task_token, nonce=uuid4().hex, worker=BY_HAND, commands=commands
        )
        return (await self.client.transport.call(op.RESPOND_WORKFLOW_TASK_COMPLETED, request)).outcome

    async def check(self) -> None:
        """Raises AssertionError, with the lines that the history would need."""
        for started in self._started:
            for number, run_id in enumerate([run_id async for run_id in self._chain(started)], 1):
                await self._check_run(started, run_id, number)

    async def _chain(self, started: _Started) -> AsyncIterator[str]:
        run_id = started.run_id
        while run_id:
            yield run_id
            history = await self._run_of(started, run_id).fetch_history()
            run_id = getattr(history.events[-1].attributes, "new_execution_run_id", "")

    def _run_of(self, started: _Started, run_id: str) -> WorkflowHandle[Any]:
        return self.client.get_workflow_handle(started.handle.id, run_id=run_id)

    async def _check_run(self, started: _Started, run_id: str, number: int) -> None:
        handle = self._run_of(started, run_id)
        history = await handle.fetch_history()
        rules = HistoryRules()
        for event in history.events:
            rules.add(event)
        rules.end_of_commit(outstanding=(await handle.describe()).pending_workflow_task is not None)
        if not self.setting.continued and not self.setting.aws:  # there, hops decide which tasks are one
            parts = [self._test, *([] if started.name == "run" else [started.name]), *([str(number)] * (number > 1))]
            self._check_expected(" ".join(parts), history.events)
        if self._definitions:
            await Replayer(workflows=list(self._definitions.values()), **self._replaying).replay_workflow(history)

    def _check_expected(self, section: str, events: Sequence[Any]) -> None:
        lines = self._expected.get(section)
        what = f"has no section [{section}]" if lines is None else first_misfit(lines, events)
        assert not what, f"expected.txt: {what}; the history is\n[{section}]\n{as_text(events)}\n"


@asynccontextmanager
async def opened(setting: Setting, folder: Path, server: str) -> AsyncIterator[tuple[str, Client]]:
    """Address and client: of the server when over HTTP, else of an engine in this process on a new file."""
    address = server if setting.over_http else f"sqlite:///{folder / 'feature.db'}"
    async with await Client.connect(address) as client:
        yield address, client


@contextmanager
def server_in_a_thread(
    served: Callable[[], AbstractAsyncContextManager[Addressed]] = served_api,
) -> Iterator[str]:
    """The address of a server with a loop of its own, which outlives the loop of a test."""
    started: Future[tuple[str, Callable[[], object]]] = Future()

    async def serve() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        async with served() as api:
            started.set_result((api.address, lambda: loop.call_soon_threadsafe(stop.set)))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run, name="conformance-server")
    thread.start()
    address, stop = started.result()
    try:
        yield address
    finally:
        stop()
        thread.join()
