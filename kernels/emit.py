"""Object files of kernels for any target, from the IR of :mod:`kernels.capture`.

The IR is optimised as Numba does it, by the same passes in the same order: on the same processor the machine code
computes the same bits.  Each kernel becomes one C function:

* "call": ``int32_t f(int64_t *slots)``.  Slots 0 … 7 take the result, slot 8 takes Numba's exception, slots 9 … are
  the arguments: a number is one word, an array is 5 + 2 n words (0, 0, elements, bytes of an element, address,
  shape, strides in bytes).  The function returns Numba's status: 0 or −2 (None), or another number if it raised.
* "address": a C function of the fixed ABI.  Numba's status is dropped: kernels return codes and do not raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import llvmlite.binding as llvm

RESULTS, FIRST = 8, 9  # slots


@dataclass(frozen=True)
class Target:
    """A machine for which kernels are compiled."""

    triple: str
    cpu: str = ""
    features: str = ""

    def machine(self) -> llvm.TargetMachine:
        """LLVM's code generator for it."""
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        reloc = "static" if self.triple.startswith("wasm") else "pic"
        made = llvm.Target.from_triple(self.triple)
        return made.create_target_machine(cpu=self.cpu, features=self.features, opt=3, reloc=reloc, codemodel="default")


TARGETS = {
    "x86_64-linux": Target("x86_64-unknown-linux-gnu", "x86-64-v3"),
    "aarch64-linux": Target("aarch64-unknown-linux-gnu", "generic"),
    "aarch64-macos": Target("arm64-apple-macosx11.0.0", "apple-m1"),
    "x86_64-windows": Target("x86_64-w64-windows-gnu", "x86-64-v3"),  # to be linked by zig, clang or gcc
    "wasm32": Target(
        "wasm32-unknown-unknown", "", "+bulk-memory,+nontrapping-fptoint,+sign-ext,+mutable-globals,+multivalue"
    ),
}

# What objects may need from outside: functions of C99's libm that every platform has, and what LLVM itself calls.
MATHS = {
    "acos",
    "asin",
    "atan",
    "atan2",
    "cbrt",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "fmod",
    "hypot",
    "log",
    "log10",
}
MATHS |= {
    "log1p",
    "log2",
    "pow",
    "sin",
    "sincos",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "fma",
    "ceil",
    "floor",
    "trunc",
    "rint",
    "round",
}
MEMORY = {"memcpy", "memmove", "memset"}
ALLOWED = MATHS | MEMORY | {"__sincos_stret", "bzero", "memset_pattern16", "___chkstk_ms"}


def symbol_of(key: str) -> str:
    """The C symbol of a kernel."""
    return key.replace(".", "_")


def emit(target: Target, key: str, kind: str, arguments: tuple[str, ...], native: str, bitcode: bytes) -> bytes:
    """The object file of one kernel."""
    machine = target.machine()
    module = llvm.parse_bitcode(bitcode)
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    symbol = symbol_of(key)
    function = module.get_function(native)
    _optimise_functions(module, machine)
    module.link_in(llvm.parse_assembly("\n".join(_wrapper(symbol, kind, arguments, function))))
    _optimise_module(module, machine)
    for item in module.functions:
        if not item.is_declaration and item.name != symbol:
            item.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.run(module, _builder(machine))
    module.verify()
    unknown = {
        one.name for one in module.functions if one.is_declaration and not one.name.startswith("llvm.")
    } - ALLOWED
    unknown |= {one.name for one in module.global_variables if one.is_declaration}
    if unknown:
        raise ValueError(f"{key} needs {', '.join(sorted(unknown))}, which not every C library has")
    data: bytes = machine.emit_object(module)
    return data


def _builder(machine: llvm.TargetMachine, level: int = 3, loops: bool = True) -> llvm.PassBuilder:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization, options.slp_vectorization = loops, False
    return llvm.create_pass_builder(machine, options)


def _optimise_functions(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Numba's CPUCodeLibrary._optimize_functions."""
    for function in module.functions:
        builder = _builder(machine)
        builder.getFunctionPassManager().run(function, builder)


def _optimise_module(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Numba's CPUCodeLibrary._optimize_final_module."""
    builder = _builder(machine, level=0, loops=False)
    cheap = builder.getModulePassManager()
    cheap.add_loop_rotate_pass()
    cheap.add_instruction_combine_pass()
    cheap.add_jump_threading_pass()
    cheap.run(module, builder)
    builder = _builder(machine)
    builder.getModulePassManager().run(module, builder)


def _wrapper(symbol: str, kind: str, arguments: tuple[str, ...], native: llvm.ValueRef) -> Iterator[str]:
    """IR of the C function that calls a function in Numba's convention (result, exception, arguments…) → status."""
    kinds = [str(one.type) for one in native.arguments]
    yield f'declare i32 @"{native.name}"({", ".join(kinds)})'
    if kind == "address":
        own = ", ".join(f"{one} %a{k}" for k, one in enumerate(kinds[2:]))
        yield f"define i64 @{symbol}({own}) {{"
        yield "  %result = alloca i64\n  %error = alloca ptr\n  store i64 0, ptr %result"
        yield f'  %status = call i32 @"{native.name}"(ptr %result, ptr %error, {own})'
        yield "  %value = load i64, ptr %result\n  ret i64 %value\n}"
        return
    expected = [one for word in arguments for one in _words(word)]
    if expected != kinds[2:]:
        raise ValueError(f"{symbol} has arguments {kinds[2:]}; {' '.join(arguments)} needs {expected}")
    yield f"define i32 @{symbol}(ptr %slots) {{"
    yield f"  %error = getelementptr i64, ptr %slots, i64 {RESULTS}"
    for k, one in enumerate(kinds[2:]):
        yield f"  %p{k} = getelementptr i64, ptr %slots, i64 {FIRST + k}"
        if one == "ptr":  # a word has eight bytes also where an address has four
            yield f"  %w{k} = load i64, ptr %p{k}\n  %a{k} = inttoptr i64 %w{k} to ptr"
        else:
            yield f"  %a{k} = load {one}, ptr %p{k}"
    passed = "".join(f", {one} %a{k}" for k, one in enumerate(kinds[2:]))
    yield f'  %status = call i32 @"{native.name}"(ptr %slots, ptr %error{passed})'
    yield "  ret i32 %status\n}"


def _words(word: str) -> list[str]:
    """Types in the IR of an argument."""
    if len(word) == 1:
        return [{"d": "double", "q": "i64", "b": "i8"}[word]]
    return ["ptr", "ptr", "i64", "i64", "ptr", *["i64"] * (2 * int(word[1]))]
