"""Which frames of a stack people are shown: from their own code on, without what of the SDK called it."""

import asyncio
import concurrent
import os
import traceback
from pathlib import Path
from types import TracebackType

_SDK = Path(__file__).parents[1]
# It reaches the code that it runs in tasks and threads through these.
_CALLERS = tuple(f"{path}{os.sep}" for path in (_SDK, Path(asyncio.__file__).parent, Path(concurrent.__file__).parent))


def frames_from_users_code(stack: TracebackType) -> list[traceback.FrameSummary]:
    """Without the callers at its beginning; all of it when nothing else is in it, as then the error is theirs."""
    frames = list(traceback.extract_tb(stack))
    for position, frame in enumerate(frames):
        if not frame.filename.startswith(_CALLERS):
            return frames[position:]
    return frames
