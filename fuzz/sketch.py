"""Draw a mechanism in one pose in world coordinates, and convert it to a case with any unit, position and origins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardan.files.spec import joint_specs
from cardan.joints import REGISTRY
from fuzz.case import EXPECT_FAILURE, EXPECT_OK, GROUND, Body, Case, End, Joint
from fuzz.geometry import axes, cross, orthogonal, quaternion, random_direction, random_rotation, rotation
from fuzz.oracles.joints import JOINTS

# Kinds that are drawn.  The others replace some of them, see :mod:`fuzz.others`, so that the cases of a seed remain.
KINDS = tuple([kind for kind, row in JOINTS.items() if row.draw is not None])
APART = ("distance", "angle", "parallel", "perpendicular")  # of these, the points on a and b are not near each other


def takes_a_point(kind):
    """For a and b: whether a point will do."""
    return tuple([takes == "point" for takes in REGISTRY[kind].takes])


def lengths(kind):
    """Names of the options that are lengths [m]."""
    return [option.name for option in joint_specs()[kind].options.values() if option.quantity.unit == "length"]


@dataclass
class Drawn:
    """A joint with its ends in world coordinates: two points, two frames."""

    name: str
    kind: str
    a: str
    b: str
    p_a: Any
    p_b: Any
    R_a: Any
    R_b: Any
    options: dict[str, Any]


@dataclass
class Sketch:
    """Bodies with their poses (R, p) and joints between them, in world coordinates."""

    bodies: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    joints: list[Drawn] = field(default_factory=list)

    def body(self, p, R=None):
        name = f"b{len(self.bodies) + 1}"
        self.bodies[name] = (np.eye(3) if R is None else R, np.asarray(p, dtype=float))
        return name

    def pose(self, name):
        return (np.eye(3), np.zeros(3)) if name == GROUND else self.bodies[name]

    def joint(self, kind, a, b, p_a, p_b=None, z_a=None, z_b=None, x=None, **options):
        """Add a joint.  The end on b defaults to the end on a.  Both ends share x; by default x is arbitrary."""
        p_a = np.asarray(p_a, dtype=float)
        R_a = axes([0.0, 0.0, 1.0] if z_a is None else z_a, x)
        R_b = R_a if z_b is None else axes(z_b, x)
        name = f"j{len(self.joints) + 1}"
        p_b = p_a if p_b is None else np.asarray(p_b, dtype=float)
        self.joints.append(Drawn(name, kind, a, b, p_a, p_b, R_a, R_b, options))
        return name

    def satisfied(self, rng, kind, a, b, p, q, z):
        """Add a joint that the drawn pose satisfies: near p on a and near q on b, with the common axis z if any."""
        x = orthogonal(rng, z)
        y = cross(z, x)
        slide = rng.uniform(-0.7, 0.7, 2)
        row = JOINTS[kind]
        p_b, z_b, options, angle = row.draw(rng, p, q, x, y, z, slide)
        name = self.joint(kind, a, b, p, p_b, z, z_b, **options)
        drawn = self.joints[-1]
        if row.uses_x:
            drawn.R_a = drawn.R_b = axes(z, x)
        if angle:
            drawn.R_b = rotation(z, angle) @ drawn.R_a
        return name

    def size(self):
        """Extent of the drawing [m]."""
        points = [p for _, p in self.bodies.values()] + [p for j in self.joints for p in (j.p_a, j.p_b)]
        return float(np.ptp(np.array(points), axis=0).max(initial=0.0)) or 1.0

    def fits(self, kind, a, b):
        """Whether, with an additional joint between a and b, no group of bodies has more equations than freedoms."""
        names = list(self.bodies)
        more, more_rotational = JOINTS[kind].equations, JOINTS[kind].rotational
        number = {name: 1 << k for k, name in enumerate(names)}
        number[GROUND] = 1 << len(names)
        rows = [JOINTS[j.kind] for j in self.joints]
        pairs = [(number[j.a] | number[j.b], r.equations, r.rotational) for j, r in zip(self.joints, rows, strict=True)]
        both = number[a] | number[b]
        for group in range(1, 1 << (len(names) + 1)):
            if group & both != both:
                continue
            free = bin(group).count("1") - 1
            inside = [(e, t) for mask, e, t in pairs if mask & group == mask]
            equations, rotational = sum(e for e, _ in inside) + more, sum(t for _, t in inside) + more_rotational
            if equations > 6 * free or rotational > 3 * free:
                return False
        return True

    def finish(
        self,
        rng,
        family,
        variant,
        *,
        expect=EXPECT_OK,
        start="near",
        scale=1.0,
        away=0.0,
        origins=0.0,
        proof=None,
        options=None,
        plain=False,
    ):
        """The case in another unit of length, moved by ``away`` sizes, with body origins moved by ``origins`` sizes.

        start: ``exact``, ``near``, ``bad``, ``uniform``, ``flipped``.  plain: no random rigid motion.
        """
        size = self.size()
        R_m = np.eye(3) if plain else random_rotation(rng)
        t_m = np.zeros(3) if plain else scale * size * (away * random_direction(rng) + rng.uniform(-0.3, 0.3, 3))
        places, reference, bodies = {GROUND: (np.eye(3), np.zeros(3))}, {}, []
        for name, (R, p) in self.bodies.items():
            shift = origins * size * random_direction(rng) if origins else np.zeros(3)
            R, p = R_m @ R, scale * (R_m @ p) + t_m
            places[name] = R, p + R @ (scale * shift)
            reference[name] = [places[name][1].tolist(), quaternion(R).tolist()]
            R_s, p_s = disturbed(rng, start, R, p, t_m + scale * (R_m @ self.center()), scale * size)
            bodies.append(Body(name, (p_s + R_s @ (scale * shift)).tolist(), quaternion(R_s).tolist()))
        joints = [self._localised(rng, j, places, R_m, t_m, scale) for j in self.joints]
        case = Case(family, variant, expect, bodies, joints, options=dict(options or {}), proof=proof)
        if expect != EXPECT_FAILURE:
            case.reference = reference
        if rng.random() < 0.25 and start in ("bad", "uniform"):
            case.start = {b.name: [b.position, b.orientation] for b in bodies}
            for body in bodies:
                R, p = places[body.name]
                R, p = disturbed(rng, "near", R, p, p, scale * size)
                body.position, body.orientation = p.tolist(), quaternion(R).tolist()
        return case

    def center(self):
        return np.mean([p for _, p in self.bodies.values()], axis=0)

    def _localised(self, rng, j, places, R_m, t_m, scale):
        ends = []
        point_only = rng.random() < 0.5
        may_be = takes_a_point(j.kind)
        for body, p, R_f, may in ((j.a, j.p_a, j.R_a, may_be[0]), (j.b, j.p_b, j.R_b, may_be[1])):
            R, o = places[body]
            local = R.T @ (scale * (R_m @ p) + t_m - o)
            end = End(body, local.tolist())
            if not (may and point_only):
                R_f = R.T @ R_m @ R_f
                z = R_f[:, 2] * (10.0 ** rng.uniform(-2, 2) if rng.random() < 0.2 else 1.0)
                end.z = z.tolist()
                if JOINTS[j.kind].uses_x or rng.random() < 0.5:
                    end.x = (R_f[:, 0] + (rng.uniform(-1, 1) * R_f[:, 2] if rng.random() < 0.3 else 0.0)).tolist()
            ends.append(end)
        return Joint(j.name, j.kind, *ends, scaled(j.kind, j.options, scale))


def scaled(kind, options, scale):
    """Options of a joint in another unit of length."""
    return {key: float(scale * value) if key in lengths(kind) else value for key, value in options.items()}


def disturbed(rng, start, R, p, center, size):
    """A start pose of the given kind."""
    if start == "exact":
        return R, p
    if start == "near":
        return R @ rotation(random_direction(rng), rng.uniform(0, 0.2)), p + size * rng.uniform(-0.1, 0.1, 3)
    if start == "bad":
        return R @ rotation(random_direction(rng), rng.uniform(0.3, 2.5)), p + size * rng.uniform(-0.7, 0.7, 3)
    if start == "uniform":
        return random_rotation(rng), center + size * rng.uniform(-2, 2, 3)
    if start == "flipped":
        return (R @ rotation(np.eye(3)[rng.integers(3)], np.pi), p) if rng.random() < 0.6 else (R, p)
    raise ValueError(start)


def draw_start(rng):
    return str(rng.choice(["near", "bad", "uniform"], p=[0.3, 0.35, 0.35]))


def grow(rng, sketch, count, *, kinds=KINDS, ground=True, chain=0.5):
    """Add bodies as a tree: each is joined to a previous body or to the ground."""
    for _ in range(count):
        known = list(sketch.bodies)
        if ground:
            known.append(GROUND)
        if not known:
            parent = None
        elif sketch.bodies and rng.random() < chain:
            parent = list(sketch.bodies)[-1]
        else:
            parent = known[rng.integers(len(known))]
        at = np.zeros(3) if parent is None else sketch.pose(parent)[1]
        p = at + rng.uniform(0.3, 1.0) * random_direction(rng)
        name = sketch.body(p + rng.uniform(0.2, 1.0) * random_direction(rng), random_rotation(rng))
        if parent is not None:
            kind = str(rng.choice(kinds))
            a, b = (parent, name) if rng.random() < 0.6 else (name, parent)
            q = sketch.pose(b)[1] + rng.uniform(0.1, 0.8) * random_direction(rng)
            sketch.satisfied(rng, kind, a, b, p, q, random_direction(rng))


def close(rng, sketch, count, *, ground=True):
    """Add loop-closing joints such that no group of bodies has more equations than freedoms."""
    for _ in range(count):
        known = [*sketch.bodies, GROUND] if ground else list(sketch.bodies)
        if len(known) < 2:
            return
        for _ in range(8):
            a, b = (known[k] for k in rng.choice(len(known), 2, replace=False))
            kind = str(rng.choice(KINDS))
            if sketch.fits(kind, a, b):
                p, q = (sketch.pose(n)[1] + rng.uniform(0.2, 0.9) * random_direction(rng) for n in (a, b))
                p = 0.5 * (p + q) if kind not in APART else p
                sketch.satisfied(rng, kind, a, b, p, q, random_direction(rng))
                break


def close_wide(rng, sketch, count):
    """Add loop-closing joints to a tree of any size: no joint is in two loops, and each loop has enough freedoms."""
    above = {j.b if j.b in sketch.bodies and _later(j.b, j.a) else j.a: j for j in sketch.joints}
    used: set[str] = set()
    names = [*sketch.bodies, GROUND]
    for _ in range(8 * count):
        a, b = (names[k] for k in rng.choice(len(names), 2, replace=False))
        loop = _path(above, a) ^ _path(above, b)
        kind = str(rng.choice(KINDS))
        between = [j for j in sketch.joints if j.name in loop]
        freedoms = sum(6 - JOINTS[j.kind].equations for j in between)
        rotational = sum(3 - JOINTS[j.kind].rotational for j in between)
        if not loop & used and freedoms >= JOINTS[kind].equations and rotational >= JOINTS[kind].rotational:
            used |= loop
            p, q = (sketch.pose(n)[1] + rng.uniform(0.2, 0.9) * random_direction(rng) for n in (a, b))
            p = 0.5 * (p + q) if kind not in APART else p
            sketch.satisfied(rng, kind, a, b, p, q, random_direction(rng))


def _later(name, other):
    return other == GROUND or int(name[1:]) > int(other[1:])


def _path(above, name):
    """Names of the tree's joints from a body to the ground or to the root body."""
    found = set()
    while name in above:
        joint = above[name]
        found.add(joint.name)
        name = joint.a if joint.b == name else joint.b
    return found


def merge(sketch, part, offset, scale=1.0):
    """Add another drawing next to this one, scaled."""
    names = {GROUND: GROUND}
    renamed = {}
    for name, (R, p) in part.bodies.items():
        names[name] = sketch.body(scale * p + offset, R)
    for j in part.joints:
        renamed[j.name] = f"j{len(sketch.joints) + 1}"
        options = scaled(j.kind, j.options, scale)
        ends = names[j.a], names[j.b], scale * j.p_a + offset, scale * j.p_b + offset
        sketch.joints.append(Drawn(renamed[j.name], j.kind, *ends, j.R_a, j.R_b, options))
    return names, renamed
