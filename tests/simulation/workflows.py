"""The workflow that carries out a program, and the activity that does as its specification says. Both are what a user
would write; the world learns of attempts through ``Activities``."""

import asyncio
import builtins
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import (
    ActivityError,
    ApplicationError,
    SessionFailedError,
    TimeoutError,
    is_cancelled_exception,
)

from tests.simulation import other_workflows
from tests.simulation.other_workflows import WORKFLOW_TYPE

ACTIVITY_TYPE = "work"
_RETRIES = RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=5))

bugs_are_fixed = False
"""Set when the rough time is over, as by a deployment."""


@workflow.defn(name=WORKFLOW_TYPE)
class SimulatedProgram:
    """Returns what its program evaluates to and the signals it got, in order."""

    def __init__(self) -> None:
        self.before: list[str] = []
        """Signals of the runs before, which the run was given."""
        self.received: list[str] = []
        self.updated: list[str] = []
        """Updates that were taken, in order; those of the runs before as well."""
        self.steps = 0
        self.left: list[asyncio.Task[Any]] = []

    @workflow.signal
    def note(self, signal_id: str) -> None:
        self.received.append(signal_id)

    @workflow.update(unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)
    async def revise(self, update_id: str, kind: str) -> str:
        self.updated.append(update_id)
        if kind == "failing":
            raise ApplicationError("the update fails", type="Refused")
        if kind == "working":
            spec = {"id": f"for {update_id}", "kind": "sure", "failures": 0, "duration": 0.0, "close": 30.0}
            await self._work(spec)
        elif kind == "slow":
            await workflow.sleep(3.0)
        return f"revised-{update_id}"

    @revise.validator
    def check_revise(self, update_id: str, kind: str) -> None:
        if kind == "bad":
            raise ApplicationError("no such revision", type="Rejected")

    @workflow.query
    def signals(self) -> list[str]:
        return self.before + self.received

    def _count(self) -> int:
        return len(self.before) + len(self.received)

    @workflow.run
    async def run(self, root: list[Any], so_far: dict[str, Any] | None = None) -> dict[str, Any]:
        values: list[Any] = []
        if so_far is not None:
            self.before, values = so_far["signals"], so_far["values"]
            self.updated = so_far["updated"] + self.updated
        node = root[1][len(values)][1] if root[0] == "chain" else root
        try:
            value = await self._evaluate(node)
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            await self._work({"id": "clean-up", "kind": "sure", "failures": 0, "duration": 0.0, "close": 30.0})
            raise
        if root[0] == "chain":
            values.append(value)
            if len(values) < len(root[1]):
                pause = timedelta(seconds=root[1][len(values)][0])
                await workflow.wait_condition(workflow.all_handlers_finished)
                so_far = {"signals": self.signals(), "values": values, "updated": self.updated}
                workflow.continue_as_new(args=[root, so_far], backoff_start_interval=pause or None)
            value = values
        return {"value": value, "signals": self.signals(), "updated": self.updated}

    async def _evaluate(self, node: list[Any]) -> Any:  # noqa: C901, PLR0912 - a table, one row per operation
        self.steps += 1
        match node:
            case ["act", spec]:
                return await self._activity(spec)
            case ["sleep", seconds]:
                await workflow.sleep(seconds)
                return "slept"
            case ["signals", count]:
                await workflow.wait_condition(lambda: self._count() >= count)
                return "signalled"
            case ["wait", count, seconds]:
                return await self._wait(count, seconds)
            case ["seq", nodes]:
                return [await self._evaluate(inner) for inner in nodes]
            case ["gather", nodes]:
                return list(await asyncio.gather(*(self._evaluate(inner) for inner in nodes)))
            case ["first", nodes]:
                return await self._first(nodes)
            case ["cancel-after", seconds, inner]:
                return await self._cancel_after(seconds, inner)
            case ["leave", spec]:
                self.left.append(asyncio.create_task(self._work(spec)))
                return "left"
            case ["local", spec]:
                return await self._activity(spec, local=True)
            case ["flaky", failures, inner]:
                value = await self._evaluate(inner)
                if workflow.info().attempt <= failures:
                    raise ApplicationError("not yet", type="Flaky")
                return value
            case ["child", spec, root]:
                return await other_workflows.child(spec, root, self.left)
            case ["await", workflow_id]:
                return await other_workflows.wait_for(workflow_id)
            case ["session", specs]:
                return await self._session(specs)
            case ["tell", workflow_id, count]:
                return [await other_workflows.tell(workflow_id) for _ in range(count)]
            case ["fail", kind]:
                raise ApplicationError("for good", type=kind, non_retryable=True)
            case ["bug"]:
                if not bugs_are_fixed:
                    raise RuntimeError("a bug, which fails the workflow task until the code is fixed")
                return "fixed"
            case ["entropy", activity_id]:
                said = f"{workflow.uuid4()} {workflow.random().random()} {workflow.now().isoformat()}"
                echo = {"id": activity_id, "kind": "echo", "say": said, "duration": 0.0, "close": 30.0}
                return await self._work(echo)
            case _:
                raise ApplicationError(f"unknown operation {node!r}", non_retryable=True)

    async def _wait(self, count: int, seconds: float) -> str:
        try:
            await workflow.wait_condition(lambda: self._count() >= count, timeout=timedelta(seconds=seconds))
        except builtins.TimeoutError:
            return "timed-out"
        return "signalled"

    async def _first(self, nodes: list[list[Any]]) -> list[Any]:
        tasks = [asyncio.create_task(self._evaluate(inner)) for inner in nodes]
        try:
            done, _ = await workflow.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        winner = next(index for index, task in enumerate(tasks) if task in done)
        return [winner, tasks[winner].result()]

    async def _cancel_after(self, seconds: float, inner: list[Any]) -> Any:
        task = asyncio.create_task(self._evaluate(inner))
        await workflow.wait([task], timeout=seconds)
        if not task.done():
            task.cancel()
        try:
            return await task
        except BaseException as error:
            if is_cancelled_exception(error) and task.done():
                return "cancelled"
            raise

    async def _session(self, specs: list[dict[str, Any]]) -> list[str]:
        ten = timedelta(seconds=10)
        try:
            async with workflow.session(
                creation_timeout=ten, execution_timeout=6 * ten, heartbeat_timeout=ten / 2
            ) as session:
                return [await self._work({**spec, "queue": session.task_queue}) for spec in specs]
        except SessionFailedError:
            return ["broken"]

    async def _activity(self, spec: dict[str, Any], local: bool = False) -> Any:
        try:
            return await (self._work_here(spec) if local else self._work(spec))
        except ActivityError as error:
            if isinstance(error.cause, ApplicationError):
                return ["failed", error.cause.type]
            if isinstance(error.cause, TimeoutError) and error.cause.type is not None:
                return ["timed-out", str(error.cause.type)]
            raise

    async def _work_here(self, spec: dict[str, Any]) -> Any:
        return await workflow.execute_local_activity(
            ACTIVITY_TYPE,
            spec,
            start_to_close_timeout=timedelta(seconds=spec["close"]),
            retry_policy=RetryPolicy(
                initial_interval=_RETRIES.initial_interval,
                maximum_interval=_RETRIES.maximum_interval,
                maximum_attempts=spec.get("attempts", 0),
            ),
            local_retry_threshold=_optional(spec["threshold"]),
        )

    async def _work(self, spec: dict[str, Any]) -> Any:
        attempts: int = spec.get("attempts", 0)
        return await workflow.execute_activity(
            ACTIVITY_TYPE,
            spec,
            task_queue=spec.get("queue"),
            start_to_close_timeout=timedelta(seconds=spec["close"]),
            schedule_to_close_timeout=_optional(spec.get("overall")),
            schedule_to_start_timeout=_optional(spec.get("start")),
            heartbeat_timeout=_optional(spec.get("heartbeat")),
            retry_policy=RetryPolicy(
                initial_interval=_RETRIES.initial_interval,
                maximum_interval=_RETRIES.maximum_interval,
                maximum_attempts=attempts,
            ),
            cancellation_type=(
                workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
                if spec.get("wait-cancel")
                else workflow.ActivityCancellationType.TRY_CANCEL
            ),
        )


class Activities:
    """``attempt_begins`` is called first thing in each attempt; ``about_to_end`` last. Who is told ``left_open`` ends
    the attempt later."""

    def __init__(
        self,
        attempt_begins: Callable[[activity.Info], Awaitable[None]],
        about_to_end: Callable[[activity.Info], Awaitable[None]],
        left_open: Callable[[activity.Info, dict[str, Any]], None],
    ) -> None:
        self._attempt_begins = attempt_begins
        self._about_to_end = about_to_end
        self._left_open = left_open

    @activity.defn(name=ACTIVITY_TYPE)
    async def work(self, spec: dict[str, Any]) -> str:
        info = activity.info()
        await self._attempt_begins(info)
        if spec["kind"] in ("hang", "silent"):
            await asyncio.sleep(10_000.0)
        if spec["kind"] == "late":
            self._left_open(info, spec)
            activity.raise_complete_async()
        for beat in range(spec.get("beats", 0)):
            activity.heartbeat(beat)
            await asyncio.sleep(spec["duration"])
        if spec["duration"]:
            await asyncio.sleep(spec["duration"])
        await self._about_to_end(info)
        return _outcome(spec, info.attempt)


def _outcome(spec: dict[str, Any], attempt: int) -> str:
    kind = spec["kind"]
    if kind == "echo":
        return str(spec["say"])
    if kind == "bounded" or attempt <= spec.get("failures", 0):
        raise ApplicationError(f"attempt {attempt} fails", type="Flaky")
    if kind == "fatal":
        raise ApplicationError("for good", type="Fatal", non_retryable=True)
    return f"done-{spec['id']}"


def _optional(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
