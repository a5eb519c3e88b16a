"""Workflow tasks that workers hold: offered again when nobody answers, forgotten when somebody does."""

import asyncio

import msgspec
from stepwell.api.common import ProcessIdentity
from stepwell.api.enums import WorkflowIDConflictPolicy

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.handed_out import HandedOut, HandedOutTasks, identity_of
from stepwell_server.history.ports import WorkflowTaskRef
from tests.support.history_run import Run

KEY = ExecutionKey("default", "order-1")
REF = WorkflowTaskRef(KEY, "run-1", 1)
WORKER = ProcessIdentity(machine="m", pid=1, started="1")


def hand_out(run: Run, seconds: float = 60.0) -> tuple[HandedOutTasks, list[HandedOut]]:
    offered: list[HandedOut] = []
    tasks = HandedOutTasks(offered.append)
    task = identity_of(run.s)
    assert task is not None
    tasks.add(REF, task, "orders", WORKER, seconds)
    return tasks, offered


async def test_offered_again_once_when_the_time_is_over() -> None:
    run = Run()
    tasks, offered = hand_out(run, 0.01)
    assert tasks.is_held(KEY, identity_of(run.s))  # type: ignore[arg-type]
    await asyncio.sleep(0.05)
    assert [record.ref for record in offered] == [REF]
    assert not tasks.is_held(KEY, identity_of(run.s))  # type: ignore[arg-type]


async def test_an_answer_ends_it_and_a_message_does_not() -> None:
    run = Run()
    tasks, offered = hand_out(run, 0.02)
    task = identity_of(run.s)
    assert task is not None
    run.signal()
    tasks.committed(KEY, run.s)
    assert tasks.is_held(KEY, task)
    run.accept()
    tasks.committed(KEY, run.s)
    assert not tasks.is_held(KEY, task)
    await asyncio.sleep(0.05)
    assert offered == []


async def test_what_a_lost_process_holds_is_offered_at_once() -> None:
    tasks, offered = hand_out(Run())
    assert list(tasks.processes()) == [WORKER]
    tasks.take_from(ProcessIdentity(machine="m", pid=2, started="1"))
    assert offered == []
    tasks.take_from(WORKER)
    assert len(offered) == 1 and not tasks.processes()


async def test_a_refused_close_is_remembered_for_this_task_alone() -> None:
    run = Run()
    tasks, _ = hand_out(run)
    task = identity_of(run.s)
    assert task is not None and tasks.refused_closes(KEY, task) == 0
    tasks.close_refused(KEY, run.s)
    assert tasks.refused_closes(KEY, task) == 1
    token = run.begin()
    run.signal()
    run.accept(token=token)
    tasks.committed(KEY, run.s)
    following = identity_of(run.s)
    assert following is not None and tasks.refused_closes(KEY, following) == 0
    tasks.stop()


async def test_a_run_that_replaces_another_ends_its_hand_out() -> None:
    """Its own first task looks the same but for the run."""
    run = Run()
    tasks, offered = hand_out(run, 0.01)
    before = identity_of(run.s)
    run.start("run-2", workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
    after = identity_of(run.s)
    assert before is not None and after is not None and msgspec.structs.replace(before, run_id="run-2") == after
    tasks.committed(KEY, run.s)
    assert not tasks.is_held(KEY, before) and not tasks.is_held(KEY, after)
    await asyncio.sleep(0.03)
    assert offered == []
