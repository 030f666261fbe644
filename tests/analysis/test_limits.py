"""Laws of limits: a thousand random mechanisms, judged by coordinates that NumPy computes from the poses."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from linkages import FourBar, X, Y, Z, heading, polar
from mechanisms import Local, random_quaternion, random_rotation

TURN = 2 * np.pi
INF = np.inf
REUSE = 1e-11  # [rad] and, relative to the extent, [m]: ten times the tolerance of an assembly
REACHED = 1e-9  # tolerance of the library for active limits
CASES = 1000


# --- coordinates, computed from poses ---------------------------------------------------------------------------------


def angle(a, b, state):
    """From x of frame a to x of frame b about z of a, in (−π, π]."""
    (_, R), (_, S) = a.world(state), b.world(state)
    return float(np.angle(complex(S[:, 0] @ R[:, 0], S[:, 0] @ R[:, 1])))


def crossing_angle(a, b, state):
    """From x of frame a to z of frame b about z of a."""
    (_, R), (_, S) = a.world(state), b.world(state)
    return float(np.angle(complex(S[:, 2] @ R[:, 0], S[:, 2] @ R[:, 1])))


def along(axis):
    def read(a, b, state):
        (p, R), (q, _) = a.world(state), b.world(state)
        return float(R[:, axis] @ (q - p))

    return read


def apart(a, b, state):
    (p, _), (q, _) = a.world(state), b.world(state)
    return float(np.linalg.norm(q - p))


def inclination(a, b, state):
    (_, R), (_, S) = a.world(state), b.world(state)
    return float(2 * np.arctan2(np.linalg.norm(R[:, 2] - S[:, 2]), np.linalg.norm(R[:, 2] + S[:, 2])))


@dataclass
class Limit:
    """One limit and a function that computes its coordinate; ``turns`` names the joint whose whole turns are added."""

    name: str
    lower: float
    upper: float
    read: object
    a: Local
    b: Local
    unit: str
    turns: str = ""

    def value(self, state):
        found = self.read(self.a, self.b, state)
        if self.turns:
            counted = state.angles[self.turns]
            found += TURN * round((counted - found) / TURN)
            assert abs(found - counted) <= 1e-9 * max(1.0, abs(found))  # the counted angle agrees with the pose
        return found


@dataclass
class Case:
    """A mechanism with limits: whether they can be met, and a start."""

    mechanism: cd.Mechanism
    feasible: bool
    limits: list[Limit] = field(default_factory=list)
    checks: list = field(default_factory=list)  # equations between values: each gives a residual
    start: dict | None = None
    time: float | None = None
    forced: tuple = ()  # bounds that every solution reaches: (name, "lower" or "upper")

    def limit(self, name, coordinate, lower, upper, read, a, b, unit_, turns=""):
        self.mechanism.limit(name, coordinate, lower=lower, upper=upper)
        self.limits.append(Limit(name, lower, upper, read, a, b, unit_, turns))


def anywhere(m, rng):
    return {name: (rng.uniform(-3, 3, 3), random_quaternion(rng)) for name in m.bodies}


def frames(body, rng, ground=False):
    """A random frame on a body, and the same for NumPy."""
    origin, R = rng.uniform(-1, 1, 3), random_rotation(rng)
    return body.frame(origin, z=R[:, 2], x=R[:, 0]), Local("ground" if ground else body.name, origin, R)


def interval(rng, low, high):
    """A random range with one bound or two."""
    ends = np.sort(rng.uniform(low, high, 2))
    return [(ends[0], ends[1]), (ends[0], INF), (-INF, ends[1])][rng.integers(3)]


# --- families ---------------------------------------------------------------------------------------------------------


FREE = {  # joint: free coordinates, how each is computed, and the range of random limits
    "revolute": {"angle": (angle, -3, 3, "rad")},
    "prismatic": {"displacement": (along(2), -2, 2, "m")},
    "cylindrical": {"angle": (angle, -3, 3, "rad"), "displacement": (along(2), -2, 2, "m")},
    "planar": {"x": (along(0), -2, 2, "m"), "y": (along(1), -2, 2, "m"), "angle": (angle, -3, 3, "rad")},
    "universal": {"angle_a": (crossing_angle, -3, 3, "rad"), "angle_b": (None, -3, 3, "rad")},
    "parallel": {"angle": (angle, -3, 3, "rad")},
}


def one_joint(rng):
    """One joint to the ground, all its coordinates limited, from a random pose."""
    kind = list(FREE)[rng.integers(len(FREE))]
    m = cd.Mechanism()
    body = m.body("b")
    (frame_a, a), (frame_b, b) = frames(m.ground, rng, True), frames(body, rng)
    joint = getattr(m, kind)("J", frame_a, frame_b)
    case = Case(m, True)
    for word, (read, low, high, unit_) in FREE[kind].items():
        ends = (b, a) if word == "angle_b" else (a, b)
        key = "J" if word == "angle" else f"J.{word}"
        turns = key if unit_ == "rad" else ""
        bounds = interval(rng, low, high)
        case.limit(f"L {word}", joint.of(word), *bounds, read or crossing_angle, *ends, unit_, turns)
    case.start = anywhere(m, rng)
    return case


def reach(rng):
    """An arm on a hinge with limits on the distance of its tip from a point: the range of this distance is known."""
    m = cd.Mechanism()
    arm = m.body("arm")
    radius, R = rng.uniform(0.5, 1.5), random_rotation(rng)
    m.revolute("J", m.ground.frame(z=R[:, 2], x=R[:, 0]), arm.frame())
    post = R @ (*polar(rng.uniform(0.3, 2.5), rng.uniform(0, 6)), rng.uniform(-1, 1))
    local = R.T @ post
    flat = np.hypot(local[0], local[1])
    nearest, furthest = np.hypot(flat - radius, local[2]), np.hypot(flat + radius, local[2])
    tip, end = Local("arm", radius * X, np.eye(3)), Local("ground", post, np.eye(3))
    rope = cd.coordinate(m.ground.point(post), arm.point(radius * X), "distance")
    feasible = bool(rng.random() < 0.6)
    if rng.random() < 0.5:
        upper = nearest + (furthest - nearest) * rng.uniform(0.1, 0.9) if feasible else nearest * rng.uniform(0.3, 0.9)
        bounds = (-INF, upper)
    else:
        lower = furthest - (furthest - nearest) * rng.uniform(0.1, 0.9) if feasible else furthest * rng.uniform(1.1, 2)
        bounds = (lower, INF)
    case = Case(m, feasible)
    case.limit("rope", rope, *bounds, apart, end, tip, "m")
    case.start = anywhere(m, rng)
    return case


def cone(rng):
    """A ball joint with limited tilt, and a second cone about another axis; the cones may or may not intersect."""
    m = cd.Mechanism()
    stick = m.body("stick")
    m.spherical("J", m.ground.point(), stick.point())
    axes_ = [random_rotation(rng) for _ in range(2)]
    between = np.arccos(np.clip(axes_[0][:, 2] @ axes_[1][:, 2], -1, 1))
    half = rng.uniform(0.3, 1.3, 2)
    feasible = bool(half.sum() > between)
    if abs(half.sum() - between) < 0.05:
        return cone(rng)  # too close to decide
    case = Case(m, feasible)
    for k, R in enumerate(axes_):
        tilt = cd.coordinate(m.ground.frame(z=R[:, 2], x=R[:, 0]), stick.frame(z=Z, x=X), "inclination")
        ends = Local("ground", np.zeros(3), R), Local("stick", np.zeros(3), np.eye(3))
        case.limit(f"cone {k}", tilt, -INF, half[k], inclination, *ends, "rad")
    case.start = anywhere(m, rng)
    return case


def geared(rng):
    """Two hinges in a ratio, both limited over several turns: θ₂ = ratio·θ₁ + phase leaves a range for θ₁, or none."""
    m = cd.Mechanism()
    one, two = m.body("one"), m.body("two")
    A = m.revolute("A", m.ground.frame(x=X), one.frame(x=X))
    B = m.revolute("B", m.ground.frame((2, 0, 0), x=X), two.frame(x=X))
    ratio, phase = rng.choice([-1, 1]) * rng.uniform(0.3, 3), rng.uniform(-1, 1)
    m.gear("G", A, B, ratio=ratio, phase=phase)
    first = np.sort(rng.uniform(-30, 30, 2))
    image = np.sort(ratio * first + phase)
    feasible = bool(rng.random() < 0.6)
    gap = rng.uniform(0.3, 3)
    if feasible:
        middle = rng.uniform(*image)
        second = (middle - rng.uniform(0.1, 2), middle + rng.uniform(0.1, 2))
    else:
        second = (image[1] + gap, image[1] + gap + 1) if rng.random() < 0.5 else (image[0] - gap - 1, image[0] - gap)
    case = Case(m, feasible)
    ground, at = Local("ground", np.zeros(3), np.eye(3)), Local("ground", 2 * X, np.eye(3))
    case.limit("first", A, *first, angle, ground, Local("one", np.zeros(3), np.eye(3)), "rad", "A")
    case.limit("second", B, *second, angle, at, Local("two", np.zeros(3), np.eye(3)), "rad", "B")
    case.checks.append(lambda state: state.angles["B"] - ratio * state.angles["A"] - phase)
    case.start = anywhere(m, rng) if rng.random() < 0.5 else None
    return case


def touching(rng):
    """Two hinges coupled 1:1, limited from above and from below by the same angle: there is only one pose."""
    m = cd.Mechanism()
    one, two = m.body("one"), m.body("two")
    A = m.revolute("A", m.ground.frame(x=X), one.frame(x=X))
    B = m.revolute("B", m.ground.frame((2, 0, 0), x=X), two.frame(x=X))
    ratio, bound = rng.choice([-1, 1]) * rng.uniform(0.5, 2), rng.uniform(-9, 9)
    m.gear("G", A, B, ratio=ratio)
    other = (ratio * bound, INF) if ratio > 0 else (-INF, ratio * bound)
    case = Case(m, True, forced=(("first", "upper"), ("second", "lower" if ratio > 0 else "upper")))
    ground, at = Local("ground", np.zeros(3), np.eye(3)), Local("ground", 2 * X, np.eye(3))
    case.limit("first", A, -INF, bound, angle, ground, Local("one", np.zeros(3), np.eye(3)), "rad", "A")
    case.limit("second", B, *other, angle, at, Local("two", np.zeros(3), np.eye(3)), "rad", "B")
    case.start = anywhere(m, rng) if rng.random() < 0.5 else None
    return case


def driven(rng):
    """A driven screw: within its limits, beyond them, or exactly at one."""
    m = cd.Mechanism()
    nut = m.body("nut")
    (frame_a, a), (frame_b, b) = frames(m.ground, rng, True), frames(nut, rng)
    pitch = rng.choice([-1, 1]) * rng.uniform(0.1, 0.5)
    J = m.screw("J", frame_a, frame_b, pitch=pitch)
    speed, time = rng.uniform(-9, 9), rng.uniform(0, 5)
    m.drive("motor", J, lambda t: speed * t, of="angle")
    where = pitch * speed * time / TURN
    place = rng.integers(3)
    width = rng.uniform(0.01, 1.0)
    if place == 0:
        bounds, feasible, forced = (where - width, where + width), True, ()
    elif place == 1:
        bounds, feasible, forced = (where + width, where + 2 * width), False, ()
    else:
        bounds, feasible, forced = (where - width, where), True, (("stroke", "upper"),)
    case = Case(m, feasible, forced=forced, time=time)
    case.limit("stroke", J.of("displacement"), *bounds, along(2), a, b, "m")
    case.checks.append(lambda state: state.angles["J"] - speed * time)
    case.start = anywhere(m, rng) if rng.random() < 0.5 else None
    return case


def rocker(rng):
    """A crank-rocker whose rocker is limited within its range, across one end of it, or outside."""
    bar = FourBar(1, 2.5, 2, 3)
    swing = [heading(bar.corner(t) - (bar.d, 0)) for t in np.linspace(0, TURN, 400)]
    low, high = min(swing), max(swing)
    m = bar.build(rng.uniform(0, TURN))
    feasible = bool(rng.random() < 0.7)
    if feasible:
        middle = rng.uniform(low, high)
        bounds = (middle - rng.uniform(0.05, 0.5), middle + rng.uniform(0.05, 0.5))
    else:
        bounds = (high + 0.1, 3.1)  # also outside the range of the other branch, its mirror image
    case = Case(m, feasible)
    ends = Local("ground", bar.d * X, np.eye(3)), Local("rocker", np.zeros(3), np.eye(3))
    case.limit("stop", m["D"], *bounds, angle, *ends, "rad", "D")
    poses = m.state
    case.start = {
        name: (pose.position + rng.uniform(-0.2, 0.2, 3), pose.quaternion + rng.uniform(-0.1, 0.1, 4))
        for name, pose in poses.items()
    }
    return case


def stage(rng):
    """Two slides and a link: a point in a box, at a distance from another point outside or inside the box."""
    m = cd.Mechanism()
    one, two = m.body("one"), m.body("two")
    m.prismatic("P", m.ground.frame(z=X, x=Y), one.frame(z=X, x=Y))
    m.prismatic("Q", one.frame(z=Y, x=Z), two.frame(z=Y, x=Z))
    box = rng.uniform(0.3, 1.5, 2)
    to = rng.uniform(-2, 2, 2)
    gap = np.hypot(*np.maximum(np.abs(to) - box, 0.0))  # from the point to the box
    length = rng.uniform(0.2, 2.0)
    furthest = np.hypot(*(np.abs(to) + box))
    if min(abs(gap - length), abs(furthest - length)) < 0.05:
        return stage(rng)
    m.distance("rod", m.ground.point((*to, 0)), two.point(), length)
    case = Case(m, bool(gap < length < furthest))
    g, o = Local("ground", np.zeros(3), np.eye(3)), np.zeros(3)
    case.limit("x", m["P"], -box[0], box[0], along(0), g, Local("one", o, np.eye(3)), "m")
    case.limit("y", m["Q"], -box[1], box[1], along(1), Local("one", o, np.eye(3)), Local("two", o, np.eye(3)), "m")
    case.checks.append(lambda state: np.linalg.norm(state["two"].position[:2] - to) - length)
    case.start = anywhere(m, rng)
    return case


FAMILIES = [one_joint, reach, cone, geared, touching, driven, rocker, stage]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_limit_is_exceeded_and_the_active_ones_are_those_that_are_reached(family):
    verdicts = {True: 0, False: 0}
    active_seen = 0
    for index in range(CASES // len(FAMILIES)):
        rng = np.random.default_rng([index, FAMILIES.index(family)])
        case = family(rng)
        m = case.mechanism
        formulation = list(formulations.REGISTRY)[index % 2]
        result = m.assemble(case.start, time=case.time, formulation=formulation, restarts=None if case.feasible else 12)
        verdicts[case.feasible] += 1
        assert result.ok == case.feasible, (index, result.text())
        if not result.ok:
            assert result.residual > 1e-3  # far above any tolerance
            continue
        length = m.system.length or 1.0
        reached = set()
        for limit in case.limits:
            value = limit.value(result.state)
            room = REUSE * (length if limit.unit == "m" else max(1.0, abs(value)))
            assert limit.lower - room <= value <= limit.upper + room, (index, limit.name, value)
            near = REACHED * (length if limit.unit == "m" else max(1.0, abs(value)))
            reached |= {(limit.name, "lower")} if value <= limit.lower + near else set()
            reached |= {(limit.name, "upper")} if value >= limit.upper - near else set()
        assert {(a.name, a.bound) for a in result.active} == reached, index
        assert reached >= set(case.forced), index
        active_seen += bool(reached)
        for check in case.checks:
            assert abs(check(result.state)) <= 1e-10, index
        for one in result.active:
            limit = next(x for x in case.limits if x.name == one.name)
            assert one.unit == limit.unit
            assert abs(one.value - limit.value(result.state)) <= 1e-12 * max(1, abs(one.value))
            assert f"limit {one.name!r} is at its {one.bound} bound" in result.text()
            assert one._asdict() in result.as_dict()["active"]
    assert verdicts[True] >= 40
    assert active_seen >= 10
    if family not in (one_joint, touching):
        assert verdicts[False] >= 20


# --- one by one -------------------------------------------------------------------------------------------------------


def slide(**bounds):
    m = cd.Mechanism("slide")
    block = m.body("block", position=(0, 0, 0.25))
    m.prismatic("P", m.ground.frame(x=X), block.frame(x=X))
    m.limit("stop", m["P"], **bounds)
    return m


def test_a_coordinate_within_its_limits_is_unchanged():
    m = slide(lower=0.0, upper=1.0)
    result = m.assemble()
    assert (result.ok, result.iterations, result.active) == (True, 0, [])
    assert result.state.coordinates.tolist() == m.state.coordinates.tolist()


@pytest.mark.parametrize(("bound", "value"), [("lower", 0.5), ("upper", -2.0)])
def test_a_coordinate_beyond_a_limit_is_moved_to_the_limit(bound, value):
    result = slide(**{bound: value}).assemble()
    assert result.ok
    (one,) = result.active
    assert (one.name, one.bound, one.unit) == ("stop", bound, "m")
    assert abs(one.value - value) <= 1e-11 and abs(result.state["block"].position[2] - value) <= 1e-11


def test_two_equal_bounds_fix_the_coordinate_and_are_both_active():
    result = slide(lower=0.7, upper=0.7).assemble()
    assert result.ok and abs(result.state["block"].position[2] - 0.7) <= 1e-11
    assert [one.bound for one in result.active] == ["lower", "upper"]


def test_a_limit_removes_no_degree_of_freedom_and_is_no_equation():
    m = slide(lower=0.5)
    bare = slide(lower=0.5)
    bare.remove("stop")
    for state in (m.state, m.assemble().state):
        one, other = m.diagnose(state), bare.diagnose(state)
        assert (one.dof, one.undriven, one.rank, one.gruebler, one.equations) == (1, 1, 5, 1, 5)
        assert (other.dof, other.rank) == (1, 5)
    assert m["stop"].equations == 0
    assert not m.diagnose(m.state).assembled and m.diagnose(m.assemble().state).assembled


def test_a_limit_that_cannot_be_met_is_the_worst_with_its_residual():
    m = slide(lower=0.5)
    m.drive("motor", m["P"], 0.2)
    result = m.assemble()
    assert not result.ok and result.status is cd.Status.CONFLICT
    found = {v.name: v.residual for v in result.worst if v.unit == "m"}
    assert found["stop"] + found["motor"] == pytest.approx(0.3, abs=1e-6)  # the two share the error
    assert {v.name for v in result.worst[:2]} == {"stop", "motor"}


def test_a_conflict_lists_the_limits_that_are_reached():
    """Without its limit, the carriage could slide to where the tie can be met."""
    m = cd.Mechanism()
    a, b = m.body("a", position=(2.0, 0, 0)), m.body("b", position=(2.5, 1.0, 0))
    m.prismatic("A", m.ground.frame(z=(1, 0, 0)), a.frame(z=(1, 0, 0)))
    m.revolute("B", a.frame((0.5, 1.0, 0)), b.frame())
    m.distance("tie", m.ground.point((-2, 0, 0)), b.point(), 1.2)
    assert m.assemble().ok
    m.limit("stop", m["A"], lower=1.5, upper=4.5)
    m.limit("idle", m["B"], lower=-9.0, upper=9.0)
    result = m.assemble()
    assert result.status is cd.Status.CONFLICT
    assert "limit 'stop' is at its lower bound, and may be a cause" in result.text()
    assert "'idle'" not in result.text()
    assert "remove one" not in result.text()


def test_limits_of_an_angle_hold_over_many_turns():
    m = cd.Mechanism()
    wheel = m.body("wheel")
    m.revolute("A", m.ground.frame(x=X), wheel.frame(x=X))
    m.limit("stop", m["A"], lower=TURN * 150.2, upper=TURN * 150.3)
    result = m.assemble()
    assert result.ok
    assert result.state.turns == {"A": 150} and result.restarts == 0
    assert abs(result.state.angles["A"] - TURN * 150.2) <= 1e-9
    assert [(one.name, one.bound) for one in result.active] == [("stop", "lower")]


@pytest.mark.parametrize("many", [False, True])
def test_whole_turns_are_those_with_which_a_limited_angle_is_moved_the_least(many):
    """For example a drum at 10.5 rad with limits 10 … 11, and one at 0.6 rad and one turn with limits 0.2 … 1."""
    rng = np.random.default_rng(60)
    cases = [(10.5, 10.0, 11.0, 0), (0.6, 0.2, 1.0, 1), (0.6, 0.2, 1.0, -3)]
    for _ in range(200):
        lower = rng.uniform(-30, 30)
        width = rng.choice([0.1, 3.0, 8.0]) * rng.random()
        cases.append((rng.uniform(-40, 40), lower, lower + width, int(rng.integers(-3, 4))))
    for drawn, lower, upper, turns in cases:
        m = cd.Mechanism()
        drum = m.body("drum", orientation=(np.cos(drawn / 2), 0, 0, np.sin(drawn / 2)))
        joint = m.revolute("A", m.ground.frame(), drum.frame())
        m.limit("stop", joint, lower=lower, upper=upper)
        first = np.remainder(drawn + np.pi, TURN) - np.pi + TURN * turns
        start = m.system.state(None, np.array([first]))
        every = first + TURN * np.arange(-20, 21)
        beyond = np.maximum(np.maximum(lower - every, every - upper), 0.0)
        state = m.assemble_many([start]).state(0) if many else m.assemble(start).state
        found = joint.coordinate(state)
        assert lower - 1e-11 <= found <= upper + 1e-11
        assert abs(found - every).min() <= beyond.min() + 1e-11  # moved no more than it must
        if beyond.min() == 0.0:
            assert abs(np.remainder(found - first + np.pi, TURN) - np.pi) <= 1e-12


def test_a_limit_of_a_small_piece_is_judged_by_the_size_of_that_piece():
    """A gap of 10 nm is not active in a small piece, although another piece is large."""
    m = cd.Mechanism("ship")
    hull, hand = m.body("hull", position=(100, 0, 0)), m.body("hand", position=(0, 0, 1e-8))
    m.distance("tie", m.ground.point(), hull.point(), 100.0)
    m.prismatic("P", m.ground.frame((1e-3, 0, 0), x=X), hand.frame((1e-3, 0, 0), x=X))
    m.limit("stop", m["P"], lower=0.0, upper=1e-6)
    result = m.assemble()
    assert result.ok and result.iterations == 0
    assert result.active == []


BAD_LIMITS = {
    "no bounds": (lambda m: m.limit("new", m["P"]), ["limit 'new'", "neither lower nor upper"]),
    "bounds at infinity": (lambda m: m.limit("new", m["P"], lower=-INF, upper=INF), ["limit 'new'", "neither"]),
    "crossed bounds": (
        lambda m: m.limit("new", m["P"], lower=1.0, upper=0.5),
        ["limit 'new'", "lower is 1.0", "upper is 0.5", "above"],
    ),
    "NaN": (lambda m: m.limit("new", m["P"], lower=float("nan")), ["limit 'new'", "lower", "nan", "finite"]),
    "wrong infinity": (lambda m: m.limit("new", m["P"], lower=INF), ["limit 'new'", "lower", "inf", "finite"]),
    "words": (lambda m: m.limit("new", m["P"], upper="high"), ["limit 'new'", "upper", "'high'", "number"]),
    "None": (lambda m: m.limit("new", m["P"], upper=None), ["limit 'new'", "upper", "None", "number"]),
    "a truth value": (lambda m: m.limit("new", m["P"], upper=True), ["limit 'new'", "upper", "True", "number"]),
    "a joint without coordinates": (
        lambda m: m.limit("new", m["S"], upper=1.0),
        ["limit 'new'", "'S'", "spherical", "none", "cd.coordinate("],
    ),
    "a joint with several": (
        lambda m: m.limit("new", m["C"], upper=1.0),
        ["limit 'new'", "'C'", "cylindrical", "'angle'", "'displacement'", "joint.of("],
    ),
    "a coordinate it has not": (
        lambda m: m.limit("new", m["C"], upper=1.0, of="x"),
        ["limit 'new'", "'C'", "'x'", "'angle'", "'displacement'"],
    ),
    "a choice of a coordinate": (
        lambda m: m.limit("new", m["C"].of("angle"), upper=1.0, of="displacement"),
        ["limit 'new'", "of='displacement'", "omit of="],
    ),
    "a name": (lambda m: m.limit("new", "Q", upper=1.0), ["limit 'new'", "no joint", "'Q'"]),
    "a body": (lambda m: m.limit("new", m["b"], upper=1.0), ["limit 'new'", "<Body 'b'>", "must be a joint"]),
    "a negative distance": (
        lambda m: m.limit("new", cd.coordinate(m.ground.point(), m["b"].point(), "distance"), upper=-1.0),
        ["limit 'new'", "-1.0", "distance is never negative"],
    ),
    "an inclination beyond half a turn": (
        lambda m: m.limit("new", cd.coordinate(m.ground.frame(), m["b"].frame(), "inclination"), lower=4.0),
        ["limit 'new'", "4.0", "[0, π]"],
    ),
    "a taken name": (lambda m: m.limit("P", m["P"], upper=1.0), ["'P'", "joint of that name"]),
    "an unknown option": (lambda m: m.limit("new", m["P"], maximum=1.0), ["maximum"]),
    "a coordinate of one body": (
        lambda m: cd.coordinate(m["b"].frame(), m["b"].frame((1, 0, 0)), "distance"),
        ["'distance'", "'b'", "itself"],
    ),
    "a coordinate nobody knows": (
        lambda m: cd.coordinate(m.ground.frame(), m["b"].frame(), "roll"),
        ["'roll'", "'angle'", "'distance'", "'inclination'"],
    ),
    "an angle between points": (
        lambda m: cd.coordinate(m.ground.point(), m["b"].frame(), "angle"),
        ["'angle'", "Point", "must be a frame"],
    ),
    "a distance between bodies": (
        lambda m: cd.coordinate(m.ground, m["b"], "distance"),
        ["'distance'", "<Body 'ground'>", "point or frame"],
    ),
    "a coordinate of no kind": (lambda m: cd.coordinate(m.ground.frame(), m["b"].frame(), 3), ["3", "'angle'"]),
    "a coordinate that is not hashable": (
        lambda m: cd.coordinate(m.ground.frame(), m["b"].frame(), ["angle"]),
        ["['angle']", "'angle'"],
    ),
}


@pytest.mark.parametrize("case", BAD_LIMITS)
def test_an_invalid_limit_is_reported_and_not_added(case):
    call, fragments = BAD_LIMITS[case]

    def build():
        m = cd.Mechanism("m")
        b, c, d = m.body("b"), m.body("c"), m.body("d")
        m.prismatic("P", m.ground.frame(), b.frame())
        m.cylindrical("C", m.ground.frame(), c.frame())
        m.spherical("S", m.ground.point(), d.point())
        return m

    m = build()
    with pytest.raises((cd.ModelError, TypeError) if case == "an unknown option" else cd.ModelError) as caught:
        call(m)
    message = str(caught.value)
    assert not [f for f in fragments if f not in message], message
    assert "\n" not in message
    assert m == build() and m.system == build().system
    m.limit("new", m["P"], upper=1.0)
    assert m.assemble().ok
