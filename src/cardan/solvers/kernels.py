"""Solvers by number and by address, for a kernel that runs one from many starts."""

from __future__ import annotations

from typing import Final

from cardan.solvers import abi, methods
from cardan.solvers.problem import Problem

# Of a method, the numbers of its solver and of the one that follows.
SEQUENCES: Final = {
    "levenberg_marquardt": (abi.LEVENBERG_MARQUARDT, abi.NO_SOLVER),
    "newton": (abi.NEWTON, abi.NO_SOLVER),
    "newton_lu": (abi.NEWTON_LU, abi.NO_SOLVER),
    "gradient": (abi.GRADIENT, abi.NO_SOLVER),
    "hybrid": (abi.GRADIENT, abi.NEWTON),
}


def address(number: int) -> int:
    """Where the kernel of a solver is; compiles or loads it when first asked."""
    from cardan._jit import kernel_address

    if number == abi.LEVENBERG_MARQUARDT:
        from cardan.solvers._levenberg_marquardt import levenberg_marquardt

        return kernel_address(levenberg_marquardt, "iIFIFiIFFF")
    if number == abi.NEWTON:
        from cardan.solvers._newton import newton

        return kernel_address(newton, "iIFIFiIbFFFI")
    if number == abi.NEWTON_LU:
        from cardan.solvers._algorithm_1 import algorithm_1

        return kernel_address(algorithm_1, "iIFIFFFFI")
    from cardan.solvers._gradient import gradient

    return kernel_address(gradient, "iIFIFFFF")


def is_dense(problem: Problem) -> bool:
    """Whether Newton decomposes J as one matrix."""
    return problem.rows * problem.unknowns <= methods.DENSE_NEWTON


def work_size(number: int, problem: Problem) -> int:
    """Floats of work that a solver needs."""
    if number == abi.LEVENBERG_MARQUARDT:
        from cardan.solvers._levenberg_marquardt import levenberg_marquardt_work

        return int(levenberg_marquardt_work(problem.structure, problem.linear.work))
    if number == abi.NEWTON:
        from cardan.solvers._newton import newton_work

        matrix = problem.rows * problem.unknowns if is_dense(problem) else problem.linear.work
        return int(newton_work(problem.structure, matrix))
    if number == abi.NEWTON_LU:
        from cardan.solvers._algorithm_1 import algorithm_1_work

        return int(algorithm_1_work(problem.structure))
    from cardan.solvers._gradient import gradient_work

    return int(gradient_work(problem.structure))


def singular(problem: Problem) -> tuple[float, float]:
    """What Algorithm 1 asks of a pivot, and what it leaves out of J⁺."""
    control = methods.algorithm_1_control(problem, 0.0)
    return float(control[abi.SINGULAR]), float(control[abi.TRUNCATION])


def pivot_count(problem: Problem) -> int:
    """Integers of work that any solver needs: Algorithm 1 needs most."""
    from cardan.solvers._algorithm_1 import algorithm_1_integers

    return int(algorithm_1_integers(problem.structure))
