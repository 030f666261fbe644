"""OndselSolver, the engine of FreeCAD's assemblies, by pyondsel: parts, markers and joints, one frame at time zero.

Timed: ``solve_asmt_raw``, text in and text out, in a separate process that is reused between starts, because the solver
may crash; a new process for each solve costs about 40 ms more.  Not timed: writing and reading the text.  Its tolerance
cannot be set.  Rods of fixed length are not implemented.  Chains are omitted: 300 links are not assembled after 13 s.
"""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np

from peers import Answer, across
from peers import version as _version
from problems import Model, Pose

name = "OndselSolver"
tolerance = "fixed"
problems = ("RSUR", "Stewart UPS", "planar 4R")

KINDS = {"prismatic": "translational", "revolute": "revolute", "spherical": "spherical", "universal": "universal"}

_pool: ProcessPoolExecutor | None = None


def available() -> str | None:
    return _version("pyondsel", "pyondsel")


def _numbers(values) -> tuple[float, ...]:
    return tuple(map(float, values))


def _text(model: Model, start: dict[int, Pose]) -> str:
    from pyondsel.model.asmt_model import AsmtModel
    from pyondsel.model.joint import Joint
    from pyondsel.model.marker import Marker
    from pyondsel.model.part import Part
    from pyondsel.model.simulation import Simulation

    made = AsmtModel(name="Model")
    parts = {
        body: made.add_part(Part(f"{body}", position=_numbers(p), rotation=tuple(map(_numbers, R))))
        for body, (R, p) in start.items()
    }

    def marker(body: int, label: str, at: np.ndarray, axes: np.ndarray) -> str:
        new = Marker(label, position=_numbers(at), rotation=tuple(map(_numbers, axes)))
        if body == 0:
            made.add_ground_marker(new)
            return made.ground_path(label)
        parts[body].add_marker(new)
        return made.part_path(f"{body}", label)

    def axes(axis: np.ndarray | None) -> np.ndarray:
        return np.eye(3) if axis is None else np.column_stack([*across(axis), axis])

    for k, c in enumerate(model.joints):
        axes_i = axes(c.axis_i)
        axes_j = c.rotation.T @ axes_i if c.kind == "prismatic" else axes(c.axis_j)
        ends = marker(c.i, f"i{k}", c.point_i, axes_i), marker(c.j, f"j{k}", c.point_j, axes_j)
        made.add_joint(Joint(f"joint{k}", KINDS[c.kind], *ends))
    made.simulation = Simulation(t_start=0.0, t_end=0.0, frames=1)
    return made.to_asmt()


def _solve(text: str) -> tuple[str, float]:
    from pyondsel.solve_raw import solve_asmt_raw

    began = time.perf_counter()
    found = solve_asmt_raw(text)
    return found, time.perf_counter() - began


def assemble(model: Model, start: dict[int, Pose]) -> Answer:
    from pyondsel.asmt_solver import AsmtSolver, rotation_matrix

    global _pool  # noqa: PLW0603  # the process is reused between starts
    if _pool is None:
        _pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    try:
        text, seconds = _pool.submit(_solve, _text(model, start)).result()
    except BrokenProcessPool:
        _pool = None
        raise RuntimeError("OndselSolver crashed") from None
    parts = AsmtSolver()._parse(text).parts
    poses = {
        int(path.rsplit("/", 1)[1]): (np.array(rotation_matrix(part.bryant_angles[-1])), np.array(part.positions[-1]))
        for path, part in parts.items()
    }
    return Answer(poses, seconds)
