"""Completion callbacks: addresses that are told how a workflow's chain of runs ended (LC-10)."""

from collections.abc import Mapping
from datetime import datetime

from ._struct import Record
from .enums import CallbackForm, CallbackState


class Callback(Record, frozen=True, kw_only=True):
    """``POST`` to ``url`` with ``headers``, at least once, when the chain of runs has ended."""

    url: str
    headers: Mapping[str, str] = {}
    form: CallbackForm = CallbackForm.STEPWELL


class CallbackInfo(Record, frozen=True, kw_only=True):
    """Without the headers, which may be secret."""

    url: str
    state: CallbackState
    attempt: int = 0
    last_attempt_complete_time: datetime | None = None
    last_attempt_failure: str = ""
    next_attempt_schedule_time: datetime | None = None
    form: CallbackForm = CallbackForm.STEPWELL
