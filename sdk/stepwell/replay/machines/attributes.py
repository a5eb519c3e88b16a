"""What code says of its run: memo and search attributes. Matched by kind, and the system's own by name."""

from ...api.codec import encode_json
from ...api.commands import ModifyWorkflowProperties, UpsertWorkflowSearchAttributes
from ...api.common import Memo
from ...api.events import EventAttributes, WorkflowPropertiesModified
from ...api.events import UpsertWorkflowSearchAttributes as SearchAttributesUpserted
from ...api.payloads import ENCODING, ENCODING_JSON, Payload
from .command import CHANGE_VERSIONS, Ask

_CHANGE_VERSIONS_METADATA = {ENCODING: ENCODING_JSON, "type": "KeywordList"}


class MemoUpsert(Ask):
    """Of ``workflow.upsert_memo``."""

    __slots__ = ("_values",)

    def __init__(self, values: Memo) -> None:
        self._values = values

    def command(self) -> ModifyWorkflowProperties:
        return ModifyWorkflowProperties(upserted_memo=self._values)

    def matches(self, recorded: EventAttributes) -> bool:
        return type(recorded) is WorkflowPropertiesModified

    def describe(self) -> str:
        return f"ModifyWorkflowProperties (memo {', '.join(sorted(self._values))})"


class SearchAttributesUpsert(Ask):
    """Of ``workflow.upsert_search_attributes``."""

    __slots__ = ("_values",)

    def __init__(self, values: Memo) -> None:
        self._values = values

    def command(self) -> UpsertWorkflowSearchAttributes:
        return UpsertWorkflowSearchAttributes(search_attributes=self._values)

    def matches(self, recorded: EventAttributes) -> bool:
        return type(recorded) is SearchAttributesUpserted and CHANGE_VERSIONS not in recorded.search_attributes

    def describe(self) -> str:
        return f"UpsertWorkflowSearchAttributes ({', '.join(sorted(self._values))})"


class ChangeVersionsUpsert(Ask):
    """Which ways the run has taken at changes of its code, to be searched for (VE-05)."""

    __slots__ = ("value",)

    def __init__(self, versions: list[str]) -> None:
        self.value = Payload(metadata=_CHANGE_VERSIONS_METADATA, data=encode_json(versions))

    def command(self) -> UpsertWorkflowSearchAttributes:
        return UpsertWorkflowSearchAttributes(search_attributes={CHANGE_VERSIONS: self.value})

    def matches(self, recorded: EventAttributes) -> bool:
        return type(recorded) is SearchAttributesUpserted and CHANGE_VERSIONS in recorded.search_attributes

    def describe(self) -> str:
        return f"UpsertWorkflowSearchAttributes ({CHANGE_VERSIONS})"
