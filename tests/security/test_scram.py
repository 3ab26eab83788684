"""SCRAM: the example of the RFC, both sides together, and what breaks the rules."""

from __future__ import annotations

import base64
import secrets

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.security.sasl_frames import SaslError
from router.security.scram import (
    HASHES,
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    ScramClient,
    ScramServer,
    derive,
    prepare_name,
    prepare_password,
)

# RFC 7677, 3: user "user", password "pencil".
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_LAST = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_LAST = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_server_writes_the_example_of_the_rfc() -> None:
    server = ScramServer("SCRAM-SHA-256", SERVER_NONCE)
    server.read_first(CLIENT_FIRST)
    assert server.user == "user"
    assert server.challenge(derive("SCRAM-SHA-256", b"pencil", SALT, 4096)) == SERVER_FIRST
    assert server.verify(CLIENT_LAST) == SERVER_LAST


def test_the_client_writes_the_example_of_the_rfc() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", CLIENT_NONCE)
    assert client.first() == CLIENT_FIRST
    assert client.answer(SERVER_FIRST) == CLIENT_LAST
    assert not client.is_server_known
    client.verify(SERVER_LAST)
    assert client.is_server_known


TEXT = st.text(st.characters(categories=["L", "N", "P"], max_codepoint=0x24F), min_size=1, max_size=20)


@pytest.mark.parametrize("mechanism", HASHES)
@settings(max_examples=20, deadline=None)
@given(user=TEXT, password=TEXT, other=TEXT)
def test_the_right_password_passes_and_no_other(mechanism: str, user: str, password: str, other: str) -> None:
    keys = derive(mechanism, prepare_password(password), b"salt", LEAST_ITERATIONS)
    for tried in (password, other):
        server = ScramServer(mechanism, secrets.token_urlsafe())
        client = ScramClient(mechanism, user, tried, secrets.token_urlsafe())
        server.read_first(client.first())
        assert server.user == prepare_name(user)
        proof = server.verify(client.answer(server.challenge(keys)))
        assert (proof is not None) == (prepare_password(tried) == prepare_password(password))
        if proof is not None:
            client.verify(proof)


@pytest.mark.parametrize(
    "first",
    [
        b"", b"n", b"n,,", b"n,,r=x", b"n,,n=user", b"n,,r=x,n=user",
        b"p=tls-unique,,n=user,r=x", b"n,a=other,n=user,r=x",
        b"n,,m=x,n=user,r=x", b"n,,n=us=er,r=x", b"n,,n=,r=x", b"n,,n=user,r=\x01",
        b"n,,n=\xff,r=x", b"n,,n=a\x00b,r=x",
        b"n,,n=user,n=user,r=x",
        b"n,,n=user,r=", b"n,,n=user,r=a b", b"n,,n=user,r=\xc3\xa9", b"n,,n=user,r=x,m=y",
    ],
)  # fmt: skip
def test_a_first_message_that_breaks_the_rules_is_refused(first: bytes) -> None:
    with pytest.raises(SaslError):
        ScramServer("SCRAM-SHA-256", "nonce").read_first(first)


@pytest.mark.parametrize(
    "last",
    [
        b"", CLIENT_LAST.replace(b"biws", b"eSws"), CLIENT_LAST.replace(b"r=rO", b"r=xO"),
        CLIENT_LAST.replace(b",p=dHzb", b",p=*"), CLIENT_LAST.partition(b",p=")[0],
        CLIENT_LAST.replace(b",p=", b",m=x,p="),
    ],
)  # fmt: skip
def test_a_last_message_of_another_exchange_is_refused(last: bytes) -> None:
    server = ScramServer("SCRAM-SHA-256", SERVER_NONCE)
    server.read_first(CLIENT_FIRST)
    server.challenge(derive("SCRAM-SHA-256", b"pencil", SALT, 4096))
    with pytest.raises(SaslError):
        server.verify(last)


@pytest.mark.parametrize("proof", [b"", b"AAAA", base64.b64encode(bytes(32))])
def test_a_wrong_proof_is_a_wrong_password(proof: bytes) -> None:
    server = ScramServer("SCRAM-SHA-256", SERVER_NONCE)
    server.read_first(CLIENT_FIRST)
    server.challenge(derive("SCRAM-SHA-256", b"pencil", SALT, 4096))
    assert server.verify(CLIENT_LAST.partition(b",p=")[0] + b",p=" + proof) is None


@pytest.mark.parametrize(
    "challenge",
    [
        b"", b"r=other,s=AAAA,i=4096", SERVER_FIRST.replace(b"i=4096", b"i=1"),
        b"r=" + CLIENT_NONCE.encode() + b",s=A,i=4096",
        SERVER_FIRST.replace(b"i=4096", b"i=%d" % (MOST_ITERATIONS + 1)), SERVER_FIRST.replace(b"i=4096", b"i=x"),
        SERVER_FIRST + b",m=x",
        SERVER_FIRST.replace(b"i=4096", b"i=" + 1000 * b"9"), b"s=AAAA,r=x,i=4096",
    ],
)  # fmt: skip
def test_the_client_takes_no_challenge_that_breaks_the_rules(challenge: bytes) -> None:
    with pytest.raises(SaslError):
        ScramClient("SCRAM-SHA-256", "user", "pencil", CLIENT_NONCE).answer(challenge)


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", CLIENT_NONCE)
    with pytest.raises(SaslError):
        client.verify(b"v=")
    client.answer(SERVER_FIRST)
    with pytest.raises(SaslError, match="has not proved"):
        client.verify(b"v=" + base64.b64encode(bytes(32)))


@pytest.mark.parametrize(
    ("text", "prepared"),
    [("I\u00adX", "IX"), ("user", "user"), ("USER", "USER"), ("\u00aa", "a"), ("\u2168", "IX"), ("a\u00a0b", "a b")],
)
def test_text_is_prepared_as_the_rfc_has_it(text: str, prepared: str) -> None:
    assert prepare_name(text) == prepared  # RFC 4013, 3


@pytest.mark.parametrize("text", ["", "\x07", "\u06271", "a\x00", "\ue000"])
def test_text_that_the_rfc_forbids_is_refused(text: str) -> None:
    with pytest.raises(SaslError):
        prepare_name(text)
