"""Solvers by number and by address, for a kernel that runs one from many starts."""

from __future__ import annotations

from typing import Final

from cardan.solvers import abi, methods
from cardan.solvers.problem import Problem

# Of a method, the numbers of its solver and of the one that follows, −1 where none does.
NUMBERS: Final = {"levenberg_marquardt": 0, "newton": 1, "newton_lu": 2, "gradient": 3}
SEQUENCES: Final = {**{name: (number, -1) for name, number in NUMBERS.items()}, "hybrid": (3, 1)}


def address(number: int) -> int:
    """Where the kernel of a solver is; compiles or loads it when first asked."""
    from cardan._jit import kernel_address

    if number == 0:
        from cardan.solvers._levenberg_marquardt import levenberg_marquardt

        return kernel_address(levenberg_marquardt, "iIFIFiIFFF")
    if number == 1:
        from cardan.solvers._newton import newton

        return kernel_address(newton, "iIFIFiIbFFFI")
    if number == 2:
        from cardan.solvers._algorithm_1 import algorithm_1

        return kernel_address(algorithm_1, "iIFIFFFFI")
    from cardan.solvers._gradient import gradient

    return kernel_address(gradient, "iIFIFFFF")


def is_dense(problem: Problem) -> bool:
    """Whether Newton decomposes J as one matrix."""
    return problem.rows * problem.unknowns <= methods.DENSE_NEWTON


def work_size(number: int, problem: Problem) -> int:
    """Floats of work that a solver needs."""
    if number == 0:
        from cardan.solvers._levenberg_marquardt import levenberg_marquardt_work

        return int(levenberg_marquardt_work(problem.structure, problem.linear.work))
    if number == 1:
        from cardan.solvers._newton import newton_work

        matrix = problem.rows * problem.unknowns if is_dense(problem) else problem.linear.work
        return int(newton_work(problem.structure, matrix))
    if number == 2:
        from cardan.solvers._algorithm_1 import algorithm_1_work

        return int(algorithm_1_work(problem.structure))
    from cardan.solvers._gradient import gradient_work

    return int(gradient_work(problem.structure))


def allowance(problem: Problem) -> int:
    """Iterations between two looks at the clock, some tens of milliseconds."""
    return max(1, int(methods.CHUNK_WORK / (problem.linear.cost + 100.0 * problem.unknowns)))


def singular(problem: Problem) -> tuple[float, float]:
    """What Algorithm 1 asks of a pivot, and what it leaves out of J⁺."""
    control = methods.algorithm_1_control(problem, 0.0)
    return float(control[abi.SINGULAR]), float(control[abi.TRUNCATION])


def pivot_count(problem: Problem) -> int:
    """Integers of work that any solver needs: Algorithm 1 needs most."""
    from cardan.solvers._algorithm_1 import algorithm_1_integers

    return int(algorithm_1_integers(problem.structure))
