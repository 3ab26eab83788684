"""Fields of an Attach that several kinds of links have: names, termini, and the addresses that a peer wrote there."""

from __future__ import annotations

import secrets
from typing import Final

from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle, text
from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import Condition

SECRET_BYTES: Final = 18
"""Random bytes in an address made here. Knowing the address is enough to send there, so it must not be guessed;
management shows only part of it."""
NAME_BYTES: Final = 11
"""Random bytes in the name of a link that this side attaches: no other has its name."""
ATTACH_BYTES: Final = 192
"""Maximum size of an Attach without the link's name and what it repeats of the peer's, bytes."""


def check_answer(handle: Handle, most: int, made: str = "") -> None:
    """See that the answer to an attach, which repeats what the peer wrote of its link, fits into one frame.

    Args:
        handle: of the link that the peer attaches.
        most: maximum size of a frame that the peer takes, bytes.
        made: address of its dynamic node.
    Raises:
        PeerProtocolError: it doesn't; a refusal does, since the guard has looked at the name.
    Source: AMQP 1.0 part 2, 2.8.15.
    """
    size = ATTACH_BYTES + len((link_name(handle) + made).encode())
    for terminus in (pn.pn_link_remote_source(handle), pn.pn_link_remote_target(handle)):
        size += len((text(pn.pn_terminus_get_address(terminus)) or "").encode())
        size += pn.pn_data_encoded_size(pn.pn_terminus_properties(terminus))
        size += pn.pn_data_encoded_size(pn.pn_terminus_outcomes(terminus))
    if size > most:
        raise PeerProtocolError(
            f"the answer to this attach takes up to {size} bytes, and the peer takes frames of {most}",
            condition=Condition.FRAME_SIZE_TOO_SMALL,
        )


def link_name(handle: Handle) -> str:
    """The name of a link; bytes that are no UTF-8 are replaced."""
    return text(pn.pn_link_name(handle)) or ""


def new_link_name(prefix: str) -> str:
    """Make a name that no other link has, for one that this side attaches."""
    return f"{prefix}.{secrets.token_urlsafe(NAME_BYTES)}"


def secret_part() -> str:
    """Make the part of an address that nobody can guess."""
    return secrets.token_urlsafe(SECRET_BYTES)


def write_termini(handle: Handle) -> tuple[Handle, Handle]:
    """Write what the termini of all links between routers have: they last as long as the link.

    Returns: its own source and target, for what else is to be written there.
    """
    source, target = pn.pn_link_source(handle), pn.pn_link_target(handle)
    for terminus, kind in ((source, pn.SOURCE), (target, pn.TARGET)):
        pn.pn_terminus_set_type(terminus, kind)
        pn.pn_terminus_set_expiry_policy(terminus, pn.EXPIRE_WITH_LINK)
    pn.pn_link_set_snd_settle_mode(handle, pn.SND_MIXED)
    return source, target


def read_address(terminus: Handle) -> str | None:
    """The address of a terminus of the peer; None when it has none.

    Raises:
        PeerProtocolError: it is no UTF-8, or has a NUL, which proton would take for its end and is given as 0xff.
    """
    try:
        return pn.strict_text(pn.pn_terminus_get_address(terminus))
    except UnicodeDecodeError as error:
        raise PeerProtocolError(
            f"the address has a NUL, or is no UTF-8: {error}", condition=Condition.INVALID_FIELD
        ) from error
