"""What activity authors call, in the environment for activity tests."""

import asyncio
import dataclasses
import functools
import logging
import threading
from collections.abc import Callable

import pytest
from stepwell import activity
from stepwell.activity import ActivityDefinition, activity_reference
from stepwell.exceptions import CancelledError
from stepwell.testing import ActivityEnvironment


@activity.defn
async def charge(order: str, amount: int = 1) -> bool:
    return True


@activity.defn(name="send")
def mail(to: str) -> None: ...


class Store:
    @activity.defn
    async def reserve(self, item: str) -> int:
        return 1


@activity.defn(name="callable")
class Callable_:
    async def __call__(self, value: int) -> str:
        return str(value)


def test_definitions() -> None:
    defined = ActivityDefinition.must_of(charge)
    assert (defined.name, defined.is_async) == ("charge", True)
    assert (defined.signature.names, defined.signature.required) == (("order", "amount"), 1)
    assert ActivityDefinition.must_of(mail).name == "send" and not ActivityDefinition.must_of(mail).is_async
    method = ActivityDefinition.must_of(Store().reserve)
    assert (method.name, method.is_async, method.signature.names) == ("reserve", True, ("item",))
    instance = ActivityDefinition.must_of(Callable_())
    assert (instance.name, instance.is_async, instance.signature.types) == ("callable", True, (int,))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (len, "decorate it with @activity.defn"),
        (Store.reserve, "register it as instance.reserve"),
        (Callable_, "must be instantiated"),
    ],
)
def test_what_cannot_be_registered_says_why(target: Callable[..., object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ActivityDefinition.must_of(target)


def test_references_for_callers() -> None:
    assert activity_reference("other")[0] == "other"
    assert activity_reference(Store.reserve)[1].names == ("item",)
    assert activity_reference(Callable_)[1].types == (int,)
    assert activity_reference(Callable_())[1].result_type is str
    with pytest.raises(ValueError, match="not an activity"):
        activity_reference(len)


def test_names_and_parameters_are_checked_early() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        activity.defn(name="")

    with pytest.raises(TypeError, match="activity 'keyword' has the required keyword-only parameter 'flag'"):

        @activity.defn
        async def keyword(*, flag: bool) -> None: ...

    with pytest.raises(TypeError, match=r"activity 'Called' .*'flag'"):

        @activity.defn
        class Called:
            def __call__(self, *, flag: bool) -> None: ...

    with pytest.raises(TypeError, match=r"activity 'method' .*'flag'"):

        class Has:
            @activity.defn
            def method(self, *, flag: bool) -> None: ...


def test_outside_of_an_activity() -> None:
    assert not activity.in_activity()
    for call in (activity.info, activity.heartbeat, activity.is_cancelled):
        with pytest.raises(RuntimeError, match="Not in an activity"):
            call()


async def test_environment_runs_async_and_sync() -> None:
    env = ActivityEnvironment()
    env.info = dataclasses.replace(env.info, attempt=3, workflow_id="order-7")
    beats: list[tuple[object, ...]] = []
    env.on_heartbeat = lambda *details: beats.append(details)

    async def on_loop(value: int) -> int:
        assert activity.in_activity()
        activity.heartbeat("half", value)
        return value + activity.info().attempt

    def in_thread(value: int) -> str:
        activity.heartbeat()
        return activity.info().idempotency_key

    assert await env.run(on_loop, 1) == 4
    assert env.run(in_thread, 1) == "order-7/test-run/test"
    assert beats == [("half", 1), ()]


async def test_environment_cancels_async() -> None:
    env = ActivityEnvironment()

    async def wait() -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await activity.wait_for_cancelled()
            return "cleaned up"
        return "?"

    asyncio.get_running_loop().call_later(0.01, env.cancel)
    assert await env.run(wait) == "cleaned up"


async def test_environment_cancels_threads_and_shows_shutdown() -> None:
    env = ActivityEnvironment()
    began = threading.Event()

    def spin() -> None:
        began.set()
        assert activity.wait_for_worker_shutdown_sync(5) and activity.is_worker_shutdown()
        while True:
            pass

    def stop() -> None:
        began.wait()
        env.worker_shutdown()
        env.cancel()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(CancelledError):
        await asyncio.get_running_loop().run_in_executor(None, functools.partial(env.run, spin))
    stopper.join()


def test_logger_says_which_activity(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> None:
        activity.logger.info("charging %s", "card")

    with caplog.at_level(logging.INFO):
        ActivityEnvironment().run(work)
        activity.logger.info("outside")
    inside, outside = caplog.records
    assert inside.getMessage().startswith("charging card ({") and inside.stepwell_activity["workflow_id"] == "test"
    assert outside.getMessage() == "outside"


async def test_a_decorated_function_stays_a_function() -> None:
    """PM-45: unit tests call it, with no engine and no worker."""

    @activity.defn
    def plain(value: int) -> int:
        return value + 1

    @activity.defn(name="other")
    async def on_loop(value: int) -> int:
        return value + 1

    assert plain(1) == 2
    assert await on_loop(1) == 2
