"""Secrets are nowhere but where they are used: in no object that is shown, and in no error."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh_config.check import check_file
from mesh_config.models import ConnectorSettings, ListenerSettings, Mechanism, RouterSettings, TlsSettings
from router.core.errors import LocalError
from router.security.credential_store import CredentialStore
from router.security.sasl_client import SaslClient
from router.security.sasl_frames import split_frame
from router.security.sasl_server import PasswordCheck, SaslServer
from router.security.users import Users, new_keys, write_users
from tests.helpers.certificates import Certificates

PLANTED = "pl4nted"


def exchange(mechanism: str, users: Users, password: str) -> tuple[SaslServer, SaslClient, list[object]]:
    """Both sides once it is over, and all that passed between."""
    server = SaslServer([mechanism], users, lambda: "", "nonce-of-server")
    client = SaslClient(mechanism, "alice", password, "host", "nonce-of-client")
    passed: list[object] = []
    data = server.greeting()
    while not server.is_over:
        frame, _ = split_frame(data) or pytest.fail("no frame")
        answer, _ = split_frame(client.received(frame)) or pytest.fail("no frame")
        found = server.received(answer)
        passed += [frame, answer, found]
        if isinstance(found, PasswordCheck):
            found = server.checked(users.check(found.user, found.password))
        data = found
    return server, client, [each for each in passed if not isinstance(each, bytes)]


@pytest.fixture
def new_objects() -> Iterator[None]:
    """The collector knows what comes from here on, not the millions of objects that other tests have left."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("new_objects")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("is_right", [True, False])
def test_no_object_shows_a_password_or_what_was_made_of_it(tmp_path: Path, mechanism: str, is_right: bool) -> None:
    path = str(tmp_path / "users")
    keys = new_keys(PLANTED, 4096)
    write_users(path, {"alice": keys})
    users = Users(path)
    kept = exchange(mechanism, users, PLANTED if is_right else f"{PLANTED} not")
    assert (kept[0].user == "alice") is is_right
    hidden = [PLANTED, *(repr(key)[2:-1] for each in keys.values() for key in (each.stored_key, each.server_key))]
    shown = [
        repr(thing)
        for thing in gc.get_objects()
        if str(type(thing).__module__).startswith("router.security.") and not isinstance(thing, type)
    ]
    assert any("ScramKeys" in text for text in shown)
    assert not [text for text in shown for secret in hidden if secret in text]


def test_files_and_variables_with_passwords_are_named_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(PLANTED, encoding="utf-8")
    monkeypatch.setenv("OF_KEY", f"{PLANTED} wrong")
    encrypted = Certificates(tmp_path).with_password("A", PLANTED)
    profile = TlsSettings(name="t", certificate=encrypted, key_password_env="OF_KEY")
    settings = RouterSettings(
        id="A",
        tls=(profile,),
        listeners=(ListenerSettings(tls="t"),),
        connectors=(ConnectorSettings(port=1, sasl=Mechanism.SCRAM_SHA_256, password_file=str(secret)),),
    )
    with pytest.raises(LocalError, match="its password is wrong") as caught:
        CredentialStore(settings, None)
    assert PLANTED not in str(caught.value)
    monkeypatch.setenv("OF_KEY", PLANTED)
    credentials = CredentialStore(settings, None)
    assert credentials.password(settings.connectors[0]) == PLANTED
    assert PLANTED not in repr((settings, vars(credentials)))


WRONG = {
    "a password in the settings": f"listeners: [{{password: {PLANTED}}}]",
    "in place of the name of its variable": f"connectors: [{{port: 1, sasl: PLAIN, password_env: '{PLANTED} !'}}]",
    "of a key": f"tls: [{{name: t, certificate: c, key_password: {PLANTED}}}]",
    "of a key in place of the variable": f"tls: [{{name: t, certificate: c, key_password_env: '{PLANTED}-'}}]",
    "in a list": f"listeners: [{{users_file: [{PLANTED}]}}]",
}


@pytest.mark.parametrize("line", WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_settings_is_said_without_a_password(line: str, tmp_path: Path) -> None:
    path = tmp_path / "mesh.yaml"
    path.write_text(f"router:\n  id: A\n  {line}\n", encoding="utf-8")
    findings = check_file(path)
    assert findings
    assert PLANTED not in "\n".join(map(str, findings))


def test_a_variable_that_is_not_set_is_not_named() -> None:
    assert PLANTED not in os.environ
    settings = RouterSettings(
        id="A", connectors=(ConnectorSettings(port=1, sasl=Mechanism.SCRAM_SHA_256, password_env=PLANTED),)
    )
    with pytest.raises(LocalError, match="is not set") as caught:
        CredentialStore(settings, None)
    assert PLANTED not in str(caught.value)
