"""Workflows that say of themselves by what they are found, and what is worth knowing of them."""

from typing import Any

from stepwell import workflow
from stepwell.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

CITY = SearchAttributeKey.for_keyword("City")
PAID = SearchAttributeKey.for_bool("Paid")
TAGS = SearchAttributeKey.for_keyword_list("Tags")


@workflow.defn
class Letter:
    """Known by what it was started with; goes on once as new."""

    @workflow.run
    async def run(self, turns: int) -> list[Any]:
        found = workflow.search_attributes()
        if turns == 2:
            workflow.continue_as_new(turns - 1)
        if turns == 1:
            workflow.continue_as_new(turns - 1, search_attributes=[CITY.value_set("Oslo"), PAID.value_unset()])
        return [found.get(CITY), found.get(PAID), found.get(TAGS)]

    @workflow.signal
    def stamp(self) -> None: ...

    @workflow.update
    def weigh(self) -> str | None:
        return workflow.search_attributes().get(CITY)


@workflow.defn
class Sender:
    """Starts a letter as its child."""

    @workflow.run
    async def run(self, child_id: str) -> list[Any]:
        return await workflow.execute_child_workflow(
            Letter.run,
            0,
            id=child_id,
            search_attributes=TypedSearchAttributes([SearchAttributePair(CITY, "Bonn"), SearchAttributePair(TAGS, [])]),
            static_summary="a letter",
            static_details="to **Bonn**",
        )


@workflow.defn
class Parcel:
    def __init__(self) -> None:
        self.arrived = False

    @workflow.signal
    def arrive(self, city: str) -> None:
        workflow.upsert_search_attributes([CITY.value_set(city), PAID.value_unset()])
        workflow.upsert_memo({"note": None, "city": city})
        self.arrived = True

    @workflow.query
    def known(self) -> list[Any]:
        found = workflow.search_attributes()
        return [workflow.memo(), found.get(CITY), found.get(PAID), found.get(TAGS)]

    @workflow.run
    async def run(self) -> list[Any]:
        workflow.upsert_memo({"weight": 7})
        workflow.upsert_search_attributes([CITY.value_set("Rome"), PAID.value_set(True), TAGS.value_set(["a", "b"])])
        await workflow.wait_condition(lambda: self.arrived)
        return self.known()
