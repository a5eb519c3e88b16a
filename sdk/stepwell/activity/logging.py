"""A logger whose records say which activity wrote them."""

import logging
from collections.abc import Mapping, MutableMapping
from typing import Any

from .context import current


class LoggerAdapter(logging.LoggerAdapter[logging.Logger]):
    """Adds the activity's identity to each record: readable in the message, and as ``record.stepwell_activity``."""

    def __init__(self, logger: logging.Logger, extra: Mapping[str, object] | None = None) -> None:
        super().__init__(logger, extra or {})
        self.activity_info_on_message = True

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        context = current.get(None)
        if context is None:
            return msg, kwargs
        details = context.info().logger_details()
        extra = dict(kwargs.get("extra") or {})
        extra["stepwell_activity"] = details
        kwargs["extra"] = extra
        return (f"{msg} ({details})" if self.activity_info_on_message else msg), kwargs


logger = LoggerAdapter(logging.getLogger("stepwell.activity"))
