"""The parts of the benchmark by themselves: messages, times, ratios, names, the picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Message

from router.bench import cases, messages, ratios_to_other_routers, suite
from router.bench.errors import BenchError
from router.bench.load_connection import Loop
from router.bench.load_endpoints import Caller, Receiver, Responder, Sender
from router.bench.measuring import LoadConnections, RunResult
from router.bench.tally import BINS, COARSE_NS, Tally
from router.cli.bench_tables import tables
from tests.bench.conftest import run as run_bench

NUMBER = bytes(range(1, 9))


def decoded(data: bytes) -> Message:
    message = Message()
    message.decode(data)
    return message


@pytest.mark.parametrize("size", [8, 100, 255, 256, 1_000_000])
def test_a_body_has_its_size_and_ends_with_the_number(size: int) -> None:
    message = decoded(messages.body(size) + NUMBER)  # its body is a view of its memory
    assert len(message.body) == size
    assert bytes(message.body[-8:]) == NUMBER


def test_a_request_is_a_message_with_an_id_and_a_reply_address() -> None:
    head, rest = messages.request("amqp:/_topo/0/R1/temp.x", 200)
    request = decoded(head + NUMBER + rest + NUMBER)
    assert bytes(request.id) == NUMBER
    assert request.reply_to == "amqp:/_topo/0/R1/temp.x"
    assert len(request.body) == 200


def test_a_reply_is_a_message_to_that_address_with_the_id_of_its_request() -> None:
    reply = decoded(messages.reply_head(b"temp.x") + NUMBER + messages.body(50) + NUMBER)
    assert reply.address == "temp.x"
    assert bytes(reply.correlation_id) == NUMBER
    assert len(reply.body) == 50


@given(st.lists(st.integers(0, 30_000_000_000), min_size=1, max_size=50), st.sampled_from([0.01, 0.5, 0.99, 1.0]))
def test_a_percentile_is_a_time_that_so_many_do_not_exceed(times_ns: list[int], share: float) -> None:
    tally = Tally()
    for time in times_ns:
        tally.record(time)
    (found,) = tally.percentiles(share)
    highest = BINS * COARSE_NS
    reached = sum(min(time, highest) <= found * 1e9 + 1 for time in times_ns)
    assert reached >= share * len(times_ns) - 1e-9
    assert found * 1e9 <= min(max(times_ns), highest) + COARSE_NS + 1


def test_nothing_recorded_has_no_percentile() -> None:
    assert Tally().percentiles(0.5, 0.99) == []


def test_a_sender_sends_what_its_receiver_grants_and_learns_every_outcome() -> None:
    tally, loop = Tally(), Loop()
    sender = Sender(tally, "x", 300_000, False)
    loop.connect("127.0.0.1", loop.listen(lambda: Receiver(tally, None, 10)), sender, "test")
    assert loop.run_until(lambda: sender.is_attached, 10)
    tally.is_on = tally.is_measuring = True
    sender.resume()
    assert loop.run_until(lambda: tally.accepted >= 100, 30)
    tally.is_on = False
    assert loop.run_until(lambda: tally.accepted == tally.sent, 30)
    assert tally.received == tally.sent
    assert tally.refused == 0
    assert tally.percentiles(1.0)[0] < 30
    loop.close()


def test_a_caller_has_one_call_on_its_way() -> None:
    tally, loop = Tally(), Loop()
    caller = Caller(tally, "x", 200)
    loop.connect("127.0.0.1", loop.listen(lambda: Responder(None, 10)), caller, "test")
    assert loop.run_until(lambda: caller.is_attached, 10)
    tally.is_on = True
    caller.resume()
    assert loop.run_until(lambda: caller.accepted >= 50, 30)
    assert tally.sent - tally.received == 1
    loop.close()


@pytest.mark.parametrize("name", ["paced-1000", "paced-rpc"])
def test_a_paced_load_sends_as_many_as_its_rate_allows(name: str) -> None:
    (case,), _ = cases.choose([name])
    load = LoadConnections(case, cases.DIRECT)
    try:
        load.attach()
        load.warm(0.0)
        done = load.measure(0.2)
    finally:
        load.close()
    assert done.messages <= case.rate * done.seconds + 2
    assert not done.refused


def run(per_s: float, p50_us: float | None = None, cpu_us: float | None = None) -> RunResult:
    return RunResult(
        per_s=per_s,
        messages=10,
        seconds=1.0,
        cpu_us=cpu_us,
        p50_us=p50_us,
        p99_us=p50_us,
        resident_bytes=None,
        refused=1,
    )


def test_ratios_are_medians_of_those_of_the_rounds() -> None:
    rounds = [
        suite.CaseRound(runs={"direct": run(100), "1 hop": run(50, 40.0, 2.0)}, stream_per_s=1000, echo_us=20.0),
        suite.CaseRound(runs={"direct": run(1000), "1 hop": run(200, 90.0, 4.0)}, stream_per_s=1000, echo_us=30.0),
        suite.CaseRound(runs={"direct": run(10), "1 hop": run(4, 80.0, 3.0)}, stream_per_s=1000, echo_us=10.0),
    ]
    (case,), path = cases.choose(["rpc-50"])[0], cases.Path(name="1 hop", hops=1)
    found = suite.figures_of(case, path, rounds)
    assert (found.per_s, found.share, found.stream_share) == (50, 0.4, 0.05)
    assert (found.p50_us, found.echo_multiple, found.cpu_us, found.refused) == (80.0, 3.0, 3.0, 3)
    shown = [
        list(table.columns[0].cells) for table in tables(suite.SuiteResult(figures=[found], echo_us=20.0, memory=[]))
    ]
    assert shown == [["rpc-50"]]


def test_routers_are_compared_with_those_over_as_many_hops() -> None:
    ours = [cases.Path(name="1 hop", hops=1), cases.Path(name="2 hops", hops=2)]
    others = [cases.Path(name="a", hops=1), cases.Path(name="b", hops=2), cases.Path(name="c", hops=1)]
    names = [(one.name, other.name) for one, other in ratios_to_other_routers.pairs_of(ours, others)]
    assert names == [("1 hop", "a"), ("1 hop", "c"), ("2 hops", "b")]


def test_a_comparison_is_the_median_of_the_ratios_of_the_rounds() -> None:
    path, other = cases.Path(name="1 hop", hops=1), cases.Path(name="other", hops=1)
    rounds = [
        (run(50, 40.0, 2.0), run(100, 20.0, 8.0)),
        (run(90, 40.0, 2.0), run(100, 40.0, 4.0)),
        (run(300, 40.0, 9.0), run(100, 400.0, 10.0)),
    ]
    found = ratios_to_other_routers.compare("rpc-1", path, other, rounds)
    assert (found.per_s, found.p50_us, found.cpu_us, found.rounds) == (0.9, 1.0, 0.5, 3)
    assert found.resident_bytes is None


def test_words_choose_cases_and_groups() -> None:
    chosen, others = cases.choose(["rpc", "stream-1MB"])
    assert [case.name for case in chosen] == ["stream-1MB", "rpc-1", "rpc-50"]
    assert not others
    assert cases.choose([]) == (list(cases.CASES), {"memory", "spill", "idle", "start"})
    assert cases.choose(["memory"]) == ([], {"memory"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amqp://a:1", ("amqp://a:1", ["amqp://a:1"])),
        ("b=amqp://a:1,amqp://c", ("b", ["amqp://a:1", "amqp://c"])),
    ],
)
def test_a_router_to_compare_has_a_name_and_urls(text: str, expected: tuple[str, list[str]]) -> None:
    assert cases.parse_target(text) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [("amqp://a", ("a", 5672)), ("a:1", ("a", 1)), ("amqp://[::1]:7/", ("::1", 7)), ("amqp://[::1]", ("::1", 5672))],
)
def test_a_url_has_a_host_and_a_port(url: str, expected: tuple[str, int]) -> None:
    assert cases.host_and_port(url) == expected


@pytest.mark.parametrize("url", ["amqps://a", "amqp://", "amqp://u:p@a", "amqp://a:0", "amqp://a:x"])
def test_what_is_no_url_of_a_router_is_refused(url: str) -> None:
    with pytest.raises(BenchError, match="is no URL of a router"):
        cases.host_and_port(url)


def test_a_url_without_a_host_that_can_be_looked_up_is_refused() -> None:
    with pytest.raises(BenchError, match="a dot with nothing before it: expected a host name or an address"):
        cases.host_and_port("amqp://a..b:1")


@pytest.mark.interop
def test_the_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn, scaled = tmp_path / "found.png", tmp_path / "found.svg"
    for file, hops in ((drawn, "1"), (scaled, "")):
        result = run_bench("--quick", "stream-100B", "rpc-1", "--hops", hops, "--picture", str(file))
        assert result.exit_code == 0, result.output
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert ET.parse(scaled).getroot().tag.endswith("svg")


def test_a_picture_shows_every_case(found: dict[str, Any], tmp_path: Path) -> None:
    picture = pytest.importorskip("router.bench.picture")
    file = tmp_path / "found.svg"
    picture.draw(found, str(file))
    assert file.stat().st_size > 10_000
    assert ET.parse(file).getroot().tag.endswith("svg")
