"""Names of users, and passwords: the form in which they are compared (SASLprep), and the names that nobody has.

Source: RFC 4013.
"""

from __future__ import annotations

import stringprep
import unicodedata
from typing import Final

ANONYMOUS_USER: Final = "anonymous"
"""Name of clients that don't say who they are."""
ANYBODY: Final = "*"
"""Name by which policy means everybody who does."""
RESERVED_NAMES: Final = (ANONYMOUS_USER, ANYBODY)
"""Names that no user has."""

MOST_NAME_CHARS: Final = 255
"""Maximum length of a user's name, characters, as sent and as prepared."""
MOST_PASSWORD_CHARS: Final = 1024
"""Maximum length of a password, characters, as sent and as prepared."""
MOST_UTF8_BYTES: Final = 4
"""Maximum size of a character in UTF-8, bytes."""
_PROHIBITED: Final = (
    stringprep.in_table_c12, stringprep.in_table_c21, stringprep.in_table_c22, stringprep.in_table_c3,
    stringprep.in_table_c4, stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7,
    stringprep.in_table_c8, stringprep.in_table_c9,
)  # fmt: skip


def prepare_name(name: str | bytes) -> str:
    """Prepare the name of a user, which is UTF-8 if it is bytes.

    Raises:
        ValueError: it is no UTF-8, empty, too long, or has characters that no name may have; says which.
    """
    return _prepare(name, MOST_NAME_CHARS)


def prepare_password(password: str | bytes) -> str:
    """Prepare a password.

    Raises:
        ValueError: as `prepare_name`.
    """
    return _prepare(password, MOST_PASSWORD_CHARS)


def _prepare(given: str | bytes, most_chars: int) -> str:
    # Peers that have not authenticated yet choose it: what is longer than it may be is not looked at.
    if isinstance(given, str):
        text = given
    else:
        if len(given) > MOST_UTF8_BYTES * most_chars:
            raise _too_long(most_chars)
        try:
            text = given.decode()
        except UnicodeDecodeError:
            raise ValueError("a name or password that is no UTF-8") from None
    _check_length(text, most_chars)
    if text.isascii() and text.isprintable():
        return text
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char for char in text if not stringprep.in_table_b1(char)
    )
    prepared = unicodedata.normalize("NFKC", mapped)
    _check_length(prepared, most_chars)  # NFKC makes up to 18 characters of one
    if any(is_prohibited(char) for char in set(prepared) for is_prohibited in _PROHIBITED):
        raise ValueError("a name or password with characters that neither may have")
    right_to_left = [stringprep.in_table_d1(char) for char in prepared]
    if any(right_to_left):
        has_left_to_right = any(stringprep.in_table_d2(char) for char in prepared)
        if has_left_to_right or not (right_to_left[0] and right_to_left[-1]):
            raise ValueError("a name or password that mixes directions of writing")
    return prepared


def _check_length(text: str, most_chars: int) -> None:
    if not text:
        raise ValueError("an empty name or password")
    if len(text) > most_chars:
        raise _too_long(most_chars)


def _too_long(most_chars: int) -> ValueError:
    return ValueError(f"a name or password of more than {most_chars} characters")
