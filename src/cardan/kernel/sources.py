"""Digests of what kernels compute: machine code belongs to a text, and to no other.

The digest of a module covers what it and all modules that it imports compute, without docstrings, comments and
positions.  An edit of a kernel therefore concerns only what depends on it.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import threading
import zlib
from pathlib import Path
from typing import Any, Final

PACKAGE = Path(__file__).parent.parent
ROOT: Final = "cardan.kernel.compiler"  # on which every kernel depends
# modules of the kernel package that only find machine code, or choose between forms: it does not depend on them
OUTSIDE: Final = frozenset(
    f"cardan.kernel.{name}" for name in ("announce", "built", "cache", "dual", "jit", "machine_code")
)


class Edited(OSError):
    """A source is newer than this process.

    Some modules may have been imported before the edit and others after it, so that kernels which are compiled now are
    those of neither text: they are not kept.
    """


class Sources:
    """Digests of the modules of the package; those of unchanged files are read from ``digests.json`` in the cache."""

    def __init__(self, package: Path, memory: Path | None, began: int | None = None) -> None:
        """began [ns]: when this process began to import kernels; no file may be newer, see :class:`Edited`."""
        self._package = package
        self._memory = memory
        self._began = began
        self._known: dict[str, Any] = {}  # by path: times and size of the file, digest, imports
        self._is_changed = False
        self._digests: dict[str, str] = {}
        if memory is not None:
            with contextlib.suppress(OSError, ValueError):
                check, _, text = memory.read_bytes().partition(b"\n")
                if check == b"%08x" % zlib.crc32(text):  # else an import could be missing, and outdated code be loaded
                    self._known = json.loads(text)

    def file(self, module: str) -> Path | None:
        """The file of a module of the package, or None."""
        base = self._package.joinpath(*module.split(".")[1:])
        path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        return path if path.is_file() else None

    def _read(self, module: str, path: Path) -> tuple[str, list[str]]:
        """Digest of what one module computes, and the modules of the package that it imports."""
        at = path.stat()
        if self._began is not None and max(at.st_mtime_ns, at.st_ctime_ns) >= self._began:
            raise Edited(f"{path} was changed after this process started; start it again")
        stamp = [at.st_mtime_ns, at.st_size, at.st_ctime_ns]
        known: list[Any] = self._known.get(str(path), [])
        if not (isinstance(known, list) and len(known) == 3 and known[0] == stamp):
            tree = ast.parse(path.read_bytes())
            imports = sorted({name for node in ast.walk(tree) for name in self._imported(node)} - {module})
            for node in ast.walk(tree):
                body: Any = getattr(node, "body", None)
                is_text = isinstance(body, list) and body and isinstance(body[0], ast.Expr)
                if is_text and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
                    body[0].value.value = ""
            known = [stamp, hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imports]
            self._known[str(path)] = known
            self._is_changed = True
        return known[1], known[2]

    def _imported(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names if alias.name.startswith("cardan.")]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cardan":
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inside if self.file(name) is not None]
            of_package = [node.module] if len(modules) < len(inside) and node.module != "cardan" else []
            return [*modules, *of_package]  # type: ignore[list-item]
        return []

    def _save(self) -> None:
        if self._memory is None or not self._is_changed:
            return
        self._is_changed = False
        temporary = self._memory.with_name(f"{self._memory.name}.{os.getpid()}.{threading.get_ident()}")
        with contextlib.suppress(OSError):
            text = json.dumps(self._known).encode()
            temporary.write_bytes(b"%08x\n" % zlib.crc32(text) + text)
            os.replace(temporary, self._memory)

    def kernels(self) -> list[str]:
        """All modules of kernels: their names begin with an underscore."""
        files = sorted(self._package.rglob("_[!_]*.py"))
        return [".".join(("cardan", *path.relative_to(self._package).with_suffix("").parts)) for path in files]

    def closure(self, modules: list[str]) -> dict[str, str]:
        """Digest of each of these modules and of all that their machine code depends on."""
        reached: dict[str, str] = {}
        left = [ROOT, *modules]
        while left:
            name = left.pop()
            path = self.file(name)
            if name not in reached and name not in OUTSIDE and path is not None:
                reached[name], imports = self._read(name, path)
                left += imports
        self._save()
        return reached

    def digest_of(self, module: str) -> str:
        """Digest of what one module computes."""
        path = self.file(module)
        return "" if path is None else self._read(module, path)[0]

    def digest(self, module: str | None) -> str:
        """One digest of all that a module needs to be compiled.

        None: of all kernels, for functions of the user, which may call any of them.
        """
        key = module or ""
        if key not in self._digests:
            needed = self.closure([module] if module else self.kernels())
            text = "".join(f"{name} {needed[name]}\n" for name in sorted(needed))
            self._digests[key] = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._digests[key]
