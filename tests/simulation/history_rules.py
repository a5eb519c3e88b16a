"""Rules 1 to 8 of the history protocol, checked event by event: a history is known to be lawful at every commit.

They are the server's own (``history.lawful``), by which it takes in histories from outside; here they check what it
writes, and with it what the SDK writes into markers, which the server cannot read where they are encrypted.
"""

from stepwell.api.events import HistoryEvent

from stepwell_server.history.lawful import HistoryRules as ServerRules
from tests.simulation.local_rules import LocalRules
from tests.simulation.violation import Violation as Violation


class HistoryRules(ServerRules):
    """Feed it one run's events in order; raises :class:`Violation` at the first unlawful one."""

    def __init__(self) -> None:
        super().__init__()
        self._locals = LocalRules()

    def add(self, event: HistoryEvent) -> None:
        super().add(event)
        self._locals.add(event)
