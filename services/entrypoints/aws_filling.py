"""``stepwell aws fill-visibility``: copies what lists show from one visibility table of a cell to another.

For an installation that writes to both already (``STEPWELL_SECOND_VISIBILITY``), whose second table lacks what was
there before. A record that the second table has newer stays, so the copy may run beside everything else, by two at
once, and again. How far it is stands in the control table: who runs it again goes on there.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from ..adapters.aws.client import AwsClients
from ..adapters.aws.control_table import ControlTable
from ..adapters.aws.names import Names
from ..adapters.aws.timer_rows import TimerRows
from ..adapters.aws.visibility_table import VisibilityTable
from ..adapters.system import SystemClock, SystemIds
from ..common.control import ControlConflict, ControlRecord, ControlStore
from ..history.commit import ExecutionKey
from ..namespaces.registry import Namespaces
from ..timer_sweeper.arming import Arming

PAGE = 200
"""Items that are read at once; who dies repeats as many at most."""

_AT_ONCE = 16
_KIND = "visibility-fill"
_NOBODY = ExecutionKey("", "")


async def fill(
    source: VisibilityTable,
    target: VisibilityTable,
    control: ControlStore,
    name: str,
    tell: Callable[[int], object],
    *,
    anew: bool = False,
) -> int:
    """Copies all that ``source`` has, from where an earlier call under this ``name`` was; tells after each page how
    many records it was so far, and returns that. Raises StoreUnavailable and StoreRefused."""
    record = await control.get(_KIND, "", name)
    await target.locate(_NOBODY, "none")  # that it is there is known before all of the source is read
    start = None if record is None or anew else msgspec.json.decode(record.value)
    copied, room = 0, asyncio.Semaphore(_AT_ONCE)

    async def put(item: dict[str, Any]) -> None:
        async with room:
            await target.put_record(item)

    while True:
        records, start = await source.records(start, PAGE)
        await asyncio.gather(*map(put, records))
        copied += len(records)
        tell(copied)
        if start is None:
            break
        record = await _note(control, record, name, msgspec.json.encode(start))
    if record is not None:
        with suppress(ControlConflict):  # of one that still copies
            await control.delete(record)
    return copied


async def _note(control: ControlStore, record: ControlRecord | None, name: str, where: bytes) -> ControlRecord | None:
    """Who copies at the same time notes where it is; both are right, since copying again does no harm."""
    new = ControlRecord(_KIND, "", name, 1, where)
    if record is not None:
        new = record._replace(version=record.version + 1, value=where)
    try:
        return await control.put(new)
    except ControlConflict as conflict:
        return conflict.existing


async def fill_table(
    names: Names,
    first: str,
    second: str,
    tell: Callable[[int], object],
    *,
    anew: bool = False,
    endpoint_url: str | None = None,
    region: str | None = None,
) -> int:
    """``fill`` with tables of the cell. ``first`` and ``second``: full names of tables."""
    clients = AwsClients(endpoint_url=endpoint_url, region=region)
    try:
        clock = SystemClock()
        dynamodb, ids = clients.service("dynamodb"), SystemIds(clock)
        control = ControlTable(
            dynamodb, names.ctl_table, Arming(TimerRows(dynamodb, names.timer_table, None), clock, None), ids
        )
        kept = Namespaces(control, clock, ids).retention
        source, target = (VisibilityTable(dynamodb, table, clock, kept) for table in (first, second))
        return await fill(source, target, control, second, tell, anew=anew)
    finally:
        await clients.close()
