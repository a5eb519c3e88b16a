"""The pace of starts of one workflow id (LC-06) as an installation sets it."""

import math
from datetime import timedelta

from ..common.settings import EngineSettings
from .requests import Pace

_BURST_SECONDS = 2.0
"""As limits of namespaces have it."""


def pace_of(settings: EngineSettings) -> Pace:
    rate = settings.id_starts_per_second
    if not rate:
        return Pace(apart=settings.minimum_between_runs)
    return Pace(
        apart=settings.minimum_between_runs,
        every=timedelta(seconds=1) / rate,
        at_once=max(1, math.ceil(rate * _BURST_SECONDS)),
    )
