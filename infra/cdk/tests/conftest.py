"""Templates of the stack: one as it comes, one with everything switched on."""

import pytest
from aws_cdk.assertions import Template

from stacks import EVERYTHING, synthesized
from tests.support.named_tests import INFRASTRUCTURE, NamedTestsRan


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(NamedTestsRan(INFRASTRUCTURE), "named-tests-ran")


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return synthesized(tmp_path_factory.mktemp("plain"), {})


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return synthesized(tmp_path_factory.mktemp("full"), EVERYTHING)
