"""The kill test: workflows are started and signalled over HTTP while server and workers are killed at random moments;
then every promise is checked against the histories."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from stepwell.api import events as e
from stepwell.client import Client, RPCError, WorkflowHandle
from stepwell.exceptions import WorkflowAlreadyStartedError

from tests.kill import processes
from tests.kill.workload import SIGNALS, TASK_QUEUE, KillTestWorkflow, expected_total

_START_TIMEOUT = 60.0
_NOT_REACHED = 4
_ENDS = (e.ActivityTaskCompleted, e.ActivityTaskFailed, e.ActivityTaskTimedOut, e.ActivityTaskCanceled)


@dataclass(frozen=True)
class Plan:
    """``pause`` is the longest time between two kills, in seconds; ``patience`` is how long one workflow may take after
    the last kill."""

    workflows: int
    kills: int
    workers: int = 2
    concurrent: int = 100
    pause: float = 1.0
    server_share: float = 0.5
    patience: float = 120.0
    seed: int = 0


@dataclass
class Report:
    acknowledged: int = 0
    signals: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        head = f"{self.acknowledged} workflows, {self.signals} signals acknowledged; killed: {kills or 'nobody'}"
        return "\n".join([head, *self.problems])


async def run(plan: Plan, folder: Path, cell: Mapping[str, str] | None = None) -> Report:
    """Needs an empty folder. The report says what was promised and which promises were broken. With ``cell``, the
    environment of a cell on AWS, there are two containers side by side, with workers and callers at both."""
    report = Report()
    ports = [processes.free_port() for _ in range(1 if cell is None else 2)]
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    if cell is None:
        servers = [processes.server(folder / "kill.db", ports[0], folder / "server.log")]
    else:
        servers = [processes.container(n, port, cell, folder / f"container{n}.log") for n, port in enumerate(ports)]
    workers = [processes.worker(n, urls[n % len(urls)], folder / f"worker{n}.log") for n in range(plan.workers)]
    async with _running(servers + workers):
        for server, url in zip(servers, urls, strict=True):
            if not await asyncio.to_thread(processes.wait_until_serving, url, _START_TIMEOUT):
                report.problems.append(f"the server did not start:\n{server.tail()}")
                return report
        clients = [await Client.connect(url) for url in urls]
        done = asyncio.Event()
        killer = asyncio.create_task(_kill_at_random(plan, servers, workers, done, report))
        await _drive(plan, clients, report, killer)
        done.set()
        await killer
        _check_victims(servers + workers, report)
        for client in clients:
            await client.close()
    return report


@contextlib.asynccontextmanager
async def _running(victims: list[processes.Victim]) -> AsyncIterator[None]:
    try:
        for victim in victims:
            victim.start()
        yield
    finally:
        for victim in victims:
            victim.kill()


async def _kill_at_random(
    plan: Plan,
    servers: list[processes.Victim],
    workers: list[processes.Victim],
    done: asyncio.Event,
    report: Report,
) -> None:
    """Returns after the planned number of kills, or when the workflows are done first."""
    random = Random(plan.seed)
    for _ in range(plan.kills):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), random.random() * plan.pause)
        if done.is_set():
            return
        victim = random.choice(servers if random.random() < plan.server_share else workers)
        _check_victims(servers + workers, report)
        await asyncio.to_thread(victim.kill)
        report.kills[victim.name.split()[0]] += 1
        victim.start()


def _check_victims(victims: list[processes.Victim], report: Report) -> None:
    """A container that finds the store too slow to start says so and ends; who runs containers starts another one."""
    for victim in victims:
        code = victim.ended_by_itself()
        if code == _NOT_REACHED and victim.name.startswith("container"):
            report.kills["container that did not reach the store"] += 1
            victim.start()
        elif code is not None:
            report.problems.append(f"{victim.name} ended by itself with code {code}:\n{victim.tail()}")


async def _drive(plan: Plan, clients: list[Client], report: Report, killer: "asyncio.Task[None]") -> None:
    """At least the planned number of workflows, and more for as long as there is somebody to kill."""
    running: set[asyncio.Task[None]] = set()
    number = 0
    while (number < plan.workflows or not killer.done()) and not report.problems:
        running.add(asyncio.create_task(_one_workflow(clients[number % len(clients)], number, plan, report)))
        number += 1
        while len(running) >= plan.concurrent:
            _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    if running:
        await asyncio.wait(running)


async def _one_workflow(client: Client, number: int, plan: Plan, report: Report) -> None:
    workflow_id = f"kill-{number}"
    try:
        handle = await _started(client, number, workflow_id)
        report.acknowledged += 1
        acknowledged = []
        for index in range(SIGNALS):
            signal_id = f"{number}-{index}"
            await _until_done(lambda sent=signal_id: handle.signal("note", sent, idempotency_key=sent))
            acknowledged.append(signal_id)
            report.signals += 1
        result = await asyncio.wait_for(_until_done(handle.result), plan.patience + plan.kills * plan.pause)
        report.problems.extend(f"{workflow_id}: {problem}" for problem in _check_result(number, result, acknowledged))
        history = await _until_done(handle.fetch_history)
        report.problems.extend(f"{workflow_id}: {problem}" for problem in _check_history(history, acknowledged))
    except TimeoutError:
        report.problems.append(f"{workflow_id}: did not end")
    except Exception as error:
        report.problems.append(f"{workflow_id}: {type(error).__name__}: {error}")


async def _started(client: Client, number: int, workflow_id: str) -> WorkflowHandle[Any]:
    """A start that was recorded and never answered is found by its id when it is tried again."""
    try:
        handle: WorkflowHandle[Any] = await _until_done(
            lambda: client.start_workflow(KillTestWorkflow.run, number, id=workflow_id, task_queue=TASK_QUEUE)
        )
    except WorkflowAlreadyStartedError:
        handle = client.get_workflow_handle(workflow_id)
    return handle


async def _until_done(call: Any) -> Any:
    """Repeats what the engine could not answer for longer than a client tries; each call is safe to repeat."""
    while True:
        try:
            return await call()
        except RPCError as error:
            if not error.retryable:
                raise
            await asyncio.sleep(0.2)


def _check_result(number: int, result: Any, acknowledged: list[str]) -> list[str]:
    problems = []
    if result["total"] != expected_total(number):
        problems.append(f"the result is {result['total']}, not {expected_total(number)}")
    if any(result["signals"].count(signal_id) != 1 for signal_id in acknowledged):
        problems.append(f"the workflow got signals {result['signals']}, acknowledged were {acknowledged}")
    return problems


def _check_history(history: Any, acknowledged: list[str]) -> list[str]:
    problems = []
    events = history.events
    if [event.event_id for event in events] != list(range(1, len(events) + 1)):
        problems.append("the event ids have gaps")
    scheduled = [event.event_id for event in events if isinstance(event.attributes, e.ActivityTaskScheduled)]
    ends = Counter(event.attributes.scheduled_event_id for event in events if isinstance(event.attributes, _ENDS))
    if any(ends[event_id] != 1 for event_id in scheduled):
        problems.append(f"activities {scheduled} have ends {dict(ends)}")
    signalled = sum(isinstance(event.attributes, e.WorkflowExecutionSignaled) for event in events)
    if signalled < len(acknowledged):
        problems.append(f"{len(acknowledged)} signals were acknowledged, {signalled} are in the history")
    return problems
