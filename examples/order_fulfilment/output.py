"""How the example writes its log: time, order, what happened. The records come from the SDK's own loggers."""

import logging
import sys

from stepwell import activity, workflow


class _OrderFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        details = getattr(record, "stepwell_activity", None) or getattr(record, "stepwell_workflow", None) or {}
        stamp = f"{self.formatTime(record, '%H:%M:%S')}.{int(record.msecs):03d}"
        line = f"{stamp}  {details.get('workflow_id', ''):<11}{record.getMessage()}"
        if record.levelno >= logging.WARNING:
            line = f"{line}{_reason(record)}"
        return line


def _reason(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return f": {error}" if error else ""


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
