"""ObjectStore in a folder: each object is a file, under its key."""

import asyncio
import itertools
import os
import re
from pathlib import Path

from ..history.ports import StoreUnavailable

_KEY = re.compile(r"[A-Za-z0-9=][A-Za-z0-9._=~-]*(/[A-Za-z0-9=][A-Za-z0-9._=~-]*)*")


class FolderObjects:
    """``root`` is made with the first object."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = itertools.count(1)

    async def put(self, key: str, data: bytes) -> None:
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no key of an object")
        try:
            await asyncio.to_thread(self._write, self._root / key, data, next(self._numbers))
        except OSError as error:
            raise StoreUnavailable(f"cannot write {self._root / key}: {error.strerror or error}") from error

    def location(self, prefix: str) -> str:
        return str(self._root / prefix)

    def _write(self, path: Path, data: bytes, number: int) -> None:
        """By another name first, so that who reads it finds all of it or what was there before."""
        folder = path.parent
        folder.mkdir(parents=True, exist_ok=True)
        root = self._root.resolve()
        if not folder.resolve().is_relative_to(root):
            raise OSError(f"a link leads out of {root}")
        unfinished = folder / f".{os.getpid()}-{number}.unfinished"
        try:
            with unfinished.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    """The name, too, is on the disk then; Windows opens no folders."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        if os.name == "nt":
            return
        raise
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
