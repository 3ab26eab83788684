"""Files of users and certificates, read again beside the loop: one that hangs holds up nothing."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import structlog
import trio
import trio.testing

from mesh_config.models import ListenerSettings, Mechanism, RouterSettings
from router.net import credential_files
from router.net.credential_files import CredentialFiles
from router.net.handshake_socket import HandshakeFailed
from router.security import value_from_files
from router.security.credential_store import CredentialStore
from router.security.users import UserTable, new_keys, read_table, write_users

KEYS = new_keys("secret", 4096)
MANY = 20_000
"""Users that take a tenth of a second of a processor to read."""
MOST_S = 0.01
"""Of a processor may go into reading between two turns of the loop: ten slices."""


class SlowDisk:
    """Reads of users, that wait until they may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.reads: list[str] = []
        self.fault: Exception | None = None

    def read(self, path: str) -> UserTable:
        """Read a file, once that may be."""
        assert threading.current_thread() is not threading.main_thread()
        self.reads.append(path)
        self.may_go_on.wait(10)
        if self.fault is not None:
            raise self.fault
        return read_table(path)


class Files:
    """A listener with a file of users, and what keeps it."""

    def __init__(self, folder: Path, disk: SlowDisk, patch: pytest.MonkeyPatch) -> None:
        self.path = str(folder / "users")
        write_users(self.path, {"alice": KEYS})
        self.listener = ListenerSettings(sasl=(Mechanism.PLAIN,), users_file=self.path)
        self.faults: list[Exception] = []
        store = CredentialStore(RouterSettings(id="A", listeners=(self.listener,)), structlog.get_logger())
        self.kept = CredentialFiles(store, self.faults.append)
        patch.setattr(store.users[self.path].file, "_read", lambda: disk.read(self.path))

    async def names(self) -> list[str]:
        """Users, as a connection sees them."""
        users = await self.kept.users_of(self.listener)
        assert users is not None
        return list(users.file.content.lines)


@pytest.fixture
def disk() -> Iterator[SlowDisk]:
    made = SlowDisk()
    yield made
    made.may_go_on.set()


@pytest.fixture
def files(tmp_path: Path, disk: SlowDisk, monkeypatch: pytest.MonkeyPatch) -> Files:
    return Files(tmp_path, disk, monkeypatch)


async def test_who_comes_after_a_change_is_judged_by_it(files: Files, disk: SlowDisk) -> None:
    disk.may_go_on.set()
    write_users(files.path, {"bob": KEYS})
    assert await files.names() == ["bob"]
    assert await files.names() == ["bob"]
    assert disk.reads == [files.path]


async def test_a_file_that_hangs_holds_up_no_task_and_then_the_users_before_count(
    files: Files, disk: SlowDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credential_files, "READING_S", 0.05)
    write_users(files.path, {"bob": KEYS})
    for _ in range(3):
        assert await files.names() == ["alice"]
    assert disk.reads == [files.path]  # one thread hangs, and not one for each who comes
    disk.may_go_on.set()
    monkeypatch.setattr(credential_files, "READING_S", 10)
    assert await files.names() == ["bob"]


async def test_who_leaves_while_a_file_is_read_ends_it_for_nobody_else(files: Files, disk: SlowDisk) -> None:
    write_users(files.path, {"bob": KEYS})
    found: list[str] = []

    async def wait() -> None:
        found.extend(await files.names())

    async with trio.open_nursery() as nursery:
        with trio.move_on_after(0.02):
            await files.names()
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        disk.may_go_on.set()
    assert found == ["bob"]
    assert disk.reads == [files.path]


async def test_a_fault_of_ours_while_reading_is_told_and_ends_nothing(files: Files, disk: SlowDisk) -> None:
    disk.may_go_on.set()
    disk.fault = ZeroDivisionError()
    write_users(files.path, {"bob": KEYS})
    assert await files.names() == ["alice"]
    assert files.faults == [disk.fault]


async def test_reading_many_users_in_a_thread_holds_up_nobody(tmp_path: Path) -> None:
    path = tmp_path / "users"
    write_users(str(path), {"alice": KEYS})
    listener = ListenerSettings(sasl=(Mechanism.PLAIN,), users_file=str(path))
    store = CredentialStore(RouterSettings(id="A", listeners=(listener,)), structlog.get_logger())
    keys = path.read_text(encoding="utf-8").splitlines()[-1].partition(" ")[2]
    with path.open("a", encoding="utf-8") as written:
        written.writelines(f"u{number:05} {keys}\n" for number in range(MANY))
    longest_s, used_s, interval_s = 0.0, time.process_time(), sys.getswitchinterval()
    sys.setswitchinterval(1.0)  # who doesn't give the interpreter up has it for so long
    gc.disable()  # which takes its time whoever reads
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(CredentialFiles(store, pytest.fail).refresh)
            while len(store.users[str(path)].file.content.lines) <= MANY:
                await trio.sleep(0.0002)
                before_s, used_s = used_s, time.process_time()
                longest_s = max(longest_s, used_s - before_s)
    finally:
        sys.setswitchinterval(interval_s)
        gc.enable()
    assert longest_s < MOST_S


async def test_no_look_at_a_file_is_the_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "users")
    write_users(path, {"alice": KEYS})
    listener = ListenerSettings(sasl=(Mechanism.PLAIN,), users_file=path)
    store = CredentialStore(RouterSettings(id="A", listeners=(listener,)), structlog.get_logger())
    looking: list[threading.Thread] = []
    stat = os.stat

    def look(file: str) -> os.stat_result:
        looking.append(threading.current_thread())
        return stat(file)

    monkeypatch.setattr(value_from_files.os, "stat", look)
    kept = CredentialFiles(store, pytest.fail)
    await kept.users_of(listener)
    await kept.refresh()
    assert len(looking) == 2
    assert threading.main_thread() not in looking


async def test_whose_listener_has_lost_its_files_is_refused(files: Files) -> None:
    gone = attrs.evolve(files.listener, users_file="other", tls="other")
    for ask in (files.kept.users_of, files.kept.context):
        with pytest.raises(HandshakeFailed, match="was taken away"):
            await ask(gone)
