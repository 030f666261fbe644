"""Every load by its definition, in NumPy, independent of the library.

A case adds one load to a rig and returns its wrenches: [(body, place in world, force [N], torque [N m])].  A new load
needs one row in ``LOADS``, with one case or more; the laws of all tests then cover it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cardan as cd
from cardan.dynamics.functions import Called, Recorded
from fuzz.geometry import matrix, quaternion, random_rotation, rotation

Z = np.array([0.0, 0.0, 1.0])
TIME = 0.7  # [s] at which loads are evaluated


class Place:
    """A frame or point in body axes, and its motion in world axes."""

    def __init__(self, rig, body, rng):
        self.rig, self.name = rig, body
        self.origin, self.R = rng.normal(size=3) * rig.unit, random_rotation(rng)
        if body == "ground":
            self.origin += rig.shift

    @property
    def body(self):
        return self.rig.m[self.name]

    @property
    def frame(self):
        return self.body.frame(self.origin, z=self.R[:, 2], x=self.R[:, 0])

    @property
    def point(self):
        return self.body.point(self.origin)

    @property
    def axes(self):
        return self.rig.A(self.name) @ self.R

    @property
    def p(self):
        return self.rig.r(self.name) + self.rig.A(self.name) @ self.origin

    def velocity(self, at=None):
        """Of the origin, or of the point of the body that is at a place in world."""
        return self.rig.v(self.name) + np.cross(
            self.rig.w(self.name), (self.p if at is None else at) - self.rig.r(self.name)
        )


class Rig:
    """Ground – hinge – a – slide – b, in a pose that closes both joints, with random velocities.

    unit: of length.  shift: of everything in world, the points of the ground included.  m: where the bodies are added;
    name: of the load.
    """

    def __init__(self, seed, unit=1.0, shift=0.0, m=None, name="load"):
        rng = np.random.default_rng(seed)
        self.unit, self.shift, self.m, self.name = unit, shift, m or cd.Mechanism("rig"), name
        for name in ("a", "b"):
            L = rng.normal(size=(3, 3))
            inertia = L @ L.T + 3.0 * np.eye(3)
            inertia = 0.5 * np.trace(inertia) * np.eye(3) - 0.5 * inertia
            self.m.body(name, center=rng.normal(size=3) * unit, inertia=inertia * unit**2, mass=2.0)
        self.ground, self.on_a, self.on_a2, self.on_b = (Place(self, body, rng) for body in ("ground", "a", "a", "b"))
        self.angle, self.turned, self.slid = rng.uniform(-3, 3), rng.uniform(-3, 3), rng.normal() * unit
        self.close("a", self.ground, self.on_a, self.angle, 0.0)
        self.close("b", self.on_a2, self.on_b, self.turned, self.slid)
        self.hinge = self.m.revolute("hinge", self.ground.frame, self.on_a.frame)
        self.slide = self.m.cylindrical("slide", self.on_a2.frame, self.on_b.frame)
        self.velocities = {name: (rng.normal(size=3) * unit, rng.normal(size=3)) for name in ("a", "b")}
        self.rng = rng

    def close(self, name, a, b, angle, along):
        R = a.axes @ rotation(Z, angle) @ b.R.T
        self.m[name].orientation = quaternion(R)
        self.m[name].position = a.p + along * a.axes[:, 2] - R @ b.origin

    def A(self, name):
        return np.eye(3) if name == "ground" else matrix(self.m[name].orientation)

    def r(self, name):
        return np.zeros(3) if name == "ground" else np.array(self.m[name].position)

    def v(self, name):
        return np.zeros(3) if name == "ground" else self.velocities[name][0]

    def w(self, name):
        return np.zeros(3) if name == "ground" else self.velocities[name][1]

    def place(self, name):
        return Place(self, name, self.rng)

    def number(self, power=0):
        """A random positive number in units of length to that power."""
        return float(self.rng.uniform(0.3, 2.0)) * self.unit**power

    def solver_velocities(self, system, velocities):
        v = []
        for k, name in enumerate(system.names):
            A, (rate, w) = self.A(name), velocities[name]
            v += [*(rate + np.cross(w, A @ self.m[name].center)), *(matrix(system.reference_axes[k]).T @ A.T @ w)]
        return np.array(v)


# -- cases: each adds one load to a rig and returns its wrenches by definition: [(body, place in world, force, torque)]


def along_line(a, b, effort):
    """effort(distance, rate) as a force that pushes two points apart."""
    d = b.p - a.p
    n = d / np.linalg.norm(d)
    f = effort(np.linalg.norm(d), n @ (b.velocity() - a.velocity())) * n
    return [(b.name, b.p, f, 0 * f), (a.name, a.p, -f, 0 * f)]


def about_axis(a, b, n, e):
    return [(b.name, b.p, 0 * n, e * n), (a.name, a.p, 0 * n, -e * n)]


def hinged(rig, effort):
    z = rig.ground.axes[:, 2]
    return about_axis(rig.ground, rig.on_a, z, effort(rig.angle, z @ rig.w("a")))


def slid(rig, effort):
    """effort on the displacement of the slide: the force on a acts where b is."""
    a, b, z = rig.on_a2, rig.on_b, rig.on_a2.axes[:, 2]
    f = effort(rig.slid, z @ (b.velocity() - a.velocity(b.p))) * z
    return [("b", b.p, f, 0 * f), ("a", b.p, -f, 0 * f)]


def linear(k, rest, c):
    return lambda x, rate: -k * (x - rest) - c * rate


def spring_between_points(rig):
    a, b, k, rest, c = rig.place("a"), rig.place("b"), rig.number(), rig.number(1), rig.number()
    rig.m.spring(rig.name, a.point, b.point, stiffness=k, rest=rest, damping=c)
    return along_line(a, b, linear(k, rest, c))


def spring_from_the_ground_without_rest_length(rig):
    a, b, k = rig.place("ground"), rig.place("b"), rig.number()
    rig.m.spring(rig.name, a.frame, b.point, stiffness=k)
    return along_line(a, b, linear(k, 0.0, 0.0))


def spring_of_a_hinge(rig):
    k, rest, c = rig.number(2), rig.number(), rig.number(2)
    rig.m.spring(rig.name, rig.hinge, stiffness=k, rest=rest, damping=c)
    return hinged(rig, linear(k, rest, c))


def spring_of_a_slide(rig):
    k, rest, c = rig.number(), rig.number(1), rig.number()
    rig.m.spring(rig.name, rig.slide, stiffness=k, rest=rest, damping=c, of="displacement")
    return slid(rig, linear(k, rest, c))


def spring_between_axes(rig):
    a, b, k, rest, c = rig.place("a"), rig.place("b"), rig.number(2), rig.number(), rig.number(2)
    rig.m.spring(rig.name, cd.coordinate(a.frame, b.frame, "inclination"), stiffness=k, rest=rest, damping=c)
    n = np.cross(a.axes[:, 2], b.axes[:, 2])
    between = math.atan2(np.linalg.norm(n), a.axes[:, 2] @ b.axes[:, 2])
    n /= np.linalg.norm(n)
    return about_axis(a, b, n, linear(k, rest, c)(between, n @ (rig.w("b") - rig.w("a"))))


def friction_of_a_hinge(rig):
    c, e, speed = rig.number(2), rig.number(2), rig.number()
    rig.m.friction(rig.name, rig.hinge, viscous=c, coulomb=e, speed=speed)
    return hinged(rig, lambda x, rate: -c * rate - e * math.tanh(rate / speed))


def friction_of_a_slide(rig):
    e = rig.number(1)
    rig.m.friction(rig.name, rig.slide.of("displacement"), coulomb=e, speed=1e-3 * rig.unit)
    return slid(rig, lambda x, rate: -e * math.tanh(rate / (1e-3 * rig.unit)))


def friction_with_the_default_speed(rig):
    e = rig.number(2)
    rig.m.friction(rig.name, rig.hinge, coulomb=e)
    return hinged(rig, lambda x, rate: -e * math.tanh(rate / 1e-3))


def actuator_constant(rig):
    e = rig.number(1)
    rig.m.actuator(rig.name, rig.slide, e, of="displacement")
    return slid(rig, lambda x, rate: e)


def actuator_recorded(rig):
    e, u = rig.number(1), rig.unit
    load = rig.m.actuator(
        rig.name, rig.slide.of("displacement"), lambda t, x, r: e * cd.sin(3 * t) * cd.tanh(x / u) - r
    )
    assert isinstance(load.action.function, Recorded)
    return slid(rig, lambda x, rate: e * math.sin(3 * TIME) * math.tanh(x / u) - rate)


def actuator_called(rig):
    e = rig.number(2)

    def f(t, x, rate):
        return e * t * x if rate > 0 else -e * t * math.sin(x)

    assert isinstance(rig.m.actuator(rig.name, rig.hinge, f).action.function, Called)
    return hinged(rig, lambda x, rate: f(TIME, x, rate))


def actuator_recorded_between_points(rig):
    a, b, e, u = rig.place("ground"), rig.place("b"), rig.number(1), rig.unit
    rig.m.actuator(rig.name, cd.coordinate(a.point, b.point, "distance"), lambda t, x, r: e * t * cd.cos(x / u) - r)
    return along_line(a, b, lambda x, rate: e * TIME * math.cos(x / u) - rate)


def actuator_called_between_points(rig):
    a, b, e = rig.place("a"), rig.place("b"), rig.number()

    def f(t, x, rate):
        return math.floor(10 * t) * (e * x - rate)

    rig.m.actuator(rig.name, cd.coordinate(a.point, b.point, "distance"), f)
    return along_line(a, b, lambda x, rate: f(TIME, x, rate))


def wrench_case(kind, axes, is_called):
    def case(rig):
        b, power = rig.place("b"), 1 if kind == "force" else 2
        f = np.array([rig.number(power), -rig.number(power), rig.number(power)])
        given = f
        if is_called:
            c, constant = rig.number(power - 1), f

            def given(t, state):
                assert np.allclose(state.velocities[0, :3], rig.v("a"), rtol=1e-12, atol=1e-12 * rig.unit)
                assert np.allclose(rig.A("a") @ state.velocities[0, 3:], rig.w("a"), rtol=1e-12, atol=1e-12)
                assert state.time == t
                return t * constant + c * (state["a"].position - state["b"].position)

            f = TIME * constant + c * (rig.r("a") - rig.r("b"))
        end = b.point if kind == "force" else b.body
        getattr(rig.m, kind)(rig.name, end, given, **({} if axes == "world" else {"axes": axes}))
        f = f if axes == "world" else rig.A("b") @ f
        return [("b", b.p, *((f, 0 * f) if kind == "force" else (0 * f, f)))]

    case.__name__ = f"{kind}_in_{axes}{'_called' if is_called else ''}"
    return case


def left_jacobian(phi):
    """exp(φ + δ) = exp(J δ) exp(φ)."""
    a = np.linalg.norm(phi)
    tilde = np.array([[0, -phi[2], phi[1]], [phi[2], 0, -phi[0]], [-phi[1], phi[0], 0]])
    return np.eye(3) + (1 - np.cos(a)) / a**2 * tilde + (a - np.sin(a)) / a**3 * tilde @ tilde


def bushing_case(first, is_full):
    def case(rig):
        a, b = rig.place(first), rig.place("b")
        scales = np.array([1.0] * 3 + [rig.unit] * 3)
        root, other = (rig.rng.normal(size=(6, 6)) * scales[:, None] for _ in range(2))
        K, C = root @ root.T, other @ other.T
        if is_full:
            rig.m.bushing(rig.name, a.frame, b.frame, K, damping=C)
        else:
            K, C = np.diag(np.diag(K)), np.diag(np.diag(C))
            rig.m.bushing(rig.name, a.frame, b.frame, np.diag(K), np.diag(C))
        R = a.axes.T @ b.axes
        p = quaternion(R)
        p = p if p[0] > 0 else -p
        angle = 2 * math.atan2(np.linalg.norm(p[1:]), p[0])
        phi = angle * p[1:] / np.linalg.norm(p[1:])
        J = left_jacobian(phi)
        x = np.concatenate([a.axes.T @ (b.p - a.p), phi])
        moved = a.axes.T @ (b.velocity() - a.velocity(b.p))
        rate = np.concatenate([moved, np.linalg.solve(J, a.axes.T @ (rig.w(b.name) - rig.w(a.name)))])
        e = -K @ x - C @ rate
        f, torque = a.axes @ e[:3], a.axes @ np.linalg.solve(J.T, e[3:])
        return [("b", b.p, f, torque), (a.name, b.p, -f, -torque)]

    case.__name__ = f"bushing_from_{first}_{'full' if is_full else 'diagonal'}"
    return case


def damper_case(first, is_full):
    def case(rig):
        a, b = rig.place(first), rig.place("b")
        root = rig.rng.normal(size=(6, 6)) * np.array([1.0] * 3 + [rig.unit] * 3)[:, None]
        C = root @ root.T if is_full else np.diag(np.diag(root @ root.T))
        rig.m.damper(rig.name, a.frame, b.frame, C if is_full else np.diag(C))
        moved, turned = b.velocity() - a.velocity(b.p), rig.w(b.name) - rig.w(a.name)
        e = -C @ np.concatenate([a.axes.T @ moved, a.axes.T @ turned])
        f, torque = a.axes @ e[:3], a.axes @ e[3:]
        return [("b", b.p, f, torque), (a.name, b.p, -f, -torque)]

    case.__name__ = f"damper_from_{first}_{'full' if is_full else 'diagonal'}"
    return case


@dataclass(frozen=True)
class Row:
    """A load: its cases.  ``conserves``: whether it has a potential energy."""

    cases: tuple[Callable[[Rig], list[Any]], ...]
    conserves: bool = False


LOADS = {
    "spring": Row(
        (
            spring_between_points,
            spring_from_the_ground_without_rest_length,
            spring_of_a_hinge,
            spring_of_a_slide,
            spring_between_axes,
        ),
        conserves=True,
    ),
    "friction": Row((friction_of_a_hinge, friction_of_a_slide, friction_with_the_default_speed)),
    "actuator": Row(
        (
            actuator_constant,
            actuator_recorded,
            actuator_called,
            actuator_recorded_between_points,
            actuator_called_between_points,
        )
    ),
    "force": Row(tuple(wrench_case("force", axes, c) for axes in ("world", "body") for c in (False, True))),
    "torque": Row(tuple(wrench_case("torque", axes, c) for axes in ("world", "body") for c in (False, True))),
    "bushing": Row(
        tuple(bushing_case(first, full) for first in ("ground", "a") for full in (False, True)), conserves=True
    ),
    "damper": Row(tuple(damper_case(first, full) for first in ("ground", "a") for full in (False, True))),
}
