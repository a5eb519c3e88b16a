"""Exports: histories of closed runs written as objects by the engine, in the background (LC-47)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..api import exports as x
from ..api import operations as op
from ..api import requests as r
from ..api.enums import ExportState
from .pacing import Pace

if TYPE_CHECKING:
    from .client import Client


class ExportExecution:
    """How far an export is. Times are UTC."""

    def __init__(self, info: x.ExportInfo) -> None:
        self.raw_info = info
        self.id = info.job_id
        self.state: ExportState = info.state
        self.start_time = info.start_time
        self.close_time = info.close_time
        self.exported = info.exported_count
        self.failed = info.failure_count
        self.exported_bytes = info.exported_bytes
        self.exported_until = info.exported_until
        """All runs that closed before then are written, or among the failures."""
        self.location = info.location
        """A folder where the engine runs, or ``s3://…``."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r} {self.state}: {self.exported} exported, {self.failed} failed>"


class ExportDescription(ExportExecution):
    """With what it is for, and what is wrong."""

    def __init__(self, raw: r.DescribeExportResponse) -> None:
        super().__init__(raw.info)
        self.raw_description = raw
        self.query = raw.query
        self.closed_after = raw.closed_after
        self.closed_before = raw.closed_before
        self.continuous = raw.continuous
        self.format = raw.format
        self.identity = raw.identity
        self.close_reason = raw.close_reason
        self.trouble = raw.trouble
        """Why it does not get on for the moment; it tries again."""
        self.failures: Sequence[x.ExportFailure] = raw.failures
        """The first 50."""


class ExportHandle:
    """Made by ``Client.start_export`` and ``Client.get_export_handle``. All methods raise :class:`RPCError`, with code
    ``NOT_FOUND`` when there is no such export; one that is over is kept for a week."""

    def __init__(self, client: "Client", id: str) -> None:
        self._client = client
        self.id = id

    async def describe(self) -> ExportDescription:
        """How far it is."""
        request = r.DescribeExportRequest(namespace=self._client.namespace, job_id=self.id)
        return ExportDescription(await self._client._root.call(op.DESCRIBE_EXPORT, request))

    async def wait(self) -> ExportDescription:
        """Until it is over, in whatever state; one that is continuous is over when it is stopped."""
        pace = Pace()
        while True:
            pace.asking()
            described = await self.describe()
            if described.state is not ExportState.RUNNING:
                return described
            await pace.came_empty()

    async def stop(self, *, reason: str = "") -> None:
        """Write no more. What is written stays; of an export that is over nothing changes."""
        client = self._client
        request = r.StopExportRequest(
            namespace=client.namespace, job_id=self.id, reason=reason, identity=client.identity
        )
        await client._root.call(op.STOP_EXPORT, request)
