"""Laws of couplings: every one by a judge of its own, over whole turns, on moving carriers, in every formulation."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.result import Status
from cardan.coordinates import formulations
from layers import sampled
from linkages import X, Y, Z, about_z, heading, polar
from mechanisms import Local, matrix, product, quaternion, random_quaternion, random_rotation, rotation, turned

TURN = 2 * np.pi
FORMULATIONS = ["manifold", "euler_parameters"]
DIFFERENCE = 1e-7  # relative, of Jacobian and γ


def smooth(x):
    return 0.3 + 0.2 * cd.sin(2 * x) + 0.5 * x


# Each coupling with its options, and as an equation between two numbers, first and second: what is amiss.
COUPLINGS = {
    "gear": ("angle", "angle", {"ratio": -1.7, "phase": 0.4}, lambda a, b: b + 1.7 * a - 0.4),
    "gear, fast": ("angle", "angle", {"ratio": 12.5}, lambda a, b: b - 12.5 * a),
    "gear, slow": ("angle", "angle", {"ratio": 0.01, "phase": -2.0}, lambda a, b: b - 0.01 * a + 2.0),
    "belt": ("angle", "angle", {"radius_1": 0.3, "radius_2": 0.2, "phase": 0.1}, lambda a, b: b - 1.5 * a - 0.1),
    "belt, crossed": ("angle", "angle", {"radius_1": 0.3, "radius_2": 0.2, "crossed": True}, lambda a, b: b + 1.5 * a),
    "rack": ("angle", "displacement", {"radius": -0.25, "offset": 0.1}, lambda a, b: b + 0.25 * a - 0.1),
    "couple, wave": ("angle", "angle", {"function": smooth}, lambda a, b: b - 0.3 - 0.2 * np.sin(2 * a) - 0.5 * a),
    "couple, cam": (
        "angle",
        "displacement",
        {"function": lambda x: 0.2 * (1 - cd.cos(3 * x))},
        lambda a, b: b - 0.2 * (1 - np.cos(3 * a)),
    ),
    "couple, slide to angle": (
        "displacement",
        "angle",
        {"function": lambda x: cd.atan2(x, 1 + x * x)},
        lambda a, b: b - np.arctan2(a, 1 + a * a),
    ),
    "couple, slide to slide": (
        "displacement",
        "displacement",
        {"function": lambda x: cd.sqrt(1 + x**2) - 1},
        lambda a, b: b - np.sqrt(1 + a * a) + 1,
    ),
    "couple, rod to inclination": (
        "distance",
        "inclination",
        {"function": lambda x: 1.2 * cd.tanh(x)},
        lambda a, b: b - 1.2 * np.tanh(a),
    ),
}
KIND = {name: name.split(",")[0] for name in COUPLINGS}


class Pair:
    """Two coordinates between a carrier, itself anywhere, and two bodies on it: drawn at random, read off the poses."""

    def __init__(self, first, second, seed, on_ground=False):
        self.rng = rng = np.random.default_rng(seed)
        self.mechanism = m = cd.Mechanism("pair")
        carrier = m.ground if on_ground else m.body("carrier", position=rng.uniform(-1, 1, 3))
        self.kinds, self.ends, self.coordinates = (first, second), [], []
        for k, kind in enumerate((first, second)):
            body = m.body(f"body {k}")
            locals_ = [Local(b.name, rng.uniform(-1, 1, 3), random_rotation(rng)) for b in (carrier, body)]
            a, b = (m[e.body].frame(e.origin, z=e.R[:, 2], x=e.R[:, 0]) for e in locals_)
            if kind == "angle":
                found = m.revolute(f"joint {k}", a, b)
            elif kind == "displacement":
                found = m.prismatic(f"joint {k}", a, b)
            else:
                found = cd.coordinate(a, b, kind)
            self.ends.append(locals_)
            self.coordinates.append(found)

    def add(self, name):
        _, _, options, _ = COUPLINGS[name]
        return getattr(self.mechanism, KIND[name])("coupling", *self.coordinates, **options)

    def read(self, state, k):
        """A coordinate, from the poses; of an angle, the one within half a turn of what the state counts."""
        (p, R), (q, S) = (end.world(state) for end in self.ends[k])
        kind = self.kinds[k]
        if kind == "displacement":
            return float(R[:, 2] @ (q - p))
        if kind == "distance":
            return float(np.linalg.norm(q - p))
        if kind == "inclination":
            return float(2 * np.arctan2(np.linalg.norm(R[:, 2] - S[:, 2]), np.linalg.norm(R[:, 2] + S[:, 2])))
        angle = float(np.angle(complex(R[:, 0] @ S[:, 0], R[:, 1] @ S[:, 0])))
        return angle + TURN * round((state.angles[f"joint {k}"] - angle) / TURN)

    def anywhere(self):
        m, rng = self.mechanism, self.rng
        return m.state.moved({name: (rng.uniform(-2, 2, 3), random_quaternion(rng)) for name in m.bodies})


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", COUPLINGS)
def test_a_coupling_holds_from_any_start(name, formulation):
    first, second, _, amiss = COUPLINGS[name]
    for seed in range(6):
        pair = Pair(first, second, seed, on_ground=seed % 2 == 0)
        joint = pair.add(name)
        assert joint.equations == 1
        result = pair.mechanism.assemble(pair.anywhere(), formulation=formulation)
        assert result.ok, result.text()
        values = [pair.read(result.state, k) for k in range(2)]
        assert abs(amiss(*values)) <= 1e-10 * max(1.0, *np.abs(values))
        for k, coordinate in enumerate(pair.coordinates):
            if isinstance(coordinate, cd.Joint):
                assert abs(coordinate.coordinate(result.state) - values[k]) <= 1e-12 * max(1.0, abs(values[k]))
            else:
                assert abs(coordinate.value(result.state) - values[k]) <= 1e-12


@pytest.mark.parametrize("name", COUPLINGS)
def test_a_coupling_takes_one_freedom(name):
    first, second, _, _ = COUPLINGS[name]
    pair = Pair(first, second, 11)
    before = pair.mechanism.diagnose(pair.mechanism.assemble().state)
    pair.add(name)
    after = pair.mechanism.diagnose(pair.mechanism.assemble(pair.anywhere()).state)
    assert (after.dof, after.gruebler, after.redundant) == (before.dof - 1, before.gruebler - 1, [])


# --- derivatives ------------------------------------------------------------------------------------------------------

FIRST = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
SECOND = {0: -205 / 72, 1: 8 / 5, 2: -1 / 5, 3: 8 / 315, 4: -1 / 560}


def moved(formulation, q, v, t, bodies):
    """The curve of constant velocity through q: r + tṙ, and p ⊗ exp(tω) or p + tṗ."""
    out = q.copy()
    poses = out[: 7 * bodies].reshape(bodies, 7)
    if formulation == "euler_parameters":
        poses += t * v.reshape(bodies, 7)
        return out
    for row, (x, y, z, *w) in zip(poses, v.reshape(bodies, 6), strict=True):
        row[:3] += t * np.array([x, y, z])
        half = 0.5 * t * np.array(w)
        row[3:] = product(row[3:], [np.cos(np.linalg.norm(half)), *(np.sinc(np.linalg.norm(half) / np.pi) * half)])
    return out


@sampled("formulation", FORMULATIONS, 1)
@pytest.mark.parametrize("name", COUPLINGS)
def test_jacobian_and_gamma_of_a_coupling_are_the_derivatives_of_its_equation(name, formulation):
    """By nine-point differences of the equation written a second time, in poses that satisfy no joint."""
    first, second, _, amiss = COUPLINGS[name]
    for seed in (0, 1):
        pair = Pair(first, second, seed)
        pair.add(name)
        m = pair.mechanism
        system = m.system
        bodies = len(m.bodies)
        (row,) = [r.start for r in system.rows if r.constraint == "coupling"]
        problem = formulations.problem(system, formulation)
        while True:
            state = pair.anywhere()
            near = pair.rng.uniform(-20, 20, len(system.counted_angles))
            q = formulations.to_reference(system, state.coordinates, near)
            counted = dict(zip(system.counted_angles, q[7 * bodies :], strict=True))
            if all(well_away(pair, state, k) for k in range(2)):
                break

        def equation(at, pair=pair, counted=counted, system=system, bodies=bodies):
            poses = at[: 7 * bodies].reshape(bodies, 7)
            return amiss(*(read_any(pair, poses, counted, system, k) for k in range(2)))

        width = 7 if formulation == "euler_parameters" else 6
        f, J = problem.jacobian(q)
        assert abs(f[row] - equation(q)) <= 1e-13 * max(1.0, abs(f[row]))
        line = (equation, formulation, q, bodies)
        expected = np.array([along_line(*line, v, FIRST, 1e-3) for v in np.eye(width * bodies)])
        assert np.abs(J[row] - expected).max() <= DIFFERENCE * np.abs(expected).max()
        v = pair.rng.uniform(-1, 1, width * bodies)
        bend = -along_line(*line, v, SECOND, 4e-3)
        gamma = formulations.gamma(system, formulation, q, v)[row]
        assert abs(gamma - bend) <= DIFFERENCE * max(1.0, abs(bend))


def along_line(f, formulation, q, bodies, v, weights, h):
    """First or second derivative of f along a curve of constant velocity."""
    total = 0.0
    for k, w in weights.items():
        ahead, behind = (f(moved(formulation, q, v, s * k * h, bodies)) for s in (1, -1))
        total += w * (ahead - behind) if weights is FIRST else w * (ahead + behind) / (2 if k == 0 else 1)
    return total / (h if weights is FIRST else h * h)


def read_any(pair, poses, counted, system, k):
    """A coordinate with quaternions of any length, r being places of reference points."""
    frames = []
    for end in pair.ends[k]:
        if end.body == "ground":
            frames.append((end.origin - system.origin, end.R))
            continue
        b = system.index[end.body]
        r, p = poses[b, :3], poses[b, 3:]
        R = np.column_stack([turned(p, axis) for axis in end.R.T])
        frames.append((r + turned(p, end.origin - system.reference_points[b]), R))
    (p, R), (q, S) = frames
    kind = pair.kinds[k]
    if kind == "displacement":
        return R[:, 2] @ (q - p)
    if kind == "distance":
        return np.linalg.norm(q - p)
    if kind == "inclination":
        return np.arctan2(np.linalg.norm(np.cross(R[:, 2], S[:, 2])), R[:, 2] @ S[:, 2])
    angle = np.angle(complex(R[:, 0] @ S[:, 0], R[:, 1] @ S[:, 0]))
    return angle + TURN * round((counted[f"joint {k}"] - angle) / TURN)


def well_away(pair, state, k):
    """Whether differences can be taken: no angle near where it is not defined."""
    (p, R), (q, S) = (end.world(state) for end in pair.ends[k])
    if pair.kinds[k] == "angle":
        return np.hypot(R[:, 0] @ S[:, 0], R[:, 1] @ S[:, 0]) > 0.6
    if pair.kinds[k] == "distance":
        return np.linalg.norm(q - p) > 0.5
    return pair.kinds[k] != "inclination" or np.linalg.norm(np.cross(R[:, 2], S[:, 2])) > 0.4


FUNCTIONS = {
    "operators": (lambda x: 2 - (3 * x + 1) / (x * x + 2), lambda x: 2 - (3 * x + 1) / (x * x + 2)),
    "powers": (lambda x: (x + 4) ** 2.5 + (x + 4) ** -3 + 2.0**x, lambda x: (x + 4) ** 2.5 + (x + 4) ** -3 + 2.0**x),
    "tan": (lambda x: cd.tan(x / 4), lambda x: np.tan(x / 4)),
    "inverse": (
        lambda x: cd.asin(x / 9) + cd.acos(x / 9) * cd.atan(x),
        lambda x: np.arcsin(x / 9) + np.arccos(x / 9) * np.arctan(x),
    ),
    "hyperbolic": (
        lambda x: cd.sinh(x / 3) + cd.cosh(x / 3) * cd.tanh(x),
        lambda x: np.sinh(x / 3) + np.cosh(x / 3) * np.tanh(x),
    ),
    "logarithm": (lambda x: cd.log(x + 9) + cd.exp(-x), lambda x: np.log(x + 9) + np.exp(-x)),
    "of two": (lambda x: cd.atan2(cd.sin(x), 2 + cd.cos(x)), lambda x: np.arctan2(np.sin(x), 2 + np.cos(x))),
    "NumPy": (
        lambda x: np.sin(x) + np.arctan2(x, 3.0) * np.sqrt(x * x + 1),
        lambda x: np.sin(x) + np.arctan2(x, 3.0) * np.sqrt(x * x + 1),
    ),
    "a constant": (lambda x: 0.7, lambda x: 0.7),
}


@pytest.mark.slow
@sampled("name", FUNCTIONS, 5)
def test_a_coupler_computes_its_function(name):
    """A slide is driven to and fro; what is coupled to it is where the function, by NumPy, says."""
    function, exact = FUNCTIONS[name]
    m = cd.Mechanism()
    one, two = m.body("one"), m.body("two")
    P = m.prismatic("P", m.ground.frame(x=X), one.frame(x=X))
    Q = m.prismatic("Q", m.ground.frame((1, 0, 0), z=Y, x=X), two.frame(z=Y, x=X))
    m.couple("cam", P, Q, function)
    m.drive("motor", P, lambda t: t)
    for t in (-1.7, 0.0, 0.4, 1.3):
        result = m.assemble(time=t)
        assert result.ok, result.text()
        assert abs(Q.coordinate(result.state) - exact(t)) <= 1e-11 * max(1.0, abs(exact(t)))
        velocity = m.move([t], result.state).velocities("two")[0, 1]
        slope = (exact(t + 1e-5) - exact(t - 1e-5)) / 2e-5
        assert abs(velocity - slope) <= 1e-7 * max(1.0, abs(slope))


# --- trains -----------------------------------------------------------------------------------------------------------


def epicyclic(sun, planet, *, order=1, unit_=1.0, motion=None):
    """Sun, planet, ring and carrier, teeth sun, planet, sun + 2·planet; nothing is driven yet."""
    R, t = motion or (np.eye(3), np.zeros(3))
    ring = sun + 2 * planet
    radius = (sun + planet) / 40 * unit_
    m = cd.Mechanism("epicyclic")
    place = {"sun": np.zeros(3), "carrier": np.zeros(3), "ring": np.zeros(3), "planet": radius * X}
    for name in list(place)[::order]:
        m.body(name, position=R @ place[name] + t, orientation=quaternion(R))
    base = m.ground.frame(t, z=R[:, 2], x=R[:, 0])
    joints = {
        "sun": (base, m["sun"].frame(x=X)),
        "carrier": (base, m["carrier"].frame(x=X)),
        "ring": (base, m["ring"].frame(x=X)),
        "pin": (m["carrier"].frame(radius * X, x=X), m["planet"].frame(x=X)),
        "sun on carrier": (m["carrier"].frame(x=X), m["sun"].frame(x=X)),
        "ring on carrier": (m["carrier"].frame(x=X), m["ring"].frame(x=X)),
    }
    for name in list(joints)[::order]:
        m.revolute(f"{name} hinge", *joints[name])
    for name, ratio in [("sun", -sun / planet), ("ring", ring / planet)][::order]:
        m.gear(f"{name} mesh", m[f"{name} on carrier hinge"], m["pin hinge"], ratio=ratio)
    return m


@pytest.mark.parametrize("held", ["sun", "carrier", "ring"])
@pytest.mark.parametrize(("sun", "planet"), [(20, 15), (12, 40), (60, 7)])
def test_an_epicyclic_train_obeys_willis(sun, planet, held):
    """(ω_ring − ω_carrier)/(ω_sun − ω_carrier) = −sun/ring, whichever is held; angles from the turns of the bodies."""
    m = epicyclic(sun, planet)
    ring = sun + 2 * planet
    other = "sun" if held != "sun" else "carrier"
    m.drive("brake", m[f"{held} hinge"], 0.3)
    m.drive("motor", m[f"{other} hinge"], lambda t: 0.1 + 9.0 * t)
    motion = m.move([0.0, 3.0])
    assert motion.ok, motion.text()
    assert m.diagnose(motion.state).undriven == 0
    before, after = motion.states
    w = {}
    for name in ("sun", "carrier", "ring"):
        w[name] = m[f"{name} hinge"].coordinate(after) - m[f"{name} hinge"].coordinate(before)
    assert abs(w[held]) <= 1e-11 and abs(w[other] - 27.0) <= 1e-10
    assert abs((w["ring"] - w["carrier"]) * ring + (w["sun"] - w["carrier"]) * sun) <= 1e-9
    planet_turns = m["pin hinge"].coordinate(after) - m["pin hinge"].coordinate(before)
    assert abs(planet_turns * planet + (w["sun"] - w["carrier"]) * sun) <= 1e-9
    for state in motion.states:  # the pose shows what is counted
        for name in ("sun", "carrier", "ring"):
            R = matrix(state[name].quaternion)
            assert np.abs(R - rotation(Z, m[f"{name} hinge"].coordinate(state))).max() <= 1e-10


@pytest.mark.parametrize("formulation", formulations.CHOICES)
def test_a_train_is_assembled_in_every_formulation(formulation):
    """As drawn, and from a start off by some tenths, after 41.3 turns of the sun: the turns that a motion makes."""
    m = epicyclic(20, 15)
    m.drive("brake", m["ring hinge"], 0.0)
    m.drive("motor", m["sun hinge"], lambda t: TURN * t)
    rng = np.random.default_rng(6)
    start = {
        name: (pose.position + rng.uniform(-0.2, 0.2, 3), pose.quaternion + rng.uniform(-0.1, 0.1, 4))
        for name, pose in m.state.items()
    }
    for begin, sun in ((None, 41.3), (start, 41.3)):
        result = m.assemble(begin, time=sun, formulation=formulation)
        assert result.ok, result.text()
        expected = {"sun": sun, "carrier": sun * 20 / 70, "ring": 0.0, "pin": -sun * 50 / 70 * 20 / 15}
        for name, turns in expected.items():
            assert abs(m[f"{name} hinge"].coordinate(result.state) - TURN * turns) <= 1e-9


@pytest.mark.slow
def test_a_differential_shares_its_turns():
    """Two side gears and a cross gear on a carrier that turns: left + right = 2·carrier, whatever each does."""
    m = cd.Mechanism("differential")
    cage, left, right, cross = (m.body(name) for name in ("cage", "left", "right", "cross"))
    m.revolute("cage hinge", m.ground.frame(z=X, x=Y), cage.frame(z=X, x=Y))
    m.revolute("left hinge", m.ground.frame((-1, 0, 0), z=X, x=Y), left.frame((-1, 0, 0), z=X, x=Y))
    m.revolute("right hinge", m.ground.frame((1, 0, 0), z=X, x=Y), right.frame((1, 0, 0), z=X, x=Y))
    m.revolute("cross hinge", cage.frame((0, 1, 0), z=Y, x=Z), cross.frame((0, 1, 0), z=Y, x=Z))
    on_cage = {n: cd.coordinate(cage.frame(z=X, x=Y), m[n].frame(z=X, x=Y)) for n in ("left", "right")}
    m.gear("left mesh", on_cage["left"], m["cross hinge"], ratio=2.0)
    m.gear("right mesh", on_cage["right"], m["cross hinge"], ratio=-2.0)
    m.drive("engine", m["cage hinge"], lambda t: 5 * t)
    m.drive("wheel", m["left hinge"], lambda t: 3 * t + cd.sin(t))
    motion = m.move(np.linspace(0, 40, 5))
    assert motion.ok, motion.text()
    for state in motion.states:
        w = {n: m[f"{n} hinge"].coordinate(state) for n in ("cage", "left", "right", "cross")}
        assert abs(w["left"] + w["right"] - 2 * w["cage"]) <= 1e-9
        assert abs(w["cross"] - 2 * (w["left"] - w["cage"])) <= 1e-9
        assert np.abs(matrix(state["right"].quaternion) - rotation(X, w["right"])).max() <= 1e-9


def test_a_geared_five_bar_follows_its_closed_form():
    """Two cranks in a ratio carry a dyad: its corner is where two circles meet, on the side it was drawn."""
    m = cd.Mechanism("five-bar")
    a, b, c, e, d = 0.6, 2.0, 2.2, 0.5, 1.5

    def corner(t):
        B, E = polar(a, 0.4 + t), np.array([d, 0.0]) + polar(e, 2.0 - 2 * (0.4 + t) + 0.8)
        span = np.linalg.norm(E - B)
        along = (b * b - c * c + span * span) / (2 * span)
        u = (E - B) / span
        return B, E, B + along * u + np.sqrt(b * b - along**2) * np.array([-u[1], u[0]])

    B, E, C = corner(0.0)
    one = m.body("one", orientation=about_z(0.4))
    two = m.body("two", position=(d, 0, 0), orientation=about_z(2.0))
    left = m.body("left", position=(*B, 0), orientation=about_z(heading(C - B)))
    right = m.body("right", position=(*E, 0), orientation=about_z(heading(C - E)))
    A = m.revolute("A", m.ground.frame(x=X), one.frame(x=X))
    D = m.revolute("D", m.ground.frame((d, 0, 0), x=X), two.frame(x=X))
    m.revolute("B", one.frame((a, 0, 0), x=X), left.frame(x=X))
    m.revolute("E", two.frame((e, 0, 0), x=X), right.frame(x=X))
    m.revolute("C", left.frame((b, 0, 0), x=X), right.frame((c, 0, 0), x=X))
    m.gear("mesh", A, D, ratio=-2.0, phase=2.8)
    m.drive("motor", A, lambda t: 0.4 + t)
    for count in (2, 30):
        motion = m.move(np.linspace(0, 3 * TURN, count))
        assert motion.ok, motion.text()
        for state in motion.states:
            assert np.abs(state["left"].point((b, 0, 0))[:2] - corner(state.time)[2]).max() <= 1e-9


def test_a_long_train_is_wound_at_once():
    """Twenty wheels, each twice as fast as the one before and the other way: the last makes half a million turns."""
    m = cd.Mechanism("train")
    hinges = []
    for k in range(20):
        wheel = m.body(f"wheel {k}")
        hinges.append(m.revolute(f"hinge {k}", m.ground.frame((k, 0, 0), x=X), wheel.frame(x=X)))
        if k:
            m.gear(f"mesh {k}", hinges[-2], hinges[-1], ratio=-2.0)
    m.drive("motor", hinges[0], lambda t: TURN * t)
    result = m.assemble(time=1.0)
    assert result.ok and result.restarts == 0 and result.iterations <= 20, result.text()
    assert [result.state.turns[f"hinge {k}"] for k in range(20)] == [(-2) ** k for k in range(20)]


# --- whole turns ------------------------------------------------------------------------------------------------------


def motor(law, extra=None):
    m = cd.Mechanism("motor")
    wheel = m.body("wheel")
    m.revolute("A", m.ground.frame(x=X), wheel.frame(x=X))
    m.drive("motor", m["A"], law)
    if extra:
        extra(m)
    return m


@pytest.mark.parametrize("turns", [0.25, -0.5, 3.0, -7.75, 50.0, 1000.3, -1e5])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_motor_is_assembled_after_any_number_of_turns(turns, formulation):
    m = motor(lambda t: TURN * t)
    for start in (None, m.assemble(time=0.1).state, {"wheel": ((1, 2, 3), (0.5, 0.5, 0.5, 0.5))}):
        result = m.assemble(start, time=turns, formulation=formulation)
        assert result.ok and result.restarts == 0, result.text()
        assert abs(result.state.angles["A"] - TURN * turns) <= 1e-12 * max(1.0, abs(TURN * turns)) * 10
        assert np.abs(matrix(result.state["wheel"].quaternion) - rotation(Z, TURN * (turns % 1))).max() <= 1e-9
        assert result.state.time == turns


def test_turns_are_what_an_angle_has_beyond_half_a_turn_to_either_side():
    m = motor(lambda t: np.pi * t)
    counted = [m.assemble(time=t).state.turns["A"] for t in (0.0, 0.99, 1.01, 2.99, 3.01, -0.99, -1.01, -3.01)]
    assert counted == [0, 0, 1, 1, 2, 0, -1, -2]


def test_a_state_keeps_its_count_where_nothing_drives():
    """The same pose with other counts is another state, and stays one; reading it changes nothing."""

    def pair():
        m = cd.Mechanism()
        one, two = m.body("one"), m.body("two", position=(1, 0, 0))
        A = m.revolute("A", m.ground.frame(x=X), one.frame(x=X))
        B = m.revolute("B", m.ground.frame((1, 0, 0), x=X), two.frame(x=X))
        m.gear("G", A, B, ratio=3.0)
        return m, A, B

    m, A, B = pair()
    m.drive("motor", A, lambda t: TURN * t)
    wound = m.assemble(time=5.0).state
    m.remove("motor")
    again = m.assemble(wound)
    assert again.ok and again.iterations == 0
    assert again.state.turns == {"A": 5, "B": 15}
    fresh = m.assemble()
    assert fresh.state.turns == {"A": 0, "B": 0}
    before = dict(wound.angles)
    for _ in range(3):
        assert A.coordinate(wound) == pytest.approx(5 * TURN) and B.coordinate(wound) == pytest.approx(15 * TURN)
    assert wound.angles == before
    moved_ = wound.moved({"one": ((0, 0, 0), about_z(0.3))})
    assert moved_.turns == wound.turns and A.coordinate(moved_) == pytest.approx(5 * TURN + 0.3)


def test_a_nut_that_a_slide_keeps_from_turning_is_assembled_where_a_motion_would_bring_it():
    """How often the thread turns follows from the parts in between: no equation says so, and none may be guessed."""
    m = cd.Mechanism("lead screw")
    spindle, nut = m.body("spindle"), m.body("nut")
    m.revolute("bearing", m.ground.frame(x=X), spindle.frame(x=X))
    m.prismatic("slide", m.ground.frame((0.3, 0, 0), x=X), nut.frame((0.3, 0, 0), x=X))
    m.screw("thread", spindle.frame(x=X), nut.frame(x=X), pitch=0.004)
    m.drive("motor", m["bearing"], lambda t: -TURN * t)
    for turns in (0.3, 7.0, 63.2, 200.0):
        result = m.assemble(time=turns)
        assert result.ok, result.text()
        assert abs(result.state["nut"].position[2] - 0.004 * turns) <= 1e-9
        assert abs(m["thread"].coordinate(result.state, "angle") - TURN * turns) <= 1e-9
    beyond = m.assemble(time=4000.0)  # more turns than are made
    assert not beyond.ok and beyond.status != Status.CONFLICT


@pytest.mark.parametrize("pitch", [0.001, -0.5])
def test_a_screw_driven_along_its_axis_makes_the_turns_it_must(pitch):
    m = cd.Mechanism("screw")
    nut = m.body("nut")
    J = m.screw("J", m.ground.frame(x=X), nut.frame(x=X), pitch=pitch, offset=0.02)
    m.drive("push", J, lambda t: 0.02 + t, of="displacement")
    for t in (0.0, 0.1, -0.2, 0.1037):
        result = m.assemble(time=t)
        assert result.ok, result.text()
        assert abs(J.coordinate(result.state, "angle") - TURN * t / pitch) <= 1e-8
        assert abs(result.state["nut"].position[2] - 0.02 - t) <= 1e-11


# --- what must not matter ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formulation", ["manifold", "relative"])
@pytest.mark.parametrize("geometry", [1, 13, 31, 36, 46, 53, 58])
def test_a_screw_against_a_face_is_assembled_from_any_start_with_the_turn_it_needs(geometry, formulation):
    """The face fixes where the nut is, to less than a turn; a start may have counted a turn too many or too few."""
    rng = np.random.default_rng(geometry)
    pitch, angle = rng.uniform(0.3, 2.0), rng.uniform(-3.0, 3.0)
    R, r, (a, b) = random_rotation(rng), rng.normal(size=3), 2.0 * rng.normal(size=(2, 3))  # the nut in its place
    thread, face = random_rotation(rng), random_rotation(rng)  # axes of its frames
    fixed = R @ thread @ matrix(about_z(-angle))
    m = cd.Mechanism()
    nut = m.body("nut", position=rng.normal(size=3), orientation=random_quaternion(rng))
    foot = r + R @ a - fixed[:, 2] * pitch * angle / TURN
    m.screw("thread", frame(m.ground, foot, fixed), frame(nut, a, thread), pitch=pitch)
    m.planar("face", frame(m.ground, r + R @ b, R @ face), frame(nut, b, face))
    for seed in range(1000, 1015):
        rng = np.random.default_rng(seed)
        result = m.assemble({"nut": (rng.normal(size=3), random_quaternion(rng))}, formulation=formulation)
        assert result.ok, (seed, result.text())
        assert m["thread"].coordinate(result.state, "angle") == pytest.approx(angle, abs=1e-9)


def frame(body, origin, axes):
    return body.frame(origin, z=axes[:, 2], x=axes[:, 0])


@pytest.mark.parametrize("variant", ["unit", "order", "rigid motion"])
def test_unit_order_and_place_do_not_change_a_train(variant):
    rng = np.random.default_rng(5)
    R, t = random_rotation(rng), rng.uniform(-5, 5, 3)
    options = {"unit": {"unit_": 1e3}, "order": {"order": -1}, "rigid motion": {"motion": (R, t)}}[variant]
    results = []
    for m in (epicyclic(20, 15), epicyclic(20, 15, **options)):
        m.drive("brake", m["ring hinge"], 0.0)
        m.drive("motor", m["sun hinge"], lambda t: TURN * t)
        results.append((m, m.assemble(time=41.3)))
    (one, a), (_, b) = results
    assert a.ok and b.ok
    assert a.restarts == b.restarts
    scale = options.get("unit_", 1.0)
    S, s = options.get("motion", (np.eye(3), np.zeros(3)))
    for name in one.bodies:
        assert np.abs(S @ matrix(a.state[name].quaternion) @ S.T @ S - matrix(b.state[name].quaternion)).max() <= 1e-9
        assert np.abs(S @ a.state[name].position * scale + s - b.state[name].position).max() <= 1e-9 * scale
    for key, angle in a.state.angles.items():
        assert abs(angle - b.state.angles[key]) <= 1e-9


RATIOS = [1e-3, -1e-3, 1.0, -1.0, 37.5, -1e3]


# In Euler parameters the equation of a steep ratio is a narrow valley that curves with the unit sphere: beyond some
# thousands it is no longer followed to its end, and the assembly says so.
@pytest.mark.parametrize(("formulation", "ratio"), [(f, r) for f in FORMULATIONS for r in RATIOS] + [("manifold", 1e4)])
def test_a_ratio_may_have_any_sign_and_size(ratio, formulation):
    for seed in range(3):
        pair = Pair("angle", "angle", seed, on_ground=True)
        m = pair.mechanism
        m.gear("G", *pair.coordinates, ratio=ratio)
        result = m.assemble(pair.anywhere(), formulation=formulation)
        assert result.ok, result.text()
        first, second = (pair.read(result.state, k) for k in range(2))
        assert abs(second - ratio * first) <= 1e-11 * max(1.0, abs(ratio))
        m.drive("motor", pair.coordinates[0], 2.0)
        result = m.assemble(formulation=formulation)
        assert result.ok and abs(result.state.angles["joint 1"] - 2.0 * ratio) <= 1e-11 * max(1.0, abs(ratio))


# --- values, removal, bad input ---------------------------------------------------------------------------------------


def wave(x):
    return 0.3 * cd.sin(x)


def ramp(t):
    return TURN * t


def workshop():
    """One of everything that couples, drives and limits; all functions can be pickled."""
    m = cd.Mechanism("workshop")
    for k, name in enumerate(("one", "two", "rack", "cam", "nut")):
        m.body(name, position=(k, 0, 0))
    m.revolute("A", m.ground.frame(x=X), m["one"].frame(x=X))
    m.revolute("B", m.ground.frame((1, 0, 0), x=X), m["two"].frame(x=X))
    m.prismatic("P", m.ground.frame((2, 0, 0), x=X), m["rack"].frame(x=X))
    m.prismatic("Q", m.ground.frame((3, 0, 0), x=X), m["cam"].frame(x=X))
    m.screw("S", m.ground.frame((4, 0, 0), x=X), m["nut"].frame(x=X), pitch=0.01)
    m.belt("belt", m["A"], m["B"], radius_1=0.1, radius_2=0.3, crossed=True)
    m.rack("rack mesh", m["B"], m["P"], radius=0.1)
    m.couple("cam mesh", m["A"], m["Q"], wave)
    m.gear("screw mesh", m["A"], m["S"].of("angle"), ratio=2)
    m.drive("motor", m["A"], ramp)
    m.limit("stop", m["P"], lower=-9.0, upper=9.0)
    m.limit("reach", cd.coordinate(m["one"].point((0, 0, 0)), m["nut"].point(), "distance"), upper=50.0)
    return m


COPIES = {
    "copy method": lambda m: m.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
}


@pytest.mark.parametrize("way", COPIES)
def test_what_couples_and_drives_copies_compares_and_pickles(way):
    m = workshop()
    result = m.assemble(time=12.25)
    assert result.ok, result.text()
    assert result.state.turns["S"] == 24 and abs(result.state["nut"].position[2] - 0.245) <= 1e-11
    other = COPIES[way](m)
    assert other == m == workshop() and other.system == m.system
    again = other.assemble(time=12.25)
    assert again.ok and again.state == result.state and again.state.turns == result.state.turns
    other.remove("motor")
    assert other != m and "motor" in m
    assert pickle.loads(pickle.dumps(result)) == result
    assert pickle.loads(pickle.dumps(result.state)) == result.state


def test_a_coupler_made_of_a_lambda_pickles_by_what_was_recorded_of_it():
    m = Pair("angle", "displacement", 3).mechanism
    m.couple("cam", m["joint 0"], m["joint 1"], lambda x: 0.2 * cd.sin(2 * x))
    other = pickle.loads(pickle.dumps(m))
    assert other == m and other.assemble() == m.assemble()
    third = Pair("angle", "displacement", 3).mechanism
    third.couple("cam", third["joint 0"], third["joint 1"], lambda x: 0.2 * cd.sin(2 * x))
    assert third == m  # another function that computes the same
    third.remove("cam")
    third.couple("cam", third["joint 0"], third["joint 1"], lambda x: 0.2 * cd.sin(3 * x))
    assert third != m


def test_a_joint_that_is_coupled_is_not_removed_by_itself():
    m = workshop()
    with pytest.raises(cd.ModelError, match=r"'A'.*'belt'.*'cam mesh'.*'screw mesh'.*'motor'.*joints=True"):
        m.remove("A")
    assert m == workshop()
    m.remove("A", joints=True)
    assert set(m.joints) == {"B", "P", "Q", "S", "rack mesh", "stop", "reach"}
    assert m.assemble().ok
    m.remove("one", joints=True)
    assert set(m.joints) == {"B", "P", "Q", "S", "rack mesh", "stop"}


def test_a_body_goes_with_all_that_acts_on_it():
    m = workshop()
    with pytest.raises(cd.ModelError, match=r"'two'.*'B'.*'belt'.*'rack mesh'"):
        m.remove("two")
    m.remove("two", joints=True)
    assert {"B", "belt", "rack mesh"}.isdisjoint(m.joints)
    result = m.assemble(time=1.0)
    assert result.ok and set(result.state.turns) == {"A", "S"}


def test_a_coordinate_of_a_joint_that_is_gone_is_refused_even_if_a_new_one_has_its_name():
    m = motor(ramp)
    old = m["A"].of("angle")
    m.remove("A", joints=True)
    with pytest.raises(cd.ModelError, match=r"drive 'motor'.*joint 'A'.*its joint was removed"):
        m.drive("motor", old, 1.0)
    m.revolute("A", m.ground.frame(x=X), m["wheel"].frame(x=X))
    with pytest.raises(cd.ModelError, match=r"limit 'stop'.*joint 'A'.*take that of the new joint"):
        m.limit("stop", old, upper=1.0)
    assert list(m.joints) == ["A"]
    m.drive("motor", m["A"].of("angle"), 1.0)
    assert m.assemble().ok


def test_joints_cannot_be_named_like_an_angle_of_another():
    m = cd.Mechanism()
    one, two = m.body("one"), m.body("two")
    m.universal("U", m.ground.frame(), one.frame(z=X))
    with pytest.raises(cd.ModelError, match=r"'U\.angle_a'.*coordinate of joint 'U'"):
        m.revolute("U.angle_a", m.ground.frame(), two.frame())
    m.revolute("V.angle_b", m.ground.frame(), two.frame())
    with pytest.raises(cd.ModelError, match=r"'V'.*'V\.angle_b', which is a joint"):
        m.universal("V", one.frame(), two.frame(z=X))
    assert list(m.joints) == ["U", "V.angle_b"]


BAD_COUPLINGS = {
    "gear without a ratio": (
        lambda m: m.gear("new", m["A"], m["B"]),
        ["gear 'new'", "'ratio'", "help(Mechanism.gear)"],
    ),
    "gear with ratio zero": (
        lambda m: m.gear("new", m["A"], m["B"], ratio=0),
        ["gear 'new'", "ratio is 0", "not be zero"],
    ),
    "gear with ratio NaN": (
        lambda m: m.gear("new", m["A"], m["B"], ratio=float("nan")),
        ["gear 'new'", "ratio", "nan", "finite"],
    ),
    "gear with a ratio in words": (
        lambda m: m.gear("new", m["A"], m["B"], ratio="2:1"),
        ["gear 'new'", "ratio", "'2:1'", "number"],
    ),
    "gear with an infinite phase": (
        lambda m: m.gear("new", m["A"], m["B"], ratio=2, phase=float("inf")),
        ["gear 'new'", "phase", "inf", "finite"],
    ),
    "gear of a slide": (
        lambda m: m.gear("new", m["A"], m["P"], ratio=2),
        ["gear 'new'", "'P'", "prismatic", "an angle", "none"],
    ),
    "gear of a displacement": (
        lambda m: m.gear("new", m["A"], m["P"].of("displacement"), ratio=2),
        ["gear 'new'", "displacement of joint 'P'", "an angle is needed"],
    ),
    "gear of one joint": (lambda m: m.gear("new", m["A"], ratio=2), ["gear 'new'", "'second'"]),
    "gear of none": (lambda m: m.gear("new", ratio=2), ["gear 'new'", "'first'", "'second'"]),
    "gear of a name": (lambda m: m.gear("new", "AA", m["B"], ratio=2), ["gear 'new'", "no joint", "'AA'", "'A'"]),
    "gear of a body": (lambda m: m.gear("new", m["one"], m["B"], ratio=2), ["gear 'new'", "<Body 'one'>", "joint"]),
    "gear with itself": (lambda m: m.gear("new", m["A"], m["A"], ratio=2), ["gear 'new'", "'A'", "with itself"]),
    "gear of a joint elsewhere": (
        lambda m: m.gear("new", m["A"], workshop()["B"], ratio=2),
        ["gear 'new'", "'B'", "'workshop'"],
    ),
    "gear of a coordinate elsewhere": (
        lambda m: m.gear("new", m["A"], workshop()["B"].of("angle"), ratio=2),
        ["gear 'new'", "'ground'", "another mechanism"],
    ),
    "gear of a universal joint": (
        lambda m: m.gear("new", universal(m), m["B"], ratio=2),
        ["gear 'new'", "'U'", "'angle_a'", "'angle_b'", "joint.of("],
    ),
    "rack the wrong way round": (
        lambda m: m.rack("new", m["P"], m["A"], radius=1),
        ["rack 'new'", "'P'", "an angle", "none"],
    ),
    "rack of no radius": (lambda m: m.rack("new", m["A"], m["P"], radius=0.0), ["rack 'new'", "radius is 0", "zero"]),
    "rack without a radius": (lambda m: m.rack("new", m["A"], m["P"]), ["rack 'new'", "'radius'"]),
    "belt of a negative radius": (
        lambda m: m.belt("new", m["A"], m["B"], radius_1=-1, radius_2=1),
        ["belt 'new'", "radius_1", "-1", "above zero"],
    ),
    "belt of no radius": (
        lambda m: m.belt("new", m["A"], m["B"], radius_1=1, radius_2=0),
        ["belt 'new'", "radius_2", "0.0", "above zero"],
    ),
    "belt crossed a little": (
        lambda m: m.belt("new", m["A"], m["B"], radius_1=1, radius_2=1, crossed=1),
        ["belt 'new'", "crossed", "1", "True or False"],
    ),
    "coupler of a number": (lambda m: m.couple("new", m["A"], m["B"], 2.0), ["couple 'new'", "2.0", "function"]),
    "coupler that branches": (
        lambda m: m.couple("new", m["A"], m["B"], lambda x: x if x > 0 else -x),
        ["couple 'new'", "must not branch", "by hand"],
    ),
    "coupler by math": (
        lambda m: m.couple("new", m["A"], m["B"], lambda x: __import__("math").sin(x)),
        ["couple 'new'", "math.sin", "cd.sin"],
    ),
    "coupler of two": (lambda m: m.couple("new", m["A"], m["B"], lambda x, y: x), ["couple 'new'", "TypeError", "'y'"]),
    "coupler to two": (
        lambda m: m.couple("new", m["A"], m["B"], lambda x: [x, x]),
        ["couple 'new'", "returned [", "one number"],
    ),
    "coupler to nothing": (
        lambda m: m.couple("new", m["A"], m["B"], lambda x: None),
        ["couple 'new'", "returned None", "one number"],
    ),
    "coupler that fails": (
        lambda m: m.couple("new", m["A"], m["B"], lambda x: 1 // 0),
        ["couple 'new'", "ZeroDivisionError"],
    ),
    "screw of no pitch": (
        lambda m: m.screw("new", m.ground.frame(), m["two"].frame(), pitch=0),
        ["screw 'new'", "pitch is 0", "revolute"],
    ),
    "screw without a pitch": (lambda m: m.screw("new", m.ground.frame(), m["two"].frame()), ["screw 'new'", "'pitch'"]),
    "screw with a NaN pitch": (
        lambda m: m.screw("new", m.ground.frame(), m["two"].frame(), pitch=float("nan")),
        ["screw 'new'", "pitch", "nan", "finite"],
    ),
    "screw on a point": (
        lambda m: m.screw("new", m.ground.frame(), m["two"].point(), pitch=1),
        ["screw 'new'", "Point", "must be a frame"],
    ),
    "screw with a word": (
        lambda m: m.screw("new", m.ground.frame(), m["two"].frame(), pitch=1, own={}),
        ["screw 'new'", "own"],
    ),
    "a name that is taken": (lambda m: m.gear("belt", m["A"], m["B"], ratio=2), ["'belt'", "joint of that name"]),
    "gear of names": (
        lambda m: m.gear("new", "one", "B", ratio=2),
        ["gear 'new'", "'one' was given, which is a body", "must be a joint"],
    ),
    "an unknown option": (
        lambda m: m.gear("new", m["A"], m["B"], ratio=2, teeth=20),
        ["gear 'new'", "'teeth'", "help(Mechanism.gear)"],
    ),
    "too many arguments": (lambda m: m.gear("new", m["A"], m["B"], 2.0), ["gear 'new'", "help(Mechanism.gear)"]),
}


def universal(m):
    return m.joints["U"] if "U" in m else m.universal("U", m.ground.frame((9, 0, 0)), m.body("spare").frame(z=X))


@pytest.mark.parametrize("case", BAD_COUPLINGS)
def test_a_bad_coupling_says_what_is_wrong_and_leaves_nothing_behind(case):
    call, fragments = BAD_COUPLINGS[case]
    m, twin = workshop(), workshop()
    if "universal" in case:
        universal(m), universal(twin)
    with pytest.raises(cd.ModelError) as caught:
        call(m)
    message = str(caught.value)
    assert not [f for f in fragments if f not in message], message
    assert "\n" not in message and "Traceback" not in message
    assert m == twin and list(m) == list(twin)
    assert m.system == twin.system
    m.gear("new", m["B"], m["S"].of("angle"), ratio=-6.0)  # twice over, and true: the name is free, nothing was built
    assert m.assemble().ok


# --- large ratios -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driven", [0, 1])
@pytest.mark.parametrize("ratio", [-1e3, -1e4, 1e5, -1e6])
def test_a_large_ratio_is_neither_a_dead_point_nor_a_freedom(ratio, driven):
    """Its row is far longer than the others, which look like nothing beside it."""
    m = cd.Mechanism()
    hinges = []
    for k, name in enumerate(("slow", "fast")):
        wheel = m.body(name, position=(k, 0, 0))
        hinges.append(m.revolute(f"hinge {name}", m.ground.frame((k, 0, 0)), wheel.frame()))
    m.gear("gears", *hinges, ratio=ratio)
    speed = (1.0 / ratio, 1.0)[driven]
    m.drive("motor", hinges[driven], lambda t: speed * t)
    report = m.diagnose(m.assemble().state)
    assert (report.dof, report.undriven, report.redundant) == (1, 0, [])
    assert report.assembled and report.certain
    motion = m.move([0.0, 1.0, 10.0])
    assert motion.ok, motion.text()
    assert hinges[1].coordinate(motion.state) == pytest.approx(10.0, abs=1e-9)
    assert motion.velocities("fast")[-1, 5] == pytest.approx(1.0, abs=1e-9)
    assert motion.velocities("slow")[-1, 5] == pytest.approx(1.0 / ratio, rel=1e-9)
