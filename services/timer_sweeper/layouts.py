"""Over how many partitions near rows are spread, and how that number grows while writers and readers go on. Pure.

A larger number is a new layout, noted before anybody writes into it, and written into from some minutes later on: by
then every reader knows of it, so none of its rows waits for a reader. Older layouts are read on until nothing can stand
in them any more. The number never falls: who still believes in the larger one would write where nobody reads.
"""

from collections.abc import Sequence

from .buckets import Layout

MIN_PARTITIONS = Layout().partitions
MAX_PARTITIONS = 256

BEGINS_IN_MS = 600_000
"""From its being noted until a layout is written into. Readers look every minute; clocks differ by five at most."""

FRESH_MS = 50_000
"""Readers that look every minute look each time."""

READ_FOR_MS = 8 * 86_400_000
"""So long a layout is read after the next one began. Its rows are at most a day ahead; a process that began before
there was the next one, and never looks again, may live for days more."""

CLOCKS_MS = 330_000
"""Rows of writers whose clocks are wrong stand no further before the beginning of a layout."""


class Layouts:
    """Those that this process knows, oldest first. One object for its writers and its readers."""

    def __init__(self, known: Sequence[Layout] = (Layout(),)) -> None:
        self.known = tuple(known)

    async def refresh(self) -> None:
        """Learns of what others have noted. Raises StoreUnavailable."""

    def of_writer(self, armed_ms: int) -> Layout:
        """Where a row is put whose writer looked at the clock then."""
        return next((each for each in reversed(self.known) if each.from_ms <= armed_ms), self.known[0])

    def of_readers(self, now_ms: int) -> tuple[Layout, ...]:
        """All that may have rows."""
        later = [each.from_ms for each in self.known[1:]]
        ended = sum(from_ms + READ_FOR_MS <= now_ms for from_ms in later)
        return self.known[ended:]

    def since(self, version: int) -> int:
        """Where a reader of a layout begins that nobody has read; 0: with the table."""
        from_ms = next((each.from_ms for each in self.known if each.version == version), 0)
        return max(from_ms - CLOCKS_MS, 0)


def grown(known: Sequence[Layout], partitions: int, now_ms: int) -> tuple[Layout, ...] | None:
    """With a layout of so many partitions; None where there are as many already."""
    newest = known[-1]
    if partitions <= newest.partitions:
        return None
    return (*known, Layout(newest.version + 1, partitions, max(now_ms + BEGINS_IN_MS, newest.from_ms + 1)))
