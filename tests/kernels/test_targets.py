"""Kernels for other machines are emitted and linked here; those for aarch64 also run here, emulated.

Needs zig as a linker (``pip install ziglang``), and Debian's package qemu-user for the programs of aarch64.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from cardan.constraints.registry import REGISTRY
from kernels import build, emit, webassembly

IS_CI = bool(os.environ.get("CI"))  # there, what is not installed is a failure
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("ziglang") is None and not IS_CI, reason="zig is not installed: pip install ziglang"),
]

ZIG = [sys.executable, "-m", "ziglang"]
HERE = Path(__file__).parent
# the machine in words of zig; the library, and what it begins with
LIBRARIES = {
    "x86_64-linux": ("x86_64-linux-gnu.2.17", "kernels.so", b"\x7fELF\x02\x01"),
    "aarch64-linux": ("aarch64-linux-gnu.2.17", "kernels.so", b"\x7fELF\x02\x01"),
    "aarch64-macos": ("aarch64-macos.11.0", "kernels.dylib", b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01"),
    "x86_64-windows": ("x86_64-windows-gnu", "kernels.dll", b"MZ"),
}


@pytest.fixture(scope="module")
def entries() -> list[build.Entry]:
    """All kernels for all targets; objects that exist already are kept."""
    return build.build_all(emit.TARGETS)


def run(*command: object) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def listed(entries: list[build.Entry], folder: Path) -> Path:
    """A source that refers to every kernel: it cannot be linked if one is missing."""
    path = folder / "list.c"
    lines = [f"extern void {entry.symbol}(void);" for entry in entries]
    lines += ["void *const cardan_functions[] = {", *(f"(void *){entry.symbol}," for entry in entries), "};"]
    path.write_text("\n".join(lines))
    return path


def objects(target: str, entries: list[build.Entry], folder: Path) -> str:
    """An argument for the linker: all objects, from a file."""
    path = folder / "objects.txt"
    path.write_text("\n".join(f'"{(build.OUT / target / entry.symbol).as_posix()}.o"' for entry in entries))
    return f"@{path}"


@pytest.mark.parametrize("target", LIBRARIES)
def test_all_kernels_are_linked_to_a_library(target, entries, tmp_path):
    """Nothing is left undefined: the library may use libc and libm alone."""
    machine, name, begin = LIBRARIES[target]
    strict = [] if "windows" in target or "macos" in target else ["-Wl,-z,defs", "-lm"]
    inputs = [listed(entries, tmp_path), objects(target, entries, tmp_path)]
    run(*ZIG, "cc", "-target", machine, "-shared", "-O2", *inputs, *strict, "-o", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begin)


def test_all_kernels_are_linked_to_a_module_of_webassembly(entries, tmp_path):
    """It exports every kernel, and imports functions of libm and the memory alone."""
    module = tmp_path / "kernels.wasm"
    exported = [f"--export={entry.symbol}" for entry in entries]
    options = ["--no-entry", "--allow-undefined", "--import-memory", "--export-table", *exported]
    run(*ZIG, "wasm-ld", *options, objects("wasm32", entries, tmp_path), "-o", module)
    data = module.read_bytes()
    assert data.startswith(webassembly.MAGIC)
    assert {entry.symbol for entry in entries} <= set(webassembly.exports(data))
    assert set(webassembly.imports(data)) <= {*emit.ALLOWED, "memory"}


# -- aarch64, emulated -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def programs(entries, tmp_path_factory) -> dict[str, list[str]]:
    """Commands of call.c with all kernels, for x86-64 and for aarch64."""
    if shutil.which("qemu-aarch64") is None and not IS_CI:
        pytest.skip("qemu-aarch64 is not installed: apt install qemu-user")
    commands = {}
    for target, start in (("x86_64-linux", []), ("aarch64-linux", ["qemu-aarch64"])):
        folder = tmp_path_factory.mktemp(target)
        inputs = [HERE / "call.c", listed(entries, folder), objects(target, entries, folder)]
        machine = f"{target}-musl"  # the same libm in both, and no libraries are needed
        run(*ZIG, "cc", "-target", machine, "-static", "-O2", *inputs, "-lm", "-o", folder / "call")
        commands[target] = [*start, str(folder / "call")]
    return commands


def call(programs, entries, tmp_path, key, arguments):
    """What a kernel returns and writes on both machines, as words."""
    numbers = {entry.key: k for k, entry in enumerate(entries)}
    is_primitive = entries[numbers[key]].kind == "address"
    data = struct.pack("<3q", numbers[key], is_primitive, len(arguments))
    for one in arguments:
        if isinstance(one, np.ndarray):
            data += struct.pack("<q", one.size) + one.tobytes()
        else:
            data += struct.pack("<qd" if isinstance(one, float) else "<qq", -1, one)
    (tmp_path / "in").write_bytes(data)
    found = []
    for command in programs.values():
        run(*command, tmp_path / "in", tmp_path / "out")
        found.append(np.frombuffer((tmp_path / "out").read_bytes(), dtype=np.int64))
    return found


def test_exact_kernels_have_the_same_bits_on_aarch64(programs, entries, tmp_path):
    random = np.random.default_rng(3)
    for sign in (1.0, -1.0):
        q = random.normal(size=7 * 5)
        arguments = [5, random.normal(size=7 * 5), random.normal(size=3), sign, q]
        x86, arm = call(programs, entries, tmp_path, "cardan.system._tables.shift_reference", arguments)
        assert x86.tobytes() == arm.tobytes()
        assert not np.array_equal(x86[-q.size :].view(float), q)


def test_linear_algebra_agrees_on_aarch64(programs, entries, tmp_path):
    """To rounding: sums may be reordered, in another way for each machine."""
    random = np.random.default_rng(4)
    n = 12
    root = random.normal(size=(n, n))
    arguments = [n, (root @ root.T + n * np.eye(n)).ravel(), 0.0, random.normal(size=n), np.zeros(n)]
    x86, arm = call(programs, entries, tmp_path, "cardan.math._dense.solve_definite", arguments)
    assert x86[0] == arm[0] == 0 and x86[1] == arm[1] == 1
    x, y = x86[-n:].view(float), arm[-n:].view(float)
    assert np.abs(x).max() > 0.0 and np.abs(x - y).max() <= 1e-15 * n


@pytest.mark.parametrize("name", [p.name for p in REGISTRY.values() if not p.inline])
def test_primitives_agree_on_aarch64(name, programs, entries, tmp_path):
    primitive = REGISTRY[name]
    random = np.random.default_rng(5)
    x, c = random.normal(size=primitive.components), 0.5 + random.random(len(primitive.parameters) + 8)
    f, df = np.zeros(primitive.rows), np.zeros(primitive.rows * primitive.components)
    rate = random.normal(size=primitive.components)
    for suffix, arguments in (("", [x, c, f, df]), ("_curvature", [x, rate, c, f])):
        key = f"cardan.constraints._generated.{name}{suffix}"
        x86, arm = (words[2:].view(float) for words in call(programs, entries, tmp_path, key, arguments))
        given = np.concatenate(arguments)
        assert not np.array_equal(x86, given)  # it has written something
        assert np.abs(x86 - arm).max() <= 1e-13 * max(1.0, np.abs(x86).max())
