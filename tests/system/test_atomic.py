"""Saving: temporary files are new, private and removed; another user on the machine reads and plants nothing."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

import cardan as cd
from cardan.system import atomic

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions and locks of POSIX")
OTHER = 54321  # a user that no process of the tests has


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int]]:
    """Temporary files as they are when they are made: path and mode."""
    found: list[tuple[Path, int]] = []
    real = atomic._made

    def watched(target: Path, mode: int) -> tuple[int, Path]:
        handle, beside = real(target, mode)
        found.append((beside, stat.S_IMODE(beside.stat().st_mode)))
        return handle, beside

    monkeypatch.setattr(atomic, "_made", watched)
    return found


def test_a_temporary_file_is_random_and_private_until_it_has_the_old_permissions(made, tmp_path) -> None:
    target = tmp_path / "m.json"
    target.write_text("old")
    for mode in (0o644, 0o600, 0o664):
        target.chmod(mode)
        atomic.write(target, b"new")
        assert stat.S_IMODE(target.stat().st_mode) == mode and target.read_bytes() == b"new"
    assert {mode for _, mode in made} == {0o600}
    assert len({path for path, _ in made}) == 3 and all(path.parent == tmp_path for path, _ in made)
    assert os.listdir(tmp_path) == ["m.json"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_the_user(mask: int, tmp_path) -> None:
    child = os.fork()
    if child == 0:
        os.umask(mask)
        atomic.write(tmp_path / "a", b"x")
        os._exit(0)
    os.waitpid(child, 0)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask


def test_no_planted_link_or_file_is_written_to(tmp_path, monkeypatch) -> None:
    """Even where the name is guessed."""
    victim = tmp_path / "victim"
    victim.write_text("kept")
    drawn = iter([bytes(8), b"\x11" * 8])
    monkeypatch.setattr(atomic.os, "urandom", lambda size: next(drawn))
    (tmp_path / f".a.{'00' * 8}.tmp").symlink_to(victim)
    with pytest.raises(cd.ModelError, match="cannot be written: File exists"):
        atomic.write(tmp_path / "a", b"new")
    assert victim.read_text() == "kept" and not (tmp_path / "a").exists()
    atomic.write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new" and victim.read_text() == "kept"


def test_what_a_killed_save_left_is_removed_by_the_next_one(tmp_path) -> None:
    """And nothing else: not the file of a save that is under way, nor one of another target."""
    target = tmp_path / "a"
    child = os.fork()
    if child == 0:
        atomic._made(target, 0o600)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = tmp_path.glob(".a.*")
    others = [tmp_path / name for name in (".a.notes.tmp", f".ab.{'0' * 16}.tmp", ".a.0123456789abcdef.txt")]
    for other in others:
        other.write_text("of the user")
    handle, under_way = atomic._made(target, 0o600)
    atomic.write(target, b"new")
    assert not left.exists() and under_way.exists() and all(other.exists() for other in others)
    os.close(handle)
    atomic.write(target, b"newer")
    assert not under_way.exists()


def test_saves_at_the_same_time_all_succeed(tmp_path) -> None:
    """Each removes what others left, and never what another one writes."""
    target, failures = tmp_path / "a", []

    def save(number: int) -> None:
        try:
            for _ in range(40):
                atomic.write(target, b"%d" % number * 1000)
        except Exception as error:  # whatever it is, it is a failure
            failures.append(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures
    assert target.read_bytes() in [b"%d" % number * 1000 for number in range(4)]
    assert os.listdir(tmp_path) == ["a"]


def test_file_and_folder_are_flushed_in_this_order(tmp_path, monkeypatch) -> None:
    done: list[str] = []
    real = os.fsync, os.replace

    def fsync(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        real[0](handle)

    def replace(a: object, b: object) -> None:
        done.append("renamed")
        real[1](a, b)

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    monkeypatch.setattr(atomic.os, "replace", replace)
    atomic.write(tmp_path / "a", b"x")
    assert done == ["file", "renamed", "folder"]


def test_a_long_name_is_saved(tmp_path) -> None:
    target = tmp_path / ("n" * 250)
    atomic.write(target, b"x")
    assert target.read_bytes() == b"x"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs two users")
def test_another_user_reads_no_temporary_file_and_plants_none() -> None:
    """In a folder that all may write to.  The other user tries to open each file that appears, without a pause."""
    if not Path("/usr/bin/python3").exists() or shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, and a Python that all users can start")
    folder = Path(tempfile.mkdtemp())  # not that of pytest, which other users cannot enter
    try:
        folder.chmod(0o1777)
        _save_while_spied(folder)
    finally:
        shutil.rmtree(folder)


def _save_while_spied(folder: Path) -> None:
    target, victim = folder / "secret.json", folder / "victim"
    victim.write_text("kept")
    target.write_text("old")
    target.chmod(0o600)
    spy = (
        "import os, sys, time\nend = time.time() + 1\nseen = read = 0\n"
        f"for k in range(20): os.symlink({str(victim)!r}, {str(folder)!r} + f'/.secret.json.{{k:016x}}.tmp')\n"
        "while time.time() < end:\n"
        f"    for name in os.listdir({str(folder)!r}):\n"
        "        if name.startswith('.secret') and not name[13:27] == '0' * 14:\n"
        "            seen += 1\n"
        f"            try: open({str(folder)!r} + '/' + name).close(); read += 1\n"
        "            except OSError: pass\n"
        "print(seen, read)\n"
    )
    command = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "/usr/bin/python3", "-c", spy]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 0.9
    while time.monotonic() < end:
        atomic.write(target, b"private" * 1000)
    seen, read = map(int, process.communicate()[0].split())
    assert seen > 0 and read == 0
    assert victim.read_text() == "kept" and target.read_bytes() == b"private" * 1000
