"""LLVM IR of the kernels of a module, as Numba's front end writes it: for any target, neither optimised nor run here.

Numba's own optimisation would use the data layout and the vectors of this machine.  Importing this module changes Numba
in this process: what it compiles has no code.  It is for processes of :mod:`kernels.build`, which set CARDAN_KERNELS.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
from numba import types
from numba.core import codegen
from numba.core.caching import NullCache

from cardan.kernel import built, jit, listed, signatures

if built.CHOICE != "numba":
    raise ImportError(
        f"CARDAN_KERNELS is {built.CHOICE!r}; it must be 'numba' where kernels are captured", name=__name__
    )

FAR = 1 << 40  # no function has this address


@dataclass(frozen=True)
class Captured:
    """A kernel in Numba's calling convention."""

    key: str  # module.name
    kind: str  # "call" or "address"
    arguments: tuple[str, ...]  # of "call": letters, see cardan.kernel.signatures
    result: str  # "n" none, "q", "d", "b", or several letters: a tuple
    native: str  # name of the function in the IR
    bitcode: bytes


def _keep_raw() -> None:
    """Let Numba finish libraries without optimisation and without machine code."""

    def finish(library: Any) -> None:
        library._finalized = True

    def pointer(library: Any, name: str) -> int:
        library._ensure_finalized()
        return FAR

    codegen.CPUCodeLibrary._optimize_functions = lambda library, module: None
    codegen.CPUCodeLibrary._optimize_final_module = lambda library: None
    codegen.JITCodeLibrary._finalize_final_module = finish
    codegen.JITCodeLibrary.get_pointer_to_function = pointer
    codegen.JITCPUCodegen.set_env = lambda generator, name, environment: None


_keep_raw()
_compile_jit, _compile_exact = jit.jit, jit.exact


def _without_cache(compiled: Any) -> Any:
    compiled._cache = NullCache()
    return compiled


jit.jit = lambda function: _without_cache(_compile_jit(function))
jit.exact = lambda function: _without_cache(_compile_exact(function))
jit.evaluator = lambda function: FAR  # compiled below
jit.primitive_address = lambda function, cached: FAR


def capture(module: str) -> list[Captured]:
    """All listed kernels of a module."""
    namespace = import_module(module)
    return [_captured(module, name, getattr(namespace, name), text) for name, text in listed.LISTED[module].items()]


def _captured(module: str, name: str, function: Any, text: str) -> Captured:
    by_address = text in signatures.BY_ADDRESS
    signature = signatures.read(text)[0]  # arrays that may be read-only are writable here: the code is the same
    kernel = jit.jit(function) if by_address else function
    kernel.compile(signature)
    (compiled,) = (one for one in kernel.overloads.values() if one.signature.args == _arguments(signature))
    native = compiled.fndesc.llvm_func_name
    words = () if by_address else tuple(text.split())
    kind = "address" if by_address else "call"
    result = "" if by_address else _result(f"{module}.{name}", compiled.signature.return_type)
    return Captured(f"{module}.{name}", kind, words, result, native, _bitcode(compiled.library._final_module, native))


def _arguments(signature: Any) -> tuple[Any, ...]:
    return tuple(getattr(signature, "args", signature))


def _result(key: str, kind: Any) -> str:
    kind = types.unliteral(kind)
    if kind == types.none:
        return "n"
    members = list(kind) if isinstance(kind, types.BaseTuple) else [kind]
    letters = {types.float64: "d", types.int64: "q", types.boolean: "b"}
    try:
        found = "".join(letters[types.unliteral(one)] for one in members)
    except KeyError:
        raise ValueError(f"{key} returns {kind}; a kernel may return None, numbers or a tuple of numbers") from None
    if len(found) > 8 or (len(found) > 1 and "b" in found):
        raise ValueError(f"{key} returns {kind}; a tuple may have eight floats or integers at the most")
    return found


def _bitcode(module: llvm.ModuleRef, native: str) -> bytes:
    """The function and what it calls; wrappers for calls from Python are left out."""
    module = module.clone()
    for item in (*module.functions, *module.global_variables):
        if not item.is_declaration and item.name != native:
            item.linkage = "internal"
    module.get_function(native).linkage = "external"
    machine = llvm.Target.from_default_triple().create_target_machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.run(module, builder)
    return module.as_bitcode()
