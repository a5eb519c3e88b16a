"""Names that the workflow half and the worker half of the SDK agree on."""

SESSION_HOLD = "__stepwell_session_hold"
SESSION_END = "__stepwell_session_end"
SESSION_SIGNAL = "__stepwell_session"


def session_queue(task_queue: str) -> str:
    """Where sessions of that task queue wait for a worker that has room."""
    return f"{task_queue}:sessions"


def worker_queue(task_queue: str, worker_key: str) -> str:
    """Of the activities in the sessions of one worker."""
    return f"{task_queue}:session:{worker_key}"
