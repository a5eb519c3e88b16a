"""The names that users of ``stepwell`` write are pinned; a change of them is made on purpose (CONTRIBUTING.md)."""

import importlib

import pytest

from tests.support.public_names import MODULES, PINNED, collect


def test_public_names_are_the_pinned_ones() -> None:
    pinned = PINNED.read_text(encoding="utf-8").splitlines()
    found = collect()

    gone = sorted(set(pinned) - set(found))
    new = sorted(set(found) - set(pinned))
    assert (gone, new) == ([], []), (
        "public names of stepwell changed; if that is meant, pin them anew: "
        "python3 scripts/run.py -m tests.support.public_names"
    )


@pytest.mark.parametrize("name", MODULES)
def test_all_is_sorted_and_resolves(name: str) -> None:
    module = importlib.import_module(name)

    assert [exported for exported in module.__all__ if not hasattr(module, exported)] == []
    assert len(set(module.__all__)) == len(module.__all__)
