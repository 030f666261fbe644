"""Primitives whose kernels the user writes: f(x, c, out) and df(x, c, out), compiled by Numba and called by address.

The derivative is compared with central differences of f when the primitive is made.  ẋᵀ f_xx ẋ is taken by differences
of ∂f ẋ along ẋ.  Where a kernel writes nothing or raises, the value is NaN, and no pose with NaN counts as assembled.
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
from cardan.constraints.registry import Argument, FeatureKind, Primitive, features_of, users
from cardan.errors import ModelError

STEP = 1e-5  # of the differences that check a derivative; places are of order one
AGREES = 1e-6  # of the largest partial derivative: how near the differences must come
ROUNDING = 1e-15 / STEP  # of f: what rounding alone does to a difference
PLACES = 5  # where f is defined and compared
DRAWS = 200  # that many places are tried: f may be defined in a part of space only


@dataclass(frozen=True, slots=True)
class ByHand:
    """What a primitive with hand-written kernels is rebuilt from."""

    name: str
    arguments: tuple[Argument, ...]
    parameters: tuple[str, ...]
    defaults: tuple[tuple[str, float], ...]
    units: tuple[Any, ...]
    rows: int
    value: Callable[..., None]
    derivative: Callable[..., None]

    @staticmethod
    def rebuild(recipe: ByHand) -> Primitive:
        """The primitive of a recipe.  Only its author knows whether f is invariant under a common translation of
        all features, so points count from the world's origin."""
        text = codegen.by_hand_module(features_of(recipe.arguments), len(recipe.parameters), recipe.rows)
        return users(recipe, text, recipe.rows, absolute=True, indifferent=False)

    def reduced(self, made: Primitive) -> tuple[Callable[..., Primitive], tuple[Any, ...]]:
        """How it is pickled: by the name it has in its module, or with two functions that have one."""
        where = getattr(self.value, "__module__", None), getattr(self.value, "__qualname__", "")
        try:
            if named(*where) is made:
                return named, where
        except ModelError:
            pass  # it has no such name: its functions may have
        try:
            pickle.dumps((self.value, self.derivative))
        except Exception as error:  # what cannot be pickled raises as it likes
            raise ModelError(
                f"primitive {self.name!r} by hand cannot be pickled, because its functions cannot ({error}); declare "
                "it at the top of a module, under the name of its function"
            ) from None
        return ByHand.rebuild, (self,)


def named(module: Any, name: str) -> Primitive:
    """The primitive that a module declares by that name."""
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ModelError(
            f"primitive {name!r} by hand is known by its name in module {module!r}, and not found there ({error})"
        ) from None
    if not isinstance(found, Primitive):
        raise ModelError(f"{name!r} in module {module!r} is {found!r}; it must be a primitive by hand")
    return found


def made(
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
    """The primitive of two functions, once its declaration is checked and its derivative compared."""
    if derivative is None or rows is None:
        missing = "derivative=" if derivative is None else "rows="
        raise ModelError(f"{what} by hand needs rows= and derivative=; {missing} is missing")
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= most_rows:
        raise ModelError(f"{what}: rows is {rows!r}; it must be a whole number from 1 to {most_rows}")
    for which, function in (("function", value), ("derivative", derivative)):
        if not inspect.isfunction(getattr(function, "py_func", function)):
            raise ModelError(f"{what}: its {which} is {function!r}; it must be a plain function of x, c and out")
    names = tuple(parameters) if isinstance(parameters, list | tuple) else (None,)
    if not all(isinstance(p, str) and p.isidentifier() for p in names) or len(set(names)) != len(names):
        raise ModelError(f"{what}: parameters is {parameters!r}; it must be a list of different names")
    taken = [argument.name for argument in arguments if argument.name in names]
    if taken:
        raise ModelError(f"{what}: {taken[0]!r} is declared as an argument and as a parameter; rename one")
    if len(units) not in (1, rows):
        raise ModelError(f"{what} has {rows} rows but {len(units)} units; give one for all, or one for each")
    recipe = ByHand(name, arguments, names, (), units, rows, value, derivative)
    check_by_differences(what, recipe)
    return ByHand.rebuild(recipe)


def check_by_differences(what: str, recipe: ByHand) -> None:
    """Compare ∂f/∂x with central differences of f, at fixed random places where f is defined."""
    kinds = features_of(recipe.arguments)
    width, rows = sum(kind.components for kind in kinds), recipe.rows
    moving = [kind is not FeatureKind.ANGLE for kind in kinds for _ in range(kind.components)]
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(DRAWS):
        x = np.concatenate([_sample(kind, rng) for kind in kinds])
        c = rng.uniform(0.5, 1.5, len(recipe.parameters))
        f = _call(what, "function", recipe.value, x, c, rows)
        ends = [_call(what, "function", recipe.value, x + h, c, rows) for h in (*_steps(width), *-_steps(width))]
        if not np.isfinite([f, *ends]).all():
            continue
        differences = (np.array(ends[:width]) - np.array(ends[width:])).T / (2.0 * STEP)
        differences[:, np.logical_not(moving)] = 0.0  # the counted angle has no derivative
        partials = _call(what, "derivative", recipe.derivative, x, c, rows * width).reshape(rows, width)
        error = np.abs(partials - differences)
        bound = AGREES * np.abs(differences).max() + ROUNDING * np.abs(f).max()
        if not error.max() <= bound:  # NaN is not
            i, j = divmod(int(np.argmax(np.where(np.isnan(error), np.inf, error))), width)
            raise ModelError(
                f"{what}: the derivative of row {i} by component {j} is {partials[i, j]:.6g} by hand, "
                f"{differences[i, j]:.6g} by differences; they must agree, as where x is {x.tolist()} and c is "
                f"{c.tolist()}"
            )
        compared += 1
        if compared == PLACES:
            return
    if not compared:
        raise ModelError(
            f"{what}: its function by hand left {f.tolist()} at the last of {DRAWS} places; it must write a finite "
            "number to every place of out, for points within ±1 m and parameters from 0.5 to 1.5"
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
    """What a function writes when Python runs it, NaN where it writes nothing."""
    out: NDArray[np.float64] = np.full(size, np.nan)
    given_x, given_c = x.copy(), c.copy()
    try:
        with np.errstate(all="ignore"):
            getattr(function, "py_func", function)(given_x, given_c, out)
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, ArithmeticError) or "math domain" in str(error):
            return np.full(size, np.nan)  # compiled, it is NaN or infinite there
        raise ModelError(_raised(what, which, error)) from error
    except Exception as error:  # a user's function may raise anything
        raise ModelError(_raised(what, which, error)) from error
    if not (np.array_equal(given_x, x) and np.array_equal(given_c, c)):
        raise ModelError(f"{what}: its {which} by hand writes to x or c; it must write to out only")
    return out


def _raised(what: str, which: str, error: Exception) -> str:
    said = traceback.format_exception_only(error)[-1].strip()[:300]
    return f"{what}: its {which} by hand raised {said}; it is called as {which}(x, c, out), with arrays of floats"
