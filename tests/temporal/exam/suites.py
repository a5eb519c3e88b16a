"""The suites of the field that are run as they are: where they are from, what they need, how each is called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Suite:
    """``files`` are patterns below the checkout, ``without`` maps patterns to why they are left out. ``pytest``: the
    options of a run with ``{address}`` in them; empty for a suite that is not of pytest."""

    name: str
    repository: str
    revision: str
    library: str
    requirements: Sequence[str]
    files: Sequence[str]
    pytest: Sequence[str] = ()
    without: Mapping[str, str] = field(default_factory=dict)
    test_limit: float = 60.0


_PYTEST = (
    "pytest==9.0.*",
    "pytest-asyncio==0.21.2",
    "pytest-timeout~=2.4",
    "pytest-rerunfailures>=16.1",
    "psutil>=5.9.3",
)
_VENDOR = "needs a vendor's packages or keys"
_TIME_SKIPPING = "starts Temporal's time-skipping test server, which it downloads, whatever server it is given"

SDK_PYTHON = Suite(
    name="sdk-python",
    repository="temporalio/sdk-python",
    revision="84b519e0ff407b049da88ac7d1711f110494ff4d",  # tag 1.31.0, the newest that could be had with its tests
    library="temporalio 1.31.0",
    requirements=(
        "temporalio[grpc,opentelemetry,pydantic]==1.31.0",
        *_PYTEST,
        "googleapis-common-protos>=1.75.0",
        "cryptography>=46",
        "httpx>=0.28.1",
        "toml>=0.10.2",
        "opentelemetry-exporter-otlp-proto-grpc>=1.11.1",
        "opentelemetry-semantic-conventions>=0.40b0",
    ),
    files=("tests/**/test_*.py",),
    pytest=("-E", "{address}", "-o", "timeout_func_only=true"),
    without={
        "tests/contrib/aws/**": _VENDOR,
        "tests/contrib/deepagents/**": _VENDOR,
        "tests/contrib/google_adk_agents/**": _VENDOR,
        "tests/contrib/google_genai/**": _VENDOR,
        "tests/contrib/langgraph/**": _VENDOR,
        "tests/contrib/langsmith/**": _VENDOR,
        "tests/contrib/openai_agents/**": _VENDOR,
        "tests/contrib/strands/**": _VENDOR,
        "tests/api/**": "tests of the generated stubs, without a server",
        "tests/bridge/**": "tests of the library's own parts, without a server",
        "tests/test_*type_errors.py": "of a type checker, without a server",
        "tests/nexus/test_nexus_type_errors.py": "of a type checker, without a server",
        "tests/test_cloud.py": "needs Temporal Cloud",
        "tests/test_prepare_release.py": "of the library's release scripts",
    },
)

SAMPLES_PYTHON = Suite(
    name="samples-python",
    repository="temporalio/samples-python",
    revision="e652a4d0e85042a34ec8fc46a4a03e51681fd7f9",
    library="temporalio 1.31.0",
    requirements=(
        *SDK_PYTHON.requirements,
        "trio>=0.28,<0.29",
        "trio-asyncio>=0.15,<0.16",
        "sentry-sdk>=2.13",
        "fakeredis>=2,<3",
        "redis>=5,<8",
        "frozenlist>=1.4,<2",
        "pyyaml>=6",
        "dacite>=1.8.1,<2",
        "aiohttp>=3.13.3,<4",
    ),
    files=("tests/**/*_test.py", "tests/**/test_*.py"),
    pytest=("--workflow-environment", "{address}", "-o", "log_cli=false"),
    without={
        "tests/deepagents_plugin/**": _VENDOR,
        "tests/google_adk_agents/**": _VENDOR,
        "tests/google_genai/**": _VENDOR,
        "tests/langfuse_tracing/**": _VENDOR,
        "tests/langgraph_plugin/**": _VENDOR,
        "tests/langsmith_tracing/**": _VENDOR,
        "tests/litellm_activity/**": _VENDOR,
        "tests/openai_agents/**": _VENDOR,
        "tests/strands_plugin/**": _VENDOR,
        "tests/hello/hello_query_test.py": _TIME_SKIPPING,
        "tests/sleep_for_days/**": _TIME_SKIPPING,
        "tests/updatable_timer/**": _TIME_SKIPPING,
    },
)

FEATURES = Suite(
    name="features",
    repository="temporalio/features",
    revision="98d4694b7bb831a38f98a549f7281a856b924cf1",
    library="temporalio 1.31.0",
    requirements=SDK_PYTHON.requirements,
    files=("features/**/feature.py",),
    without={
        "features/client/http_proxy/**": "needs a proxy that the harness' Go program starts",
        "features/worker_shutdown/poll_complete_on_shutdown/**": "runs only against servers that the harness starts",
    },
    test_limit=120.0,
)

SUITES = {suite.name: suite for suite in (SDK_PYTHON, SAMPLES_PYTHON, FEATURES)}


def files_of(suite: Suite, checkout: Path, only: Sequence[str] = ()) -> list[str]:
    """The suite's files below the checkout; with ``only``, those whose path contains one of these texts.

    Raises ``ValueError`` when there are none: the path is then not a checkout of this suite.
    """
    found = {path for pattern in suite.files for path in checkout.glob(pattern)}
    left_out = {path for pattern in suite.without for path in _below(checkout, pattern)}
    names = sorted(str(path.relative_to(checkout)) for path in found - left_out)
    if not names:
        raise ValueError(f"{checkout} has no {' or '.join(suite.files)}: is it a checkout of {suite.repository}?")
    return [name for name in names if not only or any(text in name for text in only)]


def _below(checkout: Path, pattern: str) -> list[Path]:
    folder = pattern.removesuffix("/**")
    if folder == pattern:
        return list(checkout.glob(pattern))
    return [path for path in (checkout / folder).rglob("*") if path.is_file()]
