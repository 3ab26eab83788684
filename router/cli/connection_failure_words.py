"""Words of proton about a lost or refused connection, in words for an operator: what happened, and what to do."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Final

import attrs

from mesh_config.usable_hosts import failure_words

CONDITION: Final = re.compile(r"Condition\('(?P<name>[^']*)', (?P<quote>['\"])(?P<text>.*?)(?P=quote)[,)]", re.DOTALL)

GONE: Final = (
    "connection aborted",
    "Connection reset by peer",
    "Broken pipe",
    "Disconnected",
    "disconnected: unknown",
    "closed by peer",
)
"""Words of proton when the other end of TCP ended without a word of AMQP."""

NO_MECHANISM: Final = "no mechanism available"
"""Words of Cyrus when no mechanism that is offered can be used with what there is."""
NOT_BEGUN: Final = "Authentication failed [mech=none]"
"""Words of proton when no mechanism was begun: alone, when none that is offered may be used; else those of Cyrus, which
could not begin one, go before them."""
OF_CYRUS: Final = re.compile(r"SASL\(-?\d+\): (?P<words>.*)", re.DOTALL)
OF_KERBEROS: Final = re.compile(
    r"GSSAPI Error: +(?P<words>.*?)(?: \(Authentication failed \[mech=\S*\]\))?$", re.DOTALL
)
NO_TICKET: Final = re.compile("no credentials|credentials cache|no kerberos credentials|ticket expired", re.IGNORECASE)
"""Words of Kerberos when there is no valid ticket here, and no key to get one."""
UNKNOWN_SERVICE: Final = "not found in Kerberos database"
OF_TICKETS: Final = ("GSSAPI", "GSS-SPNEGO")
"""Mechanisms of Kerberos tickets."""

UNVERIFIED: Final = "certificate verify failed"
NUMERIC: Final = (
    "a certificate can't be checked against the numeric host of --url, whatever names it has, since the client library"
    " compares host names only: write the router's host name there"
)
"""Words for a numeric host where TLS has failed since proton finds it in no certificate."""
WORDS: Final = (
    (
        UNVERIFIED,
        "its certificate has expired, is not signed by an authority that is trusted (--ca), or is of another name",
    ),
    ("alert certificate required", "its listener wants a certificate of who comes: --certificate, and --key"),
    ("alert certificate expired", "the certificate of --certificate has expired"),
    ("alert certificate revoked", "the certificate of --certificate is revoked"),
    ("alert unknown ca", "it doesn't trust the authority of the certificate of --certificate"),
    ("alert bad certificate", "it refuses the certificate of --certificate"),
    (
        "alert handshake failure",
        "TLS could not be agreed on: it wants a certificate of who comes (--certificate, --key), or other ciphers",
    ),
    ("alert protocol version", "it takes only other versions of TLS"),
    ("SSL Failure: Unknown error", "TLS could not be agreed on; is it a listener for TLS?"),
    ("wrong version number", "it does not speak TLS there: amqp:// is for a listener in the clear"),
    ("protocol header got: AMQP TLS", "it requires TLS there: use amqps:// in --url"),
    (
        "Expected SASL protocol header: no protocol header found",
        "it speaks TLS there (amqps://), or no AMQP, or takes no more connections",
    ),
    ("Unknown protocol ['AMQP", "it speaks another version of AMQP there, not 1.0"),
    ("Unknown protocol [", "it speaks another protocol there, not AMQP"),
    (NO_MECHANISM, "it offers no SASL mechanism for that; --user and --password-file, or --certificate?"),
    (
        NOT_BEGUN,
        (
            "it offers no SASL mechanism that may be used here: is --user or --certificate needed, or with a Kerberos"
            " ticket --sasl GSSAPI?"
        ),
    ),
    ("Authentication failed [mech=EXTERNAL]", "the user of the certificate of --certificate may not come in there"),
    ("Authentication failed [mech=GSS", "it refuses the Kerberos ticket, or its user may not come in there"),
    ("Authentication failed", "user or password is wrong, or the user may not come in there"),
)
"""Words of proton, each with what to say instead."""


HTTP: Final = (
    "it speaks HTTP there, not AMQP: the port of a listener for clients is expected, often 5672; that of `http` is for "
    "browsers and metrics"
)
SILENT: Final = (
    "nothing has come from there in time (--timeout): no way leads there, it hangs, or it is no listener of AMQP,"
    " perhaps one of HTTP"
)
REFUSED: Final = (
    "Connection refused: nothing listens there. A router that is drained takes no connection either: ask through "
    "another router"
)
ALL: Final = (
    ("['HTTP/", HTTP),
    ("timed out: Opening connection", SILENT),
    ("Connection refused to all addresses", REFUSED),
)
"""Words of proton that say no more than what is said instead."""


@attrs.frozen(kw_only=True)
class Credentials:
    """User, password and certificate of a client, as far as there are such, and the mechanism that it is to use."""

    user: str | None
    has_password: bool
    has_certificate: bool
    mechanism: str | None
    """The only one that may be used; None for any."""
    needs_password: bool
    """Whether that goes by a password, or may."""

    is_encrypted: bool
    """Whether it comes by TLS."""

    def fault(self, said: str) -> str:
        """Find out what is missing when SASL has failed with the words *said*; empty when that is not known."""
        if (kerberos := OF_KERBEROS.search(said)) is not None:
            return _ticket_words(kerberos["words"])
        if NOT_BEGUN not in said:
            return ""
        if (lacked := self._lacked()) and (self.mechanism == "EXTERNAL" or NO_MECHANISM in said):
            return lacked
        if self.mechanism is None:
            return self._other_way() if NO_MECHANISM in said else ""
        if OF_CYRUS.search(said) is None:
            how = ", or not without TLS (amqps://)" if self.mechanism == "PLAIN" and not self.is_encrypted else ""
            return f"it doesn't offer {self.mechanism} (--sasl){how}"
        if NO_MECHANISM not in said or self.mechanism == "EXTERNAL":  # which is no plugin
            return ""
        package = "libsasl2-modules-gssapi-mit" if self.mechanism in OF_TICKETS else "libsasl2-modules"
        return f"Cyrus SASL has no {self.mechanism} on this machine (Debian: {package})"

    def _other_way(self) -> str:
        """Say what was given in vain, and what may do; empty when nothing was given, so that nothing is known."""
        if self.has_certificate and self.has_password:
            return "it offers no SASL mechanism for a password or a certificate: --sasl GSSAPI, with a Kerberos ticket?"
        if self.has_certificate:
            return "it offers no SASL mechanism for a certificate (EXTERNAL): --user and --password-file?"
        how = "" if self.is_encrypted else ", or none without TLS (amqps://)"
        return f"it offers no SASL mechanism for a password{how}: --certificate?" if self.has_password else ""

    def _lacked(self) -> str:
        """Options that the client would have to give, in words; empty when it has given all."""
        if self.mechanism == "EXTERNAL" and not self.has_certificate:
            return f"EXTERNAL needs --certificate{'' if self.is_encrypted else ', and TLS (amqps://)'}"
        if not self.needs_password or self.has_password or (self.mechanism is None and self.has_certificate):
            return ""
        if self.user:
            return f"user {self.user}: no password given (--password-file)"
        return f"{self.mechanism} needs --user and --password-file" if self.mechanism else ""


def _ticket_words(said: str) -> str:
    """Words for *said*, an error of Kerberos, to whoever has no ticket, or none for that router."""
    inner = re.search(r"\((?P<words>.*)\)$", said, re.DOTALL)
    words = inner["words"] if inner is not None else said
    if NO_TICKET.search(said):
        return f"there is no Kerberos ticket here: kinit gets one ({words})"
    if UNKNOWN_SERVICE in said:
        return f"Kerberos knows no router of that host: dial the host of its principal ({words})"
    return f"Kerberos gives no ticket for it ({words})"


def failed_connection(shown: str, host: str, error: BaseException, credentials: Credentials) -> str:
    """Words for a connection that was not opened.

    Args:
        shown: the address that was tried.
        host: its host.
        error: of proton, or of the system.
        credentials: with which it was tried.
    """
    text = str(error)
    is_answered = "'amqp:" in text or any(words in text for words, _ in (*WORDS, ALL[0]))
    said = credentials.fault(plain(error)) or reason(error)
    if isinstance(error, socket.gaierror):
        said = failure_words(error, host)
    elif UNVERIFIED in text and is_numeric(host):
        said = f"{NUMERIC}; or {said}"
    return f"{'no connection to' if is_answered else 'no router answers at'} {shown}: {said}"


def is_numeric(host: str) -> bool:
    """Whether a host of a URL is an address of IP, and no name."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def reason(error: BaseException) -> str:
    """Words of a proton error, without the names of its classes; those that say little in plainer ones."""
    said = plain(error)
    for text, words in ALL:
        if text in said:
            return words
    for text, words in WORDS:
        if text in said:
            return f"{words} ({said})"
    return said


def plain(error: BaseException) -> str:
    """Words of a proton error as they are, without the names of its classes."""
    text = str(error)
    found = CONDITION.search(text)
    return found["text"] if found else text or type(error).__name__


def is_gone(error: BaseException) -> bool:
    """Whether the other end went away without a word, as the TCP connection of a killed process does."""
    text = str(error)
    return any(word in text for word in GONE)
