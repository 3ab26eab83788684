"""The worked example of `explanation/credit.md`: a play of the simulation, whose numbers make the text.

Run it to write the steps and the table into the page anew. A test compares the page with what the machine does.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import attrs

if __name__ == "__main__":
    # Only then: tests may be of the installed package.
    sys.path.insert(0, str(Path(__file__).parent.parent))

from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.ids_and_conditions import RouterId
from router.testing.anycast_mesh import AnycastMesh
from router.testing.clients import GrantHabit, SimSubscriber

PAGE = Path(__file__).parent / "explanation" / "credit.md"
BEGIN = "<!-- From here on made by docs/credit_example.py; changes belong there. -->\n"
END = "<!-- Made until here. -->\n"
A, B, C = (RouterId(name) for name in "ABC")
CREDIT = 20
GET = 10
"""What the subscriber grants and drains at the end."""
Numbers = dict[str, int]
"""All numbers of one moment, by the names that the texts use."""


class Story:
    """Three routers in a line: publishers P1 and P2 at A, P3 at B, the subscriber at C."""

    def __init__(self) -> None:
        # Chance would only make the times uneven.
        self.mesh = AnycastMesh(
            [("A", "B"), ("B", "C")], delay_s=0.001, jitter_s=0.0, client_delay_s=0.0001, news_s=0.0
        )
        self.mesh.on_step = self._check
        self._subscribers: list[SimSubscriber] = []
        self._since = 0.0

    def _check(self) -> None:
        """After each turn of each router."""
        assert self.mesh.excess() <= 0, "the sum of the page does not hold"

    def run_until(self, ms: float) -> None:
        """Let time pass until *ms* after the subscriber's attach."""
        self.mesh.run_for(max(0.0, self._since + ms / 1000 - self.mesh.network.now))
        self.mesh.check_invariants()

    def attach(self) -> None:
        """The publishers, one after the other, so that their names are in order."""
        for name in (A, A, B):
            self.mesh.add_publisher(name)
            self.mesh.run_for(0.001)
        self._since = self.mesh.network.now

    def subscribe(self) -> None:
        self._subscribers.append(self.mesh.add_subscriber(C, credit=CREDIT, top_up=GrantHabit.HALF))

    def send(self, publisher: int, count: int) -> None:
        self.mesh.publishers[publisher - 1].offer(count)

    def stall(self) -> None:
        """The subscriber grants no more, and takes nothing back."""
        self._subscribers[0].is_paused = True

    def get(self) -> None:
        """The subscriber grants and drains with one frame, as a get does that does not want to wait."""
        subscriber = self._subscribers[0]
        subscriber.granted += GET
        subscriber.link.grant(GET)
        subscriber.drain()

    @property
    def drain_ms(self) -> float:
        """How long the last drain took."""
        return max((took for s in self._subscribers for took in s.drained_s[-1:]), default=0.0) * 1000

    def numbers(self) -> Numbers:
        """What is seen now."""
        mesh = self.mesh
        found: Numbers = {
            "unspent": mesh.granted(),
            "taken": sum(mesh.delivered_of.values()),
            "publishers": mesh.attached(),
            "used": mesh.held() + mesh.inside(),
            "allowed": mesh.granted() + mesh.attached(),
            "core": mesh.waiting_in_core(),
        }
        for word, name in (("a", A), ("b", B), ("c", C)):
            machine = mesh.routers[name].machine
            pool = machine.pools.get(C)
            circuits = list(pool.circuits.values()) if pool else []
            found[word] = pool.capacity if pool else 0
            found[f"{word}_own"] = pool.local.out if pool else 0
            found[f"{word}_circuits"] = len(circuits)
            found[f"{word}_dealt"] = sum(circuit.out for circuit in circuits)
            found[f"{word}_weight"] = pool.told_weight if pool else 0
            found[f"{word}_wait"] = len(machine.publishers.waiting)
        for key, client in mesh.publishers.items():
            publisher = mesh.routers[mesh.home(client)].machine.publishers.attached[key]
            word = f"p{key + 1}"
            found |= {word: publisher.held, f"{word}_lent": publisher.lent, f"{word}_lowered": publisher.lowered}
        return found


@attrs.frozen
class Step:
    """One step: what is done at *at_ms*, and the numbers at *ms*, both since the subscriber's attach."""

    title: str
    text: str
    ms: float
    act: Callable[[Story], object] | None = None
    at_ms: float = 0
    count: int = 0
    """Messages that a publisher wants to send now."""


def sends(publisher: int, count: int) -> Callable[[Story], object]:
    return lambda story: story.send(publisher, count)


def send_both(count: int) -> Callable[[Story], object]:
    return lambda story: (story.send(1, count), story.send(3, count))


def stalls_and_sends(publisher: int, count: int) -> Callable[[Story], object]:
    return lambda story: (story.stall(), story.send(publisher, count))


STEPS = [
    Step(
        "{publishers} publishers attach",
        """
        P1 and P2 attach at A, P3 at B. Nobody subscribes, so no router gives credit.
        """,
        ms=0,
        act=Story.attach,
    ),
    Step(
        "The subscriber attaches at C and grants {unspent}",
        """
        C's pool has {c}. It has no claimants yet: there are {c_circuits} circuits. A and B hear that C has a
        subscriber, but not yet what it has granted. Each publisher gets its one credit at once, P1 {p1}, P2 {p2} and
        P3 {p3}: nothing backs it, so it need not wait for the subscriber's. A and B make their circuits and tell their
        weights on them, A {a_weight} and B {b_weight}. Nobody is busy, but until the first credit has come all idle
        publishers of a router count together as one busy one.
        """,
        ms=0.5,
        act=Story.subscribe,
    ),
    Step(
        "C deals",
        """
        B is the only claimant of C's pool, so it could have all of it. But a circuit begins with a window of
        {first_window}, so B gets {c_dealt}. Meanwhile B has heard of A's {was[a_weight]} and tells C {b_weight}: this
        and {was[b_weight]} for its own publisher.
        """,
        ms=1.5,
    ),
    Step(
        "B deals",
        """
        B has its first credit, so P3, which is idle, counts no more: B tells C {b_weight}. Of its {b} credits it sets
        {b_dealt} aside for the circuit from A, which has weight {was[a_weight]}, and {b_own} for its own publisher. P3
        keeps its {p3}, which is not taken from the pool.
        """,
        ms=2.5,
    ),
    Step(
        "The first credit reaches A",
        """
        A has {a} now. Its publishers are idle as well, so it tells B the weight {a_weight}, and deals them {a_own}: the
        {a} lie ready for the one that sends first. As long as nobody sends, P1, P2 and P3 hold no more than their one.
        Of the {unspent} credits {c_unlent} are still free at C.
        """,
        ms=3.5,
    ),
    Step(
        "P1 wants to send {count}",
        """
        The first message uses P1's one credit, leaves A at once with one of A's {was[a]}, and shows that P1 is busy.
        So A deals the other {a_own} to its publishers. P1's window of 1 has been used and becomes 2: P1 holds {p1}, of
        which {p1_lent} is lent.
        """,
        ms=10.15,
        act=sends(1, 30),
        at_ms=10,
        count=30,
    ),
    Step(
        "The windows grow",
        """
        A holder that uses half of its window gets twice as much: P1 now holds {p1}, A's circuit {b_dealt} and B's
        {c_dealt}. {taken} messages have arrived, and the subscriber has topped up.
        """,
        ms=19,
    ),
    Step(
        "All {taken} have arrived",
        """
        The subscriber has topped up again and has {unspent} credits. All of them lie at A; P1 holds {p1}, of which
        {p1_lent} are lent.
        """,
        ms=40,
    ),
    Step(
        "P1 has sent nothing for {busy_ms} ms",
        """
        Nobody asks for credit, and still A lowers P1 from {was[p1]} to {p1}: credit that lies idle would be missing
        where somebody needs it. The other {p1_lowered} are in quarantine: they still count as held, because P1 may have
        used them before it sees the lowering. A tells B its weight, {a_weight}, and B tells C. So C drains B's
        circuit, and B drains A's.
        """,
        ms=130,
    ),
    Step(
        "The credit is back",
        """
        After the quarantine of {quarantine_ms} ms A has answered the drain, and then B. The circuits stay, with
        {c_dealt} credits. All {unspent} are free at C, a round trip away from the publisher that sends next.
        """,
        ms=200,
    ),
    Step(
        "P3 wants to send {count}",
        """
        It uses its one credit, and B has none to send the message on with. So {b_wait} message waits at B until its
        weight has reached C, and credit has come back.
        """,
        ms=250.2,
        act=sends(3, 2),
        at_ms=250,
        count=2,
    ),
    Step(
        "P1 and P3 want to send {count} each",
        """
        All have arrived. P1 and P3 are both still busy, so B has dealt its {b} to both claimants of its pool: {b_dealt}
        to the circuit from A and {b_own} to its own publishers. P1 holds {p1}, of which {p1_lent} are lent, and P3
        holds {p3}, of which {p3_lent}.
        """,
        ms=540,
        act=send_both(20),
        at_ms=500,
        count=20,
    ),
    Step(
        "P3 wants to send {count} more, and the subscriber stalls",
        """
        From now on the subscriber grants nothing. P3 has used all {was[b_own]} that B had dealt to it, and {b_wait}
        message waits at B. A has had {was[a]} credits and used none for more than {idle_ms} ms. Now that somebody is
        backlogged this is enough: B drains the circuit from A, and A lowers P1 from {was[p1]} to {p1}; {p1_lowered} are
        in quarantine.
        """,
        ms=553,
        act=stalls_and_sends(3, 20),
        at_ms=550,
        count=20,
    ),
    Step(
        "The idle holder has given way",
        """
        After the quarantine A has answered the drain and returned its {was[a]}. B lent them to P3, and they are used
        up: {got} more messages have arrived, and {b_wait} waits at B. P3 has {p3} credits, so its last message stays
        with it. The subscriber has {unspent} credits left.
        """,
        ms=620,
    ),
    Step(
        "P1 wants to send {count} more",
        """
        It uses its one credit. A has none to send the message on with, so {a_wait} waits at A. Each publisher
        is at one, as credit or as a message that waits: P1, P2 and P3 hold {p1}, {p2} and {p3}.
        """,
        ms=702,
        act=sends(1, 1),
        at_ms=700,
        count=1,
    ),
    Step(
        "The subscriber grants {unspent} and drains",
        """
        It wants what there is, now, and the rest of its credit back. C grants B {c_dealt} and drains it with the same
        frame, because B has told a weight. B sends on the message that waited there, so P3 gets its {p3} credit back
        and can send its last one. And B grants and drains A's circuit in the same way: {b_dealt}, as much as a window
        begins with.
        """,
        ms=801.2,
        act=Story.get,
        at_ms=800,
    ),
    Step(
        "The drain is answered",
        """
        B sends on P3's last message, A the one that waited there, and what is left is returned from A to B and from B
        to C. The subscriber gets {got} messages, and {drain_ms} ms after it asked it has {unspent} credits: a
        round trip to the farthest router. Nothing had been lent, so nobody is lowered. P1, P2 and P3 hold {p1}, {p2}
        and {p3}.
        """,
        ms=805,
    ),
    Step(
        "The address closes",
        """
        The subscriber took back its credit and has granted none for {linger_s} s. C tells B, B tells A, and all
        credit is taken back: P1, P2 and P3 hold {p1}, {p2} and {p3}. The next credit opens the address again.
        """,
        ms=1900,
    ),
]
COLUMNS = ("step", "ms", "S", "C→B", "B→A", "B", "A", "P1", "P2", "P3", "wait", "sum", "most")


def play() -> list[tuple[Step, str, str, Numbers]]:
    """Each step with its title and text, filled in, and its numbers."""
    story, timing = Story(), CreditTiming()
    found = []
    was: Numbers = {}
    for step in STEPS:
        if step.act is not None:
            story.run_until(step.at_ms)
            step.act(story)
        story.run_until(step.ms)
        now = story.numbers()
        got = now["taken"] - was.get("taken", 0)
        words = {
            **now,
            "was": was,
            "count": step.count,
            "got": got,
            "c_unlent": now["unspent"] - now["c_dealt"],
            "drain_ms": f"{story.drain_ms:.1f}",
            "first_window": timing.first_window,
            "busy_ms": f"{timing.busy_s * 1000:g}",
            "idle_ms": f"{timing.idle_s * 1000:g}",
            "quarantine_ms": f"{timing.quarantine_s * 1000:g}",
            "linger_s": f"{timing.linger_s:g}",
        }
        found.append((step, step.title.format(**words), " ".join(step.text.format(**words).split()), now))
        was = now
    return found


def row(number: int, step: Step, now: Numbers) -> str:
    """A row of the table; credit in quarantine is written as `1+3`."""
    held = [(now[word], now[f"{word}_lowered"]) for word in ("p1", "p2", "p3")]
    publishers = [f"{credit}+{lowered}" if lowered else str(credit) for credit, lowered in held]
    waiting = [f"{now[f'{word}_wait']}&nbsp;at&nbsp;{word.upper()}" for word in ("a", "b", "c") if now[f"{word}_wait"]]
    cells = [number, f"{step.ms:g}" if number > 1 else "", now["unspent"], now["c_dealt"], now["b_dealt"], now["b_own"]]
    cells += [now["a_own"], *publishers, ", ".join(waiting), now["used"], now["allowed"]]
    return "| " + " | ".join(map(str, cells)) + " |\n"


def block() -> str:
    """The steps and the table as Markdown."""
    steps = play()
    parts = [
        textwrap.fill(f"{number}. **{title}.** {text}", 120, subsequent_indent=" " * 4, break_on_hyphens=False) + "\n"
        for number, (_, title, text, _) in enumerate(steps, 1)
    ]
    parts.append("\nThe same as a table; its columns are explained below it.\n\n")
    parts += ["| " + " | ".join(COLUMNS) + " |\n", "|" + " ---: |" * len(COLUMNS) + "\n"]
    parts += [row(number, step, now) for number, (step, _, _, now) in enumerate(steps, 1)]
    return "".join(parts)


def main() -> None:
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n{block()}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
