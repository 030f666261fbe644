"""The relative formulation: unknowns are the coordinates of the joints in a spanning tree.

``relative`` rotates bodies on the manifold, mostly relative to the ground; ``relative_euler_parameters`` is the paper's
form, with Euler parameters and a normalisation row in every ball joint, and changes of the coordinates as unknowns.
``relative_virtual_rotation`` is the same with virtual rotations in the ball joints, to be compared with it.
All have the same coordinates: per joint the translations [m], then angles [rad] or four Euler parameters; behind them,
as behind poses, the counted angles of the system.
See :mod:`cardan.coordinates._tree_poses` and :mod:`cardan.coordinates._relative` for the equations,
:mod:`cardan.coordinates.tree` for the tree.  [Liu2013] 2.2
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.constraints import kernels
from cardan.coordinates import tree
from cardan.coordinates.tables import JointFrame, Limb, LimbFloats, MotionScratch, Scratch, TreeTable, TreeWork, Wrench
from cardan.coordinates.tree import GROUND, Path, Tree
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.solvers import linear
from cardan.solvers.problem import Algebra, Problem
from cardan.solvers.tables import ENTER, LEAVE, Structure
from cardan.system import reading
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System
from cardan.system.tables import SystemTable

_blocks = LazyModule("cardan.solvers._blocks")
_records = LazyModule("cardan.coordinates._records")
_relative = LazyModule("cardan.coordinates._relative")

# the values of EULER in the tables: 0, or as the paper has them
FORMULATIONS = {"relative": 0, "relative_euler_parameters": 1, "relative_virtual_rotation": 2}
CHECKS = 3  # poses at which a motion of the user's own is compared with its equations
SATISFIED = 1e-9  # [m, rad] there
EULER_ANGULAR = 0.5  # what one scaled unknown means in Euler parameters: δp ≈ ½ δθ


_EMPTY: FloatArray = np.empty(0)


class _Limbs:
    """The tree as the evaluator reads it, and which unknowns its joints have."""

    def __init__(self, grown: Tree, euler: int, first_float: int, length: float) -> None:
        """length: [m] by which the distance of two poses is measured, where motions of the user's own are fitted."""
        count = len(grown.bodies)
        translations, rotation = np.array(grown.motions, dtype=np.int64).reshape(count, 2).T
        coordinates = translations + np.array([0, 1, 2, 4, 0])[rotation]
        widths = translations + np.array([0, 1, 2, 4 if euler else 3, 0])[rotation]
        lengths = translations.copy()  # unknowns that are lengths
        for k, (limb, _) in grown.user_motions.items():
            lengths[k] = limb.motion.lengths
        free = widths > 0
        self.has_user_motions = bool(grown.user_motions)
        self.widths: list[int] = widths.tolist()  # unknowns of each limb
        self.blocks: list[int] = np.where(free, np.cumsum(free) - 1, -1).tolist()  # −1: its joint leaves nothing free
        self.offsets = np.concatenate([[0], np.cumsum(widths[free])])  # first unknown of each block, and their number
        self.rotations = lengths[free]  # of each block, the first unknown that is a rotation
        self.coordinates = int(coordinates.sum())
        normalised = (rotation == layout.ANYHOW) & bool(euler)
        self.norms = np.flatnonzero(normalised[free])  # blocks with a normalisation row
        # Of every unknown: zero for a length, else what one scaled unknown means.
        inside = np.arange(widths.sum()) - np.repeat(np.cumsum(widths) - widths, widths)
        angular = np.repeat(np.where(normalised, EULER_ANGULAR, 1.0), widths)
        self.scales: FloatArray = np.where(inside < np.repeat(lengths, widths), 0.0, angular)
        bodies = np.array([*grown.bodies, GROUND], dtype=np.int64)
        columns = (
            bodies[:-1],
            grown.parents,
            translations,
            rotation,
            np.cumsum(coordinates) - coordinates,
            np.cumsum(widths) - widths,
            first_float + LimbFloats.size * np.arange(count),
            bodies[grown.references],
            grown.counted,
            *self._own_motions(grown, first_float + LimbFloats.size * count, length),
        )
        self.ints = np.column_stack(columns).ravel()
        self.floats = np.concatenate([np.hstack([grown.frames, grown.pitch[:, None]]).ravel(), self._own_floats])

    def _own_motions(self, grown: Tree, first_float: int, length: float) -> tuple[list[int], list[int]]:
        """Of each limb, the address of the kernel of a motion of the user's own and where its floats begin."""
        addresses, starts = [0] * len(grown.bodies), [0] * len(grown.bodies)
        floats: list[float] = []
        for k, (limb, reverse) in grown.user_motions.items():
            addresses[k], starts[k] = kernels.address(limb.motion.kernel(reverse)), first_float + len(floats)
            floats += [1.0 / length, *(x for one in limb.search for x in one), *limb.numbers]
        self._own_floats = np.array([*floats, 0.0] if floats else [], dtype=float)  # a motion may have no numbers
        return addresses, starts


class _Cuts:
    """The constraints that are left: as the evaluator reads them, and as rows of the solvers' structure table."""

    def __init__(self, grown: Tree, euler: int, limbs: _Limbs, system: System, table: IntArray) -> None:
        """table: the integers of the system, whose records get new rows."""
        self.ints: list[int] = []
        self.structure: list[int] = []
        self.powers: list[int] = []  # of length, per row
        self.entries = 0  # of the Jacobian
        self.longest = 0  # rows × limbs of a constraint, at the most
        self.count = len(grown.paths)
        bodies, parents, references = grown.bodies, grown.parents, grown.references
        header, size = TreeTable.size, Limb.size
        paths = [_from_ground(grown, path) for path in grown.paths] if euler else grown.paths
        for relation, record, path, ancestor in paths:
            slots = reading.bodies(table, record).tolist()
            rows = system.primitives[relation].rows
            places = {k: place for place, k in enumerate(path)}
            by_body = {bodies[k]: place for place, k in enumerate(path)}
            way: list[int] = []
            column = 0
            for k in path:
                way += (header + size * k, by_body.get(parents[k], -1), places.get(references[k], -1), column)
                column += limbs.widths[k]
            self.ints += (record, len(path), self.entries, column, GROUND if ancestor == GROUND else bodies[ancestor])
            self.ints += [by_body.get(body, -1) for body in slots] + way
            touched = [limbs.blocks[k] for k in path if limbs.blocks[k] >= 0]
            self.structure += (len(self.powers), rows, self.entries, len(touched), *touched)
            table[record + layout.ROW] = len(self.powers)
            self.powers += system.primitives[relation].powers
            self.entries += rows * column
            self.longest = max(self.longest, rows * len(path))


def _from_ground(grown: Tree, path: Path) -> Path:
    """The path from the ground, if a ball joint is above its ancestor.

    Euler parameters off the unit sphere dilate all that the joint carries.  The paper's (20) has this derivative; seen
    from the ancestor it is not there.
    """
    limbs = {body: k for k, body in enumerate(grown.bodies)}
    above, k = [], path.ancestor
    while k != GROUND:
        above.append(k)
        k = limbs.get(grown.parents[k], GROUND)
    if not any(grown.motions[k].rotation == layout.ANYHOW for k in above):
        return path
    return path._replace(limbs=sorted([*above, *path.limbs]), ancestor=GROUND)


class _Packed:
    """Tables of a system in one of the two forms: what the evaluator reads, and the solvers' structure."""

    __slots__ = ("algebra", "floats", "ints", "powers", "scales", "structure")

    def __init__(self, system: System, euler: int) -> None:
        grown = tree.spanning_tree(system)
        table = system.addressed.copy()
        limbs = _Limbs(grown, euler, system.floats.size, system.length or 1.0)
        cuts = _Cuts(grown, euler, limbs, system, table)
        header = self._header(system, euler, limbs, cuts)
        parts = (header.as_ints, limbs.ints, cuts.ints, table)
        self.ints: IntArray = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        self.floats: FloatArray = np.concatenate([system.floats, limbs.floats])
        self.powers: IntArray = np.array(cuts.powers + [0] * len(limbs.norms), dtype=np.int64)
        self.scales = limbs.scales
        self.structure = self._structure(limbs, cuts)
        Structure(self.structure).coordinates = limbs.coordinates + len(system.counted_angles)
        Structure(self.structure).work = header.pieces[-1]
        self.algebra: Algebra = linear.path_algebra(self.structure)
        if grown.user_motions:
            self._check_own(system, grown)

    def _check_own(self, system: System, grown: Tree) -> None:
        """ModelError if a motion of the user's own does not satisfy the equations that it replaces."""
        from cardan.coordinates import formulations

        rng = np.random.default_rng(0)
        residual = formulations.problem(system, "manifold").residual
        out: FloatArray = np.empty(layout.POSE * len(system.names) + len(system.counted_angles))
        work: FloatArray = np.empty(int(Structure(self.structure).work))
        for _ in range(CHECKS):
            x: list[float] = []
            for k, motion in enumerate(grown.motions):
                drawn = [0.0] * motion.coordinates()
                if motion.rotation == layout.ANYHOW:
                    drawn[motion.translations] = 1.0
                if k in grown.user_motions:
                    limb = grown.user_motions[k][0]
                    reach = [system.length or 1.0] * limb.motion.lengths + [2.0] * len(limb.search)
                    spans = [(low, high) if high > low else (-r, r)
                             for (low, high, _), r in zip(limb.search, reach, strict=False)]  # fmt: skip
                    drawn = [0.5 * (a + b) + rng.uniform(-1, 1) * min(0.5 * (b - a), r)
                             for (a, b), r in zip(spans, reach, strict=False)]  # fmt: skip
                x += drawn
            given = np.array(x + [0.0] * len(system.counted_angles))
            _blocks.call_at(_relative.EVALUATE, LEAVE, self.ints, self.floats, given, _EMPTY, out, _EMPTY, work)
            found = residual(formulations.with_angles_of_poses(system, out))
            at = 0
            for row in system.rows:
                f = found[at : at + row.primitive.rows]
                at += row.primitive.rows
                motion_names = {grown.names[k]: grown.user_motions[k][0].motion.name for k in grown.user_motions}
                if row.constraint in motion_names and not (np.abs(f) <= SATISFIED * max(1.0, system.length)).all():
                    raise ModelError(
                        f"constraint {row.constraint!r}: the motion {motion_names[row.constraint]!r} does not satisfy "
                        f"the equations of {row.primitive.name!r}: at some coordinates they are "
                        f"{np.round(f, 9).tolist()}; they must be zero at all"
                    )

    @staticmethod
    def _header(system: System, euler: int, limbs: _Limbs, cuts: _Cuts) -> Any:
        """Where the tables begin, and the one plan of the evaluator's workspace."""
        bodies = len(system.names)
        poses = layout.POSE * bodies + len(system.counted_angles)
        header = TreeTable.new(cut_count=cuts.count, euler=euler, coordinates=limbs.coordinates)
        header.limbs = TreeTable.size
        header.cuts = TreeTable.size + limbs.ints.size
        header.system = TreeTable.size + limbs.ints.size + len(cuts.ints)
        header.norms, header.norm_entries = len(cuts.powers), cuts.entries
        header.pieces = TreeWork.plan(
            poses=poses,
            frames=JointFrame.size * bodies,
            new=poses,
            wrenches=Wrench.size * cuts.longest,
            scratch=(MotionScratch if limbs.has_user_motions else Scratch).size,
            world=int(SystemTable(system.ints).widest),
            shared=int(_records.plan_workspace(SystemTable(system.ints)).size),
        )
        return header

    @staticmethod
    def _structure(limbs: _Limbs, cuts: _Cuts) -> IntArray:
        """The solvers' table: cut constraints, then normalisations; blocks are the joints that leave something free."""
        rows, entries = len(cuts.powers), cuts.entries
        table = list(cuts.structure)
        for block in limbs.norms.tolist():
            table += (rows, 1, entries, 1, block)
            rows += 1
            entries += int(limbs.offsets[block + 1] - limbs.offsets[block])
        parts = ([0] * Structure.size, table, limbs.offsets, limbs.rotations)
        ints: IntArray = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        out = Structure(ints)
        out.rows = rows
        out.unknowns = limbs.offsets[-1]
        out.constraints = cuts.count + limbs.norms.size
        out.blocks = limbs.rotations.size
        out.jacobian_size = entries
        out.offsets = Structure.size + len(table)
        out.rotations = Structure.size + len(table) + limbs.offsets.size
        return ints


def _packed(system: System, formulation: str) -> _Packed:
    return system.cached((formulation, "packed"), lambda: _Packed(system, FORMULATIONS[formulation]))


def problem(system: System, formulation: str, length: float) -> Problem:
    """What a solver needs; lengths, in residuals and in unknowns, are measured in ``length``."""
    p = _packed(system, formulation)
    rows = np.array([1.0, 1.0 / length, 1.0 / (length * length)])[p.powers]
    columns = np.where(p.scales > 0.0, p.scales, length)
    return Problem(_relative.EVALUATE, p.ints, p.floats, p.structure, np.concatenate([rows, columns]), p.algebra)


def enter(system: System, formulation: str, q: FloatArray) -> FloatArray:
    """Joint coordinates of the poses q (solver coordinates, flat): body by body from the root, each as near to its pose
    as its joint lets it be."""
    out: FloatArray = np.empty(int(Structure(_packed(system, formulation).structure).coordinates))
    _call(system, formulation, ENTER, q, out)
    return out


def leave(system: System, formulation: str, x: FloatArray, q: FloatArray) -> None:
    """q ← poses (solver coordinates, flat) of the joint coordinates x."""
    _call(system, formulation, LEAVE, x, q)


def _call(system: System, formulation: str, op: int, given: FloatArray, out: FloatArray) -> None:
    p = _packed(system, formulation)
    work = np.empty(int(Structure(p.structure).work))
    _blocks.call_at(_relative.EVALUATE, op, p.ints, p.floats, given, _EMPTY, out, _EMPTY, work)
