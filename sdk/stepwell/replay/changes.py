"""Changes of workflow code and the way that one run takes at each (VE-01 to VE-04, WC-12).

The first answer holds for the rest of the run, live and in replay. A query is told what the run was told, and the
default where it has not asked, since a cached run must not answer otherwise than a replayed one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..api.events import HistoryEvent
from ..api.limits import MAX_SEARCH_ATTRIBUTE_BYTES
from .errors import Evicted, NondeterminismError
from .flags import LogicFlag
from .machines.attributes import ChangeVersionsUpsert
from .machines.command import CHANGE_VERSIONS
from .machines.marker import (
    DEFAULT_VERSION,
    PATCHED_VERSION,
    PatchMarker,
    VersionMarker,
    change_of,
)

if TYPE_CHECKING:
    from ..workflow.info import Info
    from .runtime import WorkflowRuntime


@dataclass(frozen=True)
class PatchActivationInput:
    """What a worker's ``patch_activation_callback`` decides on: may this run take the new path of this patch?"""

    workflow_info: "Info"
    patch_id: str


class Changes:
    """Of one run."""

    def __init__(self, runtime: "WorkflowRuntime") -> None:
        self._runtime = runtime
        self._answers: dict[str, int] = {}
        self._recorded: dict[str, int] = {}
        self._searchable: list[str] = []
        self.patch_activation: Callable[[PatchActivationInput], bool] | None = None

    def recorded(self, events: Iterable[HistoryEvent]) -> None:
        """Note the markers among them, before the code that asked for them runs."""
        for event in events:
            change = change_of(event.attributes)
            if change is not None:
                self._recorded[change[0]] = change[1]

    def patched(self, patch_id: str, *, deprecated: bool) -> bool:
        """See ``workflow.patched`` and ``workflow.deprecate_patch``."""
        answer = self._answers.get(patch_id)
        if answer is None:
            answer = self._known_already(patch_id)
        if answer is None:
            free = deprecated or self.patch_activation is None
            answer = PATCHED_VERSION if free else self._activated(patch_id)
        if self._first(patch_id, answer):
            self._runtime.ask(PatchMarker(patch_id, deprecated=deprecated))
            self._make_searchable(patch_id)
        return answer != DEFAULT_VERSION

    def version(self, change_id: str, minimum: int, maximum: int, new_runs: int) -> int:
        """See ``workflow.version``."""
        runtime = self._runtime
        answer = self._answers.get(change_id)
        if answer is None:
            answer = self._known_already(change_id)
        if answer is None:
            answer = new_runs
        if self._first(change_id, answer):
            runtime.ask(VersionMarker(change_id, answer, deprecated=minimum == maximum))
            self._make_searchable(f"{change_id}-{answer}")
        if minimum <= answer <= maximum or runtime.read_only:
            return answer
        way_out = (
            f"keep the path of version {answer} until no open run is on it"
            if answer < minimum
            else f"deploy code that knows version {answer}"
        )
        error = NondeterminismError(
            f"this run is on version {answer} of change {change_id!r}, but the workflow code supports {minimum} to "
            f"{maximum}; {way_out}"
        )
        runtime.code_failed(error)
        raise error

    def _make_searchable(self, version: str) -> None:
        """By all that the run has met, as long as that fits (VE-05)."""
        runtime = self._runtime
        self._searchable.append(version)
        if not runtime.flags.use(LogicFlag.CHANGE_VERSIONS, replaying=runtime.replaying):
            return
        upsert = ChangeVersionsUpsert(self._searchable)
        if len(upsert.value.data) <= MAX_SEARCH_ATTRIBUTE_BYTES:
            runtime.search_attributes[CHANGE_VERSIONS] = upsert.value
            runtime.ask(upsert)

    def _known_already(self, change_id: str) -> int | None:
        """What was recorded; None when it is to be decided now."""
        runtime = self._runtime
        recorded = self._recorded.get(change_id)
        if recorded is not None:
            return recorded
        if runtime.evicting:
            raise Evicted
        return DEFAULT_VERSION if runtime.read_only or runtime.replaying else None

    def _first(self, change_id: str, answer: int) -> bool:
        """Keep the first answer. True when it has a marker to be asked for."""
        runtime = self._runtime
        if runtime.read_only or change_id in self._answers:
            return False
        if runtime.evicting:
            raise Evicted
        self._answers[change_id] = answer
        return answer != DEFAULT_VERSION

    def _activated(self, patch_id: str) -> int:
        runtime = self._runtime
        assert self.patch_activation is not None
        runtime.unguarded += 1  # the worker's own code: it may look at a setting
        try:
            active = self.patch_activation(PatchActivationInput(runtime.info, patch_id))
        finally:
            runtime.unguarded -= 1
        return PATCHED_VERSION if active else DEFAULT_VERSION
