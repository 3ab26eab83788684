"""The file of users, and the commands that write it: nothing of it shows a password."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections import OrderedDict
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli import main
from router.core.errors import LocalError
from router.security.bounded_file import MOST_BYTES
from router.security.password_sources import read_secret
from router.security.sasl_client import SaslClient
from router.security.sasl_frames import split_frame
from router.security.sasl_server import KerberosTokenCheck, PasswordCheck, SaslServer
from router.security.scram import HASHES, ScramKeys
from router.security.users import Keys, Users, locked, new_keys, read_users, write_users

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
    assert users.file.refresh() == ""
    assert users.check("alice", b"another")
    assert not users.check("alice", PASSWORD.encode())
    assert user("remove", file, "alice") == f"0 {file}: removed alice"
    assert list(read_users(file)) == ["bob with blanks"]
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600
    Path(file).chmod(0o640)
    assert user("add", file, "carol", password="x").startswith("0 ")
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o640


@pytest.mark.parametrize("command", ["passwd", "remove"])
def test_the_help_of_what_ends_connections_of_a_user_says_so(command: str) -> None:
    said = " ".join(user(command, "--help").split())
    assert "routers close its connections within 10 seconds" in said
    assert "stay" not in said


def test_a_user_that_is_removed_while_another_is_added_stays_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "users")
    assert user("add", file, "mallory", password="x").startswith("0 ")

    def remove_meanwhile(password: str, iterations: int) -> Keys:
        assert user("remove", file, "mallory") == f"0 {file}: removed mallory"
        return new_keys(password, iterations)

    monkeypatch.setattr("router.cli.user.new_keys", remove_meanwhile)
    assert user("add", file, "alice", password="y").startswith("0 ")
    assert list(read_users(file)) == ["alice"]


def test_users_that_are_added_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    file = tmp_path / "users"
    names = [f"user{number}" for number in range(6)]
    adding = [
        subprocess.Popen([sys.executable, "-m", "router", "user", "add", str(file), name], stdin=subprocess.PIPE)
        for name in names
    ]
    with locked(str(file)):  # so that all come while one of them would write
        for process in adding:
            assert process.stdin is not None
            process.stdin.write(b"x\n")
            process.stdin.close()
    assert [process.wait(60) for process in adding] == [0] * len(names)
    assert list(read_users(str(file))) == names


@pytest.mark.parametrize(
    ("words", "password", "said"),
    [
        (("add", "FILE", "alice"), "x", "alice exists already"),
        (("add", "FILE", "a\x00b"), "x", r"user 'a\x00b': no name has the character \x00; expected visible characters"),
        (("add", "FILE", "a\u202eb"), "x", r"no name has the character \u202e"),
        (("add", "FILE", "a\udcffb"), "x", r"user 'a\xffb': no name has the character \xff"),
        (("add", "FILE", " sp"), "x", "user ' sp': the name begins or ends with a blank"),
        (("add", "FILE", 256 * "n"), "x", "...: the name has 256 characters; expected at most 255"),
        (("add", "FILE", "sp\u00a0"), "x", "with blanks only between them; did you mean 'sp'?"),
        (("add", "FILE", ""), "x", "user '': an empty name"),
        (("add", "FILE", "\u200b"), "x", r"user '\u200b': an empty name"),
        (("add", "FILE", "אa"), "x", "mixes directions of writing"),
        (("add", "FILE", "a:b"), "x", "user a:b: a name with a colon cannot sign in by HTTP; expected one without"),
        (("add", "FILE", "bob"), "", "the password is empty"),
        (("add", "FILE", "bob"), 2000 * "x", "more than 1024 characters"),
        (("passwd", "FILE", "alcie"), "x", "no user alcie. Did you mean 'alice'?"),
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
    said = users.file.refresh()
    assert said.startswith(f"{file}:2: no line of a user")
    assert PASSWORD not in said
    assert users.file.refresh() == ""  # it is said once
    assert users.file.problem == said  # and known until it is mended
    assert users.mark("bob")  # the users before stay
    with pytest.raises(LocalError):
        read_users(str(file))
    write_users(str(file), {"eve": new_keys("x", ITERATIONS)})
    assert (users.file.refresh(), users.file.problem) == ("", "")


@pytest.mark.parametrize("name", ["anonymous", "*"])
def test_a_file_with_a_name_that_nobody_has_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "users"
    write_users(str(file), {"alice": new_keys("x", ITERATIONS), name: new_keys("x", ITERATIONS)})
    line = 2 + sorted(["alice", name]).index(name) + 1
    with pytest.raises(LocalError, match=rf"{file}:{line}: no line of a user; policy means others by the name "):
        read_users(str(file))


def salt_of(users: Users, user: str, mechanism: str = "SCRAM-SHA-256") -> bytes:
    return users.account(user, mechanism).keys.salt


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_user_that_is_not_there_has_the_same_salt_at_each_router(mechanism: str, tmp_path: Path) -> None:
    file = str(tmp_path / "users")
    user("add", file, "alice", password=PASSWORD)
    one, other = Users(file), Users(file)
    assert salt_of(one, "mallory", mechanism) == salt_of(other, "mallory", mechanism)
    assert salt_of(one, "mallory", mechanism) != salt_of(one, "trent", mechanism)
    assert len(salt_of(one, "mallory", mechanism)) == len(salt_of(one, "alice", mechanism))
    assert not one.check("mallory", b"")


def test_the_salt_of_a_user_that_is_not_there_stays_when_users_change(tmp_path: Path) -> None:
    file = str(tmp_path / "users")
    user("add", file, "mo", password=PASSWORD)
    users = Users(file)
    before = salt_of(users, "mallory")
    for words in (("add", file, "alice"), ("add", file, "zoe"), ("passwd", file, "mo"), ("remove", file, "mo")):
        user(*words, password="x")
        assert users.file.refresh() == ""
        assert salt_of(users, "mallory") == before


def test_a_file_without_a_key_for_decoys_makes_one_of_its_first_user(tmp_path: Path) -> None:
    file = tmp_path / "users"
    write_users(str(file), {name: new_keys(PASSWORD, ITERATIONS) for name in ("alice", "bob")})
    lines = [line for line in file.read_text(encoding="utf-8").splitlines(True) if not line.startswith("#")]
    file.write_text("".join(lines), encoding="utf-8")
    before = salt_of(Users(str(file)), "mallory")
    assert before == salt_of(Users(str(file)), "mallory")
    file.write_text("".join([*lines, lines[1].replace("bob", "carl")]), encoding="utf-8")
    assert salt_of(Users(str(file)), "mallory") == before
    assert user("add", str(file), "dave", password="x").startswith("0 ")
    (written,) = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("# decoys: ")]
    user("add", str(file), "eve", password="x")
    assert written in file.read_text(encoding="utf-8").splitlines()


def test_a_user_that_is_not_there_has_the_rounds_that_most_users_have(tmp_path: Path) -> None:
    file = str(tmp_path / "users")
    rounds = {"alice": 4096, "bob": 5000, "carl": 5000}
    write_users(file, {name: new_keys(PASSWORD, each) for name, each in rounds.items()})
    assert Users(file).account("mallory", "SCRAM-SHA-256").keys.iterations == 5000


def test_what_is_no_regular_file_is_refused_at_once_and_the_users_before_stay(tmp_path: Path) -> None:
    file = tmp_path / "users"
    write_users(str(file), {"alice": new_keys(PASSWORD, ITERATIONS)})
    users = Users(str(file))
    file.unlink()
    for make, words in ((os.mkfifo, "a FIFO"), (os.mkdir, "a directory"), (partial(os.symlink, "/dev/zero"), "a dev")):
        make(file)
        said = users.file.refresh()
        assert said.startswith(f"{file}: cannot be read: it is {words}")
        assert users.check("alice", PASSWORD.encode())
        (os.rmdir if file.is_dir() else os.unlink)(file)


@pytest.mark.parametrize(("content", "words"), [(b"x" * 70_000, "a line of more than"), (None, "larger than")])
def test_a_file_that_is_too_large_is_refused(content: bytes | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "users"
    with file.open("wb") as written:
        written.write(content or b"")
        written.truncate(len(content) if content else MOST_BYTES + 1)
    with pytest.raises(LocalError, match=words):
        Users(str(file))


def test_a_password_that_was_right_is_remembered_until_it_is_changed(tmp_path: Path) -> None:
    file = str(tmp_path / "users")
    write_users(file, {"alice": new_keys(PASSWORD, ITERATIONS)})
    users = Users(file)
    assert not users.remembers("alice", PASSWORD.encode())
    assert users.check("alice", PASSWORD.encode())
    assert users.remembers("alice", PASSWORD.encode())
    assert not users.remembers("alice", b"x")
    write_users(file, {"alice": new_keys("another", ITERATIONS)})
    users.file.refresh()
    assert not users.remembers("alice", PASSWORD.encode())
    write_users(file, {})
    users.file.refresh()
    assert not users.remembers("alice", b"another")
    assert PASSWORD not in repr(users)


def test_a_password_that_is_changed_while_it_is_checked_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "users")
    write_users(file, {"alice": new_keys(PASSWORD, ITERATIONS)})
    users = Users(file)
    is_of = ScramKeys.is_of

    def change_meanwhile(keys: ScramKeys, password: bytes) -> bool:
        write_users(file, {"alice": new_keys("another", ITERATIONS)})
        users.file.refresh()
        return is_of(keys, password)

    monkeypatch.setattr(ScramKeys, "is_of", change_meanwhile)
    before = users.mark("alice")
    assert users.check("alice", PASSWORD.encode()) == before
    assert users.mark("alice") != before
    assert not users.remembers("alice", PASSWORD.encode())


def test_a_scram_exchange_has_the_mark_of_the_keys_that_it_was_done_with(tmp_path: Path) -> None:
    file = str(tmp_path / "users")
    write_users(file, {"alice": new_keys(PASSWORD, ITERATIONS)})
    users = Users(file)
    before = users.mark("alice")
    server = SaslServer(["SCRAM-SHA-256"], users, lambda: "", "nonce-of-server")
    client = SaslClient("SCRAM-SHA-256", "alice", PASSWORD, "host", "nonce-of-client")
    said: bytes | PasswordCheck | KerberosTokenCheck = server.greeting()
    while not server.is_over:
        assert isinstance(said, bytes)
        frame, _ = split_frame(said) or pytest.fail("no frame")
        answer, _ = split_frame(client.received(frame)) or pytest.fail("no frame")
        said = server.received(answer)
        write_users(file, {"alice": new_keys("another", ITERATIONS)})
        users.file.refresh()
    assert server.user == "alice"
    assert server.mark == before
    assert server.mark != users.mark("alice")


@pytest.mark.parametrize("mechanism", HASHES)
def test_plain_is_checked_by_whatever_keys_a_user_has(mechanism: str, tmp_path: Path) -> None:
    file = str(tmp_path / "users")
    keys = new_keys(PASSWORD, ITERATIONS)
    write_users(file, {"alice": {mechanism: keys[mechanism]}, "bob": keys})
    users = Users(file)
    assert users.check("alice", PASSWORD.encode())
    assert not users.check("alice", b"x")
    assert not users.check("mallory", b"x")


def test_a_password_that_is_forgotten_while_it_is_looked_for_is_not_remembered(tmp_path: Path) -> None:
    class Forgetful(OrderedDict[bytes, None]):
        """Forgets a password, as the thread that checks others does, once somebody has asked for it."""

        def __contains__(self, token: object) -> bool:
            is_there = super().__contains__(token)
            self.clear()
            return is_there

    file = str(tmp_path / "users")
    write_users(file, {"alice": new_keys(PASSWORD, ITERATIONS)})
    users = Users(file)
    users._right = Forgetful()
    assert users.check("alice", PASSWORD.encode())
    users.remembers("alice", PASSWORD.encode())  # whatever it says, it raises nothing


def test_a_secret_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n", encoding="utf-8")
    assert read_secret(str(file), None, "x") == PASSWORD
    monkeypatch.setenv("PLANTED", PASSWORD)
    assert read_secret(None, "PLANTED", "x") == PASSWORD
    assert read_secret(None, None, "x") is None


def test_a_file_that_is_too_large_for_a_secret_is_refused_and_not_cut(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(65_536 * b"x")
    assert read_secret(str(file), None, "user B") == 65_536 * "x"
    file.write_bytes(65_537 * b"x")
    with pytest.raises(LocalError, match="is larger than 65536 bytes"):
        read_secret(str(file), None, "user B")


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
