"""Memo, current details and the instance, as workflow code sees them (PM-27, PM-28)."""

import dataclasses
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from stepwell import workflow
from stepwell.replay.errors import ReadOnlyContextError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker

from tests.support.histories import CONVERTER, Driver, payloads


@dataclass
class Customer:
    name: str
    age: int


@workflow.defn
class Noted:
    @workflow.run
    async def run(self) -> list[Any]:
        assert workflow.instance() is self
        workflow.set_current_details("reading the memo")
        with pytest.raises(KeyError, match="the memo has no 'other'; it has: customer, note"):
            workflow.memo_value("other")
        with pytest.raises(ValueError, match="have 20001 bytes, the limit is 20000"):
            workflow.set_current_details("x" * 20_001)
        values = [
            workflow.memo(),
            workflow.memo_value("note"),
            workflow.memo_value("customer", type_hint=Customer).name,
            workflow.memo_value("other", 7),
        ]
        await workflow.sleep(timedelta(milliseconds=10))
        workflow.set_current_details(f"{workflow.get_current_details()}: done")
        return values

    @workflow.query
    def spoil(self) -> None:
        workflow.set_current_details("from a query")


EXPECTED = [{"note": "gift", "customer": {"name": "Ann", "age": 30}}, "gift", "Ann", 7]


def noted(cache: bool) -> Driver:
    d = Driver(Noted, cache=cache)
    started = d.history.events[0]
    memo = {"note": payloads("gift")[0], "customer": payloads(dataclasses.asdict(Customer("Ann", 30)))[0]}
    attributes = msgspec.structs.replace(started.attributes, memo=memo)
    d.history.events[0] = msgspec.structs.replace(started, attributes=attributes)
    return d


def details(d: Driver) -> str:
    (metadata,) = CONVERTER.payload_converter.from_payloads(d.run.query("__workflow_metadata"))
    return str(metadata["current_details"])


@pytest.mark.parametrize("cache", [True, False])
def test_memo_and_current_details(cache: bool) -> None:
    d = noted(cache)
    d.task()
    assert details(d) == "reading the memo"
    with pytest.raises(ReadOnlyContextError, match="setting the current details"):
        d.run.query("spoil")
    d.history.timer_fired()
    d.task()
    assert d.value() == EXPECTED
    assert details(d) == "reading the memo: done"
    d.replay()


def test_a_function_has_no_instance_and_no_details_at_first() -> None:
    @workflow.defn
    async def plain() -> list[Any]:
        return [workflow.instance(), workflow.get_current_details(), workflow.memo()]

    d = Driver(plain)
    d.task()
    assert d.value() == [None, "", {}]


async def test_on_the_engine() -> None:
    async with await DevEnvironment.start() as env:
        async with Worker(env.client, task_queue="q", workflows=[Noted]):
            memo = {"note": "gift", "customer": Customer("Ann", 30)}
            handle = await env.client.start_workflow(Noted.run, id="w", task_queue="q", memo=memo)
            assert await handle.result() == EXPECTED
            assert (await handle.query("__workflow_metadata"))["current_details"] == "reading the memo: done"
