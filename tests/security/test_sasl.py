"""Both sides of SASL, frame by frame, and whatever else a peer may write."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import symbol, ubyte

from router.security.sasl_client import SaslClient
from router.security.sasl_frames import (
    AUTHENTICATION_FAILED,
    CHALLENGE,
    INIT,
    MECHANISMS,
    OK,
    OUTCOME,
    RESPONSE,
    SaslError,
    SaslFrame,
    challenge_frame,
    init_frame,
    mechanisms_frame,
    outcome_frame,
    response_frame,
    split_frame,
)
from router.security.sasl_server import PasswordCheck, SaslServer
from router.security.scram import LEAST_ITERATIONS, Account, derive
from tests.helpers.frames import write

SECRET = "correct horse"
MARK = b"mark of the keys of alice"


class Accounts:
    """One user, alice."""

    def account(self, user: str, mechanism: str) -> Account:
        password = SECRET if user == "alice" else "nobody knows"
        keys = derive(mechanism, password.encode(), b"salt", LEAST_ITERATIONS)
        return Account(keys=keys, mark=MARK if user == "alice" else None)


def certificate_user() -> str:
    return "alice"


def server(*offered: str, user: Callable[[], str] = certificate_user) -> SaslServer:
    return SaslServer(offered, Accounts(), user, "server-nonce")


def frame(data: bytes) -> SaslFrame:
    found = split_frame(data)
    assert found is not None
    assert found[1] == len(data)
    return found[0]


def play(sasl: SaslServer, client: SaslClient) -> None:
    """Let both talk until the server is done."""
    written = sasl.greeting()
    while written:
        said = client.received(frame(written))
        if not said:
            return
        answer = sasl.received(frame(said))
        if isinstance(answer, PasswordCheck):
            is_right = (answer.user, answer.password) == ("alice", SECRET.encode())
            answer = sasl.checked(MARK if is_right else None)
        written = answer


MECHANISMS_WITH_PASSWORD = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.mark.parametrize("mechanism", [*MECHANISMS_WITH_PASSWORD, "EXTERNAL"])
def test_our_client_gets_in_at_our_server(mechanism: str) -> None:
    sasl = server("ANONYMOUS", mechanism)
    client = SaslClient(mechanism, "alice", SECRET, "host", "client-nonce")
    play(sasl, client)
    assert (sasl.user, sasl.mechanism, sasl.failure, client.is_over) == ("alice", mechanism, None, True)


def test_who_is_anonymous_has_no_other_name() -> None:
    sasl = server("ANONYMOUS")
    play(sasl, SaslClient("ANONYMOUS", "alice", None, "host", "client-nonce"))
    assert sasl.user == "anonymous"


@pytest.mark.parametrize("user", ["alice", "bob"])
@pytest.mark.parametrize("mechanism", MECHANISMS_WITH_PASSWORD)
def test_a_wrong_password_and_a_user_that_is_not_there_are_answered_alike(mechanism: str, user: str) -> None:
    sasl = server(mechanism)
    with pytest.raises(SaslError, match="does not accept"):
        play(sasl, SaslClient(mechanism, user, "wrong", "host", "client-nonce"))
    assert sasl.is_guess
    assert sasl.failure == f"user {user}: no such user, or the password is wrong"


@pytest.mark.parametrize(
    ("offered", "chosen", "data", "reason"),
    [
        (["ANONYMOUS"], "PLAIN", b"\0alice\0x", "it offers a password, by PLAIN, and here there is ANONYMOUS only"),
        (["PLAIN"], "ANONYMOUS", b"", "it offers ANONYMOUS, and here there is PLAIN only"),
        (["PLAIN"], "", b"", "it names no mechanism, and here there is PLAIN"),
        (["PLAIN"], "PLAIN", b"alice", "a PLAIN message that cannot be read"),
        (["PLAIN"], "PLAIN", b"bob\0alice\0x", "a user that wants to act as another one"),
        (["PLAIN"], "PLAIN", b"\0\xff\0x", "a name or password that is no UTF-8"),
        (["PLAIN"], "PLAIN", b"\0\0x", "an empty name or password"),
        (["PLAIN"], "PLAIN", b"\0alice\0", "an empty name or password"),
        (["EXTERNAL"], "EXTERNAL", b"bob", "a user that wants to act as another one than its certificate's"),
        (["SCRAM-SHA-256"], "SCRAM-SHA-256", b"p=tls-unique,,n=alice,r=x", "channel binding was not offered"),
    ],
)  # fmt: skip
def test_a_refusal_says_why(offered: Sequence[str], chosen: str, data: bytes, reason: str) -> None:
    sasl = server(*offered)
    answer = sasl.received(frame(init_frame(chosen, data, None)))
    assert isinstance(answer, bytes)
    assert frame(answer) == SaslFrame(code=OUTCOME, outcome=AUTHENTICATION_FAILED)
    assert sasl.failure == reason
    assert sasl.user is None
    assert not sasl.is_guess


def test_a_certificate_without_a_name_is_refused() -> None:
    def nobody() -> str:
        raise SaslError("a certificate with no CN")

    sasl = server("EXTERNAL", user=nobody)
    sasl.received(frame(init_frame("EXTERNAL", b"", None)))
    assert (sasl.user, sasl.failure) == (None, "a certificate with no CN")


@pytest.mark.parametrize("name", ["anonymous", "*"])
def test_nobody_says_that_it_is_whom_policy_means_by_a_name_of_its_own(name: str) -> None:
    sasl = server("EXTERNAL", "PLAIN", user=lambda: name)
    sasl.received(frame(init_frame("EXTERNAL", b"", None)))
    assert (sasl.user, sasl.failure) == (None, f"user {name}: policy means others by that name")
    sasl = server("PLAIN")
    assert isinstance(sasl.received(frame(init_frame("PLAIN", b"\0" + name.encode() + b"\0x", None))), PasswordCheck)
    assert frame(sasl.checked(MARK)).outcome == AUTHENTICATION_FAILED
    assert sasl.user is None


def test_an_init_without_a_response_is_asked_for_it() -> None:
    sasl = server("PLAIN")
    assert sasl.received(frame(init_frame("PLAIN", None, None))) == challenge_frame(b"")
    answer = sasl.received(frame(response_frame(b"\0alice\0" + SECRET.encode())))
    assert answer == PasswordCheck(user="alice", password=SECRET.encode())


FRAMES = [
    init_frame("PLAIN", b"\0alice\0" + SECRET.encode(), "host"), init_frame("ANONYMOUS", b"", None),
    init_frame("SCRAM-SHA-256", b"n,,n=alice,r=x", None), init_frame("EXTERNAL", None, None),
    response_frame(b""), response_frame(b"c=biws,r=x,p=AAAA"), challenge_frame(b"x"), outcome_frame(OK),
    mechanisms_frame(["PLAIN"]),
]  # fmt: skip


@given(st.lists(st.sampled_from(FRAMES), max_size=5))
def test_nobody_gets_in_but_by_a_mechanism_that_is_offered(written: list[bytes]) -> None:
    sasl = server("SCRAM-SHA-256", "PLAIN")
    for each in written:
        if sasl.is_over:
            break
        answer = sasl.received(frame(each))
        if isinstance(answer, PasswordCheck):
            assert answer.password == SECRET.encode()
            sasl.checked(None)
    assert sasl.user is None


# What a stranger may have computed

MOST_CALLS = 60_000
"""Number of calls that suffices for a name of 255 characters and a password of 1,024, all of them different: some
milliseconds. A frame full of characters would take a million."""


@contextlib.contextmanager
def bounded_calls() -> Iterator[None]:
    """Fail if the body makes more than MOST_CALLS calls: of Python's functions and of C's alike."""
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)
    assert calls <= MOST_CALLS


LONG = [5400 * "\ufdfa", 8000 * "\u0300\u0316", 16_000 * "a", 300 * "\ufdfa", 256 * "é"]
"""Names that take long to prepare: NFKC makes 18 characters of the first one, and sorts those of the second."""


@pytest.mark.parametrize("form", ["\0{}\0x", "{}\0x\0x", "\0x\0{0}{0}{0}{0}{0}"])
@pytest.mark.parametrize("name", LONG)
def test_a_long_name_or_password_is_refused_before_it_is_looked_at(name: str, form: str) -> None:
    sasl = server("PLAIN")
    with bounded_calls():
        sasl.received(SaslFrame(code=INIT, mechanisms=("PLAIN",), data=form.format(name).encode()))
    assert sasl.failure is not None
    assert sasl.failure.startswith("a name or password of more than ")


@pytest.mark.parametrize("name", LONG)
def test_a_long_name_is_refused_by_scram_before_it_is_looked_at(name: str) -> None:
    sasl = server("SCRAM-SHA-256")
    with bounded_calls():
        sasl.received(SaslFrame(code=INIT, mechanisms=("SCRAM-SHA-256",), data=f"n,,n={name},r=x".encode()))
    assert sasl.failure == "a name or password of more than 255 characters"


def test_a_scram_message_of_very_many_attributes_is_refused_before_they_are_read() -> None:
    sasl = server("SCRAM-SHA-256")
    with bounded_calls():
        message = b"n,,n=alice,r=x" + 8000 * b","
        sasl.received(SaslFrame(code=INIT, mechanisms=("SCRAM-SHA-256",), data=message))
    assert sasl.failure == "a SCRAM message that cannot be read"


PASSWORD = "".join(map(chr, range(0x4E00, 0x4E00 + 1024)))
"""A password that takes as long to prepare as one can: as long as it may be, no character twice."""


@pytest.mark.parametrize("text", [255 * "é", 254 * "a" + "é", 14 * "\ufdfa"])
def test_a_name_of_as_many_characters_as_one_may_have_is_taken(text: str) -> None:
    sasl = server("PLAIN")
    with bounded_calls():
        answer = sasl.received(frame(init_frame("PLAIN", f"{text}\0{text}\0{PASSWORD}".encode(), None)))
    assert isinstance(answer, PasswordCheck)


# Frames


def with_mechanisms(code: int, count: int) -> bytes:
    """A frame with an array of empty symbols."""
    data = b"\xf0" + (count + 5).to_bytes(4, "big") + count.to_bytes(4, "big") + b"\xa3" + bytes(count)
    body = b"\x00\x53" + bytes([code]) + b"\xd0" + (len(data) + 4).to_bytes(4, "big") + b"\0\0\0\1" + data
    return (8 + len(body)).to_bytes(4, "big") + b"\2\1\0\0" + body


@pytest.mark.parametrize(("code", "count"), [(INIT, 1), (INIT, 16_000), (MECHANISMS, 65), (MECHANISMS, 16_000)])
def test_a_frame_with_more_mechanisms_than_it_may_have_is_refused(code: int, count: int) -> None:
    with bounded_calls(), pytest.raises(SaslError, match="mechanism"):
        split_frame(with_mechanisms(code, count))


def test_a_server_may_offer_64_mechanisms() -> None:
    assert frame(with_mechanisms(MECHANISMS, 64)).mechanisms == 64 * ("",)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (mechanisms_frame(["PLAIN", "X"]), SaslFrame(code=MECHANISMS, mechanisms=("PLAIN", "X"))),
        (write(0x40, [symbol("PLAIN")], kind=1), SaslFrame(code=MECHANISMS, mechanisms=("PLAIN",))),
        (write(0x41, [symbol("X"), b"x", "host"], kind=1), SaslFrame(code=INIT, mechanisms=("X",), data=b"x")),
        (init_frame("X", None, None), SaslFrame(code=INIT, mechanisms=("X",))),
        (response_frame(300 * b"x"), SaslFrame(code=RESPONSE, data=300 * b"x")),
        (challenge_frame(b""), SaslFrame(code=CHALLENGE, data=b"")),
        (write(0x44, [ubyte(1)], kind=1), SaslFrame(code=OUTCOME, outcome=1)),
        (outcome_frame(OK, b"v"), SaslFrame(code=OUTCOME, outcome=OK, data=b"v")),
    ],
)
def test_frames_are_read_as_they_were_written(data: bytes, expected: SaslFrame) -> None:
    assert frame(data) == expected
    assert split_frame(data[:-1]) is None
    assert split_frame(data + b"more") == (expected, len(data))


@given(st.sampled_from(FRAMES), st.integers(0, 60), st.binary(max_size=4))
def test_spoilt_frames_are_read_or_refused(good: bytes, at: int, spoilt: bytes) -> None:
    data = good[:at] + spoilt + good[at + len(spoilt) :]
    with contextlib.suppress(SaslError):
        split_frame(data)


def test_what_holds_a_secret_does_not_show_it() -> None:
    held = frame(init_frame("PLAIN", b"\0alice\0" + SECRET.encode(), None))
    check = PasswordCheck(user="alice", password=SECRET.encode())
    client = SaslClient("PLAIN", "alice", SECRET, "host", "nonce")
    keys = Accounts().account("alice", "SCRAM-SHA-256").keys
    for each in (held, check, client, keys):
        assert SECRET not in repr(each)
    assert repr(keys) == "ScramKeys(mechanism='SCRAM-SHA-256', iterations=4096)"
