"""Signed tokens: come back as they were, and nobody else can make one."""

from datetime import UTC, datetime

import pytest
from stepwell.api.errors import InvalidArgument, NotFound

from stepwell_server.history.task_tokens import (
    ActivityToken,
    ContinuationToken,
    PlacedActivity,
    PlacedBuffered,
    PlacedTimer,
    WorkflowTaskToken,
)
from stepwell_server.history.tokens import HistoryToken, ListToken, QueryToken, Token, TokenSigner

NOW = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
TOKENS: list[Token] = [
    WorkflowTaskToken("ns", "w", "r", 7, 1, (PlacedBuffered(3), PlacedActivity(5), PlacedTimer("t")), NOW, 1),
    ContinuationToken("ns", "w", "r", 7),
    ActivityToken("ns", "w", "r", 5, 2, False, "a"),
    QueryToken("ns", "w", "r", "q"),
    HistoryToken("ns", "w", "r", 3, 1),
    ListToken("ns", NOW, "r"),
]


@pytest.fixture
def signer() -> TokenSigner:
    return TokenSigner(b"k" * 32)


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: type(token).__name__)
def test_a_token_comes_back_as_it_was(signer: TokenSigner, token: Token) -> None:
    sealed = signer.seal(token)
    assert signer.open(sealed, "task_token") == token
    assert signer.open_as(sealed, type(token), "ns", "task_token") == token


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: type(token).__name__)
def test_any_changed_byte_is_refused_and_the_field_named(signer: TokenSigner, token: Token) -> None:
    sealed = signer.seal(token)
    for position in range(len(sealed)):
        forged = bytearray(sealed)
        forged[position] ^= 1
        with pytest.raises(InvalidArgument, match="next_page_token"):
            signer.open(bytes(forged), "next_page_token")


@pytest.mark.parametrize("junk", [b"", b"x", b"W" * 16, b"W" * 17, b"\x00" * 100])
def test_junk_is_refused(signer: TokenSigner, junk: bytes) -> None:
    with pytest.raises(InvalidArgument):
        signer.open(junk, "task_token")


def test_other_keys_kinds_and_namespaces_are_refused(signer: TokenSigner) -> None:
    sealed = signer.seal(TOKENS[2])
    with pytest.raises(InvalidArgument):
        TokenSigner(b"j" * 32).open(sealed, "task_token")
    with pytest.raises(InvalidArgument, match="something else"):
        signer.open_as(sealed, QueryToken, "ns", "task_token")
    with pytest.raises(NotFound, match="other"):
        signer.open_as(sealed, ActivityToken, "other", "task_token")


def test_a_key_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(ValueError, match="16 to 64"):
        TokenSigner(b"short")
