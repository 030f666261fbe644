"""Types of the arguments of kernels as text: the list of all kernels (:mod:`cardan.kernel.listed`) is written so.

======================  ==============================================================================================
``d q b``               a number: float64, int64, bool
``d1C``, ``I2C``        an array: type of its elements, dimensions, layout; ``d1c``: it may be read-only
``EVALUATOR``           a function of the fixed ABI, called by address (:mod:`cardan.kernel.memory`)
``PRIMITIVE``           the kernel of a primitive, called by address
======================  ==============================================================================================
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Any

from numba import types

from cardan.kernel.compiled_memory import EVALUATOR_SIGNATURE, PRIMITIVE_SIGNATURE
from cardan.kernel.listed import LISTED

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
    return list(product(*map(_kinds, text.split())))


def _kinds(word: str) -> list[Any]:
    if len(word) == 1:
        return [LETTERS[word]]
    ways = (False, True) if word[2].islower() else (False,)
    return [types.Array(LETTERS[word[0]], int(word[1]), word[2].upper(), readonly=way) for way in ways]


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


def unlisted() -> list[str]:
    """Calls in this process with types that are not in the list, as ``module.name: types``."""
    found = []
    for module, inside in LISTED.items():
        for name, text in inside.items():
            kernel = getattr(sys.modules.get(module), name, None)
            known = () if text in BY_ADDRESS else read(text)
            for arguments in getattr(kernel, "overloads", ()):
                if arguments not in known and (called := write(arguments)) is not None:
                    found.append(f"{module}.{name}: {called}")
    return found
