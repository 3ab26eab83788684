"""What all tests share: the seed, hypothesis profiles, and the proof that the installed wheel is what is tested."""

from __future__ import annotations

import gc
import os
import random
import signal
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import mesh_config
import router
from router import speed
from tests.helpers.outdated import outdated
from tests.helpers.spark_presence import OF_SPARK, has_spark

hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")
# What scripts/test takes; `pytest` and tox have all of hypothesis' 100 examples.
hypothesis.settings.register_profile("quick", hypothesis.settings.default, max_examples=25)

TEST_INSTALLED = "AMQP_MESH_TEST_INSTALLED"
"""Set by scripts/pytest-installed: both packages must come from site-packages."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what needs Spark where there is none, as after `pip install -r requirements/dev-router.txt`."""
    here = Path(__file__).parent
    return True if collection_path in [here / name for name in OF_SPARK] and not has_spark() else None


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to begin where one of these is asked for by its name: pytest would not leave it out."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell has what it starts with `&` ignore it, children inherit that, and tests stop processes by it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if has_spark():
        return
    of_spark = [Path(__file__).parent / name for name in OF_SPARK]
    for argument in config.args:
        asked = config.invocation_params.dir / argument.partition("::")[0]
        if any(asked.resolve().is_relative_to(each) for each in of_spark):
            raise pytest.UsageError(f"{argument} needs Spark: pip install -r requirements/dev.txt")


def pytest_report_header() -> list[str]:
    left_out = ", ".join(f"tests/{name}" for name in OF_SPARK)
    return [
        *([] if has_spark() else [f"left out, for want of Spark (pip install -r requirements/dev.txt): {left_out}"]),
        f"amqp-mesh {router.__version__}, {speed.describe()}",
        f"{Path(router.__file__).parent}, {Path(mesh_config.__file__).parent}",
        *(f"{name} was compiled before its sources changed: scripts/build" for name in stale()),
    ]


def stale() -> list[str]:
    """Modules of a developer's checkout that are not what their sources say."""
    if speed.SPEED == speed.INTERPRETED or os.environ.get(TEST_INSTALLED):
        return []
    return outdated(speed.hot_modules(), speed.LIBRARY)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the slow ones time on a busy machine, unless they say how much they need; leave real processes to the end.

    By then what runs beside these tests has ended, and clients that wait for a second get what they wait for.
    """
    items.sort(key=lambda item: item.get_closest_marker("interop") is not None)
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="module", autouse=True)
def frozen_remains() -> Iterator[None]:
    """Keep the collector from looking through what a module has left, as often as the tests of all later modules do."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def site_packages() -> Path | None:
    """Where the packages must lie; None in a developer's checkout."""
    return Path(sysconfig.get_path("purelib")).resolve() if os.environ.get(TEST_INSTALLED) else None


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A generator that gives the same numbers to the same test each time."""
    return random.Random(request.node.nodeid)
