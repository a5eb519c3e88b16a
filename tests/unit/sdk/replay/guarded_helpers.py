"""Helpers of a workflow in another module, with names bound early."""

# ruff: noqa: DTZ003, DTZ005 - what a newcomer writes

import functools
from collections.abc import Callable
from datetime import datetime
from random import randint
from time import time

from tests.unit.sdk.replay import guarded_deeper


def _decorated(function: Callable[[], datetime]) -> Callable[[], datetime]:
    @functools.wraps(function)
    def wrapper() -> datetime:
        return function()

    return wrapper


@_decorated
def now() -> datetime:
    return datetime.now()


def dice() -> int:
    return randint(1, 6)


class Stamps:
    @staticmethod
    def utcnow() -> datetime:
        return datetime.utcnow()

    @property
    def seconds(self) -> float:
        return time()


def indirectly() -> datetime:
    return guarded_deeper.present()


def imported_late() -> datetime:
    from .guarded_late import today

    return today()
