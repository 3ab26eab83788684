"""Masters of Spark, told from what is none before Java is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli import main
from router.whatif.pipeline.spark_masters import fault_of_master


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[2]",
        "local[*]",
        "local[2,3]",
        "local[*, 4]",
        "local-cluster[2,1,1024]",
        "spark://head:7077",
        "spark://head:7077,other:7077",
        "spark://[::1]:7077",
        "yarn",
        "k8s://https://cluster:6443",
    ],
)
def test_what_spark_takes_is_a_master(master: str) -> None:
    assert fault_of_master(master) is None


@pytest.mark.parametrize(
    ("master", "fault", "near"),
    [
        ("foo", "`foo` is no master of Spark", None),
        ("", "`` is no master of Spark", None),
        ("local[many]", "`local[many]` is no master of Spark", "local[*]"),
        ("local[0]", "`local[0]` is no master of Spark", "local[2]"),
        ("Yarn", "`Yarn` is no master of Spark", "yarn"),
        ("spark://head", "`spark://head` has no port", "spark://head:7077"),
        ("head:7077", "`head:7077` is no master of Spark", None),
    ],
)
def test_what_is_none_is_told_with_the_nearest_that_is(master: str, fault: str, near: str | None) -> None:
    found = fault_of_master(master)
    assert found is not None
    assert found[0] == fault
    assert near is None or found[1] is not None


@pytest.mark.parametrize("command", ["run", "converge", "forecast"])
def test_commands_refuse_it_before_anything_is_begun(tmp_path: Path, command: str) -> None:
    (tmp_path / "model").mkdir()
    model = str(tmp_path / "model")
    more = ["--model", model] if command == "forecast" else []
    done = CliRunner().invoke(main, ["whatif", command, model, *more, "-o", str(tmp_path / "out"), "--master", "foo"])
    assert done.exit_code == 2
    expected = "--master: `foo` is no master of Spark; expected local[N], spark://HOST:PORT, yarn or k8s://URL"
    assert expected in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
