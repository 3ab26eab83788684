"""Check of the files that settings name, before a router reads them: certificates, keys, lists, users and passwords."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
import structlog

from mesh_config.check_vhosts import listeners_of
from mesh_config.findings import Finding, Severity, Step, nearest
from mesh_config.loader import Document, chosen, with_mesh
from mesh_config.models import HttpSettings, ListenerSettings, Mechanism, RouterSettings
from mesh_config.user_names import RESERVED_NAMES
from mesh_config.yaml_text import Place
from router.core.errors import LocalError
from router.http_extra import http_service
from router.security.credential_store import CredentialStore
from router.security.users import read_table

OF_USERS: Final = "a file that `amqp-mesh user add` has written"
STILL_GOOD: Final = "a certificate that has not ended"
OTHERS_KNOW: Final = frozenset({Mechanism.EXTERNAL, Mechanism.GSSAPI})
"""Mechanisms whose users stand in no file of the router."""
MOST_HINTS: Final = 10
"""Unknown users that are compared with all known ones: where there are more, the wrong file is named."""


def referenced_file_findings(document: Document, router_id: str | None = None) -> list[Finding]:
    """Find what is wrong with the files that the routers of a settings file name.

    Args:
        document: the settings, in which nothing else is wrong.
        router_id: of the only router to look at; None for all.
    Raises:
        SettingsError: there is no such router.
    """
    routers = document.mesh.routers
    ids = list(routers) if router_id is None else [chosen(document.file, routers, router_id)]
    found: list[Finding] = []
    for key in ids:
        told: set[str] = set()
        for steps, part in _parts(with_mesh(routers[key], document)):
            for severity, setting, fault, expected in _faults(part):
                if fault not in told:
                    told.add(fault)
                    place = document.place(key, *steps, *setting)
                    found.append(place.finding(fault, expected=expected, severity=severity))
        found += _unknown_users(routers[key], functools.partial(document.place, key))
        found += _missing_extra(routers[key], document.place(key, "http"))
    return found


def _missing_extra(router: RouterSettings, at: Place) -> Iterator[Finding]:
    """A finding for what the settings need and is not installed here."""
    if router.http.port is not None:
        try:
            http_service()
        except LocalError as error:
            yield at.finding(str(error), expected="the extra `http` where this router runs")


def _unknown_users(router: RouterSettings, at: Callable[..., Place]) -> Iterator[Finding]:
    """Users of groups that no file has by which clients of their virtual host say who they are."""
    users_of = functools.cache(lambda file: frozenset(read_table(file).lines))
    hints = iter(range(MOST_HINTS))
    for index, vhost in enumerate(router.vhosts):
        listeners = listeners_of(vhost, router)
        if any(mechanism in OTHERS_KNOW for each in listeners for mechanism in each.sasl):
            continue
        asking: list[ListenerSettings | HttpSettings] = [*listeners, router.http]
        files = list(dict.fromkeys(each.users_file for each in asking if each.users_file is not None))
        try:
            known = frozenset[str]().union(*map(users_of, files))
        except LocalError:  # told where the file is named
            continue
        for place, group in enumerate(vhost.groups):
            for number, user in enumerate(group.users):
                if files and user and user not in known and user not in RESERVED_NAMES:
                    yield at("vhosts", index, "groups", place, "users", number).finding(
                        f"no user `{user}` in {', '.join(files)}",
                        expected="a user that `amqp-mesh user add` has written there",
                        nearest=None if next(hints, None) is None else nearest(user, sorted(known)),
                        severity=Severity.WARNING,
                    )


def _parts(router: RouterSettings) -> Iterator[tuple[tuple[Step, ...], RouterSettings]]:
    """Each socket with its profile, and each profile without a socket: who reads all together learns of one fault.

    Returns: of each the steps to it, and a router with nothing else.
    """
    alone = attrs.evolve(router, listeners=(), connectors=(), http=HttpSettings(), tls=())
    profiles = {profile.name: profile for profile in router.tls}

    def part(profile: str | None, **socket: Any) -> RouterSettings:
        return attrs.evolve(alone, tls=(profiles[profile],) if profile is not None else (), **socket)

    for at, listener in enumerate(router.listeners):
        yield ("listeners", at), part(listener.tls, listeners=(listener,))
    for at, connector in enumerate(router.connectors):
        yield ("connectors", at), part(connector.tls, connectors=(connector,))
    if router.http.port is not None:
        yield ("http",), part(router.http.tls, http=router.http)
    used = {*(each.tls for each in router.listeners), *(each.tls for each in router.connectors), router.http.tls}
    for at, profile in enumerate(router.tls):
        if profile.name not in used:
            yield ("tls", at), part(profile.name)


def _faults(router: RouterSettings) -> Iterator[tuple[Severity, tuple[Step, ...], str, str]]:
    """Faults of the files of *router*, which has one socket at most.

    Returns: of each how grave it is, the setting of the socket that names the file, as far as it is known, what is
        wrong, and what was expected; empty where the fault says it.
    """
    sockets: list[ListenerSettings | HttpSettings] = [*router.listeners, router.http]
    users_files = [each.users_file for each in sockets if each.users_file is not None]
    try:
        store = CredentialStore(router, structlog.get_logger())
    except LocalError as error:
        fault = str(error)
        is_of_users = any(fault.startswith(f"{file}:") for file in users_files)
        expected = OF_USERS if is_of_users and "expected" not in fault else ""
        yield Severity.ERROR, ("users_file",) if is_of_users else (), fault, expected
        return
    for fault in store.unused.values():
        yield Severity.WARNING, (), fault, ""
    for each in store.unusable():
        yield Severity.ERROR, (), f"{each.subject}: {each.reason}", ""
    for certificate in store.certificates():
        if certificate.ends <= time.time():
            day = time.strftime("%F", time.gmtime(certificate.ends))
            fault = f"{certificate.words} ended on {day}"
            yield Severity.WARNING, (), fault, STILL_GOOD
