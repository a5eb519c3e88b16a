"""The embedded store: everything in one SQLite file, for one process."""

from .backend import embedded_backend, open_for_inspection
from .errors import DatabaseInUse, DatabaseRefused

__all__ = ["DatabaseInUse", "DatabaseRefused", "embedded_backend", "open_for_inspection"]
