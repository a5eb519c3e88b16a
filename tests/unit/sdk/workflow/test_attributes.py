"""Upserts of memo and search attributes in workflow code, and the types of search attributes (VI-07 to VI-09)."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from stepwell import workflow
from stepwell.api.payloads import Payload
from stepwell.client import Client
from stepwell.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from stepwell.converter import DataConverter, PayloadCodec
from stepwell.replay.errors import WorkflowTaskError
from stepwell.search_attributes import SearchAttributeUpdate, encoded, first_of
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker

from tests.support.histories import Driver

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
KEY = SearchAttributeKey
CITY = KEY.for_keyword("City")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEY.for_text("a"), "some words"),
        (KEY.for_keyword("a"), "ü"),
        (KEY.for_int("a"), 2**60),
        (KEY.for_float("a"), 1.5),
        (KEY.for_bool("a"), False),
        (KEY.for_datetime("a"), NOON),
        (KEY.for_keyword_list("a"), ["x", "y"]),
    ],
)
def test_values_survive(key: SearchAttributeKey[Any], value: Any) -> None:
    found = TypedSearchAttributes.of_payloads({"a": key.value_set(value).payload()})
    assert found[key] == value and list(found) == [SearchAttributePair(key, value)] and key in found
    assert found.get(KEY.for_keyword("b"), "none") == "none"


def test_an_integer_is_a_float_too() -> None:
    assert KEY.for_float("a").value_set(2).value == 2


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (KEY.for_int("a"), True, "is of type Int, and takes no bool"),
        (KEY.for_int("a"), 1.0, "takes no float"),
        (KEY.for_float("a"), False, "takes no bool"),
        (KEY.for_keyword("a"), 1, "takes no int"),
        (KEY.for_keyword_list("a"), "text", "takes no str"),
        (KEY.for_keyword_list("a"), [1], "takes no list"),
        (KEY.for_datetime("a"), NOON.replace(tzinfo=None), "has no time zone"),
        (KEY.for_text("a"), "x" * 2_047, "has 2049 bytes, the limit is 2048"),
    ],
)
def test_values_that_do_not_fit(key: SearchAttributeKey[Any], value: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        key.value_set(value)


def test_what_has_no_known_type_is_left_out() -> None:
    other = Payload(metadata={"encoding": "json/plain"}, data=b"1")
    assert len(TypedSearchAttributes.of_payloads({"a": other, "b": encoded(CITY, "Rome")})) == 1


@workflow.defn
async def misuses(how: str) -> None:
    match how:
        case "no memo":
            workflow.upsert_memo({})
        case "memo name":
            workflow.upsert_memo({1: 2})  # type: ignore[dict-item]
        case "memo value":
            workflow.upsert_memo({"a": object()})
        case "none":
            workflow.upsert_search_attributes([])
        case "twice":
            workflow.upsert_search_attributes([CITY.value_set("a"), CITY.value_unset()])
        case "reserved":
            workflow.upsert_search_attributes([KEY.for_int("StepwellSomething").value_set(1)])


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("no memo", "nothing to change"),
        ("memo name", "1 is no name"),
        ("memo value", "upsert_memo, 'a'"),
        ("none", "nothing to change"),
        ("twice", "'City' is there twice"),
        ("reserved", "a name of the system's own"),
    ],
)
def test_bad_input_fails_the_task(how: str, says: str) -> None:
    with pytest.raises(WorkflowTaskError) as raised:
        Driver(misuses, how).task()
    assert says in raised.value.failure.message


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"City": ["Rome"]}, TypeError, "take \\[key.value_set"),
        (["Rome"], TypeError, "not 'Rome' among them"),
        ([CITY.value_set("a"), SearchAttributePair(CITY, "b")], ValueError, "'City' is there twice"),
        ([KEY.for_int("StepwellSomething").value_set(1)], ValueError, "a name of the system's own"),
        (TypedSearchAttributes([SearchAttributePair(CITY, 1)]), TypeError, "takes no int"),
    ],
)
def test_what_a_start_does_not_take(given: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        first_of("search_attributes", given)


def test_a_start_takes_those_of_another_run_without_the_systems_own() -> None:
    """So that ``workflow.search_attributes()`` can be passed on."""
    of_a_run = TypedSearchAttributes(
        [SearchAttributePair(CITY, "Rome"), SearchAttributePair(KEY.for_keyword_list("StepwellChangeVersion"), ["a"])]
    )
    assert list(first_of("search_attributes", of_a_run)) == ["City"]
    assert first_of("search_attributes", None) == {}
    assert first_of("search_attributes", [CITY.value_unset(), KEY.for_keyword_list("T").value_set([])]) == {}


class Reversing(PayloadCodec):
    """Makes everything unreadable that passes through it."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata={"encoding": "x", "was": p.metadata["encoding"]}, data=p.data[::-1]) for p in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": p.metadata["was"]}, data=p.data[::-1]) if "was" in p.metadata else p
            for p in payloads
        ]


@workflow.defn
async def behind_a_codec() -> dict[str, Any]:
    workflow.upsert_memo({"kept": "secret", "gone": None})
    workflow.upsert_search_attributes([CITY.value_set("Rome")])
    return dict(workflow.memo())


async def test_with_a_codec_names_are_still_taken_away_and_found() -> None:
    async with await DevEnvironment.start() as env:
        converter = DataConverter(payload_codec=Reversing())
        client = Client(env.client.transport, data_converter=converter)
        async with Worker(client, task_queue="q", workflows=[behind_a_codec]):
            handle = await client.start_workflow(behind_a_codec, id="w", task_queue="q", memo={"gone": 1})
            assert await handle.result() == {"kept": "secret"}
        described = await handle.describe()
        assert await described.memo() == {"kept": "secret"}
        assert described.typed_search_attributes[CITY] == "Rome"
        raw = (await env.client.get_workflow_handle("w").describe()).raw_info
        assert b"secret" not in raw.memo["kept"].data
        assert raw.search_attributes["City"].data == b'"Rome"'


def test_an_update_says_what_it_does() -> None:
    assert CITY.value_unset() == SearchAttributeUpdate(CITY, None)
