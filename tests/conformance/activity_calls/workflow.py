"""Calls of activities: one after the other, many at once, by name, with arguments and results of every shape."""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from stepwell import activity, workflow

LIMIT = timedelta(seconds=30)


@dataclass
class Order:
    number: int
    items: list[str]


@activity.defn
async def double(number: int) -> int:
    return 2 * number


@activity.defn
def double_in_a_thread(number: int) -> int:
    time.sleep(0.001)
    return 2 * number


@activity.defn
async def without(item: str, order: Order) -> Order:
    return Order(order.number, [kept for kept in order.items if kept != item])


@activity.defn
async def key() -> tuple[str, str, int]:
    info = activity.info()
    return info.activity_id, info.workflow_id, info.attempt


ACTIVITIES = (double, double_in_a_thread, without, key)


@workflow.defn
async def sequence(number: int) -> int:
    number = await workflow.execute_activity(double, number, start_to_close_timeout=LIMIT)
    return await workflow.execute_activity(double_in_a_thread, number, start_to_close_timeout=LIMIT)


@workflow.defn
async def fan_out(numbers: list[int]) -> list[int]:
    return await asyncio.gather(
        *(workflow.execute_activity(double, number, start_to_close_timeout=LIMIT) for number in numbers)
    )


@workflow.defn
async def typed(order: Order) -> Order:
    return await workflow.execute_activity(without, args=["egg", order], start_to_close_timeout=LIMIT)


@workflow.defn
async def named() -> list[Any]:
    return await workflow.execute_activity("key", activity_id="my-step", start_to_close_timeout=LIMIT)
