"""What a caller is told about whatever a handler raised."""

import logging
import math

from stepwell.api import errors
from stepwell.api.errors import ApiError, Internal, Unavailable

from ..history.codec import UnreadableRecord
from ..history.ports import StoreRefused, StoreUnavailable
from ..matching.ports import QueueError

logger = logging.getLogger(__name__)

OK = "OK"
"""The code of an answer that is no refusal, for counts."""


def retry_after(error: ApiError) -> int | None:
    """Whole seconds for the header of that name, where the refusal says when to call again."""
    said = errors.retry_after(error)
    return math.ceil(said) if said else None


def api_error(error: Exception, operation: str) -> ApiError:
    """The refusal that a caller gets for whatever a handler raised; what is our fault is logged with its trace."""
    match error:
        case ApiError():
            return error
        case StoreUnavailable():
            return Unavailable(f"storage cannot be used now: {error}; retry")
        case UnreadableRecord():
            logger.error("%s cannot read what is stored: %s", operation, error)
            return Internal(f"{operation} cannot read what is stored: {error}")
        case StoreRefused() if error.curable:
            logger.error("%s: %s", operation, error)
            return Unavailable(f"{error}; nothing acknowledged is lost, call again when that is repaired")
        case QueueError():
            logger.error("%s: %s", operation, error)
            return Unavailable(f"task queues cannot be used now: {error}; retry")
        case _:
            logger.error("%s failed", operation, exc_info=error)
            return Internal(f"{operation} failed inside the engine ({type(error).__name__}); its log has the details")
