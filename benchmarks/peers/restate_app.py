"""Restate handlers in Python, served by hypercorn."""

import os
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import restate
import steplog

seq_workflow = restate.Workflow("Seq")
fan_workflow = restate.Workflow("Fan")
timer_workflow = restate.Workflow("Timer")
sig_workflow = restate.Workflow("Sig")


def body(workflow_id: str, index: int, previous: int) -> Callable[[], Awaitable[int]]:
    async def run() -> int:
        return steplog.step(workflow_id, index, previous)

    return run


@seq_workflow.main(name="run")
async def seq(ctx: restate.WorkflowContext, n: int) -> list[int]:
    previous, tokens = 0, []
    for index in range(n):
        previous = await ctx.run_typed("step", body(ctx.key(), index, previous))
        if n <= 3:
            tokens.append(previous)
    return tokens


@fan_workflow.main(name="run")
async def fan(ctx: restate.WorkflowContext, n: int) -> int:
    return len([await f for f in [ctx.run_typed("step", body(ctx.key(), i, 0)) for i in range(n)]])


@timer_workflow.main(name="run")
async def timer(ctx: restate.WorkflowContext, n: int) -> int:
    steplog.log("S", ctx.key())
    await ctx.sleep(timedelta(seconds=n))
    steplog.log("K", ctx.key())
    return n


@sig_workflow.main(name="run")
async def sig(ctx: restate.WorkflowContext, n: int) -> int:
    for index in range(n):
        value = await ctx.promise(f"m{index}", type_hint=int).value()
        steplog.log("H", ctx.key(), value)
    return n


@sig_workflow.handler()
async def message(ctx: restate.WorkflowSharedContext, index: int) -> None:
    await ctx.promise(f"m{index}", type_hint=int).resolve(index)


app = restate.app([seq_workflow, fan_workflow, timer_workflow, sig_workflow])
steplog.log("B", "boot")
