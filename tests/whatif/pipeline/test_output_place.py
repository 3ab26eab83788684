"""Places that can't be written are refused before any work is begun for them."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli import main
from router.whatif.formats.model_folder import write_model
from router.whatif.pipeline.atomic_files import whole_file
from router.whatif.pipeline.output_place import check_output_place
from router.whatif.pipeline.run import run
from router.whatif.pipeline.run_staging import RunError
from router.whatif.scenarios.run_request import Request
from router.whatif.telemetry.counter_stream import check_places
from tests.whatif.runs import everything

TOPOLOGY_ZOO = Path(__file__).parents[1] / "data" / "topology-zoo"
UNWRITABLE = Path("/proc/amqp-mesh")
"""Nobody makes a folder in /proc, root neither."""
NOTHING = "nothing can be written into /proc: No such file or directory; expected a place in a folder that can be"


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_place_whose_folders_are_to_be_made_can_be_written(tmp_path: Path, is_whole: bool) -> None:
    check_output_place(tmp_path / "new" / "newer" / "run", is_whole=is_whole)
    assert not any(tmp_path.iterdir())


def test_a_place_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=f"{tmp_path}/file is a file; expected a place in a folder"):
        check_output_place(tmp_path / "file" / "run")


@pytest.mark.parametrize(
    "words",
    [("import", "MODEL", "-o"), ("run", "MODEL", "-o"), ("watch", "amqp://127.0.0.1:1", "--checkpoint")],
    ids=lambda words: words[0],
)
def test_a_link_that_leads_to_itself_is_refused_in_words(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "loop").symlink_to("loop")
    write_model(everything(), tmp_path / "model")
    given = [str(tmp_path / "model") if word == "MODEL" else word for word in words]
    found = CliRunner().invoke(main, ["whatif", *given, str(tmp_path / "loop")])
    assert (found.exit_code, found.stdout) == (2, "")
    assert f"{tmp_path / 'loop'}: " in found.stderr
    assert "Too many levels of symbolic links" in found.stderr


def test_a_table_is_written_into_its_folder_and_a_run_beside_its_own() -> None:
    check_output_place(Path("/proc"))  # by its parent
    with pytest.raises(RunError, match="nothing can be written into /proc"):
        check_output_place(Path("/proc"), is_whole=False)


@pytest.mark.parametrize(
    "command",
    [
        ("run", "MODEL", "-o"),
        ("run", "MODEL", "--engine", "spark", "-o"),
        ("import", "MODEL", "-o"),
        ("snapshot", "amqp://127.0.0.1:1", "-o"),
        ("converge", "MODEL", "-o"),
        ("forecast", "MODEL", "--model", "MODEL", "-o"),
        ("plan", "MODEL", "--prices", "PRICES", "-o"),
        ("explain", "MODEL", "--picture"),
        ("watch", "amqp://127.0.0.1:1", "--checkpoint"),
        ("watch", "amqp://127.0.0.1:1", "--checkpoint", "JOB", "-o"),
    ],
    ids=lambda command: f"{command[0]} {command[-1]}",
)
def test_each_command_refuses_it_before_there_is_work(tmp_path: Path, command: tuple[str, ...]) -> None:
    write_model(everything(6, 8), tmp_path / "MODEL")
    (tmp_path / "PRICES").write_text("upgrades: []\n", encoding="utf-8")
    words = [str(tmp_path / word) if word.isupper() else word for word in command]
    done = CliRunner().invoke(main, ["whatif", *words, str(UNWRITABLE)])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"{UNWRITABLE}: error: {NOTHING}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", [("snapshot", "amqp://127.0.0.1:1"), ("import", "no file")])
def test_a_place_of_something_else_is_refused_before_a_model_is_made(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "note").touch()
    done = CliRunner().invoke(main, ["whatif", *command, "-o", str(tmp_path)])
    assert done.exit_code == 2
    expected = "error: it exists and has other contents; expected a new folder, or a model to replace"
    assert done.output == f"{tmp_path}: {expected}\n"


def test_the_library_refuses_it_too() -> None:
    with pytest.raises(RunError, match=NOTHING):
        run(everything(6, 8), Request(), UNWRITABLE)


def test_a_model_makes_the_folders_above_it(tmp_path: Path) -> None:
    write_model(everything(6, 8), tmp_path / "new" / "model")
    assert (tmp_path / "new" / "model" / "model.json").is_file()


def test_addresses_that_are_written_nowhere_are_refused(tmp_path: Path) -> None:
    words = ["whatif", "watch", "amqp://127.0.0.1:1", "--addresses", "--checkpoint", str(tmp_path / "job")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "--addresses: its table is a part of OUT, which is not given; expected -o OUT too" in done.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("options", [("--checkpoint", "MODEL"), ("--checkpoint", "JOB", "-o", "MODEL")])
def test_watch_adds_nothing_to_a_folder_that_is_something_else(tmp_path: Path, options: tuple[str, ...]) -> None:
    write_model(everything(6, 8), tmp_path / "MODEL")
    before = sorted(tmp_path.rglob("*"))
    words = [str(tmp_path / word) if word.isupper() else word for word in options]
    done = CliRunner().invoke(main, ["whatif", "watch", "amqp://127.0.0.1:1", "--once", *words])
    assert done.exit_code == 2
    assert done.stderr.startswith(
        f"{tmp_path / 'MODEL'}: error: it exists and has other contents; expected a new folder, or one "
    )
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("job", "out"),
    [
        ((), ()),
        (("lost+found",), (".hidden", "lost+found")),
        (("lock", "spark.log"), ("address_rate",)),  # Spark has not begun
        (("checkpoint", "lock", "notes"), ("current.parquet", "link_rate")),
    ],
)
def test_watch_goes_on_with_folders_of_its_own(tmp_path: Path, job: tuple[str, ...], out: tuple[str, ...]) -> None:
    for folder, names in (("job", job), ("out", out), ("one", (*job, *out))):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).mkdir(exist_ok=True)
    check_places(tmp_path / "job", tmp_path / "out")
    if "checkpoint" in job:
        check_places(tmp_path / "one", tmp_path / "one")
    check_places(tmp_path / "job", tmp_path / "job")


def too_large(call: Callable[[], object]) -> None:
    """Call what is to write a file, on a system that takes a few bytes of it, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        call()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (("explain", "MODEL", "--router", "r00", "--picture", "FILE.svg"), "FILE.svg"),
        (("import", "TOPOLOGY.graphml", "-o", "OUT"), "OUT"),
        (("plan", "MODEL", "--prices", "PRICES", "--max-lost-pairs", "9999", "-o", "OUT"), "OUT"),
        (("report", "RUN"), "RUN/summary.json"),
    ],
    ids=lambda words: words[0],
)
def test_what_can_not_be_written_whole_is_named_and_does_not_stay(
    tmp_path: Path, command: tuple[str, ...], file: str
) -> None:
    write_model(everything(6, 8), tmp_path / "MODEL")
    if "RUN" in command:
        run = [str(tmp_path / "MODEL"), "-o", str(tmp_path / "RUN"), "--engine", "local"]
        made = CliRunner().invoke(main, ["whatif", "run", *run])
        assert made.exit_code == 0, made.output
    (tmp_path / "PRICES").write_text("upgrades: []\n", encoding="utf-8")
    shutil.copy(TOPOLOGY_ZOO / "Abilene.graphml", tmp_path / "TOPOLOGY.graphml")
    before = sorted(tmp_path.rglob("*"))
    words = [str(tmp_path / word) if word.partition(".")[0].isupper() else word for word in command]
    answers = []
    too_large(lambda: answers.append(CliRunner().invoke(main, ["whatif", *words])))
    (answer,) = answers
    assert answer.exit_code == 2, answer.output
    assert f"Error: {tmp_path / file}: " in answer.stderr
    assert "File too large" in answer.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_an_error_names_the_file_that_was_to_appear_or_that_could_not_be_read(tmp_path: Path) -> None:
    target, source = tmp_path / "target", tmp_path / "source"
    with pytest.raises(OSError, match="No such file") as found, whole_file(target) as beside:
        beside.write_bytes(source.read_bytes())
    assert found.value.filename == str(source)
    with pytest.raises(OSError, match="No such file") as found, whole_file(target):
        pass  # so there is nothing that could be given its name
    assert found.value.filename == str(target)
    with pytest.raises(OSError, match="No space") as found, whole_file(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert found.value.filename == str(target)
