"""Faults planted into what goes from one workflow to another; found as those of ``plants``."""

from collections.abc import Iterable, Sequence
from typing import Any
from unittest import mock

from stepwell_server.history import builder, crossing, crossing_signals
from stepwell_server.history.answers import Answer
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.crossing_answers import CrossingAnswers
from stepwell_server.history.crossing_entries import AskedId, Delivered, Entry, Pair
from stepwell_server.history.machines import closing
from stepwell_server.history.state import ExecutionState, OwedSignal, PendingExternalSignal


def owed_forgotten_by_the_next_run() -> Any:
    """A run that begins behind, or over, one that owes something does not take it over."""
    pass_on = builder._pass_on

    def forgetful(before: ExecutionState, state: ExecutionState) -> None:
        pass_on(before, state)
        state.owed = ()

    return mock.patch.object(builder, "_pass_on", forgetful)


def owed_forgotten_by_a_close() -> Any:
    """What a run has asked and not heard of is over with it."""
    return mock.patch.object(closing.crossing, "owe", return_value=None)


def repeats_taken_for_new() -> Any:
    """Who delivers for what may be the second time looks in the target's ring of request ids only."""

    async def none(*_: Any) -> set[str]:
        return set()

    return mock.patch.object(crossing_signals, "taken_in_since", none)


def answered_before_delivery() -> Any:
    """What is to be delivered is answered first; a crash in between leaves nobody who would deliver it."""
    first = crossing.Crossing._first

    async def hasty(
        self: crossing.Crossing, pair: Pair, state: ExecutionState, entries: Sequence[Entry], fresh: set[AskedId]
    ) -> Delivered:
        if isinstance(entries[0].record, PendingExternalSignal | OwedSignal) and pair.source != pair.target:
            messages = await self._signals._messages(pair.source, entries)
            await self._answers.record(pair.source, [message.delivery(None) for message in messages])
        return await first(self, pair, state, entries, fresh)

    return mock.patch.object(crossing.Crossing, "_first", hasty)


def answers_lost() -> Any:
    """What was delivered is not told to who asked; only its deadline makes up for it."""
    record = CrossingAnswers.record

    async def forgetful(self: CrossingAnswers, source: ExecutionKey, answers: Iterable[Answer]) -> None:
        await record(self, source, [answer for answer in answers if getattr(answer, "initiated_event_id", 1) % 2])

    return mock.patch.object(CrossingAnswers, "record", forgetful)
