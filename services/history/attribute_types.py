"""Types of custom search attributes (VI-07): a value that comes in is of its attribute's type, or registers it.

The types are in the registry of namespaces, and read from memory; only an attribute that is new costs a write, once.
"""

from collections.abc import Collection, Mapping, Sequence

from stepwell.api.commands import (
    Command,
    ContinueAsNewWorkflowExecution,
    StartChildWorkflowExecution,
    UpsertWorkflowSearchAttributes,
)
from stepwell.api.errors import InvalidArgument
from stepwell.api.payloads import Payload

from ..namespaces.registry import Namespaces
from ..visibility.attributes import (
    CHANGE_VERSION,
    MANAGED,
    OWN_PREFIX,
    RESERVED_PREFIXES,
    SYSTEM,
    ValueType,
    says_nothing,
    typed_value,
)
from .executions import unavailable
from .ports import StoreUnavailable, VisibilityStore

_FIELD = "search_attributes"
_OF_CODE = frozenset({CHANGE_VERSION})
"""What a worker writes for the system."""

_SAYING = frozenset({UpsertWorkflowSearchAttributes, StartChildWorkflowExecution, ContinueAsNewWorkflowExecution})


class AttributeTypes:
    """Raises Unavailable when the registry cannot be written."""

    def __init__(self, namespaces: Namespaces, visibility: VisibilityStore) -> None:
        self._namespaces = namespaces
        self._visibility = visibility

    async def known(self, namespace: str) -> Mapping[str, ValueType]:
        """What a query may speak of: what is registered, and what runs have that are older than the registry. Raises
        StoreUnavailable."""
        there = await self._visibility.attribute_types(namespace)
        config = self._namespaces.get(namespace)
        found = {name: kind for name, kind in there.items() if name not in config.removed_attributes}
        return {**found, **{name: ValueType(kind) for name, kind in config.search_attributes.items()}, **MANAGED}

    async def admit(self, namespace: str, values: Mapping[str, Payload], own: Collection[str] = ()) -> None:
        """Raises InvalidArgument for a value that is of no type, or of another than its attribute's; for an attribute
        that nobody registered, where that is not done by using it, and for one too many; for one that the system alone
        sets, unless it is one of ``own``."""
        types: dict[str, str] = {}
        for name, payload in values.items():
            if name.startswith(OWN_PREFIX) and name not in own:
                raise _refused(
                    f"search attribute {name!r} is one that the system itself sets, as all that begin with "
                    f"{OWN_PREFIX!r}; leave it out, or use another name"
                )
            kind = self._type_of(name, payload)
            if kind is not None:
                types[name] = kind.value
        if not types or not self._namespaces.keeps_records:
            return
        config = self._namespaces.get(namespace)
        new = types.keys() - config.search_attributes.keys()
        if new and not config.implicit_search_attributes:
            raise _refused(
                f"search attribute {min(new)!r} is not registered in namespace {namespace!r}; register it "
                "with its type first (`stepwell search-attribute add`, UpdateNamespace), or leave it out"
            )
        try:
            await self._namespaces.add_search_attributes(namespace, types)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def misfit(self, namespace: str, commands: Sequence[Command]) -> str:
        """What ``admit`` says against the attributes of a workflow task's commands; empty when nothing is wrong."""
        for command in commands:
            if type(command) in _SAYING and (values := getattr(command, _FIELD)):
                if getattr(command, "namespace", "") not in ("", namespace):
                    continue  # of a child elsewhere, where they are admitted when it is started
                try:
                    await self.admit(
                        namespace, values, _OF_CODE if type(command) is UpsertWorkflowSearchAttributes else ()
                    )
                except InvalidArgument as refusal:
                    return f"{refusal.message}."
        return ""

    def _type_of(self, name: str, payload: Payload) -> ValueType | None:
        """None for what takes a value away, and for names that are not the user's to register."""
        if name in SYSTEM:
            raise _refused(f"search attribute {name!r} is one of the system's own, and not to be set; use another name")
        if says_nothing(payload):
            return None
        typed = typed_value(payload)
        if typed is None:
            said = payload.metadata.get("type", "")
            raise _refused(
                f"search attribute {name!r} has no value "
                + (f"of type {said}" if said else "that can be searched for")
                + "; give it JSON of one of the types "
                + ", ".join(ValueType)
            )
        return None if name.startswith(RESERVED_PREFIXES) else typed[0]


def _refused(problem: str) -> InvalidArgument:
    return InvalidArgument(problem, field=_FIELD)
