"""Checks of the deduplication key of a start (LC-48)."""

from stepwell.api.enums import DeduplicationPolicy
from stepwell.api.errors import InvalidArgument
from stepwell.api.limits import MAX_DEDUPLICATION_TTL, MIN_DEDUPLICATION_TTL
from stepwell.api.requests import StartWorkflowRequest

from . import fields


def deduplication(request: StartWorkflowRequest) -> None:
    asked = request.deduplication
    if asked is None:
        return
    fields.identifier("deduplication.key", asked.key)
    fields.duration("deduplication.ttl", asked.ttl, MAX_DEDUPLICATION_TTL)
    if asked.ttl is not None and asked.ttl < MIN_DEDUPLICATION_TTL:
        raise InvalidArgument(
            f"deduplication.ttl is {fields.seconds(asked.ttl)}; use {fields.seconds(MIN_DEDUPLICATION_TTL)} or more, "
            "or leave it out to hold the key until the workflow ends",
            field="deduplication.ttl",
        )
    if request.completion_callbacks and asked.policy is DeduplicationPolicy.USE_EXISTING:
        raise InvalidArgument(
            "completion_callbacks cannot go with deduplication.policy USE_EXISTING: the workflow that has the key may "
            "be another one, which would not call them; use another policy, or ask for its result",
            field="completion_callbacks",
        )


def no_deduplication(request: StartWorkflowRequest) -> None:
    if request.deduplication is not None:
        raise InvalidArgument(
            "deduplication cannot go with a message, since the key may be held by a workflow of another id, which the "
            "message is not for; start first, then send the message to the workflow that the start names",
            field="deduplication",
        )
