"""What the AWS libraries say when credentials or a region are missing or of no use, as refusals that name the way out.

Only what may pass by itself is ``Unavailable``: with the rest a worker would ask for ever and nobody would know.
"""

from ..api.errors import ApiError, InvalidArgument, PermissionDenied, Unauthenticated, Unavailable

NOT_INSTALLED = "the AWS packages are not installed; install stepwell[aws]"

NO_CREDENTIALS = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role"

_MISSING = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "NoAuthTokenError",
    "ProfileNotFound",
    "ConfigParseError",
    "SSOTokenLoadError",
    "UnauthorizedSSOTokenError",
    "TokenRetrievalError",
    "InvalidConfigError",
    "UnknownCredentialError",
)
_NO_REGION = ("NoRegionError", "InvalidRegionError")
_UNKNOWN_KEY = (
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "SignatureDoesNotMatch",
    "InvalidSignatureException",
    "IncompleteSignature",
    "MissingAuthenticationToken",
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "InvalidSecurity",
)
_DENIED = ("AccessDenied", "AccessDeniedException", "OptInRequired", "AuthFailure")


def of_library(error: Exception, doing: str) -> ApiError:
    """For what the library raised instead of an answer. ``doing``: such as ``requests cannot be signed``."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds.intersection(_MISSING):
        return Unauthenticated(f"{doing}: {error}; {NO_CREDENTIALS}")
    if kinds.intersection(_NO_REGION):
        return InvalidArgument(f"{doing}: {error}; set AWS_REGION to the region of the control plane")
    return Unavailable(f"{doing}: {str(error) or type(error).__name__}")


def of_queue(code: str, message: str, queue: str) -> ApiError:
    """For a refusal of SQS."""
    said = f"({code}: {message})"
    if code.lower().startswith("kms"):
        return PermissionDenied(
            f"the key of the task queue {queue} is refused {said}; give the worker's role kms:Decrypt on it, and look "
            "whether it is enabled"
        )
    if code in _UNKNOWN_KEY:
        return Unauthenticated(
            f"the task queue {queue} does not accept these credentials {said}; look whether they are of its account, "
            "are not expired, and whether this machine's clock is right"
        )
    if code in _DENIED:
        return PermissionDenied(
            f"the task queue {queue} refuses these credentials {said}; give the worker's role "
            "sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on it"
        )
    return Unavailable(f"the task queue {queue} cannot be received from {said}")
