"""GSSAPI, by which a client proves with a Kerberos ticket who it is: both sides, without sockets.

What a ticket is worth is for MIT's library to say, through the package gssapi, which the extra `kerberos` installs.
Only who the client is comes of it: no security layer is offered, since TLS is there for that.

Source: RFC 4752, 3.1; RFC 4121.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from router.core.errors import LocalError

NO_LAYER: Final = b"\x01\x00\x00\x00"
"""Security layers that the server offers, as bits, and the most bytes that may be wrapped: none."""
CHOICE_BYTES: Final = 4
"""Size of the client's choice, bytes: a layer, and the bytes that it takes; the user to act as follows."""
MOST_WORDS: Final = 200
"""Characters of an error of the library, which may quote what the peer has written."""


def gssapi_library() -> Any:
    """The package gssapi.

    Raises:
        LocalError: it isn't there.
    """
    try:
        return importlib.import_module("gssapi")
    except ImportError as error:
        words = f"GSSAPI needs the extra `kerberos`: pip install '.[kerberos]' in a clone of its repository ({error})"
        raise LocalError(words) from None


def gss_words(error: Any) -> str:
    """An error of the library in words for the log."""
    minor = error.get_all_statuses(error.min_code, False) if error.min_code else ()
    words = "; ".join(minor or error.get_all_statuses(error.maj_code, True)) or "it failed"
    return "".join(char if char.isprintable() else "?" for char in words[:MOST_WORDS])


class KerberosService:
    """The service that a listener is, by the keys of its keytab."""

    def __init__(self, keytab: str | None, service: str, realm: str | None) -> None:
        """Look whether there are keys.

        Args:
            keytab: file of the keys; the system's when None.
            service: first part of the service's principal; the second one, the host, is any that has a key.
            realm: whose users are known by their names alone.
        Raises:
            LocalError: there are none, or the package gssapi isn't there; says which and why.
        """
        self.library = gssapi_library()
        self._keytab = keytab
        self._service = service
        self.realm = realm
        try:
            self.credentials()
        except self.library.exceptions.GSSError as error:
            where = f"keytab {keytab}" if keytab is not None else "the system's keytab (no `keytab` is set)"
            raise LocalError(f"{where} has no key of {service}: {gss_words(error)}") from None

    def credentials(self) -> Any:
        """The keys as the file has them now.

        Raises:
            GSSError: there are none.
        """
        name = self.library.Name(self._service, self.library.NameType.hostbased_service)
        store = {"keytab": self._keytab} if self._keytab is not None else None
        mechanisms = [self.library.MechType.kerberos]
        return self.library.Credentials(name=name, usage="accept", store=store, mechs=mechanisms)


class KerberosExchange:
    """One exchange. After each step there is a `challenge`, or it is over: there is a `user`, or a `failure`."""

    def __init__(self, service: KerberosService) -> None:
        self._service = service
        self._context: Any = None
        self._is_layer_offered = False
        self.challenge = b""
        self.user: str | None = None
        self.failure: str | None = None
        """Reason, for the log."""

    def step(self, data: bytes) -> None:
        """Take what the client has written. Reads files and computes for some milliseconds: call it in a thread."""
        try:
            self._step(data)
        except self._service.library.exceptions.GSSError as error:
            self.failure = f"Kerberos: {gss_words(error)}"

    def _step(self, data: bytes) -> None:
        if self._is_layer_offered:
            self._end(self._context.unwrap(data).message)
            return
        if self._context is None:
            self._context = self._service.library.SecurityContext(creds=self._service.credentials(), usage="accept")
            self._context.__DEFER_STEP_ERRORS__ = False  # the client would be told why alone, and the log nothing
        if not self._context.complete:
            token = self._context.step(data)
            if token or not self._context.complete:
                self.challenge = token or b""
                return
        elif data:
            self.failure = "Kerberos: a token after the last one"
            return
        self._is_layer_offered = True
        self.challenge = self._context.wrap(NO_LAYER, False).message

    def _end(self, choice: bytes) -> None:
        user = self._name()
        if len(choice) < CHOICE_BYTES or choice[0] != NO_LAYER[0]:
            self.failure = "Kerberos: a client that wants a security layer of SASL, and there is TLS for that"
        elif self._context.actual_flags & self._service.library.RequirementFlag.anonymity:
            self.failure = "Kerberos: a ticket that doesn't say whose it is"
        elif not user.isprintable():
            self.failure = "Kerberos: a name that cannot be printed"
        elif choice[CHOICE_BYTES:] not in (b"", user.encode(), str(self._context.initiator_name).encode()):
            self.failure = "a user that wants to act as another one than its ticket's"
        else:
            self.user = user

    def _name(self) -> str:
        principal = str(self._context.initiator_name)
        realm = self._service.realm
        return principal.removesuffix(f"@{realm}") if realm is not None else principal


class KerberosClientExchange:
    """A ticket by which this router authenticates: the client's side of one exchange.

    All of it reads files, and asks the KDC when there is no ticket yet: call it in a thread.
    """

    def __init__(self, keytab: str | None, principal: str | None, service: str, host: str) -> None:
        """Ask for nothing yet.

        Args:
            keytab: file of the principal's keys; None for those, or for tickets, that the environment names.
            principal: who this router is; None for whose keys come first.
            service: first part of the other side's principal,
            host: and the second.
        """
        self._keytab = keytab
        self._principal = principal
        self._service = f"{service}@{host}"
        self._context: Any = None
        self.is_server_known = False
        """Whether the other side has proved that it is the service, and both have settled that there is no security
        layer."""

    def answer(self, challenge: bytes | None) -> bytes:
        """Take what the server has written; None to begin. Returns: what to write.

        Raises:
            LocalError: there is no ticket, or the server is none; says why.
        """
        library = gssapi_library()
        try:
            if self._context is None:
                self._context = self._begin(library)
            if not self._context.complete:
                token: bytes | None = self._context.step(challenge)
                return token or b""
            offer = self._context.unwrap(challenge or b"").message
            if not self._context.actual_flags & library.RequirementFlag.mutual_authentication:
                raise LocalError("Kerberos: the other side has not proved who it is")
            if len(offer) != CHOICE_BYTES or not offer[0] & NO_LAYER[0]:
                raise LocalError("Kerberos: the other side wants a security layer of SASL, and there is TLS for that")
            self.is_server_known = True
            wrapped: bytes = self._context.wrap(NO_LAYER, False).message
            return wrapped
        except library.exceptions.GSSError as error:
            raise LocalError(f"Kerberos: {gss_words(error)}") from None

    def _begin(self, library: Any) -> Any:
        mechanism = library.MechType.kerberos
        name = library.Name(self._principal, library.NameType.kerberos_principal) if self._principal else None
        # Tickets stay in memory, those of each principal and keytab in a place of their own, and serve until they end.
        place = f"MEMORY:amqp-mesh {self._keytab} {self._principal}"
        store = {"client_keytab": self._keytab, "ccache": place} if self._keytab is not None else None
        credentials = library.Credentials(name=name, usage="initiate", store=store, mechs=[mechanism])
        context = library.SecurityContext(
            name=library.Name(self._service, library.NameType.hostbased_service),
            creds=credentials,
            usage="initiate",
            mech=mechanism,
            flags=library.RequirementFlag.mutual_authentication | library.RequirementFlag.integrity,
        )
        context.__DEFER_STEP_ERRORS__ = False
        return context
