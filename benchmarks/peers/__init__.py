"""Other programs on the same problems: one module each, imported on demand.

A module here has ``name`` and ``tolerance`` for the tables, ``problems`` (names of the problems of ``run.py`` that the
program supports), ``available() -> version | None``, and ``assemble(model, start) -> Answer``.  It does not check the
answer: the judge of ``problems.py`` checks the poses.  The optional ``stepper(model)`` returns a function that makes
one step of the program and a function that returns the poses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module, metadata, util
from types import ModuleType
from typing import TypeVar

import numpy as np

from problems import Model, Pose, quaternion

T = TypeVar("T")

MODULES = ("cadquery", "casadi", "casadi_newton", "drake", "exudyn", "mujoco", "pinocchio", "pyondsel", "slvs")

SMALL = ("RSUR", "Stewart 6-distance", "Stewart UPS", "planar 4R")
CHAINS = ("chain 1000, bad", "chain 1000, uniform")


@dataclass(frozen=True, slots=True)
class Answer:
    """Poses, and the time of the solve only [s]."""

    poses: dict[int, Pose]
    seconds: float


def load(key: str) -> ModuleType:
    return import_module(f"peers.{key}")


def version(distribution: str, module: str) -> str | None:
    """The installed version, or None; does not import the program."""
    try:
        found = util.find_spec(module)
        return metadata.version(distribution).removeprefix("v") if found else None
    except (ImportError, ValueError, metadata.PackageNotFoundError):
        return None


def once_per_model(build: Callable[[Model], T]) -> Callable[[Model], T]:
    """Cache the result of ``build`` for the last model; building is not timed."""
    last: list[tuple[Model, T]] = []

    @wraps(build)
    def remembered(model: Model) -> T:
        if not last or last[0][0] is not model:
            last[:] = [(model, build(model))]
        return last[0][1]

    return remembered


def across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors perpendicular to an axis and to each other."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(axis, other)
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def coordinates(start: dict[int, Pose]) -> np.ndarray:
    """Position and quaternion (w, x, y, z) of bodies 1, 2, …, shape (7 · bodies,)."""
    return np.concatenate([[*p, *quaternion(R)] for _, (R, p) in sorted(start.items())])
