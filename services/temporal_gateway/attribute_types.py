"""Search attributes without a type, as the untyped interfaces of SDKs send them.

Theirs give such a value the type that is registered for its name, and take a list of one for the value in it. Asked for
only when a value has no type: the newer interfaces send it.
"""

from collections.abc import Iterable, Mapping

import msgspec
from stepwell.api import operations as o
from stepwell.api import requests as r
from temporalio.api.command.v1 import message_pb2 as command_pb2
from temporalio.api.common.v1 import message_pb2 as pb
from temporalio.api.enums.v1 import CommandType

from .gateway import Gateway

_TYPE = "type"
_COMMANDS = {
    CommandType.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: "upsert_workflow_search_attributes_command_attributes",
    CommandType.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION: "start_child_workflow_execution_command_attributes",
    CommandType.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION: (
        "continue_as_new_workflow_execution_command_attributes"
    ),
}
_LIST = "KeywordList"


def attributes_of(commands: Iterable[command_pb2.Command]) -> list[Mapping[str, pb.Payload]]:
    """Those of all commands that have some."""
    with_some = [
        (command, _COMMANDS[command.command_type]) for command in commands if command.command_type in _COMMANDS
    ]
    return [getattr(command, field).search_attributes.indexed_fields for command, field in with_some]


async def give_types(gateway: Gateway, namespace: str, *several: Mapping[str, pb.Payload]) -> None:
    """Writes them into the payloads that have none."""
    untyped = [(name, value) for values in several for name, value in values.items() if not value.metadata.get(_TYPE)]
    if not untyped:
        return
    described = await gateway.call(o.DESCRIBE_NAMESPACE, r.DescribeNamespaceRequest(namespace=namespace))
    for name, value in untyped:
        kind = described.info.search_attributes.get(name)
        if kind is not None:
            value.metadata[_TYPE] = kind.encode()
            if kind != _LIST:
                value.data = _alone(value.data)


def _alone(data: bytes) -> bytes:
    """The one in a list of one. What is no such list is as it was: the engine judges it."""
    try:
        values = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return data
    return bytes(values[0]) if len(values) == 1 else data
