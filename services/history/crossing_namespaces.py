"""What a namespace lets in of what workflows of others ask (MT-11): nothing, unless it lists theirs among its callers.

It is asked where something is delivered, so it holds whatever worker or gateway the command came from, and for what was
asked before the list was changed; what stays within a namespace is never looked up. What was let in stays: a delivery
that is made again is answered as the first one, and what a parent's cancel or end does to its own child needs no leave.

The list comes from the registry's memory. Before something is refused for good its record is read, since what this
process remembers may be older than what somebody has just allowed.
"""

from stepwell.api.enums import NamespaceState
from stepwell.api.errors import FailedPrecondition, Unavailable
from stepwell.api.limits import ANY_CALLER
from stepwell.api.requests import StartWorkflowRequest

from ..namespaces.payloads import check_payloads
from ..namespaces.records import DEFAULT, NamespaceConfig, check_starts
from ..namespaces.registry import Namespaces
from .attribute_types import AttributeTypes
from .crossing_entries import Pair
from .executions import unavailable
from .ports import StoreUnavailable

NOT_FOUND = "NAMESPACE_NOT_FOUND"
NOT_ALLOWED = "NAMESPACE_NOT_ALLOWED"
"""Causes of every kind of failure of what is asked of others."""


class NotLetIn(Exception):
    """What is asked is refused, now and whenever it is delivered again."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class OtherNamespaces:
    def __init__(self, namespaces: Namespaces, types: AttributeTypes) -> None:
        self._namespaces = namespaces
        self._types = types

    async def refusal(self, pair: Pair) -> str:
        """The cause for which nothing of the source is let in; empty when it is. Raises Unavailable."""
        caller, name = pair.source.namespace, pair.target.namespace
        if caller == name or _lists(self._namespaces.get(name), caller):
            return ""
        try:
            config = await self._namespaces.reread(name)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        if _lists(config, caller):
            return ""
        is_there = config.state is not NamespaceState.DELETED and (config.registered or name == DEFAULT)
        return NOT_ALLOWED if is_there else NOT_FOUND

    async def let_start(self, pair: Pair, start: StartWorkflowRequest) -> None:
        """The start of a child, which is held to what holds for starts there (MT-04), as one by a caller is. Raises
        NotLetIn; InvalidArgument for what the namespace does not take; Unavailable when it has used up its starts."""
        cause = await self.refusal(pair)
        if cause:
            raise NotLetIn(cause)
        name = pair.target.namespace
        try:
            check_starts(self._namespaces.get(name))
        except FailedPrecondition:
            raise NotLetIn(NOT_ALLOWED) from None
        largest = self._namespaces.limits(name).max_payload_bytes
        if largest is not None:
            check_payloads(start, largest, name)
        await self._types.admit(name, start.search_attributes)
        bucket = self._namespaces.starts(name)
        if bucket is None:
            return
        if bucket.wait(self._namespaces.clock.monotonic()):
            raise Unavailable(f"namespace {name!r} has used up its {bucket.rate:g} starts a second")
        bucket.pay()


def _lists(config: NamespaceConfig, caller: str) -> bool:
    callers = config.callers_allowed
    return config.state is not NamespaceState.DELETED and (caller in callers or ANY_CALLER in callers)
