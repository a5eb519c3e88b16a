"""Scenes of messages between workflows and at the ends of tasks and runs; as those of ``scenes``."""

from dataclasses import replace
from unittest import mock

from stepwell.api.commands import ContinueAsNewWorkflowExecution, SignalExternalWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CompletionOutcome
from stepwell.api.events import WorkflowExecutionSignaled, WorkflowTaskStarted

from stepwell_server.history import request_ids
from tests.simulation.stage import Machine, Stage
from tests.simulation.violation import Violation
from tests.support.crossing import KID, PARENT, begin, kid, take, terminate, turn
from tests.support.engine import QUEUE
from tests.support.updates import ADMITTED, DONE, accepted, completed, idle, rejected, update

HELLO = SignalExternalWorkflowExecution(execution=WorkflowExecution(workflow_id="target"), signal_name="hello")
NEXT = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)


async def a_dropped_task_is_answered_again_when_the_next_is_out(stage: Stage) -> None:
    """By a worker that was shown the rejected update, and now says something else."""
    engine = await stage.engine()
    driver = engine.driver
    await engine.do(idle(driver))
    await engine.do(update(driver, stage=ADMITTED))
    dropped = await engine.do(driver.take())
    await engine.do(driver.complete(dropped.task_token, rejected()))
    await engine.do(update(driver, "v", ADMITTED))
    await engine.do(driver.take())
    late = await engine.do(driver.complete(dropped.task_token, rejected(), DONE))
    if late.outcome is not CompletionOutcome.STALE:
        raise Violation(f"the completion of a task that was dropped is {late.outcome} for the next one")


async def a_run_goes_on_as_another_and_has_not_seen_an_update(stage: Stage) -> None:
    engine = await stage.engine()
    driver = engine.driver
    await engine.do(driver.start())
    task = await engine.do(driver.take())
    await engine.do(update(driver, stage=ADMITTED))
    answer = await engine.do(driver.complete(task.task_token, NEXT))
    if answer.outcome is not CompletionOutcome.ACCEPTED:  # it may be shown what came in first
        await engine.do(driver.complete((await engine.do(driver.take())).task_token, NEXT))
    shown = (await engine.do(driver.take())).updates
    if [each.request.meta.update_id for each in shown] != ["u"]:
        raise Violation("the next run is not shown an update that was admitted")


async def a_reset_goes_back_to_a_run_that_knows_an_update_of_the_current_one(stage: Stage) -> None:
    """It has ended there; the next run of the chain was asked for one of the same id, and has not seen it."""
    engine = await stage.engine()
    driver = engine.driver
    first = await engine.do(driver.start())
    await engine.do(update(driver, stage=ADMITTED))
    await engine.do(driver.complete((await engine.do(driver.take())).task_token, accepted(), completed()))
    await engine.do(driver.signal())
    await engine.do(driver.complete((await engine.do(driver.take())).task_token, NEXT))
    await engine.do(update(driver, stage=ADMITTED))
    history = await engine.do(driver.history(run_id=first))
    begun = [event.event_id for event in history if isinstance(event.attributes, WorkflowTaskStarted)]
    await engine.do(driver.reset(begun[-1], run_id=first))
    if (await engine.do(driver.take())).updates:
        raise Violation("the run made by a reset is shown an update that has ended in its history")


async def a_reset_goes_back_past_a_run_of_another_chain(stage: Stage) -> None:
    """What came in there was not meant for it (WC-31)."""
    engine = await stage.engine()
    driver = engine.driver
    first = await engine.do(driver.start())
    await engine.do(driver.complete((await engine.do(driver.take())).task_token))
    await engine.do(terminate(driver, "order-1"))
    await engine.do(driver.start())
    await engine.do(driver.signal(name="for another"))
    await engine.do(driver.complete((await engine.do(driver.take())).task_token))
    await engine.do(driver.reset(4, run_id=first))
    signals = await engine.do(_signals(engine, "order-1"))
    if signals:
        raise Violation(f"signals of another chain are taken over: {signals}")


async def two_signals_to_others_are_answered(stage: Stage) -> None:
    """At once, and not when their deadline asks again."""
    engine = await stage.engine()
    driver = engine.driver
    await _target(engine)
    await engine.do(idle(driver, HELLO, HELLO))
    otherwise = "signals were delivered, and who asked for them was not told"
    await stage.until(lambda: _all_answered(stage), 10.0, otherwise)


async def a_parent_closes_before_it_hears_that_its_child_has_ended(stage: Stage) -> None:
    """Somebody else has started a workflow of the child's id meanwhile, by another process of the engine."""
    stage.scenario = replace(stage.scenario, engines=2)
    one, other = await stage.engine(), await stage.engine()
    await one.do(begin(one.driver, kid()))
    task = await one.do(take(one.driver, "kid"))
    await stage.until(lambda: stage.model.heads[PARENT].kind == "ExternalDelivered", 10.0, "the parent is not told")
    with stage.holding(one, "append", "ExternalDelivered") as news:
        await one.do(one.driver.complete(task.task_token, DONE))
        await news.comes()
        stranger = await other.do(other.driver.start("kid"))
        await other.do(terminate(other.driver, "parent"))
        news.arrive()

    def is_told() -> bool:
        return not any(head.state.owed for head in stage.model.heads.values())

    await stage.until(is_told, 60.0, "something is owed")
    kids = stage.model.heads[KID]
    if kids.run_id != stranger or kids.state.close_time is not None:
        raise Violation("a parent's close has ended a run of its child's id that is none of its children")


async def a_signal_is_delivered_again_behind_many_others(stage: Stage) -> None:
    """Who has delivered it dies before that is recorded; the target's state has forgotten it by then. What the next
    workflow task there is shown has it once."""
    stage.scenario = replace(stage.scenario, engines=2)
    one, other = await stage.engine(), await stage.engine()
    with mock.patch.dict(request_ids.KEPT, {request_ids.SIGNAL: 4}):
        await _target(one)
        with stage.holding(one, "append", "ExternalDelivered") as answer:
            await one.do(idle(one.driver, HELLO))
            await answer.comes()
            one.die()
        for number in range(6):
            await other.do(other.driver.signal("target", name=f"other {number}"))
        await stage.until(lambda: _all_answered(stage), 120.0, "a signal is not answered")
        await other.do(turn(other.driver, "target"))


async def _target(engine: Machine) -> None:
    await engine.do(engine.driver.start("target"))
    await engine.do(engine.driver.complete((await engine.do(engine.driver.take())).task_token))


def _all_answered(stage: Stage) -> bool:
    return not any(head.state.external_signals for head in stage.model.heads.values())


async def _signals(engine: Machine, workflow_id: str) -> list[str]:
    events = await engine.driver.history(workflow_id)
    attributes = [event.attributes for event in events]
    return [each.signal_name for each in attributes if isinstance(each, WorkflowExecutionSignaled)]
