"""The loop around a long poll: free slot first, then ask, and keep asking through outages."""

from collections.abc import Awaitable, Callable

from ..api.errors import DeadlineExceeded, ResourceExhausted, Unavailable, retry_after
from .engine_calls import Backoff, EngineCalls
from .slots import Slots


async def poll_until_stopped(
    calls: EngineCalls,
    kind: str,
    slots: Slots,
    poll_once: Callable[[], Awaitable[None]],
    stopped: Callable[[], bool],
) -> None:
    """``poll_once`` owns one slot when it is called. Raises a refusal that asking again cannot cure: it ends the
    worker."""
    backoff = Backoff()
    while not stopped():
        if not await slots.wait_for_one():
            return
        try:
            await poll_once()
        except (Unavailable, ResourceExhausted, DeadlineExceeded) as error:
            calls.failed(f"{kind} poll", error)
            await backoff.pause(retry_after(error))
        else:
            calls.served()
            backoff.reset()
