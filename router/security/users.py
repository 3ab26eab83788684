"""The file of users: a line for each, with keys made of the password, which lets nobody in who reads it.

A line is the user's name (blanks and the like written as in a URL) and, for each kind of SCRAM, keys as RFC 5803 writes
them, separated by blanks; what begins with `#` is for people.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
import secrets
import tempfile
import urllib.parse
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from router.core.errors import LocalError
from router.security.bounded_file import read_bounded
from router.security.sasl_frames import SaslError
from router.security.scram import (
    DEFAULT_ITERATIONS,
    HASHES,
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    SALT_BYTES,
    ScramKeys,
    derive,
    prepare,
)

REMEMBERED: Final = 10_000
"""Passwords sent by PLAIN that were right and need not be derived again, as keyed hashes."""
HEADER: Final = (
    "# Users of amqp-mesh, written by `amqp-mesh user`. Keys made of passwords: keep it to the router alone.\n"
)

_KEYS = re.compile(r"(SCRAM-[A-Z0-9-]+)\$(\d{1,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")

Keys = Mapping[str, ScramKeys]
"""Keys of one user, by mechanism."""


def new_keys(password: str, iterations: int = DEFAULT_ITERATIONS) -> Keys:
    """Keys of a password, with new salt.

    Raises:
        LocalError: it cannot be a password.
    """
    try:
        prepared = prepare(password).encode()
    except (SaslError, UnicodeEncodeError):
        raise LocalError("the password is empty, or has control or other characters that none may have") from None
    return {name: derive(name, prepared, secrets.token_bytes(SALT_BYTES), iterations) for name in HASHES}


def read_users(path: str) -> dict[str, Keys]:
    """All users of a file.

    Raises:
        LocalError: it cannot be read, or has a line that is none; says which, and nothing of what is in it.
    """
    raw = read_bounded(path)
    users: dict[str, Keys] = {}
    for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, *words = line.split()
        keys = {each.mechanism: each for each in map(_parsed, words) if each is not None}
        if not keys or len(keys) != len(words):
            raise LocalError(f"{path}:{number}: no line of a user; expected a name and keys as `amqp-mesh user` writes")
        user = urllib.parse.unquote(name)
        if user in users:
            raise LocalError(f"{path}:{number}: a second line of the same user")
        users[user] = keys
    return users


def write_users(path: str, users: Mapping[str, Keys]) -> None:
    """Write the file anew, for its owner alone; who reads it meanwhile sees the old one or the new one, whole.

    Raises:
        LocalError: it cannot be written.
    """
    lines = [HEADER]
    for user, keys in sorted(users.items()):
        lines.append(" ".join([urllib.parse.quote(user, safe="@._-/"), *map(_written, keys.values())]) + "\n")
    target = Path(os.path.realpath(path))
    try:
        owner = target.stat() if target.exists() else None
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.writelines(lines)
                file.flush()
                if owner is not None:
                    os.fchmod(file.fileno(), owner.st_mode & 0o777)
                    if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                        os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise LocalError(f"{path}: cannot be written: {error.strerror}") from None


@attrs.define
class Users:
    """The users of a file, as it is now; while what is there cannot be read, as it was."""

    path: str
    _users: dict[str, Keys] = attrs.field(repr=False, init=False)
    _seen: tuple[int, ...] | None = attrs.field(init=False)
    problem: str = attrs.field(default="", init=False)
    """Fault of the file as it is; empty when there is none."""
    _secret: bytes = attrs.field(repr=False, factory=lambda: secrets.token_bytes(32), init=False)
    _right: OrderedDict[bytes, None] = attrs.field(repr=False, factory=OrderedDict, init=False)

    def __attrs_post_init__(self) -> None:
        """Read it.

        Raises:
            LocalError: it cannot be read.
        """
        self._seen = self._mark()
        self._users = read_users(self.path)

    def refresh(self) -> str:
        """Read it again if it is another one. Returns: what is wrong with it, empty when nothing is, or was before."""
        mark = self._mark()
        if mark == self._seen:
            return ""
        self._seen = mark
        try:
            self._users = read_users(self.path)
            self.problem = ""
        except LocalError as error:
            self.problem = str(error)
        return self.problem

    def mark(self, user: str) -> bytes | None:
        """Mark of a user's keys, another one after each change of its password; None when there is no such user."""
        keys = self._users.get(user)
        if keys is None:
            return None
        return hmac.digest(self._secret, b"".join(keys[name].stored_key for name in sorted(keys)), "sha256")

    def keys(self, user: str, mechanism: str) -> ScramKeys:
        """Keys of a user; for one that isn't there keys that nothing fits, the same each time."""
        keys = self._users.get(user, {}).get(mechanism)
        if keys is not None:
            return keys
        digest = HASHES[mechanism]
        seed = hmac.digest(self._secret, f"{mechanism} {user}".encode(), digest)
        salt, iterations = seed[:SALT_BYTES], self._usual_iterations(mechanism)
        wrong = secrets.token_bytes(len(seed))
        return ScramKeys(mechanism=mechanism, iterations=iterations, salt=salt, stored_key=wrong, server_key=wrong)

    def _usual_iterations(self, mechanism: str) -> int:
        first = next(iter(self._users.values()), {}).get(mechanism)
        return first.iterations if first is not None else DEFAULT_ITERATIONS

    def remembers(self, user: str, password: bytes) -> bool:
        """Whether this was the user's password lately, and still is: found out at once."""
        token = self._token(user, password)
        if token not in self._right:
            return False
        self._right.move_to_end(token)
        return True

    def check(self, user: str, password: bytes) -> bool:
        """Whether this is the user's password. Takes milliseconds, also for a user that isn't there."""
        keys = self.keys(user, "SCRAM-SHA-256")
        if not keys.is_of(password):
            return False
        self._right[self._token(user, password)] = None
        while len(self._right) > REMEMBERED:
            self._right.popitem(last=False)
        return True

    def _token(self, user: str, password: bytes) -> bytes:
        """A keyed hash of the password and of the keys that it must fit, so that another password makes another."""
        stored = self._users.get(user, {}).get("SCRAM-SHA-256")
        parts = (user.encode(), stored.stored_key if stored is not None else b"", password)
        return hmac.digest(self._secret, b"".join(len(part).to_bytes(4, "big") + part for part in parts), "sha256")

    def _mark(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)


def _written(keys: ScramKeys) -> str:
    salt, stored, server = (base64.b64encode(raw).decode() for raw in (keys.salt, keys.stored_key, keys.server_key))
    return f"{keys.mechanism}${keys.iterations}:{salt}${stored}:{server}"


def _parsed(word: str) -> ScramKeys | None:
    match = _KEYS.fullmatch(word)
    if match is None or match[1] not in HASHES or not LEAST_ITERATIONS <= int(match[2]) <= MOST_ITERATIONS:
        return None
    try:
        salt, stored, server = (base64.b64decode(match[at], validate=True) for at in (3, 4, 5))
    except (binascii.Error, ValueError):
        return None
    size = 32 if HASHES[match[1]] == "sha256" else 64
    if (len(stored), len(server)) != (size, size):
        return None
    return ScramKeys(mechanism=match[1], iterations=int(match[2]), salt=salt, stored_key=stored, server_key=server)
