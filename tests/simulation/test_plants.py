"""Each plant fits what it replaces. One that fails by itself is found too, and shows nothing."""

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

from tests.simulation import (
    plants,
    plants_chain,
    plants_child,
    plants_crossing,
    plants_local,
    plants_messages,
    plants_operated,
    plants_reset,
)
from tests.simulation.plants import Plant

MODULES: list[ModuleType] = [
    plants,
    plants_chain,
    plants_child,
    plants_crossing,
    plants_local,
    plants_messages,
    plants_operated,
    plants_reset,
]


def all_plants() -> Iterator[Plant]:
    for module in MODULES:
        for name, value in vars(module).items():
            own = inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
            if own and not inspect.signature(value).parameters:
                yield value


def arguments(function: Any) -> tuple[list[None], dict[str, None]]:
    """As many as it takes, by position, and those that go by name only."""
    parameters = inspect.signature(function).parameters.values()
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = {each.name: None for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
    return [None for each in parameters if each.kind in by_position], named


@pytest.mark.parametrize("plant", list(all_plants()), ids=lambda plant: plant.__name__)
def test_a_plant_takes_what_it_is_given(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced: list[tuple[Any, Any]] = []
    patch = mock.patch.object

    def noting(target: Any, attribute: str, *new: Any, **options: Any) -> Any:
        replaced.extend((getattr(target, attribute), each) for each in new)
        return patch(target, attribute, *new, **options)

    monkeypatch.setattr(mock.patch, "object", noting)
    with plant():
        pass
    for old, new in replaced:
        if inspect.isfunction(old) and inspect.isfunction(new):
            positional, named = arguments(old)
            inspect.signature(new).bind(*positional, **named)
