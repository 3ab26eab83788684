"""The address of a terminus, as a peer wrote it."""

from __future__ import annotations

from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle
from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import Condition


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
