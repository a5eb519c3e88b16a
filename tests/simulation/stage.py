"""A stage for one scene: engines without clients and without faults by chance, and a script that plays the one order of
things that counts. It keeps a call on its way, lets its process die, lets time go by or back, begins another process.

What faults that are drawn meet once in hundreds of seeds is met here with the one there is; and since scripts wait for
what they name, and not for so many steps, they go on meeting it when the product awaits more or less than today. The
rules are those of the simulation: the model looks at each write.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from stepwell.api.enums import WorkflowExecutionStatus

from stepwell_server.adapters.backend import Backend
from stepwell_server.history.activity_item import ActivityItem
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.engine import Engine
from tests.simulation.faults import CALM
from tests.simulation.loop import CURRENT_PROCESS, Process
from tests.simulation.ports import FaultyLog
from tests.simulation.servers import new_engine
from tests.simulation.violation import Violation
from tests.simulation.world import Scenario, World, live_through
from tests.support.counting import CountingStore
from tests.support.engine import Driver

T = TypeVar("T")

NOBODY: dict[str, Any] = {
    "seed": 0,
    "clients": 0,
    "engines": 1,
    "rates": CALM,
    "rough_time": 0.0,
    "workers": (),
    "drop_first_offers": False,
    "cancels_travel": False,
    "crashes": False,
    "clock_jumps": False,
    "task_timeout": 10.0,
    "small_limits": False,
}
"""What a scenario says of a world in which nothing happens by itself."""

_LOOK = 0.5
_COMES_WITHIN = 60.0


class Hold:
    """Calls of one process that are on their way, also when it has died, until they ``arrive``."""

    def __init__(self, process: Process, operation: str, where: str) -> None:
        self._process = process
        self._operation = operation
        self._where = where
        self._came = 0
        self._comes = asyncio.Event()
        self._on_their_way: list[asyncio.Event] = []
        self._over = False

    def takes(self, caller: Process | None, operation: str, where: str) -> bool:
        """An empty ``operation`` is any; of ``where`` the end counts."""
        return caller is self._process and operation in (self._operation or operation) and where.endswith(self._where)

    async def passes(self) -> None:
        self._came += 1
        self._comes.set()
        if not self._over:
            arrives = asyncio.Event()
            self._on_their_way.append(arrives)
            await arrives.wait()

    async def comes(self, times: int = 1) -> None:
        """Until so many are on their way."""
        try:
            async with asyncio.timeout(_COMES_WITHIN):
                while self._came < times:
                    self._comes.clear()
                    await self._comes.wait()
        except TimeoutError:
            what = f"{self._operation or 'call'} of {self._process}"
            raise Violation(f"no {what} came to {self._where} within {_COMES_WITHIN:.0f} s") from None

    def arrive_first(self) -> None:
        """The call that is the longest on its way."""
        self._on_their_way.pop(0).set()

    def arrive(self) -> None:
        """All, and those that come later are not held."""
        self._over = True
        while self._on_their_way:
            self.arrive_first()


class Machine:
    """One process with an engine, which does what it is told to."""

    def __init__(self, process: Process, engine: Engine) -> None:
        self.process = process
        self.engine = engine
        self.driver = Driver(engine, CountingStore(None))  # type: ignore[arg-type]

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self.process.spawn(work)

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        return await self.begin(work)

    def die(self) -> None:
        self.process.kill()


class Staged(World):
    """What stages of all kinds have."""

    def __init__(self, scene: Callable[[Any], Coroutine[Any, Any, None]], *parts: Any) -> None:
        self._scene = scene
        self._holds: list[Hold] = []
        super().__init__(*parts)

    async def live(self) -> None:
        await self._scene(self)

    @contextlib.contextmanager
    def holding(self, machine: Machine, operation: str, where: str = "") -> Iterator[Hold]:
        """Inside, calls of that process stay on their way. At the end, those that have not arrived never will."""
        hold = Hold(machine.process, operation, where)
        self._holds.append(hold)
        try:
            yield hold
        finally:
            self._holds.remove(hold)

    def held(self, caller: Process | None, operation: str, where: str) -> Hold | None:
        return next((hold for hold in self._holds if hold.takes(caller, operation, where)), None)

    def jump(self, by: timedelta) -> None:
        """All clocks; forwards, it is as if nothing had happened for so long."""
        self.clock.jump(by)

    async def ends(self, workflow_id: str, within: float) -> None:
        """Waits until the newest run of that id is closed."""

        def is_over() -> bool:
            head = self.model.heads.get(ExecutionKey("default", workflow_id))
            return head is not None and head.state.status is not WorkflowExecutionStatus.RUNNING

        await self.until(is_over, within, f"{workflow_id} has not ended")

    async def until(self, happened: Callable[[], bool], within: float, otherwise: str) -> None:
        ends = self.loop.time() + within
        while not happened():
            if self.loop.time() > ends:
                raise Violation(f"{otherwise} within {within:.0f} s, and nothing is left that would see to it")
            await asyncio.sleep(_LOOK)


class _HeldLog(FaultyLog):
    def __init__(self, stage: "Stage") -> None:
        super().__init__(stage.disk, stage.faults)
        self._stage = stage

    async def append(self, commit: Commit, *, arm: datetime | None = None) -> None:
        await self._pass("append", commit.kind)
        await super().append(commit, arm=arm)

    async def put_activity(self, item: ActivityItem, *, arm: datetime | None = None) -> None:
        await self._pass("put_activity", item.state.name)
        await super().put_activity(item, arm=arm)

    async def _pass(self, operation: str, where: str) -> None:
        hold = self._stage.held(CURRENT_PROCESS.get(), operation, where)
        if hold is not None:
            await hold.passes()


class Stage(Staged):
    """Of the embedded engine. Writes are held before they are made, by the kind of the commit or the item's state."""

    def faulty_backend(self) -> Backend:
        return replace(super().faulty_backend(), log=_HeldLog(self))

    async def engine(self) -> Machine:
        """The store's only one, with its sweeper."""
        process = Process("engine")

        async def started() -> Machine:
            engine = new_engine(self, set())
            await engine.start()
            return Machine(process, engine)

        return await process.spawn(started())


Scene = Callable[[Stage], Coroutine[Any, Any, None]]


def play(scene: Scene) -> None:
    """Raises Violation when it does not end as it should."""
    live_through(Scenario(**NOBODY), functools.partial(Stage, scene))
