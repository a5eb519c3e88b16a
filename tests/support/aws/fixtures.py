"""Fixtures for all tests on emulated AWS; ``tests/conftest.py`` makes them known. boto is imported, and the emulator
started, with the first test that wants it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.aws.cells import Cell, Provisioning


@pytest.fixture(scope="session")
def provisioning() -> Iterator[Provisioning]:
    from tests.support.aws.cells import Provisioning
    from tests.support.aws.moto_server import moto_server

    with moto_server() as environment:
        provisioning = Provisioning(environment)
        yield provisioning
        provisioning.close()


@pytest.fixture
def cell(provisioning: Provisioning, monkeypatch: pytest.MonkeyPatch) -> Cell:
    """An installation of the test's own; clients made while it runs find the emulator by the environment."""
    for name, value in provisioning.environment.items():
        monkeypatch.setenv(name, value)
    return provisioning.cell()


@pytest.fixture(scope="session")
def one_cell(provisioning: Provisioning) -> Cell:
    return provisioning.cell()


@pytest.fixture
def shared_cell(one_cell: Cell, monkeypatch: pytest.MonkeyPatch) -> Cell:
    """As ``cell``, for tests that keep apart by names of their own; it costs nothing."""
    for name, value in one_cell.environment.items():
        monkeypatch.setenv(name, value)
    return one_cell
