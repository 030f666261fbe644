"""Where the compiled kernels of a primitive are: a code of the choosers for inline ones, an address for all others.

A primitive of the user's has its generated source in a module of its own, kept beside the compiled kernels:

* the directory is the user's alone (0700, owner checked); where it is not, nothing is read from it or written to it;
* the file is named after a digest of its text, written to another name and moved into place, so that two processes
  that do so at once end with the same file;
* the text in memory is executed, with the file's name only if the file holds the same text; Numba needs the file to
  cache machine code.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Hashable
from pathlib import Path
from types import ModuleType
from typing import Any

from cardan.constraints.registry import Primitive
from cardan.errors import ModelError

log = logging.getLogger("cardan")

_addresses: dict[Hashable, int] = {}


def address(primitive: Primitive) -> int:
    """What the tables hold in CODE: the code of an inline primitive, or the address of f and ∂f/∂x."""
    return primitive.code if primitive.inline else _address(primitive, "")


def curvature_address(primitive: Primitive) -> int:
    """The same for ẋᵀ f_xx ẋ."""
    return primitive.code if primitive.inline else _address(primitive, "_curvature")


def _address(primitive: Primitive, suffix: str) -> int:
    key = (*primitive.kernel(), suffix)
    found = _addresses.get(key)
    if found is None:
        from cardan import _jit

        try:
            found = _addresses[key] = _jit.primitive_address(*_function(primitive, suffix))
        except Exception as error:  # of any type: Numba raises some that are not its own
            if primitive.is_traced:
                raise
            raise ModelError(
                f"primitive {primitive.name!r} by hand cannot be compiled: {_reason(error)}; its functions may use "
                "numbers, math and NumPy on arrays of floats, as Numba compiles them"
            ) from error
    return found


def _reason(error: Exception) -> str:
    """The line of Numba's report with the reason."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(("Failed in", "During", "File"))]
    return said[0] if said else type(error).__name__


def _function(primitive: Primitive, suffix: str) -> tuple[Callable[..., int], bool]:
    """The Python function to compile, and whether there is a file by which its machine code can be kept."""
    if primitive.code >= 0:
        from cardan.constraints import _generated

        return getattr(_generated, primitive.name + suffix), True
    if not primitive.is_traced:
        return _by_hand(primitive, suffix), False
    namespace, kept = _load(primitive.text)
    return namespace[f"primitive{suffix}"], kept


def _by_hand(primitive: Primitive, suffix: str) -> Callable[..., int]:
    """The text around two functions of the user's; never kept, since Numba would not notice an edit of them."""
    from cardan import _jit

    namespace: dict[str, Any] = {"__name__": "cardan_primitive_by_hand"}
    for name in ("value", "derivative"):
        namespace[f"{name}_by_hand"] = _jit.by_hand(getattr(primitive.origin, name))
    exec(compile(primitive.text, "<primitive by hand>", "exec"), namespace)
    function: Callable[..., int] = namespace[f"primitive{suffix}"]
    return function


def _load(text: str) -> tuple[dict[str, Any], bool]:
    """Execute the text of a generated module, as the file that keeps it where there is one."""
    from cardan import _jit

    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    path = _kept(_jit.CACHE_DIRECTORY, f"primitive_{digest}.py", text)
    name = str(path) if path is not None else f"<primitive {digest}>"
    module = ModuleType(f"cardan_primitive_{digest}")
    module.__file__ = name
    sys.modules[module.__name__] = module  # where Numba looks for it when machine code is loaded
    exec(compile(text, name, "exec"), module.__dict__)
    return module.__dict__, path is not None


def _kept(root: Path | None, name: str, text: str) -> Path | None:
    """The file of that text in the private directory under root; None where it cannot be kept safely."""
    if root is None:
        return None
    from cardan import _jit

    try:
        path = _jit.private(root / "primitives") / name
        if not _holds(path, text):
            _write(path, text)
        return path if _holds(path, text) else None
    except OSError as error:
        log.warning("primitives are compiled in every process: %s", error)
        return None


def _holds(path: Path, text: str) -> bool:
    """Whether a real file, no link, holds that text and no other."""
    try:
        return stat.S_ISREG(path.lstat().st_mode) and path.read_bytes() == text.encode()
    except FileNotFoundError:
        return False


def _write(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-", suffix=".py")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
