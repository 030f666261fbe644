"""Kernels as object files for a target: ``python -m kernels.build --target aarch64-linux``.

Two steps for each module of kernels, in several processes: IR by Numba's front end (:mod:`kernels.capture`), once for
all targets, and objects by LLVM (:mod:`kernels.emit`).  Both are kept in the folder of the build with the digest of all
sources that the module needs: after an edit only what depends on it is made again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: builds do not wait for each other; files appear complete
    fcntl = None  # type: ignore[assignment]  # a module is no optional type

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "kernels"
MACHINES = {"AMD64": "x86_64", "arm64": "aarch64"}
SYSTEMS = {"darwin": "macos", "win32": "windows"}


class BuildError(Exception):
    """Kernels cannot be built; the message says why."""


@dataclass(frozen=True)
class Entry:
    """A kernel in the objects; docs/kernels.md describes how it is called."""

    key: str  # "cardan.solvers._blocks.call_at"
    symbol: str  # of its C function, in the object <symbol>.o
    kind: str  # "call" or "address"
    arguments: tuple[str, ...]  # of "call": "d", "q", "b", or arrays: "d1C", or "d1c" that may be read-only
    result: str  # of "call": "n" none, "q", "d", "b", or several letters: a tuple


_locks: dict[Path, int] = {}  # folders in which this process builds, and the files that it has locked


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """One build at a time in a folder: others wait for its end, and find its objects.

    The processes of a build hold the lock too, so that none of them still writes when the next one begins.
    """
    if fcntl is None or out in _locks:
        yield
        return
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another process builds kernels in {out}: waiting for its end", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        _locks[out] = file.fileno()
        try:
            yield
        finally:
            del _locks[out]


def native() -> str:
    """The target that is this machine."""
    machine = platform.machine()
    return f"{MACHINES.get(machine, machine)}-{SYSTEMS.get(sys.platform, sys.platform)}"


def build(target: str = "", out: Path = OUT, jobs: int = 0) -> list[Entry]:
    """Write <out>/<target>/<symbol>.o of every kernel, and entries.json; returns the entries, sorted by key.

    target: "" is this machine.  jobs: number of processes, 0: one per processor.
    """
    return build_all([target or native()], out, jobs)


def build_all(targets: Iterable[str], out: Path = OUT, jobs: int = 0) -> list[Entry]:
    """As :func:`build`, for several targets: the IR is captured once."""
    with alone(out):
        return _build_all(list(targets), out, jobs)


def _build_all(targets: list[str], out: Path, jobs: int) -> list[Entry]:
    try:
        from kernels.emit import TARGETS
    except ImportError as error:
        raise BuildError(f"Numba and llvmlite are needed to compile kernels: {error}") from None
    if unknown := [name for name in targets if name not in TARGETS]:
        raise BuildError(f"there are no kernels for {unknown[0]!r}; targets are {', '.join(TARGETS)}")
    requests = []
    entries: list[Entry] = []
    for module, digest in module_digests().items():
        made = {name: _made(out / name, module, digest) for name in targets}
        if missing := {name: out / name for name, found in made.items() if found is None}:
            requests.append(Request(module, digest, missing))
        else:
            entries += made[targets[0]] or []
    for folder in {folder for request in requests for folder in request.missing.values()}:
        folder.mkdir(parents=True, exist_ok=True)
    entries += _work(requests, out, jobs or os.cpu_count() or 1)
    entries.sort(key=lambda one: one.key)
    for name in targets:
        (out / name / "entries.json").write_text(json.dumps([asdict(one) for one in entries], indent=1))
        for path in set((out / name).glob("*.o")) - {out / name / f"{one.symbol}.o" for one in entries}:
            path.unlink()  # of a kernel that does not exist
    return entries


@dataclass(frozen=True)
class Digest:
    """What the IR and the objects of a module depend on."""

    sources: str
    ir: str
    objects: str


@dataclass(frozen=True)
class Request:
    """A module whose objects are to be made."""

    module: str
    digest: Digest
    missing: dict[str, Path]  # folder of each target


def module_digests() -> dict[str, Digest]:
    """Digests of all listed modules."""
    import llvmlite
    import numba

    if str(ROOT / "src") not in sys.path:
        sys.path.insert(0, str(ROOT / "src"))
    from cardan.kernel.listed import LISTED
    from cardan.kernel.sources import PACKAGE, Sources

    sources = Sources(PACKAGE, None)
    capture, emit = ((Path(__file__).parent / name).read_text() for name in ("capture.py", "emit.py"))
    digests = {}
    for module, inside in LISTED.items():
        text = sources.digest(module)
        ir = _digest(numba.__version__, capture, text, str(inside))
        digests[module] = Digest(text, ir, _digest(llvmlite.__version__, emit, ir))
    return digests


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _made(folder: Path, module: str, digest: Digest) -> list[Entry] | None:
    """Entries of a module whose objects exist already."""
    try:
        found = json.loads((folder / f"{module}.json").read_text())
    except (OSError, ValueError):
        return None
    entries = _entries(found["entries"])
    is_whole = found["digest"] == digest.objects and all((folder / f"{one.symbol}.o").is_file() for one in entries)
    return entries if is_whole else None


def _entries(rows: list[Any]) -> list[Entry]:
    """Entries of a module, from JSON."""
    return [Entry(key, symbol, kind, tuple(words), result) for key, symbol, kind, words, result in rows]


class _Worker:
    """A process of :mod:`kernels.worker`."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        # nothing is read from the cache of the user, or written to it
        self._scratch = tempfile.TemporaryDirectory(prefix="cardan-kernels-")
        own = {"PYTHONPATH": path, "CARDAN_KERNELS": "numba", "CARDAN_CACHE_DIR": self._scratch.name}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, "-m", "kernels.worker"]
        self.process = subprocess.Popen(command, env={**os.environ, **own}, pass_fds=tuple(_locks.values()), **pipes)

    def make(self, request: Request, out: Path) -> list[Entry]:
        """Write the objects of a module."""
        assert self.process.stdin is not None and self.process.stdout is not None
        folders = {name: str(folder) for name, folder in request.missing.items()}
        ir = out / "ir" / f"{request.module}-{request.digest.ir}.pickle"
        for folder in request.missing.values():  # if this ends early, some objects are new, and others are not
            (folder / f"{request.module}.json").unlink(missing_ok=True)
        try:
            asked = [request.module, request.digest.sources, str(ir), folders]
            print(json.dumps(asked), file=self.process.stdin, flush=True)
            reply = json.loads(self.process.stdout.readline() or '{"error": "the compiler ended"}')
        except OSError as error:
            reply = {"error": str(error)}
        if "error" in reply:
            raise BuildError(f"kernels of {request.module} cannot be compiled: {reply['error']}")
        text = json.dumps({"digest": request.digest.objects, "entries": reply["entries"]})
        for folder in request.missing.values():
            (folder / f"{request.module}.json").write_text(text)
        return _entries(reply["entries"])

    def close(self) -> None:
        """End the process."""
        self.process.communicate()
        self._scratch.cleanup()


def _work(requests: list[Request], out: Path, jobs: int) -> list[Entry]:
    """Let processes make the objects of these modules; progress is printed."""
    todo: queue.SimpleQueue[Request] = queue.SimpleQueue()
    for request in sorted(requests, key=_size, reverse=True):
        todo.put(request)
    entries: list[Entry] = []
    errors: list[BuildError] = []
    done: list[str] = []

    def serve() -> None:
        worker = _Worker()
        try:
            while not errors:
                began = time.perf_counter()
                request = todo.get_nowait()
                entries.extend(worker.make(request, out))
                done.append(request.module)
                seconds = time.perf_counter() - began
                print(
                    f"{len(done):4} of {len(requests)}  {seconds:5.1f} s  {request.module}", file=sys.stderr, flush=True
                )
        except queue.Empty:
            pass  # another process makes the last ones
        except BuildError as error:
            errors.append(error)
        finally:
            worker.close()

    threads = [threading.Thread(target=serve) for _ in range(min(jobs, len(requests)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return entries


def _size(request: Request) -> int:
    """Length of the source of a module: long ones are compiled first, so that processes end together."""
    return (ROOT / "src" / Path(*request.module.split("."))).with_suffix(".py").stat().st_size


def main() -> int:
    """Build kernels from the command line."""
    parser = argparse.ArgumentParser(prog="python -m kernels.build", description="Compile all kernels to object files.")
    parser.add_argument("--target", action="append", default=[], help="such as aarch64-linux; default: this machine")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--jobs", type=int, default=0, help="number of processes; default: one per processor")
    args = parser.parse_args()
    try:
        entries = build_all(args.target or [native()], args.out, args.jobs)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{len(entries)} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
