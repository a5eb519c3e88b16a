"""Backend: all ports of one store in one bundle, which an entry point hands to the services' shells."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from ..common.blobs import BlobStore
from ..common.clock import Clock, IdSource
from ..common.control import ControlStore
from ..common.objects import ObjectStore
from ..history.admission import never_quick
from ..history.blob_collector import Collected
from ..history.commit import ExecutionKey
from ..history.ports import ExecutionLog, Retention, TimerIndex, VisibilityStore
from ..namespaces.registry import Namespaces


class Sweep(Protocol):
    async def __call__(self, closed_before: datetime, own: Mapping[str, datetime] | None = None) -> list[ExecutionKey]:
        """Retention: deletes runs that closed before the given time, in some namespaces before their ``own``, in small
        batches; the workflow ids that lost a run."""
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """Made by ``embedded_backend`` or ``aws_backend``; belongs to the event loop that it is used on."""

    log: ExecutionLog
    timers: TimerIndex
    visibility: VisibilityStore
    control: ControlStore
    namespaces: Namespaces
    """On ``control``; the store itself asks it how long runs are kept."""

    clock: Clock
    ids: IdSource
    token_key: bytes
    """Secret that signs task tokens; made once with the store, so that tokens outlive a restart."""

    database: str
    """Where data is kept, for people: the absolute path of the file, or ``memory``."""

    sweep: Sweep

    backup: Callable[[Path], Awaitable[None]]
    """Online copy of the store to a new file."""

    close: Callable[[], Awaitable[None]]
    """Commits what is waiting, closes the store and lets another process have it. May be called again."""

    retention: Retention | None = None
    """Of a store that deletes what has expired by itself: the feed tells it what is over. Else ``sweep`` does it."""

    is_quick: Callable[[], bool] = never_quick
    """Whether a commit takes part of a turn of the event loop now: then many at once gain nothing."""

    exports: ObjectStore | None = None
    """Where exports are written to; None: nowhere, as everything is in memory."""

    archive: BlobStore | None = None
    """Where closed runs are archived; None: nowhere."""

    collect: Callable[[float], Awaitable[Collected]] | None = None
    """Of a store with blobs: deletes those that no run needs, for about so many seconds; to be called now and then.
    Raises StoreUnavailable."""
