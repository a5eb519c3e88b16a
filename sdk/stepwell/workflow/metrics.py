"""Metrics of workflow code: recorded once, and not again in replay (PM-12)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ..replay.runtime import current_runtime

Attributes = Mapping[str, str | int | float | bool]


class MetricKind(Enum):
    """How values of one metric are put together."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True)
class Metric:
    """One value, as a worker's ``metric_recorder`` gets it."""

    kind: MetricKind
    name: str
    value: int | float
    attributes: Attributes
    description: str = ""
    unit: str = ""


MetricRecorder = Callable[[Metric], None]


@dataclass(frozen=True)
class MetricInstrument:
    """One metric of a meter."""

    _kind: MetricKind
    name: str
    description: str
    unit: str
    _attributes: Attributes

    def _record(self, value: int | float, additional: Attributes | None) -> None:
        runtime = current_runtime()
        recorder = runtime.metric_recorder
        if recorder is None or runtime.replaying or runtime.evicting or runtime.read_only:
            return
        attributes = {**self._attributes, **(additional or {})}
        runtime.unguarded += 1  # the worker's own code
        try:
            recorder(Metric(self._kind, self.name, value, attributes, self.description, self.unit))
        finally:
            runtime.unguarded -= 1


class MetricCounter(MetricInstrument):
    """Only grows."""

    def add(self, value: int | float, additional_attributes: Attributes | None = None) -> None:
        """Raises ``ValueError`` for a value below zero."""
        if value < 0:
            raise ValueError(f"counter {self.name!r} only grows; {value} is below zero")
        self._record(value, additional_attributes)


class MetricHistogram(MetricInstrument):
    """A distribution of values."""

    def record(self, value: int | float, additional_attributes: Attributes | None = None) -> None:
        self._record(value, additional_attributes)


class MetricGauge(MetricInstrument):
    """The value that holds now."""

    def set(self, value: int | float, additional_attributes: Attributes | None = None) -> None:
        self._record(value, additional_attributes)


@dataclass(frozen=True)
class MetricMeter:
    """Makes metrics; each value says which kind of workflow it is of."""

    attributes: Attributes = field(default_factory=dict)

    def create_counter(self, name: str, description: str = "", unit: str = "") -> MetricCounter:
        return MetricCounter(MetricKind.COUNTER, name, description, unit, self.attributes)

    def create_histogram(self, name: str, description: str = "", unit: str = "") -> MetricHistogram:
        return MetricHistogram(MetricKind.HISTOGRAM, name, description, unit, self.attributes)

    def create_gauge(self, name: str, description: str = "", unit: str = "") -> MetricGauge:
        return MetricGauge(MetricKind.GAUGE, name, description, unit, self.attributes)

    def with_additional_attributes(self, additional_attributes: Attributes) -> "MetricMeter":
        return MetricMeter({**self.attributes, **additional_attributes})


def metric_meter() -> MetricMeter:
    """For metrics of this run's code. The worker's ``metric_recorder`` gets each value once: not in replay, nor from
    queries; a workflow task that is tried again records again. Without a recorder it does nothing.
    """
    info = current_runtime().info
    return MetricMeter(
        {"namespace": info.namespace, "task_queue": info.task_queue, "workflow_type": info.workflow_type}
    )
