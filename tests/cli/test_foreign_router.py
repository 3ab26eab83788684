"""A router of another make, as every command finds it that asks one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from proton import Message

from router.cli import trace
from router.cli.address_path import Path, Trace
from router.cli.management import ManagementClient
from router.cli.management_errors import ForeignRouterError
from tests.helpers.fake_management import fake_management

pytestmark = pytest.mark.interop


def as_qdrouterd(request: Message) -> Message:
    """Answer whoever reads `router` without a name as a `qdrouterd` 1.19 does."""
    said = {"statusCode": 400, "statusDescription": "org.apache.qpid.dispatch.router: No name or identity provided"}
    return Message(properties=said, body={})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with fake_management(as_qdrouterd) as url:
        yield url


@pytest.mark.parametrize(
    "words", ["stat", "stat routers", "stat problems", "ping", "drain B", "trace x", "top --looks 1"]
)
def test_a_command_says_that_it_is_no_router_of_ours(url: str, words: str) -> None:
    command = [sys.executable, "-m", "router", *words.split(), "--url", url]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert result.stderr == (
        f"Error: {url} is no router of amqp-mesh: ask it with its own tools, a qdrouterd with qdstat and qdmanage\n"
    )


def as_qdrouterd_that_is_queried(request: Message) -> Message:
    """Answer a query for what a `qdrouterd` 1.19 does not have as that does."""
    if request.properties["operation"] != "QUERY":
        return as_qdrouterd(request)
    return Message(properties={"statusCode": 404, "statusDescription": "Unknown attributes ['reason']"}, body={})


def test_what_another_router_does_not_have_is_told_of_its_make() -> None:
    said = pytest.raises(ForeignRouterError, match="router Q is no router of amqp-mesh")
    with fake_management(as_qdrouterd_that_is_queried) as url, ManagementClient(url) as client, said:
        client.query("router.node", ["reason"], router="Q")


def test_a_trace_that_leads_to_one_does_not_say_that_there_is_no_path() -> None:
    path = Path(egress="Q", cost=1, hops=(), subscribers=(), error="router Q is no router", is_foreign=True)
    found = Trace(address="x", start="A", treatment="closest", publishers=(), paths=(path,), absent=())
    assert "NOT KNOWN: router Q is no router" in trace._lines(found, 10_000)[-1]
    assert trace._is_free(path)
