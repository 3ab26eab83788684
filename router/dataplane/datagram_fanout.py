"""Multicasts of neighbors without credit that was set aside: a copy to each local subscriber and to each next hop.

Copies are pre-settled; the ingress router alone acknowledges, once every copy has been given to its link. A subscriber
without credit has its copies kept at its link (`waiting_messages.py`); beyond the bounds it misses copies, which are
counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import cython

from router.core.forwarding.fib import AddressEntry, Fib, Route, Subscriber
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.dataplane.connection_port import Port
from router.dataplane.links import IngressCircuitLink, SubscriberLink, Transfer, local_subscribers
from router.dataplane.local_copier import LocalCopier
from router.dataplane.message_sender import MessageSender
from router.dataplane.multicast_controller import MulticastController
from router.dataplane.multicast_repair import MulticastRepair
from router.dataplane.settlement import RELEASE, Settlement

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import ACCEPTED


class DatagramFanout:
    """Copies of multicast messages."""

    def __init__(
        self,
        fib: Fib,
        ports: dict[ConnectionId, Port],
        egress: MessageSender,
        settlement: Settlement,
        repair: MulticastRepair,
        copying: LocalCopier,
    ) -> None:
        self._fib = fib
        self._ports = ports
        self._egress = egress
        self._settlement = settlement
        self._repair = repair
        self._copying = copying

    def send(self, transfer: Transfer, entry: AddressEntry, now: float) -> None:
        """Copy a whole message of a neighbor to everybody who should have it from this router, at *now*, seconds."""
        fib = self._fib
        source = transfer.ingress
        assert source is not None
        neighbor = source.port.neighbor
        if isinstance(source, IngressCircuitLink):
            ingress = source.root  # its number was looked at when it came
        else:
            found = transfer.scan
            assert found is not None
            ingress = RouterId(found.ingress or fib.me)
            if transfer.tag is not None:
                if not self._repair.is_new(entry, ingress, transfer.tag, transfer.age_s == 0):
                    self._settlement.settle(transfer, ACCEPTED)  # it is no loss
                    return
            elif not self._is_expected(ingress, neighbor):
                self._settlement.settle(transfer, RELEASE)
                return
        data = transfer.whole()
        own = self._egress.leading_for(transfer, data, to_router=False)
        subscribers: Sequence[Subscriber] = entry.subscribers
        if transfer.age_s > 0:
            subscribers = self._audience(entry, transfer.arrived - transfer.age_s)
        is_copied = self._copying.send(own, transfer, entry, subscribers, is_counted=False)
        copies = len(subscribers)
        sent_to = [neighbor] if neighbor is not None else []
        hops = fib.multicast_hops(entry, ingress) if ingress == fib.me or ingress in fib.routes else []
        for hop in hops:
            if hop.next_hop != neighbor and self.send_to(transfer, entry, ingress, hop):
                sent_to.append(hop.next_hop)
                copies += 1
        if transfer.tag is not None:
            self._repair.keep(entry, ingress, transfer.tag, own, tuple(sent_to), now - transfer.age_s)
        if is_copied:
            self._settlement.settle(transfer, ACCEPTED if copies else RELEASE)

    def _audience(self, entry: AddressEntry, sent_at: float) -> list[SubscriberLink]:
        """Find the local subscribers that a multicast was for which passed other routers at *sent_at*, seconds.

        Who attached since may have had it before its router started again. Who had not granted yet, or was excluded,
        was to miss it.
        """
        links = local_subscribers(entry)
        controller = entry.controller
        if not isinstance(controller, MulticastController):
            return [link for link in links if link.attached_at <= sent_at]
        known = controller.machine.local_subscribers.subscribers  # each is live only since it attached
        return [link for link in links if link in known and known[link].live_since <= sent_at]

    def send_to(self, transfer: Transfer, entry: AddressEntry, ingress: RouterId, hop: Route) -> bool:
        """Send a copy to the neighbor *hop*, as a datagram. Returns: whether there is a way to it."""
        port = self._ports.get(hop.connection)
        if port is None or not port.data_links:
            return False
        trace = () if port.takes_numbers else self._fib.flood_trace(entry, ingress, hop.next_hop)
        if trace is not None:
            onward = self._egress.leading_for(transfer, transfer.whole(), to_router=True, trace=trace)
            self._egress.copy(onward, transfer, port.data_links[0])
        return True

    def _is_expected(self, ingress: RouterId, neighbor: RouterId | None) -> bool:
        """Whether a multicast without a number may come from *neighbor*."""
        # DEV-1: a qdrouterd sends copies along every path, also back to where the message entered.
        fib = self._fib
        return ingress != fib.me and (ingress not in fib.routes or fib.is_on_tree(ingress, neighbor))
