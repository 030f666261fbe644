"""Link the objects of all kernels into the extension module that the library loads (cardan.kernel.built).

    python -m kernels.link

makes ``src/cardan/kernel/library.abi3.so`` and its table ``library.json`` for this machine, and beside them the modules
of WebAssembly for pages (:mod:`kernels.webassembly`).  Objects that exist already
are not made again (:mod:`kernels.build`).  It needs Numba, the headers of Python, and a C compiler: that of CC, cc, gcc
or clang, or zig from PyPI (``pip install ziglang``).
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernels import webassembly
from kernels.build import OUT, ROOT, BuildError, Entry, alone, build_all, native

PACKAGE = ROOT / "src" / "cardan"
COMPILERS = ("cc", "gcc", "clang")
SOURCE = Path(__file__).with_name("library.c")
MACOS = "11.0"  # the oldest one, as of the objects (kernels.emit): the first on these processors
FEATURES = {"x86_64": ["AVX2", "FMA3"]}  # instructions that kernels use, by NumPy's names (cardan.kernel.built)


def make(jobs: int = 0) -> bool:
    """Compile and link all kernels for this machine, unless the library is that of the sources; whether it was made."""
    with alone(OUT):
        return _make(jobs)


def _make(jobs: int) -> bool:
    sys.path.insert(0, str(ROOT / "src"))
    try:
        from cardan.kernel import built
    finally:
        del sys.path[0]
    target = native()
    compiler = find_compiler()
    sources = _sources()
    entries = build_all([target, webassembly.TARGET], OUT, jobs)
    if _sources() != sources:
        raise BuildError("sources were changed during the build; build again")
    parts = [SOURCE, Path(__file__), Path(webassembly.__file__)]
    parts += [OUT / name / f"{entry.symbol}.o" for entry in entries for name in (target, webassembly.TARGET)]
    made_of = built.checksum(b"".join(path.read_bytes() for path in parts))
    content = {"format": built.FORMAT, "system": built.system(), "features": FEATURES.get(target.split("-")[0], [])}
    content |= {"made_of": made_of, "kernels": _kernels(entries), **sources}
    known = _known(built.TABLE)
    library = built.TABLE.with_name(built.TABLE.stem + built.suffix())
    is_same = {**content, "checksum": known.get("checksum")} == known
    if (
        is_same
        and library.is_file()
        and built.WEBASSEMBLY.is_file()
        and built.checksum(library.read_bytes()) == known["checksum"]
    ):
        return False
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        linked = Path(folder) / library.name
        _link(compiler, entries, OUT / target, linked)
        content["checksum"] = built.checksum(linked.read_bytes())
        text = json.dumps(content, sort_keys=True).encode()
        table = Path(folder) / built.TABLE.name
        table.write_bytes(built.checksum(text).encode() + b"\n" + text)
        linked.chmod(0o755)
        modules = Path(folder) / built.WEBASSEMBLY.name
        webassembly.write(modules, entries, OUT / webassembly.TARGET)
        for path, place in ((linked, library), (modules, built.WEBASSEMBLY), (table, built.TABLE)):
            path.replace(place)  # a process that loads them just now finds checksums that differ, and uses Numba
    return True


def has_compiler() -> bool:
    """Whether the system has a C compiler."""
    return bool(os.environ.get("CC")) or any(map(shutil.which, COMPILERS))


def find_compiler() -> list[str]:
    """The command of a C compiler, which also links."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in COMPILERS:
        if found := shutil.which(name):
            return [found]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise BuildError("no C compiler is found, which links kernels: install one, or pip install ziglang")


def _kernels(entries: Sequence[Entry]) -> dict[str, list[Any]]:
    """Number and signature of each kernel, as library.c reads them; of one that is called by address its number."""
    found: dict[str, list[Any]] = {}
    for number, entry in enumerate(entries):
        is_called = entry.kind == "call"
        found[entry.key] = [number, " ".join(entry.arguments), entry.result] if is_called else [number]
    return found


def _sources() -> dict[str, Any]:
    """Digests of all modules that machine code depends on, and which of them the kernels of each module need."""
    from cardan.kernel import built
    from cardan.kernel.listed import LISTED
    from cardan.kernel.sources import Sources

    sources = Sources(PACKAGE, None)
    needs = {}
    digests: dict[str, list[str]] = {}
    for module in LISTED:
        needed = sources.closure([module])
        needs[module] = sorted(needed)
        for name, text in needed.items():
            path = sources.file(name)
            assert path is not None
            digests[name] = [path.relative_to(PACKAGE).as_posix(), built.checksum(path.read_bytes()), text]
    return {"sources": digests, "needs": needs, "python": built.version()}


def _known(table: Path) -> dict[str, Any]:
    """What an earlier table tells; nothing if there is none."""
    try:
        found: dict[str, Any] = json.loads(table.read_bytes().partition(b"\n")[2])
    except (OSError, ValueError):
        return {}
    return found


def _link(compiler: list[str], entries: Sequence[Entry], objects: Path, out: Path) -> None:
    """Compile library.c and the list of kernels, and link them with the objects."""
    include = sysconfig.get_paths()["include"]
    if not (Path(include) / "Python.h").is_file():
        raise BuildError(f"Python.h is not in {include}: the headers of this Python are not installed (python3-dev)")
    symbols = [entry.symbol for entry in entries]
    listed = out.with_name("list.c")
    lines = [f"extern void {symbol}(void);" for symbol in symbols]
    lines += ["void *const cardan_functions[] = {", *(f"    (void *){symbol}," for symbol in symbols), "};"]
    listed.write_text("\n".join([*lines, f"const int cardan_count = {len(symbols)};\n"]))
    response = out.with_name("objects.txt")  # a command line has a limit
    response.write_text("\n".join(shlex.quote(str(objects / f"{symbol}.o")) for symbol in symbols))
    command = [
        *compiler,
        "-O2",
        "-std=c11",
        "-fvisibility=hidden",
        f"-I{include}",
        str(SOURCE),
        str(listed),
        f"@{response}",
    ]
    command += ["-o", str(out), *_options()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{compiler[0]} does not link kernels: {done.stderr.strip()[-2000:]}")


def platform_tag() -> str:
    """The platform of a wheel with the library, in its file name.

    On macOS it is not that of this Python, which may be an older system and two processors (universal2).
    """
    if sys.platform == "darwin":
        return f"macosx_{MACOS.replace('.', '_')}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _options() -> list[str]:
    """How an extension module is linked on this system."""
    if sys.platform == "darwin":
        return [
            f"-mmacosx-version-min={MACOS}",  # else it is the version of this machine
            *("-bundle", "-undefined", "dynamic_lookup", "-Wl,-dead_strip", "-Wl,-x"),
        ]
    if sys.platform == "win32":
        return ["-shared", f"-L{Path(sys.base_prefix) / 'libs'}", "-lpython3"]
    return ["-fPIC", "-shared", "-lm", "-Wl,-z,now", "-Wl,-z,noexecstack", "-Wl,--gc-sections", "-Wl,-s"]


def main() -> int:
    """Build and link, for the Makefile."""
    try:
        was_made = make()
    except BuildError as error:
        print(f"kernels are not built, and are compiled by Numba when they are first used: {error}", file=sys.stderr)
        return 0
    print("kernels are built" if was_made else "kernels are up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
