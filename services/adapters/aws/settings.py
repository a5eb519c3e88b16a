"""What an installation's functions and containers are told by their environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from stepwell.api.limits import MAX_BETWEEN_RUNS, MAX_ID_STARTS_PER_SECOND, MIN_ID_STARTS_PER_SECOND

from ...common.settings import rate_of
from ...history.callback_addresses import BadAddress, parse_addresses
from ...history.offload import DEFAULT_THRESHOLD, MAX_THRESHOLD, MIN_THRESHOLD
from ...timer_sweeper.layouts import MAX_PARTITIONS, MIN_PARTITIONS
from .names import NameRefused, Names
from .visibility_choice import FIRST, ONE_TABLE, VisibilityChoice


class SettingRefused(NameRefused):
    """A variable of the environment says what cannot be."""


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """Credentials, region and, for an emulator, ``AWS_ENDPOINT_URL`` are found by boto's own rules."""

    cell: str = "main"
    bucket: str = ""
    """Of payloads and archives."""

    token_key_secret: str = ""
    """The secret in Secrets Manager whose text signs task tokens, or did before there was a parameter; with neither,
    the key is in the control table."""

    kms_key: str = ""
    """The account's own key for the task queues that are made on first use; empty: SQS encrypts with its own."""

    offload_threshold: int = DEFAULT_THRESHOLD
    """Bytes of a payload, compressed, above which it is an object in the bucket; 4 to 32 KB."""

    signs_tokens: bool = True
    """False of a process that hands out no tasks and takes no answers: it needs no key, and may not read it."""

    token_key_parameter: str = ""
    """The parameter of Systems Manager that signs task tokens; the first process makes it."""

    require_registered_namespaces: bool = False
    """Calls in a namespace that nobody registered are refused."""

    minimum_between_runs: int = 0
    """Seconds; a start of a workflow id is refused for so long behind the beginning of its newest run (LC-06)."""

    id_starts_per_second: float = 0.0
    """Of runs of one workflow id, as calls start them; 0: no limit (LC-06)."""

    callback_addresses: tuple[str, ...] = ()
    """To which completion callbacks may go, such as ``https://*.example.com`` (LC-10)."""

    timer_partitions: int = MIN_PARTITIONS
    """Over how many partitions near deadlines are spread, 4 to 256. The number grows with the first process that is
    told more, and never falls: who is told fewer says so in its log."""

    visibility: VisibilityChoice = ONE_TABLE
    """Where what lists show is written and read."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "AwsSettings":
        """Raises NameRefused for a cell that is no name, and SettingRefused for a number out of its bounds."""
        given = os.environ if environment is None else environment
        settings = cls(
            cell=given.get("STEPWELL_CELL", "main"),
            bucket=given.get("STEPWELL_BUCKET", ""),
            token_key_secret=given.get("STEPWELL_TOKEN_KEY_PARAMETER", ""),
            kms_key=given.get("STEPWELL_KMS_KEY", ""),
            token_key_parameter=given.get("STEPWELL_TOKEN_KEY_SSM_PARAMETER", ""),
            offload_threshold=_number(
                given, "STEPWELL_OFFLOAD_THRESHOLD", DEFAULT_THRESHOLD, MIN_THRESHOLD, MAX_THRESHOLD, " bytes"
            ),
            timer_partitions=_number(
                given, "STEPWELL_TIMER_PARTITIONS", MIN_PARTITIONS, MIN_PARTITIONS, MAX_PARTITIONS
            ),
            minimum_between_runs=_number(given, "STEPWELL_MINIMUM_BETWEEN_RUNS", 0, 0, MAX_BETWEEN_RUNS, " seconds"),
            callback_addresses=_addresses(given.get("STEPWELL_CALLBACK_ADDRESSES", "")),
            id_starts_per_second=_rate(given, "STEPWELL_ID_STARTS_PER_SECOND"),
            require_registered_namespaces=_switch(
                "STEPWELL_REQUIRE_REGISTERED_NAMESPACES", given.get("STEPWELL_REQUIRE_REGISTERED_NAMESPACES", "off")
            ),
            visibility=_visibility(given),
        )
        _ = settings.names
        return settings

    @property
    def names(self) -> Names:
        return Names(self.cell)


def _number(given: Mapping[str, str], name: str, default: int, least: int, most: int, unit: str = "") -> int:
    text = given.get(name, str(default))
    if text.isdigit() and least <= int(text) <= most:
        return int(text)
    raise SettingRefused(f"{name} is {text!r}; use {least} to {most}{unit}")


def _addresses(text: str) -> tuple[str, ...]:
    texts = tuple([one.strip() for one in text.split(",") if one.strip()])
    try:
        parse_addresses(texts)
    except BadAddress as bad:
        raise SettingRefused(f"STEPWELL_CALLBACK_ADDRESSES: {bad}") from None
    return texts


def _visibility(given: Mapping[str, str]) -> VisibilityChoice:
    try:
        return VisibilityChoice(
            first=given.get("STEPWELL_VISIBILITY", FIRST),
            second=given.get("STEPWELL_SECOND_VISIBILITY", ""),
            reads=given.get("STEPWELL_VISIBILITY_READS", "first"),
            shadow_percent=_number(given, "STEPWELL_VISIBILITY_SHADOW_PERCENT", 0, 0, 100, " of a hundred reads"),
        )
    except SettingRefused:
        raise
    except NameRefused as refused:
        raise SettingRefused(
            f"STEPWELL_VISIBILITY, STEPWELL_SECOND_VISIBILITY, STEPWELL_VISIBILITY_READS: {refused}"
        ) from None


def _rate(given: Mapping[str, str], name: str) -> float:
    text = given.get(name, "0")
    rate = rate_of(text)
    if rate is None:
        least, most = MIN_ID_STARTS_PER_SECOND, MAX_ID_STARTS_PER_SECOND
        raise SettingRefused(f"{name} is {text!r}; use {least} to {most} a second, or 0 for no limit")
    return rate


def _switch(name: str, text: str) -> bool:
    if text in ("on", "off"):
        return text == "on"
    raise SettingRefused(f"{name} is {text!r}; use on or off")
