"""Values that code got from outside once, and that are recorded: the n-th call of a run has the n-th value.

``RecordMarker`` -> MarkerRecorded. Live, the function is run; in replay its value is taken from the history.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from ..api.codec import decode_json, encode_json
from ..api.commands import RecordMarker
from ..api.events import EventAttributes, HistoryEvent, MarkerRecorded
from ..api.payloads import ENCODING, ENCODING_JSON, Payload
from .errors import NondeterminismError
from .machines.command import Ask

if TYPE_CHECKING:
    from .runtime import WorkflowRuntime

SIDE_EFFECT_MARKER = "side_effect"


class SideEffectMarker(Ask):
    """Matched by its number."""

    __slots__ = ("_number", "_value")

    def __init__(self, number: int, value: Payload) -> None:
        self._number = number
        self._value = value

    def command(self) -> RecordMarker:
        number = Payload(metadata={ENCODING: ENCODING_JSON}, data=encode_json(self._number))
        return RecordMarker(marker_name=SIDE_EFFECT_MARKER, details={"side_effect_id": number, "value": self._value})

    def matches(self, recorded: EventAttributes) -> bool:
        return _number_of(recorded) == self._number

    def describe(self) -> str:
        return f"RecordMarker (side_effect {self._number})"


class SideEffects:
    """Of one run."""

    def __init__(self, runtime: "WorkflowRuntime") -> None:
        self._runtime = runtime
        self._next = 1
        self._recorded: dict[int, Payload] = {}

    def recorded(self, events: Iterable[HistoryEvent]) -> None:
        """Note the values among the command events of one workflow task, before its code runs."""
        for event in events:
            number = _number_of(event.attributes)
            if number is not None:
                assert isinstance(event.attributes, MarkerRecorded)
                self._recorded[number] = event.attributes.details["value"]

    def value(self, function: Callable[[], Any], type_hint: Any) -> Any:
        """See ``workflow.side_effect``."""
        runtime = self._runtime
        runtime.refuse_in_query("recording a value")
        number = self._next
        self._next += 1
        payload = self._recorded.pop(number, None)
        if payload is None:
            payload = self._made(function, type_hint, number)
        runtime.ask(SideEffectMarker(number, payload))
        return runtime.payload_converter.from_payload(payload, type_hint)

    def _made(self, function: Callable[[], Any], type_hint: Any, number: int) -> Payload:
        runtime = self._runtime
        try:
            if runtime.replaying:
                raise NondeterminismError(
                    f"the workflow code asked for workflow.side_effect number {number}, which the history does not "
                    "have; put the earlier code back, or keep it for open runs behind workflow.patched()"
                )
            runtime.unguarded += 1
            try:
                made = function()
            finally:
                runtime.unguarded -= 1
            return runtime.payload_converter.to_payload(made, type_hint)
        except Exception as error:
            runtime.code_failed(error)  # whatever the code does about it: nothing is recorded, so it is tried again
            raise


def _number_of(attributes: EventAttributes) -> int | None:
    if type(attributes) is not MarkerRecorded or attributes.marker_name != SIDE_EFFECT_MARKER:
        return None
    number = attributes.details.get("side_effect_id")
    try:
        return None if number is None or "value" not in attributes.details else decode_json(number.data, int)
    except msgspec.DecodeError:
        return None  # somebody else's marker
