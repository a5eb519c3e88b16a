"""Exceptions from outside leave nothing behind when they were taken back: a profiler would hang on it."""

import subprocess
import sys

import pytest

_PROFILED = """
profile = cProfile.Profile()
profile.enable()
len(str(sum(range(10))))
(lambda: None)()
profile.disable()
"""

_INTERRUPT = """
import cProfile
from stepwell.exceptions import CancelledError
from stepwell.worker.thread_interrupt import ThreadInterrupt

interrupt = ThreadInterrupt()
try:
    interrupt.enter()
    interrupt.interrupt()
except CancelledError:
    pass
interrupt.leave()
"""

_WATCHDOG = """
import cProfile, threading, time
from stepwell.worker.watchdog import Watchdog, WorkflowDeadlock

def work():
    watchdog = Watchdog(0.05)
    watchdog.start()
    try:
        with watchdog:
            while watchdog.blocked_stack is None:
                pass
    except WorkflowDeadlock:
        watchdog.leave()
    watchdog.stop()

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("what", [_INTERRUPT, _WATCHDOG], ids=["activity", "workflow"])
def test_calls_are_not_looked_at_for_ever(what: str) -> None:
    subprocess.run([sys.executable, "-c", what + _PROFILED], check=True, timeout=60)
