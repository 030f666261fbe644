"""Modules of kernels that are loaded when first used, and compiled when it pays.

Kernels need numba, which is heavy; and an import statement inside a function costs a microsecond each time it is run.
Some kernels run once for each mechanism, not once for each iteration: for a small one the interpreter does what they do
in a fraction of a millisecond, while to compile them takes seconds.  They are compiled when they have been called often
enough, or for a large mechanism; a first solve does not wait for them.
"""

from __future__ import annotations

import importlib.util
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

SMALL = 4000  # numbers in all arrays of a call: so many the interpreter reads in some milliseconds


class LazyModule:
    """Stands for a module: ``_blocks = LazyModule("cardan.solvers._blocks")``.  What was asked for once is kept."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, attribute: str) -> Any:
        value = self._find(attribute)
        self.__dict__[attribute] = value
        return value

    def _find(self, attribute: str) -> Any:
        return getattr(import_module(self.__dict__["_name"]), attribute)


class TieredModule(LazyModule):
    """A module whose kernels are interpreted for the first few small calls, unless their machine code is at hand."""

    patience = 30  # calls of a kernel that are interpreted; none once all shall be compiled, as by `cardan warmup`

    def _find(self, attribute: str) -> Any:
        kernel = super()._find(attribute)
        return _Tiered(self, attribute, kernel) if hasattr(kernel, "py_func") else kernel


class _Tiered:
    """One kernel of such a module, until it is compiled."""

    def __init__(self, module: TieredModule, attribute: str, kernel: Any) -> None:
        self._module = module
        self._attribute = attribute
        self._kernel = kernel
        from cardan import _jit

        name = module.__dict__["_name"]
        self._plain: Any = None if _jit.is_cached(kernel) else getattr(_uncompiled(name), attribute)
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
    """The module of that name, executed a second time with decorators that leave its functions as they are."""
    from cardan import _jit

    if name not in _copies:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        with _jit.uncompiled():
            spec.loader.exec_module(module)
        _copies[name] = module
    return _copies[name]
