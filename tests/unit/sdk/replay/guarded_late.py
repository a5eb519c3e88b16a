"""Imported inside of a function only."""

# ruff: noqa: DTZ005 - what a newcomer writes

from datetime import datetime


def today() -> datetime:
    return datetime.now()
