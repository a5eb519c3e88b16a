"""Wires the store of one cell: all ports on its tables, over one set of clients."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from ...common.clock import Clock, IdSource
from ...history.blob_collector import BlobCollector
from ...history.commit import ExecutionKey
from ...history.offload import OffloadingLog
from ...history.run_blobs import RunBlobs
from ...namespaces.registry import Namespaces
from ...timer_sweeper.arming import Arming
from ...timer_sweeper.layouts import Layouts
from ...timer_sweeper.ports import DelayQueue
from ..backend import Backend
from ..second_visibility import SecondVisibility
from ..system import SystemClock, SystemIds
from .client import AwsClients
from .commit_items import HandsOn
from .control_table import ControlTable
from .exec_table import ExecTable
from .expiry import RunExpiry
from .large_parts import LargeParts
from .s3_blobs import NoBucket, S3Blobs
from .s3_objects import S3Objects
from .settings import AwsSettings
from .timer_rows import TimerRows
from .timer_table import TimerTable
from .token_key import token_key
from .visibility_table import VisibilityTable


class NoBackup(Exception):
    """``str(error)`` is a sentence for people."""


async def aws_backend(
    settings: AwsSettings,
    *,
    clients: AwsClients | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    hands_on: HandsOn = "S",
    soon: DelayQueue | None = None,
    layouts: Layouts | None = None,
    retention: timedelta | None = None,
    shadows_wait: bool = True,
) -> Backend:
    """``hands_on``: whether this process does what its commits owe (``W``), or leaves it to the feed (``S``). ``soon``:
    where near deadlines go too, in an installation without a running sweeper. ``layouts``: of the timer table.
    ``retention``: None for what each namespace has registered. ``shadows_wait``: shadow reads of a second visibility
    table are over with the call that they go beside. Raises AwsRefused, StoreUnavailable."""
    clients = clients or AwsClients()
    clock = clock or SystemClock()
    ids = ids or SystemIds(clock)
    names, dynamodb = settings.names, clients.service("dynamodb")
    arming = Arming(TimerRows(dynamodb, names.timer_table, layouts), clock, soon)
    control = ControlTable(dynamodb, names.ctl_table, arming, ids)
    namespaces = Namespaces(control, clock, ids)
    kept = namespaces.retention if retention is None else lambda namespace: retention
    tables = [VisibilityTable(dynamodb, table, clock, kept) for table in settings.visibility.tables(names)]
    visibility = tables[0] if len(tables) == 1 else _both(tables, settings, clients, shadows_wait)
    blobs = S3Blobs(clients, settings.bucket) if settings.bucket else NoBucket()
    run_blobs = RunBlobs(blobs, clock)
    parts = LargeParts(run_blobs)
    expiry = RunExpiry(dynamodb, names.exec_table, clock, kept, parts)
    table = ExecTable(
        dynamodb,
        names.exec_table,
        clock,
        arming,
        hands_on=hands_on,
        parts=parts,
        locate=visibility.locate,
        expiry=expiry,
    )
    return Backend(
        log=OffloadingLog(table, run_blobs, clock, threshold=settings.offload_threshold),
        timers=TimerTable(arming),
        visibility=visibility,
        control=control,
        namespaces=namespaces,
        clock=clock,
        ids=ids,
        token_key=await token_key(clients, settings),
        database=f"dynamodb:{names.prefix}",
        sweep=_nothing_to_sweep,
        backup=_no_backup,
        close=partial(_close, visibility, clients),
        collect=BlobCollector(table, blobs, clock, table.part_blobs).run,
        retention=expiry,
        archive=S3Blobs(clients, settings.bucket) if settings.bucket else None,
        exports=S3Objects(clients, settings.bucket) if settings.bucket else None,
    )


def _both(
    tables: list[VisibilityTable], settings: AwsSettings, clients: AwsClients, shadows_wait: bool
) -> SecondVisibility:
    chosen, other = tables if settings.visibility.reads == "first" else reversed(tables)
    return SecondVisibility(
        chosen,
        other,
        shadow_percent=settings.visibility.shadow_percent,
        waits=shadows_wait,
        metrics=clients.metrics,
    )


async def _close(visibility: VisibilityTable | SecondVisibility, clients: AwsClients) -> None:
    if isinstance(visibility, SecondVisibility):
        await visibility.close()
    await clients.close()


async def _nothing_to_sweep(closed_before: datetime, own: Mapping[str, datetime] | None = None) -> list[ExecutionKey]:
    """DynamoDB deletes what has expired."""
    return []


async def _no_backup(target: Path) -> None:
    raise NoBackup(
        "the tables have point-in-time recovery; restore one with `aws dynamodb restore-table-to-point-in-time`"
    )
