"""Problems of files: what can't be used, and certificates near their end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from router.core.terminal_escaping import escaped, shell_word
from router.views.problem_inputs import Problem, ProblemInputs, command_at

DAY_S: Final = 86400


def file_problems(snapshot: ProblemInputs) -> Iterator[Problem]:
    """Yield what is wrong with certificates, and with other files."""
    yield from _certificates(snapshot)
    yield from _unusable(snapshot)


def _certificates(snapshot: ProblemInputs) -> Iterator[Problem]:
    for certificate in snapshot.certificates:
        left_s = certificate.ends - snapshot.now
        if left_s < certificate.warned_s:
            day = time.strftime("%F", time.gmtime(certificate.ends))
            days = int(left_s // DAY_S)
            when = {0: "within a day", 1: "in a day"}.get(days, f"in {days} days")
            ends = f"ended on {day}" if left_s <= 0 else f"ends on {day}, {when}"
            command = ("crl", "-nextupdate") if certificate.is_list else ("x509", "-enddate")
            yield Problem(
                kind="certificate",
                subject=certificate.file,
                sentence=f"{certificate.words} {ends}",
                since=None,
                command=f"openssl {command[0]} -in {shell_word(certificate.file)} -noout {command[1]}",
            )


def _unusable(snapshot: ProblemInputs) -> Iterator[Problem]:
    for each in snapshot.unusable:
        yield Problem(
            kind="unusable-file",
            subject=escaped(each.subject),
            sentence=f"{escaped(each.reason)}; what was read before counts still, and after a restart nothing will",
            since=None,
            command=command_at("manage get-log", snapshot.router, "--text"),
        )
