"""A router of another make, as every command finds it that asks one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from proton import Message

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
