"""Durations as people write them."""

from datetime import timedelta

import click
import pytest
from stepwell.cli.options import DURATION, Number, Whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30s", timedelta(seconds=30)),
        ("1h30m", timedelta(minutes=90)),
        ("1h 30m", timedelta(minutes=90)),
        ("14d", timedelta(days=14)),
        ("250ms", timedelta(milliseconds=250)),
        ("1.5h", timedelta(minutes=90)),
        ("0s", timedelta(0)),
    ],
)
def test_durations(text: str, value: timedelta) -> None:
    assert DURATION.convert(text, None, None) == value


@pytest.mark.parametrize("text", ["", "30", "s", "-1s", "1 year", "1h nonsense", "1h,30m", "9" * 30 + "d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter):
        DURATION.convert(text, None, None)


def test_who_mistypes_a_number_is_told_so_in_plain_words() -> None:
    with pytest.raises(click.BadParameter, match="'x' is not a valid integer"):
        Whole(min=1).convert("x", None, None)
    with pytest.raises(click.BadParameter, match="'x' is not a valid number"):
        Number(min=1).convert("x", None, None)
