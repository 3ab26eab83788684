"""What the console says in a real browser beside the picture, of pages made for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.browser import Browser
from tests.interop.test_console_picture import address, page_of, shown, square

pytestmark = pytest.mark.interop

PILL = "document.getElementById('state').innerText"
FAULT = "document.getElementById('fault').innerText"
HEAD = "document.getElementById('totals').innerText"
SHOWN = "document.getElementById('shown').innerText"
FACTS = "document.getElementById('detail-facts').innerText"


def problem(sentence: str, about: list[str], **more: Any) -> dict[str, Any]:
    subject = about[0].partition(" ")[2]
    return {"kind": "slow", "subject": subject, "sentence": sentence, "since": 1, "router": "B", "also": [],
            "command": "amqp-mesh stat", "about": about, "explains": [], **more}  # fmt: skip


def open_detail(browser: Browser, table: str, text: str) -> None:
    browser.run(f"document.getElementById('tab-{table}').click()")
    row = f"[...document.querySelectorAll('#table-part td button')].find((it) => it.textContent === {text!r})"
    browser.wait(row)
    browser.run(f"{row}.click()")


def test_a_page_that_cannot_be_shown_is_told_and_passes_for_nothing_known_now(tmp_path: Path) -> None:
    made = page_of(square())
    with shown(tmp_path, made) as page:
        page.browser.wait(f"{PILL} === 'all is well'")
        page.page["routers"] = [{**router, "waiting": "05", "told_at": 1} for router in made["routers"]]
        page.page["totals"]["waiting"] = "05"
        page.browser.wait(f"""{PILL} === "can't be shown" """)
        assert "can't be shown: reload this page" in page.browser.run(FAULT)
        assert page.browser.run("document.title").startswith("(?) ")
        assert page.browser.run("document.body.classList.contains('stale')")
        page.page["routers"] = [{**router, "waiting": 5} for router in made["routers"]]
        page.page["totals"]["waiting"] = 5
        page.browser.wait(f"{PILL} === 'all is well'")
        assert not page.browser.run("document.body.classList.contains('stale')")


def test_what_has_no_room_on_the_page_is_counted_and_said(tmp_path: Path) -> None:
    made = page_of(square())
    made["routers"][1]["here"] = False
    made["problems"] = [problem("slow", ["address jobs"])]
    made["totals"] |= {"routers": 1200, "routers_here": 1199, "links": 5000, "problems": 300}
    with shown(tmp_path, made) as page:
        browser = page.browser
        browser.wait(f"{PILL} === '300 problems'")
        assert "1199 of 1200" in browser.run(HEAD)
        assert "And 299 more" in browser.run("document.getElementById('problem-list').innerText")
        assert browser.run(SHOWN) == "4 listed of 1,200, those that matter most"
        browser.run("document.getElementById('tab-Links').click()")
        assert browser.run(SHOWN) == "4 listed of 5,000, those that matter most"


def test_notices_that_have_no_room_on_the_page_are_no_problems(tmp_path: Path) -> None:
    made = page_of(square())
    made["problems"] = [problem("a link was lost for 1 s, and is back", ["link A - B"], kind="lost-for-a-while")]
    made["totals"] |= {"problems": 400, "notices": 400}
    with shown(tmp_path, made) as page:
        page.browser.wait(f"{PILL} === 'all is well · 400 notices'")
        assert not page.browser.run("document.title").startswith("(")
        page.page["totals"]["problems"] = 401
        page.browser.wait(f"{PILL} === '1 problem · 400 notices'")


def test_a_filter_leaves_nothing_out_that_is_said_to_be(tmp_path: Path) -> None:
    with shown(tmp_path, page_of(square())) as page:
        page.browser.run(
            "(() => { const it = document.getElementById('filter'); it.value = 'b'; "
            "it.dispatchEvent(new Event('input')); })()"
        )
        page.browser.wait("document.querySelectorAll('#table-part tbody tr').length < 4")
        assert page.browser.run(SHOWN) == ""


def test_details_have_the_problems_of_what_they_are_of_and_of_nothing_else(tmp_path: Path) -> None:
    made = page_of(square())
    made["addresses"] = [address("M0C"), address("M0jobs")]
    made["connections"] = [{
        "id": "7", "container": "C", "host": "h", "neighbor": None, "user": "", "since": 1, "links": 1, "in": 0,
        "out": 0, "bytes_in": 0, "bytes_out": 0, "held_bytes": 0, "reading": "all", "sending": "all",
    }]  # fmt: skip
    made["problems"] = [
        problem("jobs wait", ["address jobs", "router D"]),
        problem("c comes and goes", ["router C"], subject="router C"),
        problem("link comes and goes", ["link B - C", "router B", "router C"], subject="link B - C"),
        problem("address c waits", ["address C"]),
        problem("client c floods", ["address jobs"], subject="C", explains=["client C at A"]),
    ]
    with shown(tmp_path, made) as page:
        for table, text, wanted in (
            ("Addresses", "jobs", {"Jobs wait.", "Client c floods."}),
            ("Addresses", "C", {"Address c waits."}),
            ("Routers", "C", {"C comes and goes."}),
            ("Links", "B \N{EN DASH} C", {"Link comes and goes."}),
            ("Connections", "C", {"Client c floods."}),
        ):
            open_detail(page.browser, table, text)
            found = page.browser.run(FACTS).split("\n")
            assert {line for line in found if line.endswith(".")} == wanted, (table, text)
