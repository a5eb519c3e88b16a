"""Objects: files for people and other programs, under keys. A port; where exports are written to."""

from typing import Protocol


class ObjectStore(Protocol):
    """Keys are ASCII letters, digits and ``._=~-``, in parts that ``/`` separates and that begin with a letter, a digit
    or ``=``; up to 900 bytes. Raises StoreUnavailable."""

    async def put(self, key: str, data: bytes) -> None:
        """Whole or not at all, in place of what is there; durable when the call returns."""
        ...

    def location(self, prefix: str) -> str:
        """For people: where the objects are whose keys begin with ``prefix``."""
        ...
