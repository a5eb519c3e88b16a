"""Warns of runs whose state is large (DA-08), once for each run as far as this process remembers."""

import logging

from stepwell.api import limits

from ..history.commit import Commit

_log = logging.getLogger(__name__)
_MOST_REMEMBERED = 1_000


class LargeStates:
    def __init__(self) -> None:
        self._warned: set[str] = set()

    def look_at(self, commit: Commit, size: int) -> None:
        """``size``: bytes of the state, as it is before compression."""
        if size <= limits.WARN_STATE_BYTES or commit.run_id in self._warned:
            return
        if len(self._warned) >= _MOST_REMEMBERED:
            self._warned.clear()
        self._warned.add(commit.run_id)
        _log.warning(
            "Workflow %s run %s waits for and remembers %d bytes, which each of its commits writes; at %d it is "
            "terminated. Let it wait for fewer things at once, and keep large data elsewhere.",
            commit.workflow_id,
            commit.run_id,
            size,
            limits.MAX_STATE_BYTES,
        )
