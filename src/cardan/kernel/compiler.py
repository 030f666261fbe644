"""Numba: how kernels are compiled, where their machine code is not at hand.

:mod:`cardan.kernel.jit` imports this module when something must be compiled: kernels of the library that are not in the
built library or whose sources have changed, and functions of the user.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any, ClassVar, TypeVar

import numba
from numba import types
from numba.core.registry import cpu_target
from numba.extending import typeof_impl

import cardan.kernel.compiled_fields  # noqa: F401  # kernels know tables by this
from cardan.kernel import announce
from cardan.kernel.compiled_memory import EVALUATOR_SIGNATURE, PRIMITIVE_SIGNATURE
from cardan.kernel.dual import Dual
from cardan.kernel.machine_code import Unkept, cache_of, give_up_cache, load_compiler, or_give_up

log = logging.getLogger("cardan")

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# NaN and infinity must be preserved: neither 'nnan' nor 'ninf' is in the set.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}


# NumPy's rules for division by zero; no reference counts, since kernels never own an array.
_OPTIONS: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy", "_nrt": False}


_INLINE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}

try:  # private, needed only for shorter compilation
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
except ImportError:
    log.info("Numba %s: compilation takes longer, inner functions become machine code", numba.__version__)
else:

    class _NoEnvironments:
        """The code generator, without the environments of functions, which only Python objects in kernels need."""

        def __init__(self, generator: Any) -> None:
            self._generator = generator

        def __getattr__(self, name: str) -> Any:
            return getattr(self._generator, name)

        def set_env(self, name: str, environment: Any) -> None:
            """Nothing: without machine code the environment has no address."""

    class _Inlined(JITCodeLibrary):  # type: ignore[misc]
        """Code of a function that is always inlined: it is optimised and becomes machine code only in its callers."""

        @property
        def codegen(self) -> Any:
            return _NoEnvironments(self._codegen)

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0  # as for any function without a wrapper

    class _Typing:
        """The typing context, which stores the signatures of operations on numbers and pointers.

        Numba tries all definitions of an operator again at each of its uses: a fifth of the time of a compilation.
        """

        _known: ClassVar[dict[Any, Any]] = {}

        def __init__(self, context: Any) -> None:
            self._context = context

        def __getattr__(self, name: str) -> Any:
            return getattr(self._context, name)

        def resolve_function_type(self, function: Any, arguments: Any, keywords: Any) -> Any:
            """The signature of a call, or None."""
            key = function, tuple(arguments)
            found = self._known.get(key) if not keywords else None
            if found is None:
                found = self._context.resolve_function_type(function, arguments, keywords)
                # calls of kernels are left to Numba, which compiles them here
                simple = all(isinstance(kind, types.Number | types.Literal | types.CPointer) for kind in arguments)
                if simple and found is not None and not keywords and not isinstance(function, types.Dispatcher):
                    self._known[key] = found
            return found

    class _Compiler(Compiler):  # type: ignore[misc]
        """Numba's compiler without passes that change nothing in kernels, which have no closures and no array
        expressions."""

        OMITTED = ("InlineClosureLikes", "NopythonRewrites")

        def __init__(self, typing: Any, *others: Any) -> None:
            super().__init__(_Typing(typing), *others)

        def define_pipelines(self) -> Any:
            pipelines = super().define_pipelines()
            for pipeline in pipelines:
                pipeline.passes = [item for item in pipeline.passes if item[0].__name__ not in self.OMITTED]
                pipeline.finalize()
            return pipelines

    class _InlineCompiler(_Compiler):
        """The same with :class:`_Inlined` as library."""

        def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
            library = _Inlined(target.codegen(), "inner")
            library.enable_object_caching()
            super().__init__(typing, target, library, *others)

    _OPTIONS["pipeline_class"] = _Compiler
    _INLINE["pipeline_class"] = _InlineCompiler


@typeof_impl.register(Dual)
def _typeof_dual(dual: Any, context: Any) -> Any:
    """The type of the compiled form: kernels call that, and not the function of Python."""
    compiled = dual.compiled
    cpu_target.typing_context.refresh()  # an intrinsic may have been made just now
    return cpu_target.typing_context.resolve_value_type(compiled)


@typeof_impl.register(BuiltinFunctionType)
def _typeof_built(function: Any, context: Any) -> Any:
    """The type of a kernel of the built library, for kernels that call it: that of its function, compiled."""
    from cardan.kernel import built

    dual = built.made.get(function)
    return typeof_impl.dispatch(object)(function, context) if dual is None else _typeof_dual(dual, context)


def jit(function: Kernel) -> Kernel:
    """A kernel that Python calls, compiled at its first call; it releases the GIL."""
    return _cached(function, numba.njit(nogil=True, **_OPTIONS)(function))


def _cached(function: Kernel, compiled: Any) -> Kernel:
    """The compiled function, with our cache in place of Numba's."""
    cache = cache_of(function)
    if cache is None:
        load_compiler()
    compiled._cache = cache or Unkept(function)
    compiled.compile = or_give_up(compiled.compile, compiled._cache)
    return compiled


def inner(function: Kernel) -> Kernel:
    """A function that only kernels call, without the wrappers and the cache entry for calls from Python.

    It is always inlined.  Otherwise a process that compiles and one that loads cached code would call different copies
    of it, which may differ in the last bit of a result.
    """
    compiled = numba.njit(**{**_OPTIONS, **_INLINE})(function)
    return compiled


# Each operation is rounded as in the interpreter: sums are not reordered, and products and sums are not fused.
_EXACTLY: dict[str, Any] = {**_OPTIONS, "fastmath": False}


def exact(function: Kernel) -> Kernel:
    """As :func:`jit`, without reordering."""
    return _cached(function, numba.njit(nogil=True, **_EXACTLY)(function))


def exact_inner(function: Kernel) -> Kernel:
    """As :func:`inner`, without reordering."""
    compiled = numba.njit(**{**_EXACTLY, **_INLINE})(function)
    return compiled


def evaluator(function: Callable[..., int]) -> int:
    """The address of a function of the fixed ABI."""
    return _address(function, EVALUATOR_SIGNATURE, _OPTIONS, True)


def primitive_address(function: Callable[..., int], cached: bool) -> int:
    """The address of a kernel of one primitive."""
    return _address(function, PRIMITIVE_SIGNATURE, _OPTIONS if cached else {**_OPTIONS, "_nrt": True}, cached)


def by_hand(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function written by the user, with bounds checks; it may allocate."""
    load_compiler()
    compiled: Callable[..., Any] = numba.njit(error_model="numpy", boundscheck=True)(function)
    return compiled


def _address(function: Callable[..., int], signature: Any, options: dict[str, Any], cached: bool) -> int:
    """Compile a C function of that signature, or load it from the cache; returns its address."""
    options = {**options, "nopython": True}
    compiled = _cached_c_function(function, signature, options) if cached else None
    if compiled is None:
        announce.began(function, is_kept=False)
        try:
            load_compiler()
            compiled = numba.cfunc(signature, **options)(function)
        finally:
            announce.ended()
    _keep_alive.append(compiled)
    return int(compiled.address)


def _cached_c_function(function: Callable[..., int], signature: Any, options: dict[str, Any]) -> Any:
    """A C function with our cache, for which numba.cfunc has no argument; None if there is no cache."""
    cache = cache_of(function)
    if cache is None:
        return None
    try:
        from numba.core.ccallback import CFunc

        options = dict(options)
        more = {name: options.pop(name) for name in ("pipeline_class",) if name in options}
        compiled: Any = CFunc(function, (signature.args, signature.return_type), locals={}, options=options, **more)
        compile_it = compiled.compile
    except (ImportError, AttributeError, TypeError) as error:
        give_up_cache(error)
        return None
    compiled._cache = cache
    or_give_up(compile_it, cache)()
    return compiled


_keep_alive: list[Any] = []  # an address is valid only while its compiled function exists
