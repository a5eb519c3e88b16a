"""The filters that our pages tell people to type are taken by the engine."""

import re
from pathlib import Path

import pytest

from stepwell_server.visibility.attributes import MANAGED, ValueType
from stepwell_server.visibility.query import parse

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/guide*.md"), *ROOT.glob("examples/**/*.md")])
ATTRIBUTES = {"City": ValueType.KEYWORD, **MANAGED}
QUERIES = [(page.name, found) for page in PAGES for found in re.findall(r'--query "([^"]+)"', page.read_text("utf-8"))]


@pytest.mark.parametrize(("page", "query"), QUERIES)
def test_a_documented_filter_is_taken(page: str, query: str) -> None:
    parse(query, ATTRIBUTES, counts="GROUP BY" in query)


def test_some_are_found() -> None:
    assert len(QUERIES) >= 3
