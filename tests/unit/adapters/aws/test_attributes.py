from base64 import b64encode

import pytest

from stepwell_server.adapters.aws.attributes import from_attributes, read_units, size, to_attributes, write_units


def test_an_item_is_read_back_as_it_was() -> None:
    item = {"pk": "日本", "v": -17, "big": 10**15, "b": b"\x00\xff", "none": ""}
    assert from_attributes(to_attributes(item)) == item


def test_bytes_of_a_functions_event_are_in_base64() -> None:
    assert from_attributes({"b": {"B": b64encode(b"\x00\xff").decode()}}) == {"b": b"\x00\xff"}


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ({"S": "abc"}, 3),
        ({"S": "日"}, 3),
        ({"B": b"12345"}, 5),
        ({"N": "0"}, 1),
        ({"N": "7"}, 2),
        ({"N": "1764525600123"}, 8),
        ({"N": "1000"}, 2),
        ({"N": "-15"}, 3),
        ({"BOOL": True}, 1),
        ({"SS": ["ab", "c"]}, 3),
        ({"M": {"k": {"S": "v"}}}, 6),
        ({"L": [{"S": "v"}]}, 5),
    ],
)
def test_sizes_are_those_that_dynamodb_bills(attribute: dict[str, object], expected: int) -> None:
    assert size({"name": attribute}) == 4 + expected


def test_units_are_rounded_up() -> None:
    assert [write_units(size) for size in (0, 1, 1_024, 1_025, 3_000)] == [1, 1, 1, 2, 3]
    assert [read_units(size, strong=True) for size in (0, 4_096, 4_097)] == [1, 1, 2]
    assert read_units(4_097, strong=False) == 1
