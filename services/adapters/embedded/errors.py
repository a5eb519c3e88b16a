"""Why a database file is not opened. Every message names the file, what is wrong with it and the way out."""


class DatabaseRefused(Exception):
    """The file was left as it is. ``str(error)`` is a sentence for people."""


class DatabaseInUse(DatabaseRefused):
    """Another process owns the file; ``pid`` is that process, or 0 when it cannot be told."""

    def __init__(self, message: str, pid: int) -> None:
        super().__init__(message)
        self.pid = pid
