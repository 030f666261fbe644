"""Functions for kernels that exist twice: in Python, and compiled, once Numba is there.

Modules of kernels are imported without Numba.  What they define for each other is a :class:`Dual`: Python calls the
function itself.  Numba, if it is loaded to compile something else, finds the compiled form by the type of the dual
(:mod:`cardan.kernel.compiler`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0").strip() not in ("", "0")  # kernels are functions of Python


class Dual:
    """A function, and how its compiled form is made."""

    __slots__ = ("__weakref__", "_compiled", "_make", "function")

    def __init__(self, function: Callable[..., Any], make: Callable[[], Any]) -> None:
        self.function = function
        self._make = make
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    @property
    def compiled(self) -> Any:
        """The compiled form; made once, and kept, since types of Numba refer to it weakly."""
        if self._compiled is None:
            self._compiled = self._make()
        return self._compiled

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function.__module__}.{self.function.__qualname__})"


class Late(Dual):
    """A kernel that is compiled at its first call; it has the attributes of the compiled one."""

    __slots__ = ()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.compiled(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of the protocols of Python and NumPy
            raise AttributeError(name)
        return getattr(self.compiled, name)


def compiled_module(name: str) -> Any:
    """The module of the compiled forms: compiled_memory of memory."""
    package, _, module = name.rpartition(".")
    return import_module(f"{package}.compiled_{module}")


def accessor(function: Callable[..., Any]) -> Any:
    """Decorate a function of Python whose compiled form has the same name in the compiled module."""
    if JIT_DISABLED:
        return function
    return Dual(function, lambda: getattr(compiled_module(function.__module__), function.__name__))
