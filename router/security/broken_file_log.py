"""Log of files that cannot be used, and of certificates that have ended: once for each state of the files."""

from __future__ import annotations

import time
from typing import Any

from router.security.certificate_expiry import CertificateExpiry
from router.security.credential_table import CredentialTable
from router.security.tls import TlsProfile
from router.security.value_from_files import ValueFromFiles


class BrokenFileLog:
    """Log of the files of one router."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._logged: dict[str, frozenset[object]] = {}
        """Marks of a profile's files at the time the log said that they can't be used, by name of the profile."""

    def write_all(self, table: CredentialTable, unused: dict[str, str]) -> None:
        """Log all faults as they are now, once more where they were logged.

        Args:
            table: contents of the files.
            unused: faults of profiles that no endpoint names, by name of the profile.
        """
        self._logged.clear()
        for each in table.files():
            self.write(table, each, each.problem)
        for name, fault in unused.items():
            self._log.warning("tls_files_unusable", profile=name, reason=fault)

    def write(self, table: CredentialTable, content: ValueFromFiles[Any], problem: str) -> None:
        """Log what is wrong with files that were read again.

        Args:
            table: what the router goes by: of files that are not in it nothing is logged.
            content: what was made of the files.
            problem: why they cannot be used; empty when they can.
        """
        marks = frozenset(content.seen)
        if not problem:
            if isinstance(content, TlsProfile) and self._logged.get(content.settings.name) != marks:
                self._logged.pop(content.settings.name, None)
            if any(content is each for each in table.ends.values()):
                self._warn_of_ended(content.content)
        elif any(content is users.file for users in table.users.values()):
            self._log.warning("users_file_unusable", reason=problem)
        else:
            for name in table.profile_names(content):
                # A listener and a connector with one profile read it for each its purpose, and its lists by themselves.
                if not marks <= self._logged.get(name, frozenset()):
                    self._logged[name] = marks
                    self._log.warning("tls_files_unusable", profile=name, reason=problem)

    def _warn_of_ended(self, certificates: list[CertificateExpiry]) -> None:
        for each in certificates:
            if each.ends <= time.time() and not each.is_list:
                ended = time.strftime("%FT%TZ", time.gmtime(each.ends))
                self._log.warning("certificate_expired", file=each.file, subject=each.subject, ended=ended)
