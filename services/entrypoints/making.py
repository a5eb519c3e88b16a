"""What all who make an engine have in common, by itself: functions need nothing of what serves elsewhere."""

from collections.abc import Mapping
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..adapters.backend import Backend
from ..adapters.http_callbacks import HttpCallbacks
from ..batcher.batches import KIND as BATCH
from ..batcher.batches import LIST_KIND, TURN_KIND, Batches
from ..common.control import ControlWakeUps
from ..common.metrics import NO_METRICS, Metrics
from ..common.settings import EngineSettings
from ..exporter.exports import KIND as EXPORT
from ..exporter.exports import Exports
from ..history.callback_addresses import parse_addresses
from ..history.callback_delivery import Callbacks
from ..history.callback_records import KIND as CALLBACKS
from ..history.engine import Engine
from ..history.paces import pace_of
from ..history.start_key_records import KIND as START_KEY
from ..history.start_keys import StartKeys
from ..namespaces.records import KIND as NAMESPACE
from ..namespaces.removal import NamespaceRemoval
from ..scheduler.scheduler import Scheduler
from ..scheduler.schedules import Schedules
from ..scheduler.state import KIND as SCHEDULE

SETTLE = timedelta(minutes=10)
"""For which nothing must be found in a deleted namespace of many processes, whose lists come late."""


SOON = timedelta(seconds=5)
"""By then what closed is listed, where lists are written with it."""


def server_version() -> str:
    try:
        return version("stepwell-server")
    except PackageNotFoundError:
        return "unknown"


def make_engine(backend: Backend, settings: EngineSettings, **more: Any) -> Engine:
    """The engine on a backend's ports; ``more`` is for :class:`Engine`, as it is."""
    backend.namespaces.require_registered = settings.require_registered_namespaces
    backend.namespaces.can_archive = backend.archive is not None
    wake_ups = ControlWakeUps(backend.control)
    engine = Engine(
        log=backend.log,
        timers=backend.timers,
        visibility=backend.visibility,
        clock=backend.clock,
        ids=backend.ids,
        token_key=backend.token_key,
        settings=settings,
        is_quick=backend.is_quick,
        namespaces=backend.namespaces,
        wake_ups=wake_ups,
        archive=backend.archive,
        **more,
    )
    attach_schedules(engine, wake_ups, backend, more.get("metrics", NO_METRICS))
    attach_batches(engine, wake_ups, backend)
    attach_start_keys(engine, wake_ups, backend, settings)
    attach_exports(engine, wake_ups, backend, one_process=settings.sole_owner)
    attach_callbacks(engine, wake_ups, backend, settings)
    attach_removal(engine, wake_ups, backend, settle=timedelta(0) if settings.sole_owner else SETTLE)
    return engine


def attach_start_keys(engine: Engine, wake_ups: ControlWakeUps, backend: Backend, settings: EngineSettings) -> None:
    keys = StartKeys(backend.control, engine.outside_runs, backend.clock, backend.ids, pace_of(settings))
    wake_ups.register(START_KEY, keys.woken)
    engine.attach(keys)


def callback_addresses_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """With commas between. Raises BadAddress."""
    texts = tuple([text.strip() for text in environment.get("STEPWELL_CALLBACK_ADDRESSES", "").split(",")])
    parse_addresses(texts)
    return tuple([text for text in texts if text])


def attach_callbacks(engine: Engine, wake_ups: ControlWakeUps, backend: Backend, settings: EngineSettings) -> None:
    addresses = parse_addresses(settings.callback_addresses)
    callbacks = Callbacks(
        backend.control, engine.outside_runs, HttpCallbacks(), addresses, backend.clock, engine.retention
    )
    wake_ups.register(CALLBACKS, callbacks.woken)
    engine.outside_waiters.register(CALLBACKS, callbacks.ended)
    engine.attach(callbacks)


def attach_removal(engine: Engine, wake_ups: ControlWakeUps, backend: Backend, *, settle: timedelta) -> None:
    """What empties deleted namespaces."""
    removal = NamespaceRemoval(backend.namespaces, backend.control, wake_ups, engine, backend.clock, settle=settle)
    wake_ups.register(NAMESPACE, removal.woken)


def attach_schedules(engine: Engine, wake_ups: ControlWakeUps, backend: Backend, metrics: Metrics = NO_METRICS) -> None:
    scheduler = Scheduler(backend.control, engine.outside_runs, backend.namespaces, backend.clock, metrics)
    wake_ups.register(SCHEDULE, scheduler.woken)
    engine.outside_waiters.register(SCHEDULE, scheduler.ended)
    engine.attach(Schedules(backend.control, scheduler, engine.outside_runs.types, backend.clock, backend.ids))


def attach_batches(engine: Engine, wake_ups: ControlWakeUps, backend: Backend) -> None:
    batches = Batches(backend.control, engine, backend.namespaces, backend.clock)
    wake_ups.register(BATCH, batches, beside=(LIST_KIND, TURN_KIND))
    engine.attach(batches)


def attach_exports(engine: Engine, wake_ups: ControlWakeUps, backend: Backend, *, one_process: bool) -> None:
    """On DynamoDB each look goes through the list of all runs that are kept, so there are few."""
    settle, interval = (SOON, timedelta(minutes=5)) if one_process else (SETTLE, timedelta(hours=1))
    exports = Exports(backend.control, engine, backend.exports, backend.clock, settle=settle, interval=interval)
    wake_ups.register(EXPORT, exports)
    engine.attach(exports)
