"""The compiled kernels of a primitive: a code for inline primitives, an address for all others.

The generated source of a user's primitive is written to a file in the cache directory, because Numba caches machine
code by source file:

* Only the user can write to the directory (mode 0700, owner checked); otherwise it is neither read nor written.
* The file is named after a digest of its text.  It is written under a temporary name and then renamed, so that two
  processes can write it at the same time.
* The text in memory is executed, not the file.  The file is used only if it contains exactly this text.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from cardan.constraints.registry import Primitive
from cardan.errors import ModelError
from cardan.kernel import announce

log = logging.getLogger("cardan")

_addresses: dict[Hashable, int] = {}


@cache
def compiles_functions() -> bool:
    """Whether functions of the user become kernels of their own, which needs Numba, the extra ``cardan[jit]``.

    Otherwise recorded ones are interpreted (:mod:`.tape`), and those by hand are called by Python.
    """
    from cardan.kernel.built import CHOICE
    from cardan.kernel.memory import JIT_DISABLED

    if JIT_DISABLED:  # then all kernels are functions of Python
        return True
    try:
        return CHOICE != "built" and find_spec("numba") is not None
    except ImportError:  # what looks for modules may refuse to look for this one
        return False


def address(primitive: Primitive) -> int:
    """Value of CODE in the tables: the code of an inline primitive, or the address of its kernel for f and ∂f/∂x."""
    return addresses((primitive,))[0]


def curvature_address(primitive: Primitive) -> int:
    """As :func:`address`, for ẋᵀ f_xx ẋ."""
    return curvature_addresses((primitive,))[0]


def addresses(primitives: Iterable[Primitive], suffix: str = "", names: Iterable[str] = ()) -> list[int]:
    """:func:`address` of several primitives; while those of the user's own are compiled, their count is announced.

    names: of their constraints.
    """
    given = list(primitives)
    distinct = {id(one): one for one in given}
    owners = {id(one): name for one, name in zip(given, names, strict=False)}  # of one that is shared, the last
    keys = {which: (*one.kernel(), suffix) for which, one in distinct.items() if one.text and not one.is_contact}
    new = [key for key in dict.fromkeys(keys.values()) if key not in _addresses]
    found = {}
    for which, one in distinct.items():
        if one.inline:
            found[which] = one.code
        elif which in keys and keys[which] in new:
            with announce.named(_in_words(one, owners.get(which, "")), new.index(keys[which]) + 1, len(new)):
                found[which] = _address(one, suffix)
        else:
            found[which] = _address(one, suffix)
    return [found[id(one)] for one in given]


def curvature_addresses(primitives: Iterable[Primitive], names: Iterable[str] = ()) -> list[int]:
    """:func:`curvature_address` of several primitives."""
    return addresses(primitives, "_curvature", names)


def _in_words(primitive: Primitive, owner: str) -> str:
    """What the user calls a primitive with generated kernels; owner: the name of a constraint with it."""
    if primitive.name == "load":
        return "your own load"
    if primitive.name == "coupling" and owner:
        return f"the function of your coupling {owner!r}"
    return f"your own constraint {primitive.name!r}" if primitive.code == -1 else f"the constraint {primitive.name!r}"


def _address(primitive: Primitive, suffix: str) -> int:
    key = (*primitive.kernel(), suffix)
    found = _addresses.get(key)
    if found is None:
        try:
            found = _addresses[key] = _made(primitive, suffix)
        except Exception as error:  # compilation can raise exceptions other than Numba's
            if primitive.is_traced:
                raise
            raise ModelError(
                f"primitive {primitive.name!r} by hand cannot be compiled: {_reason(error)}; its functions may use "
                "numbers, math and NumPy on arrays of floats, as far as Numba supports them"
            ) from error
    return found


def _made(primitive: Primitive, suffix: str) -> int:
    """The address of a kernel, which is compiled or loaded; of a user's primitive without a compiler, of its tape or of
    its function in Python."""
    from cardan.kernel import jit

    if primitive.code >= 0 or primitive.is_contact or compiles_functions():
        return jit.primitive_address(*_function(primitive, suffix))
    if not primitive.is_traced:
        return _in_python(primitive, suffix)
    from cardan.constraints import tape

    return tape.address(primitive.text, f"primitive{suffix}")


def _in_python(primitive: Primitive, suffix: str) -> int:
    """The address of a primitive by hand that Python evaluates: 10 µs, where a compiled one takes 0.1.

    Where its functions have no value (ArithmeticError, ValueError, as of math.sqrt(-1.0)), rows are not numbers, as in
    compiled code.  Other exceptions, and Ctrl-C, end the verb that has called them.
    """
    import numpy as np

    from cardan.kernel import built

    def view(pointer: Any, size: int) -> Any:
        return np.ctypeslib.as_array(pointer, (size,))

    def passing(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arrays: Any) -> None:
            try:
                function(*arrays)
            except BaseException as error:
                if not isinstance(error, ArithmeticError | ValueError):
                    built.keep(error)
                raise  # the kernel around it takes each Exception for a value that is not there

        return call

    value = getattr(primitive.origin.value, "py_func", primitive.origin.value)
    derivative = primitive.origin.derivative_by(value)
    plain = [passing(getattr(one, "py_func", one)) for one in (value, derivative)]
    function = _by_hand(primitive.text, plain[0], plain[1], suffix, view)

    def call(*pointers: Any) -> int:
        with np.errstate(all="ignore"):
            return function(*pointers)

    call = built.guarded(call)
    kept = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.POINTER(ctypes.c_double)] * 4)(call)
    _callbacks.append(kept)
    return int(ctypes.cast(kept, ctypes.c_void_p).value or 0)


_callbacks: list[Any] = []  # an address is valid only while its function exists


def _reason(error: Exception) -> str:
    """The line of Numba's error message that states the cause."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line for line in lines if line and not line.startswith(("Failed in", "During", "File"))]
    return causes[0] if causes else type(error).__name__


def _function(primitive: Primitive, suffix: str) -> tuple[Callable[..., int], bool]:
    """The Python function to compile, and whether it has a source file, so that its machine code can be cached."""
    if primitive.code >= 0:
        from cardan.constraints import _generated

        return getattr(_generated, primitive.name + suffix), True
    if primitive.is_contact:
        return getattr(import_module(primitive.origin.module), primitive.origin.function + suffix), True
    if not primitive.is_traced:
        from cardan.kernel import jit
        from cardan.kernel.memory import view

        value = jit.by_hand(primitive.origin.value)
        derivative = jit.by_hand(primitive.origin.derivative_by(value))
        return _by_hand(primitive.text, value, derivative, suffix, view), False
    namespace, has_file = load_module(primitive.text)
    return namespace[f"primitive{suffix}"], has_file


def _by_hand(text: str, value: Any, derivative: Any, suffix: str, view: Any) -> Callable[..., int]:
    """The kernel around the user's two functions.  It is not cached, since Numba would not notice an edit of them.

    view: makes an array of a pointer.
    """
    namespace: dict[str, Any] = {"__name__": "cardan_primitive_by_hand", "view": view}
    namespace |= {"value_by_hand": value, "derivative_by_hand": derivative}
    exec(compile(text, "<primitive by hand>", "exec"), namespace)
    function: Callable[..., int] = namespace[f"primitive{suffix}"]
    return function


def load_module(text: str) -> tuple[dict[str, Any], bool]:
    """Execute the text of a generated module; returns its namespace, and whether the text is in a file."""
    from cardan.kernel.cache import CACHE_DIRECTORY

    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    path = _source_file(CACHE_DIRECTORY, f"primitive_{digest}.py", text)
    name = str(path) if path is not None else f"<primitive {digest}>"
    module = ModuleType(f"cardan_primitive_{digest}")
    module.__file__ = name
    sys.modules[module.__name__] = module  # Numba finds the module here when it loads machine code
    exec(compile(text, name, "exec"), module.__dict__)
    return module.__dict__, path is not None


def _source_file(root: Path | None, name: str, text: str) -> Path | None:
    """The file with this text in the private directory under root; None if it cannot be written safely."""
    if root is None:
        return None
    from cardan.kernel.cache import private

    try:
        path = private(root / "primitives") / name
        if not _contains(path, text):
            _write(path, text)
        return path if _contains(path, text) else None
    except OSError as error:
        log.warning("primitives are compiled in every process: %s", error)
        return None


def _contains(path: Path, text: str) -> bool:
    """Whether path is a regular file (not a link) that contains exactly this text."""
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
