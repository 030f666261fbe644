"""Mechanisms for the tests, each with its own judge: plain NumPy from the definitions (:mod:`fuzz.oracles.joints`).

A :class:`Model` is drawn in one pose that satisfies all its joints, with its features in world coordinates.
:meth:`Model.build` converts it to a ``cardan.Mechanism`` with a given unit of length, order, position and origins.  It
stores the local features, so that :meth:`Built.judge` can check any state by the same equations.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import cardan as cd
from fuzz.oracles.joints import JOINTS

X, Y, Z = np.eye(3)


# --- rotations ------------------------------------------------------------------------------------------------------


def product(p, q):
    """p ⊗ q of quaternions (w, x, y, z), by components: ten times faster than with NumPy's cross product."""
    a, b, c, d = p
    w, x, y, z = q
    return np.array(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ]
    )


def conjugate(p):
    return np.array([p[0], -p[1], -p[2], -p[3]])


def turned(p, u):
    """Vector part of p ⊗ (0, u) ⊗ p*, for p of any length."""
    return product(product(p, [0.0, *u]), conjugate(p))[1:]


def matrix(p):
    """Rotation matrix of p, which is normalised first; its columns are the rotated axes."""
    p = np.asarray(p) / np.linalg.norm(p)
    return np.column_stack([turned(p, axis) for axis in np.eye(3)])


def rotation(axis, angle):
    """Rotation matrix by Rodrigues' formula."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    tilde = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * tilde + (1 - np.cos(angle)) * tilde @ tilde


def quaternion(R):
    """The eigenvector of Bar-Itzhack's symmetric matrix for its largest eigenvalue: no branches, exact to rounding."""
    (a, b, c), (d, e, f), (g, h, i) = R
    K = np.array(
        [
            [a + e + i, h - f, c - g, d - b],
            [h - f, a - e - i, b + d, c + g],
            [c - g, b + d, e - a - i, f + h],
            [d - b, c + g, f + h, i - a - e],
        ]
    )
    return np.linalg.eigh(K)[1][:, -1]


def random_quaternion(rng):
    p = rng.normal(size=4)
    return p / np.linalg.norm(p)


def random_rotation(rng):
    return matrix(random_quaternion(rng))


def unit(v):
    v = np.asarray(v, dtype=float)
    return v / np.linalg.norm(v)


def axes(z, x=None):
    """Frame with the given z, and x made orthogonal to it (by default the library's, from (2, z₁², z₁ z₂))."""
    z = unit(z)
    x = np.array([2.0, z[0] ** 2, z[0] * z[1]]) if x is None else np.asarray(x, dtype=float)
    x = unit(x - z * (x @ z))
    return np.column_stack([x, np.cross(z, x), z])


def link_axes(x, z):
    """Frame with the given x, and z made orthogonal to it."""
    x = unit(x)
    z = unit(z - x * (x @ z))
    return np.column_stack([x, np.cross(z, x), z])


# --- errors of joints ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Local:
    """A frame in body axes: the body's name or "ground", origin and rotation."""

    body: str
    origin: np.ndarray
    R: np.ndarray

    def world(self, state):
        if self.body == "ground":
            return self.origin, self.R
        pose = state[self.body]
        R = matrix(pose.quaternion)
        return pose.position + R @ self.origin, R @ self.R


def miss(kind, a, b, state, options):
    """Error (length, angle) of a joint between two local frames in a state."""
    (p_a, R_a), (p_b, R_b) = a.world(state), b.world(state)
    return JOINTS[kind].misses(R_a.T @ (p_b - p_a), R_a.T @ R_b, options)


# --- models -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bond:
    """A joint of a model: features in world coordinates in the drawn pose (two points and two frames, often equal)."""

    name: str
    kind: str
    a: str
    b: str
    point_a: np.ndarray
    point_b: np.ndarray
    R_a: np.ndarray
    R_b: np.ndarray
    options: dict


@dataclass
class Built:
    """A mechanism built from a model, with its drawn poses and the data to judge a state."""

    mechanism: cd.Mechanism
    drawn: dict  # name → (position, quaternion); satisfies every joint
    size: float  # extent of the model, in the unit of this mechanism
    motion: tuple
    locals: list = field(default_factory=list)

    def judge(self, state):
        """Largest error of any joint: lengths relative to the size of the mechanism, angles [rad]."""
        worst = 0.0
        for kind, a, b, options in self.locals:
            length, angle = miss(kind, a, b, state, options)
            worst = max(worst, length / self.size, angle)
            if not np.isfinite(worst):
                return np.inf
        return worst

    def uniform_start(self, seed, span=3.0):
        """Random orientations, positions within ± span sizes of the drawn ones; equivariant under units and motion."""
        rng = np.random.default_rng(seed)
        R, _ = self.motion
        start = {}
        for name in sorted(self.drawn):
            position, orientation = self.drawn[name]
            offset = rng.uniform(-span, span, 3) * self.size
            start[name] = (position + R @ offset, product(orientation, random_quaternion(rng)))
        return start

    def near_start(self, seed, size=0.1):
        """Every body moved by up to ``size`` of the model and rotated by about ``size`` rad."""
        rng = np.random.default_rng(seed)
        R, _ = self.motion
        start = {}
        for name in sorted(self.drawn):
            position, orientation = self.drawn[name]
            offset = rng.uniform(-size, size, 3) * self.size
            twist = np.array([1.0, *(0.5 * rng.uniform(-size, size, 3))])
            start[name] = (position + R @ offset, product(orientation, unit(twist)))
        return start


class Model:
    """Bodies and joints, drawn in one assembled pose."""

    def __init__(self, name, size):
        self.name = name
        self.size = size
        self.bodies = {}
        self.bonds = []

    def body(self, name, R, position):
        self.bodies[name] = (np.asarray(R, dtype=float), np.asarray(position, dtype=float))
        return name

    def bond(self, kind, name, a, b, point, *, point_b=None, axis=Z, axis_b=None, x=None, **options):
        """Add a joint by world points and axes in the drawn pose; those of b default to those of a."""
        point = np.asarray(point, dtype=float)
        point_b = point if point_b is None else np.asarray(point_b, dtype=float)
        R_a = axes(axis, x)
        R_b = R_a if axis_b is None else axes(axis_b)
        self.bonds.append(Bond(name, kind, a, b, point, point_b, R_a, R_b, options))

    def build(self, *, unit=1.0, motion=None, bodies=None, bonds=None, origins=None):
        """The mechanism in a unit of length, moved by (R, t), names in a given order, origins displaced (body axes)."""
        R_m, t_m = (np.eye(3), np.zeros(3)) if motion is None else motion
        m = cd.Mechanism(self.name)
        built = Built(m, {}, self.size * unit, (R_m, t_m))
        places = {"ground": (np.eye(3), np.zeros(3))}
        made = {"ground": m.ground}
        for name in bodies or list(self.bodies):
            R, p = self.bodies[name]
            shift = np.zeros(3) if origins is None else np.asarray(origins[name], dtype=float)
            R, p = R_m @ R, R_m @ ((p + R @ shift) * unit) + t_m
            places[name] = R, p
            built.drawn[name] = p, quaternion(R)
            made[name] = m.body(name, position=p, orientation=quaternion(R))
        order = {bond.name: bond for bond in self.bonds}
        for name in bonds or list(order):
            bond = order[name]
            options = dict(bond.options)
            if "length" in options:
                options["length"] *= unit
            ends = []
            for body, point, R in ((bond.a, bond.point_a, bond.R_a), (bond.b, bond.point_b, bond.R_b)):
                R_WB, p_WB = places[body]
                ends.append(Local(body, R_WB.T @ (R_m @ (point * unit) + t_m - p_WB), R_WB.T @ R_m @ R))
            getattr(m, bond.kind)(
                name, *(made[e.body].frame(e.origin, z=e.R[:, 2], x=e.R[:, 0]) for e in ends), **options
            )
            built.locals.append((bond.kind, *ends, options))
        return built


def rsur():
    """Spatial four-bar, revolute – spherical – universal – revolute: crank 1, rocker 2; mobility 18 − 17 = 1."""
    model = Model("RSUR", 4.0)
    theta = 0.7
    A, axis_A = np.zeros(3), Z
    B = np.array([np.cos(theta), np.sin(theta), 0.0])
    D, axis_D = np.array([3.0, 0.0, 1.0]), unit([0.0, 1.0, 0.3])
    w = np.array([0.2, 0.0, 1.0])
    C = D + 2 * unit(w - axis_D * (axis_D @ w))
    u = unit(np.cross(axis_D, C - B))
    model.body("crank", link_axes(B - A, axis_A), A)
    model.body("coupler", link_axes(C - B, u), B)
    model.body("rocker", link_axes(C - D, axis_D), D)
    model.bond("revolute", "A", "ground", "crank", A, axis=axis_A)
    model.bond("spherical", "B", "crank", "coupler", B)
    model.bond("universal", "C", "coupler", "rocker", C, axis=u, axis_b=axis_D)
    model.bond("revolute", "D", "ground", "rocker", D, axis=axis_D)
    return model


def planar_4r():
    """Planar four-bar in space: four parallel revolutes, Grübler 18 − 20 = −2, mobility 1."""
    model = Model("planar 4R", 4.0)
    A, D = np.zeros(3), np.array([3.0, 0.0, 0.0])
    B = np.array([np.cos(1.0), np.sin(1.0), 0.0])
    rocker, coupler = 2.0, 3.0
    span = np.linalg.norm(D - B)
    e = (D - B) / span
    along = (coupler**2 - rocker**2 + span**2) / (2 * span)
    C = B + along * e + np.sqrt(coupler**2 - along**2) * np.cross(Z, e)
    model.body("crank", link_axes(B - A, Z), A)
    model.body("coupler", link_axes(C - B, Z), B)
    model.body("rocker", link_axes(C - D, Z), D)
    model.bond("revolute", "A", "ground", "crank", A)
    model.bond("revolute", "B", "crank", "coupler", B)
    model.bond("revolute", "C", "coupler", "rocker", C)
    model.bond("revolute", "D", "ground", "rocker", D)
    return model


def _stewart_points():
    base, plate = np.deg2rad([-10, 10, 110, 130, 230, 250]), np.deg2rad([-50, 50, 70, 170, 190, 290])
    b = np.column_stack([np.cos(base), np.sin(base), 0 * base])
    p = 0.6 * np.column_stack([np.cos(plate), np.sin(plate), 0 * plate])
    R, t = rotation([1, 2, 3], 0.2), np.array([0.05, -0.04, 1.2])
    return b, p @ R.T + t, R, t


def stewart():
    """One plate on six rods of fixed length: mobility 0."""
    base, plate, R, t = _stewart_points()
    model = Model("Stewart", 2.0)
    model.body("plate", R, t)
    for k in range(6):
        length = float(np.linalg.norm(plate[k] - base[k]))
        model.bond("distance", f"rod {k}", "ground", "plate", base[k], point_b=plate[k], length=length)
    return model


def stewart_ups():
    """Plate and six telescopic legs, universal – prismatic – spherical: 13 bodies, 78 − 72 = 6."""
    base, plate, R, t = _stewart_points()
    model = Model("Stewart UPS", 2.0)
    model.body("plate", R, t)
    for k in range(6):
        leg = plate[k] - base[k]
        v = unit(np.cross(leg, Z))
        R_leg = link_axes(leg, v)
        lower, upper = model.body(f"lower {k}", R_leg, base[k]), model.body(f"upper {k}", R_leg, plate[k])
        model.bond("universal", f"U{k}", "ground", lower, base[k], axis=np.cross(Z, v), axis_b=v)
        model.bond("prismatic", f"P{k}", lower, upper, base[k] + 0.5 * leg, axis=leg, x=v)
        model.bond("spherical", f"S{k}", upper, "plate", plate[k])
    return model


def bricard():
    """Bricard's orthogonal loop of six links of length 1, successive axes perpendicular: 30 − 30 = 0, mobility 1.

    Links in Denavit–Hartenberg form with alternating twists ± π/2 and alternating joint angles θ, φ; the loop closes if
    cos θ + cos φ + cos θ cos φ = 0.
    """
    model = Model("Bricard", 3.0)
    theta = np.arccos(-0.4)
    phi = np.arccos(0.4 / 0.6)
    R, p = np.eye(3), np.zeros(3)
    places = [(R, p)]  # frames of the joints before their rotation
    for k in range(6):
        R = R @ rotation(Z, theta if k % 2 == 0 else phi)
        p = p + R[:, 0]
        R = R @ rotation(X, np.pi / 2 if k % 2 == 0 else -np.pi / 2)
        places.append((R, p))
    links = ["ground", *(f"link {k}" for k in range(1, 6))]
    for k in range(1, 6):
        model.body(links[k], *places[k])
    for k in range(6):
        R, p = places[k]
        model.bond("revolute", f"hinge {k}", links[k - 1], links[k], p, axis=R[:, 2])
    return model


def change_point():
    """A parallelogram four-bar with all joints on one line, where two motions branch."""
    model = Model("change point", 3.0)
    points = {"A": (0, 0, 0), "B": (1, 0, 0), "C": (3, 0, 0), "D": (2, 0, 0)}
    _four_bar(model, points)
    return model


def stretched():
    """A four-bar whose ground link is as long as the sum of the others: its only pose is a dead point."""
    model = Model("stretched", 4.0)
    points = {"A": (0, 0, 0), "B": (1, 0, 0), "C": (2.5, 0, 0), "D": (4, 0, 0)}
    _four_bar(model, points)
    return model


def _four_bar(model, points):
    places = {name: np.array(p, dtype=float) for name, p in points.items()}
    model.body("crank", np.eye(3), places["A"])
    model.body("coupler", np.eye(3), places["B"])
    model.body("rocker", np.eye(3), places["D"])
    for name, a, b in (("A", "ground", "crank"), ("B", "crank", "coupler"), ("C", "coupler", "rocker")):
        model.bond("revolute", name, a, b, places[name])
    model.bond("revolute", "D", "ground", "rocker", places["D"])


BENCHMARKS = {"RSUR": rsur, "planar 4R": planar_4r, "Stewart": stewart, "Stewart UPS": stewart_ups, "Bricard": bricard}


def slider_crank():
    """With masses, and the radius of its crank as a parameter."""
    mass = {"mass": 1.0, "inertia": 0.01 * np.eye(3)}
    m = cd.Mechanism("engine")
    radius = m.parameter("radius", 0.1, lower=0.01, upper=0.2)
    crank = m.body("crank", orientation=((0, 0, 1), 0.4), **mass)
    rod = m.body("rod", position=(0.1, 0.04, 0), **mass)
    piston = m.body("piston", position=(0.4, 0, 0), **mass)
    m.revolute("main", m.ground.frame(), crank.frame())
    m.revolute("pin", crank.frame((radius, 0, 0)), rod.frame())
    m.revolute("wrist", rod.frame((0.3, 0, 0)), piston.frame())
    m.prismatic("guide", m.ground.frame(z=(1, 0, 0), x=(0, 0, 1)), piston.frame(z=(1, 0, 0), x=(0, 0, 1)))
    return m
