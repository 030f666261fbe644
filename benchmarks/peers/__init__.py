"""Other programs on the same problems: one module each, imported only when asked for.

A module here has ``name`` and ``tolerance`` for the tables, ``problems`` (names of the problems of ``run.py`` that
the program can state), ``available() -> version | None``, and ``assemble(model, start) -> Answer``.  Whether an
answer is right is not its business: the judge of ``problems.py`` decides on the poses.  ``stepper(model)``, where
there is one, returns a function that makes one step of the program's own and a function that returns the poses.
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

MODULES = (
    "cadquery",
    "casadi",
    "casadi_newton",
    "drake",
    "exudyn",
    "mujoco",
    "pinocchio",
    "pyondsel",
    "slvs",
)

SMALL = ("RSUR", "Stewart 6-distance", "Stewart UPS", "planar 4R")
CHAINS = ("chain 1000, bad", "chain 1000, uniform")


@dataclass(frozen=True, slots=True)
class Answer:
    """Poses, and the seconds of the solve alone."""

    poses: dict[int, Pose]
    seconds: float


def load(key: str) -> ModuleType:
    return import_module(f"peers.{key}")


def version(distribution: str, module: str) -> str | None:
    """The installed version, or None; nothing heavy is imported for the answer."""
    try:
        found = util.find_spec(module)
        return metadata.version(distribution).removeprefix("v") if found else None
    except (ImportError, ValueError, metadata.PackageNotFoundError):
        return None


def once_per_model(build: Callable[[Model], T]) -> Callable[[Model], T]:
    """Remember what was built for the last model: building is not timed, but it need not be waited for either."""
    last: list[tuple[Model, T]] = []

    @wraps(build)
    def remembered(model: Model) -> T:
        if not last or last[0][0] is not model:
            last[:] = [(model, build(model))]
        return last[0][1]

    return remembered


def across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors at right angles to an axis and to each other."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(axis, other)
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def coordinates(start: dict[int, Pose]) -> np.ndarray:
    """Position and quaternion (w, x, y, z) of bodies 1, 2, …, shape (7 · bodies,)."""
    return np.concatenate([[*p, *quaternion(R)] for _, (R, p) in sorted(start.items())])
