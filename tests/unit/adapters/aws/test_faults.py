import pytest

from stepwell_server.adapters.aws.faults import AwsRefused, ConditionFailed, fault_of
from stepwell_server.history.ports import StoreUnavailable


def fault(code: str, message: str = "no", status: int = 400) -> Exception:
    return fault_of("dynamodb", "put_item", "stepwell-main-exec", code, message, status, None)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ProvisionedThroughputExceededException", 400),
        ("ThrottlingException", 400),
        ("TransactionConflictException", 400),
        ("RequestLimitExceeded", 400),
        ("SlowDown", 503),
        ("InternalServerError", 500),
        ("SomethingNew", 502),
        ("SomethingNew", 429),
    ],
)
def test_what_may_pass_is_unavailable(code: str, status: int) -> None:
    error = fault(code, status=status)
    assert isinstance(error, StoreUnavailable)
    assert code in str(error) and "stepwell-main-exec" in str(error) and "retry" in str(error)


@pytest.mark.parametrize(
    ("code", "message", "way_out"),
    [
        ("ResourceNotFoundException", "Requested resource not found", "stepwell aws bootstrap"),
        ("AccessDeniedException", "not authorized", "lacks that permission"),
        ("KMSAccessDeniedException", "no", "KMS key"),
        ("ExpiredTokenException", "The security token is expired", "credentials"),
        ("InvalidSignatureException", "Signature expired: 20261130T1 is now earlier than", "clock"),
        ("RequestTimeTooSkewed", "too far", "clock"),
        ("ValidationException", "Item size has exceeded the maximum allowed size", "Item size"),
    ],
)
def test_any_other_no_is_the_fault_that_it_is(code: str, message: str, way_out: str) -> None:
    error = fault(code, message)
    assert isinstance(error, AwsRefused) and error.code == code
    assert way_out in str(error) and "put_item on stepwell-main-exec" in str(error)


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "KMS.DisabledException", "NoSuchBucket", "ExpiredToken", "RequestTimeTooSkewed"]
)
def test_what_somebody_can_repair_is_told_apart(code: str) -> None:
    repaired, wrong = fault(code), fault("ValidationException")
    assert isinstance(repaired, AwsRefused) and repaired.curable
    assert isinstance(wrong, AwsRefused) and not wrong.curable


def test_only_a_failed_condition_is_an_answer() -> None:
    item = {"n": {"S": "nonce"}}
    error = fault_of("dynamodb", "put_item", "t", "ConditionalCheckFailedException", "no", 400, item)
    assert isinstance(error, ConditionFailed) and error.item == item
    absent = fault("ConditionalCheckFailedException")
    assert isinstance(absent, ConditionFailed) and absent.item is None
