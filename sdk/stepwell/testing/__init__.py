"""Helpers for tests of workflows and activities."""

from .activity_environment import ActivityEnvironment
from .dev_environment import DevEnvironment

__all__ = ["ActivityEnvironment", "DevEnvironment"]
