"""Laws of every registered primitive in every formulation, against NumPy, SciPy, SymPy, mpmath and differences."""

from __future__ import annotations

from itertools import product as combinations
from zlib import crc32

import mpmath
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import cardan as cd
from cardan.constraints import kernels as addresses
from cardan.constraints._calls import call_curvature
from cardan.constraints._generated import primitive_curvature
from cardan.constraints.registry import LENGTH_POWER, REGISTRY, FeatureKind
from cardan.coordinates import formulations
from cardan.coordinates._features import update_primitive
from cardan.kernel.jit import jit
from cardan.kernel.memory import FIRST_ADDRESS
from cardan.math._kernels import SERIES_BELOW
from cardan.system.parts import CountedAngle, Feature
from cardan.system.relations import Bundle, Relation
from cardan.system.system import System
from later import Later
from layers import sampled
from mechanisms import conjugate, product, random_quaternion, turned, unit

sympy = Later("sympy")

NAMES = list(REGISTRY)
FORMULATIONS = list(formulations.REGISTRY)
WIDTHS = {"manifold": 6, "euler_parameters": 7, "virtual_rotation": 7, "euler_angles": 6}
NORMALISED = ("euler_parameters", "virtual_rotation")  # with a row pᵀp − 1 per body
PLACES = ("one", "two", "ground")

JACOBIAN_TOL = 1e-10  # of nine-point differences with h = 2e-3: their own error is about 1e-12
GAMMA_TOL = 1e-9  # of nine-point second differences with h = 8e-3: their own error is about 1e-10
EXACT = 4e-15  # residuals of order one, by another formula


# --- the equations, written a second time ---------------------------------------------------------------------------


def kahan_angle(u, v):
    u, v = unit(u), unit(v)
    return 2 * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v))


def scipy_rotation_vector(a, b):
    a, b = (Rotation.from_quat(np.roll(p, -1)) for p in (a, b))  # SciPy puts the scalar last
    return (a.inv() * b).as_rotvec()


def turn(x, y, v, near):
    """Angle of v from x towards y, whole turns included: the value nearest to ``near``."""
    angle = np.angle(complex(x @ v, y @ v))
    return angle + 2 * np.pi * np.round((near[0] - angle) / (2 * np.pi))


def beyond(value, lower, upper):
    return [max(value - upper, 0.0) or min(value - lower, 0.0)]


ORACLES = {
    "coincidence": lambda p, q: q - p,
    "dot_1": lambda u, v: [u @ v],
    "dot_2": lambda v, p, q, offset: [v @ q - v @ p - offset],
    "angle": lambda u, v, angle: [kahan_angle(u, v) - angle],
    "angle_cosine": lambda u, v, angle: [u @ v - np.cos(angle)],
    "distance": lambda p, q, length: [np.linalg.norm(q - p) - length],
    "distance_squared": lambda p, q, length: [np.sum((q - p) ** 2) - length**2],
    "aligned": lambda x, y, z, v: [x @ v, y @ v, z @ v - 1],
    "rotation_vector": scipy_rotation_vector,
    "gear": lambda x, y, v, t, X, Y, V, T, ratio, phase: [turn(X, Y, V, T) - ratio * turn(x, y, v, t) - phase],
    "rack": lambda x, y, v, t, a, p, q, radius, offset: [a @ (q - p) - radius * turn(x, y, v, t) - offset],
    "turned": lambda x, y, v, t, angle: [turn(x, y, v, t) - angle],
    "turn_limit": lambda x, y, v, t, lower, upper: beyond(turn(x, y, v, t), lower, upper),
    "displacement_limit": lambda a, p, q, lower, upper: beyond(a @ (q - p), lower, upper),
    "distance_limit": lambda p, q, lower, upper: beyond(np.linalg.norm(q - p), lower, upper),
    "inclination_limit": lambda u, v, lower, upper: beyond(kahan_angle(u, v), lower, upper),
    "radial": lambda x, y, p, q, distance: [abs(complex(x @ (q - p), y @ (q - p))) - distance],
    "twist": lambda u, v, x, y: [np.angle(complex(u @ x + v @ y, v @ x - u @ y))],
}
LIMITS = {name for name, primitive in REGISTRY.items() if not primitive.equations}

# Parameters that are lengths; all others are angles.
LENGTHS = {("dot_2", "offset"), ("distance", "length"), ("distance_squared", "length"), ("rack", "radius")}
LENGTHS |= {("rack", "offset"), ("radial", "distance")}
LENGTHS |= {(name, bound) for name in ("displacement_limit", "distance_limit") for bound in ("lower", "upper")}


def away_from_branches(name, x, parameters):
    """Whether differences are valid: the primitive is smooth in a neighbourhood of these world features."""
    for k, kind in enumerate(REGISTRY[name].features):
        if kind is FeatureKind.ANGLE:
            axes = x[k - 3], x[k - 2], x[k - 1]
            if np.hypot(axes[0] @ axes[2], axes[1] @ axes[2]) < 0.7 or abs(turn(*axes, x[k]) - x[k][0]) > 2.5:
                return False
    if name in LIMITS:
        lower, upper = parameters
        value = ORACLES[name](*x, 0.0, 0.0)[0]
        if not lower < upper or min(abs(value - lower), abs(value - upper)) < 0.1:
            return False
    if name in ("distance", "distance_squared", "distance_limit"):
        return np.linalg.norm(x[0] - x[1]) > 0.3
    if name == "radial":
        return np.hypot(x[0] @ (x[3] - x[2]), x[1] @ (x[3] - x[2])) > 1.0
    if name == "twist":
        s, c = x[1] @ x[2] - x[0] @ x[3], x[0] @ x[2] + x[1] @ x[3]
        return np.hypot(s, c) > np.linalg.norm(x[0]) * np.linalg.norm(x[2]) and abs(np.arctan2(s, c)) < 2.8
    if name in ("angle", "inclination_limit"):
        return 0.3 < kahan_angle(*x) < np.pi - 0.3
    if name == "rotation_vector":
        return np.linalg.norm(scipy_rotation_vector(*x)) < np.pi - 0.3
    return True


class Case:
    """One relation on two movable bodies, some features on the ground; q in the solver's coordinates.

    After the poses, q contains the last accepted values of counted angles, some of several whole turns.
    """

    def __init__(self, name, places, seed):
        self.primitive = REGISTRY[name]
        self.places = places
        rng = np.random.default_rng([seed, crc32(f"{name} {places}".encode())])
        mechanism = cd.Mechanism()
        for body in PLACES[:2]:
            mechanism.body(body)
        while True:
            self.values = [self._value(kind, rng) for kind in self.primitive.features]
            self.parameters = tuple(rng.uniform(0.3, 2.5, len(self.primitive.parameters)))
            angles = rng.uniform(-8, 8, sum(kind is FeatureKind.ANGLE for kind in self.primitive.features))
            r_p = [[*rng.uniform(-1, 1, 3), *random_quaternion(rng)] for _ in range(2)]
            self.q = np.array([*r_p[0], *r_p[1], *angles])
            if self.is_alone() or away_from_branches(name, self.features(self.q), self.parameters):
                break
        self.system = system_of(mechanism, self.primitive, places, self.values, self.parameters)
        self.rng = rng

    @staticmethod
    def _value(kind, rng):
        if kind is FeatureKind.POINT:
            return rng.uniform(-1, 1, 3)
        if kind is FeatureKind.ANGLE:
            return ()
        return unit(rng.normal(size=3)) if kind is FeatureKind.VECTOR else random_quaternion(rng)

    def centroid(self, body):
        """Reference point of a body: the mean of its points."""
        points = [
            value
            for kind, place, value in zip(self.primitive.features, self.places, self.values, strict=True)
            if kind is FeatureKind.POINT and place == body
        ]
        return np.mean(points, axis=0) if points else np.zeros(3)

    def features(self, q):
        """World features relative to the solvers' origin (the mean of the ground's points).

        r in q is the position of the reference point; p may have any norm.
        """
        world = []
        angles = list(q[14:])
        for kind, place, value in zip(self.primitive.features, self.places, self.values, strict=True):
            if kind is FeatureKind.ANGLE:
                world.append(np.array([angles.pop(0)]))
                continue
            if place == "ground":
                world.append(value - self.centroid(place) if kind is FeatureKind.POINT else value)
                continue
            pose = q[:14].reshape(2, 7)[PLACES.index(place)]
            r, p = pose[:3], pose[3:]
            if kind is FeatureKind.ORIENTATION:
                world.append(product(p, value))
            elif kind is FeatureKind.VECTOR:
                world.append(turned(p, value))
            else:
                world.append(r + turned(p, value - self.centroid(place)))
        return world

    def oracle(self, q, formulation):
        rows = ORACLES[self.primitive.name](
            *self.features(q), **dict(zip(self.primitive.parameters, self.parameters, strict=True))
        )
        normalisation = [p @ p - 1 for p in q[:14].reshape(2, 7)[:, 3:]] if formulation in NORMALISED else []
        return np.array([*rows, *normalisation])

    def off_the_sphere(self):
        """q with quaternions of other norms, if the formulation has quaternions."""
        while True:
            q = self.q.copy()
            q[:14].reshape(2, 7)[:, 3:] *= self.rng.uniform(0.6, 1.6, (2, 1))
            if self.is_alone() or away_from_branches(self.primitive.name, self.features(q), self.parameters):
                return q

    def is_alone(self):
        """If all features are on one body, its motion changes nothing, so no branch is crossed."""
        name = self.primitive.name
        return len(set(self.places)) == 1 and FeatureKind.ANGLE not in self.primitive.features and name not in LIMITS


def system_of(mechanism, primitive, places, values, parameters):
    """One relation on the bodies of a mechanism that are named in places."""
    bodies = [mechanism[name] for name in PLACES[:2]]
    features, turns = [], []
    for kind, place, value in zip(primitive.features, places, values, strict=True):
        if kind is FeatureKind.ANGLE:
            (_, a, x), (_, _, y), (_, b, v) = features[-3:]
            turns.append(CountedAngle(f"turn {len(turns)}", 100 + len(turns), a, x, y, b, v))
            features.append(Feature(kind, turns[-1], ()))
        else:
            features.append(Feature(kind, mechanism[place], tuple(value)))
    bundle = Bundle("it", [Relation(primitive, tuple(features), tuple(parameters))])
    return System([body._record for body in bodies], [bundle], turns)


def exponential(phi):
    """Quaternion of a rotation vector."""
    half = 0.5 * np.asarray(phi)
    return np.array([np.cos(np.linalg.norm(half)), *(np.sinc(np.linalg.norm(half) / np.pi) * half)])


def along(formulation, q, v, t):
    """The curve with constant velocity through q: r + tṙ, and p ⊗ exp(tω), or p + tṗ, or angles ψ + tψ̇, …

    A virtual rotation ṗ stays on the unit sphere: p ⊗ exp(tω) with ω = 2 (p* ⊗ ṗ).
    """
    out = q.copy()
    if formulation == "euler_parameters":
        out[:14] += t * v
        return out
    for row, (x1, x2, x3, *rates) in zip(out[:14].reshape(-1, 7), v.reshape(-1, WIDTHS[formulation]), strict=True):
        row[:3] += t * np.array([x1, x2, x3])
        if formulation == "euler_angles":
            angles = Rotation.from_quat(np.roll(row[3:], -1)).as_euler("ZXZ") + t * np.array(rates)
            row[3:] = np.roll(Rotation.from_euler("ZXZ", angles).as_quat(), 1)
        else:
            omega = rates if formulation == "manifold" else 2 * product(conjugate(row[3:]), rates)[1:]
            row[3:] = product(row[3:], exponential(t * np.array(omega)))
    return out


def directions(formulation, q):
    """A basis of the velocities for which the Jacobian is a derivative: of all velocities, or, for virtual rotations,
    of the tangent space of the unit spheres."""
    if formulation != "virtual_rotation":
        return list(np.eye(2 * WIDTHS[formulation]))
    spanning = []
    for b, p in enumerate(q[:14].reshape(2, 7)[:, 3:]):
        for k in range(6):
            v = np.zeros((2, 7))
            if k < 3:
                v[b, k] = 1.0
            else:
                v[b, 3:] = 0.5 * product(p, [0.0, *np.eye(3)[k - 3]])
            spanning.append(v.ravel())
    return spanning


def first_difference(f, h=2e-3):
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    return sum(w * (f(k * h) - f(-k * h)) for k, w in weights.items()) / h


def second_difference(f, h=8e-3):
    weights = {0: -205 / 72, 1: 8 / 5, 2: -1 / 5, 3: 8 / 315, 4: -1 / 560}
    return sum(w * (f(k * h) + f(-k * h)) / (2 if k == 0 else 1) for k, w in weights.items()) / h**2


def all_placements(name):
    """Features on body one, body two or the ground, in all combinations with at least one on a movable body.

    x and y of an angle are on one body.  If there are many combinations, a regular subset is taken.
    """
    kinds = REGISTRY[name].features
    places = [p for p in combinations(PLACES, repeat=len(kinds)) if set(p) != {"ground"}]
    places = [
        p
        for p in places
        if all(p[k - 3] == p[k - 2] != p[k - 1] == p[k] for k, kind in enumerate(kinds) if kind is FeatureKind.ANGLE)
    ]
    return places[:: max(1, len(places) // 80)]


def usual_placement(name):
    """The first feature on body one, and x and y of an angle too; all others on body two."""
    kinds = REGISTRY[name].features
    first = {0} | {k - i for k, kind in enumerate(kinds) if kind is FeatureKind.ANGLE for i in (2, 3)}
    return tuple("one" if k in first else "two" for k in range(len(kinds)))


def poses(case, formulation):
    return [case.q, case.off_the_sphere()] if formulation == "euler_parameters" else [case.q]


def close(value, expected, tolerance):
    __tracebackhide__ = True
    error = np.abs(value - expected).max(initial=0.0)
    assert error <= tolerance * max(1.0, np.abs(expected).max(initial=0.0)), f"off by {error:.1e}"


def check_residual(name, formulation, places, seed):
    case = Case(name, places, seed)
    problem = formulations.problem(case.system, formulation)
    for q in poses(case, formulation):
        close(problem.residual(q), case.oracle(q, formulation), EXACT)
        close(problem.jacobian(q)[0], case.oracle(q, formulation), EXACT)


def check_jacobian(name, formulation, places, seed):
    """Differences are taken of the oracle, so that an error common to f and ∂f is detected."""
    case = Case(name, places, seed)
    problem = formulations.problem(case.system, formulation)
    for q in poses(case, formulation):
        _, J = problem.jacobian(q)
        spanning = directions(formulation, q)
        columns = [
            first_difference(lambda t, q=q, v=v: case.oracle(along(formulation, q, v, t), formulation))
            for v in spanning
        ]
        close(J @ np.column_stack(spanning), np.column_stack(columns), JACOBIAN_TOL)


def check_gamma(name, formulation, places, seed):
    case = Case(name, places, seed)
    for q in poses(case, formulation):
        spanning = directions(formulation, q)
        v = case.rng.uniform(-1, 1, len(spanning)) @ spanning
        expected = -second_difference(lambda t, q=q, v=v: case.oracle(along(formulation, q, v, t), formulation))
        if formulation == "virtual_rotation":  # on the sphere p̈ = −|ṗ|² p: then γ = J v̇ − f̈
            acceleration = np.zeros((2, 7))
            acceleration[:, 3:] = -(v.reshape(2, 7)[:, 3:] ** 2).sum(axis=1)[:, None] * q[:14].reshape(2, 7)[:, 3:]
            expected += formulations.problem(case.system, formulation).jacobian(q)[1] @ acceleration.ravel()
        close(formulations.gamma(case.system, formulation, q, v), expected, GAMMA_TOL)


# --- laws over the whole registry -------------------------------------------------------------------------------------


@pytest.mark.nojit
def test_every_registered_primitive_has_an_independent_oracle():
    assert set(ORACLES) == set(REGISTRY) == set(SYMBOLIC)
    assert set(WIDTHS) == set(formulations.REGISTRY)
    assert {name for name, p in REGISTRY.items() if p.guards and p.equations} == set(SOLUTIONS)


@sampled("formulation", FORMULATIONS, 2)
@pytest.mark.parametrize("name", NAMES)
def test_residual_is_the_equation_wherever_the_features_are(name, formulation):
    for places in all_placements(name):
        check_residual(name, formulation, places, seed=1)


@sampled("formulation", FORMULATIONS, 1)
@pytest.mark.parametrize("name", NAMES)
def test_jacobian_is_the_derivative_of_the_residual_wherever_the_features_are(name, formulation):
    for places in all_placements(name):
        check_jacobian(name, formulation, places, seed=2)


@sampled("formulation", FORMULATIONS, 2)
@pytest.mark.parametrize("name", NAMES)
def test_gamma_is_minus_the_second_derivative_along_constant_velocity(name, formulation):
    for places in all_placements(name):
        check_gamma(name, formulation, places, seed=3)


@pytest.mark.nojit
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_residual_jacobian_and_gamma_hold_in_pure_python_too(name, formulation):
    usual = usual_placement(name)
    for places in (usual, tuple("ground" if place == "one" else place for place in usual)):
        check_residual(name, formulation, places, seed=4)
        check_jacobian(name, formulation, places, seed=5)
        check_gamma(name, formulation, places, seed=6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_jacobian_is_the_derivative_along_retract(name, formulation):
    """Differences of the library's residual along its retraction: solvers need both to be consistent."""
    case = Case(name, usual_placement(name), seed=7)
    problem = formulations.problem(case.system, formulation)
    for q in poses(case, formulation):
        _, J = problem.jacobian(q)
        spanning = directions(formulation, q)
        columns = [first_difference(lambda t, q=q, v=v: problem.residual(problem.retract(q, t * v))) for v in spanning]
        close(J @ np.column_stack(spanning), np.column_stack(columns), JACOBIAN_TOL)


@pytest.mark.nojit
@pytest.mark.parametrize("size", [0.0, 1e-12, 0.99e-4, 1.01e-4, 0.3, 3.0, 7.0])
def test_retract_follows_the_exponential_on_both_sides_of_its_series(size):
    case = Case("dot_1", ("one", "two"), seed=8)
    problem = formulations.problem(case.system, "manifold")
    v = np.concatenate([*(np.array([*case.rng.normal(size=3), *unit(case.rng.normal(size=3))]) for _ in range(2))])
    moved = problem.retract(case.q, v * size)
    assert np.abs(moved - along("manifold", case.q, v, size)).max() <= 1e-15 * max(1.0, size)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_rows_scale_with_length_by_their_declared_power(name, formulation):
    primitive = REGISTRY[name]
    small = Case(name, usual_placement(name), seed=9)
    values = [
        1000 * value if kind is FeatureKind.POINT else value
        for kind, value in zip(primitive.features, small.values, strict=True)
    ]
    parameters = tuple(
        value * (1000 if (name, key) in LENGTHS else 1)
        for key, value in zip(primitive.parameters, small.parameters, strict=True)
    )
    mechanism = cd.Mechanism()
    for body in PLACES[:2]:
        mechanism.body(body)
    system = system_of(mechanism, primitive, small.places, values, parameters)
    q = small.q.copy()
    q[:14].reshape(2, 7)[:, :3] *= 1000
    factor = 1000.0 ** LENGTH_POWER[primitive.unit]
    before = formulations.problem(small.system, formulation).residual(small.q)[: primitive.rows]
    after = formulations.problem(system, formulation).residual(q)[: primitive.rows]
    assert np.abs(after - factor * before).max() <= 1e-14 * factor * max(1.0, np.abs(before).max())


@pytest.mark.parametrize("name", NAMES)
def test_an_euler_parameter_jacobian_contracts_to_the_manifold_jacobian(name):
    """ṗ = ½ p ⊗ ω maps one tangent vector to the other, on the unit sphere."""
    case = Case(name, usual_placement(name), seed=10)
    J6 = formulations.problem(case.system, "manifold").jacobian(case.q)[1]
    J7 = formulations.problem(case.system, "euler_parameters").jacobian(case.q)[1]
    T = np.zeros((14, 12))
    for b in range(2):
        T[7 * b : 7 * b + 3, 6 * b : 6 * b + 3] = np.eye(3)
        p = case.q[7 * b + 3 : 7 * b + 7]
        T[7 * b + 3 : 7 * b + 7, 6 * b + 3 : 6 * b + 6] = np.column_stack(
            [0.5 * product(p, [0.0, *axis]) for axis in np.eye(3)]
        )
    rows = REGISTRY[name].rows
    close(J7[:rows] @ T, J6, 1e-14)
    close(J7[rows:] @ T, np.zeros((2, 12)), 1e-15)  # p stays on the unit sphere


@pytest.mark.parametrize("name", NAMES)
def test_a_virtual_rotation_jacobian_is_zero_along_p_and_else_the_derivative(name):
    """On the unit sphere its rows are those of the Euler parameters, times I − p pᵀ; off it they are not."""
    case = Case(name, ("one", *("two",) * (len(REGISTRY[name].features) - 1)), seed=16)
    rows = REGISTRY[name].rows
    P = np.eye(14)
    for b in range(2):
        p = case.q[7 * b + 3 : 7 * b + 7]
        P[7 * b + 3 : 7 * b + 7, 7 * b + 3 : 7 * b + 7] -= np.outer(p, p)
    true = formulations.problem(case.system, "euler_parameters")
    virtual = formulations.problem(case.system, "virtual_rotation")
    close(virtual.jacobian(case.q)[1][:rows], true.jacobian(case.q)[1][:rows] @ P, 1e-14)
    close(virtual.jacobian(case.q)[1][rows:], true.jacobian(case.q)[1][rows:], 0.0)
    off = case.off_the_sphere()
    for b in range(2):
        p = off[7 * b + 3 : 7 * b + 7]
        assert np.abs(virtual.jacobian(off)[1][:rows, 7 * b + 3 : 7 * b + 7] @ p).max() <= 1e-14


@pytest.mark.parametrize("name", NAMES)
def test_an_euler_angle_jacobian_is_the_manifold_jacobian_times_b(name):
    """δθ = B δ(ψ, θ, φ), with B by differences of SciPy's rotation; det B = −sin θ."""
    case = Case(name, ("one", *("two",) * (len(REGISTRY[name].features) - 1)), seed=17)
    J = formulations.problem(case.system, "manifold").jacobian(case.q)[1]
    T = np.eye(12)
    for b in range(2):
        angles = Rotation.from_quat(np.roll(case.q[7 * b + 3 : 7 * b + 7], -1)).as_euler("ZXZ")
        R = Rotation.from_euler("ZXZ", angles)
        for k, axis in enumerate(np.eye(3)):
            T[6 * b + 3 : 6 * b + 6, 6 * b + 3 + k] = first_difference(
                lambda t, R=R, a=angles, e=axis: (R.inv() * Rotation.from_euler("ZXZ", a + t * e)).as_rotvec()
            )
        block = T[6 * b + 3 : 6 * b + 6, 6 * b + 3 : 6 * b + 6]
        assert abs(np.linalg.det(block) + np.sin(angles[1])) <= 1e-10
    close(formulations.problem(case.system, "euler_angles").jacobian(case.q)[1], J @ T, JACOBIAN_TOL)


@pytest.mark.nojit
@pytest.mark.parametrize("theta", [0.0, 1e-100, 1e-12, 1e-6, 1.0, np.pi - 1e-6, np.pi])
def test_a_step_of_euler_angles_is_added_to_the_angles_up_to_the_poles(theta):
    """Rz(ψ) Rx(θ) Rz(φ); at θ = 0 and π the library sets φ = 0, so only ψ varies there."""
    half, before, step = 0.5 * theta, np.array([0.4, theta, 0.7]), np.array([0.3, 0.2, -0.5])
    if theta in (0.0, np.pi):
        before = np.array([before[0] + (before[2] if theta == 0.0 else -before[2]), theta, 0.0])
    c, s = (np.cos(half), np.sin(half)) if theta != np.pi else (0.0, 1.0)
    plus, minus = 0.5 * (before[0] + before[2]), 0.5 * (before[0] - before[2])
    p = [c * np.cos(plus), s * np.cos(minus), s * np.sin(minus), c * np.sin(plus)]
    system = one_body("dot_1", [(0.0, 0.0, 1.0)], [(0.0, 1.0, 0.0)])
    moved = formulations.problem(system, "euler_angles").retract(
        np.array([0.1, 0.2, 0.3, *p]), np.array([0.0, 0.0, 1.0, *step])
    )
    assert np.abs(moved[:3] - [0.1, 0.2, 1.3]).max() <= 1e-15
    expected = Rotation.from_euler("ZXZ", before + step).as_matrix()
    assert np.abs(Rotation.from_quat(np.roll(moved[3:], -1)).as_matrix() - expected).max() <= 4e-15


@pytest.mark.nojit
def test_at_the_poles_euler_angles_cannot_rotate_about_one_axis():
    """B has rank 2 at θ = 0: no rotation about the body's y is possible; on the manifold it is."""
    system = one_body("dot_1", [(1.0, 0.0, 0.0)], [(0.0, 0.0, 1.0)])  # a rotation about y would tilt z towards x
    q = np.array([0.0, 0.0, 0.0, *IDENTITY])
    assert formulations.problem(system, "manifold").jacobian(q)[1][0].tolist() == [0, 0, 0, 0, 1, 0]
    assert not formulations.problem(system, "euler_angles").jacobian(q)[1].any()


# --- symbols ----------------------------------------------------------------------------------------------------------


def _dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def _cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _symbolic_rotation_vector(a, b):
    a, b = sympy.Quaternion(*a), sympy.Quaternion(*b)
    r = sympy.Quaternion(a.a, -a.b, -a.c, -a.d) * b
    n = sympy.sqrt(r.b**2 + r.c**2 + r.d**2)
    return [2 * sympy.atan2(n, r.a) / n * c for c in (r.b, r.c, r.d)]


def _difference(p, q):
    return [b - a for a, b in zip(p, q, strict=True)]


def _turn(x, y, v, near):
    """The angle within π of near: rotate by −near, take atan2, add near."""
    s, c, (n,) = _dot(y, v), _dot(x, v), near
    return n + sympy.atan2(s * sympy.cos(n) - c * sympy.sin(n), c * sympy.cos(n) + s * sympy.sin(n))


def _beyond(value, lower, upper):
    return sympy.Piecewise((value - upper, value > upper), (value - lower, value < lower), (0, True))


# Features as tuples of symbols, then the parameters.
SYMBOLIC = {
    "coincidence": _difference,
    "dot_1": lambda u, v: [_dot(u, v)],
    "dot_2": lambda v, p, q, c: [_dot(v, _difference(p, q)) - c],
    "angle": lambda u, v, c: [sympy.acos(_dot(u, v) / sympy.sqrt(_dot(u, u) * _dot(v, v))) - c],
    "angle_cosine": lambda u, v, c: [_dot(u, v) - sympy.cos(c)],
    "distance": lambda p, q, c: [sympy.sqrt(_dot(_difference(p, q), _difference(p, q))) - c],
    "distance_squared": lambda p, q, c: [_dot(_difference(p, q), _difference(p, q)) - c**2],
    "aligned": lambda x, y, z, v: [_dot(x, v), _dot(y, v), _dot(z, v) - 1],
    "rotation_vector": _symbolic_rotation_vector,
    "gear": lambda x, y, v, t, X, Y, V, T, a, b: [_turn(X, Y, V, T) - a * _turn(x, y, v, t) - b],
    "rack": lambda x, y, v, t, z, p, q, a, b: [_dot(z, _difference(p, q)) - a * _turn(x, y, v, t) - b],
    "turned": lambda x, y, v, t, a: [_turn(x, y, v, t) - a],
    "turn_limit": lambda x, y, v, t, a, b: [_beyond(_turn(x, y, v, t), a, b)],
    "displacement_limit": lambda z, p, q, a, b: [_beyond(_dot(z, _difference(p, q)), a, b)],
    "distance_limit": lambda p, q, a, b: [_beyond(sympy.sqrt(_dot(_difference(p, q), _difference(p, q))), a, b)],
    "inclination_limit": lambda u, v, a, b: [
        _beyond(sympy.acos(_dot(u, v) / sympy.sqrt(_dot(u, u) * _dot(v, v))), a, b)
    ],
    "radial": lambda x, y, p, q, c: [sympy.sqrt(_dot(x, _difference(p, q)) ** 2 + _dot(y, _difference(p, q)) ** 2) - c],
    "twist": lambda u, v, x, y: [sympy.atan2(_dot(v, x) - _dot(u, y), _dot(u, x) + _dot(v, y))],
}


@jit
def kernels(code, curvature_code, x, velocity, constants, f, partials, curvature):
    update_primitive(code, x, constants, f, partials)
    if curvature_code < FIRST_ADDRESS:
        primitive_curvature(curvature_code, x, velocity, constants, curvature)
    else:
        call_curvature(curvature_code, x, velocity, constants, curvature)


@pytest.mark.slow
@pytest.mark.nojit
@sampled("name", NAMES, 9)
def test_partials_and_curvature_with_respect_to_the_features_are_those_of_sympy(name):
    primitive = REGISTRY[name]
    rng = np.random.default_rng(11)
    # eighths are exact in both arithmetics; quaternions are near a common one, so angles are well below π
    x = rng.integers(-8, 9, primitive.components) / 8 + 3.0 * (np.arange(primitive.components) % 4 == 0)
    velocity = rng.integers(-8, 9, primitive.components) / 8
    constant = np.array([0.75] * len(primitive.parameters))
    f, partials = np.zeros(primitive.rows), np.zeros(primitive.rows * primitive.components)
    curvature = np.zeros(primitive.rows)
    codes = addresses.address(primitive), addresses.curvature_address(primitive)
    kernels(*codes, x, velocity, constant, f, partials, curvature)

    t = sympy.Symbol("t", real=True)

    def exact(direction, order):
        at = [sympy.Rational(a) + t * sympy.Rational(d) for a, d in zip(x.tolist(), direction.tolist(), strict=True)]
        features, taken = [], 0
        for kind in primitive.features:
            features.append(at[taken : taken + kind.components])
            taken += kind.components
        rows = SYMBOLIC[name](*features, *(sympy.Rational(c) for c in constant))
        derivatives = [sympy.diff(row, t, order) if order else row for row in rows]
        return [float(d.subs(t, 0).evalf(30)) for d in derivatives]

    close(f, np.array(exact(velocity, 0)), 1e-15)
    columns = [exact(direction, 1) for direction in np.eye(primitive.components)]
    close(partials.reshape(primitive.rows, -1), np.column_stack(columns), 1e-15)
    close(curvature, np.array(exact(velocity, 2)), 4e-15)


# --- where a formula could break --------------------------------------------------------------------------------------


def one_body(name, ground, own, parameters=()):
    """A primitive between features of the ground (first) and features of one body."""
    primitive = REGISTRY[name]
    mechanism = cd.Mechanism()
    body = mechanism.body("one")
    kinds = primitive.features
    owners = [mechanism.ground] * len(ground) + [body] * len(own)
    features = tuple(
        Feature(kind, owner, tuple(map(float, value)))
        for kind, owner, value in zip(kinds, owners, [*ground, *own], strict=True)
    )
    return System([body._record], [Bundle("it", [Relation(primitive, features, parameters)])])


IDENTITY = (1.0, 0.0, 0.0, 0.0)


@pytest.mark.nojit
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_distance_of_coincident_points_pulls_along_a_fixed_direction(formulation):
    system = one_body("distance", [(0.5, -1.0, 2.0)], [(0.0, 0.0, 0.0)], (3.0,))
    assert system.origin.tolist() == [0.5, -1.0, 2.0]  # r in q is relative to the mean of the ground's points
    f, J = formulations.problem(system, formulation).jacobian(np.array([0.0, 0.0, 0.0, *IDENTITY]))
    assert f[0] == -3.0
    assert J[0, :3].tolist() == [1.0, 0.0, 0.0]
    assert not J[0, 3:].any()
    velocity = np.ones(WIDTHS[formulation])
    assert np.isfinite(formulations.gamma(system, formulation, np.array([0.0, 0.0, 0.0, *IDENTITY]), velocity)).all()


@pytest.mark.nojit
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize(("axis", "value"), [((0.0, 0.0, 1.0), 0.0), ((0.0, 0.0, -1.0), np.pi)])
def test_angle_of_parallel_and_opposite_axes_is_exact_with_a_fixed_gradient(formulation, axis, value):
    system = one_body("angle", [(0.0, 0.0, 1.0)], [axis], (1.0,))
    f, J = formulations.problem(system, formulation).jacobian(np.array([0.0, 0.0, 0.0, *IDENTITY]))
    assert f[0] == value - 1.0
    assert np.isfinite(J).all()
    assert np.abs(J[0, 3:]).max() >= 0.5  # a solver can leave the point


@pytest.mark.nojit
@pytest.mark.parametrize("angle", [1e-9, 1e-7, 1e-4, 1.0, 3.1, np.pi - 1e-7, np.pi - 1e-9])
def test_angle_is_as_accurate_near_zero_and_pi_as_elsewhere(angle):
    system = one_body("angle", [(0.0, 0.0, 1.0)], [(0.0, 0.0, 1.0)], (0.0,))
    f, J = formulations.problem(system, "manifold").jacobian(np.array([0.0, 0.0, 0.0, *exponential([angle, 0, 0])]))
    assert abs(f[0] - angle) <= 1e-15
    assert abs(J[0, 3] - 1.0) <= 1e-15 / min(angle, np.pi - angle) ** 0.5
    assert abs(J[0, 4]) <= 1e-15 / min(angle, np.pi - angle)


@pytest.mark.nojit
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_an_opposed_axis_is_a_stationary_point_at_the_largest_residual(formulation):
    system = one_body("aligned", np.eye(3), [(0.0, 0.0, -1.0)])
    f, J = formulations.problem(system, formulation).jacobian(np.array([0.3, 0.2, 0.1, *IDENTITY]))
    assert f[:3].tolist() == [0.0, 0.0, -2.0]
    if formulation not in NORMALISED:
        assert not (J.T @ f).any()
    else:  # along the unit sphere; across it v itself grows
        sphere = np.column_stack([product(IDENTITY, [0.0, *axis]) for axis in np.eye(3)])
        assert not ((J[:3, 3:] @ sphere).T @ f[:3]).any()


def _aligned_solution(rng):
    """Axes on the ground, v on a body that is rotated so that v = z."""
    p = random_quaternion(rng)
    return one_body("aligned", np.eye(3), [turned(conjugate(p), (0.0, 0.0, 1.0))]), p


SOLUTIONS = {"aligned": _aligned_solution}


@pytest.mark.parametrize("name", sorted(SOLUTIONS))
def test_guard_rows_vanish_with_their_gradient_on_the_solution(name):
    rng = np.random.default_rng(12)
    for _ in range(20):
        system, p = SOLUTIONS[name](rng)
        primitive = REGISTRY[name]
        q = np.array([0.1, 0.2, 0.3, *p])
        f, J = formulations.problem(system, "manifold").jacobian(q)
        guards = list(primitive.guards)
        others = [i for i in range(primitive.rows) if i not in guards]
        assert np.abs(f[: primitive.rows]).max() <= 1e-15
        assert np.abs(J[guards]).max() <= 1e-15
        assert np.linalg.matrix_rank(J[others]) == primitive.equations
        _, J7 = formulations.problem(system, "euler_parameters").jacobian(q)
        sphere = np.column_stack([product(p, [0.0, *axis]) for axis in np.eye(3)])
        assert np.abs(J7[guards][:, :3]).max() == 0.0
        assert np.abs(J7[guards][:, 3:] @ sphere).max() <= 1e-15


def test_the_norm_of_an_aligned_residual_is_the_chord_of_the_angle_between_the_axes():
    rng = np.random.default_rng(13)
    system = one_body("aligned", np.eye(3), [(0.0, 0.0, 1.0)])
    problem = formulations.problem(system, "manifold")
    for _ in range(50):
        p = random_quaternion(rng)
        f = problem.residual(np.array([0.0, 0.0, 0.0, *p]))
        angle = kahan_angle((0.0, 0.0, 1.0), turned(p, (0.0, 0.0, 1.0)))
        assert abs(np.linalg.norm(f) - 2 * np.sin(angle / 2)) <= 4e-16 * 2


HALF_TURNS = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.8, 0), (0.6, -0.8, 0), (0, 0.6, -0.8), (0, -0.28, 0.96)]


@pytest.mark.nojit
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("axis", HALF_TURNS)
def test_at_pi_the_first_component_of_the_axis_is_positive(axis, formulation):
    axis = np.array(axis, dtype=float)
    expected = np.pi * axis * np.sign(axis[axis != 0][0])
    seen = []
    for sign_p, sign_a, sign_b in combinations((1.0, -1.0), repeat=3):
        system = one_body("rotation_vector", [sign_a * np.array(IDENTITY)], [sign_b * np.array(IDENTITY)])
        q = np.array([0.0, 0.0, 0.0, 0.0, *(sign_p * axis)])
        f, J = formulations.problem(system, formulation).jacobian(q)
        assert np.abs(f[:3] - expected).max() <= 1e-15
        assert np.isfinite(J).all()
        within_reach = formulation != "euler_angles" or (axis[:2].any() and axis[2] != 0)  # neither θ = 0 nor θ = π
        assert np.linalg.matrix_rank(J[:3]) == (3 if within_reach else 2)
        seen.append((f[:3].tolist(), np.abs(J[:3]).tolist()))
    assert all(s == seen[0] for s in seen)


@pytest.mark.parametrize("short", [1e-3, 1e-6, 1e-9, 1e-12])
def test_near_pi_the_rotation_vector_stays_within_pi_on_both_sides(short):
    axis = unit([0.36, -0.48, 0.8])
    system = one_body("rotation_vector", [IDENTITY], [IDENTITY])
    problem = formulations.problem(system, "manifold")
    for angle, expected in ((np.pi - short, np.pi - short), (np.pi + short, short - np.pi)):
        for sign in (1.0, -1.0):
            f = problem.residual(np.array([0.0, 0.0, 0.0, *(sign * exponential(angle * axis))]))
            assert np.linalg.norm(f) <= np.pi
            assert np.abs(f - expected * axis).max() <= 1e-15


def mp_exponential(phi):
    theta = mpmath.sqrt(mpmath.fsum(x * x for x in phi))
    factor = mpmath.sin(theta / 2) / theta if theta else mpmath.mpf(1) / 2
    return [mpmath.cos(theta / 2), *(factor * x for x in phi)]


def mp_inverse_right_jacobian(phi):
    """∂log(p ⊗ exp δ)/∂δ = I + ½φ̃ + (1/θ² − cot(θ/2)/(2θ)) φ̃²."""
    x, y, z = phi
    tilde = mpmath.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    theta = mpmath.sqrt(x * x + y * y + z * z)
    factor = 1 / theta**2 - mpmath.cot(theta / 2) / (2 * theta) if theta else mpmath.mpf(1) / 12
    return mpmath.eye(3) + tilde / 2 + factor * tilde * tilde


BRANCH = 2 * np.arctan(np.sqrt(SERIES_BELOW))  # the angle at which log switches from the series to atan2
ANGLES = [0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4, 0.1, 1.0, 2.0, 3.0, 3.14]
ANGLES += [BRANCH * f for f in (0.9, 1 - 1e-6, 1 - 1e-15, 1 + 1e-15, 1 + 1e-6, 1.1)]


@pytest.mark.nojit
@pytest.mark.parametrize("angle", ANGLES)
def test_rotation_vector_and_its_derivative_are_exact_on_both_sides_of_the_series(angle):
    system = one_body("rotation_vector", [IDENTITY], [IDENTITY])
    problem = formulations.problem(system, "manifold")
    with mpmath.workdps(50):
        phi = [mpmath.mpf(float(c)) for c in angle * np.array([2 / 7, -3 / 7, 6 / 7])]
        p = np.array([float(c) for c in mp_exponential(phi)])
        exact = np.array([float(c) for c in phi])
        derivative = np.array(mp_inverse_right_jacobian(phi).tolist(), dtype=float)
    f, J = problem.jacobian(np.array([0.0, 0.0, 0.0, *p]))
    # rounding of p changes φ by some ulps of one radian, or of φ if it is small
    assert np.abs(f - exact).max() <= 1e-15 * max(2.0 * angle, min(1.0, angle))
    close(J[:, 3:], derivative, 1e-14)
    assert not J[:, :3].any()


@pytest.mark.nojit
@pytest.mark.parametrize("angle", [a for a in ANGLES if 1e-3 < a < 2.9])
def test_gamma_of_the_rotation_vector_holds_on_both_sides_of_the_series(angle):
    """With one body at rest, φ(t) = log(p ⊗ exp(tω)); its second derivative is computed by 50-digit differences."""
    system = one_body("rotation_vector", [IDENTITY], [IDENTITY])
    omega = np.array([0.7, 0.4, -0.9])
    direction = np.array([2 / 7, -3 / 7, 6 / 7])
    q = np.array([0.0, 0.0, 0.0, *exponential(angle * direction)])
    with mpmath.workdps(50):
        p = [mpmath.mpf(float(c)) for c in q[3:]]
        rate = [mpmath.mpf(float(c)) for c in omega]

        def phi(t):
            w, x, y, z = p
            a, b, c, d = mp_exponential([t * r for r in rate])
            e = [
                w * a - x * b - y * c - z * d,
                w * b + x * a + y * d - z * c,
                w * c - x * d + y * a + z * b,
                w * d + x * c - y * b + z * a,
            ]
            n = mpmath.sqrt(e[1] ** 2 + e[2] ** 2 + e[3] ** 2)
            return [2 * mpmath.atan2(n, e[0]) / n * c for c in e[1:]]

        h = mpmath.mpf(10) ** -12
        before, here, after = phi(-h), phi(mpmath.mpf(0)), phi(h)
        expected = [float(-(a - 2 * b + c) / h**2) for a, b, c in zip(before, here, after, strict=True)]
    value = formulations.gamma(system, "manifold", q, np.array([0.0, 0.0, 0.0, *omega]))
    assert np.abs(value - expected).max() <= 1e-13 * max(1.0, np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.nojit
@sampled("name", NAMES, 6)
def test_gamma_vanishes_at_rest_and_is_quadratic_in_the_velocities(name):
    rng = np.random.default_rng(14)
    case = Case(name, usual_placement(name), seed=15)
    for formulation in FORMULATIONS:
        v = rng.uniform(-1, 1, 2 * WIDTHS[formulation])
        once = formulations.gamma(case.system, formulation, case.q, v)
        close(formulations.gamma(case.system, formulation, case.q, -3 * v), 9 * once, 1e-14)
        assert not formulations.gamma(case.system, formulation, case.q, 0 * v).any()
