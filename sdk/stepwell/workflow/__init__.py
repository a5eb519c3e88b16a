"""What workflow code calls. Names follow ``temporalio.workflow``."""

from .definition import HandlerUnfinishedPolicy, defn, init, query, run, signal

__all__ = ["HandlerUnfinishedPolicy", "defn", "init", "query", "run", "signal"]
