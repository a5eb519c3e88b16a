"""Field cases run in process with the workflow cache on and off, and over HTTP; a test may narrow that down."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.cases import EVERYWHERE, Case, Setting, open_case


@pytest.fixture(params=EVERYWHERE, ids=str)
def setting(request: pytest.FixtureRequest) -> Setting:
    """``@pytest.mark.parametrize("setting", IN_PROCESS, ids=str, indirect=True)`` narrows it down."""
    return request.param


@pytest.fixture
async def case(setting: Setting, tmp_path: Path) -> AsyncIterator[Case]:
    async with open_case(setting, tmp_path) as opened:
        yield opened
