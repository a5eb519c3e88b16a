"""BlobStore on one S3 bucket."""

from collections.abc import Sequence

from ...common.blobs import BlobMissing, BlobsPage
from .client import AwsClients
from .faults import AwsRefused

_MOST_DELETED = 1_000
"""Of one call; the limit of S3."""

_IS_THERE = ("PreconditionFailed", "412")
_IS_MISSING = ("NoSuchKey", "404")


class NoBucket:
    """Of a process that was not told where blobs are. It can do what needs none."""

    async def put(self, key: str, data: bytes) -> None:
        raise _no_bucket("put_object")

    async def get(self, key: str) -> bytes:
        raise _no_bucket("get_object")

    async def delete(self, keys: Sequence[str]) -> None:
        raise _no_bucket("delete_objects")

    async def list(self, prefix: str, after: str = "", limit: int = 1_000) -> BlobsPage:
        raise _no_bucket("list_objects_v2")


def _no_bucket(operation: str) -> AwsRefused:
    return AwsRefused("s3", operation, "", "NoBucket", "no bucket is named; set STEPWELL_BUCKET for this process")


class S3Blobs:
    def __init__(self, clients: AwsClients, bucket: str) -> None:
        self._s3 = clients.service("s3")
        self._bucket = bucket

    async def put(self, key: str, data: bytes) -> None:
        """A lost answer needs no care: the repeat finds it there."""
        try:
            await self._s3.call("put_object", Bucket=self._bucket, Key=key, Body=data, IfNoneMatch="*")
        except AwsRefused as refused:
            if refused.code not in _IS_THERE:
                raise

    async def get(self, key: str) -> bytes:
        try:
            answer = await self._s3.call("get_object", Bucket=self._bucket, Key=key)
        except AwsRefused as refused:
            if refused.code in _IS_MISSING:
                raise BlobMissing(key) from refused
            raise
        data: bytes = answer["Body"]
        return data

    async def delete(self, keys: Sequence[str]) -> None:
        for first in range(0, len(keys), _MOST_DELETED):
            objects = [{"Key": key} for key in keys[first : first + _MOST_DELETED]]
            answer = await self._s3.call(
                "delete_objects", Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True}
            )
            for error in answer.get("Errors", ()):
                what = f"{error.get('Message')} (key {error.get('Key')})"
                raise AwsRefused("s3", "delete_objects", self._bucket, error.get("Code", ""), what)

    async def list(self, prefix: str, after: str = "", limit: int = 1_000) -> BlobsPage:
        answer = await self._s3.call(
            "list_objects_v2", Bucket=self._bucket, Prefix=prefix, StartAfter=after, MaxKeys=limit
        )
        keys = tuple(entry["Key"] for entry in answer.get("Contents", ()))
        return BlobsPage(keys, keys[-1] if answer.get("IsTruncated") and keys else "")
