"""S3 in memory: objects put if absent, read, listed, deleted."""

import bisect
from collections.abc import Mapping
from typing import Any

from stepwell_server.adapters.aws.faults import fault_of


class EmulatedS3:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def call(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Raises what a client of ours does for one try."""
        answer: dict[str, Any] = getattr(self, f"_{operation}")(**parameters)
        return answer

    def _put_object(self, Bucket: str, Key: str, Body: bytes, IfNoneMatch: str = "") -> dict[str, Any]:
        if IfNoneMatch and Key in self.objects:
            raise fault_of("s3", "put_object", Bucket, "PreconditionFailed", "it is there", 412, None)
        self.objects[Key] = bytes(Body)
        return {}

    def _get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        if Key not in self.objects:
            raise fault_of("s3", "get_object", Bucket, "NoSuchKey", "it is not there", 404, None)
        return {"Body": self.objects[Key]}

    def _delete_objects(self, Bucket: str, Delete: Mapping[str, Any]) -> dict[str, Any]:
        for one in Delete["Objects"]:
            self.objects.pop(one["Key"], None)
        return {}

    def _list_objects_v2(
        self, Bucket: str, Prefix: str = "", StartAfter: str = "", MaxKeys: int = 1_000
    ) -> dict[str, Any]:
        names = sorted(name for name in self.objects if name.startswith(Prefix))
        names = names[bisect.bisect_right(names, StartAfter) :]
        page = names[:MaxKeys]
        return {"Contents": [{"Key": name} for name in page], "IsTruncated": len(page) < len(names)}
