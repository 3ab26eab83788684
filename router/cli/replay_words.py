"""Events and actions of the control plane in words, as `amqp-mesh replay` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from router.core.events import (
    Action,
    CloseConnection,
    ControlLinkDown,
    ControlLinkUp,
    ControlReceived,
    Event,
    FirstSubscriberAttached,
    InstallAddress,
    InstallRouter,
    LastSubscriberLeft,
    Report,
    SendControl,
    TopologyChanged,
    TransitEnded,
    TransitResumed,
    WithdrawAddress,
    WithdrawRouter,
)
from router.core.linkstate.messages import (
    ControlMessage,
    Hello,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
    UnknownMessage,
)
from router.core.terminal_escaping import escaped

MOST_NAMES: Final = 8
"""Routers or addresses named in one line."""


def event_words(event: Event) -> str:
    """Describe an event."""
    match event:
        case ControlLinkUp():
            kind = "takes link state unasked" if event.pushes_lsu else "asks for link state"
            return escaped(f"connection {event.connection} to {event.peer} is up, cost {event.cost}; it {kind}")
        case ControlLinkDown():
            return f"connection {event.connection} is down"
        case ControlReceived():
            way = f", by way of {_names(event.trace[1:])}" if len(event.trace) > 1 else ""
            return escaped(f"{message_words(event.message)} came by connection {event.connection}{way}")
        case FirstSubscriberAttached():
            return escaped(f"first subscriber of {event.address}, {event.treatment.value}")
        case LastSubscriberLeft():
            return escaped(f"last subscriber of {event.address} left")
        case TransitEnded():
            return "paths are to lead elsewhere, since it stops or is drained"
        case TransitResumed():
            return "paths may lead through it again"
        case _:
            return "what is no event"


def action_words(actions: Sequence[Action]) -> list[str]:
    """Describe actions, one line each; one message to several neighbors is one line."""
    lines: list[str] = []
    number = 0
    while number < len(actions):
        action = actions[number]
        number += 1
        if not isinstance(action, SendControl):
            lines.append(escaped(_action_words(action)))
            continue
        connections = [str(action.connection)]
        while number < len(actions) and _is_same_message(action, actions[number]):
            connections.append(str(actions[number].connection))  # type: ignore[attr-defined]
            number += 1
        plural = "s" if len(connections) > 1 else ""
        lines.append(escaped(f"send {message_words(action.message)} by connection{plural} {', '.join(connections)}"))
    return lines


def message_words(message: ControlMessage) -> str:
    """A control message in short, not escaped."""
    match message:
        case Hello():
            said = f"it hears {_names(message.seen)}"
        case RouterAdvertisement():
            said = f"link state {message.ls_seq}, addresses {message.mobile_seq}"
        case LinkStateUpdate():
            peers = [f"{peer} at cost {cost}" for peer, cost in message.peers.items()]
            said = f"link state {message.ls_seq}: {_names(peers)}"
        case MobileAddressUpdate() if message.exist is not None:
            part = f" of part {message.part + 1} of {message.parts}" if message.parts > 1 else ""
            said = f"addresses {message.mobile_seq}: all {len(message.exist)}{part}"
        case MobileAddressUpdate():
            named = [*(f"+{key[2:]}" for key in message.add), *(f"-{key[2:]}" for key in message.delete)]
            said = f"addresses {message.mobile_seq}: {_names(named)}"
        case MobileAddressRequest():
            said = f"it has addresses {message.have_seq}"
        case UnknownMessage():
            return f"a foreign {message.name} of {message.id}"
        case _:
            return f"{message.opcode} of {message.id}"
    return f"{message.opcode} of {message.id} ({said})"


def _is_same_message(first: SendControl, other: Action) -> bool:
    return isinstance(other, SendControl) and (other.to, other.message) == (first.to, first.message)


def _action_words(action: Action) -> str:
    match action:
        case InstallRouter():
            return (
                f"install router {action.router} by connection {action.connection}, next hop {action.next_hop}, "
                f"cost {action.cost}"
            )
        case WithdrawRouter():
            return f"withdraw router {action.router}"
        case InstallAddress():
            return f"install address {action.address} at {action.router}"
        case WithdrawAddress():
            return f"withdraw address {action.address} at {action.router}"
        case TopologyChanged():
            return "work out trees anew"
        case CloseConnection():
            return f"close connection {action.connection}: {action.condition.value}, {action.description}"
        case Report():
            return f"log {action.what} {' '.join(f'{key}={value}' for key, value in action.fields)}".rstrip()
        case _:
            return type(action).__name__


def _names(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMES
    shown = ", ".join(names[:MOST_NAMES]) or "nobody"
    return f"{shown} and {rest} more" if rest > 0 else shown
