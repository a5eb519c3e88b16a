"""Stepwell: long-lived business processes in ordinary Python that resume where they stopped.

The names below are loaded when they are first used: whoever needs the wire records alone loads nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import activity, workflow
    from .client import Client
    from .common import RetryPolicy
    from .identity import __version__
    from .worker import Worker

__all__ = ["Client", "RetryPolicy", "Worker", "__version__", "activity", "workflow"]

_HOMES = {
    "Client": "client",
    "RetryPolicy": "common",
    "Worker": "worker",
    "__version__": "identity",
    "activity": "",
    "workflow": "",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'stepwell' has no attribute {name!r}")
    found = import_module(f".{home or name}", __name__)
    value: object = getattr(found, name) if home else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
