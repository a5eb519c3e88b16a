"""What holds for every test run."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from stepwell.replay import guard_table

from tests.support.aws.fixtures import cell, one_cell, provisioning, shared_cell
from tests.support.named_tests import PRODUCT, NamedTestsRan

__all__ = ["cell", "one_cell", "provisioning", "shared_cell"]

# The guards on workflow code go up once per process and around what is there then. The simulation exchanges some of the
# same functions for a while; guards that went up meanwhile would be gone with what it puts back.
guard_table.put_up()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Iterator[Any]:
    """A process of pytest-xdist can send only text that UTF-8 can hold, and some tests log what it cannot."""
    return _sendable((yield))  # type: ignore[return-value] # hook wrappers are sent the result


def _sendable(data: Any) -> Any:
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {_sendable(name): _sendable(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(map(_sendable, data))
    return data


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(NamedTestsRan(PRODUCT), "named-tests-ran")


@pytest.fixture(scope="session", autouse=True)
def _server_has_one_import_name() -> Iterator[None]:
    """Nothing may load the engine as ``services``: each record would then be two classes (ADR 0001)."""
    yield
    assert [name for name in sys.modules if name.partition(".")[0] == "services"] == []
