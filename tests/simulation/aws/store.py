"""The model told of what is written to the tables, at the moment in which it is."""

from collections.abc import Mapping
from typing import Any

from stepwell_server.adapters.aws import commit_items, keys
from stepwell_server.adapters.aws.attributes import from_attributes
from stepwell_server.adapters.aws.names import Names
from stepwell_server.adapters.aws.timer_rows import _decode as decode_row
from stepwell_server.common.clock import Clock
from stepwell_server.history import codec
from stepwell_server.history.commit import Awaited, ExecutionKey
from stepwell_server.timer_sweeper.buckets import TimerRow
from stepwell_server.timer_sweeper.ports import Fire
from tests.simulation.model import Model
from tests.simulation.violation import Violation


class TablesModel:
    """``on_write`` is what the tables call. A row counts as struck off once a feeder was told that it needs no more."""

    def __init__(self, model: Model, names: Names, clock: Clock) -> None:
        self._model = model
        self._names = names
        self._clock = clock
        self._rows: dict[tuple[ExecutionKey, Any], set[Awaited]] = {}

    def on_write(self, table: str, attributes: Mapping[str, Mapping[str, Any]]) -> None:
        if table == self._names.timer_table:
            row = decode_row(from_attributes(attributes))
            self._rows.setdefault((row.key, row.fire_at), set()).add(row.awaited)
            self._model.arm(row.key, row.fire_at)
        elif table == self._names.exec_table:
            self._exec(attributes)

    def _exec(self, attributes: Mapping[str, Mapping[str, Any]]) -> None:
        item = from_attributes(attributes)
        now = self._clock.now()
        match item["sk"][:2]:
            case keys.COMMITS:
                if not commit_items.says_all(item):
                    raise Violation("the simulation's payloads are small, but a commit has some elsewhere")
                commit = commit_items.decode(item)
                if (commit.key, commit.seq) != (commit_items.key_of(item), commit_items.seq_of(item)):
                    raise Violation(f"commit {commit.seq} of {commit.key} stands at {item['pk']}, {item['sk']}")
                self._model.append(commit, now)
            case "A#":
                self._model.put_activity(codec.decode_activity_item(item["b"]), now)
            case "B#":
                run_id = item["sk"].split("#")[1]
                self._model.put_prefix(run_id, keys.parse_prefix_key(item["sk"]), codec.decode_events(item["e"]))

    def watched(self, fire: Fire) -> Fire:
        async def fired(row: TimerRow) -> bool:
            done = await fire(row)
            if done:
                self._strike(row)
            return done

        return fired

    def _strike(self, row: TimerRow) -> None:
        waiting = self._rows.get((row.key, row.fire_at), set())
        waiting.discard(row.awaited)
        if not waiting:
            self._model.fired(row.key, row.fire_at, self._clock.now())
