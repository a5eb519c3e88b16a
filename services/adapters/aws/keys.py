"""Keys of the items of ``exec`` and ``vis``. Pure.

All of a workflow id's log is one partition, its shard in front to spread load. Activity items stand in sixteen
partitions of their own beside it, so that a fan-out does not throttle the run. A workflow id may hold ``#``, a
namespace may not; so keys are read from the left, and the suffix of an item's partition is never read at all.
"""

from hashlib import blake2b

from ...history.commit import BEGINNING, ExecutionKey

SHARDS = 4_096
ITEM_PARTITIONS = 16
COMMITS = "C#"
MARKERS = "R#"


def shard(key: ExecutionKey) -> int:
    digest = blake2b(f"{key.namespace}#{key.workflow_id}".encode()).digest()
    return int.from_bytes(digest[:2]) % SHARDS


def log_key(key: ExecutionKey) -> str:
    """Partition of commits, prefixes and markers."""
    return f"{shard(key):04x}#{key.namespace}#{key.workflow_id}"


def parse_log_key(pk: str) -> ExecutionKey:
    _, namespace, workflow_id = pk.split("#", 2)
    return ExecutionKey(namespace, workflow_id)


def commit_key(seq: int) -> str:
    return f"{COMMITS}{seq:012d}"


def parse_commit_key(sk: str) -> int:
    return int(sk[len(COMMITS) :])


def items_key(key: ExecutionKey, scheduled_event_id: int) -> str:
    """Partition of an activity's item."""
    return f"{log_key(key)}#a{scheduled_event_id % ITEM_PARTITIONS}"


def item_key(run_id: str, scheduled_event_id: int) -> str:
    return f"A#{run_id}#{scheduled_event_id:08d}"


def prefix_parts(run_id: str) -> str:
    """What the keys of a run's prefix parts begin with."""
    return f"B#{run_id}#"


def prefix_key(run_id: str, seq: int) -> str:
    return f"{prefix_parts(run_id)}{seq - BEGINNING:010d}"


def parse_prefix_key(sk: str) -> int:
    return int(sk[-10:]) + BEGINNING


def marker_key(name: str) -> str:
    return f"{MARKERS}{name}"


def visible_key(key: ExecutionKey) -> str:
    """Partition of a workflow id's executions in ``vis``."""
    return f"{key.namespace}#{key.workflow_id}"


def parse_visible_key(pk: str) -> ExecutionKey:
    return ExecutionKey(*pk.split("#", 1))
