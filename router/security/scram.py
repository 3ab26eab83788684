"""SCRAM, both sides, and the keys that are stored instead of a password.

Keys of a password serve PLAIN too: whoever sends it is asked for nothing but what makes the same StoredKey. Names and
passwords are prepared as the RFC wants it (SASLprep), so that one that is typed in two ways is one.

Source: RFC 5802, RFC 7677, RFC 4013.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import Final

import attrs

from mesh_config import user_names
from router.security.sasl_frames import SaslError

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
DEFAULT_ITERATIONS: Final = 15000
LEAST_ITERATIONS: Final = 4096
"""Minimum number of iterations: RFC 7677, 4."""
MOST_ITERATIONS: Final = 65536
"""Maximum number of iterations: a server must not have a client compute for long. Cyrus takes no more either."""
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 24
MOST_ATTRIBUTES: Final = 16
"""Maximum number of attributes of a message."""

_NONCE = re.compile(r"[!-+\--~]+")
"""Form of a nonce, printable ASCII but for commas: RFC 5802, 7."""


@attrs.frozen(kw_only=True)
class ScramKeys:
    """Keys that a server keeps of a password. None of it lets anybody authenticate."""

    mechanism: str
    iterations: int
    salt: bytes = attrs.field(repr=False)
    stored_key: bytes = attrs.field(repr=False)
    server_key: bytes = attrs.field(repr=False)

    def is_of(self, password: bytes) -> bool:
        """Whether it is the password. Takes milliseconds."""
        return hmac.compare_digest(
            derive(self.mechanism, password, self.salt, self.iterations).stored_key, self.stored_key
        )


@attrs.frozen(kw_only=True)
class Account:
    """Keys of a user as a file of users had them at one time, and their mark, which changes with the password."""

    keys: ScramKeys
    mark: bytes | None = attrs.field(repr=False)
    """None for a user that isn't there."""


def derive(mechanism: str, password: bytes, salt: bytes, iterations: int) -> ScramKeys:
    """The keys of a password that was prepared."""
    salted = _salted(mechanism, password, salt, iterations)
    digest = HASHES[mechanism]
    return ScramKeys(
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        stored_key=hashlib.new(digest, _hmac(digest, salted, b"Client Key")).digest(),
        server_key=_hmac(digest, salted, b"Server Key"),
    )


def prepare_name(name: str | bytes) -> str:
    """Prepare the name of a user.

    Raises:
        SaslError: nobody can have that name; says why.
    """
    try:
        return user_names.prepare_name(name)
    except ValueError as error:
        raise SaslError(str(error)) from None


def prepare_password(password: str | bytes) -> bytes:
    """Prepare a password. Returns: the bytes of which keys are made.

    Raises:
        SaslError: it cannot be a password; says why.
    """
    try:
        return user_names.prepare_password(password).encode()
    except ValueError as error:
        raise SaslError(str(error)) from None


class ScramServer:
    """One exchange, seen by the server. The same for a user that isn't there, until it fails at the end."""

    def __init__(self, mechanism: str, nonce: str) -> None:
        self._mechanism = mechanism
        self._nonce = nonce
        self.user = ""
        """Name that the client says it has."""
        self._gs2 = b""
        self._first = b""
        self._server_first = b""
        self._keys: ScramKeys | None = None

    def read_first(self, message: bytes) -> None:
        """Read the client's first message; `user` is set then.

        Raises:
            SaslError: it breaks the rules, or asks for what is not offered.
        """
        flag, comma, rest = message.partition(b",")
        authzid, second, bare = rest.partition(b",")
        if not comma or not second or flag not in (b"n", b"y"):
            is_binding = flag.startswith(b"p=")
            raise SaslError("channel binding was not offered" if is_binding else "a SCRAM message that cannot be read")
        attributes = _attributes(bare)
        if list(attributes)[:2] != ["n", "r"] or not _NONCE.fullmatch(attributes["r"]):
            raise SaslError("a SCRAM message that cannot be read")
        self.user = prepare_name(_unescaped(attributes["n"]))
        if authzid and authzid != b"a=" + attributes["n"].encode():
            raise SaslError("a user that wants to act as another one")
        self._gs2 = flag + b"," + authzid + b","
        self._first = bare
        self._nonce = attributes["r"] + self._nonce

    def challenge(self, keys: ScramKeys) -> bytes:
        """The server's first message, with the salt of the user that was named."""
        self._keys = keys
        salt = base64.b64encode(keys.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={keys.iterations}".encode()
        return self._server_first

    def verify(self, message: bytes) -> bytes | None:
        """Read the client's last message. Returns: the server's last one; None when the password was wrong.

        Raises:
            SaslError: it breaks the rules.
        """
        keys = self._keys
        assert keys is not None, "a challenge comes first"
        without_proof, comma, proof = message.rpartition(b",p=")
        attributes = _attributes(without_proof)
        if not comma or list(attributes)[:2] != ["c", "r"]:
            raise SaslError("a SCRAM message that cannot be read")
        if _decoded(attributes["c"]) != self._gs2 or attributes["r"] != self._nonce:
            raise SaslError("a SCRAM message of another exchange")
        digest = HASHES[self._mechanism]
        auth = b",".join((self._first, self._server_first, without_proof))
        signature = _hmac(digest, keys.stored_key, auth)
        client_key = _xor(_decoded(proof.decode("ascii", "replace")), signature)
        if client_key is None or not hmac.compare_digest(hashlib.new(digest, client_key).digest(), keys.stored_key):
            return None
        return b"v=" + base64.b64encode(_hmac(digest, keys.server_key, auth))


class ScramClient:
    """One exchange, seen by the client: the server proves, too, that it knows the user."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str) -> None:
        self._mechanism = mechanism
        self._password = prepare_password(password)
        self._nonce = nonce
        escaped = prepare_name(user).replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={escaped},r={nonce}".encode()
        self._signature = b""
        self.is_server_known = False
        """Whether the server has proved that it knows the user."""

    def first(self) -> bytes:
        """The client's first message."""
        return b"n,," + self._first

    def answer(self, challenge: bytes) -> bytes:
        """The client's last message, to the server's first.

        Raises:
            SaslError: the server breaks the rules, or wants to have computed for too long.
        """
        attributes = _attributes(challenge)
        if list(attributes)[:3] != ["r", "s", "i"] or not attributes["i"].isdecimal():
            raise SaslError("a SCRAM message that cannot be read")
        nonce, iterations = attributes["r"], int(attributes["i"][:9])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("a SCRAM message of another exchange")
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise SaslError(f"{iterations} iterations: {LEAST_ITERATIONS} to {MOST_ITERATIONS} are done here")
        digest = HASHES[self._mechanism]
        salted = _salted(self._mechanism, self._password, _decoded(attributes["s"]), iterations)
        client_key = _hmac(digest, salted, b"Client Key")
        without_proof = f"c={base64.b64encode(b'n,,').decode()},r={nonce}".encode()
        auth = b",".join((self._first, challenge, without_proof))
        proof = _xor(client_key, _hmac(digest, hashlib.new(digest, client_key).digest(), auth))
        assert proof is not None
        self._signature = _hmac(digest, _hmac(digest, salted, b"Server Key"), auth)
        return without_proof + b",p=" + base64.b64encode(proof)

    def verify(self, message: bytes) -> None:
        """Read the server's last message.

        Raises:
            SaslError: the server does not know the user's password: it is another one.
        """
        if not self._signature or not hmac.compare_digest(message, b"v=" + base64.b64encode(self._signature)):
            raise SaslError("the other side has not proved that it knows the user's password")
        self.is_server_known = True


def _attributes(message: bytes) -> dict[str, str]:
    """Attributes of a message, in their order; none twice.

    Raises:
        SaslError: it cannot be read, or has an extension that must be understood.
    """
    try:
        pairs = [part.partition("=") for part in message.decode().split(",", MOST_ATTRIBUTES)]
    except UnicodeDecodeError:
        raise SaslError("a SCRAM message that is no UTF-8") from None
    found = {key: value for key, equals, value in pairs if equals and len(key) == 1}
    if len(found) != len(pairs) or len(pairs) > MOST_ATTRIBUTES:
        raise SaslError("a SCRAM message that cannot be read")
    if "m" in found:  # mandatory to understand, and reserved for what is not there yet: RFC 5802, 5.1
        raise SaslError("a SCRAM message with an extension that is not known here")
    return found


def _unescaped(name: str) -> str:
    if "=" in name.replace("=2C", "").replace("=3D", ""):
        raise SaslError("a SCRAM message that cannot be read")
    return name.replace("=2C", ",").replace("=3D", "=")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SaslError("a SCRAM message that cannot be read") from None


def _salted(mechanism: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)


def _hmac(digest: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, digest)


def _xor(one: bytes, other: bytes) -> bytes | None:
    """Both combined; None when they are not of one length."""
    if len(one) != len(other):
        return None
    return bytes(left ^ right for left, right in zip(one, other, strict=True))
