"""VI-09: memo and search attributes, given at a start and changed by workflow code; seen by it, by describe and by
list.
"""

from stepwell.client import WithStartWorkflowOperation
from stepwell.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy

from tests.conformance.attributes.workflow import CITY, PAID, TAGS, Letter, Parcel, Sender
from tests.support.conformance import Feature

ARRIVED = [{"weight": 7, "city": "Oslo"}, "Oslo", None, ["a", "b"]]


async def test_code_describe_and_list_see_the_same(feature: Feature) -> None:
    async with feature.worker([Parcel]):
        handle = await feature.start(Parcel.run, memo={"note": "fragile"})
        await feature.idle(handle)
        assert await handle.query(Parcel.known) == [{"note": "fragile", "weight": 7}, "Rome", True, ["a", "b"]]
        described = await handle.describe()
        assert await described.memo() == {"note": "fragile", "weight": 7}
        found = described.typed_search_attributes
        assert (found[CITY], found[PAID], found[TAGS]) == ("Rome", True, ["a", "b"])
        (row,) = [row async for row in feature.client.list_workflows() if row.id == handle.id]
        assert row.typed_search_attributes == found and await row.memo() == await described.memo()
        await handle.signal(Parcel.arrive, "Oslo")
        assert await handle.result() == ARRIVED
        described = await handle.describe()
        assert await described.memo() == ARRIVED[0]
        assert PAID not in described.typed_search_attributes and len(described.typed_search_attributes) == 2
        (row,) = [row async for row in feature.client.list_workflows() if row.id == handle.id]
        assert row.typed_search_attributes == described.typed_search_attributes


async def test_a_start_says_by_what_it_is_found(feature: Feature) -> None:
    """By the first run and the next, which has the same unless it is given others."""
    async with feature.worker([Letter]):
        handle = await feature.start(
            Letter.run, 2, search_attributes=[CITY.value_set("Rome"), PAID.value_set(True), TAGS.value_unset()]
        )
        first = feature.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        assert await handle.result() == ["Oslo", None, None]
        found = (await first.describe()).typed_search_attributes
        assert (found[CITY], found[PAID], len(found)) == ("Rome", True, 2)
        found = (await feature.client.get_workflow_handle(handle.id).describe()).typed_search_attributes
        assert (found[CITY], len(found)) == ("Oslo", 1)


async def test_a_start_with_a_message_does_too(feature: Feature) -> None:
    typed = TypedSearchAttributes([SearchAttributePair(CITY, "Kyiv")])
    async with feature.worker([Letter]):
        handle = await feature.start(Letter.run, 0, id="signalled", start_signal="stamp", search_attributes=typed)
        assert await handle.result() == ["Kyiv", None, None]
        operation = WithStartWorkflowOperation(
            Letter.run,
            0,
            id=feature.id_of("updated"),
            task_queue=feature.task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            search_attributes=typed,
            static_summary="a letter",
            static_details="to **Kyiv**",
        )
        told = await feature.client.execute_update_with_start_workflow(Letter.weigh, start_workflow_operation=operation)
        assert told == "Kyiv"
        handle = await operation.workflow_handle()
        await feature.follow(handle, "updated")
        assert await handle.result() == ["Kyiv", None, None]
        described = await handle.describe()
        assert (await described.static_summary(), await described.static_details()) == ("a letter", "to **Kyiv**")
        assert described.typed_search_attributes == typed


async def test_a_child_is_found_and_described_by_what_its_parent_says(feature: Feature) -> None:
    async with feature.worker([Letter, Sender]):
        handle = await feature.start(Sender.run, feature.id_of("child"))
        assert await handle.result() == ["Bonn", None, None]
        child = feature.client.get_workflow_handle(feature.id_of("child"))
        await feature.follow(child, "child")
        described = await child.describe()
        assert (await described.static_summary(), await described.static_details()) == ("a letter", "to **Bonn**")
        assert described.typed_search_attributes == TypedSearchAttributes([SearchAttributePair(CITY, "Bonn")])
