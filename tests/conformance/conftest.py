"""Each feature runs in process and over HTTP, with the workflow cache on and off: README.md says how to add one."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conformance.idle import continue_when_idle
from tests.support.cases import Setting
from tests.support.conformance import Feature, opened, server_in_a_thread
from tests.support.expected_history import read_sections

SETTINGS = [Setting(over_http, cached) for over_http in (False, True) for cached in (True, False)]
ONE = [Setting(over_http=True, cached=False)]
CONTINUED = [Setting(over_http, True, continued=True) for over_http in (False, True)]

_passed = pytest.StashKey[bool]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "feature" in metafunc.fixturenames:
        marked = {marker.name for marker in metafunc.definition.iter_markers()}
        settings = ONE if "slow" in marked else SETTINGS
        metafunc.parametrize("setting", [*settings, *(CONTINUED if "continued" in marked else [])], ids=str)


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


@pytest.fixture
async def feature(
    request: pytest.FixtureRequest, setting: Setting, server: str, tmp_path: Path
) -> AsyncIterator[Feature]:
    """A test that passed has its histories checked when it ends."""
    test = request.function.__name__
    file = request.path.parent / "expected.txt"
    expected = read_sections(file) if file.exists() else {}
    async with opened(setting, tmp_path, server) as (address, client):
        with continue_when_idle(setting.continued):
            feature = Feature(setting, address, client, test, expected)
            yield feature
            if request.node.stash.get(_passed, False):
                await feature.check()
