"""Types of the arguments of kernels as text: the list of all kernels (:mod:`cardan.kernel.listed`) is written so.

======================  ==============================================================================================
``d q b``               a number: float64, int64, bool
``d1C``, ``I2C``        an array: type of its elements, dimensions, layout; lower case ``d1c``: read-only
``EVALUATOR``           a function of the fixed ABI, called by address (:mod:`cardan.kernel.memory`)
``PRIMITIVE``           the kernel of a primitive, called by address
``d1C q | d1c q``       two signatures of one kernel
======================  ==============================================================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from numba import types

from cardan.kernel import jit
from cardan.kernel.memory import EVALUATOR_SIGNATURE, JIT_DISABLED, PRIMITIVE_SIGNATURE

LETTERS: dict[str, Any] = {
    "d": types.float64,
    "f": types.float32,
    "q": types.int64,
    "I": types.uint32,
    "b": types.boolean,
}
_LETTER_OF = {kind: letter for letter, kind in LETTERS.items()}
BY_ADDRESS: dict[str, Any] = {"EVALUATOR": EVALUATOR_SIGNATURE, "PRIMITIVE": PRIMITIVE_SIGNATURE}


def read(text: str) -> list[Any]:
    """The signatures that Numba compiles for the text of a kernel."""
    if text in BY_ADDRESS:
        return [BY_ADDRESS[text]]
    return [tuple(_kind(word) for word in one.split()) for one in text.split("|")]


def _kind(word: str) -> Any:
    if len(word) == 1:
        return LETTERS[word]
    return types.Array(LETTERS[word[0]], int(word[1]), word[2].upper(), readonly=word[2].islower())


def write(arguments: tuple[Any, ...]) -> str | None:
    """The text of the types of arguments; None if Python cannot pass such arguments: other kernels call it so."""
    words = []
    for kind in arguments:
        if isinstance(kind, types.Array):
            layout = kind.layout if kind.mutable else kind.layout.lower()
            words.append(f"{_LETTER_OF.get(kind.dtype, kind.dtype)}{kind.ndim}{layout}")
        elif isinstance(kind, types.CPointer) or hasattr(kind, "table"):
            return None
        else:
            words.append(_LETTER_OF.get(types.unliteral(kind), str(kind)))
    return " ".join(words)


def compile_kernel(module: str, name: str, text: str) -> None:
    """Compile a listed kernel, or load its machine code."""
    function: Any = getattr(import_module(module), name)
    if text == "PRIMITIVE":
        jit.primitive_address(function, True)
    elif text == "EVALUATOR":
        jit.evaluator(function)
    elif not JIT_DISABLED:
        for signature in read(text):
            function.compile(signature)
