"""The file of users: a line for each, with keys made of the password, by which no reader of the file can log in.

A line is the user's name (blanks and the like written as in a URL) and, for each kind of SCRAM, keys as RFC 5803 writes
them, separated by blanks; what begins with `#` is for people, but for the key of the decoys, from which the salts of
users are made that aren't there.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import os
import re
import secrets
import urllib.parse
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from mesh_config.user_names import RESERVED_NAMES
from router.core.errors import LocalError
from router.security.bounded_file import MOST_BYTES, open_bounded
from router.security.file_replacement import replace_file
from router.security.sasl_frames import SaslError
from router.security.scram import (
    DEFAULT_ITERATIONS,
    HASHES,
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    SALT_BYTES,
    Account,
    ScramKeys,
    derive,
    prepare_password,
)
from router.security.value_from_files import ValueFromFiles
from router.security.work_slices import SlicePauses

REMEMBERED: Final = 10_000
"""Passwords sent by PLAIN that were right and need not be derived again, as keyed hashes."""
MOST_LINE_BYTES: Final = 65_536
DECOY_KEY_BYTES: Final = 32
HEADER: Final = (
    "# Users of amqp-mesh, written by `amqp-mesh user`. Keys made of passwords: keep it to the router alone.\n"
)

_BASE64 = rb"(?=[A-Za-z0-9+/])(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?"
_KEYS = re.compile(rb"(SCRAM-SHA-256|SCRAM-SHA-512)\$(\d{1,9}):(%b)\$(%b):(%b)" % (3 * (_BASE64,)))
_KEY_CHARS: Final = {b"SCRAM-SHA-256": 44, b"SCRAM-SHA-512": 88}
"""Characters of a key in base64, by mechanism."""
_DECOYS = re.compile(rb"# decoys: ([A-Za-z0-9+/]{43}=)\s*")
_DECOYS_LINE: Final = "# decoys: {}\n"

Keys = Mapping[str, ScramKeys]
"""Keys of one user, by mechanism."""


def new_keys(password: str, iterations: int = DEFAULT_ITERATIONS) -> Keys:
    """Keys of a password, with new salt.

    Raises:
        LocalError: it cannot be a password.
    """
    try:
        prepared = prepare_password(password)
    except SaslError:
        raise LocalError("the password is empty, or has control or other characters that none may have") from None
    return {name: derive(name, prepared, secrets.token_bytes(SALT_BYTES), iterations) for name in HASHES}


@attrs.frozen(kw_only=True)
class UserTable:
    """Users of a file, as it was read. Keys are decoded when somebody asks for them: that many don't is cheap."""

    lines: Mapping[str, bytes] = attrs.field(repr=False)
    """Keys by user, as they are written, in an order that is always the same."""
    decoy_key: bytes = attrs.field(repr=False)
    """Key from which the salts of users that aren't there are made."""
    usual: Mapping[str, tuple[int, int]]
    """Iterations and bytes of salt that most users have, by mechanism."""

    def keys(self, user: str) -> Keys:
        """Keys of a user; none when it isn't there."""
        words = self.lines.get(user, b"").split()
        return {keys.mechanism: keys for keys in map(_decoded, words)}


def read_table(path: str) -> UserTable:
    """Read all users of a file. In a thread it pauses often, for other threads that need the interpreter.

    Raises:
        LocalError: it cannot be read, or has a line that is none; says which, and nothing of what is in it.
    """
    lines: dict[str, bytes] = {}
    decoy_key: bytes | None = None
    kinds: dict[str, Counter[tuple[int, int]]] = {mechanism: Counter() for mechanism in HASHES}
    for number, line in enumerate(_lines_of(path), 1):
        if line.startswith(b"#") or not line.strip():
            decoy_key = decoy_key or _decoy_key(line)
            continue
        name, *words = line.split()
        found = {match[1]: match for match in map(_KEYS.fullmatch, words) if match is not None and _is_fit(match)}
        if not found or len(found) != len(words):
            raise LocalError(f"{path}:{number}: no line of a user; expected a name and keys as `amqp-mesh user` writes")
        user = urllib.parse.unquote(name.decode("utf-8", "replace"))
        if user in RESERVED_NAMES:
            raise LocalError(f"{path}:{number}: no line of a user; policy means others by the name {user}")
        if user in lines:
            raise LocalError(f"{path}:{number}: a second line of the same user")
        lines[user] = b" ".join(sorted(words))
        for mechanism, match in found.items():
            kinds[mechanism.decode()][int(match[2]), len(match[3]) * 3 // 4 - match[3].count(b"=")] += 1
    return UserTable(
        lines=lines,
        decoy_key=decoy_key or _made_decoy_key(lines),
        usual={mechanism: count.most_common(1)[0][0] for mechanism, count in kinds.items() if count},
    )


def read_users(path: str) -> dict[str, Keys]:
    """Keys of all users of a file.

    Raises:
        LocalError: as `read_table`.
    """
    table = read_table(path)
    return {user: table.keys(user) for user in table.lines}


def _lines_of(path: str) -> Iterator[bytes]:
    slices, size = SlicePauses(), 0
    try:
        with open_bounded(path) as file:
            while line := file.readline(MOST_LINE_BYTES + 1):
                size += len(line)
                if len(line) > MOST_LINE_BYTES:
                    raise LocalError(f"{path}: a line of more than {MOST_LINE_BYTES} bytes")
                if size > MOST_BYTES:
                    raise LocalError(f"{path}: larger than {MOST_BYTES} bytes")
                yield line
                slices.pause()
    except OSError as error:
        raise LocalError(f"{path}: cannot be read: {error.strerror}") from None


def _decoy_key(line: bytes) -> bytes | None:
    match = _DECOYS.fullmatch(line)
    return base64.b64decode(match[1]) if match is not None else None


def _made_decoy_key(lines: Mapping[str, bytes]) -> bytes:
    """A key for a file that has none, the same at each router that reads it: of the keys of the first user by name.

    It stays when others are added behind that one, and nobody can tell it from what a router answers.
    """
    return hmac.digest(min(lines.items(), default=("", b""))[1], b"amqp-mesh decoys", "sha256")


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Lock the file until it is left: others that ask for the lock wait.

    It is the folder that is locked: the file is another one with each change.

    Raises:
        LocalError: the folder isn't there, or may not be read.
    """
    try:
        folder = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise LocalError(f"{path}: cannot be written: its folder: {error.strerror}") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def write_users(path: str, users: Mapping[str, Keys]) -> None:
    """Write the file anew; whatever reads it meanwhile sees the old one or the new one, whole.

    A new file is for its owner alone; one that is there keeps its owner and its permissions. The key of its decoys
    stays; a file without one gets a new one.

    Raises:
        LocalError: it cannot be written.
    """
    lines = [HEADER, _DECOYS_LINE.format(base64.b64encode(_kept_decoy_key(path)).decode())]
    for user, keys in sorted(users.items()):
        lines.append(" ".join([urllib.parse.quote(user, safe="@._-/"), *map(_written, keys.values())]) + "\n")
    try:
        replace_file(path, "".join(lines), mode=0o600)
    except OSError as error:
        raise LocalError(f"{path}: cannot be written: {error.strerror}") from None


def _kept_decoy_key(path: str) -> bytes:
    try:
        found = next(filter(None, map(_decoy_key, _lines_of(path))), None)
    except LocalError:  # it isn't there
        found = None
    return found or secrets.token_bytes(DECOY_KEY_BYTES)


@attrs.define
class Users:
    """The users of a file, as it is now; while what is there cannot be read, as it was."""

    path: str
    file: ValueFromFiles[UserTable] = attrs.field(repr=False, init=False)
    """Content of the file."""
    _secret: bytes = attrs.field(repr=False, factory=lambda: secrets.token_bytes(32), init=False)
    _right: OrderedDict[bytes, None] = attrs.field(repr=False, factory=OrderedDict, init=False)

    def __attrs_post_init__(self) -> None:
        """Read it.

        Raises:
            LocalError: it cannot be read.
        """
        self.file = ValueFromFiles([self.path], partial(read_table, self.path))

    # The file may be read again at any time, by a thread: each method looks at its content once.

    def mark(self, user: str) -> bytes | None:
        """Mark of a user's keys, another one after each change of its password; None when there is no such user."""
        return self._mark(self.file.content, user)

    def account(self, user: str, mechanism: str) -> Account:
        """Keys of a user; for one that isn't there keys that nothing fits, the same each time.

        The same, too, at each router that reads this file and after a restart, as those of real users are: whoever
        compares answers finds out nothing.
        """
        return self._account(self.file.content, user, mechanism)

    def remembers(self, user: str, password: bytes) -> bytes | None:
        """Find out at once whether this was the user's password lately, and still is.

        Returns: the mark of the keys that it fits; None when it must be checked.
        """
        mark = self.mark(user)
        try:
            self._right.move_to_end(self._token(user, mark, password))
        except KeyError:
            return None
        return mark

    def check(self, user: str, password: bytes) -> bytes | None:
        """Check a user's password. Takes milliseconds, also for a user that isn't there.

        Returns: the mark of the keys that it fits; None when it is wrong.
        """
        table = self.file.content
        has = table.keys(user) or table.usual
        account = self._account(table, user, next((each for each in HASHES if each in has), next(iter(HASHES))))
        if not account.keys.is_of(password):
            return None
        self._right[self._token(user, account.mark, password)] = None
        while len(self._right) > REMEMBERED:
            self._right.popitem(last=False)
        return account.mark

    def _account(self, table: UserTable, user: str, mechanism: str) -> Account:
        keys = table.keys(user).get(mechanism)
        return Account(keys=keys or _decoy_keys(table, user, mechanism), mark=self._mark(table, user))

    def _mark(self, table: UserTable, user: str) -> bytes | None:
        keys = table.lines.get(user)
        return hmac.digest(self._secret, keys, "sha256") if keys is not None else None

    def _token(self, user: str, mark: bytes | None, password: bytes) -> bytes:
        """A keyed hash of the password and of the keys that it must fit, so that another password makes another."""
        parts = (user.encode(), mark or b"", password)
        return hmac.digest(self._secret, b"".join(len(part).to_bytes(4, "big") + part for part in parts), "sha256")


def _decoy_keys(table: UserTable, user: str, mechanism: str) -> ScramKeys:
    """Keys of a user that isn't there."""
    iterations, size = table.usual.get(mechanism, (DEFAULT_ITERATIONS, SALT_BYTES))
    seed = hmac.digest(table.decoy_key, f"{mechanism} {user}".encode(), "sha256")
    salt = hashlib.shake_256(seed).digest(size)
    wrong = secrets.token_bytes(hashlib.new(HASHES[mechanism]).digest_size)
    return ScramKeys(mechanism=mechanism, iterations=iterations, salt=salt, stored_key=wrong, server_key=wrong)


def _written(keys: ScramKeys) -> str:
    salt, stored, server = (base64.b64encode(raw).decode() for raw in (keys.salt, keys.stored_key, keys.server_key))
    return f"{keys.mechanism}${keys.iterations}:{salt}${stored}:{server}"


def _is_fit(match: re.Match[bytes]) -> bool:
    """Whether the rounds are within bounds, and the keys as long as the mechanism makes them."""
    size = _KEY_CHARS[match[1]]
    return LEAST_ITERATIONS <= int(match[2]) <= MOST_ITERATIONS and len(match[4]) == len(match[5]) == size


def _decoded(word: bytes) -> ScramKeys:
    match = _KEYS.fullmatch(word)
    assert match is not None, "it was looked at when the file was read"
    salt, stored, server = (base64.b64decode(match[at]) for at in (3, 4, 5))
    return ScramKeys(
        mechanism=match[1].decode(), iterations=int(match[2]), salt=salt, stored_key=stored, server_key=server
    )
