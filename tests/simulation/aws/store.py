"""The model told of what is written to the tables, at the moment in which it is."""

from collections.abc import Mapping
from typing import Any

from stepwell_server.adapters.aws import commit_items, keys
from stepwell_server.adapters.aws.attributes import from_attributes
from stepwell_server.adapters.aws.large_parts import names_in
from stepwell_server.adapters.aws.names import Names
from stepwell_server.adapters.aws.timer_rows import _decode as decode_row
from stepwell_server.common.clock import Clock
from stepwell_server.history import codec
from stepwell_server.history.commit import Awaited, ExecutionKey
from stepwell_server.history.run_blobs import Owner
from stepwell_server.timer_sweeper import buckets
from stepwell_server.timer_sweeper.buckets import TimerRow
from stepwell_server.timer_sweeper.ports import Fire
from tests.simulation.aws.objects import ObjectReader
from tests.simulation.model import Model
from tests.simulation.violation import Violation

_LONG_DUE_MS = 60_000


class TablesModel:
    """``on_write`` is what the tables call. A row counts as struck off once a feeder was told that it needs no more."""

    def __init__(self, model: Model, names: Names, clock: Clock, objects: ObjectReader) -> None:
        self._model = model
        self._names = names
        self._clock = clock
        self._objects = objects
        self._rows: dict[tuple[ExecutionKey, Any], set[Awaited]] = {}
        self._to_fire: dict[tuple[ExecutionKey, Any, Awaited], int] = {}
        """Where each deadline stands that no feeder has come to the end of."""
        self._fired: dict[tuple[ExecutionKey, Any, Awaited], int] = {}
        """When each was armed that was fired; a message may be handled before its row is put."""

    def on_write(self, table: str, attributes: Mapping[str, Mapping[str, Any]]) -> None:
        if table == self._names.timer_table:
            row = decode_row(from_attributes(attributes))
            self._rows.setdefault((row.key, row.fire_at), set()).add(row.awaited)
            deadline = (row.key, row.fire_at, row.awaited)
            for other in [one for one in self._to_fire.items() if one[0][0] == row.key and one[1] == row.place_ms]:
                del self._to_fire[other[0]]  # this row takes its place
            if not row.queued or self._fired.get(deadline, -1) < row.armed_ms:
                self._to_fire[deadline] = row.place_ms
            self._model.arm(row.key, row.fire_at)
        elif table == self._names.exec_table:
            self._exec(attributes)

    def _exec(self, attributes: Mapping[str, Mapping[str, Any]]) -> None:
        item = from_attributes(attributes)
        now = self._clock.now()
        match item["sk"][:2]:
            case keys.COMMITS:
                if names_in(item):
                    raise Violation("the simulation's commits are small, but a part of one is elsewhere")
                commit = commit_items.decode(item)
                if (commit.key, commit.seq) != (commit_items.key_of(item), commit_items.seq_of(item)):
                    raise Violation(f"commit {commit.seq} of {commit.key} stands at {item['pk']}, {item['sk']}")
                self._model.append(self._objects.commit(commit), now)
            case "A#":
                activity = self._objects.item(codec.decode_activity_item(item["b"]))
                self._model.put_activity(activity, now)
            case "B#":
                run_id = item["sk"].split("#")[1]
                owner = Owner(commit_items.key_of(item), run_id)
                events = self._objects.whole(tuple(codec.decode_events(item["e"])), owner)
                self._model.put_prefix(run_id, keys.parse_prefix_key(item["sk"]), events)

    def watched(self, fire: Fire) -> Fire:
        async def fired(row: TimerRow) -> bool:
            done = await fire(row)
            if done:
                self._strike(row)
            deadline = (row.key, row.fire_at, row.awaited)
            self._to_fire.pop(deadline, None)
            self._fired[deadline] = max(row.armed_ms, self._fired.get(deadline, -1))
            return done

        return fired

    def left_out(self) -> list[str]:
        """Deadlines that are due for long, and that nobody has fired, whether or not that was of use."""
        late = buckets.to_ms(self._clock.now()) - _LONG_DUE_MS
        return [f"{key.workflow_id} at {fire_at}" for (key, fire_at, _), place in self._to_fire.items() if place < late]

    def _strike(self, row: TimerRow) -> None:
        waiting = self._rows.get((row.key, row.fire_at), set())
        waiting.discard(row.awaited)
        if not waiting:
            self._model.fired(row.key, row.fire_at, self._clock.now())
