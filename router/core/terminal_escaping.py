"""Text of others made safe to be shown, or pasted: what would steer a terminal, or hide in a line, is an escape."""

from __future__ import annotations

import re
import shlex

MOST_NAME_CHARACTERS = 200
"""Maximum number of characters shown of a name that a peer chose."""
CUT = "\N{HORIZONTAL ELLIPSIS}"
"""Mark at the end of a text that was cut."""


_PLAIN_WORD = re.compile(r"[\w@%+=:,./-]+")
"""Words that no shell changes."""
_PASSWORD = re.compile(r"(\w+://[^\s/:@]*:)[^\s@]*@(?:[^\s@/,]*@)*")
"""Password of a URL within a text, up to the last `@` before a blank, a comma or the path."""
_SCHEME = re.compile(r"\w+://")
_HOST_AND_PATH = re.compile(r"(\[[^\[\]/@]*\]|[^\[\]:/@]*)(:\d*)?/")
"""Begin of a URL, behind its scheme, where an `@` that follows is one of the path."""


def without_passwords(text: str) -> str:
    """*text* with `***` for the password of each URL with a scheme in it."""
    return _PASSWORD.sub(r"\1***@", text)


def url_without_password(url: str) -> str:
    """*url*, with or without a scheme, and right or wrong, with `***` for its password."""
    match = _SCHEME.match(url)
    begin = match.end() if match is not None else 0
    rest = url[begin:]
    authority = rest.partition("/")[0]
    if "@" not in authority:
        authority = "" if _HOST_AND_PATH.match(rest) else rest
    user, colon, _ = authority.rpartition("@")[0].partition(":")
    if not colon:
        return url
    return f"{url[:begin]}{user}:***{rest[authority.rindex('@') :]}"


def escaped(text: str, most_characters: int | None = None) -> str:
    r"""*text* with an escape, such as `\x1b` or `\u202e`, for each character that is not printable.

    A byte that is no UTF-8 stands in the names of files and the words of a command as half of a surrogate pair (PEP
    383); it is shown as that byte, `\xff`.

    Not printable are controls (ESC, CR, NEL), marks that turn the direction of writing, line separators, blanks other
    than the ordinary one, halves of surrogate pairs, and what Unicode has not assigned.

    Args:
        text: of whatever origin.
        most_characters: of the result, `CUT` not counted; it never ends within an escape. Without it nothing is cut.
    """
    if text.isprintable() and (most_characters is None or len(text) <= most_characters):
        return text
    if most_characters is None:
        return "".join(map(_escaped_character, text))
    shown = []
    room = most_characters
    for character in text[: most_characters + 1]:
        piece = _escaped_character(character)
        room -= len(piece)
        if room < 0:
            shown.append(CUT)
            break
        shown.append(piece)
    return "".join(shown)


def shell_word(text: str) -> str:
    r"""*text* as one word of a command that a shell reads, in quotes where it would be read otherwise.

    What is not printable is an escape in `$'...'`, as bash and zsh have it.
    """
    if _PLAIN_WORD.fullmatch(text):
        return text
    if text.isprintable():
        return shlex.quote(text)
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    # `\x80` is a byte there, not the character of that number.
    pieces = (f"\\u{ord(each):04x}" if "\x80" <= each <= "\xff" else _escaped_character(each) for each in quoted)
    return f"$'{''.join(pieces)}'"


def _escaped_character(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
