"""What activities in other processes need from their worker: a way back for heartbeats, and flags they can read."""

import logging
import threading
from collections.abc import Callable
from queue import Empty
from typing import TYPE_CHECKING, Any

from ..api.payloads import Payloads

if TYPE_CHECKING:
    from multiprocessing.managers import SyncManager

_POLL_SECONDS = 0.5
_log = logging.getLogger("stepwell.worker")


class SharedStateManager:
    """A manager process with one queue of heartbeats, read by one thread of the worker's process (AC-01, WK-24)."""

    def __init__(self, manager: "SyncManager | None" = None) -> None:
        """``manager`` is shared with its owner, who shuts it down; without one, a process is started for it."""
        self._owned = manager is None
        self._manager = manager or _new_manager()
        self.heartbeats: Any = self._manager.Queue()
        self._receivers: dict[str, Callable[[Payloads], None]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="stepwell-heartbeats", daemon=True)
        self._thread.start()

    @classmethod
    def create_from_multiprocessing(cls, manager: "SyncManager") -> "SharedStateManager":
        """Use a manager that the program already has."""
        return cls(manager)

    def new_event(self) -> Any:
        """A flag that this process sets and another one reads."""
        return self._manager.Event()

    def receive(self, key: str, receiver: Callable[[Payloads], None]) -> None:
        """Call ``receiver``, on the reading thread, for each heartbeat sent under ``key``."""
        self._receivers[key] = receiver

    def forget(self, key: str) -> None:
        self._receivers.pop(key, None)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=2 * _POLL_SECONDS)
        if self._owned:
            self._manager.shutdown()

    def _read(self) -> None:
        while not self._stop.is_set():
            try:
                key, details = self.heartbeats.get(timeout=_POLL_SECONDS)
            except Empty:
                continue
            except (EOFError, OSError):
                if not self._stop.is_set():
                    _log.error("The manager process for heartbeats is gone; progress of process activities is lost")
                return
            receiver = self._receivers.get(key)
            if receiver is not None:
                receiver(details)


def _new_manager() -> "SyncManager":
    import multiprocessing  # few workers have activities in processes

    return multiprocessing.get_context("spawn").Manager()
