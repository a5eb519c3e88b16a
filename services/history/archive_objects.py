"""Names and contents of what the archive holds (OP-06, VI-17). Pure, so what is written again is the same.

h/{namespace}/{hash of the workflow id}/{run}/000000.jsonl.gz   an event a line; the first line of the first part is the
                                                                run (``ArchivedRun``), with the number of parts
i/{namespace}/{hour of the close}/{time of the close}.{run}     the run again, what lists of archived runs are made of

Times in names are counted backwards, so that names in order are the newest close first.
"""

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from stepwell.api.codec import decode_json, encode_json
from stepwell.api.common import WorkflowExecution
from stepwell.api.events import HistoryEvent
from stepwell.api.requests import WorkflowExecutionInfo

from ..visibility.attributes import Value, custom_values
from .commit import Commit, ExecutionKey
from .run_blobs import quoted
from .tasks import RecordVisibility
from .visible import projected

HISTORIES, INDEX = "h/", "i/"

PART_EVENTS = 1_000
PART_BYTES = 1024 * 1024
"""A part ends with the event that reaches either. Parts of a run whose archive was begun by one release and finished by
another must be the same, so a change of these is a change of the names as well."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_HOUR_US = 3_600_000_000
_LAST_HOUR = 9_999_999
_LAST_US = _LAST_HOUR * _HOUR_US
_GZIP = 31
"""Window bits of zlib that make a gzip file, whose header has no time."""

_LONGEST_PART = 200
"""Of what is said in a name; file systems take 255 bytes, and of a run's in the index the time stands in front."""


class UnreadableArchive(Exception):
    """An object of the archive is not as it was written, or of a later release."""


class ArchivedRun(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What lists show of a closed run, and where its history is. Stored as JSON, so new fields have defaults."""

    format: int = 1
    namespace: str
    workflow_id: str
    shown: RecordVisibility
    parts: int
    history_size: int = 0
    first_run_id: str = ""
    execution_time: datetime | None = None
    parent_workflow_id: str = ""
    parent_run_id: str = ""
    root_workflow_id: str = ""
    root_run_id: str = ""
    transitions: int = 1

    @property
    def key(self) -> ExecutionKey:
        return ExecutionKey(self.namespace, self.workflow_id)

    @property
    def closed(self) -> datetime:
        assert self.shown.close_time is not None
        return self.shown.close_time


def archived_run(commit: Commit, shown: RecordVisibility, parts: int) -> ArchivedRun:
    """Of the run that ``commit`` closed, as it had it shown."""
    more = projected(commit, shown)
    return ArchivedRun(
        namespace=commit.namespace,
        workflow_id=commit.workflow_id,
        shown=shown,
        parts=parts,
        **msgspec.structs.asdict(more),
    )


# --- names ---


def histories_of(namespace: str) -> str:
    return f"{HISTORIES}{_part(namespace)}/"


def index_of(namespace: str) -> str:
    return f"{INDEX}{_part(namespace)}/"


def history_prefix(key: ExecutionKey, run_id: str) -> str:
    workflow = hashlib.blake2b(key.workflow_id.encode(), digest_size=16).hexdigest()
    return f"{histories_of(key.namespace)}{workflow}/{_part(run_id)}/"


def part_name(key: ExecutionKey, run_id: str, number: int) -> str:
    return f"{history_prefix(key, run_id)}{number:06d}.jsonl.gz"


def index_name(namespace: str, closed: datetime, run_id: str) -> str:
    """The newest close comes first."""
    return f"{index_before(namespace, closed)}.{_part(run_id)}"


def index_before(namespace: str, closed: datetime) -> str:
    """Comes before the names of all runs that closed at that time or earlier, and behind those of all later ones."""
    microseconds = min(max((closed - _EPOCH) // _MICROSECOND, 0), _LAST_US)
    hour = _LAST_HOUR - microseconds // _HOUR_US
    return f"{index_of(namespace)}{hour:07d}/{_LAST_US - microseconds:017d}"


def index_behind(namespace: str, closed: datetime) -> str:
    """Comes behind the names of all runs that closed at that time or later."""
    return index_before(namespace, closed - _MICROSECOND if closed > _EPOCH else closed)


def _part(text: str) -> str:
    """Neither hidden, nor a way out of a folder, nor too long for one."""
    name = quoted(text)
    if len(name) > _LONGEST_PART:
        return "=" + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return name if name[:1].isalnum() or name[:1] == "=" else f"={ord(name[0]):02X}{name[1:]}"


# --- contents ---


class PartLines:
    """Lines of parts, cut as the events come."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._bytes = 0

    def add(self, events: Sequence[HistoryEvent]) -> list[list[bytes]]:
        """The parts that are full now."""
        full: list[list[bytes]] = []
        for event in events:
            line = encode_json(event)
            self._lines.append(line)
            self._bytes += len(line)
            if len(self._lines) == PART_EVENTS or self._bytes >= PART_BYTES:
                full.append(self.rest())
        return full

    def rest(self) -> list[bytes]:
        lines, self._lines, self._bytes = self._lines, [], 0
        return lines


def packed(lines: Sequence[bytes]) -> bytes:
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(b"".join([line + b"\n" for line in lines])) + packer.flush()


def run_line(run: ArchivedRun) -> bytes:
    return encode_json(run)


def opened_run(data: bytes) -> ArchivedRun:
    """Of the index, or of the first part. Raises UnreadableArchive."""
    return _run_of(_lines(data)[0])


def opened_part(data: bytes, number: int) -> tuple[ArchivedRun | None, list[HistoryEvent]]:
    """The run with the first part alone. Raises UnreadableArchive."""
    lines = _lines(data)
    run = None
    if number == 0:
        run, lines = _run_of(lines[0]), lines[1:]
    try:
        return run, [decode_json(line, HistoryEvent) for line in lines]
    except msgspec.DecodeError as error:
        raise UnreadableArchive(f"it has an event that is none ({error})") from error


def _lines(data: bytes) -> list[bytes]:
    try:
        return gzip.decompress(data).splitlines() or [b""]
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableArchive(f"it cannot be decompressed ({error})") from error


def _run_of(line: bytes) -> ArchivedRun:
    try:
        return decode_json(line, ArchivedRun)
    except msgspec.DecodeError as error:
        raise UnreadableArchive(f"it does not begin with a run ({error})") from error


# --- what lists make of it ---


def info_of(run: ArchivedRun) -> WorkflowExecutionInfo:
    shown = run.shown
    return WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id=run.workflow_id, run_id=shown.run_id),
        workflow_type=shown.workflow_type,
        task_queue=shown.task_queue,
        status=shown.status,
        start_time=shown.start_time,
        close_time=shown.close_time,
        history_length=shown.history_length,
        history_size_bytes=run.history_size,
        first_run_id=run.first_run_id,
        memo=shown.memo,
        search_attributes=shown.search_attributes,
    )


def values_of(run: ArchivedRun) -> dict[str, Value]:
    """What a filter sees of it."""
    shown = run.shown
    execution_time = run.execution_time or shown.start_time
    found: dict[str, Value] = {
        "WorkflowId": run.workflow_id,
        "RunId": shown.run_id,
        "WorkflowType": shown.workflow_type,
        "TaskQueue": shown.task_queue,
        "ExecutionStatus": shown.status.value,
        "StartTime": shown.start_time,
        "ExecutionTime": execution_time,
        "CloseTime": run.closed,
        "ExecutionDuration": (run.closed - execution_time) // _MICROSECOND * 1_000,
        "HistoryLength": shown.history_length,
        "HistorySizeBytes": run.history_size,
        "StateTransitionCount": run.transitions,
        "RootWorkflowId": run.root_workflow_id or run.workflow_id,
        "RootRunId": run.root_run_id or shown.run_id,
    }
    if run.parent_workflow_id:
        found |= {"ParentWorkflowId": run.parent_workflow_id, "ParentRunId": run.parent_run_id}
    for name, (_, value) in custom_values(shown.search_attributes).items():
        found[name] = value
    return found
