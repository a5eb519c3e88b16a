"""Which tables hold what lists show: one, or two of them while an installation moves from the first to the second
(VI-16). Pure; processes read it from their environment, CDK from its context, bootstrap from its options.

A table is named by what stands behind the cell in its name: ``vis`` of ``stepwell-main-vis``.
"""

import re
from dataclasses import dataclass

from .names import NameRefused, Names

FIRST = "vis"
READS = ("first", "second")
_TABLE = re.compile(r"vis[a-z0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class VisibilityChoice:
    """Writes go to all that are named. Raises NameRefused."""

    first: str = FIRST
    second: str = ""
    """Empty: there is one."""

    reads: str = "first"
    """Of which one lists and counts are, ``first`` or ``second``."""

    shadow_percent: int = 0
    """Of a hundred reads, how many ask the other one too."""

    def __post_init__(self) -> None:
        for name in filter(None, (self.first or "''", self.second)):
            if not _TABLE.fullmatch(name):
                raise NameRefused(f"visibility table {name!r} is no name: use vis, then up to 8 of a-z and 0-9")
        if self.second == self.first:
            raise NameRefused(f"the second visibility table is {self.second!r} as the first; name another one")
        if self.reads not in READS:
            raise NameRefused(f"reads of visibility are {self.reads!r}; use first or second")
        if not 0 <= self.shadow_percent <= 100:
            raise NameRefused(f"shadow reads are {self.shadow_percent} of a hundred; use 0 to 100")
        if not self.second and (self.reads != "first" or self.shadow_percent):
            raise NameRefused("there is no second visibility table to read; name it, or read the first without shadows")

    def tables(self, names: Names) -> tuple[str, ...]:
        """The first, and the second if there is one."""
        return tuple([f"{names.prefix}-{name}" for name in (self.first, self.second) if name])

    def of_the_cell(self, names: Names) -> tuple[str, ...]:
        """All tables of the cell."""
        return (names.exec_table, names.timer_table, names.ctl_table, *self.tables(names))

    def variables(self) -> dict[str, str]:
        """What the environment says of it; nothing where everything is as always."""
        told = {
            "STEPWELL_VISIBILITY": self.first,
            "STEPWELL_SECOND_VISIBILITY": self.second,
            "STEPWELL_VISIBILITY_READS": self.reads,
            "STEPWELL_VISIBILITY_SHADOW_PERCENT": str(self.shadow_percent),
        }
        return {} if self == ONE_TABLE else told


ONE_TABLE = VisibilityChoice()
