"""What goes wrong and how often, drawn from the seed. One object per simulation, switched off for the calm end."""

import asyncio
from dataclasses import dataclass, fields, replace
from random import Random

from stepwell_server.history.ports import StoreUnavailable
from tests.simulation.loop import CURRENT_PROCESS


@dataclass(frozen=True)
class FaultRates:
    """Chances per call; 0 is never."""

    crash_before_write: float = 0.0
    crash_after_write: float = 0.0
    crash_after_arm: float = 0.0
    write_refused: float = 0.0
    write_answer_lost: float = 0.0
    offer_lost: float = 0.0
    offer_repeated: float = 0.0
    offer_delayed: float = 0.0
    firing_repeated: float = 0.0
    firing_delayed: float = 0.0
    request_lost: float = 0.0
    reply_lost: float = 0.0
    slow_network: float = 0.0
    stalled_network: float = 0.0
    worker_crash_in_activity: float = 0.0
    worker_crash_after_activity: float = 0.0
    worker_crash_on_reply: float = 0.0
    worker_crash_before_offer: float = 0.0
    # Of the services of AWS:
    throttled: float = 0.0
    conflicted: float = 0.0
    stalled_call: float = 0.0
    read_answer_lost: float = 0.0
    message_lost: float = 0.0
    message_late: float = 0.0
    message_twice: float = 0.0
    message_not_taken: float = 0.0
    message_deleted_in_vain: float = 0.0
    record_twice: float = 0.0
    record_late: float = 0.0
    function_crash: float = 0.0
    tick_missed: float = 0.0

    def scaled(self, factor: float) -> "FaultRates":
        return replace(self, **{f.name: min(1.0, getattr(self, f.name) * factor) for f in fields(self)})


CALM = FaultRates()
ROUGH = FaultRates(
    crash_before_write=0.006,
    crash_after_write=0.006,
    crash_after_arm=0.006,
    write_refused=0.01,
    write_answer_lost=0.015,
    offer_lost=0.1,
    offer_repeated=0.1,
    offer_delayed=0.2,
    firing_repeated=0.1,
    firing_delayed=0.1,
    request_lost=0.02,
    reply_lost=0.03,
    slow_network=0.05,
    stalled_network=0.002,
    worker_crash_in_activity=0.01,
    worker_crash_after_activity=0.01,
    worker_crash_on_reply=0.005,
    worker_crash_before_offer=0.004,
)


class Faults:
    def __init__(self, random: Random, rates: FaultRates) -> None:
        self._random = random
        self.rates = rates
        self.drop_first_offers = False
        """Every first offer of a task is lost, for the whole simulation: only deadlines bring work to workers."""
        self.happened: dict[str, int] = {}

    def calm(self) -> None:
        self.rates = CALM

    def strikes(self, fault: str) -> bool:
        """Whether this fault happens now."""
        rate: float = getattr(self.rates, fault)
        if not rate or self._random.random() >= rate:
            return False
        self.happened[fault] = self.happened.get(fault, 0) + 1
        return True

    def delay(self, longest: float) -> float:
        return self._random.random() * longest

    async def crash(self, fault: str) -> None:
        """Kills the process that runs this call, which then never goes on."""
        process = CURRENT_PROCESS.get()
        if process is not None and process.alive and self.strikes(fault):
            process.kill()
            await asyncio.get_running_loop().create_future()

    def refuse_write(self) -> None:
        if self.strikes("write_refused"):
            raise StoreUnavailable("simulated: the store did not take the write")

    def lose_answer(self) -> None:
        if self.strikes("write_answer_lost"):
            raise StoreUnavailable("simulated: the write was made, its answer was lost")
