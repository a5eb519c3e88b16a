"""BlobStore in a folder: each blob is a file, under its key."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from ..common.blobs import BlobMissing, BlobsPage
from ..history.ports import StoreUnavailable
from .folder_objects import FolderObjects


def archive_beside(database: Path) -> Path:
    """The folder of a database's archive."""
    return database.with_name(f"{database.name}.archive")


class FolderBlobs:
    """``root`` is made with the first blob."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._objects = FolderObjects(root)

    async def put(self, key: str, data: bytes) -> None:
        """Who else puts it meanwhile puts the same."""
        if not await asyncio.to_thread(os.path.lexists, self._root / key):
            await self._objects.put(key, data)

    async def get(self, key: str) -> bytes:
        try:
            return await asyncio.to_thread((self._root / key).read_bytes)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise BlobMissing(key) from error
        except OSError as error:
            raise _unavailable(self._root / key, error) from error

    async def delete(self, keys: Sequence[str]) -> None:
        try:
            await asyncio.to_thread(_delete, self._root, keys)
        except OSError as error:
            raise _unavailable(self._root, error) from error

    async def list(self, prefix: str, after: str = "", limit: int = 1_000) -> BlobsPage:
        try:
            found = await asyncio.to_thread(_first, self._root, prefix, after, limit + 1)
        except OSError as error:
            raise _unavailable(self._root, error) from error
        keys = tuple(found[:limit])
        return BlobsPage(keys, keys[-1] if len(found) > limit else "")


def _unavailable(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"cannot use {path}: {error.strerror or error}")


def _delete(root: Path, keys: Sequence[str]) -> None:
    folders = set()
    for key in keys:
        (root / key).unlink(missing_ok=True)
        folders.add((root / key).parent)
    for folder in folders:
        while folder != root:
            try:
                folder.rmdir()
            except OSError:
                break  # there is something in it, or it is gone already
            folder = folder.parent


def _first(root: Path, prefix: str, after: str, limit: int) -> list[str]:
    return list(islice(_keys(root, "", prefix, after), limit))


def _keys(folder: Path, base: str, prefix: str, after: str) -> Iterator[str]:
    """Keys below ``base`` in order; folders that can have none of them are not looked into."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        key = base + name
        if name.startswith("."):
            continue  # what is being written
        if not name.endswith("/"):
            if key.startswith(prefix) and key > after:
                yield key
        elif (key.startswith(prefix) or prefix.startswith(key)) and (key > after or after.startswith(key)):
            yield from _keys(folder / name, key, prefix, after)
