"""What one process of an installation on AWS is made of: the cell's ports over one set of clients, and an engine on
them. The functions and the container put these together in their own ways.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..adapters.aws.backend import aws_backend
from ..adapters.aws.client import AwsClients
from ..adapters.aws.poller_items import PollerItems
from ..adapters.aws.query_items import QueryItems
from ..adapters.aws.queue_settings import QueueSettings
from ..adapters.aws.s3_blobs import S3Blobs
from ..adapters.aws.settings import AwsSettings
from ..adapters.aws.sqs_delay_queue import SqsDelayQueue
from ..adapters.aws.sqs_queues import SqsQueues
from ..adapters.aws.timer_layouts import TimerLayouts
from ..adapters.aws.timer_leases import TimerLeases
from ..adapters.aws.timer_rows import TimerRows
from ..adapters.backend import Backend
from ..adapters.system import SystemClock
from ..common.clock import Clock
from ..common.settings import EngineSettings, ProcessKind
from ..common.telemetry import Telemetry, Write, to_stdout
from ..history.commit import ExecutionKey
from ..history.engine import Engine
from ..history.engine_parts import TaskSources
from ..history.feed import Feed
from ..history.ports import Dispatcher
from ..history.queue_dispatching import QueueDispatcher
from ..matching.service import Matching
from ..timer_sweeper.buckets import TimerRow
from ..timer_sweeper.ports import Fire
from .making import make_engine, server_version

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AwsParts:
    """Made by ``open_parts``, closed by ``backend.close``."""

    settings: AwsSettings
    clients: AwsClients
    clock: Clock
    hands_on: bool
    """Whether this process does what its commits owe."""
    backend: Backend
    queues: SqsQueues
    queries: QueryItems
    pollers: PollerItems
    delays: SqsDelayQueue
    rows: TimerRows
    layouts: TimerLayouts
    leases: TimerLeases
    telemetry: Telemetry


async def open_parts(
    settings: AwsSettings,
    *,
    stays: bool,
    hands_on: bool | None = None,
    clock: Clock | None = None,
    clients: AwsClients | None = None,
    write: Write = to_stdout,
) -> AwsParts:
    """``stays``: of a container, which does what its commits owe and has a sweeper; else of a function, which leaves
    that to the feed unless ``hands_on`` says otherwise. ``write`` takes lines of metrics. Raises AwsRefused and
    StoreUnavailable."""
    hands_on = stays if hands_on is None else hands_on
    clock = clock or SystemClock()
    telemetry = Telemetry(settings.names.cell, clock, write)
    clients = clients or AwsClients()
    clients.metrics = telemetry.metrics
    names = settings.names
    dynamodb, sqs = clients.service("dynamodb"), clients.service("sqs")
    delays = SqsDelayQueue(sqs, names.timer_queue)
    layouts = TimerLayouts(dynamodb, names.ctl_table, clock)
    try:
        await layouts.open(settings.timer_partitions)
        backend = await aws_backend(
            settings,
            clients=clients,
            clock=clock,
            hands_on="W" if hands_on else "S",
            soon=None if stays else delays,
            layouts=layouts,
            shadows_wait=not stays,
        )
    except BaseException:
        await clients.close()
        raise
    return AwsParts(
        settings=settings,
        clients=clients,
        clock=clock,
        hands_on=hands_on,
        backend=backend,
        queues=SqsQueues(
            sqs, names, partitions=QueueSettings(dynamodb, names, clock).partitions, kms_key=settings.kms_key
        ),
        queries=QueryItems(dynamodb, names.ctl_table, clock, S3Blobs(clients, settings.bucket)),
        pollers=PollerItems(dynamodb, names.ctl_table, clock),
        delays=delays,
        rows=TimerRows(dynamodb, names.timer_table, layouts),
        layouts=layouts,
        leases=TimerLeases(dynamodb, names.ctl_table),
        telemetry=telemetry,
    )


def function_engine(parts: AwsParts) -> Engine:
    """For one call at a time: polls are of the queues."""
    settings = EngineSettings(
        server_version=server_version(),
        database=parts.backend.database,
        require_registered_namespaces=parts.settings.require_registered_namespaces,
        minimum_between_runs=timedelta(seconds=parts.settings.minimum_between_runs),
        id_starts_per_second=parts.settings.id_starts_per_second,
        callback_addresses=parts.settings.callback_addresses,
        process=ProcessKind.ONE_CALL,
        hands_on=parts.hands_on,
        sweeps=False,
        poll_timeout=timedelta(0),
    )
    return _engine(
        parts,
        settings,
        task_sources=parts.queues.addresses,
        make_dispatcher=lambda matching: QueueDispatcher(parts.queues, parts.clock, strict=True),
    )


def container_engine(parts: AwsParts) -> Engine:
    """Polls are held, and tasks go to them past the queues where they wait in this process."""
    settings = EngineSettings(
        server_version=server_version(),
        database=parts.backend.database,
        require_registered_namespaces=parts.settings.require_registered_namespaces,
        minimum_between_runs=timedelta(seconds=parts.settings.minimum_between_runs),
        id_starts_per_second=parts.settings.id_starts_per_second,
        callback_addresses=parts.settings.callback_addresses,
        process=ProcessKind.ONE_OF_MANY,
        sweeps=False,
    )
    return _engine(
        parts, settings, make_dispatcher=lambda matching: QueueDispatcher(parts.queues, parts.clock, matching)
    )


def _engine(
    parts: AwsParts,
    settings: EngineSettings,
    *,
    make_dispatcher: Callable[[Matching], Dispatcher],
    task_sources: TaskSources | None = None,
) -> Engine:
    return make_engine(
        parts.backend,
        settings,
        query_board=parts.queries,
        task_sources=task_sources,
        queue_backlog=parts.queues.pending,
        pollers_seen=parts.pollers,
        metrics=parts.telemetry.metrics,
        make_dispatcher=make_dispatcher,
    )


def feed_of(parts: AwsParts, engine: Engine) -> Feed:
    """What happens behind every commit of the cell."""
    backend = parts.backend

    async def fire(key: ExecutionKey, deadline: datetime) -> None:
        await engine.fire(key, deadline)

    return Feed(
        backend.log,
        project=backend.visibility.project,
        hand_on=engine.hand_on,
        fire=fire,
        expire=None if backend.retention is None else backend.retention.expire,
    )


def fire_of(engine: Engine) -> Fire:
    """What the feeders of deadlines call."""

    async def fire(row: TimerRow) -> bool:
        return await engine.fire(row.key, row.fire_at, row.awaited)

    return fire
