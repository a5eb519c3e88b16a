"""What the parts of one installation are called on AWS. Pure; CDK, bootstrap, functions and tests all ask here."""

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

TaskKind = Literal["wft", "act"]

EXPIRY_ATTRIBUTE = "x"
"""Time to live, in epoch seconds, in every table."""

STARTS_INDEX = "starts"
"""The index of the visibility table: executions of a namespace and status by start time."""

TAG_NAMESPACE = "stepwell:namespace"
"""Of task queues: by it policies tell namespaces apart."""

MIN_VISIBILITY, MAX_VISIBILITY = 60, 12 * 3600
"""Seconds for which a task queue's messages are with who receives them without saying for how long: event source
mappings of functions. So long a function may take, and no longer."""

MAX_TAG = 256
NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9 _.:/=+\-@]")
_HASHED = "blake2b:"
_CELL = re.compile(r"[a-z0-9]([a-z0-9-]{0,14}[a-z0-9])?")


class NameRefused(ValueError):
    """A setting that AWS would refuse as a part of a name. ``str(error)`` is a sentence for people."""


def namespace_tag(namespace: str) -> str:
    """The value of ``TAG_NAMESPACE``, which no two namespaces share: the name, or a hash where a tag cannot hold it."""
    held = len(namespace) <= MAX_TAG and namespace == namespace.strip() and not NOT_IN_TAGS.search(namespace)
    if held and not namespace.startswith(_HASHED):
        return namespace
    return _HASHED + blake2b(namespace.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Names:
    """A cell is an installation within an account and region: tables, queues, functions of its own."""

    cell: str = "main"

    def __post_init__(self) -> None:
        if not _CELL.fullmatch(self.cell):
            raise NameRefused(
                f"cell {self.cell!r} is no name of a cell: use 1 to 16 of a-z, 0-9 and -, with no - at either end"
            )

    @property
    def prefix(self) -> str:
        return f"stepwell-{self.cell}"

    @property
    def exec_table(self) -> str:
        """Commits, activity items, prefixes and markers."""
        return f"{self.prefix}-exec"

    @property
    def timer_table(self) -> str:
        return f"{self.prefix}-timer"

    @property
    def ctl_table(self) -> str:
        """Namespaces, queue settings, leases, query rendezvous."""
        return f"{self.prefix}-ctl"

    @property
    def vis_table(self) -> str:
        return f"{self.prefix}-vis"

    @property
    def tables(self) -> tuple[str, str, str, str]:
        return (self.exec_table, self.timer_table, self.ctl_table, self.vis_table)

    @property
    def timer_queue(self) -> str:
        """Deadlines of the next minutes, as delayed messages."""
        return f"{self.prefix}-timers"

    @property
    def failure_queue(self) -> str:
        """Records that the feed could not handle."""
        return f"{self.prefix}-feed-failures"

    @property
    def token_key_parameter(self) -> str:
        """Of the parameter of Systems Manager that signs the tokens of tasks."""
        return f"/stepwell/{self.cell}/token-key"

    @property
    def token_key_secret(self) -> str:
        """Of the secret that does so where a stack has one, or had."""
        return f"{self.prefix}-token-key"

    def bucket(self, account: str, region: str) -> str:
        """The bucket that bootstrap makes; a stack names its own."""
        return f"{self.prefix}-{account}-{region}"

    def task_queue(self, namespace: str, task_queue: str, kind: TaskKind, partition: int = 0, build: str = "") -> str:
        """SQS allows 80 of few characters, so what users named is hashed; the queue's tags say it in full.

        Lengths go in front of the names, so that no two triples are hashed as the same text."""
        parts = [part.encode() for part in (namespace, task_queue, build)]
        text = b"".join(len(part).to_bytes(4) + part for part in parts)
        return f"{self.prefix}-{blake2b(text, digest_size=8).hexdigest()}-{kind}-{partition}"
