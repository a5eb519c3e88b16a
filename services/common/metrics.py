"""What the engine tells about how it is doing: a port of two methods, nobody by default, and gathering in memory.

To tell costs an entry in a dictionary; nothing is written until somebody takes what was gathered (``telemetry``).
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from . import metric_names as names

MAX_SERIES = 500
"""Different series between two takings; the dimensions of what is more than that are called ``OTHER``."""

OTHER = "other"

_KEPT = 1_000


class Metrics(Protocol):
    """Names and dimensions are those of ``metric_names``. Never raises for what it is told in the course of work."""

    def count(self, name: str, value: int = 1, **dimensions: str) -> None:
        """So many more of something."""
        ...

    def record(self, name: str, value: float, **dimensions: str) -> None:
        """One measurement of a distribution."""
        ...


class NoMetrics:
    """Where nobody measures."""

    def count(self, name: str, value: int = 1, **dimensions: str) -> None:
        pass

    def record(self, name: str, value: float, **dimensions: str) -> None:
        pass


NO_METRICS = NoMetrics()


class Series(NamedTuple):
    name: str
    dimensions: Mapping[str, str]
    values: tuple[float, ...]
    """A count has one value, their sum."""


class Gathered:
    """Keeps what it is told until it is taken, in memory that is bounded whatever it is told."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], int] = {}
        self._samples: dict[tuple[str, ...], Sample] = {}
        self.pressing = False
        """Something was told that should not wait (``metric_names.PRESSING``)."""

    def count(self, name: str, value: int = 1, **dimensions: str) -> None:
        key = self._key(name, dimensions)
        self._counts[key] = self._counts.get(key, 0) + value
        if name in names.PRESSING:
            self.pressing = True

    def record(self, name: str, value: float, **dimensions: str) -> None:
        key = self._key(name, dimensions)
        sample = self._samples.get(key)
        if sample is None:
            sample = self._samples[key] = Sample()
        sample.add(value)

    def take(self) -> list[Series]:
        """What was told since the last time."""
        counts, self._counts = self._counts, {}
        samples, self._samples = self._samples, {}
        self.pressing = False
        told: list[tuple[tuple[str, ...], tuple[float, ...]]] = [(key, (float(sum_),)) for key, sum_ in counts.items()]
        told += [(key, sample.values()) for key, sample in samples.items()]
        return [Series(key[0], dict(zip(_dimensions(key[0]), key[1:], strict=True)), values) for key, values in told]

    def _key(self, name: str, dimensions: Mapping[str, str]) -> tuple[str, ...]:
        """Raises KeyError and ValueError for a metric or dimension that is not in the table: a mistake of ours."""
        if name not in names.UNITS:
            raise KeyError(f"metric {name!r} is not in metric_names")
        wanted = _dimensions(name)
        if len(dimensions) != len(wanted):
            raise ValueError(f"metric {name!r} has the dimensions {wanted}, not {tuple(dimensions)}")
        key = (name, *[dimensions[dimension] for dimension in wanted])
        if key not in self._counts and key not in self._samples and self._is_full():
            return (name, *[OTHER for _ in wanted])
        return key

    def _is_full(self) -> bool:
        return len(self._counts) + len(self._samples) >= MAX_SERIES


class Sample:
    """Measurements as a bounded number of them: all while they are few, then every second, every fourth and so on, in
    their order; and always the largest."""

    __slots__ = ("_kept", "_largest", "_seen", "_stride")

    def __init__(self) -> None:
        self._kept: list[float] = []
        self._largest = float("-inf")
        self._seen = 0
        self._stride = 1

    def add(self, value: float) -> None:
        self._largest = max(self._largest, value)
        if self._seen % self._stride == 0:
            if len(self._kept) == _KEPT:
                self._kept = self._kept[::2]
                self._stride *= 2
            if self._seen % self._stride == 0:
                self._kept.append(value)
        self._seen += 1

    def values(self) -> tuple[float, ...]:
        return tuple(self._kept) if self._largest in self._kept else (*self._kept, self._largest)


def _dimensions(name: str) -> tuple[str, ...]:
    return names.DIMENSIONS.get(name, ())
