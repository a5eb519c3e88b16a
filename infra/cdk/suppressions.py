"""What cdk-nag finds and we leave as it is: each finding with its reason. Anything else fails ``cdk synth``."""

from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct

from functions import archive_arns
from stack import StepwellStack

RULES = "AwsSolutions"

_LOGS = (
    "calls and objects are logged by CloudTrail where somebody asks for it; a second log costs as much as the storage"
)
_TIMERS = (
    "a deadline that is set aside would leave its run waiting for ever, so messages are tried again for 14 days; "
    "the alarm timers-age tells of them"
)
_ROTATION = "a new key would refuse the results of all tasks that are being worked on"
_VERSION = "3.13 is the newest Python that the product's tests run on"
_TRACES = "the calls of X-Ray have no resource"
_ACCESS_LOG = "off unless the cell says access_log: logs of every call cost half as much as the calls"
_PATHS = "the pattern is the grant: which workflows a caller may reach is said by the beginning of their paths"
_OBJECTS = "the bucket holds nothing else: payloads, archives and exports of the installation"
_TASK_QUEUES = "task queues are made when they are first used; the pattern allows no other queues of the installation"
_KEY = "the actions of the key's own grant for encryption; the resource is the one key"
_NETWORK_LOG = "nothing in this network listens but the balancer, which only the network itself can reach"
_BALANCER_LOG = "the balancer is inside of the network; the server logs what it refuses"
_NAMES = "names only; the key of task tokens is fetched by its name"
_INSIDE = "the rule names the network's own range, which this check cannot read"


def add_to(stack: StepwellStack) -> None:
    """Acknowledges, construct by construct."""
    storage = stack.storage
    _leave(storage.bucket, _LOGS, "S1")
    _leave(storage.timer_queue, _TIMERS, "SQS3")
    _leave(storage.failure_queue, "it is the queue for what others set aside", "SQS3")
    if storage.token_secret is not None:
        _leave(storage.token_secret, _ROTATION, "SMG4")
    for function in stack.functions.all:
        _leave(function, _VERSION, "L1")
        if stack.cell.tracing and function.role is not None:
            _leave(function.role, _TRACES, "IAM5[Resource::*]")
    if not stack.cell.access_log:
        _leave(stack.api, _ACCESS_LOG, "APIG1")
    objects = f"IAM5[Resource::{shown(stack, storage.bucket.arn_for_objects('*'))}]"
    for role in stack.roles:
        _leave(role, _OBJECTS, objects)
        _leave(role, _OBJECTS, *[f"IAM5[Resource::{shown(stack, arn)}]" for arn in archive_arns(storage)])
        _leave(role, _TASK_QUEUES, *[f"IAM5[Resource::{shown(stack, arn)}]" for arn in stack.task_queue_arns])
        if storage.key is not None:
            _leave(role, _KEY, "IAM5[Action::kms:GenerateDataKey*]", "IAM5[Action::kms:ReEncrypt*]")
    for policy, resources in stack.policies:
        _leave(policy, _PATHS, *[f"IAM5[Resource::{shown(stack, each)}]" for each in resources])
    if stack.service is not None:
        _leave(stack.service.network, _NETWORK_LOG, "VPC7")
        _leave(stack.service.tasks, _NAMES, "ECS2")
        _leave(stack.service.balancer, _BALANCER_LOG, "ELB2")
        _leave(stack.service.balancer, _INSIDE, "EC23")


def shown(stack: Stack, text: str) -> str:
    """As cdk-nag writes a text with references in it: ``<Bucket.Arn>/*``."""
    return "".join(_part(each) for each in _parts(stack.resolve(text)))


def _parts(resolved: Any) -> list[Any]:
    if isinstance(resolved, dict) and "Fn::Join" in resolved:
        return [part for each in resolved["Fn::Join"][1] for part in _parts(each)]
    return [resolved]


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    return f"<{part['Ref']}>" if "Ref" in part else f"<{'.'.join(part['Fn::GetAtt'])}>"


def _leave(construct: IConstruct, reason: str, *rules: str) -> None:
    for rule in rules:
        Validations.of(construct).acknowledge(Acknowledgment(id=f"{RULES}::{RULES}-{rule}", reason=reason))
