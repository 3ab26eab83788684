"""What tests on Spark share: one session, since it takes as long to start as all of them together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on this machine, with two workers. While there is this session, whatever wants Spark uses it."""
    # Without Spark this file can be read too: `pytest tests/whatif` then says what is missing.
    from router.whatif.pipeline.spark_masters import SparkAddress  # noqa: PLC0415
    from router.whatif.pipeline.spark_session import start  # noqa: PLC0415
    from tests.whatif.cluster import FEW_ROWS  # noqa: PLC0415

    address = SparkAddress(master="local[2,2]", workers=2, settings=FEW_ROWS)
    session = start(address, tmp_path_factory.mktemp("spark") / "spark.log")
    yield session
    session.stop()
