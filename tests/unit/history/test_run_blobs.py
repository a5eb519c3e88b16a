"""Names and keys of blobs, and what a blob says of itself."""

from datetime import timedelta

import pytest

from stepwell_server.adapters.memory_blobs import MemoryBlobs
from stepwell_server.history.codec import UnreadableRecord
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.run_blobs import Owner, RunBlobs, garbage_from, hour_of, is_fresh, put_at, quoted
from tests.support.aws.clock import StandingClock
from tests.support.sample_commits import EPOCH

HOUR = timedelta(hours=1)
OWNER = Owner(ExecutionKey("prod", "order-1"), "run-1")


def test_a_key_has_only_what_stores_take_whatever_the_names_are() -> None:
    owner = Owner(ExecutionKey("日本/." + "n" * 200, "order#1/../" + "x" * 989), "run/1 ")
    key = owner.prefix + "f" * 64 + "-7c000-b"
    assert len(key) <= 900 and set(key) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._=-")
    assert key.count("/") == 4
    long = Owner(ExecutionKey("日" * 85, "w" * 1_000), "r" * 36)
    assert len(long.prefix) < 800


def test_names_that_differ_are_quoted_differently() -> None:
    assert len({quoted(text) for text in ("a/b", "a=2Fb", "a=b", "ä", "a b", "a.b")}) == 6
    prefixes = {
        Owner(ExecutionKey(*key), run).prefix
        for *key, run in (("a", "b", "c"), ("a", "b", "d"), ("a", "c", "c"), ("b", "b", "c"), ("a/b", "b", "c"))
    }
    assert len(prefixes) == 5


def test_the_name_says_when_it_was_put() -> None:
    clock = StandingClock(EPOCH)
    blobs = RunBlobs(MemoryBlobs(), clock)
    name = blobs.name(b"x")
    assert put_at(name) == hour_of(EPOCH)
    assert is_fresh(name, EPOCH + HOUR) and not is_fresh(name, EPOCH + 2 * HOUR)
    assert garbage_from(name) == hour_of(EPOCH + 26 * HOUR)
    of_prefix = blobs.name(b"x", of_prefix=True)
    assert garbage_from(of_prefix) == hour_of(EPOCH + timedelta(days=8)) and of_prefix != name
    clock.go(HOUR)
    assert blobs.name(b"x") != name
    with pytest.raises(ValueError, match="invalid literal"):
        put_at("something")


async def test_a_blob_belongs_to_its_run_and_says_so() -> None:
    store = MemoryBlobs()
    blobs = RunBlobs(store, StandingClock(EPOCH))
    form = blobs.form(OWNER, b"data" * 1_000)
    assert len(form) < 200
    name = blobs.name(form)
    await blobs.put(OWNER, name, form)
    assert await blobs.get(OWNER, name) == b"data" * 1_000
    assert await blobs.owner(OWNER.prefix + name) == OWNER
    other = Owner(OWNER.key, "run-2")
    await store.put(other.prefix + name, form)
    with pytest.raises(UnreadableRecord, match="says that it belongs to run 'run-1'"):
        await blobs.get(other, name)
    await store.put(OWNER.prefix + "damaged", b"\x01nothing")
    with pytest.raises(UnreadableRecord):
        await blobs.get(OWNER, "damaged")
