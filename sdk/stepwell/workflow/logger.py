"""Logging from workflow code: silent in replay, and it says which workflow speaks (PM-11)."""

import logging
from collections.abc import MutableMapping
from typing import Any

from ..replay.runtime import runtime_or_none
from ..replay.updates import update_at_hand


class LoggerAdapter(logging.LoggerAdapter[logging.Logger]):
    """Adds workflow id, run id and type to each record, in ``extra`` and behind the message; in the handler of an
    update also its id and name.
    """

    workflow_info_on_message = True

    def isEnabledFor(self, level: int) -> bool:
        """False in replay, so that nothing is formatted either."""
        runtime = runtime_or_none()
        if runtime is not None and (runtime.replaying or runtime.evicting):
            return False
        return super().isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        runtime = runtime_or_none()
        if runtime is None:
            return msg, kwargs
        info = runtime.info
        details = {
            "workflow_id": info.workflow_id,
            "run_id": info.run_id,
            "workflow_type": info.workflow_type,
            "task_queue": info.task_queue,
            "namespace": info.namespace,
            "attempt": info.attempt,
        }
        update = update_at_hand.get()
        if update is not None:
            details |= {"update_id": update.id, "update_name": update.name}
        kwargs["extra"] = {**(kwargs.get("extra") or {}), "stepwell_workflow": details}
        return (f"{msg} ({details})" if self.workflow_info_on_message else msg), kwargs


logger = LoggerAdapter(logging.getLogger("stepwell.workflow"), None)
"""Use as any logger."""
