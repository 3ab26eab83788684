"""Benches of routers without sockets, whose tables and accounts are checked when a test is over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.engine import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Bytes arrive as they were written."""
    bench = Bench()
    yield bench
    bench.close()


@pytest.fixture(params=[0, 1], ids=["whole", "bytewise"])
def any_bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Bytes arrive as they were written, or one by one."""
    bench = Bench(piece=request.param)
    yield bench
    bench.close()
