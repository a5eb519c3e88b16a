"""What one installation is made of: the settings of ``cdk deploy -c name=value`` (or of cdk.json), checked.

A cell is one whole installation: tables, queues, functions, API. Several cells share an account and a Region without
knowing of each other; a platform that outgrows one puts namespaces into the next.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from access import Grant
from stepwell_server.adapters.aws.names import NameRefused, Names
from stepwell_server.adapters.aws.visibility_choice import FIRST, ONE_TABLE, VisibilityChoice
from stepwell_server.history.callback_addresses import BadAddress, parse_addresses
from stepwell_server.history.offload import DEFAULT_THRESHOLD, MAX_THRESHOLD, MIN_THRESHOLD
from stepwell_server.timer_sweeper.layouts import MAX_PARTITIONS, MIN_PARTITIONS

LAMBDA_PACKAGE = Path(__file__).resolve().parents[2] / "build" / "functions" / "lambda"


class BadSetting(ValueError):
    """A setting that cannot be deployed; the text names it and what it may be."""


@dataclass(frozen=True, slots=True)
class Service:
    """The container that serves long polls (``stepwell server --aws``), beside the functions."""

    image: str
    """Its image, in a registry that the account can read."""

    certificate_arn: str
    """Of the name that it is called by: signed requests never travel in the clear."""

    count: int = 2


@dataclass(frozen=True, slots=True)
class Cell:
    """The settings of one stack."""

    name: str = "main"
    package: Path = LAMBDA_PACKAGE
    """The functions' code, made by ``scripts/infra.py package``."""

    customer_key: bool = False
    """Encrypts with a key of the account's own instead of those of AWS ($1 a month and $0.03 for 10,000 uses)."""

    destroy: bool = False
    """Deleting the stack deletes the data too. For trials: by default tables and bucket stay."""

    snap_start: bool = False
    """Starts the API's function from a snapshot: no slow first call, for about $4 a month."""

    access_log: bool = False
    """Logs every call of the API. Off: at 1 KB a call, logs cost half as much as the calls."""

    tracing: bool = False
    log_days: int = 30
    offload_kb: int = DEFAULT_THRESHOLD // 1024
    """Payloads that are larger, compressed, are objects in the bucket."""

    alarm_email: str = ""
    region: str = ""
    """Needed with a key of the account's own; the cdk command gives that of the caller's configuration."""

    endpoint: str = ""
    """Of an emulator; empty for AWS."""

    timer_partitions: int = MIN_PARTITIONS
    """Over how many partitions near deadlines are spread. It can grow later, and not fall."""

    callback_addresses: str = ""
    """To which completion callbacks may go, with commas between; nowhere by default."""

    token_secret: bool = False
    """Keeps the key of task tokens in Secrets Manager ($0.40 a month) and not in a parameter, which is free."""

    visibility: VisibilityChoice = ONE_TABLE
    """Tables of what lists show: a second one while the cell moves to it."""

    grants: tuple[Grant, ...] = ()
    service: Service | None = None

    @property
    def names(self) -> Names:
        """What the adapters call the same things."""
        return Names(self.name)

    @property
    def prefix(self) -> str:
        return self.names.prefix


@dataclass(frozen=True, slots=True)
class _Reader:
    context: Mapping[str, Any]

    def text(self, name: str, default: str = "") -> str:
        value = self.context.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise BadSetting(f"{name} must be a text, not {value!r}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self.context.get(name)
        if value is None:
            return default
        if value in (True, "true"):
            return True
        if value in (False, "false"):
            return False
        raise BadSetting(f"{name} must be true or false, not {value!r}")

    def number(self, name: str, default: int, least: int, most: int) -> int:
        value = self.context.get(name)
        if value is None:
            return default
        if not re.fullmatch(r"\d+", str(value)) or not least <= int(value) <= most:
            raise BadSetting(f"{name} must be a whole number from {least} to {most}, not {value!r}")
        return int(value)


LOG_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
"""The retentions that CloudWatch Logs has."""


def read(context: Mapping[str, Any]) -> Cell:
    """The cell that the context describes. Raises BadSetting before anything is made of it."""
    reader = _Reader(context)
    name = reader.text("cell", "main")
    try:
        Names(name)
    except NameRefused as error:
        raise BadSetting(str(error)) from None
    log_days = reader.number("log_days", 30, 1, 3653)
    if log_days not in LOG_DAYS:
        raise BadSetting(f"log_days must be one of {', '.join(map(str, LOG_DAYS))}, not {log_days}")
    customer_key, region = reader.flag("customer_key", False), reader.text("region")
    if customer_key and not region:
        raise BadSetting("customer_key needs region (or AWS_REGION): a table's key is of the table's Region")
    return Cell(
        name=name,
        package=Path(reader.text("package", str(LAMBDA_PACKAGE))),
        customer_key=customer_key,
        destroy=reader.flag("destroy", False),
        snap_start=reader.flag("snap_start", False),
        access_log=reader.flag("access_log", False),
        tracing=reader.flag("tracing", False),
        log_days=log_days,
        offload_kb=reader.number("offload_kb", DEFAULT_THRESHOLD // 1024, MIN_THRESHOLD // 1024, MAX_THRESHOLD // 1024),
        alarm_email=reader.text("alarm_email"),
        region=region,
        endpoint=reader.text("endpoint"),
        timer_partitions=reader.number("timer_partitions", MIN_PARTITIONS, MIN_PARTITIONS, MAX_PARTITIONS),
        callback_addresses=_addresses(reader.text("callback_addresses")),
        token_secret=reader.flag("token_secret", False),
        visibility=_visibility(reader),
        grants=_grants(context.get("grants")),
        service=_service(reader),
    )


def _addresses(text: str) -> str:
    try:
        parse_addresses(text.split(","))
    except BadAddress as error:
        raise BadSetting(f"callback_addresses: {error}") from None
    return text


def _visibility(reader: _Reader) -> VisibilityChoice:
    try:
        return VisibilityChoice(
            first=reader.text("visibility", FIRST),
            second=reader.text("second_visibility"),
            reads=reader.text("visibility_reads", "first"),
            shadow_percent=reader.number("visibility_shadow_percent", 0, 0, 100),
        )
    except NameRefused as error:
        raise BadSetting(f"visibility, second_visibility, visibility_reads: {error}") from None


def _service(reader: _Reader) -> Service | None:
    if not reader.flag("service", False):
        return None
    image, certificate = reader.text("service_image"), reader.text("service_certificate_arn")
    if not image:
        raise BadSetting("service needs service_image, the image of infra/cdk/image/Dockerfile in your registry")
    if not certificate:
        raise BadSetting("service needs service_certificate_arn: signed requests never travel in the clear")
    return Service(image=image, certificate_arn=certificate, count=reader.number("service_count", 2, 1, 100))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadSetting(f"grants is no JSON: {error}") from None


def _grants(value: Any) -> tuple[Grant, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        value = _json(value)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise BadSetting("grants must be a list of objects, in cdk.json or as JSON: see infra/README.md")
    fields = set(Grant.__dataclass_fields__)
    grants = []
    for number, each in enumerate(value):
        unknown = set(each) - fields
        if unknown:
            raise BadSetting(f"grants[{number}] has {sorted(unknown)}, it may have {sorted(fields)}")
        try:
            grants.append(Grant(**each))
        except (TypeError, ValueError) as error:
            raise BadSetting(f"grants[{number}]: {error}") from None
    names = [grant.policy_name("") for grant in grants]
    for name in names:
        if names.count(name) > 1:
            raise BadSetting(f"grants has {name!r} twice; one of each is enough")
    return tuple(grants)
