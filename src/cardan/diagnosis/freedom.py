"""Degrees of freedom from the rank of the Jacobian, and redundant equations.

The Jacobian of each connected piece is that on the manifold, without guard rows.  Lengths are in units of the piece's
own L, so that lengths and angles are comparable.  Long rows (of gears with large ratios) are shortened, so that other
rows do not look small beside them.  rank J = number of singular values above RANK_RTOL·σ_max; redundant equations =
equations − rank; freedoms of first order = 6·bodies − rank.  Those that second order excludes are no motions: dof =
freedoms of first order − infinitesimal.  The gap between the last counted and the first dropped singular value shows
how reliable the answer is.

The rank follows the tolerance τ.  A motion of size h along a singular vector n changes the residuals by h σ and ½ h² κ,
where κ is the part of H(n, n) that no other motion corrects (:mod:`cardan.diagnosis.second_order`).  If both are within
τ for h = REACH, the constraints cannot be told from constraints that allow the motion, and σ counts as zero.  So data
that are rounded in a file have the freedoms of the exact data, if τ is not less than the misfit.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cardan.calls import explains
from cardan.coordinates import formulations, verdict
from cardan.coordinates.rate_rows import RateRows
from cardan.diagnosis import elimination, second_order
from cardan.diagnosis.causes import rings
from cardan.diagnosis.motions import FreeMotion, describe, describe_free
from cardan.diagnosis.second_order import RANK_RTOL, Curvature, Linearised
from cardan.errors import ModelError
from cardan.math import euler
from cardan.solvers.problem import Problem
from cardan.system import check
from cardan.system.html import as_html
from cardan.system.residuals import Violation, accepting_tolerance, violations
from cardan.system.saving import Saved
from cardan.system.state import FloatArray, State
from cardan.system.system import System

log = logging.getLogger("cardan")

UNSURE_GAP = 1e3  # with a smaller gap the answer is uncertain
# At a dead point residuals of 1e-12 leave errors of their square root in the pose, and in the singular value that is
# zero there.  So the answer is uncertain too if a counted value is below this fraction of the largest.
NEARLY_SINGULAR = 1e-5
REACH = 0.2  # [rad] and in L: a motion that changes the residuals by less than the tolerance over this size is free
TOLERANCE_GAP = 10.0  # the same as UNSURE_GAP if a value counts as zero because of the tolerance
CLOSED = 0.5  # share of the residual that no small motion reduces, if the constraints do not fit exactly
NEARLY_CLOSED = 1e-2  # largest residual of a pose of which the report says that it nearly closes
DENSE_UNKNOWNS = 600  # up to this the dense matrix is decomposed; above, body by body
ROUNDED = 1e-11  # of the largest: a zero value at a pose met to 1e-12 is below; a larger dropped value is uncertain
MOTIONS_TOLD = 6  # in a text


class Equation(NamedTuple):
    """One scalar equation: its constraint, the primitive, and the number of its row."""

    constraint: str
    primitive: str
    row: int


@explains()
@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis(Saved):
    """The mobility of a mechanism in one pose.

    ``dof``: independent motions there, without drivers and limits; ``undriven``: those left with the drivers.  Both are
    the freedoms of first order, unknowns − rank, without those that second order excludes.
    ``gruebler``: 6·bodies − equations.  ``rank``: of the Jacobian.  ``singular_values``: scaled, largest first; for
    large mechanisms those of the elimination, body by body.  ``gap``: ratio of the last counted value to the first
    dropped one, the smallest of all pieces (inf if nothing was dropped).  ``certain``: the rank is clear from the
    values.  ``redundant``: equations that depend on earlier ones.
    ``residuals``: of every constraint, the worst first; ``worst``: of those that are not met.  ``residual``: the worst,
    as in an assembly; ``assembled``: it is met, so that the rank is that of a real pose.  ``unconnected``: bodies that
    are not connected to the ground.  ``free``: bodies that can move.
    ``tolerance``: that was asked for; ``by_tolerance``: how many degrees of freedom exist only within it.
    ``infinitesimal``: freedoms of first order that second order excludes, so that they are no motions (a shaky
    structure) and do not count in ``dof``; None if this is not decided.  ``branches``: several motions begin in this
    pose.
    ``nearly``: if the pose is not assembled only because the constraints do not fit exactly, the tolerance that accepts
    it and the degrees of freedom at this tolerance; otherwise None.
    ``parameters``: those that were free: they are unknowns too, and ``free_motions`` says which are not determined.
    ``motions``: a basis of the free motions, shape (dof, bodies, 6): velocity of the body's origin in world axes [m]
    and rotation in body axes [rad], bodies as in ``names``.  In each motion one coordinate changes by 1 rad or 1 m,
    while those of the other motions do not change.  ``free_motions``: this coordinate in words, for each motion.  Both
    are None for a mechanism with a large piece.  ``notes``: rings of gears that are locked or inconsistent, and
    pieces too small for a place so far away, in words.
    ``velocity_dof``: independent velocities, without drivers and limits.  It is less than ``dof`` if rate rows
    (nonholonomic constraints) exclude velocities; poses keep all of ``dof``.  ``rate_rows``: their names;
    ``redundant_rates``: those of their equations that depend on joints or earlier rate rows.
    ``touching``: bodies that touch or overlap, of those that must not overlap.  A contact is one-sided: it excludes no
    degree of freedom, but the motions into it; ``dof_touching`` counts the motions that keep all of them closed, None
    if that is not known, or nothing touches.
    """

    dof: int
    undriven: int
    gruebler: int
    rank: int
    equations: int
    redundant: list[Equation]
    singular_values: FloatArray
    gap: float
    certain: bool
    residuals: list[Violation]
    residual: float
    assembled: bool
    unconnected: tuple[str, ...]
    motions: FloatArray | None
    free_motions: tuple[FreeMotion, ...] | None
    names: tuple[str, ...]
    tolerance: float
    by_tolerance: int
    infinitesimal: int | None
    branches: bool
    nearly: tuple[float, int] | None
    notes: tuple[str, ...]
    worst: list[Violation]
    velocity_dof: int
    rate_rows: tuple[str, ...]
    redundant_rates: list[Equation]
    parameters: tuple[str, ...] = ()
    touching: tuple[Any, ...] = ()
    dof_touching: int | None = None

    @property
    def free(self) -> tuple[str, ...]:
        """Bodies that can move."""
        if not self.dof:
            return ()
        if self.free_motions is None:
            raise ModelError(f"free is not available for {len(self.names)} bodies: too many for a basis of motions")
        moving = {name for motion in self.free_motions for name in motion.bodies}
        return tuple(name for name in self.names if name in moving)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "dof": self.dof,
            "undriven": self.undriven,
            "velocity_dof": self.velocity_dof,
            "gruebler": self.gruebler,
            "rank": self.rank,
            "equations": self.equations,
            "assembled": self.assembled,
            "certain": self.certain,
            "infinitesimal": self.infinitesimal,
            "branches": self.branches,
            "residual": self.residual if math.isfinite(self.residual) else None,
            "redundant": [equation._asdict() for equation in self.redundant],
            "free_motions": None
            if self.free_motions is None
            else [{**motion._asdict(), "bodies": list(motion.bodies)} for motion in self.free_motions],
            "unconnected": list(self.unconnected),
            "notes": list(self.notes),
            "touching": [one._asdict() for one in self.touching],
            "dof_touching": self.dof_touching,
        }

    def _repr_html_(self) -> str:
        redundant = [(e.constraint, e.primitive, e.row) for e in self.redundant]
        return as_html(self.text(), (("redundant", "primitive", "row"), redundant))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Diagnosis):
            return NotImplemented
        for name in self.__dataclass_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            same = np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            if not same:
                return False
        return True

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def text(self) -> str:
        """A short report."""
        if self.rank == self.singular_values.size:
            gap = "no singular value is zero"
        else:
            gap = "the other singular values are zero" if math.isinf(self.gap) else f"gap {self.gap:.1e}"
        unknowns = 6 * len(self.names) + len(self.parameters)
        excluded = unknowns - self.rank - self.dof
        less = f" − {excluded} infinitesimal" if excluded else ""
        lines = [
            f"degrees of freedom: {self.dof} ({unknowns} unknowns − rank {self.rank}{less}; {gap})",
            f"Grübler count:      {self.gruebler}",
            f"redundant:          {len(self.redundant)} ({self.equations} equations − rank {self.rank})"
            + "".join(f"\n  {e.constraint}: {e.primitive}, row {e.row}" for e in self.redundant),
        ]
        if self.free_motions:
            told = [f"\n  {motion.text()}" for motion in self.free_motions[:MOTIONS_TOLD]]
            more = f"\n  and {self.dof - MOTIONS_TOLD} more" if self.dof > MOTIONS_TOLD else ""
            lines[0] += "".join(told) + more
        if self.undriven != self.dof:
            lines.insert(1, f"with the drivers:   {self.undriven}")
        if self.rate_rows:
            lines.insert(1, self._of_rates())
        if self.touching:
            lines += self._of_contacts()
        if self.by_tolerance:
            lines.append(
                f"at tolerance {self.tolerance:.0e}: singular values below {self.tolerance / REACH:.0e} count as zero; "
                f"at the default tolerance it has {_freedoms(self.dof - self.by_tolerance)}"
            )
        lines += self._of_second_order()
        if not self.certain:
            lines.append("  uncertain: the singular values show no clear gap; the pose may be near a singular one")
        lines += [f"  {note}" for note in self.notes]
        if self.nearly:
            tolerance, dof = self.nearly
            worst = self.residuals[0]
            lines.append(
                f"nearly closed: {worst.name!r} misses by {worst.text()}; assembled with tolerance={tolerance:.0e} it "
                f"has {_freedoms(dof)}"
            )
        elif not self.assembled:
            lines.append(f"not assembled: largest residual {self.residual:.1e}; the rank is that of this pose only")
        if not self.assembled:
            lines += [f"  {v.name}: {v.text()}" for v in self.worst[:5]]
        if self.unconnected:
            lines.append(f"not connected to the ground: {', '.join(map(repr, self.unconnected))}")
        return "\n".join(lines)

    def _of_rates(self) -> str:
        """A line on rate rows, and one for each of their equations that is redundant."""
        names = ", ".join(map(repr, self.rate_rows[:MOTIONS_TOLD]))
        more = " …" if len(self.rate_rows) > MOTIONS_TOLD else ""
        text = f"in velocity:        {self.velocity_dof} of {self.dof}, because of the rate rows {names}{more}"
        told = [f"\n  redundant rate row {e.constraint}: {e.primitive}, row {e.row}" for e in self.redundant_rates]
        return text + "".join(told)

    def _of_contacts(self) -> list[str]:
        """Lines on what touches."""
        kept = "" if self.dof_touching is None else f"; {_freedoms(self.dof_touching)} while they stay closed"
        told = [f"  {one.a!r} and {one.b!r}" for one in self.touching[:MOTIONS_TOLD]]
        more = ["  …"] if len(self.touching) > MOTIONS_TOLD else []
        return [f"touching:           {len(self.touching)}, one-sided{kept}", *told, *more]

    def _of_second_order(self) -> list[str]:
        """Lines on freedoms that are not motions."""
        if self.motions is None:
            return ["not examined whether all of these are motions: too many bodies"] if self.redundant else []
        if self.infinitesimal is None:
            return ["unknown whether all of these are motions: second order does not decide"] if self.assembled else []
        lines = []
        if self.infinitesimal:
            of_first = _freedoms(self.dof + self.infinitesimal)
            told = f"{self.infinitesimal} of them" if self.dof else "every motion"
            lines.append(f"shaky: {of_first} to first order, but second order excludes {told}")
        if self.branches:
            lines.append("singular pose: several motions begin here")
        return lines


def _freedoms(count: int) -> str:
    return f"{count} degree{'' if count == 1 else 's'} of freedom"


def _checked_coordinates(system: System, state: State) -> FloatArray:
    """Poses of a state, in the order of the bodies of the system; ModelError if they are not of it, or not finite."""
    if set(state.names) != set(system.names):
        raise ModelError(
            f"the state has the bodies {list(state.names)[:5]}, the mechanism {list(system.names)[:5]}; pass a "
            "state of this mechanism"
        )
    for name, row in zip(state.names, state.coordinates, strict=True):
        if not np.isfinite(row).all():
            raise ModelError(f"the pose of body {name!r} is {row.tolist()}; every number in it must be finite")
        if np.abs(row).max() > check.LARGEST:
            raise ModelError(f"the pose of body {name!r} is {row.tolist()}; no number may exceed {check.LARGEST}")
    if state.names == system.names:
        return state.coordinates
    return state.coordinates[[state.names.index(name) for name in system.names]]


def diagnose(system: System, state: State, tolerance: float) -> Diagnosis:
    """See :meth:`cardan.Mechanism.diagnose`."""
    tolerance = verdict.checked_tolerance(tolerance)
    coordinates = _checked_coordinates(system, state)
    values = {**system.values, **state.variables}
    variables = [values[name] for name in system.variable_names]
    near = np.array([*variables, *[state.angles.get(key, 0.0) for key in system.counted_angles]])
    judged, residuals = verdict.judge_system(system, coordinates, near, tolerance, state.time)
    _check_finite(system, state, residuals)
    bounds = None if judged.met else verdict.row_bounds(system, coordinates, near, tolerance)

    def find(tolerance: float, is_met: bool) -> list[_Freedom]:
        return [
            _freedom(piece.system, piece.take(coordinates), piece.take_angles(near), state.time, tolerance, is_met)
            for piece in system.pieces
        ]

    unknowns = 6 * len(system.names) + len(system.variables.free)
    found = find(tolerance, judged.met)
    dof = _dof(unknowns, found)
    rank = sum(f.rank for f in found)
    motions, free_motions = _motions(system, coordinates, near, found) or (None, None)
    rates = _rates(system.rated, coordinates, near, state.time, tolerance) if system.rated is not system else None
    undecided = any(f.curvature.infinitesimal is None for f in found)
    nearly = None if judged.met else _nearly_closed(judged, tolerance, unknowns, find)
    velocity_dof = dof if rates is None else unknowns - rates[0]
    if rates is not None and motions is not None and dof < unknowns - rank:
        velocity_dof = _velocity_dof(system, coordinates, near, motions)
    return Diagnosis(
        dof=dof,
        undriven=unknowns - sum(f.driven_rank for f in found),
        gruebler=system.gruebler,
        rank=rank,
        equations=system.equations,
        redundant=[equation for f in found for equation in f.redundant],
        singular_values=np.sort(np.concatenate([f.values for f in found] or [np.zeros(0)]))[::-1],
        gap=min((f.gap for f in found), default=math.inf),
        certain=all(f.certain for f in found) and (nearly is None or nearly[1] == dof),
        residuals=violations(system, residuals),
        residual=judged.residual,
        assembled=judged.met,
        unconnected=system.unconnected,
        motions=motions,
        free_motions=free_motions,
        names=system.names,
        tolerance=tolerance,
        by_tolerance=sum(f.exact_rank - f.rank for f in found),
        infinitesimal=None if undecided else sum(f.curvature.infinitesimal or 0 for f in found),
        branches=any(f.curvature.branches for f in found),
        nearly=nearly,
        notes=_notes(system, judged, coordinates, residuals),
        worst=[] if judged.met else violations(system, residuals, bounds),
        velocity_dof=velocity_dof,
        rate_rows=tuple(dict.fromkeys(system.rate_constraints)),
        redundant_rates=[] if rates is None else rates[1],
        parameters=system.variables.free,
    )


def _notes(system: System, judged: verdict.Verdict, coordinates: FloatArray, residuals: FloatArray) -> tuple[str, ...]:
    """Rings of gears, and open pieces that are too small for a place so far away."""
    return (*rings(system), *(() if judged.met else verdict.too_far(system, coordinates, residuals)))


def _nearly_closed(
    judged: verdict.Verdict, tolerance: float, unknowns: int, find: Callable[[float, bool], list[_Freedom]]
) -> tuple[float, int] | None:
    """The tolerance that accepts a pose that is nearly closed, and the degrees of freedom by it."""
    if judged.residual > NEARLY_CLOSED:
        return None
    accepting = accepting_tolerance(judged.residual, squared=judged.bound < tolerance)
    wider = find(accepting, True)
    return (accepting, _dof(unknowns, wider)) if all(f.is_closed for f in wider) else None


def _dof(unknowns: int, found: list[_Freedom]) -> int:
    """Freedoms of first order, without those that second order excludes."""
    return unknowns - sum(f.rank + (f.curvature.infinitesimal or 0) for f in found)


def _velocity_dof(system: System, coordinates: FloatArray, near: FloatArray, motions: FloatArray) -> int:
    """How many of the motions, shape (dof, bodies, 6), combine to velocities that the rate rows allow."""
    rows = RateRows(system)
    own = motions.copy()  # of the reference points
    own[..., :3] += euler.rotate(coordinates[:, 3:], np.cross(motions[..., 3:], rows.system.reference_points))
    q = formulations.to_reference(rows.system, coordinates, near)
    at_rows = rows.scales[:, None] * (rows.matrix(q)[:, : 6 * len(system.names)] @ own.reshape(len(own), -1).T)
    values = np.linalg.svd(at_rows, compute_uv=False)
    return len(motions) - int((values > RANK_RTOL * values.max(initial=0.0)).sum())


@dataclass(frozen=True, slots=True)
class _Freedom:
    """The mobility of one connected piece."""

    rank: int
    exact_rank: int  # if no value counts as zero because of the tolerance
    driven_rank: int  # with the drivers, and with what second order excludes then
    values: FloatArray
    redundant: list[Equation]
    motions: FloatArray | None  # those that second order does not exclude
    curvature: Curvature
    is_closed: bool  # no small motion reduces the residual much
    cut: float  # values below are within the tolerance

    @property
    def dropped(self) -> float:
        return float(self.values[self.rank]) if self.rank < self.values.size else 0.0

    @property
    def gap(self) -> float:
        return float(self.values[self.rank - 1] / self.dropped) if self.rank and self.dropped > 0.0 else math.inf

    @property
    def certain(self) -> bool:
        """The gap is large, no counted value is close to zero, and no dropped value is above rounding errors."""
        if not self.rank:
            return True
        largest, least = float(self.values[0]), float(self.values[self.rank - 1])
        if least <= self.cut:
            return False
        if self.rank < self.exact_rank:
            return self.gap >= TOLERANCE_GAP
        return self.gap >= UNSURE_GAP and least >= NEARLY_SINGULAR * largest and self.dropped <= ROUNDED * largest


def _check_finite(system: System, state: State, residuals: FloatArray) -> None:
    """ModelError if equations are not numbers in the state, as those of meshes that overlap; it names them."""
    for name, primitive, start in system.rows:
        if not np.isfinite(residuals[start : start + primitive.rows]).all():
            touch = system.index.contacts.get(name)
            why = "" if touch is None else f": {touch.read(state).reason}"
            raise ModelError(f"the equations of {name!r} are not numbers in this state, so it has no freedoms{why}")


def _freedom(
    piece: System, coordinates: FloatArray, near: FloatArray, time: float, tolerance: float, is_met: bool
) -> _Freedom:
    """is_met: second order decides only in a pose that meets the tolerance."""
    q = formulations.to_reference(piece, coordinates, near)
    length = piece.extent_at(q)
    problem = formulations.problem(piece, "manifold", length, time)
    drivers = {signal.name for _, signal in piece.signals}
    equations = {
        start + i: Equation(name, primitive.name, i)
        for name, primitive, start in piece.rows
        for i in range(primitive.rows)
        if i not in primitive.guards
    }
    rows = [row for row, equation in equations.items() if equation.constraint not in drivers]
    find = _dense if problem.unknowns <= DENSE_UNKNOWNS else _sparse
    found = find(problem, q, rows, tolerance, is_met)
    driven = find(problem, q, list(equations), tolerance, is_met) if drivers else found
    return _Freedom(
        rank=found.rank,
        exact_rank=found.exact_rank,
        driven_rank=driven.rank + (driven.curvature.infinitesimal or 0),
        values=found.values,
        redundant=[equations[row] for row in found.redundant],
        motions=None if found.motions is None else found.curvature.motions(found.motions),
        curvature=found.curvature,
        is_closed=found.is_closed,
        cut=tolerance / REACH,
    )


def infinitesimal(system: System, state: State) -> int:
    """How many freedoms of first order in an assembled state are no motions, as far as this is decided.

    As :attr:`Diagnosis.infinitesimal`, without drivers and without the rest of a diagnosis; large pieces are left out.
    """
    count = 0
    for piece in system.pieces:
        near = np.array([state.angles.get(key, 0.0) for key in piece.system.counted_angles])
        q = formulations.to_reference(piece.system, piece.take(state.coordinates), near)
        problem = formulations.problem(piece.system, "manifold", piece.system.extent_at(q), state.time)
        drivers = {signal.name for _, signal in piece.system.signals}
        rows = [
            start + i
            for name, primitive, start in piece.system.rows
            for i in range(primitive.rows)
            if i not in primitive.guards and name not in drivers
        ]
        if rows and problem.unknowns <= DENSE_UNKNOWNS:
            at = Linearised(problem, q, rows)
            rank = at.rank(0.0)
            count += _curvature(at, rank, at.v[rank:]).infinitesimal or 0
    return count


def _rates(
    rated: System, coordinates: FloatArray, near: FloatArray, time: float, tolerance: float
) -> tuple[int, list[Equation]]:
    """Rank of joints and rate rows together, and the equations of rate rows that depend on those before them."""
    rank, redundant = 0, []
    for piece in rated.pieces:
        system = piece.system
        q = formulations.to_reference(system, piece.take(coordinates), piece.take_angles(near))
        problem = formulations.problem(system, "manifold", system.extent_at(q), time)
        drivers = {signal.name for _, signal in system.signals} - set(_rate_names(system))
        equations = {
            start + i: (Equation(name, primitive.name, i), primitive.of_rates)
            for name, primitive, start in system.rows
            for i in range(primitive.rows)
            if i not in primitive.guards and name not in drivers
        }
        rows = list(equations)
        if problem.unknowns > DENSE_UNKNOWNS:
            found = _sparse(problem, q, rows, tolerance, is_met=False)
            own, dependent = found.rank, found.redundant
        elif rows:
            at = Linearised(problem, q, rows)
            own = at.rank(tolerance / REACH)
            dependent = [rows[i] for i in dependent_rows(at.matrix, own, tolerance / REACH)]
        else:
            own, dependent = 0, []
        rank += own
        redundant += [equations[row][0] for row in dependent if equations[row][1]]
    return rank, redundant


def _rate_names(system: System) -> list[str]:
    return [name for name, primitive, _ in system.rows if primitive.of_rates]


def _motions(
    system: System, coordinates: FloatArray, near: FloatArray, found: list[_Freedom]
) -> tuple[FloatArray, tuple[FreeMotion, ...]] | None:
    """The free motions of all pieces, and six of every body in no piece."""
    count = len(system.names)
    in_piece = np.zeros(count, dtype=bool)
    blocks = [np.zeros((0, count, 6))]
    words: list[FreeMotion] = []
    for piece, f in zip(system.pieces, found, strict=True):
        if f.motions is None:
            return None
        in_piece[piece.bodies] = True
        own, told = describe(piece.system, piece.take(coordinates), piece.take_angles(near), f.motions)
        block = np.zeros((len(own), count, 6))
        piece.put(own, block)
        blocks.append(block)
        words += told
    for body in np.flatnonzero(~in_piece):
        block = np.zeros((6, count, 6))
        block[:3, body, :3] = np.eye(3)
        block[3:, body, 3:] = euler.matrix(coordinates[body, 3:])  # rotations about the world's axes, in body axes
        blocks.append(block)
        words += describe_free(system.names[body])
    known = {name for piece in system.pieces for name in piece.system.variables.free}
    for name in system.variables.free:
        if name not in known:  # nothing depends on it
            blocks.append(np.zeros((1, count, 6)))
            words.append(FreeMotion(f"parameter {name!r}", "changes", "", ()))
    return np.concatenate(blocks), tuple(words)


class _Finding(NamedTuple):
    """Fields as of :class:`_Freedom`; ``redundant``: numbers of rows."""

    rank: int
    exact_rank: int
    values: FloatArray
    redundant: list[int]
    motions: FloatArray | None
    curvature: Curvature = Curvature(0)
    is_closed: bool = True


def _dense(problem: Problem, q: FloatArray, rows: list[int], tolerance: float, is_met: bool) -> _Finding:
    """By the singular values of the whole Jacobian."""
    if not rows:
        return _Finding(0, 0, np.zeros(0), [], np.eye(problem.unknowns))
    at = Linearised(problem, q, rows)
    exact_rank = at.rank(0.0)
    rank, motions = _rank(at, tolerance)
    curved = Curvature(0) if is_met else Curvature(None)
    if is_met and rank == exact_rank:
        curved = _curvature(at, rank, motions)
    redundant = dependent_rows(at.matrix, rank, tolerance / REACH)
    is_closed = at.irreducible(rank, 0.1 * tolerance) >= CLOSED
    return _Finding(rank, exact_rank, at.values, [rows[i] for i in redundant], motions, curved, is_closed)


def _rank(at: Linearised, tolerance: float) -> tuple[int, FloatArray]:
    """The rank within the tolerance, and the free motions, orthonormal rows."""
    rank, exact_rank = at.rank(tolerance / REACH), at.rank(0.0)
    motions: FloatArray = at.v[rank:]
    if rank == exact_rank:
        return rank, motions
    motions = _flat(at, rank, tolerance, least=len(at.v) - exact_rank).T @ motions
    return len(at.v) - len(motions), motions


def _flat(at: Linearised, rank: int, tolerance: float, least: int) -> FloatArray:
    """Columns that combine the motions along which second order is within the tolerance; at least ``least``."""
    forms = at.forms(rank)
    error = tolerance / float(at.values[rank - 1]) if rank else 0.0  # of the singular vectors
    most = 2.0 * tolerance / REACH**2 + 3.0 * error * forms.scale  # a form contains s once and n twice
    return second_order.flat(forms.values, most, least)


def _curvature(at: Linearised, rank: int, motions: FloatArray) -> Curvature:
    """Which of the motions are excluded by second order; none if all equations are independent."""
    if not (0 < rank < len(at.matrix) and len(motions)):
        return Curvature(0)
    continues = at.continues(rank)
    return Curvature(0) if continues else second_order.curvature(at.forms(rank), is_obstructed=continues is False)


def _sparse(problem: Problem, q: FloatArray, rows: list[int], tolerance: float, is_met: bool) -> _Finding:
    """Body by body; see :mod:`cardan.diagnosis.elimination`."""
    parts = elimination.fronts(problem, q, set(rows))
    exact_cut = RANK_RTOL * elimination.largest_block(parts)
    cut = max(exact_cut, tolerance / REACH)
    rank, values = elimination.pivots(parts, cut)
    exact_rank = elimination.pivots(parts, exact_cut)[0] if cut > exact_cut else rank
    redundant = elimination.redundant_rows(parts, cut) if rank < len(rows) else []
    if len(redundant) != len(rows) - rank:
        log.warning("the rank implies %d redundant equations, but %d were found", len(rows) - rank, len(redundant))
    curved = Curvature(None if redundant or not is_met else 0)
    return _Finding(rank, exact_rank, values, redundant, None, curved, is_closed=False)


def dependent_rows(matrix: FloatArray, rank: int, cut: float) -> list[int]:
    """The len(matrix) − rank rows that depend on the rows before them: modified Gram–Schmidt, twice per row.

    A row is independent if its component orthogonal to the rows before it is above the cut.  If rounding makes their
    number differ from the rank, the rows with the largest components count as independent.
    """
    space = np.empty((min(matrix.shape), matrix.shape[1]))
    found = 0
    component = np.zeros(matrix.shape[0])
    size = float(np.sqrt((matrix * matrix).sum(axis=1)).max(initial=0.0))
    cut = max(cut, RANK_RTOL * size)
    for i, row in enumerate(matrix):
        basis = space[:found]
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        component[i] = float(np.sqrt(rest @ rest))
        if component[i] > cut and found < len(space):
            space[found] = rest / component[i]
            found += 1
    order = np.argsort(-component, kind="stable")
    return sorted(int(i) for i in order[rank:])
