"""A realm of Kerberos for tests: MIT's KDC on loopback, with a database in a folder, and no other service."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from tests.helpers.processes import LOOPBACK, ReservedPort, wait_until

REALM: Final = "MESH.TEST"
PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
TIMEOUT_S: Final = 30.0


def has_kerberos() -> bool:
    """Whether everything is here that a realm and its clients need."""
    programs = all(shutil.which(name, path=PATH) for name in ("krb5kdc", "kdb5_util", "kadmin.local"))
    has_module = any(Path("/usr/lib").glob(f"{folder}sasl2/libgssapiv2.so") for folder in ("", "*/"))
    return programs and has_module and importlib.util.find_spec("gssapi") is not None


needs_kerberos = pytest.mark.skipif(
    "AMQP_MESH_TEST_INSTALLED" not in os.environ and not has_kerberos(),
    reason="needs the extra `kerberos`, and of Debian krb5-admin-server, krb5-kdc, libsasl2-modules-gssapi-mit",
)


class Realm:
    """The realm. Who uses it, or a process that does, needs its `environment`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._port = ReservedPort()
        self._kdc: subprocess.Popen[bytes] | None = None
        self.environment = {
            "KRB5_CONFIG": str(folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5RCACHENAME": f"dfl:{folder}",
            "KRB5CCNAME": f"FILE:{folder / 'no-tickets'}",
        }
        (folder / "krb5.conf").write_text(
            "[libdefaults]\n"
            f" default_realm = {REALM}\n"
            " dns_lookup_kdc = false\n dns_lookup_realm = false\n dns_canonicalize_hostname = false\n rdns = false\n"
            " udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = {LOOPBACK}:{self._port.number}\n }}\n",
            encoding="utf-8",
        )
        (folder / "kdc.conf").write_text(
            f'[kdcdefaults]\n kdc_listen = ""\n kdc_tcp_listen = {LOOPBACK}:{self._port.number}\n'
            f"[realms]\n {REALM} = {{\n  database_name = {folder}/principals\n  key_stash_file = {folder}/stash\n"
            f"  acl_file = {folder}/acl\n }}\n",
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of the database")
        log = self._folder / "kdc.log"
        with log.open("wb") as out:
            self._kdc = subprocess.Popen(
                [self._program("krb5kdc"), "-n"], env=self._whole_environment(), stdout=out, stderr=out
            )
        wait_until(self._is_listening, lambda: f"the KDC listens:\n{log.read_text()}", TIMEOUT_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._kdc is not None:
            self._kdc.terminate()
            self._kdc.wait(TIMEOUT_S)
        self._port.close()

    def _is_listening(self) -> bool:
        with socket.socket() as sock:
            return not sock.connect_ex((LOOPBACK, self._port.number))

    def keytab(self, principal: str, *options: str) -> str:
        """Make *principal*, with options of `addprinc`. Returns: the file of its keys."""
        path = self._folder / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-q", " ".join(["addprinc", "-randkey", *options, principal]))
        return self.new_keys(principal, path)

    def new_keys(self, principal: str, path: Path) -> str:
        """Give *principal* other keys. Returns: the file of them."""
        path.unlink(missing_ok=True)
        self._run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        assert path.exists()
        return str(path)

    def as_user(self, user: str) -> dict[str, str]:
        """Variables of the environment with which a program gets tickets of *user*, whose keytab was made."""
        return {
            "KRB5_CLIENT_KTNAME": str(self._folder / f"{user}.keytab"),
            "KRB5CCNAME": f"FILE:{self._folder / user}.tickets",
        }

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._program(program), *arguments],
            env=self._whole_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S,
        )  # fmt: skip
        assert not done.returncode, done.stdout + done.stderr

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=PATH)
        assert found is not None, f"{name} is not installed"
        return found

    def _whole_environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment}
