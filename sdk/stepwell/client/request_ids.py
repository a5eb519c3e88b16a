"""Ids by which the engine knows a request that comes again."""

import os


def new_request_id() -> str:
    """As random as a UUID, without the object: each start and each message has one."""
    return os.urandom(16).hex()
