"""WC-36: a collision of writes that is taken for "not found", for "already closed" or for a fault that lasts.

Field: cancelled transactions and throttling told callers that things did not exist, or were swallowed as lost races.
Here two processes of one installation change one workflow at once, through a proxy that answers a fifth of the writes
with a conflict, throttles, refuses some as invalid, and loses answers of writes that were carried out.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from stepwell.api import requests as r
from stepwell.api.errors import Unavailable
from stepwell.api.events import WorkflowExecutionSignaled as Signaled

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.faults import AwsRefused
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.backend import Backend
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.history.hints import encode_hint
from stepwell_server.history.ports import WorkflowTaskRef
from tests.support.aws.cells import Cell
from tests.support.aws.fault_proxy import FaultProxy, fault_proxy
from tests.support.counting import CountingStore
from tests.support.engine import QUEUE, Driver, activity, types
from tests.support.updates import ADMITTED, accepted, completed, update

SIGNALS, ACTIVITIES, BEATS, UPDATES = 100, 5, 4, 10
RATES = {"conflict": 0.2, "throttling": 0.05, "validation": 0.01, "cut": 0.03}


async def process(backend: Backend) -> Driver:
    store = CountingStore(backend.log)  # type: ignore[arg-type]
    engine = Engine(
        log=store,  # type: ignore[arg-type]
        timers=backend.timers,
        visibility=backend.visibility,
        clock=backend.clock,
        ids=backend.ids,
        token_key=backend.token_key,
        settings=EngineSettings(process=ProcessKind.ONE_OF_MANY, sweeps=False),
    )
    await engine.start()
    return Driver(engine, store)


@pytest.fixture
async def world(cell: Cell) -> AsyncIterator[tuple[Driver, Driver, FaultProxy]]:
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(fault_proxy(cell.environment["AWS_ENDPOINT_URL"], 36, **RATES))
        proxy.on = False
        drivers: list[Driver] = []
        for _ in range(2):
            clients = AwsClients(endpoint_url=proxy.url)
            backend = await aws_backend(AwsSettings(cell.names.cell), clients=clients)
            stack.push_async_callback(backend.close)
            driver = await process(backend)
            stack.push_async_callback(driver.engine.stop)
            drivers.append(driver)
        yield drivers[0], drivers[1], proxy


async def insist(call: Callable[[], Awaitable[object]], told: Counter[str]) -> None:
    """As the SDK does: what is unavailable is asked again. A fault that lasts would be told to a person; here it does
    not, so that the same call goes through the next time."""
    for _ in range(60):
        try:
            await call()
        except Unavailable:
            told["unavailable"] += 1
        except AwsRefused as refused:
            told["refused" if refused.code == "ValidationException" and "planted" in str(refused) else "odd"] += 1
        else:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never went through")


async def test_collisions_look_like_nothing_else_and_all_counts_once(world: tuple[Driver, Driver, FaultProxy]) -> None:
    one, two, proxy = world
    run_id = await one.start()
    task = await one.take()
    await one.complete(task.task_token, *(activity(str(number), eager=False) for number in range(ACTIVITIES)))
    attempts = await one.poll_activities(maximum=ACTIVITIES)
    assert len(attempts) == ACTIVITIES
    told: Counter[str] = Counter()
    proxy.on, proxy.planned = True, ["conflict", "cut", "throttling", "validation", "cut"]

    def signal(driver: Driver, number: int) -> Callable[[], Awaitable[object]]:
        return lambda: driver.signal(name=f"s{number}", request_id=f"signal {number}")

    def ask(driver: Driver, number: int) -> Callable[[], Awaitable[object]]:
        return lambda: update(driver, f"u{number}", ADMITTED)

    def beat(driver: Driver, attempt: r.ActivityTask) -> Callable[[], Awaitable[object]]:
        request = r.RecordActivityHeartbeatRequest(task_token=attempt.task_token)
        return lambda: driver.engine.record_activity_heartbeat(request)

    async def work(driver: Driver, attempt: r.ActivityTask) -> None:
        for _ in range(BEATS):
            await insist(beat(driver, attempt), told)
        await insist(lambda: driver.done(attempt), told)

    drivers = (one, two)
    await asyncio.gather(
        *(insist(signal(drivers[number % 2], number), told) for number in range(SIGNALS)),
        *(work(drivers[number % 2], attempt) for number, attempt in enumerate(attempts)),
        *(insist(ask(drivers[number % 2], number), told) for number in range(UPDATES)),
    )
    proxy.on = False
    assert proxy.planned == [] and told["refused"] >= 1 and not told["odd"] and proxy.done["conflict"] > 1
    hint = encode_hint(WorkflowTaskRef(ExecutionKey("default", "order-1"), run_id, 1))
    asked = r.StartWorkflowTaskRequest(task_queue=QUEUE, worker=one.worker, hint=hint)
    following = (await one.engine.start_workflow_task(asked)).task
    assert following is not None
    assert len(following.updates) == UPDATES
    answers = [command for n in range(UPDATES) for command in (accepted(f"u{n}"), completed(f"u{n}"))]
    assert (await one.complete(following.task_token, *answers)).outcome == "ACCEPTED"
    history = await two.history()
    signals = [event.attributes for event in history if event.event_type == "WorkflowExecutionSignaled"]
    names = Counter(attributes.signal_name for attributes in signals if isinstance(attributes, Signaled))
    assert names == Counter({f"s{number}": 1 for number in range(SIGNALS)})
    assert types(history).count("ActivityTaskCompleted") == ACTIVITIES
    assert types(history).count("WorkflowExecutionUpdateCompleted") == UPDATES
    seqs = sorted(commit.seq for driver in drivers for commit in driver.store.commits)
    assert len(set(seqs)) == len(seqs)
