"""What a router records of its control plane plays again: the same actions and the same end, within bounds."""

from __future__ import annotations

import json
import pickle
import random
from collections import Counter, deque
from collections.abc import Sequence

import attrs
import pytest

from router.core.addressing.fib_update_queue import FIRST, PAUSE_S
from router.core.controlplane import ControlPlane
from router.core.errors import LocalError
from router.core.events import Action, CloseConnection, ControlLinkUp, ControlReceived, Event
from router.core.ids_and_conditions import Condition, ConnectionId, RouterId
from router.core.linkstate.messages import MobileAddressUpdate
from router.core.recording.control_plane_state import _MODULES, _StateFrames, freeze, from_plain, thaw, to_plain
from router.core.recording.recorded_control_plane import (
    CALLS_AT_ONCE,
    STATE_PAUSE_S,
    OutsideFault,
    RecordedControlPlane,
)
from router.core.recording.recording_format import MAGIC, decode, encode, standing
from router.core.recording.recording_player import Player
from router.simulation.mesh import Mesh
from tests.core.test_addresses_in_parts import TO_ME, parts_of
from tests.core.test_controlplane import TO_B, got, star

EDGES = ("AB", "BC", "CD", "DE", "EA", "AC")


def never(error: Exception) -> None:
    raise error


@attrs.define
class Play:
    """A mesh of five routers, of which A is recorded."""

    mesh: Mesh
    control: ControlPlane
    recorded: RecordedControlPlane

    @property
    def text(self) -> str:
        end = standing(self.control, self.mesh.now)
        return "".join(encode({"program": "x", "router": "A"}, self.recorded.segments(), end))


class Driven:
    """The recorded plane in the place of the plane in a mesh."""

    def __init__(self, control: ControlPlane, recorded: RecordedControlPlane) -> None:
        self.control, self.recorded = control, recorded

    def handle(self, events: Sequence[Event], *, now: float) -> list[Action]:
        return self.recorded.handle(events, now=now)

    def handle_deadline(self, *, now: float) -> list[Action]:
        return self.recorded.handle_deadline(now=now)

    def next_deadline(self) -> float:
        return self.control.next_deadline()


def play(seed: int, *, max_bytes: int = 8 << 20, max_calls: int = 20000, seconds: float = 30.0) -> Play:
    """Connections and routers of the mesh fail and come back, clients subscribe and leave, as *seed* says."""
    rng = random.Random(seed)
    mesh = Mesh(seed=seed, bodies=True)
    for name in "ABCDE":
        mesh.add_router(name)
    wires = [mesh.connect(*edge) for edge in EDGES]
    mesh.run_for(1)
    control = mesh.routers[RouterId("A")].plane
    recorded = RecordedControlPlane(control, max_bytes=max_bytes, max_calls=max_calls, now=mesh.now, on_fault=never)
    mesh.routers[RouterId("A")].participant = Driven(control, recorded)
    while mesh.now < seconds:
        name, wire = rng.choice("BCDE"), rng.choice(wires)
        match rng.randrange(4):
            case 0 if wire.is_up:
                mesh.disconnect(wire)
                mesh.run_for(rng.random())
                if not wire.is_up and all(end.is_alive for end in wire.ends):
                    mesh.reconnect(wire)
            case 1 if mesh.routers[RouterId(name)].is_alive:
                mesh.kill(name)
                mesh.run_for(4 * rng.random())
                mesh.restart(name)
            case _:
                mesh.subscribe(rng.choice("ABCDE"), f"address-{rng.randrange(50)}\x1b\ud800")
        mesh.run_for(rng.random())
    return Play(mesh, control, recorded)


def replayed(text: str) -> Player:
    player = Player(decode(text.splitlines(keepends=True)))
    differences = [step.difference for step in player.steps() if step.difference]
    assert differences == []
    return player


@pytest.mark.parametrize("seed", range(6))
def test_a_recording_played_again_gives_the_same_actions_and_end(seed: int) -> None:
    made = play(seed)
    player = replayed(made.text)
    assert player.recording.fault == ""
    assert player.end_difference() == ""
    assert player.control is not None
    assert to_plain(player.control) == to_plain(made.control)
    assert player.control.nodes() == made.control.nodes()
    assert player.control.addresses() == made.control.addresses()
    player.control.check_invariants()


def test_a_state_made_plain_goes_on_exactly_as_the_plane_it_was_taken_of() -> None:
    made = play(1)
    twin = from_plain(json.loads(json.dumps(to_plain(made.control))))
    assert to_plain(twin) == to_plain(made.control)
    for _ in range(200):
        now = made.control.next_deadline()
        assert twin.next_deadline() == now
        assert twin.handle_deadline(now=now) == made.control.handle_deadline(now=now)


@pytest.mark.parametrize("seed", range(3))
def test_when_the_oldest_is_dropped_the_rest_begins_with_a_state_and_plays(seed: int) -> None:
    made = play(seed, max_bytes=300_000, max_calls=120, seconds=60.0)
    assert made.recorded.bytes <= 300_000
    segments = made.recorded.segments()
    assert len(segments) == 2
    assert sum(len(segment.calls) for segment in segments) <= 120
    assert all(segment.state is not None for segment in segments)
    player = replayed(made.text)
    assert player.unplayed == 0
    assert player.end_difference() == ""


def test_under_a_flood_of_large_messages_the_bound_is_kept() -> None:
    made = play(1, max_bytes=1 << 20)
    now = made.mesh.now
    made.recorded.handle(
        [ControlLinkUp(connection=ConnectionId(99), peer=RouterId("B"), cost=1, local_conn_id=99, remote_conn_id=99,
                       is_dialer=False, connector=0, pushes_lsu=True)],
        now=now,
    )  # fmt: skip
    for number in range(300):
        keys = tuple(f"M0{number}-{index}" for index in range(rng_size(number)))
        message = MobileAddressUpdate(id=RouterId("Z"), mobile_seq=number + 1, add=keys)
        event = ControlReceived(
            connection=ConnectionId(99), to="_topo/0/all/qdrouter.ma", message=message, ingress=RouterId("Z"), trace=()
        )
        made.recorded.handle([event], now=now + number / 100)
        assert made.recorded.bytes <= 1 << 20
    now += 4
    made.recorded.handle_deadline(now=now)
    assert replayed(made.text).end_difference() == ""


def rng_size(number: int) -> int:
    return 2000 if number % 7 else 9000


def test_what_is_too_large_for_the_ring_is_recorded_without_a_state() -> None:
    made = play(2, max_bytes=16_000)
    assert all(segment.state is None for segment in made.recorded.segments())
    player = replayed(made.text)
    assert player.control is None
    assert player.unplayed > 0


def test_states_are_made_with_pauses_by_what_they_cost() -> None:
    made = play(1)
    recorded = RecordedControlPlane(made.control, max_bytes=8 << 20, max_calls=32, now=40.0, on_fault=never)
    (first,) = recorded.segments()
    assert first.state is not None
    pause = STATE_PAUSE_S * len(first.state)

    def newest(now: float) -> bytes | None:
        for _ in range(16):
            recorded.handle_deadline(now=now)
        return recorded.segments()[-1].state

    assert newest(40.0) is None
    assert newest(40.0 + pause / 2) is None
    assert newest(40.0 + pause) is not None
    assert newest(40.0 + 1.5 * pause) is None
    assert recorded.segments()[0].state is not None, "so all of it plays"
    assert newest(40.0 + 1.5 * pause) is None
    for _ in range(CALLS_AT_ONCE):
        recorded.handle_deadline(now=60.0)
    assert recorded.segments()[-1].state is not None, "made as soon as may be where no state is left"
    end = standing(made.control, 60.0)
    player = replayed("".join(encode({"program": "x", "router": "A"}, recorded.segments(), end)))
    assert player.control is not None
    assert player.end_difference() == ""


def test_a_state_with_orders_that_a_fault_left_behind_is_made_plain() -> None:
    control = play(3).control
    left = CloseConnection(connection=ConnectionId(1), condition=Condition.NOT_ALLOWED, description="x")
    control._sender.do(left)
    again = from_plain(json.loads(json.dumps(to_plain(control))))
    assert again._sender.take() == [left]


def test_a_call_that_raises_is_recorded_and_raises_again() -> None:
    made = play(3)
    with pytest.raises(LocalError):
        made.recorded.handle([Event()], now=made.mesh.now)
    made.recorded.keep(made.mesh.now, None, OutsideFault("turn_fault"))
    player = Player(decode(made.text.splitlines(keepends=True)))
    steps = list(player.steps())
    assert [step.difference for step in steps if step.difference] == []
    assert steps[-2].raised.startswith("LocalError: ")
    assert steps[-1].entry.mark == OutsideFault("turn_fault")


def test_another_outcome_than_the_recorded_one_is_seen_at_its_call() -> None:
    made = play(4)
    lines = made.text.splitlines(keepends=True)
    number = next(at for at, line in enumerate(lines) if '"SendControl"' in line)
    plain = json.loads(lines[number])
    plain["digest"] = "0" * 16
    lines[number] = json.dumps(plain) + "\n"
    differing = [step.entry.line for step in Player(decode(lines)).steps() if step.difference]
    assert differing == [number + 1]


def test_of_a_file_that_is_cut_what_comes_before_the_cut_is_played() -> None:
    text = play(5).text
    for end in (len(text) // 2, len(text) // 3, len(text) - 3):
        player = replayed(text[:end])
        assert "it is cut there" in player.recording.fault
        assert player.recording.end is None
    whole = text.splitlines(keepends=True)
    assert decode(whole[:-1]).fault == f"line {len(whole) - 1} is the last, and no end of a recording: it is cut there"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no recording of amqp-mesh"),
        ("router: {id: A}\n", "no recording of amqp-mesh"),
        ("[1]\n", "no recording of amqp-mesh"),
        ("[" * 100_000, "no recording of amqp-mesh"),
        (f'{{"{MAGIC}": 99, "program": "9.9"}}\n', "version 99, made by amqp-mesh 9.9; this program reads version 1"),
    ],
    ids=["empty", "settings", "list", "deep", "version"],
)  # fmt: skip
def test_what_is_no_recording_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(LocalError, match=words):
        decode(text.splitlines(keepends=True))


def test_no_spoilt_line_makes_anything_but_a_clear_error(rng: random.Random) -> None:
    lines = play(0, seconds=3.0).text.splitlines(keepends=True)
    for _ in range(300):
        spoilt = list(lines)
        at = rng.randrange(len(spoilt))
        line = spoilt[at]
        begin = rng.randrange(len(line))
        spoilt[at] = line[:begin] + rng.choice(["", "null", "-1", '"x"', "[]", "1e999"]) + line[begin + 3 :]
        try:
            player = Player(decode(spoilt))
            for _step in player.steps():
                pass
            player.end_difference()
        except LocalError:
            continue


@pytest.mark.parametrize("name", ["os.system", "builtins.object", "router.core.controlplane.nothing"])
def test_a_state_names_only_classes_of_the_control_plane(name: str) -> None:
    with pytest.raises(LocalError):
        from_plain([["object", name, {}]])


def with_waiting_addresses(number: int = 3 * FIRST) -> RecordedControlPlane:
    """A plane recorded from a turn on in which most addresses that a neighbor has told of wait to be installed."""
    play = star()
    for part in parts_of(number, 1):
        play >> got(TO_B, part, to=TO_ME)
    play.rest()
    assert play.control.next_deadline() <= play.now + PAUSE_S, "some wait"
    control = play.control
    recorded = RecordedControlPlane(control, max_bytes=8 << 20, max_calls=20000, now=play.now, on_fault=never)
    for _ in range(40):
        recorded.handle_deadline(now=control.next_deadline())
    return recorded


END = {"routers": 0, "addresses": 0, "connections": 0, "due": None, "t": 0.0}


def test_a_state_in_which_addresses_wait_is_written_and_plays() -> None:
    recorded = with_waiting_addresses()
    player = replayed("".join(encode({"program": "x", "router": "A"}, recorded.segments(), END)))
    assert player.unplayed == 0
    assert any(entry.actions.get("InstallAddress") for entry in player.recording.entries)


def test_classes_of_a_state_import_no_container_that_cannot_be_written() -> None:
    known = {Counter, deque}
    imported = {
        kind
        for module in _MODULES
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ in ("collections", "array", "queue", "datetime", "types")
    }
    assert deque in imported
    assert imported <= known


def test_a_state_that_cannot_be_written_costs_neither_its_calls_nor_another_state() -> None:
    made = play(1)
    older = made.recorded.segments()[-1]
    spoilt = attrs.evolve(older, state=pickle.dumps(1j))
    end = standing(made.control, made.mesh.now)
    text = "".join(encode({"program": "x", "router": "A"}, [spoilt, older], end))
    recording = decode(text.splitlines(keepends=True))
    assert recording.fault == ""
    first, mark = recording.entries[:2]
    assert first.is_state
    assert first.state is None
    assert mark.mark is not None
    assert mark.mark.what == "unwritable"
    player = replayed(text)
    assert player.unplayed == len(older.calls)
    assert player.end_difference() == ""


def test_a_large_state_is_written_in_small_pieces() -> None:
    recorded = with_waiting_addresses()
    pieces = list(encode({"program": "x", "router": "A"}, recorded.segments()[:1], END))
    assert len("".join(pieces)) > 500_000
    assert max(map(len, pieces)) < 50_000


def test_a_large_state_is_thawed_in_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    control = with_waiting_addresses(12 * FIRST)._control
    sizes: list[int] = []
    read = _StateFrames.read
    monkeypatch.setattr(_StateFrames, "read", lambda self, size, /: sizes.append(size) or read(self, size))
    assert to_plain(thaw(freeze(control))) == to_plain(control)
    frame = 65536  # the pickler begins a new one behind the value with which one gets larger than this
    assert max(sizes) < 2 * frame < sum(sizes)
