"""Runs are evicted behind every test, as a worker evicts them."""

from collections.abc import Iterator

import pytest

from tests.support.histories import evict_all


@pytest.fixture(autouse=True)
def _evicted() -> Iterator[None]:
    yield
    evict_all()
