"""Which of the actions that wait are started now, and what makes room for them (LC-27, LC-28). Pure."""

import msgspec
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap

from .runs import change_state, is_exhausted, new_run
from .state import Origin, Run, ScheduleRecord, Stop, Waiting, counted, overlap_of

_replace = msgspec.structs.replace
_STOPS = {Overlap.CANCEL_OTHER: Stop.CANCEL, Overlap.TERMINATE_OTHER: Stop.TERMINATE}


def decide(record: ScheduleRecord, allowance: int, *, counts_late: bool = True) -> int:
    """Goes through what waits, in its order. How many could start but for ``allowance``, the starts that the namespace
    has left (LC-42); ``counts_late``: those have to wait for it."""
    if not record.buffer:
        return 0
    pass_ = _Pass(record, allowance, counts_late)
    for waiting in record.buffer:
        pass_.look_at(waiting)
    pass_.finish()
    return pass_.starved


class _Pass:
    def __init__(self, record: ScheduleRecord, allowance: int, counts_late: bool) -> None:
        self._record = record
        self._counts_late = counts_late
        self._allowance = allowance
        policies = record.schedule.policies
        self._limit = max(1, policies.concurrency_limit)
        self._all_count = policies.concurrency_limit > 0
        self._before = counted(record)
        self._starts: list[tuple[Waiting, bool]] = []
        self._left: list[Waiting] = []
        self._taken = len(self._before)
        """Places of runs that count."""
        self._used = 0
        self.starved = 0

    def look_at(self, waiting: Waiting) -> None:
        record = self._record
        if waiting.origin is Origin.TIME and not self._may_act(waiting):
            return
        policy = overlap_of(record, waiting)
        if policy is Overlap.ALLOW_ALL:
            if self._all_count and self._taken >= self._limit:
                record.overlap_skipped += 1
            else:
                self._start(waiting, counts=self._all_count)
        elif self._taken < self._limit:
            self._start(waiting, counts=True)
        else:
            self._overlaps(waiting, policy)

    def _may_act(self, waiting: Waiting) -> bool:
        record = self._record
        state = record.schedule.state
        if state.paused:
            record.missed_paused += 1
            return False
        starting = sum(start.origin is Origin.TIME for start, _ in self._starts)
        return not state.limited_actions or state.remaining_actions > starting

    def _start(self, waiting: Waiting, *, counts: bool) -> None:
        self._taken += counts
        if self._used >= self._allowance:
            self.starved += 1
            self._left.append(self._delayed(waiting))
        else:
            self._used += 1
            self._starts.append((waiting, counts))

    def _delayed(self, waiting: Waiting) -> Waiting:
        """Counted once, however often it is looked at."""
        if waiting.late or not self._counts_late:
            return waiting
        self._record.rate_delayed += 1
        return _replace(waiting, late=True)

    def _overlaps(self, waiting: Waiting, policy: Overlap) -> None:
        match policy:
            case Overlap.BUFFER_ALL:
                self._left.append(waiting)
            case Overlap.BUFFER_ONE if not any(overlap_of(self._record, one) is policy for one in self._left):
                self._left.append(waiting)
            case Overlap.CANCEL_OTHER | Overlap.TERMINATE_OTHER:
                self._replaces(waiting, _STOPS[policy])
            case _:
                self._record.overlap_skipped += 1

    def _replaces(self, waiting: Waiting, stop: Stop) -> None:
        """Only the newest of those that replace is done."""
        record = self._record
        if not self._before:
            for index in range(len(self._starts) - 1, -1, -1):
                if self._starts[index][1]:
                    self._starts[index] = (waiting, True)
                    record.overlap_skipped += 1
                    return
        others = [one for one in self._left if overlap_of(record, one) not in _STOPS]
        record.overlap_skipped += len(self._left) - len(others)
        self._left = [*others, waiting]
        self._make_room(stop)

    def _make_room(self, stop: Stop) -> None:
        """One is enough, and one that was told to cancel may still be terminated."""
        asked = next((run for run in self._before if run.stop is not None), None)
        if asked is None and self._before:
            self._before[0] = _replace(self._before[0], stop=stop)
        elif asked is not None and asked.stop is not stop and stop is Stop.TERMINATE:
            self._before[self._before.index(asked)] = _replace(asked, stop=stop, stop_asked=False)

    def finish(self) -> None:
        record = self._record
        record.buffer = tuple(self._left)
        by_id = {run.run_id: run for run in self._before}
        fresh: list[Run] = []
        for waiting, counts in self._starts:
            fresh.append(new_run(record, waiting, counts=counts))
            state = record.schedule.state
            if waiting.origin is Origin.TIME and state.limited_actions:
                change_state(record, _replace(state, remaining_actions=state.remaining_actions - 1))
        record.runs = (*[by_id.get(run.run_id, run) for run in record.runs], *fresh)
        if is_exhausted(record):
            record.buffer = tuple([one for one in record.buffer if one.origin is not Origin.TIME])
