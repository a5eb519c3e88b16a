"""Randomness of a run: seeded by its history, so the same in every replay, and another one behind a reset (PM-10)."""

import random  # noqa: TID251 - seeded by the history
from collections.abc import Callable
from hashlib import blake2b
from weakref import WeakValueDictionary


class Randomness:
    def __init__(self) -> None:
        self._seed = ""
        self._main: random.Random | None = None
        self._others: WeakValueDictionary[int, random.Random] | None = None
        self._made = 0
        self._callbacks: list[Callable[[int], None]] = []

    @property
    def seed(self) -> int:
        """The seed as a number, for code that has a source of its own."""
        return int.from_bytes(blake2b(self._seed.encode(), digest_size=8).digest())

    def begin(self, run_id: str) -> None:
        """The run has started; ``run_id`` is its own, or of the run that it was first reset from."""
        self._seed = run_id

    def main(self) -> random.Random:
        """The run's own source. A reset gives it another seed, whoever holds it."""
        if self._main is None:
            self._main = random.Random(self._seed)
        return self._main

    def another(self) -> random.Random:
        """A source beside it, which a reset gives another seed as well."""
        other = random.Random(self.main().getrandbits(128))
        if self._others is None:
            self._others = WeakValueDictionary()
        self._others[self._made] = other
        self._made += 1
        return other

    def on_new_seed(self, callback: Callable[[int], None]) -> None:
        self._callbacks.append(callback)

    def reseed(self, run_id: str) -> None:
        """From here on the history is that of run ``run_id``, which a reset made."""
        self._seed = run_id
        self.main().seed(run_id)
        # By its number and not by what the main source gives: which of them are still there is not in the history.
        for number, other in sorted(self._others.items()) if self._others is not None else ():
            other.seed(f"{run_id}:{number}")
        seed = self.seed
        for callback in self._callbacks:
            callback(seed)
