"""Workflows that are cancelled, and what they make of it."""

import asyncio
from datetime import timedelta

from stepwell import activity, workflow

LIMIT = timedelta(seconds=30)


@activity.defn
async def clean_up() -> str:
    return "clean"


@workflow.defn
async def waits() -> None:
    await workflow.sleep(3600)


@workflow.defn
async def cleans_up() -> None:
    """Shielded, so that it would survive another cancellation of its task."""
    try:
        await workflow.sleep(3600)
    finally:
        await asyncio.shield(workflow.start_activity(clean_up, start_to_close_timeout=LIMIT))


@workflow.defn
async def carries_on() -> str:
    """Swallows it: asking again changes nothing."""
    try:
        await workflow.sleep(3600)
    except asyncio.CancelledError:
        reason = workflow.cancellation_reason()
    await workflow.wait_for_signal("end")
    return f"cancelled because {reason}, and went on"


@workflow.defn
async def shields(seconds: float) -> str:
    """The wait outlives the cancellation that ends the waiting for it."""
    timer = asyncio.ensure_future(asyncio.sleep(seconds))
    try:
        await asyncio.shield(timer)
    except asyncio.CancelledError:
        await timer
        return "slept to the end"
    return "not cancelled"


@workflow.defn
async def ends_with_its_signal() -> str:
    """The signal and a cancellation may reach it in one task."""
    await workflow.wait_for_signal("end")
    return "ended"


WORKFLOWS = (waits, cleans_up, carries_on, shields, ends_with_its_signal)
