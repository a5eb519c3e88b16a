"""Reached through another helper."""

# ruff: noqa: DTZ005 - what a newcomer writes

import datetime as dt


def present() -> dt.datetime:
    return dt.datetime.now()
