"""Stepwell as ``stepwell dev --temporal-port``: client and worker are Temporal's Python SDK."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from harness import main
from temporal_peer import TemporalPeer

OWN_PORT = 17401


class StepwellGateway(TemporalPeer):
    name = "stepwell-gateway"
    port = 17402

    def command(self) -> list[str]:
        ports = ["--port", str(OWN_PORT), "--temporal-port", str(self.port)]
        return [self.program("stepwell"), "dev", "--db", f"{self.directory}/stepwell.db", *ports]


if __name__ == "__main__":
    main(StepwellGateway)
