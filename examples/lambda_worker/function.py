"""What Lambda is told: ``lambda_worker.function.handler``. The address is that of the stack (output ``Url``)."""

import os

from .worker import trial_worker

handler = trial_worker(os.environ["STEPWELL_ADDRESS"])
