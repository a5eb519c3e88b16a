"""A warning for payloads on their way to the limit (DA-08)."""

import logging

from ..api.limits import MAX_PAYLOAD_BYTES, WARN_PAYLOAD_BYTES

_log = logging.getLogger("stepwell")


def warn_large(what: str, size: int) -> None:
    """From 512 KiB on; at 2 MiB it is refused."""
    if size > WARN_PAYLOAD_BYTES:
        _log.warning(
            "%s has %d bytes; above %d it is refused. Store large data elsewhere and pass where it is.",
            what[:1].upper() + what[1:],
            size,
            MAX_PAYLOAD_BYTES,
        )
