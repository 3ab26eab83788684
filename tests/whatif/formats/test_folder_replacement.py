"""A folder takes the place of another one as a whole, or not at all, and nothing is left of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.whatif.formats.folder_replacement import replace_folder
from router.whatif.formats.model_folder import read_model, write_model
from tests.whatif.models import square


def folder(path: Path, text: str) -> Path:
    path.mkdir()
    (path / "file").write_text(text, encoding="utf-8")
    return path


def test_what_was_there_is_gone_with_what_interrupted_ones_left(tmp_path: Path) -> None:
    out = folder(tmp_path / "out [1]", "old")
    folder(tmp_path / ".out [1].0123abcd.old", "older")
    folder(tmp_path / ".other.0123abcd.old", "of another one")
    replace_folder(folder(tmp_path / "new", "new"), out)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.0123abcd.old", "out [1]"]
    assert (out / "file").read_text(encoding="utf-8") == "new"


@pytest.mark.parametrize(("interrupted", "there"), [("out", "old"), ("new", "new")])
def test_one_of_both_is_there_when_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: str, there: str
) -> None:
    out, new = folder(tmp_path / "out", "old"), folder(tmp_path / "new", "new")
    rename = Path.rename

    def meanwhile(path: Path, target: Path) -> None:
        rename(path, target)
        if path.name == interrupted:
            monkeypatch.undo()
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", meanwhile)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(new, out)
    assert (out / "file").read_text(encoding="utf-8") == there


def test_what_was_there_is_back_when_the_new_one_cannot_have_its_place(tmp_path: Path) -> None:
    out = folder(tmp_path / "out", "old")
    with pytest.raises(FileNotFoundError):
        replace_folder(tmp_path / "missing", out)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (out / "file").read_text(encoding="utf-8") == "old"


def test_a_link_to_a_folder_stays_and_the_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    link = tmp_path / "latest"
    link.symlink_to(tmp_path / "large" / "model", target_is_directory=True)
    for _ in range(2):  # the first one makes what the link leads to
        write_model(square(), link)
        assert read_model(link) == square()
        assert link.is_symlink()
        assert {path.name for path in tmp_path.iterdir()} == {"large", "latest"}
        assert [path.name for path in (tmp_path / "large").iterdir()] == ["model"]
