"""Checks of links between the routers of a mesh: whether what both ends say lets the link come up."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import attrs

from mesh_config.check_router import Locate
from mesh_config.check_security import ANY_ROUTER, At, has_known_routers
from mesh_config.connector_matching import Link, dials_itself, is_loopback, is_same_host
from mesh_config.findings import Finding, Severity
from mesh_config.models import (
    PASSWORD_MECHANISMS,
    ClientCertificates,
    ListenerSettings,
    MeshSettings,
    Role,
    RouterSettings,
    TlsMode,
)


def link_findings(link: Link, mesh: MeshSettings, locate: Locate) -> Iterator[Finding]:
    """Findings about one link, at its connector.

    Args:
        link: a connector and the listener that it reaches.
        mesh: of both routers.
        locate: called with the key of a router and the steps to a setting.
    """
    place = functools.partial(locate, link.router, "connectors", link.index)
    there = f"the listener {link.listener.host}:{link.listener.port} of router `{link.target}`"
    is_certain = _is_certain(link, mesh.routers[link.target])
    if not is_certain and link.connector.to is None:
        there += " (where this connector seems to lead)"
    for finding in _findings(link, mesh, there, place):
        yield finding if is_certain else attrs.evolve(finding, severity=Severity.WARNING)


def _is_certain(link: Link, target: RouterSettings) -> bool:
    """Whether the connector certainly leads to that listener, and to nothing between: TLS may begin or end at a proxy.

    A connector without `to` may lead to any router that says no host, by its port alone.
    """
    host = link.connector.host
    if link.router == link.target and is_loopback(host):
        return True
    return any(known and is_same_host(host, known) for known in (target.host, link.listener.host))


def _findings(link: Link, mesh: MeshSettings, there: str, place: At) -> Iterator[Finding]:
    """Findings about one link, whose severity is right where it is certain that there is such a link."""
    if link.target == link.router:
        yield dials_itself(place(), link.router)
    elif link.is_between_routers:
        router, target = mesh.routers[link.router], mesh.routers[link.target]
        yield from _tls_findings(link, router, there, place)
        yield from _sasl_findings(link, there, place)
        yield from _neighbor_findings(link, mesh, there, place)
        yield from _name_findings(mesh, router, target, place)
        yield from _hello_findings(router, target, place)
        yield from _cost_findings(link, there, place)
    elif link.connector.role is Role.INTER_ROUTER:
        yield place().finding(
            f"{there} has the role `{link.listener.role}`, this connector `{link.connector.role}`",
            expected="one role at both ends",
            at=("role",),
        )


def _tls_findings(link: Link, router: RouterSettings, there: str, place: At) -> Iterator[Finding]:
    """Findings about TLS, or a certificate, at one end only."""
    connector, listener = link.connector, link.listener
    if connector.tls is None and listener.tls is not None and listener.tls_mode is TlsMode.REQUIRED:
        yield place("tls").finding(
            f"{there} requires TLS, and this connector has none", expected="`tls`, the name of a profile"
        )
    elif connector.tls is not None and listener.tls is None:
        yield place("tls").finding(
            f"{there} has no TLS, and this connector requires it", expected="TLS at both ends, or at neither"
        )
    elif connector.tls is not None and listener.client_certificates is ClientCertificates.REQUIRED:
        profile = next((each for each in router.tls if each.name == connector.tls), None)
        if profile is not None and profile.certificate is None:
            yield place("tls").finding(
                f"{there} requires a certificate, and TLS profile `{profile.name}` of this connector has none",
                expected="`certificate` in it",
            )


def _sasl_findings(link: Link, there: str, place: At) -> Iterator[Finding]:
    offered = link.listener.sasl
    if offered and link.connector.sasl not in offered:
        yield place("sasl").finding(
            f"{there} does not offer {link.connector.sasl}",
            expected=" or ".join(offered),
            nearest=offered[0].value if len(offered) == 1 else None,
        )


def _neighbor_findings(link: Link, mesh: MeshSettings, there: str, place: At) -> Iterator[Finding]:
    """Findings about a user that may not be this router; a warning, since one that was put out may stand here still."""
    connector, router, target = link.connector, mesh.routers[link.router], mesh.routers[link.target]
    if not has_known_routers(link.listener) or connector.sasl not in PASSWORD_MECHANISMS:
        return  # the user of another mechanism stands in no setting
    user = connector.user if connector.user is not None else router.id
    ids = [each for rule in target.neighbors if rule.user == user for each in rule.ids or (user,)]
    if not target.neighbors and user in mesh.routers:
        ids = [user]
    if router.id not in ids and ANY_ROUTER not in ids:
        yield place("user").finding(
            f"{there} lets no user `{user}` join as router `{router.id}`",
            expected=f"a user of `neighbors` of router `{target.id}` who may have that id",
            severity=Severity.WARNING,
        )


def _name_findings(mesh: MeshSettings, router: RouterSettings, target: RouterSettings, place: At) -> Iterator[Finding]:
    here, there = mesh.name_of(router), mesh.name_of(target)
    if None not in (here, there) and here != there:
        yield place().finding(
            f"router `{router.id}` is of mesh `{here}`, and router `{target.id}` of mesh `{there}`: no neighbors",
            expected="one `mesh` at both ends",
        )


def _hello_findings(router: RouterSettings, target: RouterSettings, place: At) -> Iterator[Finding]:
    for speaker, hearer in ((router, target), (target, router)):
        said, heard = speaker.link_state, hearer.link_state
        # One that is too slow for its own patience is told of by itself.
        if heard.hello_max_age_s <= said.hello_interval_s < said.hello_max_age_s:
            yield place().finding(
                f"router `{hearer.id}` takes a neighbor for lost after {heard.hello_max_age_s} s, but router"
                f" `{speaker.id}` says HELLO every {said.hello_interval_s} s only",
                expected="hello_max_age_s of each end above hello_interval_s of the other",
            )


def _cost_findings(link: Link, there: str, place: At) -> Iterator[Finding]:
    # A listener left at the default says nothing about the cost: it serves connectors of different costs.
    if link.listener.cost not in (ListenerSettings().cost, link.connector.cost):
        yield place("cost").finding(
            f"cost {link.connector.cost} here, {link.listener.cost} at {there}: the larger, {link.cost}, counts",
            expected="one cost at both ends",
            nearest=str(link.cost),
            severity=Severity.WARNING,
        )
