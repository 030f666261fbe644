"""Modules of kernels that are loaded at first use, and compiled when it saves time.

Modules of kernels take time to import; an import statement inside a function takes a microsecond per call.
Some kernels run once per mechanism, not once per iteration.  For a small mechanism they take a fraction of a
millisecond in the interpreter, but seconds to compile.  They are compiled for large mechanisms, or after a number of
calls, so that a first solve need not wait.
"""

from __future__ import annotations

import importlib.util
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

SMALL = 4000  # numbers in all arrays of a call, which the interpreter processes in some milliseconds


class LazyModule:
    """A proxy of a module, ``_blocks = LazyModule("cardan.solvers._blocks")``, which stores attributes once used."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, attribute: str) -> Any:
        value = self._find(attribute)
        self.__dict__[attribute] = value
        return value

    def _find(self, attribute: str) -> Any:
        return getattr(import_module(self.__dict__["_name"]), attribute)


def direct(kernel: Any) -> Any:
    """The machine code of a kernel that was called once: calls do not look up the types of their arguments again.

    The machine code converts numbers itself.  Returns the kernel if it is not compiled, or compiled for several types.
    """
    known: Any = getattr(kernel, "signatures", ())
    return kernel.compile(known[0]) if len(known) == 1 else kernel


class TieredModule(LazyModule):
    """A module whose kernels are interpreted for the first few small calls, unless their machine code is cached."""

    patience = 30  # calls of a kernel that are interpreted; 0 to compile at once, as in `cardan warmup`

    def _find(self, attribute: str) -> Any:
        kernel = super()._find(attribute)
        return _Tiered(self, attribute, kernel) if hasattr(kernel, "py_func") else kernel


class _Tiered:
    """One kernel of a :class:`TieredModule`, until it is compiled."""

    def __init__(self, module: TieredModule, attribute: str, kernel: Any) -> None:
        from cardan.kernel.machine_code import is_cached

        self._module = module
        self._attribute = attribute
        self._kernel = kernel
        name = module.__dict__["_name"]
        self._plain: Any = None if is_cached(kernel) else getattr(_uncompiled(name), attribute)
        self._calls = 0

    def __call__(self, *arguments: Any) -> Any:
        self._calls += 1
        size = sum([argument.size for argument in arguments if isinstance(argument, np.ndarray)])
        if self._plain is not None and self._calls <= TieredModule.patience and size <= SMALL:
            with np.errstate(all="ignore"):
                return self._plain(*arguments)
        self._module.__dict__[self._attribute] = self._kernel
        return self._kernel(*arguments)


_copies: dict[str, ModuleType] = {}


def _uncompiled(name: str) -> ModuleType:
    """The module of this name, executed a second time with decorators that do not compile."""
    from cardan.kernel import jit

    if name not in _copies:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        with jit.uncompiled():
            spec.loader.exec_module(module)
        _copies[name] = module
    return _copies[name]
