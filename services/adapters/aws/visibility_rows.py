"""Records of runs in ``vis``: their attributes, what a filter sees of them, and what lists show. Pure.

``m`` says, in the index too, what the record has beside the attributes that the index carries: so it is read only for
runs of which it tells something that is asked for.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.requests import WorkflowExecutionInfo

from ...history import codec
from ...history.commit import Commit
from ...history.tasks import RecordVisibility
from ...history.visible import projected
from ...timer_sweeper.buckets import EPOCH
from ...visibility.attributes import Attribute, Value, ValueType, custom_values
from . import keys
from .attributes import Item, size, to_attributes
from .attributes import Value as Stored
from .commit_items import MAX_ITEM_BYTES, seconds

_MICROSECOND = timedelta(microseconds=1)

SHOWN, DELAYED, RELATED = 1, 2, 4
"""Bits of ``m``: memo or search attributes, an execution time of its own, a parent or a root."""

_ALWAYS = 8
_NEEDS = {
    "ExecutionTime": DELAYED,
    "ExecutionDuration": DELAYED,
    "ParentWorkflowId": RELATED,
    "ParentRunId": RELATED,
    "RootWorkflowId": RELATED,
    "RootRunId": RELATED,
    "StateTransitionCount": _ALWAYS,
}
INDEX_PARTITIONS = 2
"""Per namespace and status: for a thousand writes a second each, of a cell's 600 starts. A list reads all of them."""


def record(commit: Commit, task: RecordVisibility, retention: timedelta) -> Item:
    more = projected(commit, task)
    item: dict[str, Stored] = {
        "pk": keys.visible_key(commit.key),
        "sk": task.run_id,
        "gp": index_key(commit.namespace, task.status, keys.shard(commit.key) % INDEX_PARTITIONS),
        "gs": start_key(task.start_time, task.run_id),
        "seq": commit.seq,
        "ty": task.workflow_type,
        "tq": task.task_queue,
        "st": task.status.value,
        "hl": task.history_length,
        "hs": more.history_size,
        "sc": more.transitions,
    }
    if task.close_time is not None:
        item["ct"] = to_us(task.close_time)
        item["x"] = seconds(task.close_time + retention)
    told = 0
    if more.first_run_id != task.run_id:
        item["fr"] = more.first_run_id
    if more.execution_time is not None:
        item["et"] = to_us(more.execution_time)
        told |= DELAYED
    related = {
        "pw": more.parent_workflow_id,
        "pr": more.parent_run_id,
        "rw": more.root_workflow_id,
        "rr": more.root_run_id,
    }
    if any(related.values()):
        item |= {name: of for name, of in related.items() if of}
        told |= RELATED
    shown = codec.encode_visible_attributes(task.memo, task.search_attributes)
    if shown is not None and size(to_attributes({**item, "at": shown})) > MAX_ITEM_BYTES:
        # The run itself has its memo; what it is found by has 40 KB at most.
        shown = codec.encode_visible_attributes({}, task.search_attributes)
    if shown is not None:
        item["at"] = shown
        told |= SHOWN
    if told:
        item["m"] = told
    return item


def needed(attributes: Iterable[Attribute]) -> int:
    """Bits of what a filter of these must see besides the index."""
    bits = 0
    for attribute in attributes:
        bits |= SHOWN if attribute.custom else _NEEDS.get(attribute.name, 0)
    return bits


def must_read(row: Item, bits: int) -> bool:
    """Whether the record itself has something of that."""
    return bool(bits & _ALWAYS or row.get("m", 0) & bits)


def values(row: Item) -> dict[str, Value]:
    """What a filter sees of a record, or of a row of the index: then without what only the record has."""
    started, _, run_id = row["gs"].partition("#")
    workflow_id = keys.parse_visible_key(row["pk"]).workflow_id
    start_time = from_us(int(started))
    execution_time = from_us(row["et"]) if "et" in row else start_time
    found: dict[str, Value] = {
        "WorkflowId": workflow_id,
        "RunId": run_id,
        "WorkflowType": row["ty"],
        "TaskQueue": row["tq"],
        "ExecutionStatus": row["st"],
        "StartTime": start_time,
        "ExecutionTime": execution_time,
        "HistoryLength": row["hl"],
        "HistorySizeBytes": row["hs"],
        "RootWorkflowId": row.get("rw", workflow_id),
        "RootRunId": row.get("rr", run_id),
    }
    for name, of in (("ParentWorkflowId", "pw"), ("ParentRunId", "pr"), ("StateTransitionCount", "sc")):
        if of in row:
            found[name] = row[of]
    if "ct" in row:
        found["CloseTime"] = from_us(row["ct"])
        found["ExecutionDuration"] = (row["ct"] - to_us(execution_time)) * 1_000
    for name, (_, value) in custom(row).items():
        found[name] = value
    return found


def is_run(row: Item) -> bool:
    """Not so what is left in the place of one that was deleted."""
    return "gs" in row


def custom(row: Item) -> dict[str, tuple[ValueType, Value]]:
    if "at" not in row:
        return {}
    _, search_attributes = codec.decode_visible_attributes(row["at"])
    return custom_values(search_attributes)


def info(row: Item) -> WorkflowExecutionInfo:
    memo, search_attributes = codec.decode_visible_attributes(row.get("at"))
    started, _, run_id = row["gs"].partition("#")
    return WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id=keys.parse_visible_key(row["pk"]).workflow_id, run_id=run_id),
        workflow_type=row["ty"],
        task_queue=row["tq"],
        status=WorkflowExecutionStatus(row["st"]),
        start_time=from_us(int(started)),
        close_time=from_us(row["ct"]) if "ct" in row else None,
        history_length=row["hl"],
        history_size_bytes=row["hs"],
        first_run_id=row.get("fr", run_id),
        memo=memo,
        search_attributes=search_attributes,
    )


def index_key(namespace: str, status: WorkflowExecutionStatus, partition: int) -> str:
    return f"{namespace}#{status.value}#{partition}"


def start_key(start_time: datetime, run_id: str) -> str:
    return f"{to_us(start_time):020d}#{run_id}"


def to_us(time: datetime) -> int:
    return (time - EPOCH) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)
