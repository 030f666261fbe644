"""The cache files of primitives: damaged files, open directories, full disks and races must not cause wrong results."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import multiprocessing
import os
import resource
import shutil
import signal
import stat
import time
import traceback

import numpy as np
import pytest

import cardan as cd
from cardan.constraints import kernels
from cardan.kernel import cache as kernel_cache
from cardan.kernel import jit, machine_code, memory
from layers import sampled

pytestmark = [
    pytest.mark.skipif(memory.JIT_DISABLED, reason="nothing is kept"),
    pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are forked"),
]

POINT = np.array([0.25, -1.5, 2.0, 1.0, 0.5, -0.75])


def declared(factor=1.75):
    """A primitive whose kernels are unique for its factor: exponents are in their text."""
    return cd.primitive(i="point", j="point")(lambda i, j: i.y * (j.x - i.z) * (i.x * i.x) ** factor)


def expected(factor=1.75):
    return POINT[1] * (POINT[3] - POINT[2]) * (POINT[0] * POINT[0]) ** factor


class Found:
    """Result of a process: the value, whether machine code was loaded, and its log messages."""

    def __init__(self, value, loaded, said):
        self.value, self.loaded, self.said = value, loaded, said

    def __repr__(self):
        return f"{self.value} {'loaded' if self.loaded else 'compiled'} {self.said}"


def evaluate(factor=1.75):
    """f of the primitive in this process, and whether its machine code was loaded or compiled."""
    said, loaded = [], []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("cardan").addHandler(handler)
    found = machine_code._Cache.load_overload
    machine_code._Cache.load_overload = lambda *a: loaded.append(found(*a)) or loaded[-1]
    kernels._addresses.clear()
    pointer = ctypes.POINTER(ctypes.c_double)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[pointer] * 4)(kernels.address(declared(factor)))
    x, c, f, df = POINT.copy(), np.zeros(1), np.full(1, np.nan), np.full(6, np.nan)
    function(*(array.ctypes.data_as(pointer) for array in (x, c, f, df)))
    return Found(float(f[0]), any(cres is not None for cres in loaded), said)


class Child:
    """Run a forked process with its cache in a directory; it calls ``before`` first."""

    def __init__(self, directory, work=evaluate, *arguments, before=None):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(self.read)
                kernel_cache.CACHE_DIRECTORY = directory
                if before is not None:
                    before()
                with os.fdopen(write, "wb") as pipe:
                    pipe.write(repr(vars(work(*arguments))).encode())
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(write)

    def result(self):
        with os.fdopen(self.read, "rb") as pipe:
            text = pipe.read().decode()
        _, status = os.waitpid(self.pid, 0)
        self.status = status
        return Found(**eval(text, {"nan": np.nan})) if text else None


def in_child(directory, *arguments, before=None):
    child = Child(directory, evaluate, *arguments, before=before)
    found = child.result()
    assert os.waitstatus_to_exitcode(child.status) == 0, "see what the child printed"
    return found


def right(found, factor=1.75):
    """The value is correct to the last bits in all cases."""
    assert found.value == pytest.approx(expected(factor), rel=1e-15)
    return found


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """A cache directory with one primitive, written by another process that has ended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_cache, "CACHE_DIRECTORY", None)
        kernels.address(declared(0.5))  # so that the child processes need not initialise the compiler
    directory = kernel_cache.private(tmp_path_factory.mktemp("cache") / "version")
    assert not right(in_child(directory)).loaded
    return directory


@pytest.fixture
def cache(pristine, tmp_path):
    """The cache, restored after the test, at the same path, since machine code refers to its source by path."""
    kept = tmp_path / "kept"
    shutil.copytree(pristine, kept, symlinks=True)
    yield pristine
    shutil.rmtree(pristine)
    shutil.copytree(kept, pristine, symlinks=True)
    pristine.chmod(0o700)


def files(cache, ending):
    found = [path for path in cache.rglob(f"*{ending}") if path.name.startswith("primitive_")]
    assert found, ending
    return found


def nothing_open(cache):
    """All files belong to this user, in a directory that only this user can access; no partial files remain."""
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE((cache / "primitives").stat().st_mode) == 0o700
    assert not [path for path in cache.rglob("*") if "writing" in path.name or ".tmp." in path.name]


def test_one_process_loads_the_kernels_that_another_cached(cache):
    found = right(in_child(cache))
    assert found.loaded and not found.said
    nothing_open(cache)
    (source,) = files(cache, ".py")
    assert source.read_text(encoding="utf-8") == declared().text


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path):
    path.write_bytes(b"")


def garbled(path):
    path.write_bytes(os.urandom(path.stat().st_size))


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


def one_bit(path):
    """The damage is in the middle of the file, in machine code."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def prolonged(path):
    path.write_bytes(path.read_bytes() + b"\nraise SystemExit('executed')\n")


def another_pickle(path):
    path.write_bytes(b"cbuiltins\nKeyError\n(S'unpickled'\ntR.")


def a_directory(path):
    path.unlink()
    path.mkdir()


def a_dangling_link(path):
    path.unlink()
    path.symlink_to(path.parent / "nowhere")


def gone(path):
    path.unlink()


DAMAGES = (truncated, emptied, garbled, zeroed, one_bit, prolonged, another_pickle, a_directory, a_dangling_link, gone)


@sampled("damage", DAMAGES, 4, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("ending", [".py", ".nbc"])
def test_a_damaged_file_is_detected_and_replaced(cache, ending, damage):
    for path in files(cache, ending):
        damage(path)
    found = right(in_child(cache))
    assert not found.loaded or ending == ".py" or damage is prolonged
    again = right(in_child(cache))
    assert again.loaded or damage is a_directory, "replaced, except what cannot be replaced"
    assert not again.said or damage is a_directory


POISON = "import os\nopen({marker!r}, 'w').close()\nos._exit(7)\n"


@pytest.mark.slow
def test_a_file_with_a_different_text_is_never_executed(cache, tmp_path):
    (source,) = files(cache, ".py")
    poison = POISON.format(marker=str(tmp_path / "executed"))
    for text in (poison, declared().text + poison, poison + declared().text):
        source.write_text(text, encoding="utf-8")
        right(in_child(cache))
        assert source.read_text(encoding="utf-8") == declared().text
    elsewhere = tmp_path / "elsewhere.py"
    for text in (poison, declared().text):
        elsewhere.write_text(text, encoding="utf-8")
        source.unlink()
        source.symlink_to(elsewhere)
        right(in_child(cache))
        assert not source.is_symlink() and source.read_text(encoding="utf-8") == declared().text
        assert elsewhere.read_text(encoding="utf-8") == text, "nothing is written through a link"
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720])
@pytest.mark.parametrize("which", ["", "primitives"])
def test_a_directory_that_others_can_write_to_is_not_used(cache, which, mode):
    """Cached machine code is executed, so other users must not be able to write it."""
    (cache / which).chmod(mode)
    if which:
        found = right(in_child(cache))
        assert not found.loaded
        assert len(found.said) == 1 and "open to other users" in found.said[0] and str(cache / which) in found.said[0]
        assert stat.S_IMODE((cache / which).stat().st_mode) == mode
    else:
        with pytest.raises(OSError, match="open to other users"):
            kernel_cache.private(cache)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives directories away")
def test_a_directory_of_another_user_is_not_used(cache):
    os.chown(cache / "primitives", 12345, -1)
    found = right(in_child(cache))
    assert not found.loaded and "open to other users" in found.said[0]


def test_a_directory_that_others_can_only_read_is_closed_to_them(cache):
    (cache / "primitives").chmod(0o755)
    assert right(in_child(cache)).loaded
    nothing_open(cache)


def test_a_link_in_place_of_the_directory_is_not_followed(cache, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (cache / "primitives").rename(elsewhere)
    (cache / "primitives").symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    found = right(in_child(cache))
    assert not found.loaded and "is a symbolic link" in found.said[0]
    assert right(in_child(cache, 2.5), 2.5).value and sorted(elsewhere.iterdir()) == before


def test_the_whole_cache_is_refused_where_others_can_write(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDAN_CACHE_DIR", str(tmp_path))
    directory = kernel_cache._writable()[0]
    assert directory.parent == tmp_path and stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.chmod(0o755)
    assert kernel_cache._writable()[0] == directory and stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.chmod(0o777)
    found, _, error = kernel_cache._writable()
    assert found is None and "open to other users" in str(error) and "chmod 700" in str(error)
    directory.rmdir()
    directory.symlink_to(tmp_path)
    found, _, error = kernel_cache._writable()
    assert found is None and "symbolic link" in str(error)


def test_without_a_cache_all_is_compiled_in_memory(cache):
    found = right(in_child(None))
    assert not found.loaded and not found.said


def test_where_nothing_can_be_written_all_is_compiled_in_memory(cache):
    """A file in place of the directory: even root cannot create files in it."""
    shutil.rmtree(cache / "primitives")
    (cache / "primitives").write_text("in the way")
    found = right(in_child(cache))
    assert not found.loaded and len(found.said) == 1 and "compiled in every process" in found.said[0]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root writes everywhere")
def test_a_cache_that_can_only_be_read_is_read(cache):
    for path in [cache, *(p for p in cache.rglob("*") if p.is_dir())]:
        path.chmod(0o500)
    try:
        right(in_child(cache))
        right(in_child(cache, 3.5), 3.5)
    finally:
        for path in [cache, *(p for p in cache.rglob("*") if p.is_dir())]:
            path.chmod(0o700)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 100, 2000, 9000])
def test_a_full_disk_only_disables_the_cache(cache, size):
    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    found = right(in_child(cache, 4.5, before=full), 4.5)
    assert not found.loaded and found.said
    assert all("compiled in every process" in text for text in found.said)
    assert right(in_child(cache)).loaded, "what was cached before is still there"
    assert not right(in_child(cache, 4.5), 4.5).said
    assert right(in_child(cache, 4.5), 4.5).loaded
    nothing_open(cache)


@pytest.mark.parametrize("where", [1, 2])
def test_a_process_killed_while_writing_leaves_no_file_that_is_loaded(cache, where):
    """The process ends at each of its renames: of the source, of the machine code."""

    def killed():
        count = iter(range(1, 10))
        move = os.replace

        def replace(*arguments, **options):
            if next(count) == where:
                os.kill(os.getpid(), signal.SIGKILL)
            move(*arguments, **options)

        os.replace = replace

    child = Child(cache, evaluate, 5.5, before=killed)
    assert child.result() is None
    assert os.waitstatus_to_exitcode(child.status) == -signal.SIGKILL
    found = right(in_child(cache, 5.5), 5.5)
    assert not found.loaded and not found.said
    assert right(in_child(cache, 5.5), 5.5).loaded


@pytest.mark.slow
def test_processes_killed_at_any_time_leave_no_file_that_is_loaded(cache):
    for k in range(8):
        child = Child(cache, evaluate, 6.5)
        time.sleep(0.03 * k)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        found = child.result()
        assert found is None or right(found, 6.5)
    right(in_child(cache, 6.5), 6.5)
    found = right(in_child(cache, 6.5), 6.5)
    assert found.loaded and not found.said


@pytest.mark.slow
def test_processes_may_compile_equal_and_different_primitives_concurrently(cache):
    factors = (7.5, 7.5, 7.5, 8.5)
    began = time.time() + 0.1

    def together():
        time.sleep(max(0.0, began - time.time()))

    children = [Child(cache, evaluate, factor, before=together) for factor in factors]
    for child, factor in zip(children, factors, strict=True):
        found = right(child.result(), factor)
        assert os.waitstatus_to_exitcode(child.status) == 0
        assert not found.said
    nothing_open(cache)
    for factor in sorted(set(factors)):
        found = right(in_child(cache, factor), factor)
        assert not found.said
        assert right(in_child(cache, factor), factor).loaded
    assert len(files(cache, ".py")) == 3


def doubled(x):
    return 2.0 * x


def double(_=None):
    """A kernel that is not a primitive, as a solver."""
    kernel = jit.jit(doubled)
    value = kernel(21.0)
    return Found(value, bool(kernel.stats.cache_hits), [])


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".nbc"])
def test_the_cache_of_every_kernel_has_the_same_protection(cache, ending):
    assert [Child(cache, double).result().loaded for _ in range(2)] == [False, True]
    for damage in (truncated, garbled, one_bit):
        (path,) = cache.rglob(f"*.doubled*{ending}")
        damage(path)
        results = [Child(cache, double).result() for _ in range(2)]
        assert [found.value for found in results] == [42.0, 42.0]
        assert [found.loaded for found in results] == [False, True]
