"""What authors of activities use: the decorator, and what a running activity can ask and report."""

from .context import (
    cancellation_details,
    client,
    heartbeat,
    in_activity,
    info,
    is_cancelled,
    is_worker_shutdown,
    payload_converter,
    raise_complete_async,
    shield_thread_cancel_exception,
    wait_for_cancelled,
    wait_for_cancelled_sync,
    wait_for_worker_shutdown,
    wait_for_worker_shutdown_sync,
)
from .definition import ActivityDefinition, activity_reference, defn
from .info import ActivityCancellationDetails, Info
from .logging import LoggerAdapter, logger

__all__ = [
    "ActivityCancellationDetails",
    "ActivityDefinition",
    "Info",
    "LoggerAdapter",
    "activity_reference",
    "cancellation_details",
    "client",
    "defn",
    "heartbeat",
    "in_activity",
    "info",
    "is_cancelled",
    "is_worker_shutdown",
    "logger",
    "payload_converter",
    "raise_complete_async",
    "shield_thread_cancel_exception",
    "wait_for_cancelled",
    "wait_for_cancelled_sync",
    "wait_for_worker_shutdown",
    "wait_for_worker_shutdown_sync",
]
