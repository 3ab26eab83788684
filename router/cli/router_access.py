"""Reaching a router: one set of options for address, user and TLS, and the connection that they describe.

@click.command()
@access_options
def command(access: RouterAccess) -> None:
    connection = access.connect()
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import IO, Any, Final, TypeVar

import attrs
import click
from proton import ProtonException, SSLDomain, SSLException, SSLUnavailable, Url
from proton.reactor import Container
from proton.utils import BlockingConnection

from mesh_config.usable_hosts import EXPECTED, host_fault
from router.cli.close_timeout_connection import CloseTimeoutConnection
from router.cli.connection_failure_words import Credentials, failed_connection
from router.cli.did_you_mean import HintingChoice
from router.cli.errors import CommandError, say_warning_once, unreadable
from router.cli.interrupts import interrupts_held_back
from router.cli.options import NAME, UTF8, is_given, is_utf8, timeout_option
from router.core.errors import LocalError
from router.core.terminal_escaping import escaped, shell_word, url_without_password
from router.security.bounded_file import check_bounded

DEFAULT_URL: Final = "amqp://127.0.0.1:5672"
DEFAULT_TIMEOUT_S: Final = 5.0

SCHEMES: Final = ("amqp", "amqps")
MAX_PORT: Final = 65535
MOST_PASSWORD_BYTES: Final = 4096
MECHANISMS: Final = (
    *("ANONYMOUS", "PLAIN", "EXTERNAL", "SCRAM-SHA-1", "SCRAM-SHA-224", "SCRAM-SHA-256", "SCRAM-SHA-384"),
    *("SCRAM-SHA-512", "GSSAPI", "GSS-SPNEGO", "DIGEST-MD5", "CRAM-MD5", "LOGIN", "XOAUTH2", "OAUTHBEARER"),
)
"""SASL mechanisms that Cyrus SASL has, with all of its plugins."""
WITH_PASSWORD: Final = tuple(
    each for each in MECHANISMS if each not in ("ANONYMOUS", "EXTERNAL", "GSSAPI", "GSS-SPNEGO")
)
"""Mechanisms for which a user needs a password, or a token."""
ASK_FOR_IT: Final = "-"
"""File of a password that is asked for."""
DEFAULT_PORTS: Final = {"amqp": 5672, "amqps": 5671}

REST_OF_URL: Final = re.compile(r"([^/@]*@)?(\[[^\[\]/@]+\]|[^\[\]:/@]+)(:-?\w+)?(/.*)?")
"""User and password, host, port and path. Proton takes a host that it doesn't find there for the own machine."""
NO_ADDRESS: Final = "{} is no address of AMQP: amqp://HOST:PORT is expected, or amqps://HOST:PORT for TLS"

ANONYMOUS: Final = MECHANISMS[0]
NOT_ASKED: Final = "{url} has let user {user} in as anonymous: it does not authenticate clients{unless}"
WITHOUT_ONE: Final = ", or only those with a password (--password-file)"

Command = TypeVar("Command", bound=Callable[..., Any])


class UnreachableError(Exception):
    """No router answers there, or it refused the connection; the message is for the operator."""


@attrs.frozen
class RouterAccess:
    """Place of a router, and as whom to come to it."""

    url: str = DEFAULT_URL
    """`amqp://HOST:PORT`, or `amqps` for TLS; may hold user and password."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Maximum time for the connection, and for each answer."""
    vhost: str | None = None
    """Virtual host to come to; None for the host in the URL."""
    user: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    password_file: str | None = None
    """File from which the password was read; `-` for standard input."""
    ca: str | None = None
    """File with the authorities that are trusted; None for those of the system."""
    certificate: str | None = None
    """File with an own certificate, and its key unless `key` names another file."""
    key: str | None = None
    is_unverified: bool = False
    """Encrypt without asking who the router is."""
    sasl: str | None = None
    """The only SASL mechanism to be used."""

    @property
    def shown(self) -> str:
        """The address as it is shown: without a password."""
        return escaped(url_without_password(self.url))

    @property
    def suffix(self) -> str:
        """Options to add to a command so that it reaches the same router; empty for the default."""
        url, user, file = self._apart()
        options = [("--url", url, DEFAULT_URL), ("--vhost", self.vhost, None), ("--user", user, None)]
        options += [("--password-file", file, None), ("--ca", self.ca, None)]
        options += [("--certificate", self.certificate, None), ("--key", self.key, None)]
        options += [("--sasl", self.sasl, None)]
        words = [f" {name} {shell_word(value)}" for name, value, default in options if value not in (default, None)]
        return "".join([*words, " --insecure" if self.is_unverified else ""])

    def _apart(self) -> tuple[str | None, str | None, str | None]:
        """Take a password out of the URL, for a command that is shown. Returns: URL, user, and file of the password."""
        url = Url(self.url)  # type: ignore[no-untyped-call]
        if not url.password:
            return self.url, self.user, self.password_file
        scheme, separator, rest = self.url.rpartition("://")
        user = url.username or self.user
        return f"{scheme}{separator}{rest.partition('@')[2]}", user, ASK_FOR_IT if user else None

    def connect(self, *, container: str | None = None, silence_s: float | None = None) -> BlockingConnection:
        """Open a connection.

        Args:
            container: id to come by; None for a new one.
            silence_s: seconds without a sign of life after which it is lost; None for no bound. Only for a connection
                whose events pass all the time.
        Raises: UnreachableError when there is none within the timeout.
        """
        url, tried = Url(self.url, defaults=False), self.shown  # type: ignore[no-untyped-call]
        try:
            if url.port is None:
                url.port = DEFAULT_PORTS.get(url.scheme or "amqp", DEFAULT_PORTS["amqp"])
                tried += f" (port {url.port})"
            options: dict[str, Any] = {"allow_insecure_mechs": True, "virtual_host": self.vhost}
            options["container_id"] = container or new_container_id()
            if self.user is not None:
                options |= {"user": self.user, "password": self.password or ""}
            if self.sasl is not None:
                options["allowed_mechs"] = self.sasl
            with interrupts_held_back():  # proton's domains of TLS that are half made can't be freed
                if url.scheme == "amqps":
                    options |= {"ssl_domain": self._tls(), "sni": url.host}
                options["container"] = Container()
            found = CloseTimeoutConnection(url, timeout=self.timeout_s, reconnect=False, heartbeat=silence_s, **options)
        except (ProtonException, OSError, ValueError) as error:
            raise UnreachableError(failed_connection(tried, url.host or "", error, self._credentials(url))) from error
        user = url.username or self.user  # as proton takes them
        if user and self.sasl is None and _mechanism(found) == ANONYMOUS:
            unless = "" if self.password or url.password else WITHOUT_ONE
            say_warning_once(NOT_ASKED.format(url=self.shown, user=user, unless=unless))
        return found

    def _credentials(self, url: Url) -> Credentials:
        user = url.username or self.user
        return Credentials(
            user=escaped(user) if user else None,
            has_password=bool(self.password or url.password),
            has_certificate=self.certificate is not None,
            mechanism=self.sasl,
            needs_password=self.sasl is None or self.sasl in WITH_PASSWORD,
            is_encrypted=url.scheme == "amqps",
        )

    def _tls(self) -> SSLDomain:
        """Raises: UnreachableError when a file can't be used."""
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        used = self.ca
        for what, path in (("ca", self.ca), ("certificate", self.certificate), ("key", self.key)):
            if path is not None:
                try:
                    check_bounded(path)
                except LocalError as error:
                    raise UnreachableError(f"{error} (--{what})") from error
        try:
            if self.ca is not None:
                domain.set_trusted_ca_db(self.ca)
            if self.certificate is not None:
                used = self.certificate
                domain.set_credentials(self.certificate, self.key or self.certificate, None)
            verification = SSLDomain.ANONYMOUS_PEER if self.is_unverified else SSLDomain.VERIFY_PEER_NAME
            domain.set_peer_authentication(verification)
        except (SSLException, SSLUnavailable) as error:
            expected = "PEM is expected" if used == self.certificate else "certificates in PEM are expected"
            if used is not None and used == self.certificate and self.key is None:
                expected += ", and its key in the same file, or where --key says"
            elif used is not None and used == self.certificate:
                expected += f", and {self.key} must be its key"
            raise UnreachableError(f"{used}: not usable for TLS, {expected} ({error})") from error
        return domain


def _mechanism(connection: BlockingConnection) -> str | None:
    """SASL mechanism by which a connection was opened; None where none was used."""
    transport = connection.conn.transport if connection.conn is not None else None
    return transport.sasl().mech if transport is not None else None


def _checked_url(ctx: click.Context | None, param: click.Parameter | None, value: str) -> str:
    shown = url_without_password(value)
    if not value.strip("/") or not is_utf8(value):
        raise click.BadParameter(escaped(NO_ADDRESS.format(shown)), ctx=ctx, param=param)
    scheme, separator, rest = value.rpartition("://")
    if scheme in ("http", "https"):
        said = (
            f"{shown} is an address of HTTP, which is for browsers and metrics; expected that of a listener for"
            " clients, amqp://HOST:PORT, or amqps://HOST:PORT for TLS"
        )
        raise click.BadParameter(said, ctx=ctx, param=param)
    if (separator and scheme not in SCHEMES) or not REST_OF_URL.fullmatch(rest):
        raise click.BadParameter(NO_ADDRESS.format(shown), ctx=ctx, param=param)
    try:
        url = Url(value)  # type: ignore[no-untyped-call]
        host, port = url.host, url.port
    except ValueError as error:
        reason = f" ({error})" if shown == value else ""  # which may quote a part of the password
        raise click.BadParameter(f"{NO_ADDRESS.format(shown)}{reason}", ctx=ctx, param=param) from error
    if fault := host_fault(host):
        said = f"the host of {shown} {fault}; expected {EXPECTED}, as amqp://HOST:PORT"
        raise click.BadParameter(escaped(said), ctx=ctx, param=param)
    if port is not None and not 0 < port <= MAX_PORT:
        said = f"the port of {shown} is {port:d}; expected one from 1 to {MAX_PORT}, as amqp://HOST:PORT"
        raise click.BadParameter(escaped(said), ctx=ctx, param=param)
    return value


def new_container_id() -> str:
    """Container id of a client of the command line, unlike that of any other one."""
    return f"amqp-mesh-{os.getpid()}-{secrets.token_hex(4)}"


def _password(path: str | None) -> str | None:
    """The password in a file: its first line; of standard input for `-`, asked for on a terminal.

    Raises: CommandError.
    """
    if path is None:
        return None
    try:
        if path != ASK_FOR_IT:
            with open(path, "rb") as file:
                line = _first_line(file)
        elif sys.stdin.isatty():
            asked: str = click.prompt("Password", hide_input=True, err=True)
            return asked
        else:
            # Nothing beyond the line is read: what follows may be the body of a message.
            line = _first_line(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))
        if len(line) > MOST_PASSWORD_BYTES:
            raise CommandError(f"{path}: a first line of more than {MOST_PASSWORD_BYTES} bytes is no password")
        return line.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError):
            raise unreadable(error, path, option="--password-file") from error
        raise CommandError(f"{path}: no password in UTF-8") from error


def _first_line(file: IO[bytes]) -> bytes:
    """The first line of a file, which may have no end, such as a device; without the end of the line, `CR LF` too."""
    return file.readline(MOST_PASSWORD_BYTES + 1).removesuffix(b"\n").removesuffix(b"\r")


_OPTIONS: Final = (
    click.option(
        "--url",
        default=DEFAULT_URL,
        show_default=True,
        envvar="AMQP_MESH_URL",
        show_envvar=True,
        callback=_checked_url,
        help="Client listener of a router; `amqps://HOST:PORT` for TLS.",
    ),
    click.option(
        "--user", envvar="AMQP_MESH_USER", show_envvar=True, metavar="NAME", type=NAME, help="User to authenticate as."
    ),
    click.option(
        "--password-file",
        metavar="FILE",
        envvar="AMQP_MESH_PASSWORD_FILE",
        show_envvar=True,
        help="File whose first line is the password; `-` prompts for it, or reads a line of standard input.",
    ),
    click.option(
        "--ca",
        metavar="FILE",
        envvar="AMQP_MESH_CA",
        show_envvar=True,
        help="CA certificates (PEM) to check the router's certificate; by default those of the system.",
    ),
    click.option(
        "--certificate",
        metavar="FILE",
        envvar="AMQP_MESH_CERTIFICATE",
        show_envvar=True,
        help="Client certificate (PEM), for a router that requests one.",
    ),
    click.option(
        "--key",
        metavar="FILE",
        envvar="AMQP_MESH_KEY",
        show_envvar=True,
        help="Private key (PEM) of the client certificate, if it is in a separate file.",
    ),
    click.option(
        "--insecure", is_flag=True, help="Encrypt, but don't verify the router's certificate: only for tests."
    ),
    click.option(
        "--sasl",
        metavar="MECHANISM",
        envvar="AMQP_MESH_SASL",
        show_envvar=True,
        type=HintingChoice(MECHANISMS, case_sensitive=False),
        help="Use this SASL mechanism and no other, such as SCRAM-SHA-256.",
    ),
    click.option(
        "--vhost",
        type=UTF8,
        envvar="AMQP_MESH_VHOST",
        show_envvar=True,
        help="Virtual host to connect to.  [default: the host in the URL]",
    ),
    timeout_option,
)


def access_options(command: Command) -> Command:
    """Give a command the options of a connection, which come to it as one argument, `access`."""
    return _with_options(command, _OPTIONS)


def access_options_beside_url(command: Command) -> Command:
    """Add the options of access to a command with the argument `url`, which becomes a part of `access`."""
    return _with_options(command, _OPTIONS[1:])


def access_options_beside_urls(command: Command) -> Command:
    """Add the options of access to a command with the argument `urls`: it gets `accesses`, one for each."""
    return _with_options(command, _OPTIONS[1:])


def _check_tls(urls: Sequence[str]) -> None:
    """Refuse options of TLS where nothing is encrypted: whoever gives one means it. Raises: UsageError."""
    if not any(url.startswith("amqps://") for url in urls):
        for name in ("ca", "certificate", "key", "insecure"):
            if is_given(name):
                shown = escaped(url_without_password(urls[0]))
                raise click.UsageError(
                    f"--{name} goes with TLS, which {shown} does without: expected amqps://HOST:PORT"
                )


def _with_options(command: Command, options: Sequence[Callable[[Any], Any]]) -> Command:
    @wraps(command)
    def called(
        *args: Any,
        user: str | None,
        password_file: str | None,
        ca: str | None,
        certificate: str | None,
        key: str | None,
        insecure: bool,
        sasl: str | None,
        vhost: str | None,
        timeout: float,
        **others: Any,
    ) -> Any:
        if password_file is not None and user is None:
            raise click.UsageError("--password-file goes with --user")
        if key is not None and certificate is None:
            raise click.UsageError("--key goes with --certificate")
        urls: tuple[str, ...] | None = others.pop("urls", None)
        every = [_checked_url(None, None, each) for each in (urls if urls is not None else (others.pop("url"),))]
        _check_tls(every)
        access = RouterAccess(
            url=every[0],
            timeout_s=timeout,
            vhost=vhost,
            user=user,
            password=_password(password_file),
            password_file=password_file,
            ca=ca,
            certificate=certificate,
            key=key,
            is_unverified=insecure,
            sasl=sasl,
        )
        if urls is None:
            return command(*args, access=access, **others)
        return command(*args, accesses=tuple(attrs.evolve(access, url=url) for url in urls), **others)

    for option in reversed(options):
        called = option(called)
    return called  # type: ignore[return-value]  # click adds its parameters to the function itself
