"""What a failed call to AWS means to us. Pure.

Only a failed condition is an answer. What may go away by itself (throttling, conflicts with transactions, timeouts,
5xx) is StoreUnavailable once the bounded retries are used up; whatever else AWS refuses is reported as the fault that
it is, since no retry helps (WC-36).
"""

from collections.abc import Mapping
from typing import Any

from ...history.ports import StoreRefused, StoreUnavailable

_THROTTLE_CODES = frozenset(
    {
        "EC2ThrottledException",
        "KMS.ThrottlingException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottledException",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_PASSING_CODES = _THROTTLE_CODES | {
    "ConditionalRequestConflict",  # of two puts of one S3 key
    "InternalError",
    "InternalFailure",
    "InternalServerError",
    "InternalServerErrorException",
    "OperationAborted",
    "PriorRequestNotComplete",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceUnavailable",
    "TooManyUpdates",  # of a parameter
    "TransactionConflictException",
    "TransactionInProgressException",
}
_MISSING_CODES = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "NonExistentQueue",
        "NoSuchBucket",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
    }
)
_CLOCK_CODES = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
_CLOCK_SIGNS = ("xpired", "not yet current")
_DENIED_CODES = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "KMS.AccessDeniedException",
        "KMSAccessDeniedException",
        "KmsAccessDenied",
    }
)
_KEY_CODES = frozenset(
    {
        "InaccessibleEncryptionCredentials",
        "InvalidKeyId",  # of Systems Manager
        "KMS.DisabledException",
        "KMS.InvalidStateException",
        "KMS.NotFoundException",
        "KMSInvalidStateException",
        "KmsDisabled",
        "KmsInvalidState",
        "KmsNotFound",
    }
)
_CREDENTIAL_CODES = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


_UNSET_CODES = frozenset(
    {"NoBucket", "NoCredentials", "NoCredentialsError", "NoRegion", "NoStream", "PartialCredentialsError"}
)
"""Of our own and botocore's: what this process was not told."""

_CURABLE_CODES = _MISSING_CODES | _CLOCK_CODES | _DENIED_CODES | _KEY_CODES | _CREDENTIAL_CODES | _UNSET_CODES


class Throttled(StoreUnavailable):
    """There were too many calls, or too many of one key."""


class ConditionFailed(Exception):
    """The write's condition did not hold and nothing was written. ``item`` is what is there, in DynamoDB's own form;
    None when nothing is."""

    def __init__(self, item: Mapping[str, Any] | None) -> None:
        super().__init__("the condition did not hold")
        self.item = item


class AwsRefused(StoreRefused):
    """AWS refused a call and will refuse it again: a missing table or permission (``curable``), a limit, a mistake of
    ours.

    ``code`` is AWS's own. ``str(error)`` says what was called, what it was called on and the way out.
    """

    def __init__(self, service: str, operation: str, resource: str, code: str, message: str) -> None:
        where = f" on {resource}" if resource else ""
        super().__init__(f"{service} refused {operation}{where}: {code}: {message}{_way_out(code, message)}")
        self.service, self.operation, self.resource, self.code = service, operation, resource, code
        self.curable = code in _CURABLE_CODES


def fault_of(
    service: str, operation: str, resource: str, code: str, message: str, status: int, item: Mapping[str, Any] | None
) -> Exception:
    """The exception for an answer that says no: ConditionFailed, StoreUnavailable or AwsRefused."""
    if code == "ConditionalCheckFailedException":
        return ConditionFailed(item or None)
    if code in _PASSING_CODES or status >= 500 or status == 429:
        kind = Throttled if code in _THROTTLE_CODES or status == 429 else StoreUnavailable
        return kind(_sentence(service, operation, resource, f"{code}: {message}"))
    return AwsRefused(service, operation, resource, code, message)


def unavailable(service: str, operation: str, resource: str, reason: str) -> StoreUnavailable:
    return StoreUnavailable(_sentence(service, operation, resource, reason))


def throttled(service: str, operation: str, resource: str, reason: str) -> Throttled:
    return Throttled(_sentence(service, operation, resource, reason))


def _sentence(service: str, operation: str, resource: str, reason: str) -> str:
    where = f" on {resource}" if resource else ""
    return f"{service} could not do {operation}{where}: {reason}; retry later"


def _way_out(code: str, message: str) -> str:
    if code in _CLOCK_CODES or (code == "InvalidSignatureException" and any(sign in message for sign in _CLOCK_SIGNS)):
        return " (the clock of this machine is wrong, or the request was held up for minutes: correct the clock)"
    if code in _DENIED_CODES:
        return " (the role of this process lacks that permission, or that of the KMS key)"
    if code in _KEY_CODES:
        return " (the KMS key is disabled, deleted or not there: enable it again, or name another)"
    if code in _CREDENTIAL_CODES:
        return " (the credentials of this process are wrong or have expired)"
    if code in _MISSING_CODES:
        return (
            " (deploy the stack of this cell, or run `stepwell aws bootstrap`; it may also still be made, or the cell, "
            "the region or the account that this process was given is another)"
        )
    return ""
