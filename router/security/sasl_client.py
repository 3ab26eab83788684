"""The client's side of SASL, for connections that a router makes: a state machine without sockets.

Source: AMQP 1.0 part 5, 5.3; RFC 4505, 4616, 4752, 5802, 7677.
"""

from __future__ import annotations

from typing import Final

from router.security.kerberos import KerberosClientExchange
from router.security.sasl_frames import (
    CHALLENGE,
    MECHANISMS,
    NAMES,
    OK,
    OUTCOME,
    SaslError,
    SaslFrame,
    init_frame,
    response_frame,
)
from router.security.scram import HASHES, ScramClient

_OUTCOMES: Final = {
    1: "it does not accept who this router says it is",
    2: "it has a fault",
    3: "it has a fault that lasts",
    4: "it has a fault for now",
}


class SaslClient:
    """One exchange, by one mechanism. `is_over` once it went well."""

    def __init__(
        self,
        mechanism: str,
        user: str,
        password: str | None,
        hostname: str,
        nonce: str,
        ticket: KerberosClientExchange | None = None,
    ) -> None:
        """Begin when the header was answered.

        Args:
            mechanism: the one to use.
            user: name for those with passwords.
            password: None for the others.
            hostname: that was dialled.
            nonce: printable ASCII without a comma, never used before.
            ticket: for GSSAPI.
        """
        self.mechanism = mechanism
        self._user = user
        self._password = password
        self._hostname = hostname
        self._has_begun = False
        self._scram = ScramClient(mechanism, user, password or "", nonce) if mechanism in HASHES else None
        self._ticket = ticket
        self.is_over = False

    def __repr__(self) -> str:
        """Show the mechanism, and nothing of the user or the password."""
        return f"<SaslClient {self.mechanism}>"

    def received(self, frame: SaslFrame) -> bytes:
        """Take a frame of the server. Returns: what to write.

        SCRAM computes for long, and GSSAPI may ask a KDC: call it in a thread.

        Raises:
            SaslError: it went wrong; says why.
            LocalError: it went wrong at this side, or there is no ticket for that server.
        """
        if frame.code == MECHANISMS and not self._has_begun:
            if self.mechanism not in frame.mechanisms:
                names = " ".join(name[:40] for name in frame.mechanisms[:20]) or "nothing"
                raise SaslError(f"the other side offers {names}, and not {self.mechanism}")
            self._has_begun = True
            return init_frame(self.mechanism, self._first(), self._hostname)
        if frame.code == CHALLENGE and self._has_begun:
            return response_frame(self._answer(frame.data or b""))
        if frame.code == OUTCOME and self._has_begun:
            self._end(frame)
            return b""
        raise SaslError(f"{NAMES[frame.code]} is not due")

    def _first(self) -> bytes:
        if self._scram is not None:
            return self._scram.first()
        if self._ticket is not None:
            return self._ticket.answer(None)
        if self.mechanism == "PLAIN":
            return f"\0{self._user}\0{self._password}".encode()
        return b"" if self.mechanism == "EXTERNAL" else b"amqp-mesh"

    def _answer(self, challenge: bytes) -> bytes:
        if self._ticket is not None:
            return self._ticket.answer(challenge)
        if self._scram is None or self._scram.is_server_known:
            return b""
        if challenge.startswith(b"v="):
            self._scram.verify(challenge)
            return b""
        return self._scram.answer(challenge)

    def _end(self, frame: SaslFrame) -> None:
        if frame.outcome != OK:
            reason = _OUTCOMES.get(frame.outcome, f"outcome {frame.outcome}")
            raise SaslError(f"the other side refuses {self.mechanism}: {reason}")
        if self._scram is not None and not self._scram.is_server_known:
            self._scram.verify(frame.data or b"")
        if self._ticket is not None and not self._ticket.is_server_known:
            raise SaslError("the other side lets this router in without having proved who it is")
        self.is_over = True
