"""ObjectStore in the bucket of a cell, beside its blobs."""

from .client import AwsClients

PREFIX = "exports/"


class S3Objects:
    def __init__(self, clients: AwsClients, bucket: str) -> None:
        self._s3 = clients.service("s3")
        self._bucket = bucket

    async def put(self, key: str, data: bytes) -> None:
        await self._s3.call("put_object", Bucket=self._bucket, Key=PREFIX + key, Body=data)

    def location(self, prefix: str) -> str:
        return f"s3://{self._bucket}/{PREFIX}{prefix}"
