"""Looks at a database file beside the process that owns it: reads only, through the same handlers and engine code."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
from stepwell.api import operations as o
from stepwell.api.errors import ApiError, FailedPrecondition
from stepwell.api.events import HistoryEvent
from stepwell.api.operations import Operation
from stepwell.api.requests import DescribeWorkflowResponse

from ..adapters.embedded.connection import open_read_only
from ..adapters.embedded.reads import Reader
from ..adapters.embedded.store import SqliteReads
from ..adapters.folder_blobs import FolderBlobs, archive_beside
from ..adapters.system import SystemClock, SystemIds
from ..common.settings import EngineSettings, ProcessKind
from ..frontend.refusals import api_error
from ..frontend.routes import HANDLERS
from ..history.activity_item import ActivityItem
from ..history.commit import Commit, ExecutionKey
from ..history.engine import Engine
from ..history.ports import Marker
from .making import server_version

Req = TypeVar("Req")
Resp = TypeVar("Resp")

READING = (
    o.DESCRIBE_WORKFLOW,
    o.GET_HISTORY,
    o.LIST_WORKFLOWS,
    o.SCAN_WORKFLOWS,
    o.LIST_ARCHIVED_WORKFLOWS,
    o.COUNT_WORKFLOWS,
    o.DESCRIBE_ACTIVITY,
    o.POLL_ACTIVITY,
    o.LIST_ACTIVITIES,
    o.COUNT_ACTIVITIES,
    o.GET_SYSTEM_INFO,
)
_LOOK_AGAIN = timedelta(milliseconds=500)
"""Length of a long poll here: no commit of the owner wakes this process, so it looks again."""

_NAMES = frozenset(operation.name for operation in READING)


class InspectionTransport:
    """Serves the reading operations; refuses all others."""

    def __init__(self, engine: Engine, store: "_ReadOnlyStore", database: Path) -> None:
        self._engine = engine
        self._store = store
        self._database = database

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        """Raises ``ApiError``, like every transport."""
        if operation.name not in _NAMES:
            raise FailedPrecondition(
                f"{self._database} is open for reading only, so {operation.name} is not possible; "
                "connect to the process that owns it"
            )
        try:
            response: Any = await HANDLERS[operation.name](self._engine, request)
        except ApiError:
            raise
        except Exception as error:
            raise api_error(error, operation.name) from error
        if isinstance(response, DescribeWorkflowResponse):
            # Who polls is known to the owner alone.
            response = msgspec.structs.replace(response, workflow_task_pollers=(), unpolled_task_queues=())
        return response  # type: ignore[no-any-return]

    async def close(self) -> None:
        self._store.close()


class _ReadOnlyStore(SqliteReads):
    """All ports of history, of which the writing half is never used here."""

    async def append(self, commit: Commit, *, arm: datetime | None = None) -> None:
        _never()

    async def put_activity(self, item: ActivityItem, *, arm: datetime | None = None) -> None:
        _never()

    async def put_prefix(
        self, key: ExecutionKey, run_id: str, seq: int, events: Sequence[HistoryEvent], *, now: datetime
    ) -> None:
        _never()

    async def put_marker(
        self, key: ExecutionKey, name: str, value: bytes, *, expires_at: datetime, now: datetime
    ) -> Marker:
        _never()

    async def erase_run(self, key: ExecutionKey, run_id: str) -> None:
        _never()

    async def forget(self, key: ExecutionKey, seq: int) -> None:
        _never()

    async def remove(self, key: ExecutionKey, run_id: str, last: datetime) -> None:
        _never()

    async def project(self, commit: Commit) -> None:
        _never()

    async def arm(self, key: ExecutionKey, fire_at: datetime) -> None:
        _never()

    async def fired(self, rows: Any) -> None:
        _never()


def _never() -> NoReturn:
    raise FailedPrecondition("the database is open for reading only")


async def open_inspection(path: str | Path) -> InspectionTransport:
    """Raises ``DatabaseRefused`` when there is no such file, or it is not ours."""
    database = Path(path).expanduser().resolve()
    fast = Reader(open_read_only(database))
    store = _ReadOnlyStore(fast, Reader(open_read_only(database)))
    engine = Engine(
        log=store,
        timers=store,
        visibility=store,
        clock=SystemClock(),
        ids=SystemIds(),
        token_key=fast.token_key(),
        archive=FolderBlobs(archive_beside(database)),
        settings=EngineSettings(
            server_version=server_version(),
            database=str(database),
            process=ProcessKind.ONE_OF_MANY,
            poll_timeout=_LOOK_AGAIN,
        ),
    )
    return InspectionTransport(engine, store, database)
