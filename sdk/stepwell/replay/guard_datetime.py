"""``datetime`` and ``date`` that refuse to tell the present time to workflow code, and are otherwise the real ones.

A module of workflow code sees these instead of the C classes. They make real ``datetime`` and ``date`` objects,
``isinstance`` and equality treat both as one class, and pydantic and our converter take them for the real ones in
annotations.
"""

import datetime as _real
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar

from .guards import check

_INSTEAD = "use workflow.now()"


class _AsReal(type):
    """Makes the guarded class pass for the real one."""

    __stepwell_guarded__: ClassVar[type]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.__stepwell_guarded__(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__stepwell_guarded__)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__stepwell_guarded__)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.__stepwell_guarded__

    def __hash__(cls) -> int:
        return hash(cls.__stepwell_guarded__)

    def __repr__(cls) -> str:
        return repr(cls.__stepwell_guarded__)


def _looking(owner: str, name: str, real: Callable[..., Any]) -> Any:
    def look_first(cls: type, *args: Any, **kwargs: Any) -> Any:
        check(f"{owner}.{name}()", _INSTEAD)
        return real(*args, **kwargs)

    look_first.__name__ = name
    return classmethod(look_first)


def _pydantic_schema(cls: Any, source: Any, handler: Callable[[Any], Any]) -> Any:
    return handler(cls.__stepwell_guarded__)


def _stand_in(real: type, present: tuple[str, ...]) -> type:
    body: dict[str, Any] = {name: _looking(real.__name__, name, getattr(real, name)) for name in present}
    body["__stepwell_guarded__"] = real
    body["__get_pydantic_core_schema__"] = classmethod(_pydantic_schema)
    body["__module__"] = real.__module__
    body["__qualname__"] = real.__qualname__
    body["__doc__"] = real.__doc__
    return _AsReal(real.__name__, (real,), body)


guarded_datetime = _stand_in(_real.datetime, ("now", "utcnow", "today"))
guarded_date = _stand_in(_real.date, ("today",))


def _stand_in_module() -> ModuleType:
    module = ModuleType("datetime", _real.__doc__)
    module.__dict__.update(_real.__dict__)
    module.__dict__.update(datetime=guarded_datetime, date=guarded_date)
    return module


ORIGINAL_IDS = frozenset(map(id, (_real, _real.datetime, _real.date)))


def pairs() -> tuple[tuple[Any, Any], ...]:
    """Each original with what stands in for it."""
    return (
        (_real.datetime, guarded_datetime),
        (_real.date, guarded_date),
        (_real, _stand_in_module()),
    )
