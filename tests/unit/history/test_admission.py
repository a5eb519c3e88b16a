"""Starts at once: how many, in which order, and what a cancelled caller leaves behind."""

import asyncio

from stepwell_server.history.admission import Admission


class Store:
    def __init__(self, quick: bool) -> None:
        self.quick = quick

    def is_quick(self) -> bool:
        return self.quick


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def caller(admission: Admission, number: int, entered: list[int], leave: asyncio.Event) -> None:
    if not admission.try_enter():
        await admission.enter()
    try:
        entered.append(number)
        await leave.wait()
    finally:
        admission.leave()


async def test_so_many_at_once_and_the_others_in_their_order() -> None:
    admission, entered = Admission(Store(True).is_quick, most=2), list[int]()
    leave = [asyncio.Event() for _ in range(5)]
    callers = [asyncio.create_task(caller(admission, n, entered, leave[n])) for n in range(5)]
    await settle()
    assert entered == [0, 1]
    leave[1].set()
    await settle()
    assert entered == [0, 1, 2]
    for event in leave:
        event.set()
    await asyncio.gather(*callers)
    assert entered == [0, 1, 2, 3, 4]
    assert admission.try_enter() and admission.try_enter() and not admission.try_enter(), "all places are free again"


async def test_a_slow_store_takes_all_at_once() -> None:
    store = Store(True)
    admission, entered, leave = Admission(store.is_quick, most=1), list[int](), asyncio.Event()
    first = asyncio.Event()
    callers = [asyncio.create_task(caller(admission, n, entered, leave if n else first)) for n in range(5)]
    await settle()
    assert entered == [0]
    store.quick = False
    first.set()
    await settle()
    assert entered == [0, 1, 2, 3, 4], "those that waited too"
    leave.set()
    await asyncio.gather(*callers)


async def test_who_is_cancelled_takes_no_place() -> None:
    admission, entered, leave = Admission(Store(True).is_quick, most=1), list[int](), asyncio.Event()
    callers = [asyncio.create_task(caller(admission, n, entered, leave)) for n in range(4)]
    await settle()
    callers[1].cancel()  # it waits
    await settle()
    leave.set()
    await asyncio.sleep(0)
    callers[2].cancel()  # its turn has come by now, or comes next
    await asyncio.gather(*callers, return_exceptions=True)
    assert entered[0] == 0 and entered[-1] == 3 and 1 not in entered
    assert admission.try_enter() and not admission.try_enter(), "its place is free again"
