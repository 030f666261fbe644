"""Solids that must not overlap: which pairs of them, and the gap of a pair as a row of an assembly.

A row is the inequality

    f = min(gap − margin, 0) [m],   ∂gap = n·(δp_b − δp_a),

with the signed gap of two solids (minus the least depth where they overlap), the normal n from a to b, and the material
points p_a, p_b nearest to each other.  Like the row of a limit it is zero where the solids are apart, so nothing is
pulled together, and it is no equation of rank or reactions.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cardan.errors import ModelError
from cardan.joints import tables
from cardan.joints.collisions import Collisions
from cardan.joints.contacts import Form, primitive_of
from cardan.joints.registry import Role
from cardan.kernel import jit, memory
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.shapes.curved import Curved
from cardan.system.check import Triple
from cardan.system.relations import Bundle, Relation
from cardan.system.state import FloatArray

if TYPE_CHECKING:
    from cardan.system.attachments import Attachment
    from cardan.system.drawing import Contents
    from cardan.system.parts import Body

_collide = LazyModule("cardan.collide")
log = logging.getLogger("cardan")

TRUSTED = 1e-9  # of the size: if the error of the search may be larger, the gap is not known
JOINING: Final = (Role.JOINT, Role.CONTACT, Role.COUPLING)  # constraints whose bodies may overlap
PLANE = "plane"


class Touching(NamedTuple):
    """Two bodies that touch or overlap: ``gap`` [m] between their solids, negative for the depth of an overlap.

    ``margin`` [m]: the least gap that they must have.  ``points`` [m]: on a and on b, in world.  ``normal``: unit
    vector from a to b.  ``contact``: name of the contact that opens, if it is one; "" of solids.
    """

    a: str
    b: str
    gap: float
    margin: float
    points: tuple[Triple, Triple]
    normal: Triple
    contact: str = ""


def pair_name(a: str, b: str) -> str:
    """What the gap of two bodies is called in lists of constraints."""
    return f"collision of {a!r} and {b!r}"


def solid_of(shape: Any) -> Any:
    """The solid of an attached shape; None for a curve or a surface, which has no inside."""
    return None if isinstance(shape, Curved) else _collide.solid(shape)


def solids_of(body: Body) -> list[tuple[Attachment, Any]]:
    """The attachments of a body that are solids.

    ModelError for a plane that no contact uses: it is no solid, and parts would fall through it.
    """
    found = []
    for one in body.attachments:
        if getattr(getattr(one.shape, "geometry", None), "name", "") == PLANE and not body._model.contacts_on(one):
            raise ModelError(
                f"collide: body {body.name!r} has a plane, which has no inside; attach cd.shapes.half_space() in its "
                "place, or a contact to it"
            )
        try:
            solid = solid_of(one.shape)
        except ModelError as error:
            raise ModelError(f"collide: body {body.name!r} cannot be compared with others: {error}") from None
        if solid is not None:
            found.append((one, solid))
    return found


class Colliding:
    """The solids of the bodies of a mechanism that must not overlap, and which pairs of them.

    ``solids``, ``owners``, ``frames``: of each solid itself, the name of its body, and its attachment's frame.
    """

    def __init__(self, contents: Contents, sets: Sequence[Collisions]) -> None:
        self._sets = [(one, frozenset(one._of(contents)), *_split(one.exclude)) for one in sets]
        self._joined = joined_pairs(contents)
        self._welded = welded(contents)
        self.solids: list[Any] = []
        self.owners: list[str] = []
        self.frames: list[Any] = []
        for name in (contents.ground.name, *contents.bodies):
            if any(name in own for _, own, _, _ in self._sets):
                for one, solid in solids_of(contents.body(name)):
                    self.solids.append(solid)
                    self.owners.append(name)
                    self.frames.append(one.frame)
        numbers = {name: k for k, name in enumerate(contents.bodies)}
        self._bodies = np.array([numbers.get(name, -1) for name in self.owners], dtype=np.int64)
        self._places: FloatArray = np.array(
            [(*frame.origin, *frame.quaternion()) for frame in self.frames], dtype=np.float64
        ).reshape(-1, 7)

    def margin(self, a: str, b: str) -> float | None:
        """The least gap of two bodies [m]; None if they may overlap.  The last set that has both decides."""
        if a == b:
            return None
        for one, own, bodies, pairs in reversed(self._sets):
            if a in own and b in own:
                pair = frozenset((a, b))
                is_free = a in bodies or b in bodies or pair in pairs or (not one.joined and pair in self._joined)
                return None if is_free else one.margin
        return None

    def is_welded(self, a: str, b: str) -> bool:
        """Whether joints without freedoms fix two bodies to each other, so that no motion changes their gap."""
        return self._welded.get(a, a) == self._welded.get(b, b)

    def moving_margin(self, a: str, b: str) -> float | None:
        """The least gap of two bodies that move relative to each other [m]; None if they may overlap, or do not."""
        return None if self.is_welded(a, b) else self.margin(a, b)

    def impact(self, a: str, b: str) -> tuple[float, tuple[float, float]]:
        """Restitution and friction (static, kinetic) of two bodies; the last set that has both decides."""
        for one, own, *_ in reversed(self._sets):
            if a in own and b in own:
                return one.restitution, one.friction
        return 0.0, (0.0, 0.0)

    def every_pair(self) -> Iterator[tuple[str, str]]:
        """Every pair of bodies with a solid that a set has."""
        names = list(dict.fromkeys(self.owners))
        for k, a in enumerate(names):
            yield from ((a, b) for b in names[k + 1 :])

    def poses(self, coordinates: FloatArray) -> FloatArray:
        """Of the solids in world, shape (solids, 7), for r, p of the bodies, shape (bodies, 7)."""
        ground = np.array([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
        of_bodies = np.concatenate([coordinates, ground])[self._bodies]
        turned = euler.multiply(of_bodies[:, 3:], self._places[:, 3:])
        return np.hstack([of_bodies[:, :3] + euler.rotate(of_bodies[:, 3:], self._places[:, :3]), turned])

    def near(self, coordinates: FloatArray, within: float = 0.0) -> Iterator[tuple[int, int, float, Any]]:
        """Pairs of solids whose gap is less than their margin: numbers, margin [m], and the gap.

        within: the gap may exceed the margin by this share of the size of the smaller solid.  Of bodies that are fixed
        to each other, those that overlap by more than rounding.
        """
        if len(self.solids) < 2:
            return
        poses = self.poses(coordinates)
        largest = max((one.reach for one in self.solids if np.isfinite(one.reach)), default=0.0)
        most = max(one.margin for one, *_ in self._sets) + within * largest
        for i, j in np.asarray(_collide.candidates(self.solids, poses, margin=most)).tolist():
            margin = self.margin(self.owners[i], self.owners[j])
            if margin is not None:
                size = min(self.solids[i].reach, self.solids[j].reach)
                least = margin + (within * size if within else 0.0)
                if self.is_welded(self.owners[i], self.owners[j]):
                    least = margin - TRUSTED * size
                found = known_gap(self.solids[i], poses[i], self.solids[j], poses[j], least)
                if not found.gap >= least:
                    yield i, j, margin, found

    def touching(self, coordinates: FloatArray, within: float) -> list[Touching]:
        """Pairs of bodies that :meth:`near` finds, the deepest overlap first."""
        found = []
        for i, j, margin, g in self.near(coordinates, within):
            on_a, on_b = (tuple(point) for point in np.asarray(g.points).tolist())
            normal = tuple(np.asarray(g.normal).tolist())
            found.append(Touching(self.owners[i], self.owners[j], float(g.gap), margin, (on_a, on_b), normal))
        return sorted(found, key=lambda one: one.gap)

    def closing_rates(self, coordinates: FloatArray, within: float) -> FloatArray:
        """Rows J with d(gap)/dt = J v at each contact point of pairs that touch, shape (points, 6·bodies).

        v: ṙ in world axes and ω in body axes of each body.  coordinates: r, p of the bodies, shape (bodies, 7).
        within: as of :meth:`near`.
        """
        rows = []
        poses = self.poses(coordinates)
        for i, j, margin, g in self.near(coordinates, within):
            size = min(self.solids[i].reach, self.solids[j].reach)
            points = _collide.contact_points(
                *(self.solids[i], poses[i], self.solids[j], poses[j]), within=margin + within * size
            )
            for one in points or [g]:
                row = np.zeros((len(coordinates) + 1, 6))
                for k, point, n in ((i, one.points[0], -np.asarray(one.normal)), (j, one.points[1], one.normal)):
                    body = self._bodies[k]
                    if body >= 0:
                        moment = np.cross(np.asarray(point) - coordinates[body, :3], n)
                        turned = euler.rotate(euler.conjugate(coordinates[body, 3:]), moment)
                        row[body] += np.concatenate([n, turned])
                rows.append(row[:-1].ravel())
        return np.array(rows).reshape(len(rows), -1)

    def bundle(self, i: int, j: int, margin: float) -> Bundle:
        """The gap of two solids as a constraint."""
        pair = GapPair(self.solids[i], self.solids[j], margin)
        ends = [feature for k in (i, j) for feature in (self.frames[k].feature(), self.frames[k].orientation())]
        form = primitive_of(Form("closest", (0, 0), ("m",), 0, "cardan.joints._closest"))
        row = Relation(form, tuple(ends), (0.0,), size=pair.size, pair=pair)
        return Bundle(pair_name(self.owners[i], self.owners[j]), [row])


def known_gap(a: Any, pose_a: FloatArray, b: Any, pose_b: FloatArray, least: float) -> Any:
    """The gap of two solids; NaN if the error of the search leaves open whether it is larger than a least gap [m].

    Errors of solids that are cut into chords are not considered: the gap is that of their pieces.
    """
    found = _collide.gap(a, pose_a, b, pose_b)
    if found.gap - found.error > least or found.error - a.error - b.error <= TRUSTED * min(a.reach, b.reach):
        return found
    log.debug("the gap of %r and %r is not known at %s, %s", a, b, pose_a.tolist(), pose_b.tolist())
    return replace(found, gap=math.nan)


def _split(exclude: Iterable[Any]) -> tuple[frozenset[str], frozenset[frozenset[str]]]:
    """Excluded bodies, and excluded pairs of bodies."""
    pairs = [one for one in exclude if isinstance(one, tuple)]
    return frozenset(one for one in exclude if isinstance(one, str)), frozenset(map(frozenset, pairs))


def joined_pairs(contents: Any) -> dict[frozenset[str], str]:
    """Pairs of bodies that a joint, contact or coupling joins, which may overlap, and in words by which."""
    found: dict[frozenset[str], str] = {}
    for joint in contents.joints.values():
        if joint.kind.role in JOINING:
            for pair in combinations([body.name for body in joint.bodies], 2):
                found.setdefault(frozenset(pair), f"joined by {joint.kind.name} {joint.name!r}")
    return found


def welded(contents: Any) -> Mapping[str, str]:
    """By the name of each body that joints without freedoms connect to others, one name for all of them."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.get(name, name) != name:
            name = leader[name]
        return name

    for joint in contents.joints.values():
        motion = joint.kind.motion
        if motion is not None and not motion.coordinates() and motion.rotation == 0:
            a, b = (find(body.name) for body in joint.bodies)
            leader[a], leader[b] = b, b
    return {name: find(name) for name in leader}


def _by_frame(pose: FloatArray, point: FloatArray, normal: FloatArray) -> list[float]:
    """The derivative of n·p by position and Euler parameters of the frame that carries the point p, 7 numbers.

    With the moment m = (p − r) × n a rotation φ in world changes it by m·φ, and φ is the vector of 2 δe ē/|e|².  So the
    derivative by e is 2 (0, m) e/|e|².  In plain numbers, since NumPy takes longer for three of them.
    """
    rx, ry, rz, w, x, y, z = pose.tolist()
    (px, py, pz), (nx, ny, nz) = point.tolist(), normal.tolist()
    ax, ay, az = px - rx, py - ry, pz - rz
    mx, my, mz = ay * nz - az * ny, az * nx - ax * nz, ax * ny - ay * nx
    k = 2.0 / (w * w + x * x + y * y + z * z)
    of_w = -k * (mx * x + my * y + mz * z)
    of_x = k * (mx * w + my * z - mz * y)
    return [nx, ny, nz, of_w, of_x, k * (my * w + mz * x - mx * z), k * (mz * w + mx * y - my * x)]


class GapPair:
    """Two solids whose gap must not be less than a margin [m], as a table for kernels.  Immutable."""

    shapes: tuple[Any, ...] = ()
    by_differences = True
    work = 1

    def __init__(self, a: Any, b: Any, margin: float) -> None:
        self.a, self.b, self.margin = a, b, margin
        self.size = float(min(a.reach, b.reach))
        self._table: Any = None

    @property
    def address(self) -> float:
        """Address of its table, valid in this process."""
        if self._table is None:
            address, self._kept = jit.evaluator_in_python(self._evaluate)
            self._table = tables.PairTable.new(solver=address)
            self._address = float(memory.address_of(self._table.as_ints))
        return self._address

    def _evaluate(self, op: int, unused: Any, c: Any, x: Any, rate: Any, out: Any, jacobian: Any, work: Any) -> int:
        """The evaluator: f with its derivatives by both frames; not numbers if an exception ends it, which the kernel
        then raises."""
        out[0] = np.nan
        for i in range(14):
            jacobian[i] = np.nan
        out[0], row = self.row(np.array(x[:7]), np.array(x[7:14]))
        for i, one in enumerate(row):
            jacobian[i] = one
        return 0

    def row(self, pose_a: FloatArray, pose_b: FloatArray) -> tuple[float, list[float]]:
        """f [m], and ∂f by positions and Euler parameters of both frames, 14 numbers."""
        found = known_gap(self.a, pose_a, self.b, pose_b, self.margin)
        value = float(found.gap) - self.margin
        if value >= 0.0:
            return 0.0, [0.0] * 14
        if math.isnan(value):
            return value, [value] * 14
        n, (on_a, on_b) = np.asarray(found.normal), np.asarray(found.points)
        return value, [*_by_frame(pose_a, on_a, -n), *_by_frame(pose_b, on_b, n)]

    def followed(self) -> GapPair:
        """Motions have no rows of gaps: a ModelError."""
        raise ModelError("the gap of two solids is a row of assemblies alone")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GapPair) and (self.a, self.b, self.margin) == (other.a, other.b, other.margin)

    def __hash__(self) -> int:
        return hash((self.a, self.b, self.margin))

    def __deepcopy__(self, memo: Any) -> GapPair:
        return self
