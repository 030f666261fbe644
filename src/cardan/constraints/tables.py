"""Tables of recorded functions that are interpreted: see :mod:`cardan.constraints._tape`."""

from __future__ import annotations

from typing import Final

from cardan.constraints.expression import MOST_NODES
from cardan.kernel.table import Address, Float, Int, Ref, Table

# In the tables, a number from RECORDED on is not the address of a primitive's kernel, but RECORDED plus that of a tape:
# no address of a processor is that large.
RECORDED: Final = 1 << 62
ALL: Final = 1 << 30  # the order of a primitive, which needs all instructions

NARROW: Final = 128  # numbers that most tapes hold at once: 1 kB of the stack
WIDE: Final = MOST_NODES

# Operations: loads, stores, a jump, then those of graphs.
CONSTANT, FEATURE, RATE, PARAMETER, STORE, STORE_PARTIAL, CLEAR, CLEAR_PARTIALS, UNLESS = range(9)
OPERATIONS: Final = (
    "+", "-", "*", "/", "sqrt", "sin", "cos", "tan", "exp", "log", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "power", "atan2", "norm3", "unit3_0", "unit3_1", "unit3_2", "inverse_norm3", "sign4", "unwrapped",
    "inverse_square2", "beyond", "outside", "angle_ratio", "angle_ratio_s", "angle_ratio_ss", "spline_0", "spline_1",
    "spline_2",
)  # fmt: skip
FIRST: Final = UNLESS + 1  # of OPERATIONS


class Instruction(Table):
    """One operation: number[target] ← operation(number[a], number[b], …)."""

    operation: Int
    target: Int  # of a store: its place in the result; of UNLESS: the order below which instructions are skipped
    a: Int  # of a load: its place; of a clearing: how many; of UNLESS: how many instructions are skipped
    b: Int
    c: Int
    d: Int


class SplineTable(Table):
    """A piecewise polynomial: see :mod:`cardan.constraints._spline`."""

    pieces: Float  # number of them
    degree: Float  # d
    period: Float  # 0: none
    breaks: Float[...]  # breakpoints, one more than pieces; then of each piece its coefficients a_0 … a_d


class Tape(Table):
    """A recorded function as instructions."""

    run: Address  # the evaluator that interprets it
    constants: Ref[Float]
    count: Int  # of the instructions
    instructions: Instruction[...]


class Narrow(Table):
    """The numbers of a tape at work."""

    numbers: Float[NARROW]


class Wide(Table):
    """The numbers of a wide tape at work."""

    numbers: Float[WIDE]
