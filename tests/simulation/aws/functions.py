"""Functions as the platform runs them: a process per instance that stands still between calls and dies at any moment,
and what calls them: the API, the stream's mapping, the delay queue's mapping, and the clock.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.stream_records import parse
from stepwell_server.entrypoints.aws_parts import AwsParts, feed_of, fire_of, function_engine, open_parts
from stepwell_server.entrypoints.blob_collecting import collect_some
from stepwell_server.history.engine import Engine
from stepwell_server.history.lambda_handler import FeedHandler
from stepwell_server.timer_sweeper.due_messages import DueMessages
from stepwell_server.timer_sweeper.minute_tick import MinuteTick
from tests.simulation.aws.cloud import CloudClients
from tests.simulation.loop import Process
from tests.simulation.servers import EngineServer, Host
from tests.support.aws.event_pump import as_event_record

if TYPE_CHECKING:
    from tests.simulation.aws.world import AwsWorld

Handler = Callable[[Any], Coroutine[Any, Any, Any]]

_OUTSIDE = contextvars.Context()
_FEED_TRIES = 8
_SECONDS = 60.0
"""After which the platform ends a call."""


class Instance(Process):
    """Nothing of it runs while it serves no call."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls = 0

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str = "") -> "asyncio.Task[Any]":
        self.go_on()
        self.calls += 1
        task = super().spawn(coroutine, name)
        task.add_done_callback(self._ended, context=_OUTSIDE)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self.calls -= 1
        if not self.calls:
            self.stand_still()


class FunctionEnded(Exception):
    """The platform tells whoever called that the function did not end as it should."""


class FunctionHost(Host):
    """``hands_on``: it does what its commits owe."""

    world: "AwsWorld"

    def __init__(self, world: "AwsWorld", name: str, *, hands_on: bool = False) -> None:
        super().__init__(world, name)
        self._hands_on = hands_on
        self._clock = world.clocks.machine()
        self._handler: Handler | None = None

    @property
    def is_refused(self) -> bool:
        """By AWS, for its clock."""
        return self._clock.is_refused

    @property
    def is_made(self) -> bool:
        return self._handler is not None and self.process is not None and self.process.alive

    def new_process(self, name: str) -> Process:
        self._handler = None
        return Instance(name)

    async def run(self, process: Process) -> None:
        """Initialises, and leaves the process to calls."""
        settings = AwsSettings(self.world.cloud.names.cell, "bucket")
        clients = CloudClients(self.world.cloud, self._clock)
        parts = await open_parts(
            settings, stays=False, hands_on=self._hands_on, clock=self._clock, clients=clients, write=quiet
        )
        engine = function_engine(parts)
        await engine.start()
        self._handler = self.handler(parts, engine, process)

    async def _guarded(self, process: Process) -> None:
        try:
            await self.run(process)
        except Exception as error:
            if "simulated:" not in str(error):
                self.world.fail(error)
            process.kill()

    def handler(self, parts: AwsParts, engine: Engine, process: Process) -> Handler:
        raise NotImplementedError

    async def shut_down(self) -> None:
        """Functions are not told."""
        self.kill()

    async def call(self, event: Any) -> Any:
        """From outside of any process. Raises FunctionEnded, or what the function does."""
        process = self.process
        if self._handler is None or process is None or not self.is_made:
            raise FunctionEnded(f"simulated: {self.name} is being made")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def died() -> None:
            if not answer.done():
                answer.set_exception(FunctionEnded(f"simulated: {self.name} died"))

        process.on_death.append(died)
        task = process.spawn(self._handler(event))
        task.add_done_callback(lambda done: _pass_on(done, answer), context=_OUTSIDE)
        if self.world.faults.strikes("function_crash"):
            moment = self.world.faults.delay(0.5)
            asyncio.get_running_loop().call_later(moment, process.kill, context=_OUTSIDE)
        try:
            async with asyncio.timeout(_SECONDS):
                return await answer
        except TimeoutError:
            process.kill()
            raise FunctionEnded(f"simulated: {self.name} took too long") from None
        finally:
            process.on_death.remove(died)


def quiet(line: str) -> None:
    """Metrics are of no use here."""


def _pass_on(done: "asyncio.Task[Any]", answer: "asyncio.Future[Any]") -> None:
    if answer.done():
        return
    if done.cancelled():
        answer.set_exception(FunctionEnded("simulated: cancelled"))
    elif (error := done.exception()) is not None:
        answer.set_exception(error)
    else:
        answer.set_result(done.result())


class FrontendHost(FunctionHost):
    """The function behind the API."""

    def handler(self, parts: AwsParts, engine: Engine, process: Process) -> Handler:
        self.world.network.listen(process, EngineServer(engine))

        async def unused(event: Any) -> Any:
            raise AssertionError("the API's function is called by the network")

        return unused


class FeedHost(FunctionHost):
    """On the stream; called with records, it answers with what became of each."""

    def handler(self, parts: AwsParts, engine: Engine, process: Process) -> Handler:
        handler = FeedHandler(feed_of(parts, engine), parse, _unused, engine.settle)

        async def handle(records: Any) -> Any:
            return await handler._handle_all(records, 30.0)

        return handle


class TickHost(FunctionHost):
    def handler(self, parts: AwsParts, engine: Engine, process: Process) -> Handler:
        tick = MinuteTick(parts.rows, parts.leases, parts.delays, parts.clock, parts.layouts)

        async def handle(event: Any) -> Any:
            if self.world.scenario.objects:
                await collect_some(parts.backend, 5.0)
            return await tick.run()

        return handle


class TimersHost(FunctionHost):
    """On the delay queue; called with messages, it answers with the ids of those that are done."""

    def handler(self, parts: AwsParts, engine: Engine, process: Process) -> Handler:
        fire = self.world.watched_fire(fire_of(engine))
        due = DueMessages(parts.rows, parts.delays, parts.clock, fire)

        async def handle(messages: Any) -> Any:
            outcomes = await asyncio.gather(*(self._one(due, message) for message in messages), return_exceptions=True)
            await engine.settle(10.0)
            pairs = zip(messages, outcomes, strict=True)
            return [message["MessageId"] for message, outcome in pairs if outcome is None]

        return handle

    async def _one(self, due: DueMessages, message: Any) -> None:
        deliveries = int(message["Attributes"]["ApproximateReceiveCount"])
        await due.handle(message["Body"], message["ReceiptHandle"], deliveries, message["MessageId"])


def _unused(work: Any) -> Any:
    raise AssertionError("the handler's own loop is not used here")


class Platform:
    """What calls functions; it never dies. ``run`` it in a process of its own."""

    def __init__(self, world: "AwsWorld", feed: FunctionHost, tick: FunctionHost, timers: FunctionHost) -> None:
        self._world = world
        self._feed, self._tick, self._timers = feed, tick, timers
        self._random = Random(f"platform {world.scenario.seed}")
        self._after = ""
        self._coming: list[Any] = []
        self._batches = asyncio.Semaphore(3)

    def start(self) -> None:
        process = self._world.cloud.process
        for work in (self._feed_stream(), self._ticks(), self._deliver_timers()):
            process.spawn(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self._world.fail(error)

    # --- the stream's mapping ---

    async def _feed_stream(self) -> None:
        faults, stream = self._world.faults, self._world.cloud.stream
        while True:
            await asyncio.sleep(5.0 if stream.out else 0.25)
            if stream.out:
                continue
            for record in stream.after(self._after):
                self._after = record["dynamodb"]["SequenceNumber"]
                for _ in range(2 if faults.strikes("record_twice") else 1):
                    if faults.strikes("record_late"):
                        asyncio.get_running_loop().call_later(faults.delay(20.0), self._came, record)
                    else:
                        self._coming.append(record)
            while self._coming:
                self._random.shuffle(self._coming)  # each commit is an item of its own: no order is promised
                batch, self._coming = self._coming[:10], self._coming[10:]
                await self._batches.acquire()
                self._world.cloud.process.spawn(self._guarded(self._deliver(batch)))

    def _came(self, record: Any) -> None:
        self._coming.append(record)

    async def _deliver(self, batch: list[Any]) -> None:
        try:
            left = [as_event_record(record) for record in batch]
            attempt = 0
            while attempt < _FEED_TRIES:
                # Clocks of functions are AWS's own: no record is given up for one that is hours off in here. And a
                # call waits until there is an instance.
                attempt += not self._feed.is_refused and self._feed.is_made
                try:
                    failures = await self._feed.call(left)
                except FunctionEnded:
                    await asyncio.sleep(1.0)
                    continue
                left = [record for record, failure in zip(left, failures, strict=True) if failure is not None]
                if not left:
                    return
                await asyncio.sleep(min(0.1 * 2**attempt, 5.0))
            self._world.set_aside += len(left)
        finally:
            self._batches.release()

    # --- the clock's rule ---

    async def _ticks(self) -> None:
        """Each minute; a call that fails is made again, twice at most."""
        while True:
            if not self._world.faults.strikes("tick_missed"):
                for _ in range(3):
                    try:
                        await self._tick.call(None)
                        break
                    except Exception as error:
                        if "simulated:" not in str(error):
                            raise
                        await asyncio.sleep(2.0)
            await asyncio.sleep(60.0)

    # --- the delay queue's mapping ---

    async def _deliver_timers(self) -> None:
        cloud, url = self._world.cloud, f"https://queues/1/{self._world.cloud.names.timer_queue}"
        while True:
            asked = {"QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 20, "VisibilityTimeout": 120}
            answer = await cloud.sqs.call("receive_message", asked)
            if messages := answer.get("Messages"):
                cloud.process.spawn(self._guarded(self._deliver_messages(url, messages)))

    async def _deliver_messages(self, url: str, messages: list[Any]) -> None:
        try:
            done = set(await self._timers.call(messages))
        except FunctionEnded:
            return  # they come again when their leases end
        entries = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
            for number, message in enumerate(messages)
            if message["MessageId"] in done
        ]
        if entries:
            await self._world.cloud.sqs.call("delete_message_batch", {"QueueUrl": url, "Entries": entries})
