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
from cardan.solvers import abi, linear
from cardan.solvers.problem import Linear, Problem
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

FORMULATIONS = {"relative": False, "relative_euler_parameters": True}  # with Euler parameters as the paper has them
EULER_ANGULAR = 0.5  # what one scaled unknown means in Euler parameters: δp ≈ ½ δθ
LEAST_SCRATCH = 32  # floats of the work array that placing a body needs


class _Packed:
    """Tables of a system in one of the two forms: what the evaluator reads, and the solvers' structure."""

    __slots__ = ("columns", "coordinates", "floats", "ints", "linear", "powers", "structure")

    def __init__(self, system: System, euler: bool) -> None:
        from cardan.coordinates import _features
        from cardan.coordinates import _relative as kernel

        grown = tree.spanning_tree(system)
        bodies = len(system.names)
        source = system.addressed.copy()  # its records get new rows; tables of a System are never written to

        limbs: list[int] = []
        places: list[float] = []
        block: list[int] = []  # of each limb, −1 where its joint leaves nothing free
        offsets = [0]
        limits: list[int] = []
        unit_columns: list[float] = []  # scales of the unknowns, zero for a length
        norms = []
        at = 0
        unknown = 0
        start = system.floats.size
        for (body, parent, _, motion, frames, pitch, counted), reference in zip(
            grown.limbs, grown.references, strict=True
        ):
            translations, turn = motion
            seen_from = tree.GROUND if reference == tree.GROUND else grown.limbs[reference].body
            limbs += (body, parent, translations, turn, at, unknown, start, seen_from, counted)
            places += frames
            places.append(pitch)
            start += kernel.T_FLOATS_SIZE
            at += motion.coordinates()
            width = motion.unknowns(euler)
            block.append(len(limits) if width else -1)
            if width:
                normalised = euler and turn == tree.ANYHOW
                if normalised:
                    norms.append(block[-1])
                unknown += width
                offsets.append(unknown)
                limits.append(translations)
                turned = EULER_ANGULAR if normalised else 1.0
                unit_columns += [0.0] * translations + [turned] * (width - translations)
        self.coordinates = at + len(system.turns)
        first = kernel.TREE_HEADER + len(limbs)  # of the cuts
        cuts: list[int] = []
        table: list[int] = []
        powers: list[int] = []
        row = entry = longest = 0
        widths = np.diff(offsets).tolist()
        for path in grown.paths:
            rows = int(source[path.record + layout.ROWS])
            on_path = {limb: k for k, limb in enumerate(path.limbs)}
            touched = [grown.limbs[k].body for k in path.limbs]
            place_of = {body: k for k, body in enumerate(touched)}
            slots = source[path.record + layout.RECORD :][: source[path.record + layout.SLOTS]].tolist()
            entries: list[int] = []
            column = 0
            for k in path.limbs:
                limb = grown.limbs[k]
                reference = grown.references[k]
                entries += (
                    kernel.TREE_HEADER + kernel.T_RECORD * k,
                    place_of.get(limb.parent, -1),
                    on_path.get(reference, -1),
                    column,
                )
                column += widths[block[k]] if block[k] >= 0 else 0
            viewer = tree.GROUND if path.ancestor == tree.GROUND else grown.limbs[path.ancestor].body
            cuts += (path.record, len(path.limbs), entry, column, viewer)
            cuts += [place_of.get(body, -1) for body in slots] + entries
            blocks = [block[k] for k in path.limbs if block[k] >= 0]
            table += (row, rows, entry, len(blocks), *blocks)
            source[path.record + layout.ROW] = row
            powers += system.rows[path.use].primitive.powers
            row += rows
            entry += rows * column
            longest = max(longest, rows * len(path.limbs))
        header = [0] * kernel.TREE_HEADER
        header[kernel.TREE] = kernel.TREE_HEADER
        header[kernel.CUTS] = first
        header[kernel.SYSTEM] = first + len(cuts)
        header[kernel.CUT_COUNT] = len(grown.paths)
        header[kernel.EULER] = int(euler)
        header[kernel.NORMS] = row
        header[kernel.NORM_ENTRIES] = entry
        header[kernel.COORDINATE_COUNT] = at
        poses = layout.POSE * bodies + len(system.turns)
        header[kernel.FRAMES] = poses
        header[kernel.NEW] = header[kernel.FRAMES] + kernel.FRAME * bodies
        header[kernel.WRENCHES] = header[kernel.NEW] + poses
        header[kernel.WORLD] = header[kernel.WRENCHES] + kernel.WRENCH * longest + LEAST_SCRATCH
        header[kernel.OWN] = header[kernel.WORLD] + int(source[layout.WIDEST])
        self.ints: IntArray = np.concatenate([np.array(header + limbs + cuts, dtype=np.int64), source])
        self.floats: FloatArray = np.concatenate([system.floats, places])
        for k in norms:
            table += (row, 1, entry, 1, k)
            powers.append(0)
            row += 1
            entry += widths[k]
        self.powers = np.array(powers, dtype=np.int64)
        self.columns = np.array(unit_columns)
        start = abi.HEADER + len(table)
        structure: IntArray = np.zeros(start + 2 * len(limits) + 1, dtype=np.int64)
        structure[abi.HEADER : start] = table
        structure[start : start + len(offsets)] = offsets
        structure[start + len(offsets) :] = limits
        structure[abi.ROWS] = row
        structure[abi.UNKNOWNS] = offsets[-1]
        structure[abi.CONSTRAINTS] = len(grown.paths) + len(norms)
        structure[abi.BLOCKS] = len(limits)
        structure[abi.JACOBIAN_SIZE] = entry
        structure[abi.COORDINATES] = self.coordinates
        structure[abi.OFFSETS] = start
        structure[abi.WORK] = header[kernel.OWN] + _features.work_size(source)
        structure[abi.LIMITS] = start + len(offsets)
        self.structure = structure
        self.linear: Linear = linear.path_algebra(structure)


def _packed(system: System, formulation: str) -> _Packed:
    found: _Packed = system.cached((formulation, "packed"), lambda: _Packed(system, FORMULATIONS[formulation]))
    return found


def problem(system: System, formulation: str, length: float) -> Problem:
    """What a solver needs; lengths, in residuals and in unknowns, are measured in ``length``."""
    from cardan.coordinates import _relative as kernel

    p = _packed(system, formulation)
    rows = np.array([1.0, 1.0 / length, 1.0 / (length * length)])[p.powers]
    columns = np.where(p.columns > 0.0, p.columns, length)
    return Problem(kernel.EVALUATE, p.ints, p.floats, p.structure, np.concatenate([rows, columns]), p.linear)


def enter(system: System, formulation: str, q: FloatArray) -> FloatArray:
    """Joint coordinates of the poses q (solver coordinates, flat): body by body from the root, each as near to its pose
    as its joint lets it be."""
    from cardan.coordinates import _relative as kernel

    out: FloatArray = np.empty(_packed(system, formulation).coordinates)
    _call(system, formulation, kernel.ENTER, q, out)
    return out


def leave(system: System, formulation: str, x: FloatArray, q: FloatArray) -> None:
    """q ← poses (solver coordinates, flat) of the joint coordinates x."""
    from cardan.coordinates import _relative as kernel

    _call(system, formulation, kernel.LEAVE, x, q)


_EMPTY: FloatArray = np.empty(0)


def _call(system: System, formulation: str, op: int, given: FloatArray, out: FloatArray) -> None:
    from cardan.coordinates import _relative as kernel
    from cardan.solvers import _blocks

    p = _packed(system, formulation)
    work = np.empty(int(p.structure[abi.WORK]))
    _blocks.call_at(kernel.EVALUATE, op, p.ints, p.floats, given, _EMPTY, out, _EMPTY, work)
