"""The picture and the tables of the console in a real browser, of pages made for it: what can be read."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import networkx as nx
import pytest
import trio
from starlette.applications import Starlette

from mesh_config.generators import generate
from mesh_config.graph import topology
from mesh_config.models import HttpSettings
from router.management.console.routes import console_routes
from router.management.problem_kinds import NOTICES
from router.net.http_server import HttpCounters, HttpServer
from tests.helpers.browser import Browser

pytestmark = pytest.mark.interop

CITIES = """
    hamburg-1 dresden-2, hamburg-2 hamburg-1, berlin-1 hamburg-2, berlin-2 berlin-1, munich-1 berlin-2,
    munich-1 hamburg-2, munich-2 munich-1, koeln-1 munich-2, koeln-1 hamburg-1, koeln-2 koeln-1, frankfurt-1 koeln-2,
    frankfurt-1 berlin-1, frankfurt-2 frankfurt-1, frankfurt-2 berlin-2, dresden-1 frankfurt-2, dresden-2 dresden-1
"""
OWN_RATE = 5.8
"""Messages a second of the console's own that were counted on a link to a neighbor."""

LONG = "a-router-with-a-very-long-name-in-region-1.example.net"

Page = dict[str, Any]


class ShownPage:
    """A browser that shows a page, which can be changed meanwhile."""

    def __init__(self, browser: Browser, page: Page, *, is_still: bool) -> None:
        self.browser = browser
        self.page = page
        self.rates: dict[tuple[str, str], float] = {}
        """Of links, messages a second, by ends."""
        self._asked = 0
        self._is_still = is_still

    def made(self) -> Generator[None, None, bytes]:
        """The page, as if a second had passed since the one before, or no time at all."""
        yield
        self._asked = 1 if self._is_still else self._asked + 1
        at = self.page["at"] = 1000 + self._asked
        for link in self.page["links"]:
            rate = self.rates.get((link["one"], link["other"]))
            if rate is not None:
                link |= {"told_at": at, "there": rate * self._asked, "back": 0}
        routers, problems = self.page["routers"], self.page["problems"]
        counts = {
            "routers": len(routers),
            "routers_here": sum(it["here"] for it in routers),
            "links": len(self.page["links"]),
            "problems": len(problems),
            "notices": sum(it["kind"] in NOTICES for it in problems),
        }
        full = [{"about": [], "explains": [], **it} for it in problems]
        return json.dumps({**self.page, "problems": full, "totals": counts | self.page["totals"]}).encode()

    def look(self, width: int) -> None:
        """Give the window that width, and wait until all is placed for it."""
        self.browser.size(width, 900)
        inner = "document.getElementById('picture').getBoundingClientRect().width"
        self.browser.wait(f"Math.abs(document.getElementById('picture').viewBox.baseVal.width - {inner}) < 20")

    def link(self, name: str) -> str:
        """Script: the line of a link."""
        return (
            "[...document.querySelectorAll('#picture .edge-hit')]"
            f".find((it) => it.textContent.startsWith({name!r})).previousSibling"
        )


@contextmanager
def shown(folder: Path, page: Page, *, is_still: bool = False) -> Iterator[ShownPage]:
    """A browser with that page; of one whose time stands still no rate can be told."""
    port: Queue[int] = Queue()
    is_over = threading.Event()
    with Browser(folder) as browser:
        found = ShownPage(browser, page, is_still=is_still)
        server = threading.Thread(target=serve, args=(found.made, port, is_over))
        server.start()
        try:
            browser.open(f"http://127.0.0.1:{port.get(timeout=30)}/")
            browser.wait(f"document.querySelectorAll('.node').length === {len(page['routers'])}", 60)
            yield found
            assert browser.faults() == []
        finally:
            is_over.set()
            server.join(30)


def serve(made: Callable[[], Generator[None, None, bytes]], port: Queue[int], is_over: threading.Event) -> None:
    """Serve the console with pages made so until *is_over*."""

    async def main() -> None:
        app = Starlette(routes=console_routes(made, 0.5))
        server = HttpServer(HttpSettings(port=0), app, HttpCounters(), lambda error: None)
        port.put(server.port)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run)
            while not is_over.is_set():
                await trio.to_thread.run_sync(is_over.wait, 0.2)
            nursery.cancel_scope.cancel()
        server.close()

    trio.run(main)


def page_of(graph: nx.Graph[str]) -> Page:
    """A mesh in which all is well, seen from its first router."""
    me = min(graph)
    totals = {"addresses": 0, "connections": 0, "waiting": 0, "held_bytes": 0, "mark_bytes": 1, "in": 0, "out": 0}
    costs = nx.single_source_shortest_path_length(graph, me)
    routers = [
        {"id": key, "here": True, "configured": True, "since": 1, "reason": "", "flaps": 0, "recent": 0,
         "cost": costs[key], "hop": key, "addresses": 3}
        for key in sorted(graph)
    ]  # fmt: skip
    links = [
        {"one": one, "other": other, "state": "up", "cost": 1, "configured_cost": 1, "since": 1, "reason": None,
         "flaps": 0, "recent": 0}
        for one, other in sorted((min(pair), max(pair)) for pair in graph.edges)
    ]  # fmt: skip
    page = {"at": 2.0, "me": me, "mesh": "some", "version": "0", "uptime": 1.0, "totals": totals}
    return page | {"routers": routers, "links": links, "addresses": [], "connections": [], "problems": []}


def cities() -> nx.Graph[str]:
    """Twelve routers with long names: such as had a link through the disc of another."""
    return nx.Graph(tuple(pair.split()) for pair in CITIES.split(","))


def square() -> nx.Graph[str]:
    return nx.Graph([("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")])


# The picture

READABLE = """[...document.querySelectorAll('#picture text')].filter((it) => it.textContent).map((it) =>
  it.getBoundingClientRect().height)"""
USED = """(() => { const all = [...document.querySelectorAll('.node')].map((it) => it.getBoundingClientRect());
  const box = document.getElementById('picture').getBoundingClientRect();
  const of = (one, other, from, to) => (Math.max(...all.map((it) => it[other])) - Math.min(...all.map((it) => it[one])))
    / (box[to] - box[from]);
  const isIn = all.every((it) => it.left >= box.left && it.right <= box.right && it.top >= box.top
    && it.bottom <= box.bottom);
  return [isIn, of('left', 'right', 'left', 'right'), of('top', 'bottom', 'top', 'bottom'), box.height / box.width];
})()"""
THROUGH = """(() => {
  const nodes = [...document.querySelectorAll('.node')].map((it) => ({ id: it.dataset.router,
    place: it.getAttribute('transform').match(/[-0-9.]+/g).map(Number),
    radius: it.querySelector('circle').r.baseVal.value }));
  const far = (point, node) => Math.hypot(point.x - node.place[0], point.y - node.place[1]);
  return [...document.querySelectorAll('#picture .edge')].flatMap((line) => {
    const long = line.getTotalLength();
    const points = Array.from({ length: 81 }, (_, at) => line.getPointAtLength(long * at / 80));
    return nodes.filter((it) => far(points[0], it) > 2 && far(points[80], it) > 2
      && points.some((point) => far(point, it) < it.radius + 2)).map((it) => it.id);
  });
})()"""


@pytest.mark.parametrize("kind", ["square", "cities", "geometric"])
def test_at_each_width_the_picture_fills_its_box_and_can_be_read(tmp_path: Path, kind: str) -> None:
    graph = {"square": square, "cities": cities, "geometric": lambda: topology(generate("geometric", 30))}[kind]()
    with shown(tmp_path, page_of(graph)) as page:
        for width in (400, 1400):
            page.look(width)
            is_in, wide, high, shape = page.browser.run(USED)
            assert is_in, "no name is cut"
            assert wide > 0.6
            assert high > 0.6
            assert shape < 1.8, "no blank bands"
            assert min(page.browser.run(READABLE), default=99) > 12
            assert page.browser.run(THROUGH) == [], "a link through the disc of another looks like two links"
            assert page.browser.run("document.documentElement.scrollWidth") <= width


def test_names_and_words_have_a_halo_where_lines_cross_them(tmp_path: Path) -> None:
    with shown(tmp_path, page_of(cities())) as page:
        style = (
            "((it) => [it.paintOrder.split(' ')[0], it.stroke, it.strokeWidth])"
            "(getComputedStyle(document.querySelector({!r})))"
        )
        halo = page.browser.run(style.format(".node text"))
        assert halo == page.browser.run(style.format(".edge-label"))
        assert halo[0] == "stroke"


def test_every_kind_of_line_is_in_the_legend_and_no_two_look_alike(tmp_path: Path) -> None:
    made = page_of(square())
    made["links"][1]["state"] = "absent"
    made["links"][2]["state"] = "unknown"
    with shown(tmp_path, made) as page:
        page.rates = {("A", "B"): 100.0}
        look = "((it) => { const made = getComputedStyle(it); return [made.stroke, made.strokeDasharray].join(); })"
        page.browser.wait("document.querySelector('#picture .edge.busy')")
        drawn = page.browser.run(f"[...document.querySelectorAll('#picture .edge')].map({look})")
        assert len(set(drawn)) == 4
        assert set(drawn) == set(page.browser.run(f"[...document.querySelectorAll('.legend .edge')].map({look})"))
        busy = f"getComputedStyle({page.link('A - B')}).strokeDasharray"
        assert page.browser.run(busy) == "none", "dashes are of what is absent or not told of"


def test_the_width_of_a_link_says_how_much_whatever_others_carry(tmp_path: Path) -> None:
    with shown(tmp_path, page_of(square())) as page:

        def width(rates: dict[tuple[str, str], float]) -> list[float]:
            page.rates = rates
            words = [f"{page.link(f'{one} - {other}')}.nextSibling.textContent" for one, other in rates]
            told = [f"{rate / 1000:.0f} k/s" if rate > 10_000 else f"{rate:.0f}/s" for rate in rates.values()]
            page.browser.wait(" && ".join(f"{w}.includes('{t}')" for w, t in zip(words, told, strict=True)))
            drawn = "[...document.querySelectorAll('#picture .edge')].map((it) => it.getAttribute('stroke-width'))"
            return [float(each) for each in page.browser.run(drawn)]

        alone = width({("A", "B"): 112.0})
        beside = width({("A", "B"): 112.0, ("B", "C"): 50_000.0})
        assert alone[0] == beside[0]
        assert alone[0] < beside[2] <= 12


def test_a_mesh_that_carries_the_consoles_own_questions_alone_is_idle(tmp_path: Path) -> None:
    with shown(tmp_path, page_of(square())) as page:
        # Of two ways to C, at a cost of 2, one has its questions.
        page.rates = {("A", "B"): 2 * OWN_RATE, ("A", "D"): OWN_RATE, ("B", "C"): OWN_RATE, ("C", "D"): 0.0}
        page.browser.run("document.getElementById('tab-Links').click()")
        page.browser.wait("document.getElementById('table-part').innerText.includes('5.8/s')")
        assert page.browser.run("document.querySelectorAll('#picture .edge.busy').length") == 0
        widths = "[...document.querySelectorAll('#picture .edge')].map((it) => it.getAttribute('stroke-width'))"
        assert set(page.browser.run(widths)) == {"1.5"}


def test_what_is_said_of_a_router_is_parted_by_commas(tmp_path: Path) -> None:
    made = page_of(square())
    made["routers"][1] |= {"told_at": 1, "waiting": 0}
    made["routers"][2] |= {"here": False, "reason": "lost by B"}
    made["problems"] = [{"kind": "slow", "subject": "x", "sentence": "slow", "since": 1, "router": "A", "also": [],
                         "command": "amqp-mesh stat credit"}]  # fmt: skip
    with shown(tmp_path, made, is_still=True) as page:
        said = page.browser.run("[...document.querySelectorAll('.node')].map((it) => it.ariaLabel)")
        assert said == [
            "Router A, with a problem, this router",
            "Router B, well, cost 1",
            "Router C, absent: lost by B",
            "Router D, well, cost 1",
        ]


def hundred_routers() -> Page:
    """A mesh of a hundred, some of them absent, some links flapping."""
    page = page_of(topology(generate("geometric", 100)))
    for at, router in enumerate(page["routers"]):
        router |= {"here": at % 25 != 7, "reason": "lost by its neighbors"}
    for at, link in enumerate(page["links"]):
        link |= {"flaps": 3 * (at % 40 == 0), "recent": 3 * (at % 40 == 0)}
    notice = {"kind": "lost-for-a-while", "sentence": "a link was lost for 1 s, and is back", "since": 990,
              "router": page["me"], "also": [], "command": "amqp-mesh stat mesh"}  # fmt: skip
    return page | {"problems": [notice]}


def test_a_hundred_routers_are_apart_from_each_other_and_in_the_picture(tmp_path: Path) -> None:
    with shown(tmp_path, hundred_routers()) as page:
        browser = page.browser
        assert browser.run("document.querySelectorAll('.node.bad').length") == 4
        assert browser.run("document.getElementById('state').innerText") == "just recovered · 1 notice"
        page.look(1400)
        box = "document.getElementById('picture').viewBox.baseVal"
        width, height = browser.run(f"[{box}.width, {box}.height]")
        places = browser.run(
            "[...document.querySelectorAll('.node')].map((it) =>"
            " it.getAttribute('transform').match(/[-0-9]+/g).map(Number))"
        )
        assert all(0 < x < width and 0 < y < height for x, y in places)
        nearest = [
            min((x - a) ** 2 + (y - b) ** 2 for at, (a, b) in enumerate(places) if at != own)
            for own, (x, y) in enumerate(places)
        ]
        assert min(nearest) > 15**2
        assert browser.run(THROUGH) == []


def test_routers_that_nobody_is_linked_to_stay_near_the_others(tmp_path: Path) -> None:
    linked = "A", "B", "C", LONG
    made = page_of(nx.Graph([("A", "B"), ("B", "C"), ("A", "C"), ("C", LONG)]))
    made["routers"].append(dict(made["routers"][0], id="E", here=False, reason="never seen"))
    with shown(tmp_path, made) as page:
        for width in (390, 1400):
            page.look(width)
            places = page.browser.run(PLACES)
            for axis in (0, 1):
                every = [place[axis] for place in places.values()]
                own = [places[key][axis] for key in linked]
                assert max(own) - min(own) > 0.6 * (max(every) - min(every)), "the others are squeezed into a corner"


def test_parts_of_a_mesh_that_was_cut_stay_near_each_other(tmp_path: Path) -> None:
    with shown(tmp_path, page_of(square())) as page:
        ties = "import('/layout.js').then((it) => JSON.stringify(it.ties({}, {})))"
        assert json.loads(page.browser.run(ties.format(4, [[0, 1], [1, 2], [2, 3]]))) == []
        # The largest part has 2, 3 and 4; of each other one its first is tied to one of these.
        assert json.loads(page.browser.run(ties.format(7, [[0, 1], [4, 3], [3, 2]]))) == [[2, 0], [3, 5], [4, 6]]
        assert json.loads(page.browser.run(ties.format(2, []))) == [[0, 1]]
        assert json.loads(page.browser.run(ties.format(0, []))) == []


PLACES = """Object.fromEntries([...document.querySelectorAll('.node')].map((it) =>
  [it.dataset.router, it.getAttribute('transform').match(/[-0-9]+/g).map(Number)]))"""


def test_costs_are_shown_in_a_picture_as_narrow_as_a_telephone(tmp_path: Path) -> None:
    with shown(tmp_path, page_of(nx.Graph([("A", "B"), ("B", "C"), ("A", "C"), ("C", LONG)]))) as page:
        page.rates = {("A", "B"): 1000.0}
        page.look(390)
        page.browser.wait("document.querySelector('#picture .edge.busy')")
        words = page.browser.run("[...document.querySelectorAll('.edge-label')].map((it) => it.textContent)")
        assert [each for each in words if not each.startswith("cost 1")] == []
        assert page.browser.run(OUTSIDE) == []


OUTSIDE = """(() => { const box = document.getElementById('picture').getBoundingClientRect();
  return [...document.querySelectorAll('.edge-label')].filter((it) => { const own = it.getBoundingClientRect();
    return own.left < box.left || own.right > box.right; }).map((it) => it.textContent); })()"""


# What is wrong, and the detail of what was chosen


WIDTHS = """[...document.querySelectorAll('#detail-facts dd, #detail-facts dt')].map((it) =>
  [it.tagName, it.getBoundingClientRect().width, it.scrollWidth - it.clientWidth])"""


def test_the_detail_can_be_read_beside_a_neighbor_with_a_long_id(tmp_path: Path) -> None:
    with shown(tmp_path, page_of(nx.Graph([("A", "B"), ("A", LONG)]))) as page:
        for width in (390, 1400):
            page.look(width)
            node = "document.querySelector('.node[data-router=A]')"
            page.browser.run(f"{node}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
            page.browser.wait(f"document.getElementById('detail-facts').innerText.includes({LONG!r})")
            whole = page.browser.run("document.getElementById('detail-facts').getBoundingClientRect().width")
            found = page.browser.run(WIDTHS)
            assert min(wide for tag, wide, _ in found if tag == "DD") > 0.5 * whole
            assert max(wide for tag, wide, _ in found if tag == "DT") < 0.5 * whole
            assert max(hidden for _, _, hidden in found) <= 0
            assert page.browser.run("document.documentElement.scrollWidth") <= width


def test_problems_scroll_in_a_part_of_their_own_beside_the_picture_alone(tmp_path: Path) -> None:
    made = page_of(square())
    problem = {"kind": "slow", "subject": "x", "sentence": "a word " * 30, "since": 1, "router": "A", "also": [],
               "command": "amqp-mesh stat credit --url amqp://127.0.0.1:7"}  # fmt: skip
    made["problems"] = [problem] * 12
    with shown(tmp_path, made) as page:
        hidden = (
            "(({scrollHeight, clientHeight}) => scrollHeight - clientHeight)(document.getElementById('problem-list'))"
        )
        page.look(1400)
        assert page.browser.run(hidden) > 0
        page.look(390)
        assert page.browser.run(hidden) <= 0, "of two things that scroll a finger moves the wrong one"


# Tables


def test_columns_whose_names_say_little_are_explained(tmp_path: Path) -> None:
    made = page_of(square())
    with shown(tmp_path, made) as page:
        explained = {}
        for tab in ("Routers", "Links", "Addresses", "Connections"):
            page.browser.run(f"document.getElementById('tab-{tab}').click()")
            rows = page.browser.run(
                "[...document.querySelectorAll('th button')].map((it) => [it.textContent, it.title])"
            )
            explained |= dict(rows)
        for name in ("passing", "in 5 minutes", "elsewhere", "credit", "for", "held for it", "is read", "is sent"):
            assert explained[name], name
        assert not explained.keys() & {"of late", "read", "sent to"}


def address(key: str) -> dict[str, object]:
    numbers = [
        "publishers",
        "blocked",
        "blocked_s",
        "subscribers",
        "granted",
        "held",
        "waiting",
        "oldest_s",
        "unsettled",
    ]
    row = {"key": key, "treatment": "balanced", "own": 0, "remotes": ["B", "C"]}
    return row | dict.fromkeys(numbers, 1234) | dict.fromkeys(("in", "out", "transit", "dropped"), 123_456)


def test_the_table_of_addresses_fits_a_screen_and_says_where_it_does_not(tmp_path: Path) -> None:
    made = page_of(square())
    made["addresses"] = [address("M0billing/invoices/of/all/customers"), {**address("L$console"), "own": 1}]
    made["totals"]["addresses"] = 2
    with shown(tmp_path, made) as page:
        browser = page.browser
        browser.run("document.getElementById('tab-Addresses').click()")
        page.look(1400)
        part = "document.getElementById('table-part')"
        browser.wait(f"{part}.scrollWidth <= {part}.clientWidth")
        browser.wait("document.getElementById('more').hidden")
        assert browser.run(f"{part}.querySelectorAll('tbody tr').length") == 1
        assert browser.run("document.getElementById('shown').innerText") == "", "the router's own are not left out"
        page.look(400)
        browser.wait("!document.getElementById('more').hidden")
        assert "right" in browser.run("document.getElementById('more').innerText")
        browser.run(f"{part}.scrollLeft = 5000")
        browser.wait("document.getElementById('more').hidden")
