"""The cache of machine code: damaged, exchanged and planted files, many processes, killed ones, full disks, edits."""

from __future__ import annotations

import logging
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from cardan.kernel import cache as kernel_cache
from cardan.kernel import jit, machine_code, memory
from cardan.kernel.compiler_lock import OneCompiler
from cardan.kernel.sources import Edited
from layers import sampled

if memory.JIT_DISABLED:
    pytest.skip("nothing is cached", allow_module_level=True)
if sys.platform == "win32":
    pytest.skip("forks, locks and permissions of POSIX", allow_module_level=True)
OTHER = 54321  # a user that no process of the tests has


def double(x):
    return 2.0 * x


def triple(x):
    return 3.0 * x


def long_to_compile(x):
    """Some seconds: nested loops with many calls."""
    s = 0.0
    for a in range(int(x)):
        for b in range(a):
            for c in range(b):
                s += (
                    (a * b - c) ** 2 % 7
                    + abs(a - b) * max(a, b, c)
                    - min(a * 1.5, b * 2.5)
                    + divmod(a * 1.0, c + 1.0)[1]
                )
            s -= pow(1.5, b % 3) + round(s) + int(s) % 5 + complex(s, a).real * abs(complex(a, b))
    return s


@pytest.fixture
def cache(tmp_path, monkeypatch):
    directory = kernel_cache.private(tmp_path / "cache")
    monkeypatch.setattr(kernel_cache, "CACHE_DIRECTORY", directory)
    return directory


def entries(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.nbc"))


# -- damaged and exchanged files ---------------------------------------------------------------------------------------


@pytest.mark.slow
@sampled("seed", range(25), keep=1)
def test_no_flipped_byte_is_executed(seed, cache):
    """400 in each part, 10⁴ in `make long`: the file is refused before anything of it is used."""
    jit.jit(double)(1.0)
    (path,) = entries(cache)
    kernel = jit.jit(double)
    files = kernel._cache._cache_file
    content, rng = path.read_bytes(), random.Random(seed)
    key = next(iter(_keys(kernel)))
    assert files.load(key) is not None
    for _ in range(400):
        at, change = rng.randrange(len(content)), rng.randrange(1, 256)
        path.write_bytes(content[:at] + bytes([content[at] ^ change]) + content[at + 1 :])
        with pytest.raises(ValueError, match="is damaged"):
            files.load(key)
    for length in (*range(12), *(rng.randrange(len(content)) for _ in range(20))):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match="is damaged"):
            files.load(key)
    assert jit.jit(double)(4.0) == 8.0
    assert files.load(key) is not None  # replaced


def _keys(kernel):
    compiled = jit.jit(kernel.py_func)
    compiled(1.0)
    for types in compiled.overloads:
        yield compiled._cache._index_key(types, compiled.targetctx.codegen())


@pytest.mark.slow
def test_exchanged_files_are_not_executed(cache, caplog):
    """The file of another kernel, signature or version has the right checksum, and another key."""
    for function in (double, triple):
        kernel = jit.jit(function)
        kernel(1.0)
        kernel(1)
    files = entries(cache)
    assert len(files) == 4
    contents = [path.read_bytes() for path in files]
    for shift in (1, 2):
        for k, path in enumerate(files):
            path.write_bytes(contents[(k + shift) % 4])
        for function, factor in ((double, 2), (triple, 3)):
            kernel = jit.jit(function)
            assert kernel(5.0) == 5.0 * factor and kernel(7) == 7 * factor
            assert not kernel.stats.cache_hits
    assert "has the code of another function, signature or processor" in caplog.text
    kernel = jit.jit(double)
    assert kernel(5.0) == 10.0 and kernel.stats.cache_hits


def test_damaged_digests_are_not_used(cache):
    """A missing import in them would let outdated code be loaded."""
    memory_file = cache / "digests.json"
    sources = kernel_cache.Sources(kernel_cache.PACKAGE, memory_file)
    right = sources.digest("cardan.math._dense")
    content = memory_file.read_bytes()
    assert kernel_cache.Sources(kernel_cache.PACKAGE, memory_file)._known
    rng = random.Random(1)
    for _ in range(200):
        at = rng.randrange(len(content))
        memory_file.write_bytes(content[:at] + bytes([content[at] ^ rng.randrange(1, 256)]) + content[at + 1 :])
        assert not kernel_cache.Sources(kernel_cache.PACKAGE, memory_file)._known
    assert kernel_cache.Sources(kernel_cache.PACKAGE, memory_file).digest("cardan.math._dense") == right


# -- full disks --------------------------------------------------------------------------------------------------------


def _forked(work) -> tuple[int, float]:
    """Exit status of a forked process, and its processor time [s]."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_where_the_disk_is_full_kernels_are_compiled_and_nothing_partial_is_left(cache):
    def work() -> bool:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        return jit.jit(double)(4.0) == 8.0

    assert _forked(work)[0] == 0
    assert not entries(cache) and not list(cache.rglob("*.tmp"))
    assert _forked(lambda: jit.jit(double)(4.0) == 8.0)[0] == 0 and entries(cache)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="needs a file system of its own")
def test_on_a_full_file_system_kernels_are_compiled(tmp_path, monkeypatch):
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=False, capture_output=True
    ).returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        directory = kernel_cache.private(folder / "cache")
        monkeypatch.setattr(kernel_cache, "CACHE_DIRECTORY", directory)
        (directory / "full").write_bytes(bytes(20_000))
        with pytest.raises(OSError, match="No space"):
            (directory / "fuller").write_bytes(bytes(100_000))
        assert _forked(lambda: jit.jit(double)(4.0) == 8.0)[0] == 0
        assert not entries(directory)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


# -- several processes -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_eight_cold_processes_one_compiles(cache):
    """All of them use at most twice the processor time of one.  Without the lock it is eight times."""
    kernel = jit.jit(long_to_compile)

    def work():
        return kernel(3.0) is not None

    machine_code.load_compiler()
    jit.jit(triple)(1.0)  # so that no child initialises the compiler
    _, alone = _forked(work)
    for path in entries(cache):
        if "long_to_compile" in path.name:
            path.unlink()
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if work() else 2
            finally:
                os._exit(status)
        children.append(child)
    total = 0.0
    for child in children:
        _, status, used = os.wait4(child, 0)
        assert status == 0
        total += used.ru_utime + used.ru_stime
    assert total <= 2.0 * alone, (total, alone)
    assert not list(cache.rglob("*.lock"))


@pytest.mark.slow
def test_a_killed_compiler_does_not_hold_others_up(cache):
    """Its lock ends with it, and the next process compiles."""
    child = os.fork()
    if child == 0:
        jit.jit(long_to_compile)(3.0)
        os._exit(0)
    deadline = time.monotonic() + 60.0
    while not list(cache.rglob("*.lock")):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert list(cache.rglob("*.lock")) and not entries(cache)
    began = time.monotonic()
    assert jit.jit(double)(4.0) == 8.0 and jit.jit(long_to_compile)(0.0) == 0.0
    assert time.monotonic() - began < 100.0 and not list(cache.rglob("*.lock"))


def test_a_lock_is_waited_for_until_its_time_is_over(tmp_path):
    path = tmp_path / "a.lock"
    first, second = OneCompiler(), OneCompiler()
    first.acquire(path, 1.0)
    first.acquire(path, 1.0)  # its own
    began = time.monotonic()
    second.acquire(path, 0.2)
    assert 0.2 <= time.monotonic() - began < 20.0 and not second._held
    first.release()
    second.acquire(path, 1.0)
    assert second._held
    second.release()
    assert not path.exists()


# -- edits -------------------------------------------------------------------------------------------------------------


def test_kernels_are_not_kept_after_an_edit_of_what_they_import(tmp_path, monkeypatch, cache, caplog):
    """A process has the text before an edit in memory, and would keep its code under the digest of the new text."""
    package = tmp_path / "cardan"
    shutil.copytree(kernel_cache.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "examples", "view"))
    time.sleep(0.02)  # the clock of files has ticks
    now = tmp_path / "now"
    now.touch()
    sources = kernel_cache.Sources(package, None, now.stat().st_mtime_ns)
    untouched = sources.digest("cardan.math._dense")
    changed = package / "math" / "_block_cholesky.py"
    before = changed.stat()
    time.sleep(0.02)
    changed.write_text(changed.read_text() + "\nNEW = 1\n")
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))  # as rsync and cp -p do
    with pytest.raises(Edited, match=r"_block_cholesky\.py was changed after this process started"):
        kernel_cache.Sources(package, None, now.stat().st_mtime_ns).digest("cardan.math._block_cholesky")
    assert kernel_cache.Sources(package, None, now.stat().st_mtime_ns).digest("cardan.math._dense") == untouched
    monkeypatch.setattr(kernel_cache, "SOURCES", kernel_cache.Sources(kernel_cache.PACKAGE, None, 0))
    with caplog.at_level(logging.WARNING, "cardan"):
        assert jit.jit(double)(4.0) == 8.0 and jit.jit(triple)(4.0) == 12.0
    assert not entries(cache) and caplog.text.count("start it again") == 1


# -- other users -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o775])
def test_a_folder_that_others_can_replace_is_refused(mode, tmp_path, monkeypatch):
    """As OpenSSH does; a sticky folder such as /tmp, and the user's own group, are allowed."""
    above = tmp_path / "above"
    (above / "home").mkdir(parents=True)
    above.chmod(mode)
    monkeypatch.setattr(kernel_cache, "_is_own_group", lambda number: False)
    with pytest.raises(OSError, match=r"above, which other users can change"):
        kernel_cache.private(above / "home" / "cache")
    above.chmod(0o1777)
    assert kernel_cache.private(above / "home" / "cache").is_dir()
    above.chmod(0o775)
    monkeypatch.setattr(kernel_cache, "_is_own_group", lambda number: True)
    assert kernel_cache.private(above / "home" / "cache").is_dir()


def test_a_link_above_the_folder_is_resolved_once(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert kernel_cache.private(tmp_path / "link" / "cache") == tmp_path.resolve() / "real" / "cache"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_nothing_of_another_user_is_read_and_none_reads_ours():
    if not Path("/usr/bin/python3").exists() or shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, and a Python that all users can start")
    base = Path(tempfile.mkdtemp())
    try:
        base.chmod(0o1777)
        own = kernel_cache.private(base / "own")
        (own / "code.nbc").write_bytes(b"code")
        spy = (
            f"import os; os.mkdir({str(base / 'planted')!r}, 0o700); found = []\n"
            f"for act in (lambda: os.listdir({str(own)!r}), lambda: open({str(own / 'code.nbc')!r}).read(),\n"
            f"            lambda: open({str(own / 'new')!r}, 'w'),\n"
            f"            lambda: os.rename({str(own)!r}, {str(base / 'x')!r})):\n"
            "    try: act(); found.append(act)\n"
            "    except OSError: pass\n"
            "print(len(found))"
        )
        command = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "/usr/bin/python3", "-c", spy]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0\n"
        with pytest.raises(OSError, match="open to other users"):
            kernel_cache.private(base / "planted")
        with pytest.raises(OSError, match="which other users can change"):
            kernel_cache.private(base / "planted" / "below")
        assert stat.S_IMODE(own.stat().st_mode) == 0o700
    finally:
        shutil.rmtree(base)
