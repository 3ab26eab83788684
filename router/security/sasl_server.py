"""The server's side of SASL: a state machine without sockets, clocks and chance.

It reads frames and answers them; where a password is to be checked, which takes long, it says so and waits to be told.
Why it is not proton's or Cyrus': docs/explanation/security.md#sasl-of-our-own.

Source: AMQP 1.0 part 5, 5.3; RFC 4422, 4505, 4616, 5802, 7677.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from mesh_config.user_names import ANONYMOUS_USER, RESERVED_NAMES
from router.security.kerberos import KerberosExchange
from router.security.sasl_frames import (
    AUTHENTICATION_FAILED,
    INIT,
    NAMES,
    OK,
    RESPONSE,
    SaslError,
    SaslFrame,
    challenge_frame,
    mechanisms_frame,
    outcome_frame,
)
from router.security.scram import HASHES, Account, ScramServer, prepare_name, prepare_password


class Accounts(Protocol):
    """Users with passwords."""

    def account(self, user: str, mechanism: str) -> Account:
        """Keys of a user, and their mark."""


@attrs.frozen(kw_only=True)
class PasswordCheck:
    """A password that is to be checked; then call `SaslServer.checked`."""

    user: str
    password: bytes = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class KerberosTokenCheck:
    """A Kerberos token that is to be checked: call `step` with it, then `SaslServer.stepped`."""

    step: Callable[[bytes], None]
    token: bytes = attrs.field(repr=False)


class SaslServer:
    """One exchange. `user` is set once it is over and went well, `failure` once it is over and did not."""

    def __init__(
        self,
        offered: Sequence[str],
        accounts: Accounts | None,
        certificate_user: Callable[[], str],
        nonce: str,
        kerberos: Callable[[], KerberosExchange] | None = None,
    ) -> None:
        """Begin with `greeting`.

        Args:
            offered: mechanisms, in order.
            accounts: for those with passwords.
            certificate_user: user that the peer's certificate stands for; raises SaslError when it stands for none.
            nonce: printable ASCII without a comma, never used before.
            kerberos: makes an exchange, for GSSAPI.
        """
        self._offered = tuple(offered)
        self._accounts = accounts
        self._certificate_user = certificate_user
        self._nonce = nonce
        self._new_exchange = kerberos
        self._kerberos: KerberosExchange | None = None
        self._scram: ScramServer | None = None
        self._is_challenged = False
        self.mechanism: str | None = None
        """Mechanism that was chosen."""
        self.user: str | None = None
        self.failure: str | None = None
        """Reason, for the log."""
        self.is_guess = False
        """Whether authentication failed in a way that somebody who tries passwords would see."""
        self.mark: bytes | None = None
        """Mark of the keys that the password was checked by; None before, and where there was none."""
        self._claimed = ""

    def greeting(self) -> bytes:
        """The mechanisms, which follow the protocol header."""
        return mechanisms_frame(self._offered)

    @property
    def is_over(self) -> bool:
        """Whether the outcome was written."""
        return self.user is not None or self.failure is not None

    def received(self, frame: SaslFrame) -> bytes | PasswordCheck | KerberosTokenCheck:
        """Take a frame of the client. Returns: what to write, or what is to be checked first."""
        try:
            if frame.code == INIT and self.mechanism is None:
                return self._begin(frame)
            if frame.code == RESPONSE and self.mechanism is not None and self._is_challenged:
                self._is_challenged = False
                return self._go_on(frame.data or b"")
            raise SaslError(f"{NAMES[frame.code]} is not due")
        except SaslError as error:
            return self._fail(str(error))

    def checked(self, mark: bytes | None) -> bytes:
        """Take the result of a check.

        Args:
            mark: of the keys that the password fits; None when it is wrong.
        Returns: what to write.
        """
        self.mark = mark
        return self._succeed(self._claimed) if mark is not None else self._fail_guess()

    def stepped(self) -> bytes:
        """The token was checked. Returns: what to write."""
        assert self._kerberos is not None, "it has checked the token"
        if self._kerberos.failure is not None:
            return self._fail(self._kerberos.failure)
        if self._kerberos.user is not None:
            return self._succeed(self._kerberos.user)
        self._is_challenged = True
        return challenge_frame(self._kerberos.challenge)

    def _begin(self, frame: SaslFrame) -> bytes | PasswordCheck | KerberosTokenCheck:
        (mechanism,) = frame.mechanisms[:1] or ("",)
        self.mechanism = mechanism
        if mechanism not in self._offered:
            self.mechanism = mechanism[:40]
            if not mechanism:
                raise SaslError(f"it names no mechanism, and here there is {self.words}")
            wanted = "a password, by " if mechanism in ("PLAIN", *HASHES) else ""
            raise SaslError(f"it offers {wanted}{mechanism[:40]}, and here there is {self.words} only")
        if mechanism in HASHES:
            self._scram = ScramServer(mechanism, self._nonce)
        if frame.data is None and mechanism != "ANONYMOUS":
            self._is_challenged = True
            return challenge_frame(b"")
        return self._go_on(frame.data or b"")

    def _go_on(self, data: bytes) -> bytes | PasswordCheck | KerberosTokenCheck:
        if self._scram is not None:
            return self._scram_step(self._scram, data)
        if self.mechanism == "PLAIN":
            return self._plain(data)
        if self.mechanism == "EXTERNAL":
            user = self._certificate_user()
            if data not in (b"", user.encode()) and prepare_name(data) != user:
                raise SaslError("a user that wants to act as another one than its certificate's")
            return self._succeed(user)
        if self.mechanism == "GSSAPI":
            assert self._new_exchange is not None, "who offers it has keys"
            self._kerberos = self._kerberos or self._new_exchange()
            return KerberosTokenCheck(step=self._kerberos.step, token=data)
        return self._let_in(ANONYMOUS_USER)

    def _plain(self, data: bytes) -> PasswordCheck:
        parts = data.split(b"\0", 3)
        if len(parts) != 3:
            raise SaslError("a PLAIN message that cannot be read")
        authzid, authcid, password = parts
        self._claimed = prepare_name(authcid)
        if authzid not in (b"", authcid) and prepare_name(authzid) != self._claimed:
            raise SaslError("a user that wants to act as another one")
        return PasswordCheck(user=self._claimed, password=prepare_password(password))

    def _scram_step(self, scram: ScramServer, data: bytes) -> bytes:
        assert self._accounts is not None, "who offers it has a file of users"
        if not scram.user:
            scram.read_first(data)
            self._claimed = scram.user
            self._is_challenged = True
            account = self._accounts.account(scram.user, self.mechanism or "")
            self.mark = account.mark
            return challenge_frame(scram.challenge(account.keys))
        answer = scram.verify(data)
        return self._succeed(scram.user, answer) if answer is not None else self._fail_guess()

    def _succeed(self, user: str, data: bytes | None = None) -> bytes:
        if user in RESERVED_NAMES:
            return self._fail(f"user {user}: policy means others by that name")
        return self._let_in(user, data)

    def _let_in(self, user: str, data: bytes | None = None) -> bytes:
        self.user = user
        return outcome_frame(OK, data)

    def _fail(self, reason: str) -> bytes:
        self.failure = reason
        return outcome_frame(AUTHENTICATION_FAILED)

    def _fail_guess(self) -> bytes:
        self.is_guess = True
        return self._fail(f"user {self._claimed}: no such user, or the password is wrong")

    @property
    def words(self) -> str:
        """The mechanisms that are offered, for the log."""
        return " ".join(self._offered) or "no mechanism"
