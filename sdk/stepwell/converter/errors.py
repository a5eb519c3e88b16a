"""Errors of encoding and decoding; each message names the place in the value."""

from ..exceptions import StepwellError


class PayloadError(StepwellError, TypeError):
    """A value cannot be encoded without loss, or a payload does not fit the expected type."""


class ArgumentError(PayloadError):
    """A call has the wrong number of arguments, or one of them does not fit its annotation."""
