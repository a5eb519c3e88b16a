"""How the example writes what happens: time, order, event. Most lines come from the SDK's own loggers."""

import logging
import sys

from stepwell import activity, workflow

_log = logging.getLogger("stepwell.example")


class _OrderFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        details = getattr(record, "stepwell_activity", None) or getattr(record, "stepwell_workflow", None) or {}
        order_id = details.get("workflow_id") or getattr(record, "order_id", "")
        return f"{self.formatTime(record, '%H:%M:%S')}.{int(record.msecs):03d}  {order_id:<11} {record.getMessage()}"


def show_log() -> None:
    """Log lines of workflows and activities on standard output, each flushed at once."""
    activity.logger.activity_info_on_message = False
    workflow.logger.workflow_info_on_message = False
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_OrderFormatter())
    root = logging.getLogger("stepwell")
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    root.propagate = False


def say(order_id: str, text: str) -> None:
    """A line of the caller's, among those of the log."""
    _log.info(text, extra={"order_id": order_id})
