"""The options of an assembly, as one record."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from cardan.calls import explains
from cardan.coordinates import formulations, verdict
from cardan.coordinates.formulations import Formulation
from cardan.errors import ModelError
from cardan.solvers import methods
from cardan.system import check

AUTO: Final = "auto"
Method = Literal["auto", "levenberg_marquardt", "newton", "newton_lu", "gradient", "hybrid"]

RESTARTS: Final = 200  # default
CONTACT_RESTARTS: Final = 20  # default, where only the shapes of contacts are not as they should be
MOST_ITERATIONS: Final = 10**15  # kernels count in floats, which are exact up to 2⁵³


@explains(constructor=True)
@dataclass(frozen=True, slots=True)
class SpringOptions:
    """Options of the spring steps of the methods ``"gradient"`` and ``"hybrid"``.

    gain: k; None for the default of the method, 0.1 as in the papers, or ∞ before Newton: the longest stable step.
    bound: k is at most this part of the bound at which the linear model of ½|C|² certainly decreases, from 0 to 1.
    stop: ``"largest"`` ends at the tolerance on every residual; ``"norm"`` ends at ‖C‖ < ε, the papers' rule, with the
    tolerance as ε and C in the units of the tolerance.
    switch_residual, switch_steps: ``"hybrid"`` changes to Newton at this residual, or after so many steps; None for
    1e-2 and 500.  It also changes where 250 more steps would not reach that residual, at the rate of the last 50.
    """

    gain: float | None = None
    bound: float = 1.0
    stop: Literal["largest", "norm"] = "largest"
    switch_residual: float | None = None
    switch_steps: int | None = None

    def __post_init__(self) -> None:
        """Check every field."""
        if self.gain is not None and self.gain != math.inf:
            check.positive(self.gain, "the gain k of the spring step")
        if check.positive(self.bound, "the bound of the spring step") > 1.0:
            raise ModelError(f"the bound of the spring step is {self.bound}; it must be at most 1")
        check.choice(self.stop, "stop", ("largest", "norm"))
        if self.switch_residual is not None:
            check.positive(self.switch_residual, "switch_residual")
        if self.switch_steps is not None:
            check.count(self.switch_steps, "switch_steps", 0)

    def applied(self, method: methods.Method) -> methods.Method:
        """The method with these options."""
        settings = {"step_bound": self.bound, "by_norm": float(self.stop == "norm")}
        if self.gain is not None:
            settings["step_gain"] = self.gain
        return method.with_springs(settings, self.switch_steps, self.switch_residual)


class OptionArguments(TypedDict, total=False):
    """The fields of :class:`AssemblyOptions` as keyword arguments."""

    method: Method
    formulation: Formulation
    tolerance: float
    max_iterations: int | None
    max_seconds: float | None
    restarts: int | None
    seed: int
    spring: SpringOptions | None


@explains(constructor=True)
@dataclass(frozen=True, slots=True)
class AssemblyOptions:
    """Options of an assembly; the same for one start and for many.

    method: ``"auto"`` (Levenberg–Marquardt with retries and restarts), ``"levenberg_marquardt"``, ``"newton"``
    (pseudo-inverse), ``"newton_lu"`` (LU, pseudo-inverse where J is singular), ``"gradient"`` or ``"hybrid"``.
    formulation: the choice of unknowns: ``"manifold"`` (six per body), ``"euler_parameters"`` (seven, and a row),
    ``"relative"`` (coordinates of the joints of a spanning tree) or ``"relative_euler_parameters"`` (the same in the
    paper's form); for comparison ``"virtual_rotation"``, ``"relative_virtual_rotation"`` and ``"euler_angles"``.
    tolerance: on every residual; lengths relative to the mechanism's extent, angles in radians.
    max_iterations: per attempt; None for the default of the method.  max_seconds: for the whole call.
    restarts: attempts after the first, with ``"auto"`` only; all are made unless one succeeds or a contradiction is
    proved.  None: at most 200, fewer if the first ones agree or none can help; at most 20 where all equations are met,
    but shapes do not touch in a point.  seed: of the random restarts.
    spring: a :class:`cardan.SpringOptions`, for ``"gradient"`` and ``"hybrid"`` only.
    """

    method: Method = AUTO
    formulation: Formulation = "manifold"
    tolerance: float = verdict.TOLERANCE
    max_iterations: int | None = None
    max_seconds: float | None = None
    restarts: int | None = None
    seed: int = 0
    spring: SpringOptions | None = None

    if not TYPE_CHECKING:

        def __new__(cls, *values: Any, **named: Any) -> AssemblyOptions:
            """Refuse unknown names, which would be a TypeError without a suggestion."""
            for name in named:
                if name not in OptionArguments.__annotations__:
                    raise check.unknown(name, "option of an assembly", OptionArguments.__annotations__)
            return object.__new__(cls)

    def __post_init__(self) -> None:
        """Check every field, and convert numbers to int and float."""
        check.choice(self.method, "method", [AUTO, *methods.REGISTRY])
        check.choice(self.formulation, "formulation", formulations.CHOICES)
        checked = {"tolerance": verdict.checked_tolerance(self.tolerance), "seed": check.count(self.seed, "seed", 0)}
        if self.max_iterations is not None:
            checked["max_iterations"] = check.count(self.max_iterations, "max_iterations", 1)
        if self.restarts is not None and self.method != AUTO:
            raise ModelError(
                f"restarts is {self.restarts}, but method {self.method!r} makes one attempt; use method='auto'"
            )
        if self.restarts is not None:
            checked["restarts"] = check.count(self.restarts, "restarts", 0)
        if self.spring is not None and not isinstance(self.spring, SpringOptions):
            raise ModelError(f"spring is {self.spring!r}; it must be a cardan.SpringOptions")
        if self.spring is not None and (self.method == AUTO or not methods.REGISTRY[self.method].has_springs):
            raise ModelError(
                f"spring is given, but method {self.method!r} has no spring steps; use 'gradient', 'hybrid'"
            )
        if self.max_seconds is not None:
            checked["max_seconds"] = check.positive(self.max_seconds, "max_seconds")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def solver(self) -> methods.Method:
        """The method of each attempt."""
        found = methods.REGISTRY["levenberg_marquardt" if self.method == AUTO else self.method]
        return found if self.spring is None else self.spring.applied(found)

    @property
    def iterations(self) -> int:
        """Iterations of an attempt, at most."""
        if self.max_iterations is None:
            return self.solver.iterations
        return min(self.max_iterations, MOST_ITERATIONS)

    @property
    def restart_count(self) -> int:
        """Attempts after the first, at most."""
        if self.method != AUTO:
            return 0
        return RESTARTS if self.restarts is None else self.restarts

    @property
    def contact_restarts(self) -> int:
        """Attempts after a pose that meets all equations, but in which shapes do not touch in a point, at most."""
        return min(self.restart_count, CONTACT_RESTARTS) if self.restarts is None else self.restart_count


_DEFAULT: Final = AssemblyOptions()


def known_options(options: Any, changes: Iterable[str], default: Any, what: str) -> Any:
    """The given options, or the default ones; ModelError if they are of another class, or a change is of no field."""
    if options is None:
        options = default
    elif not isinstance(options, type(default)):
        raise ModelError(f"options is {options!r}; it must be a cardan.{type(default).__name__}")
    for name in changes:
        if name not in default.__dataclass_fields__:
            raise check.unknown(name, what, default.__dataclass_fields__)
    return options


def assembly_options(options: AssemblyOptions | None, changes: OptionArguments | dict[str, Any]) -> AssemblyOptions:
    """The given options, or the default ones, with some fields changed."""
    known: AssemblyOptions = known_options(options, changes, _DEFAULT, "option of an assembly")
    if not changes:
        return known
    try:
        return _changed(known, **changes)
    except TypeError:  # an unhashable value is not valid either: replace() raises the ModelError
        return replace(known, **changes)


@lru_cache(maxsize=64, typed=True)  # the types of arguments are compared, not those inside a tuple: 1 is not True
def _changed(options: AssemblyOptions, **changes: Any) -> AssemblyOptions:
    return replace(options, **changes)
