"""As ``stepwell_http.py``, and without what only Stepwell's own workers do: no activity is handed over with the
completion that schedules it, so no step is fused. What a worker of Temporal does at each step is then done here too."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from harness import main
from stepwell_http import StepwellHttp


class StepwellUnfused(StepwellHttp):
    name = "stepwell-unfused"

    async def start_worker(self) -> None:
        os.environ["BENCH_FUSING"] = "off"
        await super().start_worker()


if __name__ == "__main__":
    main(StepwellUnfused)
