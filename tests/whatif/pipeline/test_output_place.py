"""Places that can't be written are refused before any work is begun for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli import main
from router.whatif.formats.model_folder import write_model
from router.whatif.pipeline.output_place import check_output_place
from router.whatif.pipeline.run import run
from router.whatif.pipeline.run_staging import RunError
from router.whatif.scenarios.run_request import Request
from tests.whatif.runs import everything

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
    assert "--addresses: its table is a part of OUT, and none is given; expected -o OUT too" in done.stderr
    assert not any(tmp_path.iterdir())
