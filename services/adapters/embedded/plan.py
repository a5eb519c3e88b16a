"""What one transaction is to write, as rows for each of its statements."""

Row = tuple[object, ...]


class Plan:
    """Rows of one batch, by statement."""

    __slots__ = (
        "armed",
        "changed_items",
        "commits",
        "fired",
        "found_by",
        "logs",
        "lost",
        "new_items",
        "other_runs",
        "runs",
        "wake_ups",
        "woken",
    )

    def __init__(self) -> None:
        self.logs: dict[int, Row] = {}
        self.runs: list[Row] = []
        self.other_runs: list[Row] = []
        self.commits: list[Row] = []
        self.new_items: list[Row] = []
        self.changed_items: list[Row] = []
        self.armed: list[Row] = []
        self.fired: list[Row] = []
        self.wake_ups: list[Row] = []
        self.woken: list[Row] = []
        self.lost: list[Row] = []
        """Runs that are found by other values than before."""
        self.found_by: dict[int, list[Row]] = {}
        """By run: the newest word in the batch."""

    @property
    def is_one_statement(self) -> bool:
        """A single commit that changes nothing else, the most frequent of all: put-if-absent, and nothing to undo."""
        return len(self.commits) == 1 and not (
            self.logs
            or self.armed
            or self.fired
            or self.runs
            or self.other_runs
            or self.new_items
            or self.changed_items
            or self.lost
            or self.found_by
            or self.wake_ups
            or self.woken
        )
