"""The file of users, and the commands that write it: nothing of it shows a password."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli import main
from router.core.errors import LocalError
from router.security.secret_files import read_secret
from router.security.users import Users, new_keys, read_users, write_users

ITERATIONS = 4096
PASSWORD = "planted-secret"


def user(*words: str, password: str = "") -> str:
    result = CliRunner().invoke(main, ["user", *words], input=password + "\n")
    return f"{result.exit_code} {result.output.strip()}"


def test_users_are_added_listed_changed_and_removed(tmp_path: Path) -> None:
    file = str(tmp_path / "users")
    assert user("add", file, "alice", password=PASSWORD) == f"0 {file}: added alice"
    assert user("add", file, "bob with blanks", password="x") == f"0 {file}: added bob with blanks"
    assert user("list", file) == "0 alice\nbob with blanks"
    users = Users(file)
    assert users.check("alice", PASSWORD.encode())
    assert not users.check("alice", b"x")
    assert user("passwd", file, "alice", password="another") == f"0 {file}: changed alice"
    assert users.refresh() == ""
    assert users.check("alice", b"another")
    assert not users.check("alice", PASSWORD.encode())
    assert user("remove", file, "alice") == f"0 {file}: removed alice"
    assert list(read_users(file)) == ["bob with blanks"]
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("words", "password", "said"),
    [
        (("add", "FILE", "alice"), "x", "alice is there already"),
        (("add", "FILE", "a\x00b"), "x", "cannot be a user's name"),
        (("add", "FILE", "bob"), "", "the password is empty"),
        (("add", "FILE", "bob"), 2000 * "x", "more than 1024 characters"),
        (("passwd", "FILE", "alcie"), "x", "no user alcie Did you mean 'alice'?"),
        (("remove", "FILE", "zzz"), "", "no user zzz"),
    ],
)
def test_a_command_that_cannot_be_done_changes_nothing(
    words: tuple[str, ...], password: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "users"
    write_users(str(file), {"alice": new_keys(PASSWORD, ITERATIONS)})
    before = file.read_bytes()
    output = user(*(str(file) if word == "FILE" else word for word in words), password=password)
    assert output.startswith("1 Error: ")
    assert said in output
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "line",
    [
        f"alice {PASSWORD}",
        "alice",
        f"alice SCRAM-SHA-256$1:AAAA${PASSWORD}:AAAA",
        "alice SCRAM-SHA-256$4096:AAAA$AAAA:AAAA",
        "alice SCRAM-SHA-1$4096:AAAA$AAAA:AAAA",
    ],
)
def test_a_line_that_is_none_is_named_by_its_number_alone(line: str, tmp_path: Path) -> None:
    file = tmp_path / "users"
    write_users(str(file), {"bob": new_keys("x", ITERATIONS)})
    users = Users(str(file))
    file.write_text(f"# people\n{line}\n", encoding="utf-8")
    said = users.refresh()
    assert said.startswith(f"{file}:2: no line of a user")
    assert PASSWORD not in said
    assert users.refresh() == ""  # it is said once
    assert users.problem == said  # and known until it is mended
    assert users.mark("bob")  # the users before stay
    with pytest.raises(LocalError):
        read_users(str(file))
    write_users(str(file), {"eve": new_keys("x", ITERATIONS)})
    assert (users.refresh(), users.problem) == ("", "")


def test_a_user_that_is_not_there_has_the_same_salt_each_time(tmp_path: Path) -> None:
    file = str(tmp_path / "users")
    write_users(file, {"alice": new_keys(PASSWORD, ITERATIONS)})
    users = Users(file)
    first, again = (users.keys("mallory", "SCRAM-SHA-256") for _ in range(2))
    assert (first.salt, first.iterations) == (again.salt, ITERATIONS)
    assert first.salt != users.keys("trent", "SCRAM-SHA-256").salt
    assert not users.check("mallory", b"")


def test_a_password_that_was_right_is_remembered_until_it_is_changed(tmp_path: Path) -> None:
    file = str(tmp_path / "users")
    write_users(file, {"alice": new_keys(PASSWORD, ITERATIONS)})
    users = Users(file)
    assert not users.remembers("alice", PASSWORD.encode())
    assert users.check("alice", PASSWORD.encode())
    assert users.remembers("alice", PASSWORD.encode())
    assert not users.remembers("alice", b"x")
    write_users(file, {"alice": new_keys("another", ITERATIONS)})
    users.refresh()
    assert not users.remembers("alice", PASSWORD.encode())
    write_users(file, {})
    users.refresh()
    assert not users.remembers("alice", b"another")
    assert PASSWORD not in repr(users)


def test_a_secret_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n", encoding="utf-8")
    assert read_secret(str(file), None, "x") == PASSWORD
    monkeypatch.setenv("PLANTED", PASSWORD)
    assert read_secret(None, "PLANTED", "x") == PASSWORD
    assert read_secret(None, None, "x") is None


def test_a_secret_that_is_not_there_is_said_without_it(tmp_path: Path) -> None:
    file = tmp_path / "password"
    for content in (b"", b"\xff" + PASSWORD.encode()):
        file.write_bytes(content)
        with pytest.raises(LocalError, match="is empty or no UTF-8") as caught:
            read_secret(str(file), None, "user B")
        assert PASSWORD not in str(caught.value)
        assert caught.value.__cause__ is None
    with pytest.raises(LocalError, match="the variable of the environment with the password of user B is not set"):
        read_secret(None, "ABSENT", "user B")
