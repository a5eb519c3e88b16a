"""LC-10: completion callbacks are told over HTTP how a chain of runs ended, at least once, whatever dies in between."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from aiohttp import web
from stepwell.api import requests as r
from stepwell.api.callbacks import Callback, CallbackInfo
from stepwell.api.commands import ContinueAsNewWorkflowExecution, FailWorkflowExecution
from stepwell.api.common import RetryPolicy, WorkflowExecution
from stepwell.api.enums import CallbackForm, WorkflowIDConflictPolicy
from stepwell.api.enums import CallbackState as State
from stepwell.api.errors import FailedPrecondition, InvalidArgument

from stepwell_server.adapters.http_callbacks import HttpCallbacks
from stepwell_server.history.callback_delivery import Callbacks, SendFailed
from stepwell_server.history.callback_records import KIND
from stepwell_server.history.ports import StoreUnavailable
from tests.support.engine import QUEUE, failure, payload
from tests.support.scheduled import T0, Scheduled, scheduled

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
ANYWHERE = ("http://127.0.0.1:1", "https://hooks.example.com")


class Receiver:
    """Answers what it is told to, in order, then 200."""

    def __init__(self) -> None:
        self.answers: Iterator[int] = iter(())
        self.got: list[dict[str, Any]] = []
        self.told: list[tuple[str, str | None, bytes]] = []
        """In the form of Nexus."""
        self.ids: list[str] = []
        self.secrets: list[str] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        state = request.headers.get("Nexus-Operation-State")
        if state is not None:
            self.told.append((state, request.headers.get("Content-Type"), await request.read()))
        else:
            assert request.content_type == "application/json"
            self.got.append(msgspec.json.decode(await request.read()))
        self.ids.append(request.headers["Stepwell-Callback-Id"])
        self.secrets.append(request.headers.get("Authorization", ""))
        status = next(self.answers, 200)
        return web.Response(status=status, headers={"Location": "/elsewhere"} if status == 302 else {})


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/done", receiver.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/done"
    try:
        yield receiver
    finally:
        await runner.cleanup()


@asynccontextmanager
async def both() -> AsyncIterator[tuple[Scheduled, Receiver]]:
    async with receiving() as receiver, scheduled(callback_addresses=(receiver.url.removesuffix("/done"),)) as s:
        yield s, receiver


async def start(
    s: Scheduled, *urls: str, workflow_id: str = "a", form: CallbackForm = CallbackForm.STEPWELL, **more: Any
) -> r.StartWorkflowResponse:
    request = r.StartWorkflowRequest(
        workflow_id=workflow_id,
        workflow_type="order",
        task_queue=QUEUE,
        completion_callbacks=tuple([Callback(url=url, headers={"Authorization": "secret"}, form=form) for url in urls]),
        **more,
    )
    return await s.call("StartWorkflow", request)  # type: ignore[no-any-return]


async def shown(s: Scheduled, run_id: str = "") -> tuple[CallbackInfo, ...]:
    return (await s.driver.describe("a", run_id)).callbacks


async def test_the_end_is_posted_and_seen_in_describe() -> None:
    async with both() as (s, receiver):
        started = await start(s, receiver.url)
        assert [(info.url, info.state) for info in await shown(s)] == [(receiver.url, State.STANDBY)]
        await s.finish(text="paid")
        assert [info.state for info in await shown(s)] == [State.SCHEDULED]
        await s.fire()
        (got,) = receiver.got
        assert (got["workflow_id"], got["run_id"], got["status"]) == ("a", started.run_id, "COMPLETED")
        assert got["close_event"]["type"] == "WorkflowExecutionCompleted" and got["close_event"]["result"]
        assert receiver.ids == [f"{started.run_id}/0"] and receiver.secrets == ["secret"]
        (info,) = await shown(s)
        assert (info.state, info.attempt, info.last_attempt_complete_time) == (State.SUCCEEDED, 1, T0)
        record = await s.backend.control.get(KIND, "default", started.run_id)
        assert record is not None and b"secret" not in record.value
        await s.at(T0 + 8 * DAY)
        assert await s.backend.control.get(KIND, "default", started.run_id) is None
        assert len(receiver.got) == 1 and await s.due() == []


async def test_the_form_of_nexus_has_the_result_itself() -> None:
    async with both() as (s, receiver):
        for workflow_id, end in (("a", {"text": "paid"}), ("b", {"fails": "no paper"}), ("c", {"text": "x" * 250_000})):
            await start(s, receiver.url, workflow_id=workflow_id, form=CallbackForm.NEXUS)
            await s.finish(**end)
            await s.fire()
        paid, (state, kind, body) = receiver.told
        assert paid == ("succeeded", "application/json", b'"paid"') and receiver.secrets == ["secret"] * 2
        assert (state, kind) == ("failed", "application/json") and msgspec.json.decode(body)["message"] == "no paper"
        (info,) = await shown(s)
        assert (info.state, info.form) == (State.SUCCEEDED, CallbackForm.NEXUS)
        (untold,) = (await s.driver.describe("c")).callbacks
        assert untold.state is State.FAILED and "too large to be told" in untold.last_attempt_failure
        assert receiver.got == []


async def test_what_fails_is_tried_again_and_what_is_refused_is_not() -> None:
    async with both() as (s, receiver):
        receiver.answers = iter([503, 429, 404])
        await start(s, receiver.url)
        await s.finish()
        await s.fire()
        (info,) = await shown(s)
        assert (info.state, info.last_attempt_failure) == (State.BACKING_OFF, "it was answered with HTTP 503")
        assert info.next_attempt_schedule_time == T0 + SECOND
        await s.at(T0 + SECOND)
        await s.at(T0 + 3 * SECOND)
        (info,) = await shown(s)
        assert (info.state, info.attempt) == (State.FAILED, 3)
        await s.at(T0 + DAY)
        assert len(receiver.got) == 3


async def test_redirects_are_not_followed_and_who_does_not_listen_is_tried_again() -> None:
    async with both() as (s, receiver):
        receiver.answers = iter([302])
        await start(s, receiver.url)
        await s.finish()
        await s.fire()
        assert (await shown(s))[0].state is State.FAILED
    async with scheduled(callback_addresses=ANYWHERE) as s:
        await start(s, "http://127.0.0.1:1/done")
        await s.finish()
        await s.fire()
        (info,) = await shown(s)
        assert info.state is State.BACKING_OFF and "ClientConnector" in info.last_attempt_failure


async def test_the_last_run_of_a_chain_tells_them_once() -> None:
    async with both() as (s, receiver):
        first = await start(s, receiver.url, retry_policy=RetryPolicy(maximum_attempts=3))
        task = await s.driver.take()
        again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
        await s.driver.complete(task.task_token, again)
        task = await s.driver.take()
        await s.driver.complete(task.task_token, FailWorkflowExecution(failure=failure("no paper")))
        await s.settle()
        await s.fire()
        assert receiver.got == []
        execution = WorkflowExecution(workflow_id="a")
        await s.call("TerminateWorkflow", r.TerminateWorkflowRequest(execution=execution, reason="enough"))
        await s.settle()
        await s.fire()
        (got,) = receiver.got
        assert got["first_execution_run_id"] == first.run_id != got["run_id"]
        assert got["status"] == "TERMINATED" and got["close_event"]["reason"] == "enough"
        assert [info.state for info in await shown(s, first.run_id)] == [State.STANDBY]


async def test_a_reset_hands_them_on_and_the_run_that_it_ends_tells_nobody() -> None:
    async with both() as (s, receiver):
        first = await start(s, receiver.url)
        task = await s.driver.take()
        await s.driver.complete(task.task_token)
        made = await s.driver.reset(4, workflow_id="a")
        await s.settle()
        await s.fire()
        assert receiver.got == []
        assert [info.state for info in await shown(s, first.run_id)] == [State.STANDBY]
        await s.finish()
        await s.fire()
        assert [got["run_id"] for got in receiver.got] == [made]


async def test_a_start_attaches_its_own_to_an_open_run_once() -> None:
    use = {"workflow_id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING}
    attach = r.OnConflictOptions(attach_request_id=True, attach_completion_callbacks=True)
    async with both() as (s, receiver):
        await start(s, receiver.url)
        await start(s, receiver.url + "?ignored", **use)
        for _ in range(2):
            await start(s, receiver.url + "?second", request_id="two", on_conflict_options=attach, **use)
        task = await s.driver.take()
        await start(s, receiver.url + "?third", request_id="three", on_conflict_options=attach, **use)
        await s.driver.complete(
            task.task_token, ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
        )
        await s.finish()
        await s.fire()
        assert [info.url.partition("?")[2] for info in await shown(s)] == ["", "second", "third"]
        assert len(receiver.got) == 3 and len(set(receiver.ids)) == 3


async def test_the_limit_counts_what_is_attached() -> None:
    use = {"workflow_id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING}
    attach = r.OnConflictOptions(attach_request_id=True, attach_completion_callbacks=True)
    url = "https://hooks.example.com/"
    async with scheduled(callback_addresses=ANYWHERE) as s:
        await start(s, *[url] * 31)
        await start(s, url, request_id="two", on_conflict_options=attach, **use)
        with pytest.raises(FailedPrecondition, match="would have 33 completion callbacks"):
            await start(s, url, request_id="three", on_conflict_options=attach, **use)
        request = r.SignalWithStartWorkflowRequest(
            workflow_id="a",
            workflow_type="order",
            task_queue=QUEUE,
            signal_name="ship",
            request_id="four",
            on_conflict_options=attach,
            completion_callbacks=(Callback(url=url),),
        )
        with pytest.raises(FailedPrecondition):
            await s.call("SignalWithStartWorkflow", request)
        events = [event.event_type for event in await s.driver.history("a")]
        assert "WorkflowExecutionSignaled" not in events
        assert len(await shown(s)) == 32


@pytest.mark.parametrize("death", range(1, 5))
async def test_a_death_at_any_write_delays_them(death: int) -> None:
    """Before and behind the write that takes the news in, and that which records what was answered."""
    async with both() as (s, receiver):
        await start(s, receiver.url)
        s.control.dies = death
        await s.finish()
        for seconds in (0, 1, 31, 120):
            s.clock.time = T0 + seconds * SECOND
            for fire_at, key in await s.backend.timers.due(s.clock.now(), 100):
                with contextlib.suppress(StoreUnavailable):
                    await s.engine.fire(key, fire_at)
                    await s.backend.timers.fired([(fire_at, key)])
            await s.settle()
        assert (await shown(s))[0].state is State.SUCCEEDED
        assert len(receiver.got) in (1, 2) and len(set(receiver.ids)) == 1


async def test_addresses_that_are_no_more_allowed_get_nothing() -> None:
    async with both() as (s, receiver):
        await start(s, receiver.url)
        s.engine.attached(Callbacks)._addresses = ()
        await s.finish()
        await s.fire()
        (info,) = await shown(s)
        assert info.state is State.FAILED and "not among those" in info.last_attempt_failure
        assert receiver.got == []


async def test_by_default_no_address_is_allowed() -> None:
    async with scheduled() as s:
        with pytest.raises(InvalidArgument, match=r"\[0\].url .* not among the addresses.*--callback-address"):
            await start(s, "https://hooks.example.com/")
        assert await s.started() == []


async def test_a_result_that_is_too_large_is_left_out() -> None:
    async with both() as (s, receiver):
        await start(s, receiver.url)
        await s.finish(text="x" * 300_000)
        await s.fire()
        assert receiver.got[0]["status"] == "COMPLETED" and "close_event" not in receiver.got[0]


async def test_a_receiver_that_never_answers_is_given_up_in_time() -> None:
    held = asyncio.Event()

    async def never(request: web.Request) -> web.Response:
        await held.wait()
        return web.Response()

    app = web.Application()
    app.router.add_post("/done", never)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        with pytest.raises(SendFailed, match=r"no answer within 0.2 s"):
            await HttpCallbacks(seconds=0.2).post(f"http://127.0.0.1:{runner.addresses[0][1]}/done", {}, b"{}")
    finally:
        held.set()
        await runner.cleanup()


async def test_a_deleted_workflow_tells_that_it_was_terminated() -> None:
    async with both() as (s, receiver):
        await start(s, receiver.url, input=payload("x"))
        await s.call("DeleteWorkflow", r.DeleteWorkflowRequest(execution=WorkflowExecution(workflow_id="a")))
        await s.settle()
        await s.fire()
        assert [got["status"] for got in receiver.got] == ["TERMINATED"]
