"""Files of a router whose settings change: which are watched, and which peers they put out."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
import structlog

from mesh_config.models import ClientCertificates, ConnectorSettings, ListenerSettings, RouterSettings, TlsSettings
from router.engine.peer_identity import PeerIdentity
from router.security.credential_store import CredentialStore
from router.security.revocations import number_of
from router.security.users import new_keys, write_users
from tests.helpers.certificates import Certificates

KEYS = new_keys("secret", 4096)


def store_of(listeners: Sequence[ListenerSettings], profiles: Sequence[TlsSettings] = ()) -> CredentialStore:
    settings = RouterSettings(id="A", listeners=tuple(listeners), tls=tuple(profiles))
    return CredentialStore(settings, structlog.get_logger())


def take(
    store: CredentialStore,
    listeners: Sequence[ListenerSettings],
    profiles: Sequence[TlsSettings] = (),
    users_files: Sequence[str] = (),
) -> None:
    """Have a store go by other settings, as a reload does."""
    store.take(listeners, profiles, users_files, store_of(listeners, profiles))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def certificate_of(path: str) -> str:
    """The first certificate of a file in PEM."""
    text = Path(path).read_text(encoding="ascii")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----\n"
    return f"{begin}{text.partition(begin)[2].partition(end)[0]}{end}"


def users_file(folder: Path, name: str) -> str:
    path = folder / name
    write_users(str(path), {"alice": KEYS})
    return str(path)


def test_a_revoked_certificate_puts_out_a_peer_whose_profile_was_renamed(certificates: Certificates) -> None:
    mallory = certificates.issue("mallory")
    profile = TlsSettings(
        name="old", certificate=certificates.issue("A"), ca=certificates.ca, crl=certificates.revoke()
    )
    listener = ListenerSettings(tls="old", client_certificates=ClientCertificates.REQUIRED)
    store = store_of([listener], [profile])
    identity = PeerIdentity(user="mallory", certificate=number_of(ssl.PEM_cert_to_DER_cert(certificate_of(mallory))))
    take(store, [attrs.evolve(listener, tls="new")], [attrs.evolve(profile, name="new")])
    assert store.objection(identity) == ""
    certificates.revoke(mallory)
    store.refresh()
    assert store.objection(identity) == "its certificate was revoked"


def test_a_file_of_users_that_no_listener_names_any_more_is_not_told_of(tmp_path: Path) -> None:
    before, after = users_file(tmp_path, "before"), users_file(tmp_path, "after")
    listener = ListenerSettings(users_file=before)
    store = store_of([listener])
    take(store, [attrs.evolve(listener, users_file=after)])
    Path(before).unlink()
    store.refresh()
    assert store.unusable() == []
    Path(after).unlink()
    store.refresh()
    assert [each.subject for each in store.unusable()] == [after]
    store.forget_unused([], [])
    assert store.unusable() == []


def test_a_file_of_users_is_watched_while_one_of_them_is_connected(tmp_path: Path) -> None:
    before, after = users_file(tmp_path, "before"), users_file(tmp_path, "after")
    listener = ListenerSettings(users_file=before)
    store = store_of([listener])
    alice = PeerIdentity(user="alice", users_file=before, password=store.users[before].mark("alice"))
    altered = [attrs.evolve(listener, users_file=after)]
    take(store, altered, users_files=[before])
    assert store.objection(alice) == ""
    write_users(before, {"bob": KEYS})
    store.refresh()
    assert store.objection(alice) == "there is no such user any more"
    store.forget_unused(altered, [])
    assert [*store.users] == [after]


def test_altered_listeners_add_no_files_to_those_that_are_watched(certificates: Certificates) -> None:
    profile = TlsSettings(name="t", certificate=certificates.issue("A"), ca=certificates.ca)
    listener = ListenerSettings(tls="t")
    store = store_of([listener], [profile])
    count, context = len(store.files()), store.profile(listener).content
    for most in range(10, 20):
        listener = attrs.evolve(listener, max_connections=most)
        take(store, [listener], [profile])
    assert len(store.files()) == count
    assert store.profile(listener).content is context


def test_sockets_that_use_a_profile_for_one_purpose_share_it(certificates: Certificates) -> None:
    profile = TlsSettings(name="t", certificate=certificates.issue("A"), ca=certificates.ca)
    one, two = ListenerSettings(tls="t"), ListenerSettings(tls="t", port=1)
    requiring = attrs.evolve(two, client_certificates=ClientCertificates.REQUIRED)
    careless = ConnectorSettings(port=1, tls="t", verify_host=False)
    store = CredentialStore(
        RouterSettings(id="A", listeners=(one, two, requiring), connectors=(careless,), tls=(profile,)),
        structlog.get_logger(),
    )
    assert store.profile(one) is store.profile(two)
    assert len({store.profile(each) for each in (one, requiring, careless)}) == 3


def test_what_fails_to_be_taken_changes_nothing_and_can_be_taken_back(tmp_path: Path) -> None:
    before, after = users_file(tmp_path, "before"), users_file(tmp_path, "after")
    listeners = [ListenerSettings(users_file=before)]
    store = store_of(listeners)
    kept = store.users[before]
    other = [ListenerSettings(users_file=after)]
    store.take(other, (), (), store_of(other))()
    assert store.users == {before: kept}
