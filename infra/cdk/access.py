"""Who may call what: managed policies by role, down to a namespace, a workflow type and the beginning of workflow ids.

Every operation has a path that repeats namespace, workflow type and workflow id of its request, and the server refuses
a request that says something else than its path. So a policy on paths is a policy on workflows.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import get_args

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct
from stepwell.api.operations import Operation

from stepwell_server.adapters.aws.names import TAG_NAMESPACE, namespace_tag
from stepwell_server.frontend.roles import FOR_ALL, OPERATIONS, Role
from stepwell_server.frontend.routes import ROUTES

_PLAIN = re.compile(r"[A-Za-z0-9._~-]*")


@dataclass(frozen=True, slots=True)
class Grant:
    """One managed policy. ``*`` as namespace: all of them."""

    role: Role
    namespace: str = "*"
    workflow_type: str = "*"
    id_prefix: str = ""

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise ValueError(f"role must be one of {', '.join(get_args(Role))}, not {self.role!r}")
        for name in ("namespace", "workflow_type", "id_prefix"):
            self._check_text(name)
        if self.workflow_type != "*" and self.role != "starter":
            raise ValueError(f"workflow_type is for starters only: other calls name no type (role is {self.role!r})")
        if self.id_prefix and self.role == "worker":
            raise ValueError("id_prefix is not for workers: a task queue hands them whatever waits there")
        if self.id_prefix and self.role == "activity-operator":
            raise ValueError("id_prefix is of workflow ids, and an activity-operator's activities have no workflow")
        self._check_wildcards()

    def _check_text(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, str) or (not value and name != "id_prefix"):
            raise ValueError(f"{name} must be a text, not {value!r}")
        if not (value == "*" and name != "id_prefix") and not _PLAIN.fullmatch(value):
            # Others are percent-encoded in paths, and whether a policy sees them so is nothing to build on.
            raise ValueError(f"{name} may hold letters, digits, and . _ ~ - only, not {value!r}")

    def _check_wildcards(self) -> None:
        """A wildcard matches slashes too. What stands in front of a restriction must therefore be exact, else an id
        such as ``x/workflows/invoice-1`` would pass for one that begins with ``invoice-``."""
        if self.namespace == "*" and (self.workflow_type != "*" or self.id_prefix):
            raise ValueError("workflow_type and id_prefix need a namespace that is named")
        if self.role == "starter" and self.id_prefix and self.workflow_type == "*":
            raise ValueError("id_prefix of a starter needs a workflow_type that is named")

    def policy_name(self, prefix: str) -> str:
        """Unique for what is granted. Names of policies have 128 characters at most and no ``~``."""
        parts: list[str] = [self.role]
        if self.namespace != "*":
            parts += [self.namespace, *([self.workflow_type] if self.workflow_type != "*" else [])]
            parts += [self.id_prefix] if self.id_prefix else []
        name = "-".join(parts).replace("~", "_")
        digest = hashlib.sha256("/".join((self.namespace, self.workflow_type, self.id_prefix)).encode()).hexdigest()[:8]
        return "-".join(filter(None, (prefix, name[:60] if len(parts) == 1 else f"{name[:60]}-{digest}")))


GENERAL = tuple(Grant(role) for role in get_args(Role))
"""One policy for each role over all namespaces: every installation has them."""


def path_pattern(operation: Operation[object, object], grant: Grant) -> str:
    """The paths of the operation that the grant covers, as a pattern of IAM."""
    return operation.path.format(
        namespace=grant.namespace,
        workflow_type=grant.workflow_type,
        workflow_id=f"{grant.id_prefix}*",
        task_queue="*",
        schedule_id="*",
        activity_id="*",
    )


def patterns(grant: Grant) -> list[str]:
    """Of all operations of the grant's role. An id prefix leaves out what names no workflow, such as lists, and a
    namespace what tells of others."""
    operations = [route.operation for route in ROUTES if route.operation.name in OPERATIONS[grant.role]]
    if grant.namespace != "*":
        operations = [each for each in operations if "{namespace}" in each.path or each.name in FOR_ALL]
    if grant.id_prefix:
        operations = [each for each in operations if "{workflow_id}" in each.path or "{" not in each.path]
    if grant.workflow_type != "*":
        operations = [each for each in operations if "{activity_id}" not in each.path]
    return sorted({path_pattern(operation, grant) for operation in operations})


def policy(
    scope: Construct,
    name: str,
    grant: Grant,
    *,
    calls: list[str],
    queues: list[str],
    taking: list[str],
    key: str | None,
) -> iam.ManagedPolicy:
    """The managed policy of a grant: what may be called, and for workers which queues they may take tasks from.
    ``key``: of the account's own, with which the tasks are encrypted."""
    statements = [iam.PolicyStatement(sid="Call", actions=["execute-api:Invoke"], resources=calls)]
    if queues:
        statements.append(_taking(grant, queues, taking))
        statements += [] if key is None else [_reading(key)]
    return iam.ManagedPolicy(
        scope,
        name,
        managed_policy_name=grant.policy_name(Stack.of(scope).stack_name),
        description=_described(grant),
        statements=statements,
    )


def _taking(grant: Grant, queues: list[str], actions: list[str]) -> iam.PolicyStatement:
    """Workers take tasks from their namespace's queues themselves. A message is a hint: to act on it takes the API."""
    conditions = None
    if grant.namespace != "*":
        conditions = {"StringEquals": {f"aws:ResourceTag/{TAG_NAMESPACE}": namespace_tag(grant.namespace)}}
    return iam.PolicyStatement(
        sid="TakeTasks", actions=[f"sqs:{name}" for name in actions], resources=queues, conditions=conditions
    )


def _reading(key: str) -> iam.PolicyStatement:
    """Who receives from an encrypted queue needs its key: by way of SQS alone, as tables and bucket have the same."""
    by_way_of = f"sqs.{Aws.REGION}.{Aws.URL_SUFFIX}"
    return iam.PolicyStatement(
        sid="ReadTasks",
        actions=["kms:Decrypt"],
        resources=[key],
        conditions={"StringEquals": {"kms:ViaService": by_way_of}},
    )


def _described(grant: Grant) -> str:
    where = "in all namespaces" if grant.namespace == "*" else f"in namespace {grant.namespace}"
    what = f", workflows of type {grant.workflow_type}" if grant.workflow_type != "*" else ""
    ids = f", ids that begin with {grant.id_prefix}" if grant.id_prefix else ""
    return f"Stepwell {grant.role} {where}{what}{ids}"
