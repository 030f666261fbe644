"""Primitives with kernels written by the user: f(x, c, out) and df(x, c, out), compiled by Numba, called by address.

df may also be made of f, by differences or by a complex step (:func:`codegen.differenced_module`).
The derivative is compared with central differences of f when the primitive is made.  ẋᵀ f_xx ẋ is computed from
differences of ∂f ẋ along ẋ.  If a kernel raises, or leaves an element unwritten, the result is NaN; a pose with a NaN
residual is never assembled.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.constraints import codegen
from cardan.constraints.registry import Argument, FeatureKind, Primitive, features_of, user_primitive
from cardan.errors import ModelError

STEP = 1e-5  # of the differences that check a derivative; components of x are of order one
TOLERANCE = 1e-6  # of the largest partial derivative: largest error of a derivative
ROUNDING = 1e-15 / STEP  # of f: the rounding error of a difference quotient
SAMPLES = 5  # at which f is defined and its derivative is compared
MADE = ("complex", "differences")  # derivatives that are made of the function
DRAWS = 200  # samples drawn at most, since f may be undefined in a part of space


@dataclass(frozen=True, slots=True)
class ByHand:
    """The declaration and the functions of a primitive by hand, from which it is rebuilt."""

    name: str
    arguments: tuple[Argument, ...]
    parameters: tuple[str, ...]
    defaults: tuple[tuple[str, float], ...]
    units: tuple[Any, ...]
    rows: int
    value: Callable[..., None]
    derivative: Callable[..., None] | str

    def derivative_by(self, value: Callable[..., None]) -> Callable[..., None]:
        """df, or the function that makes it of f, compiled or not."""
        if not isinstance(self.derivative, str):
            return self.derivative
        kinds = features_of(self.arguments)
        text = codegen.differenced_module(kinds, self.rows, self.derivative == "complex")
        namespace: dict[str, Any] = {"__name__": "cardan_derivative_by_differences", "value_by_hand": value}
        exec(compile(text, "<derivative by differences>", "exec"), namespace)
        made: Callable[..., None] = namespace["derivative"]
        return made

    @staticmethod
    def rebuild(recipe: ByHand) -> Primitive:
        """The primitive of a recipe.

        It is not known whether f is invariant under translation, so points are relative to the world origin.
        """
        text = codegen.by_hand_module(features_of(recipe.arguments), len(recipe.parameters), recipe.rows)
        return user_primitive(recipe, text, recipe.rows, absolute=True, indifferent=False)

    def reduced(self, made: Primitive) -> tuple[Callable[..., Primitive], tuple[Any, ...]]:
        """The pickled form: its name in its module, or its two functions, pickled by their names."""
        where = getattr(self.value, "__module__", None), getattr(self.value, "__qualname__", "")
        try:
            if named(*where) is made:
                return named, where
        except ModelError:
            pass  # the primitive has no name in a module; its functions may have one
        try:
            pickle.dumps((self.value, self.derivative))
        except Exception as error:  # pickling can raise any exception
            raise ModelError(
                f"primitive {self.name!r} by hand cannot be pickled, because its functions cannot ({error}); declare "
                "it at the top of a module, under the name of its function"
            ) from None
        return ByHand.rebuild, (self,)


def named(module: Any, name: str) -> Primitive:
    """The primitive that a module declares under a name."""
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ModelError(
            f"primitive {name!r} by hand is pickled by its name in module {module!r}, but not found there ({error})"
        ) from None
    if not isinstance(found, Primitive):
        raise ModelError(f"{name!r} in module {module!r} is {found!r}; it must be a primitive by hand")
    return found


def primitive(
    what: str,
    name: str,
    value: Any,
    derivative: Any,
    arguments: tuple[Argument, ...],
    units: tuple[Any, ...],
    rows: Any,
    parameters: Any,
    most_rows: int,
) -> Primitive:
    """The primitive of two functions, after a check of its declaration and of its derivative."""
    if derivative is None or rows is None:
        missing = "derivative=" if derivative is None else "rows="
        raise ModelError(f"{what} by hand needs rows= and derivative=; {missing} is missing")
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= most_rows:
        raise ModelError(f"{what}: rows is {rows!r}; it must be a whole number from 1 to {most_rows}")
    if isinstance(derivative, str) and derivative not in MADE:
        raise ModelError(f"{what}: derivative is {derivative!r}; it must be a function, {' or '.join(map(repr, MADE))}")
    functions = (
        [("function", value)] if isinstance(derivative, str) else [("function", value), ("derivative", derivative)]
    )
    for which, function in functions:
        if not inspect.isfunction(getattr(function, "py_func", function)):
            raise ModelError(f"{what}: its {which} is {function!r}; it must be a plain function of x, c and out")
    names = tuple(parameters) if isinstance(parameters, list | tuple) else (None,)
    if not all(isinstance(p, str) and p.isidentifier() for p in names) or len(set(names)) != len(names):
        raise ModelError(f"{what}: parameters is {parameters!r}; it must be a list of different names")
    duplicates = [argument.name for argument in arguments if argument.name in names]
    if duplicates:
        raise ModelError(f"{what}: {duplicates[0]!r} is declared as an argument and as a parameter; rename one")
    if len(units) not in (1, rows):
        raise ModelError(f"{what} has {rows} rows but {len(units)} units; give one for all, or one for each")
    recipe = ByHand(name, arguments, names, (), units, rows, value, derivative)
    check_by_differences(what, recipe)
    return ByHand.rebuild(recipe)


def check_by_differences(what: str, recipe: ByHand) -> None:
    """Compare ∂f/∂x with central differences of f, at pseudo-random samples where f is defined."""
    kinds = features_of(recipe.arguments)
    width, rows = sum(kind.components for kind in kinds), recipe.rows
    moving = [kind is not FeatureKind.ANGLE for kind in kinds for _ in range(kind.components)]
    rng = np.random.default_rng(0)
    compared = 0
    made = recipe.derivative_by(getattr(recipe.value, "py_func", recipe.value))
    which = "derivative" if made is recipe.derivative else "function"  # which raises what is raised
    for _ in range(DRAWS):
        x = np.concatenate([_sample(kind, rng) for kind in kinds])
        c = rng.uniform(0.5, 1.5, len(recipe.parameters))
        f = _call(what, "function", recipe.value, x, c, rows)
        ends = [_call(what, "function", recipe.value, x + h, c, rows) for h in (*_steps(width), *-_steps(width))]
        if not np.isfinite([f, *ends]).all():
            continue
        differences = (np.array(ends[:width]) - np.array(ends[width:])).T / (2.0 * STEP)
        differences[:, np.logical_not(moving)] = 0.0  # the last accepted angle has no derivative
        partials = _call(what, which, made, x, c, rows * width).reshape(rows, width)
        error = np.abs(partials - differences)
        bound = TOLERANCE * np.abs(differences).max() + ROUNDING * np.abs(f).max()
        if not error.max() <= bound:  # also true for NaN
            i, j = divmod(int(np.argmax(np.where(np.isnan(error), np.inf, error))), width)
            by = "hand" if made is recipe.derivative else f"derivative={recipe.derivative!r}"
            raise ModelError(
                f"{what}: the derivative of row {i} by component {j} is {partials[i, j]:.6g} by {by}, "
                f"{differences[i, j]:.6g} by differences; they must agree (here x is {x.tolist()} and c is "
                f"{c.tolist()})"
            )
        compared += 1
        if compared == SAMPLES:
            return
    if not compared:
        raise ModelError(
            f"{what}: its function by hand gives {f.tolist()} at the last of {DRAWS} samples; it must write a finite "
            "number to every element of out, for points within ±1 m and parameters from 0.5 to 1.5"
        )


def _steps(width: int) -> NDArray[np.float64]:
    return STEP * np.eye(width)


def _sample(kind: FeatureKind, rng: np.random.Generator) -> NDArray[np.float64]:
    if kind is FeatureKind.POINT:
        return rng.uniform(-1.0, 1.0, 3)
    values = rng.normal(size=kind.components)
    return values / (1.0 if kind is FeatureKind.ANGLE else np.linalg.norm(values))


def _call(
    what: str, which: str, function: Any, x: NDArray[np.float64], c: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """The numbers that a function writes, run by Python; NaN for elements that it does not write."""
    out: NDArray[np.float64] = np.full(size, np.nan)
    given_x, given_c = x.copy(), c.copy()
    try:
        with np.errstate(all="ignore"):
            getattr(function, "py_func", function)(given_x, given_c, out)
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, ArithmeticError) or "math domain" in str(error):
            return np.full(size, np.nan)  # the compiled function gives NaN or infinity
        raise ModelError(_raised(what, which, error)) from error
    except Exception as error:  # the user's function can raise any exception
        raise ModelError(_raised(what, which, error)) from error
    if not (np.array_equal(given_x, x) and np.array_equal(given_c, c)):
        raise ModelError(f"{what}: its {which} by hand writes to x or c; it must write to out only")
    return out


def _raised(what: str, which: str, error: Exception) -> str:
    cause = traceback.format_exception_only(error)[-1].strip()[:300]
    return f"{what}: its {which} by hand raised {cause}; it is called as {which}(x, c, out), with arrays of floats"
