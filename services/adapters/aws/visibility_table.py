"""VisibilityStore on DynamoDB: one record per run, and an index over them by namespace and status, newest start first.

The index is spread over a few partitions per status, so that many starts a second do not meet in one; a list merges
them. Records are projected from commits in any order and any number of times: the newest ``seq`` stays. A list may lag
behind by the moment that the index takes.
"""

import asyncio
import heapq
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.requests import WorkflowExecutionInfo

from ...common.clock import Clock
from ...history import codec
from ...history.commit import Commit, ExecutionKey
from ...history.tasks import RecordVisibility
from ...timer_sweeper.buckets import EPOCH
from . import keys
from .attributes import Item, Value, from_attributes, size, to_attributes, value
from .client import ServiceClient
from .commit_items import MAX_ITEM_BYTES, seconds
from .expiry import RetentionOf
from .faults import ConditionFailed
from .names import STARTS_INDEX

INDEX_PARTITIONS = 2
"""Per namespace and status: for a thousand writes a second each, of a cell's 600 starts. A list reads all of them."""

_PAGE = 100
_LAST_SEQ = 10**15
_REMEMBERED = timedelta(days=30)
"""A record of the stream that failed waits 14 days in its queue."""
_MICROSECOND = timedelta(microseconds=1)


class VisibilityTable:
    """``retention``: how long records of closed runs are kept, by namespace."""

    def __init__(self, dynamodb: ServiceClient, table: str, clock: Clock, retention: RetentionOf) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock
        self._retention = retention

    async def project(self, commit: Commit) -> None:
        tasks = [task for task in commit.tasks if type(task) is RecordVisibility]
        await asyncio.gather(*(self._put(self._record(commit, task), commit.seq) for task in tasks))

    async def _put(self, item: Mapping[str, Value], seq: int) -> None:
        attributes = to_attributes(item)
        if size(attributes) > MAX_ITEM_BYTES:
            for large in ("at", "m"):
                attributes.pop(large, None)  # the run itself has them
        try:
            await self._dynamodb.call(
                "put_item",
                TableName=self._table,
                Item=attributes,
                ConditionExpression="attribute_not_exists(pk) OR seq < :seq",
                ExpressionAttributeValues={":seq": value(seq)},
            )
        except ConditionFailed:
            return  # a newer one is there, or this one

    def _record(self, commit: Commit, task: RecordVisibility) -> dict[str, Value]:
        state = commit.state_of(task.run_id) or commit.state
        item: dict[str, Value] = {
            "pk": keys.visible_key(commit.key),
            "sk": task.run_id,
            "gp": index_key(commit.namespace, task.status, keys.shard(commit.key) % INDEX_PARTITIONS),
            "gs": start_key(task.start_time, task.run_id),
            "seq": commit.seq,
            "ty": task.workflow_type,
            "tq": task.task_queue,
            "st": task.status.value,
            "hl": task.history_length,
            "hs": state.history_size,
        }
        if task.close_time is not None:
            item["ct"] = _to_us(task.close_time)
            item["x"] = seconds(task.close_time + self._retention(commit.namespace))
        if state.first_run_id != task.run_id:
            item["fr"] = state.first_run_id
        shown = codec.encode_visible_attributes(task.memo, task.search_attributes)
        if shown is not None:
            item["at"], item["m"] = shown, 1
        return item

    async def remove(self, key: ExecutionKey, run_id: str) -> None:
        """A stone in its place, in no list, that outlasts whatever may still be projected of the run."""
        await self._dynamodb.call(
            "put_item",
            TableName=self._table,
            Item=to_attributes(
                {
                    "pk": keys.visible_key(key),
                    "sk": run_id,
                    "seq": _LAST_SEQ,
                    "x": seconds(self._clock.now() + _REMEMBERED),
                }
            ),
        )

    async def list_executions(
        self,
        namespace: str,
        *,
        status: WorkflowExecutionStatus | None,
        workflow_type: str,
        after: tuple[datetime, str] | None,
        limit: int,
    ) -> list[WorkflowExecutionInfo]:
        behind = None if after is None else start_key(*after)
        statuses = list(WorkflowExecutionStatus) if status is None else [status]
        walks = [
            _Walk(self, index_key(namespace, each, number), behind, workflow_type, min(limit, _PAGE))
            for each in statuses
            for number in range(INDEX_PARTITIONS)
        ]
        await asyncio.gather(*(walk.read() for walk in walks))
        found: list[Item] = []
        heap = [(_Descending(walk.rows[0]["gs"]), number) for number, walk in enumerate(walks) if walk.rows]
        heapq.heapify(heap)
        while heap and len(found) < limit:
            _, number = heapq.heappop(heap)
            walk = walks[number]
            found.append(walk.rows.pop(0))
            if not walk.rows:
                await walk.read()
            if walk.rows:
                heapq.heappush(heap, (_Descending(walk.rows[0]["gs"]), number))
        shown = await self._shown([row for row in found if "m" in row])
        return [_info(row, shown.get((row["pk"], row["sk"]))) for row in found]

    async def page(
        self, index_partition: str, behind: str | None, workflow_type: str, limit: int, after: Any
    ) -> tuple[list[Item], Any]:
        """Records of one partition of the index, newest first, and where to go on."""
        values: dict[str, Value] = {":gp": index_partition, ":now": int(self._clock.now().timestamp())}
        query: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": STARTS_INDEX,
            "ScanIndexForward": False,
            "Limit": limit,
            "KeyConditionExpression": "gp = :gp",
            "FilterExpression": "(attribute_not_exists(x) OR x > :now)",
        }
        if behind is not None:
            query["KeyConditionExpression"] += " AND gs < :behind"
            values[":behind"] = behind
        if workflow_type:
            query["FilterExpression"] += " AND ty = :type"
            values[":type"] = workflow_type
        if after is not None:
            query["ExclusiveStartKey"] = after
        answer = await self._dynamodb.call("query", **query, ExpressionAttributeValues=to_attributes(values))
        return [from_attributes(item) for item in answer["Items"]], answer.get("LastEvaluatedKey")

    async def _shown(self, rows: Sequence[Item]) -> dict[tuple[str, str], bytes]:
        """Memos and search attributes, which the index does not carry."""
        found: dict[tuple[str, str], bytes] = {}
        wanted = [to_attributes({"pk": row["pk"], "sk": row["sk"]}) for row in rows]
        read = await self._dynamodb.get_all(self._table, wanted, strong=False, projection="pk, sk, #at")
        for item in map(from_attributes, read):
            if "at" in item:
                found[item["pk"], item["sk"]] = item["at"]
        return found

    async def owing(self, after: ExecutionKey | None, limit: int) -> list[ExecutionKey]:
        """None: queues outlive processes here, and deadlines send again what they lost."""
        return []

    async def locate(self, key: ExecutionKey, run_id: str) -> int | None:
        """The seq of the newest commit that was projected of that run."""
        where = to_attributes({"pk": keys.visible_key(key), "sk": run_id})
        answer = await self._dynamodb.call("get_item", TableName=self._table, Key=where, ProjectionExpression="pk, seq")
        seq = from_attributes(answer["Item"])["seq"] if "Item" in answer else None
        return None if seq == _LAST_SEQ else seq


class _Walk:
    """Through one partition of the index, page by page."""

    def __init__(
        self, table: VisibilityTable, partition: str, behind: str | None, workflow_type: str, limit: int
    ) -> None:
        self.rows: list[Item] = []
        self._table = table
        self._where = (partition, behind, workflow_type, limit)
        self._after: Any = None
        self._ended = False

    async def read(self) -> None:
        """Until there are rows, or no more."""
        while not self.rows and not self._ended:
            self.rows, self._after = await self._table.page(*self._where, self._after)
            self._ended = self._after is None


class _Descending(str):
    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def index_key(namespace: str, status: WorkflowExecutionStatus, partition: int) -> str:
    return f"{namespace}#{status.value}#{partition}"


def start_key(start_time: datetime, run_id: str) -> str:
    return f"{_to_us(start_time):020d}#{run_id}"


def _to_us(time: datetime) -> int:
    return (time - EPOCH) // _MICROSECOND


def _from_us(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def _info(row: Item, shown: bytes | None) -> WorkflowExecutionInfo:
    memo, search_attributes = codec.decode_visible_attributes(shown)
    started, _, run_id = row["gs"].partition("#")
    return WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id=keys.parse_visible_key(row["pk"]).workflow_id, run_id=run_id),
        workflow_type=row["ty"],
        task_queue=row["tq"],
        status=WorkflowExecutionStatus(row["st"]),
        start_time=_from_us(int(started)),
        close_time=_from_us(row["ct"]) if "ct" in row else None,
        history_length=row["hl"],
        history_size_bytes=row["hs"],
        first_run_id=row.get("fr", run_id),
        memo=memo,
        search_attributes=search_attributes,
    )
