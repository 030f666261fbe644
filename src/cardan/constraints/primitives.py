"""The built-in primitives.  After a change, run ``python -m cardan.constraints.codegen``; a test checks its output.

The first five are compiled into every evaluator, since most mechanisms use them; the others are compiled at first use.

Sign: value of body b minus value of body a.  Vectors are unit vectors, so a dot product of two is in radians near zero.
"""

from __future__ import annotations

from cardan.constraints.expression import (
    Quaternion,
    Scalar,
    Vector,
    atan2,
    beyond,
    cos,
    dot,
    norm,
    relative_rotation_vector,
)
from cardan.constraints.registry import builtin


@builtin(inline=True, unit="m", p="point", q="point")
def coincidence(p: Vector, q: Vector) -> Vector:
    """Φ = Q − P [m], shape (3,).  [NelsonCohen1998] eq. 2."""
    return q - p


@builtin(inline=True, unit="rad", measure="sine", u="vector", v="vector")
def dot_1(u: Vector, v: Vector) -> Scalar:
    """Φ = u·v [rad near zero], shape (1,): u ⟂ v.  [Liu2013] eq. 18a."""
    return dot(u, v)


@builtin(inline=True, unit="m", lengths=("offset",), v="vector", p="point", q="point")
def dot_2(v: Vector, p: Vector, q: Vector, *, offset: Scalar) -> Scalar:
    """Φ = v·(Q − P) − offset [m], shape (1,).  [Liu2013] eq. 18b, with an offset."""
    return dot(v, q - p) - offset


@builtin(inline=True, unit="m", p="point", q="point")
def distance(p: Vector, q: Vector, *, length: Scalar) -> Scalar:
    """Φ = |Q − P| − L [m], shape (1,).  Variant: distance_squared."""
    return norm(q - p) - length


@builtin(inline=True, unit="rad", guards=(2,), measure="chord", x="vector", y="vector", z="vector", v="vector")
def aligned(x: Vector, y: Vector, z: Vector, v: Vector) -> list[Scalar]:
    """Φ = (x·v, y·v, z·v − 1) [rad], shape (3,), for axes x, y, z of frame a and an axis v of body b: v = z.

    |Φ| = |v − z| = 2 sin(θ/2): smooth everywhere, with one solution, and with a maximum at the opposite axis.  The
    first two rows are the equations; their multipliers are the torques about x and y.  The third row is a guard: it
    excludes the opposite axis, and its gradient vanishes if the axes are aligned.
    """
    return [dot(x, v), dot(y, v), dot(z, v) - 1.0]


@builtin(unit="rad", a="orientation", b="orientation")
def rotation_vector(a: Quaternion, b: Quaternion) -> Vector:
    """Φ = log(a* ⊗ b) [rad], shape (3,), in the axes of frame a: one solution, b = a.

    At an angle of π, the first non-zero component of the axis is positive.
    """
    return relative_rotation_vector(a, b)


@builtin(unit="rad", between="inclination")
def angle(between: Scalar, *, angle: Scalar) -> Scalar:
    """Φ = atan2(|u × v|, u·v) − α [rad], shape (1,), 0 < α < π: accurate at all angles.  Variant: angle_cosine."""
    return between - angle


@builtin(unit="rad", judged_as="angle", u="vector", v="vector")
def angle_cosine(u: Vector, v: Vector, *, angle: Scalar) -> Scalar:
    """Φ = u·v − cos α [1], shape (1,): the paper's form; its gradient vanishes at α = 0, π.  [Liu2013] eq. 18c."""
    return dot(u, v) - cos(angle)


@builtin(unit="m²", judged_as="distance", p="point", q="point")
def distance_squared(p: Vector, q: Vector, *, length: Scalar) -> Scalar:
    """Φ = d·d − L² [m²], d = Q − P, shape (1,): the paper's form; no gradient at d = 0.  [Liu2013] eq. 18d."""
    d = q - p
    return dot(d, d) - length * length


@builtin(unit="rad", first="angle", second="angle")
def gear(first: Scalar, second: Scalar, *, ratio: Scalar, phase: Scalar) -> Scalar:
    """Φ = θ₂ − ratio·θ₁ − phase [rad], shape (1,): two counted angles in proportion."""
    return second - ratio * first - phase


@builtin(unit="m", lengths=("radius", "offset"), first="angle", second="displacement")
def rack(first: Scalar, second: Scalar, *, radius: Scalar, offset: Scalar) -> Scalar:
    """Φ = d − radius·θ − offset [m], shape (1,): a pinion on a rack, and with radius = pitch/2π a screw."""
    return second - radius * first - offset


@builtin(unit="rad", coordinate="angle")
def turned(coordinate: Scalar, *, angle: Scalar) -> Scalar:
    """Φ = θ − angle [rad], shape (1,), for a counted angle θ: the driver of a hinge."""
    return coordinate - angle


@builtin(unit="rad", guards=(0,), coordinate="angle")
def turn_limit(coordinate: Scalar, *, lower: Scalar, upper: Scalar) -> Scalar:
    """Φ = signed excess of θ over [lower, upper] [rad], shape (1,), zero within: an inequality."""
    return beyond(coordinate, lower, upper)


@builtin(unit="m", guards=(0,), coordinate="displacement")
def displacement_limit(coordinate: Scalar, *, lower: Scalar, upper: Scalar) -> Scalar:
    """Φ = signed excess of z·(Q − P) over [lower, upper] [m], shape (1,), zero within: an inequality."""
    return beyond(coordinate, lower, upper)


@builtin(unit="m", guards=(0,), coordinate="distance")
def distance_limit(coordinate: Scalar, *, lower: Scalar, upper: Scalar) -> Scalar:
    """Φ = signed excess of |Q − P| over [lower, upper] [m], shape (1,), zero within: an inequality."""
    return beyond(coordinate, lower, upper)


@builtin(unit="rad", guards=(0,), coordinate="inclination")
def inclination_limit(coordinate: Scalar, *, lower: Scalar, upper: Scalar) -> Scalar:
    """Φ = signed excess of the angle between two axes over [lower, upper] [rad], shape (1,), zero within."""
    return beyond(coordinate, lower, upper)


@builtin(unit="m", lengths=("distance",), x="vector", y="vector", p="point", q="point")
def radial(x: Vector, y: Vector, p: Vector, q: Vector, *, distance: Scalar) -> Scalar:
    """Φ = |(x·d, y·d)| − r [m], d = Q − P, shape (1,), r > 0: Q at a distance r from the line through P along x × y."""
    d = q - p
    u, v = dot(x, d), dot(y, d)
    return norm(Vector(u, v, u.graph.constant(0.0))) - distance


@builtin(unit="rad", u="vector", v="vector", x="vector", y="vector")
def twist(u: Vector, v: Vector, x: Vector, y: Vector) -> Scalar:
    """Φ = atan2(v·x − u·y, u·x + v·y) [rad], shape (1,), for axes u, v of frame a and x, y of frame b.

    If R = R_z(φ) R_y(β) R_z(ψ − φ) rotates frame a into frame b, Φ = ψ: the rotation about z that remains after the
    smallest rotation that maps z_a to z_b.  It is zero in a joint that transmits rotation at equal speeds.  It has no
    value if the axes z are opposed.
    """
    return atan2(dot(v, x) - dot(u, y), dot(u, x) + dot(v, y))
