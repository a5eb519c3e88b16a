"""Each feature runs in process and over HTTP, and with the workflow cache on and off: README.md says how to add one."""

import os
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.idle import continue_when_idle
from tests.support.cases import Setting
from tests.support.conformance import Feature, opened, server_in_a_thread
from tests.support.expected_history import read_sections

SETTINGS = [Setting(over_http=False, cached=True), Setting(over_http=False, cached=False), Setting(True, cached=True)]
ONE = [Setting(over_http=True, cached=False)]
OF_A_SHARE = [Setting(over_http=True, cached=True, aws=True), *ONE]
"""Run with a share of the tests, since each of what they put together is run with all."""
CONTINUED = [Setting(over_http, True, continued=True) for over_http in (False, True)]

if TYPE_CHECKING:
    from tests.support.aws.cells import Provisioning

_passed = pytest.StashKey[bool]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "feature" in metafunc.fixturenames:
        marked = {marker.name for marker in metafunc.definition.iter_markers()}
        settings = ONE if "slow" in marked else SETTINGS
        settings = [*settings, *(CONTINUED if "continued" in marked else [])]
        if _is_of_today(f"{metafunc.module.__name__}::{metafunc.function.__name__}"):
            also = OF_A_SHARE[1:] if "embedded" in marked else OF_A_SHARE
            settings += [setting for setting in also if setting not in settings]
        metafunc.parametrize("setting", settings, ids=str)


def _is_of_today(test: str) -> bool:
    """A share of the tests runs in the settings of ``OF_A_SHARE`` as well: another one each day, the same in all
    processes of a run. ``STEPWELL_AWS_SHARE=1`` is all of them (make test-aws); ``STEPWELL_AWS_DAY`` is that of another
    day."""
    share = float(os.environ.get("STEPWELL_AWS_SHARE", "0.33"))
    day = os.environ.get("STEPWELL_AWS_DAY") or str(datetime.now(UTC).date())
    drawn = int.from_bytes(blake2b(f"{day} {test}".encode(), digest_size=4).digest())
    return drawn < share * 2**32


def pytest_report_header() -> str:
    day = os.environ.get("STEPWELL_AWS_DAY") or str(datetime.now(UTC).date())
    return f"conformance on emulated AWS, and without a cache over HTTP: the share of STEPWELL_AWS_DAY={day}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report: pytest.TestReport = yield  # type: ignore[assignment] # hook wrappers are sent the result
    if report.when == "call":
        item.stash[_passed] = report.passed
    return report  # type: ignore[return-value]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with server_in_a_thread() as address:
        yield address


@pytest.fixture(scope="session")
def aws_server(provisioning: "Provisioning") -> Iterator[str]:
    from tests.support.aws.containers import served_container

    with server_in_a_thread(lambda: served_container(provisioning.cell())) as address:
        yield address


@pytest.fixture
def address(request: pytest.FixtureRequest, setting: Setting) -> str:
    """Of the server that the setting wants; it is started with the first test that does."""
    return str(request.getfixturevalue("aws_server" if setting.aws else "server"))


@pytest.fixture
async def feature(
    request: pytest.FixtureRequest, setting: Setting, address: str, tmp_path: Path
) -> AsyncIterator[Feature]:
    """A test that passed has its histories checked when it ends."""
    test = request.function.__name__
    file = request.path.parent / "expected.txt"
    expected = read_sections(file) if file.exists() else {}
    async with opened(setting, tmp_path, address) as (address, client):
        with continue_when_idle(setting.continued):
            feature = Feature(setting, address, client, test, expected)
            yield feature
            if request.node.stash.get(_passed, False):
                await feature.check()
