"""The workflow that carries out a generated program, and its activities. Written with Temporal's Python SDK."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RawValue, RetryPolicy, SearchAttributeKey
from temporalio.exceptions import (
    ApplicationError,
    FailureError,
    is_cancelled_exception,
)
from temporalio.workflow import ActivityCancellationType, ChildWorkflowCancellationType, ParentClosePolicy

from .programs import ATTRIBUTES, Operation, Program

_SHORT, _LONG = timedelta(seconds=0.4), timedelta(seconds=60)
_KEYS = {
    "Keyword": SearchAttributeKey.for_keyword,
    "Int": SearchAttributeKey.for_int,
    "Bool": SearchAttributeKey.for_bool,
    "Double": SearchAttributeKey.for_float,
}


class Gates:
    """What the driver has let through, by workflow id and name; activities wait here, in the worker's process."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Event] = {}

    def open(self, name: str) -> None:
        self._open.setdefault(name, asyncio.Event()).set()

    async def passed(self, name: str) -> None:
        await self._open.setdefault(name, asyncio.Event()).wait()


class Activities:
    """``broken`` are workflow tasks that have failed once."""

    def __init__(self, gates: Gates) -> None:
        self._gates = gates

    @activity.defn
    async def work(self, operation: Operation) -> str:
        attempt = activity.info().attempt
        if attempt <= operation["failures"]:
            raise ApplicationError(
                f"attempt {attempt} of {operation['name']}", attempt, type="Flaky", non_retryable=operation["permanent"]
            )
        return f"{operation['name']} by attempt {attempt}"

    @activity.defn
    async def gate(self, operation: Operation) -> str:
        await self._gates.passed(_gate_name(activity.info().workflow_id or "", operation["name"]))
        if operation["fails"]:
            raise ApplicationError("the gate fails", type="Gate", non_retryable=True)
        return operation["name"]

    @activity.defn
    async def slow(self) -> None:
        """Longer than any timeout of a program."""
        await asyncio.sleep(5)

    @activity.defn
    async def beating(self) -> str:
        """Until it is cancelled."""
        while True:
            activity.heartbeat("alive")
            await asyncio.sleep(0.05)


def _gate_name(workflow_id: str, name: str) -> str:
    return f"{workflow_id}/{name}"


_failed_once: set[str] = set()

live: dict[str, "Interpreter"] = {}
"""The newest run of each workflow id in this process. The driver looks here first, and asks by a query when all is at
rest: a query that meets a local activity changes what is recorded."""


@workflow.defn(name="Interpreter")
class Interpreter:
    def __init__(self) -> None:
        self._branches = 1
        self._tokens: list[str] = []
        self._signals: dict[str, list[Any]] = {}
        self._updated: set[str] = set()
        self.start_time = datetime.min.replace(tzinfo=UTC)

    @workflow.run
    async def run(self, program: Program) -> list[Any]:
        self.start_time = workflow.info().start_time
        known = live.get(workflow.info().workflow_id)
        if known is None or known.start_time <= self.start_time:  # a query can bring back a run that has ended
            live[workflow.info().workflow_id] = self
        return await self._sequence(program)

    @workflow.query
    def rest(self) -> list[str] | None:
        """The tokens, when every branch stands at one; None while something goes on by itself."""
        return sorted(self._tokens) if len(self._tokens) == self._branches else None

    @workflow.query
    def signals(self) -> dict[str, list[Any]]:
        return self._signals

    @workflow.signal(dynamic=True)
    def on_signal(self, name: str, values: Sequence[RawValue]) -> None:
        payloads = [workflow.payload_converter().from_payload(value.payload) for value in values]
        self._signals.setdefault(name, []).append(payloads)

    @workflow.update
    async def change(self, name: str, kind: str) -> str:
        self._branches += 1
        try:
            if kind == "activity":
                await self._activity({"name": f"in {name}", "failures": 0, "attempts": 1, "permanent": False})
            if kind == "fails":
                raise ApplicationError(f"{name} fails", type="Update")
            return f"{name} done"
        finally:
            self._branches -= 1
            self._updated.add(name)

    @change.validator
    def check_change(self, name: str, kind: str) -> None:
        if kind == "rejected":
            raise ValueError(f"{name} is not wanted")

    # --- carrying out

    async def _sequence(self, program: Program) -> list[Any]:
        return [await self._one(operation) for operation in program]

    async def _one(self, operation: Operation) -> Any:
        return await getattr(self, f"_{operation['op']}")(operation)

    @contextmanager
    def _token(self, name: str) -> Any:
        self._tokens.append(name)
        try:
            yield
        finally:
            self._tokens.remove(name)

    async def _activity(self, operation: Operation) -> Any:
        retry = RetryPolicy(
            initial_interval=timedelta(milliseconds=20), backoff_coefficient=1, maximum_attempts=operation["attempts"]
        )
        return await _outcome(
            workflow.execute_activity("work", operation, start_to_close_timeout=_LONG, retry_policy=retry)
        )

    async def _slow(self, operation: Operation) -> Any:
        timeouts = {"start_to_close_timeout": _LONG, f"{operation['timeout']}_timeout": _SHORT}
        retry = RetryPolicy(initial_interval=timedelta(milliseconds=20), maximum_attempts=operation["attempts"])
        return await _outcome(workflow.execute_activity("slow", retry_policy=retry, **timeouts))  # type: ignore[call-overload]

    async def _unattended(self, operation: Operation) -> Any:
        return await _outcome(
            workflow.execute_activity(
                "work", operation, task_queue="nobody", schedule_to_start_timeout=_SHORT, start_to_close_timeout=_LONG
            )
        )

    async def _timer(self, operation: Operation) -> Any:
        summary = "a timer of a program" if operation["summary"] else None
        await workflow.sleep(timedelta(seconds=operation["seconds"]), summary=summary)

    async def _patch(self, operation: Operation) -> Any:
        if operation["deprecated"]:
            workflow.deprecate_patch(operation["name"])
            return "deprecated"
        return workflow.patched(operation["name"])

    async def _attributes(self, operation: Operation) -> Any:
        updates = []
        for name, value in sorted(operation["set"].items()):
            key: Any = _KEYS[ATTRIBUTES[name]](name)
            updates.append(key.value_unset() if value is None else key.value_set(value))
        workflow.upsert_search_attributes(updates)

    async def _memo(self, operation: Operation) -> Any:
        workflow.upsert_memo(operation["set"])

    async def _failing_task(self, operation: Operation) -> Any:
        name = f"{workflow.info().run_id}/{operation['name']}"
        if name not in _failed_once:
            _failed_once.add(name)
            raise RuntimeError("this task fails once")
        return "passed"

    async def _gate(self, operation: Operation) -> Any:
        with self._token(f"gate {operation['name']}"):
            return await _outcome(workflow.execute_activity("gate", operation, start_to_close_timeout=_LONG))

    async def _signal(self, operation: Operation) -> Any:
        with self._token(f"signal {operation['name']}"):
            await workflow.wait_condition(lambda: operation["name"] in self._signals)
        return self._signals[operation["name"]]

    async def _hear(self, operation: Operation) -> Any:
        """From another workflow, so the driver does nothing."""
        await workflow.wait_condition(lambda: operation["name"] in self._signals)
        return self._signals[operation["name"]]

    async def _update(self, operation: Operation) -> Any:
        with self._token(f"update {operation['name']}"):
            await workflow.wait_condition(lambda: operation["name"] in self._updated)

    async def _query(self, operation: Operation) -> Any:
        with self._token(f"query {operation['name']}"):
            await workflow.wait_condition(lambda: operation["name"] in self._signals)

    async def _child(self, operation: Operation) -> Any:
        handle = await workflow.start_child_workflow(
            "Interpreter",
            operation["program"],
            id=f"{workflow.info().workflow_id}-{operation['name']}",
            parent_close_policy=ParentClosePolicy[operation["policy"]],
            cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        if operation["kind"] in ("signalled", "cancelled"):
            await self._child_rests(operation)
        if operation["kind"] == "signalled":
            await handle.signal("hello", "from the parent")
        if operation["kind"] == "cancelled":
            handle.cancel()
        with self._token(f"child {operation['name']}"):
            return await _outcome(handle)

    async def _orphan(self, operation: Operation) -> Any:
        await workflow.start_child_workflow(
            "Interpreter",
            operation["program"],
            id=f"{workflow.info().workflow_id}-{operation['name']}",
            parent_close_policy=ParentClosePolicy[operation["policy"]],
        )
        await self._child_rests(operation)

    async def _child_rests(self, operation: Operation) -> Any:
        """What happens to it next, and its own first task, must not race."""
        with self._token(f"begun {operation['name']}"):
            await workflow.wait_condition(lambda: operation["name"] in self._signals)

    async def _cancelled_timer(self, operation: Operation) -> Any:
        timer = asyncio.create_task(asyncio.sleep(3600))
        await self._gate(operation["until"])
        timer.cancel()
        return await _outcome(timer)

    async def _cancelled_activity(self, operation: Operation) -> Any:
        started = workflow.start_activity(
            "beating",
            start_to_close_timeout=_LONG,
            heartbeat_timeout=timedelta(seconds=30),
            retry_policy=RetryPolicy(maximum_attempts=1),
            cancellation_type=ActivityCancellationType[operation["kind"]],
        )
        await self._gate(operation["until"])
        started.cancel()
        return await _outcome(started)

    async def _parallel(self, operation: Operation) -> Any:
        branches = operation["branches"]
        self._branches += len(branches) - 1
        running = [asyncio.create_task(self._branch(branch)) for branch in branches]
        results = await asyncio.gather(*running)
        self._branches += 1
        return results

    async def _branch(self, program: Program) -> list[Any]:
        """The branch that waits for all of them is none of its own, so the last to end gives its place back."""
        try:
            return await self._sequence(program)
        finally:
            self._branches -= 1

    # --- ends

    async def _fail(self, operation: Operation) -> Any:
        raise ApplicationError(
            "the program ends so", {"why": "it says so"}, type=operation["type"], non_retryable=operation["final"]
        )

    async def _await_cancel(self, operation: Operation) -> Any:
        with self._token("cancel"):
            try:
                await workflow.wait_condition(lambda: False)
            except asyncio.CancelledError:
                pass
        await self._sequence(operation["cleanup"])
        if not operation["swallow"]:
            raise asyncio.CancelledError

    async def _be_cancelled(self, operation: Operation) -> Any:
        """By another workflow."""
        try:
            await workflow.wait_condition(lambda: False)
        except asyncio.CancelledError:
            pass
        await self._sequence(operation["cleanup"])
        raise asyncio.CancelledError

    async def _await_termination(self, operation: Operation) -> Any:
        with self._token("terminate"):
            await workflow.wait_condition(lambda: False)

    async def _continue_as_new(self, operation: Operation) -> Any:
        workflow.continue_as_new(args=[operation["program"]])


async def _outcome(awaitable: Awaitable[Any]) -> Any:
    """The result, or what failed, as data: a program goes on behind a failure."""
    try:
        return await awaitable
    except (FailureError, asyncio.CancelledError) as error:
        return described(error)


def described(error: BaseException | None) -> Any:
    if error is None:
        return None
    if is_cancelled_exception(error) and not isinstance(error, FailureError):
        return "cancelled"
    details = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, ApplicationError):
        details |= {"type": error.type or "", "details": repr(list(error.details)), "final": str(error.non_retryable)}
    return {**details, "cause": described(error.__cause__)}
