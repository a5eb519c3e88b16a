"""What the environment of a function says is what the adapters get."""

import pytest

from stepwell_server.adapters.aws.names import NameRefused
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.visibility_choice import ONE_TABLE, VisibilityChoice


def test_an_empty_environment_is_the_main_cell_with_keys_of_the_platform() -> None:
    settings = AwsSettings.from_environment({})
    assert settings == AwsSettings(cell="main", bucket="", token_key_secret="", kms_key="")
    assert settings.names.exec_table == "stepwell-main-exec"


def test_every_setting_is_read() -> None:
    given = {
        "STEPWELL_CELL": "blue",
        "STEPWELL_BUCKET": "blobs",
        "STEPWELL_TOKEN_KEY_PARAMETER": "secret",
        "STEPWELL_TOKEN_KEY_SSM_PARAMETER": "/a/key",
        "STEPWELL_KMS_KEY": "arn:key",
        "STEPWELL_OFFLOAD_THRESHOLD": "16384",
        "STEPWELL_REQUIRE_REGISTERED_NAMESPACES": "on",
        "STEPWELL_TIMER_PARTITIONS": "8",
        "STEPWELL_MINIMUM_BETWEEN_RUNS": "2",
        "STEPWELL_ID_STARTS_PER_SECOND": "0.5",
        "STEPWELL_CALLBACK_ADDRESSES": "https://a.net, https://*.b.net",
        "STEPWELL_VISIBILITY": "vis3",
        "STEPWELL_SECOND_VISIBILITY": "vis",
        "STEPWELL_VISIBILITY_READS": "second",
        "STEPWELL_VISIBILITY_SHADOW_PERCENT": "10",
    }
    assert AwsSettings.from_environment(given) == AwsSettings(
        "blue",
        "blobs",
        "secret",
        "arn:key",
        16_384,
        token_key_parameter="/a/key",
        require_registered_namespaces=True,
        timer_partitions=8,
        minimum_between_runs=2,
        id_starts_per_second=0.5,
        callback_addresses=("https://a.net", "https://*.b.net"),
        visibility=VisibilityChoice("vis3", "vis", "second", 10),
    )


def test_what_a_choice_of_visibility_tells_is_read_as_that_choice() -> None:
    for choice in (ONE_TABLE, VisibilityChoice("vis", "vis2"), VisibilityChoice("vis2", "vis", "second", 100)):
        assert AwsSettings.from_environment(choice.variables()).visibility == choice
    assert ONE_TABLE.variables() == {}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"STEPWELL_VISIBILITY": ""}, "is no name: use vis"),
        ({"STEPWELL_VISIBILITY": "exec"}, "visibility table 'exec' is no name: use vis, then up to 8 of a-z and 0-9"),
        ({"STEPWELL_SECOND_VISIBILITY": "vis"}, "name another one"),
        ({"STEPWELL_VISIBILITY_READS": "second"}, "there is no second visibility table to read"),
        ({"STEPWELL_SECOND_VISIBILITY": "vis2", "STEPWELL_VISIBILITY_READS": "both"}, "use first or second"),
        ({"STEPWELL_VISIBILITY_SHADOW_PERCENT": "5"}, "there is no second visibility table to read"),
        ({"STEPWELL_VISIBILITY_SHADOW_PERCENT": "101"}, "SHADOW_PERCENT is '101'; use 0 to 100 of a hundred reads"),
    ],
)
def test_visibility_tables_that_cannot_be_are_refused_at_once(given: dict[str, str], says: str) -> None:
    with pytest.raises(NameRefused, match=r"^STEPWELL_VISIBILITY") as refused:
        AwsSettings.from_environment(given)
    assert says in str(refused.value)


def test_a_cell_that_is_no_name_is_refused_at_once() -> None:
    with pytest.raises(NameRefused, match="cell 'Blue' is no name"):
        AwsSettings.from_environment({"STEPWELL_CELL": "Blue"})


@pytest.mark.parametrize("threshold", ["", "8 KB", "4095", "32769", "-1"])
def test_a_threshold_out_of_bounds_is_refused_at_once(threshold: str) -> None:
    with pytest.raises(NameRefused, match=r"STEPWELL_OFFLOAD_THRESHOLD .* use 4096 to 32768 bytes"):
        AwsSettings.from_environment({"STEPWELL_OFFLOAD_THRESHOLD": threshold})


@pytest.mark.parametrize("switch", ["", "yes", "ON"])
def test_a_switch_that_is_neither_on_nor_off_is_refused_at_once(switch: str) -> None:
    with pytest.raises(NameRefused, match=r"STEPWELL_REQUIRE_REGISTERED_NAMESPACES is .* use on or off"):
        AwsSettings.from_environment({"STEPWELL_REQUIRE_REGISTERED_NAMESPACES": switch})


@pytest.mark.parametrize("seconds", ["", "3601", "1.5", "-1"])
def test_a_time_between_runs_out_of_bounds_is_refused_at_once(seconds: str) -> None:
    with pytest.raises(NameRefused, match=r"STEPWELL_MINIMUM_BETWEEN_RUNS .* use 0 to 3600 seconds"):
        AwsSettings.from_environment({"STEPWELL_MINIMUM_BETWEEN_RUNS": seconds})


def test_what_is_no_address_of_callbacks_is_refused_at_once() -> None:
    with pytest.raises(NameRefused, match=r"STEPWELL_CALLBACK_ADDRESSES: 'a.net' is no address"):
        AwsSettings.from_environment({"STEPWELL_CALLBACK_ADDRESSES": "https://b.net,a.net"})


@pytest.mark.parametrize("rate", ["", "fast", "0.0001", "1001", "-1", "nan", "inf"])
def test_a_rate_of_starts_out_of_bounds_is_refused_at_once(rate: str) -> None:
    with pytest.raises(NameRefused, match=r"STEPWELL_ID_STARTS_PER_SECOND is .* use 0.001 to 1000 a second, or 0"):
        AwsSettings.from_environment({"STEPWELL_ID_STARTS_PER_SECOND": rate})


@pytest.mark.parametrize("partitions", ["", "3", "257", "4.0", "-8", "many"])
def test_partitions_of_the_timers_out_of_bounds_are_refused_at_once(partitions: str) -> None:
    with pytest.raises(NameRefused, match=r"STEPWELL_TIMER_PARTITIONS .* use 4 to 256"):
        AwsSettings.from_environment({"STEPWELL_TIMER_PARTITIONS": partitions})
