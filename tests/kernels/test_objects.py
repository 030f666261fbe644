"""Objects of kernels: they compute what Numba's code computes, need nothing but libm, and are made once."""

from __future__ import annotations

import ctypes
import json
import struct
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from subprocess import PIPE

import llvmlite.binding as llvm
import numpy as np
import pytest

from kernels import build, emit, link

MODULES = ("cardan.analysis._policy", "cardan.math._dense", "cardan.joints._closest")
TARGET = build.native()
DIGESTS = cache(build.module_digests)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder with the objects of some modules for this machine and another one."""
    folder = tmp_path_factory.mktemp("kernels")
    make(folder)
    return folder


def make(out: Path) -> None:
    worker = build._Worker()
    try:
        for module in MODULES:
            folders = {name: out / name for name in (TARGET, "aarch64-linux")}
            for path in folders.values():
                path.mkdir(exist_ok=True)
            worker.make(build.Request(module, DIGESTS()[module], folders), out)
    finally:
        worker.close()


def entries(out: Path, module: str) -> dict[str, build.Entry]:
    found = build._made(out / TARGET, module, DIGESTS()[module])
    assert found is not None
    return {entry.key.rpartition(".")[2]: entry for entry in found}


class Code:
    """An object in memory, without a linker."""

    def __init__(self, path: Path) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self.engine.add_object_file(llvm.ObjectFileRef.from_path(str(path)))
        self.engine.finalize_object()
        self.address = self.engine.get_function_address(path.stem)
        assert self.address

    def call(self, *arguments: object) -> tuple[int, np.ndarray]:
        """Status and results of a kernel that Python calls."""
        words: list[int] = []
        for one in arguments:
            if isinstance(one, np.ndarray):
                words += [0, 0, one.size, one.itemsize, one.ctypes.data, *one.shape, *one.strides]
            elif isinstance(one, float):
                words.append(struct.unpack("q", struct.pack("d", one))[0])
            else:
                words.append(int(one))
        slots = np.array([0] * 9 + words, dtype=np.int64)
        status = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(self.address)(slots.ctypes.data)
        return status, slots[:8]


def test_a_kernel_solves_as_that_of_numba(out):
    code = Code(out / TARGET / "cardan_math__dense_solve_definite.o")
    kernel = import_module("cardan.math._dense").solve_definite
    random = np.random.default_rng(1)
    for n in (1, 2, 5, 12, 33):
        root = random.normal(size=(n, n))
        a, b = (root @ root.T + n * np.eye(n)).ravel(), random.normal(size=n)
        x, expected = np.zeros(n), np.zeros(n)
        status, results = code.call(n, a.copy(), 0.5, b, x)
        assert kernel(n, a.copy(), 0.5, b, expected)
        assert status == 0 and results[0] == 1
        assert np.abs(x - expected).max() <= 1e-14 * np.abs(expected).max()  # vectors of this machine may be longer
    status, results = code.call(1, np.array([-1.0]), 0.5, b, x)
    assert status == 0 and results[0] == 0


def test_exact_kernels_compute_the_same_bits(out):
    """is_nearer compares a number with a field of a table of floats; all cases of its three branches."""
    code = Code(out / TARGET / "cardan_analysis__policy_is_nearer.o")
    kernel = import_module("cardan.analysis._policy").is_nearer
    random = np.random.default_rng(2)
    found = set()
    for _ in range(300):
        memo = random.normal(size=64).round(1)
        value, flag = round(random.normal(), 1), bool(random.integers(2))
        mine, theirs = memo.copy(), memo.copy()
        status, results = code.call(mine, flag, value)
        expected = kernel(theirs, flag, value)
        assert status == 0 and bool(results[0] & 1) == bool(expected)
        assert mine.tobytes() == theirs.tobytes()
        found.add(bool(expected))
    assert found == {False, True}


def test_an_entry_tells_how_a_kernel_is_called(out):
    entry = entries(out, "cardan.math._dense")["solve_definite"]
    assert entry == build.Entry(
        "cardan.math._dense.solve_definite",
        "cardan_math__dense_solve_definite",
        "call",
        ("q", "d1C", "d", "d1C", "d1C"),
        "b",
    )
    address = entries(out, "cardan.joints._closest")["closest"]
    assert (address.kind, address.arguments, address.result) == ("address", (), "")


def undefined(path: Path) -> tuple[set[str], set[str]]:
    """Names of undefined and of global defined symbols of an ELF object."""
    data = path.read_bytes()
    assert data[:6] == b"\x7fELF\x02\x01"
    (start,), (size, count) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + size * k) for k in range(count)]
    (table,) = (section for section in sections if section[1] == 2)
    names = sections[table[6]][4]
    found: tuple[set[str], set[str]] = (set(), set())
    for at in range(table[4] + 24, table[4] + table[5], 24):
        name, info, _, section = struct.unpack_from("<IBBH", data, at)
        if info >> 4:
            text = data[names + name : data.index(b"\0", names + name)].decode()
            found[section != 0].add(text)
    return found


@pytest.mark.skipif(not TARGET.endswith("linux"), reason="the parser above reads ELF")
def test_objects_need_libm_alone_and_define_one_symbol(out):
    for target in (TARGET, "aarch64-linux"):
        paths = list((out / target).glob("*.o"))
        assert len(paths) == 8
        for path in paths:
            missing, defined = undefined(path)
            assert defined == {path.stem}
            assert missing <= emit.ALLOWED


TWICE = """
import sys
from pathlib import Path
from kernels import build
whole = build.module_digests()
build.module_digests = lambda: {"cardan.math._dense": whole["cardan.math._dense"]}
print(len(build.build(out=Path(sys.argv[1]), jobs=1)))
"""


@pytest.mark.slow
@pytest.mark.skipif(build.fcntl is None, reason="builds do not wait for each other here")
def test_two_builds_at_once_make_objects_once(out, tmp_path):
    """The second waits for the first, and finds what it has made, complete."""
    with build.alone(tmp_path):  # both wait, then one of them begins
        started = [
            subprocess.Popen(
                [sys.executable, "-c", TWICE, tmp_path], cwd=build.ROOT, stdout=PIPE, stderr=PIPE, text=True
            )
            for _ in range(2)
        ]
        said = [process.stderr.readline() for process in started]
    found = [process.communicate() for process in started]
    assert all("waiting for its end" in line for line in said), said
    names = {entry.symbol for entry in entries(out, "cardan.math._dense").values()}
    assert [text.strip() for text, _ in found] == [str(len(names))] * 2, found
    assert sorted("1 of 1" in errors for _, errors in found) == [False, True], found
    made = {path.stem: path.read_bytes() for path in (tmp_path / TARGET).glob("*.o")}
    assert made == {name: (out / TARGET / f"{name}.o").read_bytes() for name in names}
    assert not [path for path in (tmp_path / TARGET).iterdir() if path.suffix not in (".o", ".json")]


@pytest.mark.skipif(build.fcntl is None, reason="builds do not wait for each other here")
def test_a_build_that_was_killed_is_locked_until_its_compilers_end(tmp_path):
    """One that is still at work could write an object over that of the next build."""
    with build.alone(tmp_path):
        worker = build._Worker()
    with open(tmp_path / "lock", "w") as file:
        with pytest.raises(BlockingIOError):
            build.fcntl.flock(file, build.fcntl.LOCK_EX | build.fcntl.LOCK_NB)
        worker.close()
        build.fcntl.flock(file, build.fcntl.LOCK_EX | build.fcntl.LOCK_NB)


def test_a_wheel_for_macos_needs_the_version_that_objects_are_made_for(monkeypatch):
    """Not that of this Python, whose own may be older and for two processors."""
    monkeypatch.setattr(link.sys, "platform", "darwin")
    monkeypatch.setattr(link.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(link.sysconfig, "get_platform", lambda: "macosx-10.9-universal2")
    assert link.platform_tag() == "macosx_11_0_arm64"
    assert "-mmacosx-version-min=11.0" in link._options()
    assert emit.TARGETS["aarch64-macos"].triple == f"arm64-apple-macosx{link.MACOS}.0"


def test_objects_are_made_again_only_after_an_edit(out):
    module = "cardan.math._dense"
    digest = DIGESTS()[module]
    assert build._made(out / TARGET, module, digest) is not None
    assert build._made(out / TARGET, module, build.Digest(digest.sources, digest.ir, "other")) is None
    assert build._made(out / "wasm32", module, digest) is None
    path = out / TARGET / f"{module}.json"
    text = path.read_text()
    path.write_text(text[:-10])  # truncated
    assert build._made(out / TARGET, module, digest) is None
    path.write_text(text)
    assert json.loads(text)["digest"] == digest.objects


def test_an_edit_during_the_build_leaves_nothing_behind(tmp_path):
    """Neither IR under the digest of another text, nor objects of two texts under one digest."""
    module = "cardan.analysis._policy"
    digest = DIGESTS()[module]
    folder = tmp_path / TARGET
    folder.mkdir()
    (folder / f"{module}.json").write_text(json.dumps({"digest": digest.objects, "entries": []}))
    assert build._made(folder, module, digest) is not None
    worker = build._Worker()
    try:
        with pytest.raises(build.BuildError, match=f"{module} .* sources were changed during the build; build again"):
            worker.make(
                build.Request(module, build.Digest("of another text", "ir", "objects"), {TARGET: folder}), tmp_path
            )
    finally:
        worker.close()
    assert build._made(folder, module, digest) is None
    assert not list(tmp_path.rglob("*.pickle"))


def test_an_unknown_target_is_an_error(tmp_path):
    with pytest.raises(build.BuildError, match="no kernels for 'pdp11'; targets are x86_64-linux, aarch64-linux"):
        build.build("pdp11", tmp_path)


def test_a_kernel_that_needs_more_than_libm_is_refused():
    text = "declare double @zeta(double)\ndefine i32 @native(ptr %r, ptr %e) {\n %x = call double @zeta(double 2.0)\n"
    text += " store double %x, ptr %r\n ret i32 0\n}\n"
    bitcode = llvm.parse_assembly(text).as_bitcode()
    with pytest.raises(ValueError, match="needs zeta, which not every C library has"):
        emit.emit(emit.TARGETS["aarch64-linux"], "cardan.new.kernel", "call", (), "native", bitcode)


def test_arguments_of_the_list_are_those_of_the_code():
    bitcode = llvm.parse_assembly("define i32 @native(ptr %r, ptr %e, i64 %n) {\n ret i32 0\n}\n").as_bitcode()
    with pytest.raises(ValueError, match="cardan_new_kernel has arguments"):
        emit.emit(emit.TARGETS["aarch64-linux"], "cardan.new.kernel", "call", ("d",), "native", bitcode)
