"""Search attributes from a client's side: registered by their use, kept to their type, and searched for."""

import asyncio
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.client import Client, RPCError
from stepwell.common import SearchAttributeKey
from stepwell.exceptions import ApplicationError
from stepwell.worker import Worker

CITY = SearchAttributeKey.for_keyword("City")
AMOUNT = SearchAttributeKey.for_int("Amount")
AMOUNT_AS_TEXT = SearchAttributeKey.for_keyword("Amount")


@workflow.defn
class Parcel:
    @workflow.run
    async def run(self, wrongly: bool) -> None:
        workflow.upsert_search_attributes([(AMOUNT_AS_TEXT if wrongly else AMOUNT).value_set("5" if wrongly else 5)])
        await workflow.wait_condition(lambda: False)


async def found(client: Client, query: str) -> list[str]:
    return sorted([run.id async for run in client.list_workflows(query)])


async def test_attributes_register_themselves_and_keep_their_type() -> None:
    async with await Client.connect("sqlite://:memory:") as client:
        for number, city in enumerate(["Oslo", "Rome", "Oslo"]):
            await client.start_workflow(
                "Letter", id=f"w{number}", task_queue="q", search_attributes=[CITY.value_set(city)]
            )
        assert (await client.namespaces.describe("default")).search_attributes == {"City": "Keyword"}
        assert await found(client, "City = 'Oslo'") == ["w0", "w2"]
        with pytest.raises(RPCError, match="'City' of namespace 'default' has the type Keyword, not Int"):
            await client.start_workflow(
                "Letter", id="w3", task_queue="q", search_attributes=[SearchAttributeKey.for_int("City").value_set(1)]
            )
        with pytest.raises(RPCError, match="'WorkflowId' is one of the system's own"):
            await client.start_workflow(
                "Letter",
                id="w3",
                task_queue="q",
                start_signal="s",
                search_attributes=[SearchAttributeKey.for_keyword("WorkflowId").value_set("x")],
            )
        assert await found(client, "") == ["w0", "w1", "w2"]


async def test_a_namespace_may_want_its_attributes_registered_first() -> None:
    async with await Client.connect("sqlite://:memory:", namespace="strict") as client:
        await client.namespaces.register("strict", search_attributes=(CITY,), implicit_search_attributes=False)
        await client.start_workflow("Letter", id="w", task_queue="q", search_attributes=[CITY.value_set("Oslo")])
        assert await found(client, "City = 'Oslo' AND ExecutionStatus = 'Running'") == ["w"]
        with pytest.raises(RPCError, match="'Amount' is not registered in namespace 'strict'"):
            await client.start_workflow("Letter", id="v", task_queue="q", search_attributes=[AMOUNT.value_set(5)])
        assert await found(client, "") == ["w"]


async def test_an_attribute_that_is_removed_is_searched_for_no_more_and_may_come_back_with_another_type() -> None:
    """Runs keep their values; those of another type than asked for are none."""
    async with await Client.connect("sqlite://:memory:", namespace="strict") as client:
        await client.namespaces.register("strict", search_attributes=(CITY,), implicit_search_attributes=False)
        await client.start_workflow("Letter", id="w", task_queue="q", search_attributes=[CITY.value_set("Oslo")])
        for _ in range(2):
            await client.namespaces.update("strict", remove_search_attributes=[CITY.name])
        with pytest.raises(RPCError, match="there is no search attribute 'City'"):
            await found(client, "City = 'Oslo'")
        with pytest.raises(RPCError, match="'City' is not registered"):
            await client.start_workflow("Letter", id="v", task_queue="q", search_attributes=[CITY.value_set("Rome")])
        assert (await client.get_workflow_handle("w").describe()).typed_search_attributes[CITY] == "Oslo"
        number = SearchAttributeKey.for_int(CITY.name)
        await client.namespaces.update("strict", search_attributes=(number,))
        await client.start_workflow("Letter", id="n", task_queue="q", search_attributes=[number.value_set(5)])
        assert await found(client, "City = 5") == ["n"] and await found(client, "City IS NULL") == ["w"]
        await client.namespaces.update("strict", search_attributes=(CITY,), remove_search_attributes=[CITY.name])
        assert await found(client, "City = 'Oslo'") == ["w"]
        with pytest.raises(RPCError, match="one of the system's own"):
            await client.namespaces.update("strict", remove_search_attributes=["RunId"])
        with pytest.raises(TypeError, match="list of names"):
            await client.namespaces.update("strict", remove_search_attributes="City")


async def test_code_that_says_a_value_of_another_type_fails_its_task() -> None:
    async with await Client.connect("sqlite://:memory:") as client, Worker(client, task_queue="q", workflows=[Parcel]):
        await client.start_workflow(Parcel.run, False, id="right", task_queue="q")
        while not await _known(client, "Amount") or await found(client, "Amount >= 5") != ["right"]:
            await asyncio.sleep(0.01)
        wrong = await client.start_workflow(Parcel.run, True, id="wrong", task_queue="q")
        while (task := (await wrong.describe()).pending_workflow_task) is None or task.attempt < 2:
            await asyncio.sleep(0.01)
        assert task.last_cause is WorkflowTaskFailedCause.BAD_SEARCH_ATTRIBUTES
        assert task.last_failure is not None and "has the type Int, not Keyword" in task.last_failure.message
        assert await found(client, "Amount IS NOT NULL") == ["right"]


async def _known(client: Client, name: str) -> bool:
    return name in (await client.namespaces.describe("default")).search_attributes


@activity.defn
async def charge(order: str) -> None:
    raise ApplicationError("no", type="Declined", non_retryable=order == "final")


@workflow.defn
class Order:
    """Code that is wrong until it is repaired."""

    broken = True

    @workflow.run
    async def run(self, order: str) -> None:
        if order == "broken" and Order.broken:
            raise RuntimeError("a plain bug")
        if order != "broken":
            await workflow.execute_activity(charge, order, start_to_close_timeout=timedelta(seconds=20))
        await workflow.wait_condition(lambda: False)


async def eventually(client: Client, query: str, expected: list[str]) -> None:
    while await found(client, query) != expected:
        await asyncio.sleep(0.01)


async def test_runs_that_fail_are_found_by_what_they_fail_with() -> None:
    """VI-19, WC-18."""
    async with (
        await Client.connect("sqlite://:memory:") as client,
        Worker(client, task_queue="q", workflows=[Order], activities=[charge]),
    ):
        for order in ("broken", "again", "final"):
            await client.start_workflow(Order.run, order, id=order, task_queue="q")
        await eventually(client, "StepwellFailureCause IS NOT NULL AND CloseTime IS NULL", ["again", "broken"])
        await eventually(client, "StepwellFailureCause = 'Declined'", ["again", "final"])
        await eventually(client, "StepwellFailingActivity = 'charge' AND ExecutionStatus = 'Failed'", ["final"])
        assert await found(client, "StepwellFailureCause = 'WORKFLOW_WORKER_UNHANDLED_FAILURE'") == ["broken"]
        Order.broken = False
        await eventually(client, "StepwellFailureCause IS NOT NULL AND ExecutionStatus = 'Running'", ["again"])
