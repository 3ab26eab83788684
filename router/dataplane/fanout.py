"""Multicast: one copy to each local subscriber and one to each next hop of the ingress router's tree.

Copies are pre-settled; the ingress router alone acknowledges, once every copy is on its way. A subscriber without
credit has its copies kept at its link (`waiting.py`); beyond the bounds it misses copies, which are counted.
"""

from __future__ import annotations

import cython

from router.core.forwarding.fib import AddressEntry, Fib
from router.core.terms import ConnectionId, RouterId
from router.dataplane.egress import Egress
from router.dataplane.interface import EgressLink, Port, Transfer
from router.dataplane.settlement import RELEASE, Settlement

if not cython.compiled:  # else they come by the .pxd
    from router.binding.handles import ACCEPTED


class Fanout:
    """Copies of multicast messages."""

    def __init__(
        self,
        fib: Fib,
        ports: dict[ConnectionId, Port],
        egress: Egress,
        settlement: Settlement,
    ) -> None:
        self._fib = fib
        self._ports = ports
        self._egress = egress
        self._settlement = settlement

    def send(self, transfer: Transfer, entry: AddressEntry) -> None:
        """Copy a whole message to everybody who should have it from this router."""
        fib = self._fib
        ingress = fib.me
        port = transfer.ingress.port if transfer.ingress is not None else None
        if port is not None and port.is_router:
            found = transfer.scan
            assert found is not None
            ingress = RouterId(found.ingress or fib.me)
            if ingress in fib.routes and not fib.is_on_tree(ingress, port.neighbor):
                self._settlement.settle(transfer, RELEASE)
                return
        data = transfer.whole()
        copies = 0
        if entry.subscribers:
            own = self._egress.leading_for(transfer, data, to_router=False)
            for link in entry.subscribers:
                assert isinstance(link, EgressLink)
                self.copy(own, transfer, link)
                copies += 1
        hops = fib.multicast_hops(entry, ingress) if ingress == fib.me or ingress in fib.routes else []
        if hops:
            onward = self._egress.leading_for(transfer, data, to_router=True)
            for hop in hops:
                neighbor = self._ports.get(hop.connection)
                if neighbor is not None and neighbor.data_links:
                    self.copy(onward, transfer, neighbor.data_links[0])
                    copies += 1
        self._settlement.settle(transfer, ACCEPTED if copies else RELEASE)

    def copy(self, data: bytes, transfer: Transfer, link: EgressLink) -> None:
        """Send a copy, or keep it until the link can take it."""
        if link.has_credit():
            self._egress.send_copy(data, transfer, link)
        else:
            self._egress.commit_copy(data, transfer, link)
