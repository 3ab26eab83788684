"""The simulation's count of bytes is the codec's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import (
    ControlMessage,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
)
from router.engine import message_codec
from router.simulation.control_bytes import ControlSizes

routers = st.one_of(
    st.text("abcR09.-", min_size=1, max_size=12), st.sampled_from(["Zürich", "x" * 252, "x" * 253, "x" * 255])
).map(RouterId)
numbers = st.one_of(st.integers(0, 300), st.sampled_from([127, 128, 2**31 - 1, 2**31, 2**53]))
several = st.lists(routers, max_size=5, unique=True).map(tuple)
keys = st.lists(st.text("M0ab", min_size=1, max_size=300), max_size=4).map(tuple)
hints = st.lists(st.integers(0, 4), max_size=3).map(tuple)
peers = st.dictionaries(routers, numbers, max_size=5)
messages: st.SearchStrategy[ControlMessage] = st.one_of(
    st.builds(Hello, id=routers, instance=numbers, seen=several),
    st.builds(RouterAdvertisement, id=routers, instance=numbers, ls_seq=numbers, mobile_seq=numbers),
    st.builds(LinkStateRequest, id=routers),
    st.builds(LinkStateUpdate, id=routers, instance=numbers, ls_seq=numbers, peers=peers),
    st.builds(MobileAddressUpdate, id=routers, mobile_seq=numbers, add=keys, delete=keys, hints=hints),
    st.builds(MobileAddressUpdate, id=routers, mobile_seq=numbers, exist=keys, hints=hints, parts=st.integers(1, 300)),
    st.builds(MobileAddressRequest, id=routers, have_seq=numbers, parts=numbers, part=numbers, part_seq=numbers),
)


targets = st.sampled_from(["amqp:/_local/qdhello", "x" * 300])


@given(st.lists(st.tuples(messages, targets, routers, several), max_size=4))
def test_a_control_message_has_as_many_bytes_as_the_codec_writes(
    sent: list[tuple[ControlMessage, str, RouterId, tuple[RouterId, ...]]],
) -> None:
    sizes = ControlSizes()
    for message, to, ingress, trace in sent:
        for way in (
            (to, ingress, trace),
            (to, ingress, trace),
            (to, RouterId("other"), trace),
            (to, ingress, trace[:1]),
        ):
            target, origin, passed = way
            assert sizes.of(target, message, origin, passed) == len(
                message_codec.encode_control(target, message, origin, passed)
            )
