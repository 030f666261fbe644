"""Laws of friction of joints: the largest effort against a motion, from the reaction of the joint.

R is the force of the joint on b, M its torque about the origin of frame b, both in the axes of frame b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from cardan.calls import explained
from cardan.errors import ModelError
from cardan.system import check

KINDS: Final = {
    "bearing": "revolute",
    "guide": "prismatic",
    "thread": "screw",
    "mesh": "gear",
}  # of the joints that have such a law


TEXT: Final = """

        friction: of the joint, by its reaction: cd.bearing(…) of a revolute, cd.guide(…) of a prismatic joint,
        cd.thread(…) of a screw, cd.mesh(…) of gears.
        """


@dataclass(frozen=True, slots=True)
class JointFriction:
    """Friction of a joint, made by ``cd.bearing``, ``cd.guide``, ``cd.thread`` or ``cd.mesh``.

    ``law``: which of these.  ``kinetic``, ``static``: its coefficients, in slip and where the joint sticks.
    ``length``, ``width`` [m]: of the joint, zero if none was given; of a thread its radius,
    and the tangent of its flank.
    """

    law: str
    kinetic: tuple[float, float, float]
    static: tuple[float, float, float]
    length: float = 0.0
    width: float = 0.0
    given: tuple[tuple[str, float], ...] = ()

    def __repr__(self) -> str:
        return f"{self.law}({', '.join(f'{word}={value:g}' for word, value in self.given)})"


@explained
def bearing(
    mu: float, radius: float, *, static: float | None = None, length: float | None = None, collar: float | None = None
) -> JointFriction:
    """Friction of a revolute joint, a pin in a bore: T = μ r (|R₁| + |R₂|)/√(1 + μ²) + μ r_c |R_z| [N m].

    This is the law of the friction circle: the whole force R₁ + R₂ = R_xy, friction included, is tangent to a circle of
    the radius r sin(arctan μ).  For the law μ r R of a normal force R give mu/√(1 − μ²) in place of mu.
    mu: coefficient of friction.  radius r [m]: of the pin.  static: the coefficient where the joint sticks, mu if none
    is given.  length [m]: of the bearing, R₁ and R₂ = R_xy/2 ± (M_y, −M_x)/length act at its ends; without it the
    torque across the axis causes no friction.  collar r_c [m]: mean radius of a thrust face; without it the axial force
    causes no friction.
    """
    pair, r = _coefficients("bearing", mu, static), check.positive(radius, "the radius of a bearing")
    long, thrust = _size("bearing", "length", length), _size("bearing", "collar", collar)
    kinetic, holding = ((m * r / math.hypot(1.0, m), m * r / math.hypot(1.0, m), m * thrust) for m in pair)
    return JointFriction("bearing", kinetic, holding, long, 0.0, _given(locals(), "mu radius static length collar"))


@explained
def guide(
    mu: float, *, length: float | None = None, width: float | None = None, static: float | None = None
) -> JointFriction:
    """Friction of a prismatic joint: F = μ (|N₁| + |N₂|) + 2 μ |M_z|/w [N], with the forces N at the ends of the guide.

    mu: coefficient of friction.  length L [m]: of the guide on b, with its middle at frame b: N₁, N₂ = R_xy/2 ± (M_y,
    −M_x)/L; without it the torque across the axis causes no friction.  width w [m]: friction acts at ± w/2, where N
    does, and so adds to M; and a torque about the axis is a pair of forces at this distance.  A guide jams where L is
    shorter than 2 μ times the lever of the force that moves it.  static: the coefficient where the joint sticks.
    """
    pair, long, wide = (
        _coefficients("guide", mu, static),
        _size("guide", "length", length),
        _size("guide", "width", width),
    )
    if wide and not long:
        raise ModelError("a guide was given a width, but no length; give length= [m] too")
    kinetic, holding = ((m, m, 2.0 * m / wide if wide else 0.0) for m in pair)
    return JointFriction("guide", kinetic, holding, long, wide, _given(locals(), "mu length width static"))


@explained
def thread(
    mu: float, radius: float, *, flank: float = 0.0, static: float | None = None, collar: float | None = None
) -> JointFriction:
    """Friction of a screw: T = r μ' (1 + t²)/(1 ∓ μ' t) |R_z| + μ r_c |R_z| [N m], t = |pitch|/(2π r).

    With the torque r t |R_z| of the thread itself, r tan(lead angle ± friction angle) |R_z| is needed to move b with
    the force R_z of the thread on it (+), or against it (−, the load runs back); t is tan(lead angle).  A
    screw holds by itself where t ≤ μ'.
    mu: coefficient of friction.  radius r [m]: mean radius of the thread.  flank β [rad]: of its profile in the axial
    section, μ' = μ √(1 + tan²β/(1 + t²)).  static: the coefficient where it sticks.  collar r_c [m]: mean radius of a
    thrust face.
    """
    pair, r = _coefficients("thread", mu, static), check.positive(radius, "the radius of a thread")
    slope = math.tan(check.number(flank, "the flank of a thread"))
    thrust = _size("thread", "collar", collar)
    kinetic, holding = ((m, m, m * thrust) for m in pair)
    given = _given(locals(), "mu radius flank static collar")
    return JointFriction("thread", kinetic, holding, r, abs(slope), given)


@explained
def mesh(efficiency: float, *, back: float | None = None) -> JointFriction:
    """Loss of gears, on the first: T = (1/η − 1) |τ| where the first drives, (1 − η_back) |τ| where it is driven.

    τ is the torque of the gears on the first coordinate.  efficiency η, above 0, at most 1: from the first gear to the
    second.  back η_back, at most 1: from the second to the first; zero or less of a worm that holds its load (put the
    worm first); η if none is given.
    """
    forth = check.positive(efficiency, "the efficiency of a mesh")
    other = forth if back is None else check.number(back, "back of a mesh")
    for word, value in (("the efficiency", forth), ("back", other)):
        if value > 1.0:
            raise ModelError(f"{word} of a mesh is {value:g}; it must be at most 1")
    k = 1.0 / forth - 1.0, 1.0 - other, 0.0
    return JointFriction("mesh", k, k, given=_given(locals(), "efficiency back"))


def friction_of(what: str, kind: str, options: dict[str, Any]) -> JointFriction | None:
    """The friction that a joint is given, taken out of its options, if joints of its kind may have one."""
    if kind not in KINDS.values() or "friction" not in options:
        return None
    given = options.pop("friction")
    fitting = [law for law, of in KINDS.items() if of == kind]
    if given is None:
        return None
    if not isinstance(given, JointFriction) or given.law not in fitting:
        ways = " or ".join(f"cd.{law}(…)" for law in fitting)
        raise ModelError(f"{what}: friction is {given!r}; it must be made by {ways} (m.friction adds a given effort)")
    return given


def _coefficients(law: str, mu: Any, static: Any) -> tuple[float, float]:
    """The kinetic and the static coefficient."""
    kinetic = check.positive(mu, f"mu of a {law}", zero=True)
    holding = kinetic if static is None else check.positive(static, f"static of a {law}", zero=True)
    if holding < kinetic:
        raise ModelError(f"static of a {law} is {holding:g}; it must not be below mu, which is {kinetic:g}")
    return kinetic, holding


def _size(law: str, word: str, value: Any) -> float:
    return 0.0 if value is None else check.positive(value, f"the {word} of a {law}")


def _given(values: dict[str, Any], words: str) -> tuple[tuple[str, float], ...]:
    return tuple((word, float(values[word])) for word in words.split() if values[word] is not None)
