"""The contract of BlobStore."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from stepwell_server.adapters.folder_blobs import FolderBlobs
from stepwell_server.adapters.memory_blobs import MemoryBlobs
from stepwell_server.common.blobs import BlobMissing, BlobStore


@pytest.fixture(params=["memory", "folder", "s3"])
def where(request: pytest.FixtureRequest) -> str:
    if request.param == "s3":
        request.getfixturevalue("cell")
    return str(request.param)


@pytest.fixture
async def blobs(request: pytest.FixtureRequest, where: str) -> AsyncIterator[BlobStore]:
    if where == "memory":
        yield MemoryBlobs()
        return
    if where == "folder":
        yield FolderBlobs(request.getfixturevalue("tmp_path") / "blobs")
        return
    from stepwell_server.adapters.aws.client import AwsClients
    from stepwell_server.adapters.aws.s3_blobs import S3Blobs

    clients = AwsClients()
    yield S3Blobs(clients, request.getfixturevalue("cell").bucket)
    await clients.close()


async def test_what_was_put_is_there_and_stays(blobs: BlobStore) -> None:
    large = bytes(range(256)) * 4_096
    await blobs.put("p/a/1", large)
    await blobs.put("p/a/1", b"another")
    assert await blobs.get("p/a/1") == large
    await blobs.put("p/a/empty", b"")
    assert await blobs.get("p/a/empty") == b""


async def test_of_many_writers_of_one_key_one_wins(blobs: BlobStore) -> None:
    await asyncio.gather(*(blobs.put("p/race", str(number).encode()) for number in range(10)))
    assert int(await blobs.get("p/race")) in range(10)


async def test_what_is_not_there_is_missing_by_name(blobs: BlobStore) -> None:
    with pytest.raises(BlobMissing, match="p/nothing"):
        await blobs.get("p/nothing")


async def test_deleted_ones_are_gone_and_may_be_deleted_again(blobs: BlobStore) -> None:
    for name in ("p/d/1", "p/d/2", "p/d/3"):
        await blobs.put(name, b"x")
    await blobs.delete(["p/d/1", "p/d/2", "p/d/none"])
    await blobs.delete(["p/d/1"])
    await blobs.delete([])
    assert (await blobs.list("p/d/")).keys == ("p/d/3",)


async def test_keys_are_listed_in_order_by_pages(blobs: BlobStore) -> None:
    names = [f"p/l/{number:03d}" for number in range(25)]
    for name in reversed(names):
        await blobs.put(name, b"x")
    await blobs.put("p/m", b"x")
    found: list[str] = []
    after = ""
    while True:
        page = await blobs.list("p/l/", after, 10)
        found += page.keys
        after = page.after
        if not after:
            break
    assert found == names


async def test_keys_are_in_the_order_of_their_bytes_across_folders(blobs: BlobStore) -> None:
    names = ["p/o/1/b/c", "p/o/1.a", "p/o/10/a", "p/o/2", "p/ob"]
    for name in names:
        await blobs.put(name, b"x")
    assert (await blobs.list("p/o")).keys == tuple(sorted(names))
    assert (await blobs.list("p/o/", "p/o/1/b")).keys == ("p/o/1/b/c", "p/o/10/a", "p/o/2")
    assert (await blobs.list("p/o/1", limit=2)) == (("p/o/1.a", "p/o/1/b/c"), "p/o/1/b/c")
