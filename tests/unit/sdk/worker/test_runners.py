"""Workflow code under a worker's own conditions: with the guards lifted (PM-25), and in a debugger (PM-26)."""

import asyncio
import io
import pdb
import sys
import threading
import time
from datetime import timedelta

import pytest
from stepwell import workflow
from stepwell.client import Client
from stepwell.testing import DevEnvironment
from stepwell.worker import SandboxedWorkflowRunner, UnsandboxedWorkflowRunner, Worker


@workflow.defn
async def looks_at_the_clock() -> bool:
    return time.time() > 0


async def test_a_worker_without_guards() -> None:
    async with await DevEnvironment.start() as env:
        runner = UnsandboxedWorkflowRunner()
        async with Worker(env.client, task_queue="q", workflows=[looks_at_the_clock], workflow_runner=runner):
            assert await env.client.execute_workflow(looks_at_the_clock, id="w", task_queue="q") is True


async def test_the_default_has_them() -> None:
    async with await DevEnvironment.start() as env:
        runner = SandboxedWorkflowRunner()
        async with Worker(env.client, task_queue="q", workflows=[looks_at_the_clock], workflow_runner=runner):
            handle = await env.client.start_workflow(looks_at_the_clock, id="w", task_queue="q")
            async for event in handle.fetch_history_events(wait_new_event=True):
                if event.event_type == "WorkflowTaskFailed":
                    break


async def test_what_is_no_runner_is_refused() -> None:
    async with await DevEnvironment.start() as env:
        with pytest.raises(TypeError, match="must be SandboxedWorkflowRunner"):
            Worker(env.client, task_queue="q", workflows=[looks_at_the_clock], workflow_runner=False)  # type: ignore[arg-type]


@workflow.defn
async def with_a_breakpoint(number: int) -> int:
    doubled = 2 * number
    breakpoint()
    await workflow.sleep(0.01)
    return doubled


def debugger(monkeypatch: pytest.MonkeyPatch, commands: str, thinks: float = 0.0) -> io.StringIO:
    """What a person types into the debugger; returns what they see."""
    shown = io.StringIO()

    def hook() -> None:
        assert threading.current_thread() is threading.main_thread()
        with workflow.unsafe.sandbox_unrestricted():
            time.sleep(thinks)
        pdb.Pdb(stdin=io.StringIO(commands), stdout=shown, nosigint=True, readrc=False).set_trace(sys._getframe(1))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    return shown


async def run(client: Client, **options: object) -> int:
    worker = Worker(client, task_queue="q", workflows=[with_a_breakpoint], **options)  # type: ignore[arg-type]
    async with worker:
        result: int = await asyncio.wait_for(client.execute_workflow(with_a_breakpoint, 21, id="w", task_queue="q"), 20)
        return result


async def test_a_breakpoint_in_workflow_code(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = sys.gettrace()
    shown = debugger(monkeypatch, "p 'doubled', doubled\ncontinue\n", thinks=0.5)
    try:
        async with await DevEnvironment.start() as env:
            assert await run(env.client, debug_mode=True, deadlock_timeout=timedelta(seconds=0.1)) == 42
    finally:
        sys.settrace(traced)
    assert "('doubled', 42)" in shown.getvalue()
