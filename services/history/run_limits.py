"""What one run may have pending, and how large what its code says may be: the engine's own limits, or lower ones of its
namespace (MT-04)."""

from functools import lru_cache

import msgspec
from stepwell.api import limits
from stepwell.api.namespaces import NamespaceLimits


class RunLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    payload_bytes: int = limits.MAX_PAYLOAD_BYTES
    """Of one command."""
    activities: int = limits.MAX_PENDING_ACTIVITIES
    children: int = limits.MAX_PENDING_CHILDREN
    signals: int = limits.MAX_PENDING_EXTERNAL_SIGNALS
    cancels: int = limits.MAX_PENDING_EXTERNAL_CANCELS


RUN_LIMITS = RunLimits()
"""Of a namespace that says nothing."""


@lru_cache(maxsize=256)
def run_limits(of: NamespaceLimits) -> RunLimits:
    own = (
        ("payload_bytes", of.max_payload_bytes),
        ("activities", of.max_pending_activities),
        ("children", of.max_pending_children),
        ("signals", of.max_pending_signals),
        ("cancels", of.max_pending_cancels),
    )
    changed = {name: min(limit, getattr(RUN_LIMITS, name)) for name, limit in own if limit is not None}
    return RunLimits(**changed) if changed else RUN_LIMITS


def way_out(limit: int, engines: int) -> str:
    """Ends what is said of a limit that is met."""
    return ", or have the limit of the namespace raised" if limit < engines else ""
