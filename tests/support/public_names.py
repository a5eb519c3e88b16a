"""What users of ``stepwell`` can name: every public name with its parameters. Run as a program it pins them anew.

python3 scripts/run.py -m tests.support.public_names
"""

import enum
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

PINNED = Path(__file__).resolve().parents[1] / "unit" / "sdk" / "public_names.txt"
MODULES = (
    "stepwell.activity",
    "stepwell.client",
    "stepwell.common",
    "stepwell.converter",
    "stepwell.envconfig",
    "stepwell.exceptions",
    "stepwell.testing",
    "stepwell.worker",
    "stepwell.workflow",
)


def collect() -> list[str]:
    """One line for each name, sorted."""
    lines: set[str] = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for exported in module.__all__:
            lines.update(_describe(f"{name}.{exported}", getattr(module, exported)))
    return sorted(lines)


def _describe(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, type):
        yield path + ("" if issubclass(value, enum.Enum) else _parameters(value))
        yield from _members(path, value)
    elif isinstance(value, ModuleType) or not callable(value):
        yield path
        if type(value).__module__.startswith("stepwell"):
            yield from _members(path, type(value))
    else:
        yield path + _parameters(value)


def _members(path: str, owner: type) -> Iterator[str]:
    """Public members that our own classes define; those of the standard library's bases are not ours to pin."""
    ours = [base for base in owner.__mro__ if base.__module__.partition(".")[0] == "stepwell"]
    for base in ours:
        fields = {name for name in inspect.get_annotations(base) if not name.startswith("_")}
        for name in sorted(fields | {name for name in vars(base) if not name.startswith("_")}):
            value = inspect.getattr_static(owner, name, None)
            if isinstance(value, staticmethod | classmethod):
                value = value.__func__
            yield f"{path}.{name}{_parameters(value) if inspect.isfunction(value) else ''}"


def _parameters(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parts: list[str] = []
    starred = False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        optional = "" if stars or parameter.default is parameter.empty else "=…"
        parts.append(f"{stars}{parameter.name}{optional}")
    return f"({', '.join(parts)})"


if __name__ == "__main__":
    PINNED.write_text("\n".join(collect()) + "\n", encoding="utf-8")
