"""The local activities of one run: what the worker is to run for it, and the ends that come back (AC-24).

Theory of operation. Code runs until it waits, as in any turn. Then ends are handed to it one by one, each with a marker
and another turn of the code; live as they come from the worker, in replay as the markers lie among the recorded command
events. So both see the same ends in the same order, however long they took. What is still pending when a workflow task
is recorded (since it was kept alive) has no marker there, and stays pending in replay too; a run that becomes live with
pending ones runs them again: at least once.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..api.events import HistoryEvent
from ..converter.signatures import CallableSignature
from .activity_ends import ActivityEnd, end_activity
from .machines.activity import ActivityCancellationType, ActivityHandle
from .machines.local_activity import (
    LocalActivityCall,
    LocalActivityEnd,
    LocalActivityMachine,
    LocalActivityMarker,
    LocalActivityStop,
    recorded_end,
)

if TYPE_CHECKING:
    from .runtime import WorkflowRuntime


class LocalActivities:
    """Of one run."""

    def __init__(self, runtime: "WorkflowRuntime") -> None:
        self._runtime = runtime
        self._pending: dict[str, LocalActivityMachine] = {}
        self._asked: list[LocalActivityMachine] = []
        """In this turn of the code: what is taken back before it ends was never begun."""
        self._to_start: dict[str, LocalActivityMachine] = {}
        self._to_stop: list[LocalActivityStop] = []
        self._recorded: deque[tuple[str, LocalActivityEnd]] = deque()

    # --- workflow code ---

    def start(
        self, call: LocalActivityCall, signature: CallableSignature, cancellation_type: ActivityCancellationType
    ) -> ActivityHandle[Any]:
        """Raises ``ValueError`` for an id that is in use."""
        if call.activity_id in self._pending:
            raise ValueError(
                f"local activity {call.activity_type!r}: activity_id {call.activity_id!r} is that of one which has not "
                "ended; give it another, or none"
            )
        machine = LocalActivityMachine(self._runtime, call, signature, cancellation_type)
        self._pending[call.activity_id] = machine
        self._asked.append(machine)
        return machine.handle

    def code_waits(self) -> None:
        """A turn of the code is over: what it asked for begins now."""
        if not self._asked:
            return
        for machine in self._asked:
            if self._pending.get(machine.activity_id) is machine:
                machine.begun = True
                self._to_start[machine.activity_id] = machine
        self._asked.clear()

    def stop(self, machine: LocalActivityMachine) -> None:
        """Ask it to stop, and wait for its end."""
        self._to_stop.append(LocalActivityStop(machine.activity_id, interrupt=True, awaited=True))

    def give_up(self, machine: LocalActivityMachine, *, abandon: bool) -> None:
        """Code does not wait for it any more. What has run is said in the history, in the order of the code."""
        activity_id = machine.activity_id
        if self._pending.get(activity_id) is not machine:
            return
        del self._pending[activity_id]
        timer = machine.waits_for_timer
        if timer is not None:
            machine.waits_for_timer = None
            timer.cancel()
        elif not machine.begun:
            return
        else:
            self._to_start.pop(activity_id, None)
            self._to_stop.append(LocalActivityStop(activity_id, interrupt=not abandon, awaited=False))
        end = LocalActivityEnd(activity_id, machine.call.attempt, self._runtime.now, canceled=True, by_code=True)
        self._runtime.ask(LocalActivityMarker(machine.call, end))

    # --- ends ---

    def resolve(self, end: LocalActivityEnd) -> bool:
        """Record an end and hand it to who waits for it. False when nobody does any more."""
        runtime = self._runtime
        machine = self._pending.get(end.activity_id)
        if machine is None or not machine.begun:
            return False
        self._to_start.pop(end.activity_id, None)
        runtime.advance(end.time)
        runtime.ask(LocalActivityMarker(machine.call, end))
        if end.backoff is not None:
            machine.begun = False
            machine.call = replace(machine.call, attempt=end.attempt + 1, last_failure=end.failure)
            machine.waits_for_timer = runtime.loop.call_later(end.backoff.total_seconds(), self._again, machine)
            return True
        del self._pending[end.activity_id]
        told = ActivityEnd(
            0, result=end.result, failure=end.failure, canceled=end.canceled, retry_state=end.retry_state
        )
        end_activity(runtime, machine, told, 0)
        return True

    def _again(self, machine: LocalActivityMachine) -> None:
        machine.waits_for_timer = None
        self._asked.append(machine)

    # --- replay ---

    def recorded(self, events: Iterable[HistoryEvent]) -> None:
        """Note the ends among the command events of one workflow task, before its code runs."""
        self._recorded.clear()
        for event in events:
            found = recorded_end(event.attributes)
            if found is not None and not found[1].by_code:
                self._recorded.append(found)

    def resolve_next(self) -> bool:
        """Hand over the next recorded end. False when there is none, or code did not ask for its activity: then the
        comparison of the commands names the difference."""
        if not self._recorded:
            return False
        activity_type, end = self._recorded.popleft()
        machine = self._pending.get(end.activity_id)
        if machine is None or machine.activity_type != activity_type:
            return False
        return self.resolve(end)

    # --- the worker ---

    @property
    def waits(self) -> bool:
        """Whether there is anything to be started or stopped."""
        return bool(self._to_start or self._to_stop)

    def take_calls(self) -> list[LocalActivityCall]:
        """What is to be started."""
        calls = [machine.call for machine in self._to_start.values()]
        self._to_start.clear()
        return calls

    def take_stops(self) -> list[LocalActivityStop]:
        """What code has cancelled. To be done before ``take_calls``, since an id may be used again."""
        stops, self._to_stop = self._to_stop, []
        return stops
