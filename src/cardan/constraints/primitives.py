"""The built-in primitives.  After a change run ``python -m cardan.constraints.codegen``; a test checks it was done.

Sign: what body b exceeds body a by.  Vectors are unit vectors, so dot products of two of them count as radians.
"""

from __future__ import annotations

from cardan.constraints.expression import (
    Quaternion,
    Scalar,
    Vector,
    atan2,
    cos,
    cross,
    dot,
    norm,
    relative_rotation_vector,
)
from cardan.constraints.registry import primitive


@primitive(unit="m", p="point", q="point")
def coincidence(p: Vector, q: Vector) -> Vector:
    """Φ = Q − P [m], shape (3,).  [NelsonCohen1998] eq. 2."""
    return q - p


@primitive(unit="rad", measure="sine", u="vector", v="vector")
def dot_1(u: Vector, v: Vector) -> Scalar:
    """Φ = u·v [rad near zero], shape (1,): u ⟂ v.  [Liu2013] eq. 18a."""
    return dot(u, v)


@primitive(unit="m", v="vector", p="point", q="point")
def dot_2(v: Vector, p: Vector, q: Vector, *, offset: Scalar) -> Scalar:
    """Φ = v·(Q − P) − offset [m], shape (1,).  [Liu2013] eq. 18b, with an offset."""
    return dot(v, q - p) - offset


@primitive(unit="rad", u="vector", v="vector")
def angle(u: Vector, v: Vector, *, angle: Scalar) -> Scalar:
    """Φ = atan2(|u × v|, u·v) − α [rad], shape (1,), 0 < α < π: as sharp at every angle.  Variant: angle_cosine."""
    return atan2(norm(cross(u, v)), dot(u, v)) - angle


@primitive(unit="rad", sharp="angle", u="vector", v="vector")
def angle_cosine(u: Vector, v: Vector, *, angle: Scalar) -> Scalar:
    """Φ = u·v − cos α [1], shape (1,): the paper's form; its gradient vanishes at α = 0, π.  [Liu2013] eq. 18c."""
    return dot(u, v) - cos(angle)


@primitive(unit="m", p="point", q="point")
def distance(p: Vector, q: Vector, *, length: Scalar) -> Scalar:
    """Φ = |Q − P| − L [m], shape (1,).  Variant: distance_squared."""
    return norm(q - p) - length


@primitive(unit="m²", sharp="distance", p="point", q="point")
def distance_squared(p: Vector, q: Vector, *, length: Scalar) -> Scalar:
    """Φ = d·d − L² [m²], d = Q − P, shape (1,): the paper's form; no gradient at d = 0.  [Liu2013] eq. 18d."""
    d = q - p
    return dot(d, d) - length * length


@primitive(unit="rad", guards=(2,), measure="chord", x="vector", y="vector", z="vector", v="vector")
def aligned(x: Vector, y: Vector, z: Vector, v: Vector) -> list[Scalar]:
    """Φ = (x·v, y·v, z·v − 1) [rad], shape (3,), for axes x, y, z of frame a and an axis v of body b: v = z.

    |Φ| = |v − z| = 2 sin(θ/2): smooth everywhere, one solution, the opposed axis a maximum.  The first two rows are
    the two equations whose multipliers are the torques about x and y.  The third is a guard: it tells the aligned
    from the opposed axis, and its gradient vanishes where the axes are aligned.
    """
    return [dot(x, v), dot(y, v), dot(z, v) - 1.0]


@primitive(unit="rad", a="orientation", b="orientation")
def rotation_vector(a: Quaternion, b: Quaternion) -> Vector:
    """Φ = log(a* ⊗ b) [rad], shape (3,), in the axes of frame a: one solution, b = a.

    At a half turn the first non-zero component of the axis is taken positive.
    """
    return relative_rotation_vector(a, b)
