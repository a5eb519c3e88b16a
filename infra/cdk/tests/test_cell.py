"""Settings are checked before anything is made of them, and a refusal says what to write instead."""

import json

import pytest

import cell
from access import Grant


def test_without_settings() -> None:
    made = cell.read({})
    assert (made.name, made.prefix, made.service, made.grants) == ("main", "stepwell-main", None, ())
    assert not made.destroy


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ({"cell": "Main"}, "is no name of a cell: use 1 to 16 of a-z"),
        ({"cell": "a" * 17}, "is no name of a cell: use 1 to 16 of a-z"),
        ({"cell": "a-"}, "is no name of a cell: use 1 to 16 of a-z"),
        ({"cell": ""}, "is no name of a cell: use 1 to 16 of a-z"),
        ({"cell": 1}, "cell must be a text, not 1"),
        ({"destroy": "yes"}, "destroy must be true or false, not 'yes'"),
        ({"log_days": "2"}, "log_days must be one of 1, 3, 5"),
        ({"log_days": "many"}, "log_days must be a whole number"),
        ({"offload_kb": "3"}, "offload_kb must be a whole number from 4 to 32"),
        ({"offload_kb": 33}, "offload_kb must be a whole number from 4 to 32"),
        ({"timer_partitions": "3"}, "timer_partitions must be a whole number from 4 to 256"),
        ({"timer_partitions": 257}, "timer_partitions must be a whole number from 4 to 256"),
        ({"callback_addresses": "example.com"}, "callback_addresses: 'example.com' is no address of callbacks"),
        ({"customer_key": "true"}, "customer_key needs region"),
        ({"second_visibility": "lists"}, "visibility table 'lists' is no name: use vis, then up to 8"),
        ({"second_visibility": "vis"}, "the second visibility table is 'vis' as the first"),
        ({"visibility_reads": "second"}, "there is no second visibility table to read"),
        ({"second_visibility": "vis2", "visibility_reads": "both"}, "'both'; use first or second"),
        ({"visibility_shadow_percent": 101}, "visibility_shadow_percent must be a whole number from 0 to 100"),
        ({"service": "true"}, "service needs service_image"),
        ({"service": "true", "service_image": "x"}, "service needs service_certificate_arn"),
        ({"grants": {"role": "reader"}}, "grants must be a list"),
        ({"grants": "[{"}, "grants is no JSON"),
        ({"grants": "3"}, "grants must be a list"),
        (
            {"grants": [{"role": "owner"}]},
            "grants[0]: role must be one of starter, sender, reader, operator, activity-operator, worker",
        ),
        ({"grants": [{"role": "activity-operator", "id_prefix": "a"}]}, "id_prefix is of workflow ids"),
        ({"grants": [{"rolle": "reader"}]}, "grants[0] has ['rolle']"),
        ({"grants": [{"role": "reader"}, {"role": "reader"}]}, "twice"),
    ],
)
def test_refusals(context: dict[str, object], says: str) -> None:
    with pytest.raises(cell.BadSetting) as refused:
        cell.read(context)
    assert says in str(refused.value)


def test_the_command_line_gives_texts_and_cdk_json_gives_values() -> None:
    assert cell.read({"destroy": "true"}).destroy
    assert cell.read({"destroy": True}).destroy
    assert cell.read({"log_days": "7"}).log_days == cell.read({"log_days": 7}).log_days == 7
    grants = [{"role": "reader", "namespace": "shop"}]
    assert cell.read({"grants": grants}).grants == (Grant("reader", "shop"),)
    assert cell.read({"grants": json.dumps(grants)}).grants == (Grant("reader", "shop"),)
