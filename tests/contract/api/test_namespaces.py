"""Namespaces over every transport (MT-01, MT-02): registered once, described, changed, listed in order, deprecated."""

from datetime import timedelta
from typing import Any

import pytest
from stepwell.api import operations as o
from stepwell.api.enums import NamespaceState
from stepwell.api.errors import (
    FailedPrecondition,
    InvalidArgument,
    NamespaceAlreadyExists,
    NamespaceNotFound,
)
from stepwell.api.limits import DEFAULT_RETENTION
from stepwell.api.namespaces import NamespaceInfo, NamespaceLimits
from stepwell.api.operations import Operation

from .client import ApiClient

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


async def describe(api: ApiClient, name: str) -> NamespaceInfo:
    info: NamespaceInfo = (await api.call(o.DESCRIBE_NAMESPACE, namespace=name)).info
    return info


async def listed(api: ApiClient, page_size: int = 100) -> list[str]:
    names: list[str] = []
    token = b""
    while True:
        page = await api.call(o.LIST_NAMESPACES, page_size=page_size, next_page_token=token)
        assert len(page.namespaces) <= page_size
        names += [info.name for info in page.namespaces]
        token = page.next_page_token
        if not token:
            return names


async def test_what_is_registered_is_described(api: ApiClient) -> None:
    limits = NamespaceLimits(requests_per_second=10.5, concurrent_long_polls=3, max_payload_bytes=4_096)
    fields: dict[str, Any] = {
        "description": "all\nof the shop",
        "owner_email": "shop@example.com",
        "data": {"team": "blue", "gone": ""},
        "retention": 2 * DAY,
        "limits": limits,
        "search_attributes": {"Customer": "Keyword"},
        "implicit_search_attributes": False,
        "callers_allowed": ("*", "billing"),
    }
    made = await api.call(o.REGISTER_NAMESPACE, namespace="shop", **fields)
    info = await describe(api, "shop")
    assert info.created_at is not None
    assert info == NamespaceInfo(
        name="shop", id=made.id, **(fields | {"data": {"team": "blue"}}), created_at=info.created_at
    )
    assert made.id not in ("", "shop") and info.state is NamespaceState.REGISTERED


async def test_a_name_is_taken_once_and_a_repeat_is_no_second_time(api: ApiClient) -> None:
    first = await api.call(o.REGISTER_NAMESPACE, namespace="shop", request_id="r-1")
    again = await api.call(o.REGISTER_NAMESPACE, namespace="shop", request_id="r-1")
    assert again == first
    for request_id in ("r-2", ""):
        with pytest.raises(NamespaceAlreadyExists, match="'shop' is registered already; update it"):
            await api.call(o.REGISTER_NAMESPACE, namespace="shop", request_id=request_id)
    other = await api.call(o.REGISTER_NAMESPACE, namespace="shop-2")
    assert other.id != first.id
    assert (await describe(api, "shop")).retention == DEFAULT_RETENTION


async def test_what_is_given_is_changed_and_nothing_else(api: ApiClient) -> None:
    await api.call(o.REGISTER_NAMESPACE, namespace="shop", description="old", data={"a": "1", "b": "2"}, retention=DAY)
    before = await describe(api, "shop")
    changed = await api.call(
        o.UPDATE_NAMESPACE,
        namespace="shop",
        retention=HOUR,
        data={"b": "", "c": "3"},
        limits=NamespaceLimits(starts_per_second=5.0),
        search_attributes={"Total": "Double"},
        callers_allowed=("z", "a", "z"),
    )
    info = await describe(api, "shop")
    assert info == changed.info and info.id == before.id and info.description == "old"
    assert info.callers_allowed == ("a", "z")
    assert info.retention == HOUR and info.data == {"a": "1", "c": "3"}
    assert info.limits == NamespaceLimits(starts_per_second=5.0) and info.search_attributes == {"Total": "Double"}
    with pytest.raises(InvalidArgument, match="'Total' of namespace 'shop' has the type Double, not Int"):
        await api.call(o.UPDATE_NAMESPACE, namespace="shop", description="x", search_attributes={"Total": "Int"})
    assert await describe(api, "shop") == info


async def test_the_default_namespace_is_there_and_can_be_changed(api: ApiClient) -> None:
    assert (await describe(api, "default")).retention == DEFAULT_RETENTION
    assert await listed(api) == ["default"]
    await api.call(o.UPDATE_NAMESPACE, namespace="default", retention=DAY)
    info = await describe(api, "default")
    assert info.retention == DAY and info.id
    assert await listed(api) == ["default"]
    with pytest.raises(FailedPrecondition, match="cannot be deprecated"):
        await api.call(o.DEPRECATE_NAMESPACE, namespace="default")


async def test_a_namespace_that_nobody_registered_is_not_found(api: ApiClient) -> None:
    await api.start(namespace="used")
    for operation in (o.DESCRIBE_NAMESPACE, o.UPDATE_NAMESPACE, o.DEPRECATE_NAMESPACE):
        with pytest.raises(NamespaceNotFound, match="'used' is not registered; register it"):
            await api.call(operation, namespace="used")
    assert await listed(api) == ["default"]


@pytest.mark.parametrize("page_size", [1, 2, 3, 100])
async def test_lists_are_whole_in_the_order_of_names(api: ApiClient, page_size: int) -> None:
    for name in ("shop", "a", "z", "default-2", "日本"):
        await api.call(o.REGISTER_NAMESPACE, namespace=name)
    assert await listed(api, page_size) == ["a", "default", "default-2", "shop", "z", "日本"]


LIMITS = [
    ({"requests_per_second": 0.0}, r"limits\.requests_per_second is 0; use a number above 0"),
    ({"starts_per_second": -1.0}, r"limits\.starts_per_second is -1"),
    ({"concurrent_long_polls": 0}, r"limits\.concurrent_long_polls is 0; it must be at least 1"),
    ({"max_payload_bytes": 5_000_000}, r"limits\.max_payload_bytes is 5000000, above the limit of 2097152"),
]
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"namespace": ""}, "namespace is empty"),
    ({"namespace": "a#b"}, "'#'"),
    ({"namespace": "a/b"}, "contains '/'|has a slash"),
    ({"namespace": "n" * 256}, "256 bytes.*limit of 255"),
    ({"retention": timedelta(minutes=59)}, "retention is 3540 s; use 3600 s to 3650 days"),
    ({"retention": timedelta(days=4_000)}, "retention is 4000 days"),
    ({"data": {str(number): "x" for number in range(101)}}, "data is 101, above the limit of 100"),
    ({"data": {"a": "x" * 1_001}}, r"data\['a'\] has 1001 bytes.*limit of 1000"),
    ({"callers_allowed": ("a", "b#c")}, "callers_allowed has 'b#c', which is no namespace.*'\\*' for all"),
    ({"callers_allowed": ("",)}, "callers_allowed is empty"),
    ({"callers_allowed": tuple(map(str, range(101)))}, "callers_allowed is 101, above the limit of 100"),
    ({"search_attributes": {"Customer": "String"}}, "'String'; use one of Bool, Datetime, Double, Int, Keyword"),
    ({"search_attributes": {"WorkflowId": "Keyword"}}, "'WorkflowId' is one of the system's own.*use another name"),
    ({"search_attributes": {"StepwellOwn": "Int"}}, "'StepwellOwn' .*has a name that is kept for those"),
    ({"search_attributes": {f"a{number}": "Int" for number in range(101)}}, "search_attributes is 101"),
    *(({"limits": NamespaceLimits(**limits)}, message) for limits, message in LIMITS),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
async def test_bad_input_is_refused_before_anything_is_written(api: ApiClient, number: int) -> None:
    fields, message = REFUSED[number]
    operations: list[Operation[Any, Any]] = [o.REGISTER_NAMESPACE, o.UPDATE_NAMESPACE]
    for operation in operations:
        with pytest.raises(InvalidArgument, match=message):
            await api.call(operation, **({"namespace": "shop"} | fields))
    assert await listed(api) == ["default"]


async def test_a_token_of_something_else_is_refused(api: ApiClient) -> None:
    for token in (b"\xff", b"a#b", b"x" * 300):
        with pytest.raises(InvalidArgument, match="next_page_token is none of ListNamespaces"):
            await api.call(o.LIST_NAMESPACES, next_page_token=token)
