"""What an installation's functions and containers are told by their environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from .names import Names


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """Credentials, region and, for an emulator, ``AWS_ENDPOINT_URL`` are found by boto's own rules."""

    cell: str = "main"
    bucket: str = ""
    """Of payloads and archives."""

    token_key_secret: str = ""
    """The secret in Secrets Manager whose text signs task tokens; empty: bootstrap keeps one in the control table."""

    kms_key: str = ""
    """The account's own key for the task queues that are made on first use; empty: SQS encrypts with its own."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "AwsSettings":
        """Raises NameRefused for a cell that is no name."""
        given = os.environ if environment is None else environment
        settings = cls(
            cell=given.get("STEPWELL_CELL", "main"),
            bucket=given.get("STEPWELL_BUCKET", ""),
            token_key_secret=given.get("STEPWELL_TOKEN_KEY_PARAMETER", ""),
            kms_key=given.get("STEPWELL_KMS_KEY", ""),
        )
        _ = settings.names
        return settings

    @property
    def names(self) -> Names:
        return Names(self.cell)
