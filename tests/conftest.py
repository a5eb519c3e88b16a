"""What holds for every test run."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _server_has_one_import_name() -> Iterator[None]:
    """Nothing may load the engine as ``services``: each record would then be two classes (ADR 0001)."""
    yield
    assert [name for name in sys.modules if name.partition(".")[0] == "services"] == []
