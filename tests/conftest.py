"""What holds for every test run."""

import sys
from collections.abc import Iterator

import pytest
from stepwell.replay import guard_table

from tests.support.aws.fixtures import cell, provisioning
from tests.support.named_tests import NamedTestsRan

__all__ = ["cell", "provisioning"]

# The guards on workflow code go up once per process and around what is there then. The simulation exchanges some of the
# same functions for a while; guards that went up meanwhile would be gone with what it puts back.
guard_table.put_up()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(NamedTestsRan(), "named-tests-ran")


@pytest.fixture(scope="session", autouse=True)
def _server_has_one_import_name() -> Iterator[None]:
    """Nothing may load the engine as ``services``: each record would then be two classes (ADR 0001)."""
    yield
    assert [name for name in sys.modules if name.partition(".")[0] == "services"] == []
