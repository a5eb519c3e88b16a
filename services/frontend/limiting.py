"""Limits of namespaces, in front of the handlers: what is over one is refused before the engine hears of it (MT-04 to
MT-06).

All is in the memory of this process and costs no I/O: the limits come from the registry's cache, the counts are this
process's own. Where nothing is limited, transports see that (``active``) and call the handler as it is.
"""

import math
from typing import Any

from stepwell.api.enums import NamespaceState, ResourceExhaustedCause, ResourceExhaustedScope
from stepwell.api.errors import ApiError, NamespaceNotFound, ResourceExhausted
from stepwell.api.namespaces import NamespaceLimits
from stepwell.api.operations import Operation

from ..common.clock import Clock
from ..history.engine import Engine
from ..namespaces.buckets import BURST_SECONDS, Bucket, PriorityBuckets
from ..namespaces.payloads import check_payloads
from ..namespaces.records import NamespaceConfig, check_starts
from ..namespaces.registry import Namespaces
from . import call_classes as classes
from .routes import Handler

UNLIMITED = NamespaceLimits()
SERVED = NamespaceLimits(requests_per_second=2_400.0, visibility_per_second=10.0, concurrent_long_polls=1_200)
"""What a server gives each namespace that has no limits of its own (MT-04)."""

CHANGES_PER_SECOND = 1.0
CHANGES_AT_ONCE = 20.0
_VISIBILITY_BURST_SECONDS = 10.0
_POLL_AGAIN = 1.0
"""Seconds after which a long poll that found no room may ask again; nobody knows when one ends."""

_LONGEST_HINT = 86_400.0
"""Of a rate that is next to nothing; by then the limit may be another one."""

_FULL = 10_000
"""Gates that are kept for namespaces of which nothing is registered."""


class Limiter:
    """One for all transports of a process. ``default``: what namespaces are given that have no limits of their own."""

    def __init__(self, namespaces: Namespaces, default: NamespaceLimits = UNLIMITED) -> None:
        self.active = True
        self._namespaces = namespaces
        self._clock = namespaces.clock
        self._default = default
        self._gates: dict[str, _Gate] = {}
        self._changes = Bucket(CHANGES_PER_SECOND, self._clock.monotonic(), seconds=CHANGES_AT_ONCE)
        namespaces.on_change(self._changed)

    async def carry_out(self, handler: Handler, engine: Engine, operation: Operation[Any, Any], request: Any) -> Any:
        """What the handler answers, if the limits let the call pass. Raises an ApiError at once if they do not."""
        name = operation.name
        if name in classes.NAMESPACE_CHANGES:
            self._take_change()
        namespace: str = getattr(request, "namespace", "")
        if not namespace or name in classes.OF_THE_INSTALLATION:
            return await handler(engine, request)
        gate = self._gates.get(namespace) or self._open_gate(namespace)
        gate.check(operation, request)
        held = operation.long_poll and gate.hold(name)
        try:
            response = await handler(engine, request)
        finally:
            if held:
                gate.let_go(name)
        gate.count_dispatched(response)
        return response

    def _take_change(self) -> None:
        wait = self._changes.wait(self._clock.monotonic())
        if wait:
            raise exhausted(
                "namespaces are registered and changed too often",
                ResourceExhaustedCause.NAMESPACE_CHANGES_LIMIT,
                wait,
                scope=ResourceExhaustedScope.SYSTEM,
            )
        self._changes.pay()

    def _open_gate(self, namespace: str) -> "_Gate":
        if len(self._gates) >= _FULL + len(self._namespaces.known):
            # Names can be made up; those that are not in use now lose their counts.
            self._gates = {name: gate for name, gate in self._gates.items() if gate.holds}
        config = self._namespaces.get(namespace)
        known = self._namespaces.is_registered(namespace) or not self._namespaces.require_registered
        gate = self._gates[namespace] = self._gate(config, known=known)
        return gate

    def _gate(self, config: NamespaceConfig, *, known: bool) -> "_Gate":
        return _Gate(config, self._default, self._clock, self._namespaces.starts(config.name), known=known)

    def _changed(self, namespaces: Namespaces) -> None:
        known = namespaces.known
        self.active = (
            namespaces.require_registered
            or self._default != UNLIMITED
            or any(config.limits != UNLIMITED or _is_closed(config) for config in known.values())
        )
        for name, gate in list(self._gates.items()):
            config = namespaces.get(name)
            if config.limits != gate.config.limits or config.state != gate.config.state or not gate.known:
                fresh = self._gate(config, known=namespaces.is_registered(name) or not namespaces.require_registered)
                fresh.holds = gate.holds  # who waits goes on, and is counted
                self._gates[name] = fresh


class _Gate:
    """What one namespace may ask, and has asked."""

    def __init__(
        self, config: NamespaceConfig, default: NamespaceLimits, clock: Clock, starts: Bucket | None, *, known: bool
    ) -> None:
        """``starts``: what schedules take from as well."""
        self.config = config
        self.known = known
        self.holds: dict[str, int] = {}
        self._name = config.name
        self._clock = clock
        own, now = config.limits, clock.monotonic()
        requests = own.requests_per_second or default.requests_per_second
        self._requests = (
            None
            if requests is None
            else PriorityBuckets(requests, now, seconds=BURST_SECONDS, priorities=classes.PRIORITIES)
        )
        self._rate = requests
        self._starts = starts or _bucket(default.starts_per_second, now, BURST_SECONDS)
        self._dispatches = _bucket(own.dispatches_per_second or default.dispatches_per_second, now, 1.0)
        self._lists = _bucket(
            own.visibility_per_second or default.visibility_per_second, now, _VISIBILITY_BURST_SECONDS
        )
        self._polls = own.concurrent_long_polls or default.concurrent_long_polls
        self._payload = own.max_payload_bytes or default.max_payload_bytes

    def check(self, operation: Operation[Any, Any], request: Any) -> None:
        """Raises what keeps the call from being made; else it counts."""
        name = operation.name
        starts = name in classes.STARTS
        self._check_state(starts=starts or name in classes.FOR_STARTS)
        if self._payload is not None and name not in _REPORTS:
            check_payloads(request, self._payload, self._name)
        now = self._clock.monotonic()
        if classes.is_visibility(name):
            self._take(self._lists, now, "lists and counts", ResourceExhaustedCause.VISIBILITY_LIMIT)
            return
        if starts:
            self._wait(self._starts, now, "starts", ResourceExhaustedCause.STARTS_LIMIT)
        if name in _TAKING:
            self._wait(self._dispatches, now, "tasks handed to workers", ResourceExhaustedCause.DISPATCH_LIMIT)
        if self._requests is not None:
            wait = self._requests.take(classes.priority_of(operation, request), now, classes.cost_of(request))
            if wait:
                raise self._over("calls", self._rate, ResourceExhaustedCause.RPS_LIMIT, wait)
        if starts and self._starts is not None:
            self._starts.pay()

    def _check_state(self, *, starts: bool) -> None:
        if not self.known:
            raise NamespaceNotFound(
                f"namespace {self._name!r} is not registered; register it, or check the name", field="namespace"
            )
        if starts or self.config.state is NamespaceState.DELETED:
            check_starts(self.config)

    def hold(self, name: str) -> bool:
        """True: ``let_go`` is to be called at the end."""
        holds = self.holds.get(name, 0)
        if self._polls is not None and holds >= self._polls:
            raise exhausted(
                f"namespace {self._name!r} has {holds} calls of {name} open, the most that may wait at one server",
                ResourceExhaustedCause.CONCURRENT_LIMIT,
                _POLL_AGAIN,
            )
        self.holds[name] = holds + 1
        return True

    def let_go(self, name: str) -> None:
        left = self.holds[name] - 1
        if left:
            self.holds[name] = left
        else:
            del self.holds[name]

    def count_dispatched(self, response: Any) -> None:
        """Tasks cannot be taken back once they are handed out, so they count behind the call."""
        if self._dispatches is not None:
            self._dispatches.owe(classes.dispatched_by(response))

    def _take(self, bucket: Bucket | None, now: float, what: str, cause: ResourceExhaustedCause) -> None:
        self._wait(bucket, now, what, cause)
        if bucket is not None:
            bucket.pay()

    def _wait(self, bucket: Bucket | None, now: float, what: str, cause: ResourceExhaustedCause) -> None:
        if bucket is not None and (wait := bucket.wait(now)):
            raise self._over(what, bucket.rate, cause, wait)

    def _over(self, what: str, rate: float | None, cause: ResourceExhaustedCause, wait: float) -> ApiError:
        return exhausted(
            f"namespace {self._name!r} has used up its {rate:g} {what} a second at this server", cause, wait
        )


_REPORTS = frozenset({"RecordActivityHeartbeat"})
"""Of workers: what is too large in them ends what they are about, in the handler."""

_TAKING = frozenset({"PollWorkflowTask", "PollActivityTask", "StartWorkflowTask", "StartActivityTask"})


def exhausted(
    what: str,
    cause: ResourceExhaustedCause,
    seconds: float,
    *,
    scope: ResourceExhaustedScope = ResourceExhaustedScope.NAMESPACE,
) -> ResourceExhausted:
    """With its cause, whose limit it was, and when to call again."""
    seconds = math.ceil(min(max(seconds, 0.001), _LONGEST_HINT) * 1_000) / 1_000
    return ResourceExhausted(
        f"{what} ({cause}); nothing was done, call again in {seconds:g} s, or have the limit raised",
        cause=cause.value,
        scope=scope.value,
        retry_after=f"{seconds:g}",
    )


def _bucket(rate: float | None, now: float, seconds: float) -> Bucket | None:
    return None if rate is None else Bucket(rate, now, seconds=seconds)


def _is_closed(config: NamespaceConfig) -> bool:
    return config.state is not NamespaceState.REGISTERED
