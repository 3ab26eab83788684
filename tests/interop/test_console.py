"""The console in a real browser, on a real mesh of real processes: it shows what is there, and what goes wrong."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import attrs
import pytest
from proton import Message, Timeout
from proton.utils import BlockingConnection, BlockingReceiver, BlockingSender

from mesh_config.generators import generate
from mesh_config.models import MIB, ForwardingSettings, HttpSettings
from tests.helpers.browser import Browser
from tests.helpers.processes import MeshProcesses, ReservedPort, without_idle_timeout

pytestmark = pytest.mark.interop

SLOW = "openstack.org/om/rpc/anycast/conductor"
PROBLEMS = "document.getElementById('problem-list').innerText"


class Watched:
    """A mesh of four, the console of its first router, and a browser that shows it."""

    def __init__(self, mesh: MeshProcesses, browser: Browser, url: str, stack: ExitStack) -> None:
        self.mesh = mesh
        self.browser = browser
        self.url = url
        self._stack = stack

    def connect(self, router: str) -> BlockingConnection:
        connection = BlockingConnection(self.mesh.url(router), timeout=30)
        self._stack.callback(connection.conn.free)
        return connection

    def wait_problem(self, *words: str) -> str:
        """The sentence of a problem with all these words, once the page has it."""
        is_it = " && ".join(f"it.innerText.includes({word!r})" for word in words)
        found = f"[...document.querySelectorAll('#problem-list li')].find((it) => {is_it})"
        self.browser.wait(found, 60)
        return str(self.browser.run(f"{found}.firstChild.innerText"))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("console")
    with ExitStack() as stack:
        port = ReservedPort()
        stack.callback(port.close)
        made = without_idle_timeout(generate("full", 4))
        forwarding = ForwardingSettings(connection_bytes=MIB)
        routers = {key: attrs.evolve(router, forwarding=forwarding) for key, router in made.routers.items()}
        routers["R1"] = attrs.evolve(routers["R1"], http=HttpSettings(port=port.number))
        mesh = stack.enter_context(MeshProcesses(attrs.evolve(made, routers=routers), folder / "mesh"))
        mesh.start()
        mesh.wait_converged()
        browser = stack.enter_context(Browser(folder))
        url = f"http://127.0.0.1:{port.number}/"
        browser.open(url)
        browser.wait("document.querySelectorAll('.node').length === 4")
        yield Watched(mesh, browser, url, stack)


def test_the_mesh_is_a_picture_and_a_table_and_nothing_comes_from_elsewhere(watched: Watched) -> None:
    browser = watched.browser
    browser.wait("document.getElementById('state').innerText === 'all is well'", 60)
    assert browser.run("document.querySelectorAll('#picture .edge').length") == 6
    assert browser.run("document.querySelectorAll('.node.ok').length") == 4
    assert browser.run("document.querySelectorAll('#table-part tbody tr').length") == 4
    assert "seen from router R1" in browser.run("document.body.innerText")
    assert browser.requested()
    assert all(url.startswith((watched.url, "about:")) for url in browser.requested())
    assert browser.faults() == []


def test_messages_show_as_rates_on_links_and_at_addresses(watched: Watched) -> None:
    busy = [
        (watched.connect(to).create_receiver(address, credit=100), watched.connect(at).create_sender(address))
        for at, to, address in (("R1", "R2", "billing/invoices"), ("R3", "R4", "billing/orders"))
    ]
    is_over = threading.Event()

    def send(sender: BlockingSender) -> None:
        while not is_over.is_set():
            with suppress(Timeout):
                sender.send(Message(body="x"), timeout=1)

    def receive(receiver: BlockingReceiver) -> None:
        while not is_over.is_set():
            with suppress(Timeout):
                receiver.receive(timeout=1)
                receiver.accept()

    threads = [
        threading.Thread(target=work, args=(link,), daemon=True)
        for receiver, sender in busy
        for work, link in ((send, sender), (receive, receiver))
    ]
    for thread in threads:
        thread.start()
    browser = watched.browser
    try:
        browser.wait("document.querySelector('#picture .edge.busy')", 60)
        browser.wait("[...document.querySelectorAll('.edge-label')].some((it) => it.textContent.includes('/s'))", 60)
        said = "[...document.querySelectorAll('.edge-hit title')].map((it) => it.textContent)"
        browser.wait(f"{said}.some((it) => it.startsWith('R3 - R4') && it.includes('/s'))", 60)  # between others
        browser.run("document.getElementById('tab-Addresses').click()")
        browser.wait("document.getElementById('table-part').innerText.includes('billing/invoices')", 60)
        assert "_topo" not in browser.run("document.getElementById('table-part').innerText"), "routers aren't addresses"
    finally:
        is_over.set()
    for thread in threads:
        thread.join(30)
    browser.run("document.getElementById('tab-Routers').click()")
    assert browser.faults() == []


RATES = """(async () => {
  const { Model } = await import("/model.js");
  const model = new Model();
  const told = [];
  const page = (at, here, told_at) => ({ at, me: "A", totals: { in: 0, out: 0, transit: 0, waiting: 0 },
    routers: [{ id: "B", here, told_at, in: 9 * told_at, out: 0, transit: 0, waiting: 0 }],
    links: [{ one: "A", other: "B", state: here ? "up" : "absent", told_at, there: 5 * told_at, back: 0 }],
    addresses: [], connections: [], problems: [] });
  for (const step of STEPS) {
    model.take(page(...step));
    told.push([model.routerRate("B") ?? null, model.linkRate(model.state.links[0]) ?? null]);
  }
  return told;
})()"""


def test_what_is_absent_and_what_nobody_tells_of_any_more_has_no_rate(watched: Watched) -> None:
    def rates(*steps: tuple[int, bool, int]) -> Any:
        return watched.browser.run(RATES.replace("STEPS", json.dumps(steps)))

    assert rates((1, True, 1), (2, True, 2)) == [[None, None], [9, 5]]
    assert rates((1, True, 1), (2, True, 2), (3, False, 2), (4, True, 4))[2:] == [[None, None], [None, None]]
    assert rates((1, True, 1), (2, True, 2), (11, True, 2), (13, True, 2))[2:] == [[9, 5], [None, None]]
    set_back = rates((8000, True, 8000), (8001, True, 8001), (1, True, 1), (2, True, 2))
    assert set_back[2:] == [[None, None], [9, 5]]


def test_it_is_used_by_keyboard_and_read_by_screen_readers(watched: Watched) -> None:
    browser = watched.browser
    browser.run("document.querySelector('.node').focus()")
    browser.press("Enter")
    browser.wait("!document.getElementById('detail').hidden")
    assert browser.run("document.getElementById('detail-title').innerText") == "Router R1"
    browser.press("Escape")
    browser.wait("document.getElementById('detail').hidden")
    browser.run("document.getElementById('tab-Routers').focus()")
    browser.press("ArrowRight")
    browser.wait("document.getElementById('tab-Links').getAttribute('aria-selected') === 'true'")
    assert browser.run("document.activeElement.id") == "tab-Links"
    found = browser.accessible()
    names = {role: [name for its, name in found if its == role] for role, _ in found}
    assert sum(name.startswith("Router R") for name in names["button"]) == 4
    assert names["tab"] == ["Routers", "Links", "Addresses", "Connections"]
    assert "status" in names
    assert any(name.startswith("4 routers, 0 of them absent") for _, name in found)
    browser.run("document.getElementById('tab-Routers').click()")


def test_light_and_dark_have_contrast(watched: Watched) -> None:
    browser = watched.browser
    seen = set()
    for _ in range(2):
        browser.run("document.getElementById('theme').click()")
        colors = browser.run(
            "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor].join(';')"
        )
        seen.add(colors)
        text, back = (luminance(color) for color in colors.split(";"))
        assert (max(text, back) + 0.05) / (min(text, back) + 0.05) > 7
    assert len(seen) == 2


def luminance(color: str) -> float:
    """Of `rgb(r, g, b)`, by the guidelines for accessible pages (WCAG 2, relative luminance)."""
    parts = [int(part) / 255 for part in color[4:-1].split(",")]
    red, green, blue = (each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# What goes wrong


def test_a_slow_subscriber_is_named_where_it_is(watched: Watched) -> None:
    watched.connect("R2").create_receiver(SLOW, credit=2)
    sender = watched.connect("R1").create_sender(SLOW)
    for _ in range(3):
        send_at_once(sender, b"x", "")
    sentence = watched.wait_problem(SLOW, "told by router R2", "publishers wait for it at router R1 too")
    assert "can't send: subscriber" in sentence
    assert "grants no credit" in sentence
    browser = watched.browser
    browser.wait("document.querySelector('.node.warn')")
    browser.open(watched.url)
    browser.wait("document.querySelector('#problem-list li')")
    assert "told by router R2" in browser.run(PROBLEMS), "the first page has what other routers tell"
    command = "document.querySelector('#problem-list code').innerText"
    assert re.search(r"^amqp-mesh stat credit .* --url amqp://127\.0\.0\.1:\d+$", browser.run(command))
    browser.wait("document.getElementById('totals').innerText.includes('1, at R1')")
    # Where the message waits is as amber as where the subscriber is.
    nodes = "[...document.querySelectorAll('.node.warn')].map((it) => it.ariaLabel.slice(0, 9)).join()"
    browser.wait(f"{nodes} === 'Router R1,Router R2'")


def test_a_flooding_client_is_named(watched: Watched) -> None:
    watched.connect("R1").create_receiver("reports", credit=1)
    sender = watched.connect("R1").create_sender(None)
    for _ in range(4):
        with suppress(Timeout):  # from some message on it is not read
            send_at_once(sender, b"x" * 400_000, "reports", timeout_s=2)
    sentence = watched.wait_problem("sends more than is taken")
    assert sentence.startswith("Client ")
    watched.browser.run("document.getElementById('tab-Connections').click()")
    watched.browser.wait("document.querySelector('#table-part tr.bad')")
    watched.browser.run("document.getElementById('tab-Routers').click()")


def send_at_once(sender: BlockingSender, body: bytes, address: str, timeout_s: float = 30) -> None:
    """Send without waiting for the outcome."""
    sender.connection.wait(lambda: sender.link.credit > 0, timeout_s)
    sender.link.send(Message(body=body, address=address or None))
    transport = sender.connection.conn.transport
    sender.connection.wait(lambda: sender.link.queued == 0 and transport.pending() == 0, timeout_s)


def test_a_router_that_dies_stays_as_absent_and_one_that_comes_and_goes_flaps(watched: Watched) -> None:
    watched.mesh.kill("R4")
    watched.wait_problem("Router R4 is absent")
    browser = watched.browser
    browser.wait(
        "document.querySelector('.node.bad') && document.querySelectorAll('#picture .edge.absent').length === 3"
    )
    assert browser.run("document.querySelector('.node.bad').getAttribute('aria-label')").startswith("Router R4")
    assert browser.run("document.querySelectorAll('.node').length") == 4
    watched.mesh.start("R4")
    browser.wait("!document.querySelector('.node.bad')", 60)
    # It may go again: nobody is told so soon that all is well.
    browser.wait("[...document.querySelectorAll('.node.warn')].some((it) => it.ariaLabel.startsWith('Router R4'))", 60)
    watched.mesh.kill("R4")
    sentence = watched.wait_problem("comes and goes")
    assert sentence.startswith("Router R4 is absent"), "one problem, whose losses stand beside it"
    told = browser.run(PROBLEMS)
    # On a slow machine a neighbor may have been given up once more while the router started.
    assert re.search(r"lost [23] times in five minutes", told), told
    watched.mesh.start("R4")
    browser.wait("!document.querySelector('.node.bad')", 60)
    assert browser.faults() == []


IS_STALE = "document.body.classList.contains('stale')"
FAULT = "document.getElementById('fault-words').innerText"
GREY = (
    "['picture', 'table-part', 'totals'].every((id) => getComputedStyle(document.getElementById(id)).filter !== 'none')"
)
PILL = "document.getElementById('state').innerText"


@pytest.mark.parametrize(
    ("answer", "pill", "words"),
    [
        ("new Response('sign in as a user', {status: 401})", "sign in again", "reload this page, and sign in."),
        ("new Response('this user may not\\nmore', {status: 403})", "refused", "refuses to tell: this user may not."),
        ("new Response('', {status: 503})", "error 503", "router R1 answers with error 503."),
        ("new Response('fault of the router\\n', {status: 500})", "error 500", "error 500: fault of the router."),
        ("new Response('<html>')", "answer unreadable", "what router R1 answers can't be read: reload this page."),
        ("Promise.reject(new TypeError('Failed to fetch'))", "does not answer", "router R1 does not answer."),
        ("Promise.reject(new DOMException('', 'TimeoutError'))", "does not answer", "router R1 does not answer."),
    ],
)
def test_an_answer_that_tells_nothing_is_told_by_its_kind(watched: Watched, answer: str, pill: str, words: str) -> None:
    browser = watched.browser
    browser.open(watched.url)
    browser.wait("document.querySelectorAll('.node').length === 4")
    browser.run(f"window.fetched = window.fetch, window.fetch = async () => {answer}, null")
    browser.wait(IS_STALE)
    assert browser.run(PILL) == pill
    assert browser.run(FAULT).startswith("Nothing is known since ")
    assert browser.run(FAULT).endswith(words)
    browser.run("document.getElementById('tab-Links').click()")
    assert browser.run(PILL) == pill, "whoever looks at another table sees no more than is known"
    browser.run("window.fetch = window.fetched, document.getElementById('tab-Routers').click()")
    browser.wait(f"!{IS_STALE} && document.getElementById('fault').hidden")
    assert browser.faults() == []


def test_nothing_looks_well_while_the_router_of_the_page_is_dead(watched: Watched) -> None:
    browser = watched.browser
    browser.size(1400, 1000)
    browser.open(watched.url)  # what was wrong before is over, with who was connected
    browser.wait("document.querySelectorAll('.node').length === 4")
    lines = "new Set([...document.querySelectorAll('#totals div')].map((it) => it.offsetTop)).size"
    high = "document.querySelector('header').offsetHeight"
    before = browser.run(high)
    watched.mesh.kill("R1")
    browser.wait(IS_STALE, 60)
    assert re.fullmatch(r"Nothing is known since \d\d:\d\d:\d\d: router R1 does not answer\.", browser.run(FAULT))
    assert browser.run("document.getElementById('fault').checkVisibility()")
    assert "nobody waits" not in browser.run("document.getElementById('problems').innerText")
    assert browser.run(PILL) == "does not answer"
    assert browser.run(GREY)
    assert "Failed to fetch" not in browser.run("document.body.innerText")
    assert (browser.run(lines), browser.run(high)) == (1, before)
    assert browser.run("document.title").startswith("(?) ")
    watched.mesh.start("R1")
    browser.wait(f"!{IS_STALE}", 60)
    assert browser.run("document.getElementById('fault').hidden")
    assert not browser.run(GREY)
    browser.wait("document.querySelectorAll('.node:not(.bad)').length === 4", 60)
    assert browser.run("document.getElementById('totals').innerText").startswith("routers\n4 of 4")
