"""The relative formulation: unknowns are the coordinates of the joints in a spanning tree.

``relative`` turns bodies on the manifold and measures their turns from the ground; ``relative_euler_parameters`` is the
paper's form, with Euler parameters and a normalisation row in every ball joint, and changes of the coordinates as
unknowns.  Both have the same coordinates: per joint the translations [m], then angles [rad] or four Euler parameters;
behind them, as behind poses, the angles of the system's turns.
See :mod:`cardan.coordinates._relative` for the equations, :mod:`cardan.coordinates.tree` for the tree.  [Liu2013] 2.2
"""

from __future__ import annotations

import numpy as np

from cardan.coordinates import tree
from cardan.coordinates.tree import ANYHOW, GROUND, Tree
from cardan.lazy import LazyModule
from cardan.solvers import abi, linear
from cardan.solvers.problem import Linear, Problem
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_blocks = LazyModule("cardan.solvers._blocks")
_features = LazyModule("cardan.coordinates._features")
_relative = LazyModule("cardan.coordinates._relative")

FORMULATIONS = {"relative": False, "relative_euler_parameters": True}  # with Euler parameters as the paper has them
EULER_ANGULAR = 0.5  # what one scaled unknown means in Euler parameters: δp ≈ ½ δθ


class _Limbs:
    """The tree as the evaluator reads it, and which unknowns its joints have."""

    def __init__(self, grown: Tree, euler: bool, first_float: int) -> None:
        self.ints: list[int] = []
        self.floats: list[float] = []
        self.blocks: list[int] = []  # of unknowns, for each limb; −1 where its joint leaves nothing free
        self.offsets = [0]  # first unknown of each block, and their number
        self.limits: list[int] = []  # of each block, the first unknown that is a turn
        self.scales: list[float] = []  # of the unknowns, zero for a length
        self.norms: list[int] = []  # blocks with a normalisation row
        self.coordinates = 0
        unknowns = 0
        for limb, reference in zip(grown.limbs, grown.references, strict=True):
            body, parent, _, motion, frames, pitch, counted = limb
            translations, turn = motion
            seen_from = GROUND if reference == GROUND else grown.limbs[reference].body
            place = first_float + len(self.floats)
            self.ints += (body, parent, translations, turn, self.coordinates, unknowns, place, seen_from, counted)
            self.floats += frames
            self.floats.append(pitch)
            self.coordinates += motion.coordinates()
            width = motion.unknowns(euler)
            self.blocks.append(len(self.limits) if width else -1)
            if not width:
                continue
            normalised = euler and turn == ANYHOW
            if normalised:
                self.norms.append(self.blocks[-1])
            unknowns += width
            self.offsets.append(unknowns)
            self.limits.append(translations)
            self.scales += [0.0] * translations + [EULER_ANGULAR if normalised else 1.0] * (width - translations)


class _Cuts:
    """The constraints that are left: as the evaluator reads them, and as rows of the solvers' structure table."""

    def __init__(self, grown: Tree, limbs: _Limbs, system: System, table: IntArray) -> None:
        """table: the integers of the system, whose records get new rows."""
        self.ints: list[int] = []
        self.structure: list[int] = []
        self.powers: list[int] = []  # of length, per row
        self.entries = 0  # of the Jacobian
        self.longest = 0  # rows × limbs of a constraint, at the most
        self.count = len(grown.paths)
        widths = [*np.diff(limbs.offsets).tolist(), 0]  # the last for joints that leave nothing free
        for use, record, path, ancestor in grown.paths:
            first = record + layout.RECORD
            slots = table[first : first + table[record + layout.SLOTS]].tolist()
            rows = int(table[record + layout.ROWS])
            places = {k: place for place, k in enumerate(path)}
            by_body = {grown.limbs[k].body: place for place, k in enumerate(path)}
            way: list[int] = []
            column = 0
            for k in path:
                at = _relative.TREE_HEADER + _relative.T_RECORD * k
                way += (at, by_body.get(grown.limbs[k].parent, -1), places.get(grown.references[k], -1), column)
                column += widths[limbs.blocks[k]]
            viewer = GROUND if ancestor == GROUND else grown.limbs[ancestor].body
            self.ints += (record, len(path), self.entries, column, viewer)
            self.ints += [by_body.get(body, -1) for body in slots] + way
            touched = [limbs.blocks[k] for k in path if limbs.blocks[k] >= 0]
            self.structure += (len(self.powers), rows, self.entries, len(touched), *touched)
            table[record + layout.ROW] = len(self.powers)
            self.powers += system.rows[use].primitive.powers
            self.entries += rows * column
            self.longest = max(self.longest, rows * len(path))


class _Packed:
    """Tables of a system in one of the two forms: what the evaluator reads, and the solvers' structure."""

    __slots__ = ("floats", "ints", "linear", "powers", "scales", "structure")

    def __init__(self, system: System, euler: bool) -> None:
        grown = tree.spanning_tree(system)
        table = system.addressed.copy()
        limbs = _Limbs(grown, euler, system.floats.size)
        cuts = _Cuts(grown, limbs, system, table)
        header = self._header(system, euler, limbs, cuts)
        self.ints: IntArray = np.concatenate([np.array(header + limbs.ints + cuts.ints, dtype=np.int64), table])
        self.floats: FloatArray = np.concatenate([system.floats, limbs.floats])
        self.powers: IntArray = np.array(cuts.powers + [0] * len(limbs.norms), dtype=np.int64)
        self.scales: FloatArray = np.array(limbs.scales)
        self.structure = self._structure(grown, limbs, cuts)
        self.structure[abi.COORDINATES] = limbs.coordinates + len(system.turns)
        self.structure[abi.WORK] = header[_relative.OWN] + _features.work_size(table)
        self.linear: Linear = linear.path_algebra(self.structure)

    @staticmethod
    def _header(system: System, euler: bool, limbs: _Limbs, cuts: _Cuts) -> list[int]:
        """Where the tables begin, and the parts of the evaluator's work array."""
        k = _relative
        bodies = len(system.names)
        poses = layout.POSE * bodies + len(system.turns)
        header = [0] * k.TREE_HEADER
        header[k.TREE] = k.TREE_HEADER
        header[k.CUTS] = k.TREE_HEADER + len(limbs.ints)
        header[k.SYSTEM] = header[k.CUTS] + len(cuts.ints)
        header[k.CUT_COUNT] = cuts.count
        header[k.EULER] = int(euler)
        header[k.NORMS] = len(cuts.powers)
        header[k.NORM_ENTRIES] = cuts.entries
        header[k.COORDINATE_COUNT] = limbs.coordinates
        header[k.FRAMES] = poses
        header[k.NEW] = header[k.FRAMES] + k.FRAME * bodies
        header[k.WRENCHES] = header[k.NEW] + poses
        header[k.WORLD] = header[k.WRENCHES] + k.WRENCH * cuts.longest + k.SCRATCH
        header[k.OWN] = header[k.WORLD] + int(system.ints[layout.WIDEST])
        return header

    @staticmethod
    def _structure(grown: Tree, limbs: _Limbs, cuts: _Cuts) -> IntArray:
        """The solvers' table: cut constraints, then normalisations; blocks are the joints that leave something free."""
        widths = np.diff(limbs.offsets).tolist()
        rows, entries = len(cuts.powers), cuts.entries
        table = list(cuts.structure)
        for block in limbs.norms:
            table += (rows, 1, entries, 1, block)
            rows += 1
            entries += widths[block]
        offsets = abi.HEADER + len(table)
        limits = offsets + len(limbs.offsets)
        out: IntArray = np.array([0] * abi.HEADER + table + limbs.offsets + limbs.limits, dtype=np.int64)
        out[abi.ROWS] = rows
        out[abi.UNKNOWNS] = limbs.offsets[-1]
        out[abi.CONSTRAINTS] = len(grown.paths) + len(limbs.norms)
        out[abi.BLOCKS] = len(limbs.limits)
        out[abi.JACOBIAN_SIZE] = entries
        out[abi.OFFSETS] = offsets
        out[abi.LIMITS] = limits
        return out


def _packed(system: System, formulation: str) -> _Packed:
    found: _Packed = system.cached((formulation, "packed"), lambda: _Packed(system, FORMULATIONS[formulation]))
    return found


def problem(system: System, formulation: str, length: float) -> Problem:
    """What a solver needs; lengths, in residuals and in unknowns, are measured in ``length``."""
    p = _packed(system, formulation)
    rows = np.array([1.0, 1.0 / length, 1.0 / (length * length)])[p.powers]
    columns = np.where(p.scales > 0.0, p.scales, length)
    return Problem(_relative.EVALUATE, p.ints, p.floats, p.structure, np.concatenate([rows, columns]), p.linear)


def enter(system: System, formulation: str, q: FloatArray) -> FloatArray:
    """Joint coordinates of the poses q (solver coordinates, flat): body by body from the root, each as near to its pose
    as its joint lets it be."""
    out: FloatArray = np.empty(int(_packed(system, formulation).structure[abi.COORDINATES]))
    _call(system, formulation, _relative.ENTER, q, out)
    return out


def leave(system: System, formulation: str, x: FloatArray, q: FloatArray) -> None:
    """q ← poses (solver coordinates, flat) of the joint coordinates x."""
    _call(system, formulation, _relative.LEAVE, x, q)


_EMPTY: FloatArray = np.empty(0)


def _call(system: System, formulation: str, op: int, given: FloatArray, out: FloatArray) -> None:
    p = _packed(system, formulation)
    work = np.empty(int(p.structure[abi.WORK]))
    _blocks.call_at(_relative.EVALUATE, op, p.ints, p.floats, given, _EMPTY, out, _EMPTY, work)
