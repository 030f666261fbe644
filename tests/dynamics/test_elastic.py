"""Equilibria, small motions and equations of flexible bodies: closed forms, and differences of particles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import cardan as cd
from cardan.analysis.starts import start_angles
from cardan.dynamics.elastic import ElasticEquations
from cardan.elastic import beam, buckling_factor, wave_numbers
from cardan.math import euler

L, A, I_Y, I_Z, E, RHO = 1.6, 3e-4, 2e-9, 5e-9, 7e10, 2700.0
SECTION = {"area": A, "second_moments": (I_Y, I_Z), "young": E, "density": RHO}
X, Y, Z = np.eye(3)
NONE = (0.0, 0.0, 0.0)


def mechanism(gravity=NONE, **counts):
    m = cd.Mechanism("flexible", gravity=gravity)
    rod = m.body("rod")
    rod.flexible(beam(L, **SECTION, **counts))
    return m, rod


def cantilever(at, gravity=NONE, **counts):
    """Clamped at x = at, with a massless tip at the other end."""
    m, rod = mechanism(gravity, **counts)
    m.fixed("clamp", m.ground.frame((at, 0, 0)), rod.frame((at, 0, 0)))
    tip = m.body("tip", position=(L - at, 0, 0))
    m.fixed("weld", rod.frame((L - at, 0, 0)), tip.frame())
    return m, tip


def bending_frequency(ends, number=0):
    """Of the softer and the stiffer direction [Hz]."""
    wave = wave_numbers(ends, number + 1)[number]
    return wave**2 * np.sqrt(E * np.array([I_Y, I_Z]) / (RHO * A)) / L**2 / (2 * np.pi)


@pytest.mark.parametrize("at", [0.0, L])
def test_the_first_frequency_of_a_cantilever_is_that_of_the_closed_form_at_either_end(at):
    m, _ = cantilever(at, bending=6, stretch=4, twist=4)
    lin = m.linearize()
    assert lin.stable is True
    assert lin.frequencies[:2] == pytest.approx(bending_frequency(("clamped", "free")), rel=1e-9 if at == 0 else 1e-6)
    for closed in (np.sqrt(E / RHO) / (4 * L), np.sqrt(E / 2.6 / RHO) / (4 * L)):
        assert np.abs(lin.frequencies / closed - 1).min() < 1e-6


def test_frequencies_between_pins_and_clamps():
    m, rod = mechanism(bending=8, stretch=1, twist=1)
    m.spherical("A", m.ground.point(), rod.point())
    m.spherical("B", m.ground.point((L, 0, 0)), rod.point((L, 0, 0)))
    lin = m.linearize()
    assert lin.frequencies[:2] == pytest.approx(bending_frequency(("pinned", "pinned")), rel=1e-6)
    assert lin.stable is None  # it may spin about its axis
    m, rod = mechanism(bending=8, stretch=1)
    m.fixed("A", m.ground.frame(), rod.frame())
    m.fixed("B", m.ground.frame((L, 0, 0)), rod.frame((L, 0, 0)))
    assert m.linearize().frequencies[:2] == pytest.approx(bending_frequency(("clamped", "clamped")), rel=1e-6)


@pytest.mark.parametrize("at", [0.0, L])
def test_tip_deflections_are_those_of_the_textbook_at_either_end(at):
    m, tip = cantilever(at, bending=3, stretch=1)
    F = 0.01
    m.force("push", tip.point(), (0.0, F, 2 * F))
    eq = m.equilibrium()
    assert eq.ok and eq.stable, eq.text()
    known = F * L**3 / (3 * E) * np.array([1 / I_Z, 2 / I_Y])
    assert eq.state["tip"].position[1:] == pytest.approx(known, rel=1e-6)
    with pytest.raises(cd.ModelError, match="flexible bodies are not computed yet"):
        eq.reaction("clamp")


def test_a_heavy_beam_droops_and_a_hanging_one_is_stretched():
    m, tip = cantilever(0.0, (0, -1e-3, 0), bending=3, stretch=1)
    droop = m.equilibrium().state["tip"].position[1]
    assert droop == pytest.approx(-RHO * A * 1e-3 * L**4 / (8 * E * I_Z), rel=1e-6)
    m, rod = mechanism((9.81, 0, 0), bending=2, stretch=2)
    m.revolute("A", m.ground.frame(), rod.frame())
    tip = m.body("tip", position=(L, 0, 0))
    m.fixed("weld", rod.frame((L, 0, 0)), tip.frame())
    eq = m.equilibrium(m.state.moved({"rod": (NONE, ("z", 0.3))}))
    assert eq.ok and eq.stable, eq.text()
    assert eq.state["tip"].position == pytest.approx([L + RHO * 9.81 * L**2 / (2 * E), 0, 0], abs=1e-12)


def test_a_stiff_pendulum_swings_as_a_rigid_one():
    m = cd.Mechanism(gravity=(0, -9.81, 0))
    rod = m.body("rod", orientation=("z", -np.pi / 2))
    rod.flexible(beam(L, **{**SECTION, "young": 7e16}, bending=(2, 0), stretch=1))
    m.revolute("A", m.ground.frame(), rod.frame())
    rigid = np.sqrt(1.5 * 9.81 / L) / (2 * np.pi)
    assert m.linearize().frequencies[0] == pytest.approx(rigid, rel=1e-6)


def softest(m):
    """ω² of the softest motion at the equilibrium; negative where it is unstable."""
    values = m.linearize(m.equilibrium().state).eigenvalues
    return float(min((-(value**2)).real for value in values))


@pytest.mark.slow
@pytest.mark.parametrize("ends", [("clamped", "free"), ("pinned", "pinned")])
def test_a_column_buckles_at_the_load_of_euler(ends):
    """The least eigenvalue of the small motions about the equilibrium vanishes there."""
    known = buckling_factor(ends) * np.pi**2 * E * I_Z / L**2

    def at(load):
        m, rod = mechanism(bending=(5 if ends[1] == "free" else 7, 0), stretch=0)
        join = m.fixed if ends[0] == "clamped" else m.revolute
        join("A", m.ground.frame(), rod.frame())
        tip = m.body("tip", position=(L, 0, 0), mass=0.1, inertia=(1e-4, 1e-4, 1e-4))
        m.fixed("weld", rod.frame((L, 0, 0)), tip.frame())
        if ends[1] == "pinned":
            m.point_in_plane("guide", tip.point(), m.ground.frame(z=Y))
        m.force("push", tip.point(), (-load, 0, 0))
        return softest(m)

    found = brentq(at, 0.9 * known, 1.1 * known, xtol=1e-9 * known, rtol=1e-10)
    assert found == pytest.approx(known, rel=1e-6)


# -- equations ---------------------------------------------------------------------------------------------------------

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
SECOND = (8 / 5, -1 / 5, 8 / 315, -1 / 560)
H = 2e-3


def rate(read):
    return sum(w * (read(k * H) - read(-k * H)) for k, w in enumerate(WEIGHTS, 1)) / H


def acceleration(read):
    at = read(0.0)
    return sum(w * (read(k * H) - 2.0 * at + read(-k * H)) for k, w in enumerate(SECOND, 1)) / H**2


def loaded():
    m, rod = mechanism((1.0, -9.81, 2.0), bending=2, stretch=1, twist=0)
    part = m.body("part", position=(L, 0, 0), mass=0.7, inertia=(0.02, 0.03, 0.04), center=(0.1, 0.2, -0.1))
    m.revolute("A", m.ground.frame(), rod.frame())
    m.spherical("B", rod.point((L, 0, 0)), part.point())
    m.spring("spring", m.ground.point((1, 1, 1)), part.point((0.1, 0.2, 0.3)), stiffness=20.0, rest=0.3)
    eta = {one.name: 0.01 * (k + 1) for k, one in enumerate(rod.elastic.coordinates)}
    state = m.state.moved({"rod": ((0.1, 0.2, 0.3), ("xyz", (0.3, 0.5, 0.7))), "part": (X, ("z", 0.4))})
    e = ElasticEquations(m._model.drawing, 0.0)
    state = state.with_variables(eta)
    return m, e, e.start(state, start_angles(e.system, state))


def particles(m, e):
    """Masses, bodies and places (by η) of the rod's quadrature and of six particles of the part.

    The sections of the rod also resist rotation about its axis: particles about its origin, of no mass in all.
    """
    P = m["rod"].elastic.modes.points
    found = [
        (mass, 0, s, phi, second)
        for mass, s, phi, second in zip(P.masses, P.places, P.displacement, P.second, strict=True)
    ]
    moments = np.diag(m["part"].inertia)
    halves = (moments.sum() / 2 - moments) / 2
    centre = np.array(m["part"].center)
    n = len(m["rod"].elastic.coordinates)
    none = np.zeros((3, n)), np.zeros((3, n, n))
    found += [
        (h, 1, centre + sign * axis, *none) for h, axis in zip(halves, np.eye(3), strict=True) for sign in (1, -1)
    ]
    spin = RHO * (I_Y + I_Z) * L / 4
    found += [
        (h * spin, 0, sign * axis, *none) for h, axis in zip((-1, 1, 1), np.eye(3), strict=True) for sign in (1, -1)
    ]
    found += [(-2 * spin, 0, np.zeros(3), *none)]
    return [*found, (m["part"].mass - 2 * halves.sum(), 1, centre, *none)]


def place(e, z, particle):
    _, body, s, phi, second = particle
    eta = e.eta(z)
    pose = z[7 * body : 7 * body + 7]
    u = s + phi @ eta + 0.5 * np.einsum("inm,n,m->i", second, eta, eta) - e.system.reference_points[body]
    return pose[:3] + euler.rotate(euler.normalize(pose[3:]), u)


def test_inertia_and_velocity_forces_are_those_of_particles():
    m, e, z = loaded()
    rng = np.random.default_rng(2)
    v, a, dv = (rng.uniform(-1, 1, e.scales.size) * [*[1.0] * 12, *[0.1] * 5] for _ in range(3))

    def path(w, b):
        return lambda t: e.problem.retract(z, t * w + 0.5 * t * t * b)

    expected = 0.0
    for one in particles(m, e):
        moving, varied = path(v, a), path(dv, 0 * a)
        accelerated = acceleration(lambda t, one=one, moving=moving: place(e, moving(t), one))
        expected += one[0] * accelerated @ rate(lambda t, one=one, varied=varied: place(e, varied(t), one))
    assert (e.mass(z) @ a + e.bias(z, v)) @ dv == pytest.approx(expected, rel=1e-9)


def test_forces_are_those_of_potentials_and_gamma_is_that_of_differences():
    m, e, z = loaded()
    rng = np.random.default_rng(3)
    v = rng.uniform(-1, 1, e.scales.size) * [*[1.0] * 12, *[0.1] * 5]
    g = np.array(m.gravity)

    def potential(t):
        now = e.problem.retract(z, t * v)
        weights = -sum(one[0] * place(e, now, one) @ g for one in particles(m, e))
        state = e.state(now)
        stretched = np.linalg.norm(state["part"].point((0.1, 0.2, 0.3)) - 1.0) - 0.3
        return weights + 10.0 * stretched**2

    assert e.applied(z, 0 * v) @ v == pytest.approx(-rate(potential), rel=1e-9)
    along = rate(lambda t: e.jacobian(e.problem.retract(z, t * v)) @ v)
    assert e.gamma(z, v) == pytest.approx(-along, abs=1e-9)
    change = rate(lambda t: e.problem.residual(e.problem.retract(z, t * v)) * e.rows)
    assert e.jacobian(z) @ v == pytest.approx(change, abs=1e-9)


def test_the_inertia_of_twisting_is_that_of_the_section():
    m, rod = mechanism(bending=1, stretch=1, twist=1)
    m.revolute("A", m.ground.frame(), rod.frame())
    e = ElasticEquations(m._model.drawing, 0.0)
    z = e.start(m.state, start_angles(e.system, m.state))
    M = e.mass(z)
    assert M[3, 3] == pytest.approx(RHO * (I_Y + I_Z) * L, rel=1e-12)
    assert M[6:, 6:] == pytest.approx(np.eye(4), abs=1e-12)
    assert np.allclose(M, M.T)
    w = np.linalg.norm(np.linalg.eigvalsh(M)[0])
    assert w > 0


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (lambda m: m.limit("stop", m["A"], upper=1.0), "limits yet: 'stop'"),
        (lambda m: setattr(m["A"], "inertia", 1.0), "inertias of joints yet: 'A'"),
        (lambda m: m.knife_edge("edge", m["part"].frame()), "constraints of velocities yet: 'edge'"),
        (
            lambda m: m.force("push", m["rod"].point((L, 0, 0)), X),
            "loads on flexible bodies yet, and force 'push' acts",
        ),
        (lambda m: m.spring("turn", m["A"], stiffness=1.0), "spring 'turn' acts on 'rod'"),
        (lambda m: m.collide("all", name="apart"), "collisions"),
    ],
)
def test_what_is_not_considered_is_refused_by_name(add, words):
    m, rod = mechanism(bending=1)
    part = m.body("part", position=(L, 0, 0), mass=1.0)
    m.revolute("A", m.ground.frame(), rod.frame())
    m.fixed("B", rod.frame((L, 0, 0)), part.frame())
    add(m)
    for verb in (m.equilibrium, m.linearize):
        with pytest.raises(cd.ModelError, match=words):
            verb()


def test_a_state_that_is_no_equilibrium_and_motions_without_mass_are_refused():
    m, _ = cantilever(0.0, (0, -9.81, 0), bending=2)
    with pytest.raises(cd.ModelError, match="not an equilibrium"):
        m.linearize()
    moving = m.assemble().state.with_rates(np.ones((2, 6)))
    with pytest.raises(cd.ModelError, match="at rest"):
        m.linearize(moving)
    m, rod = mechanism(bending=1)
    m.fixed("A", m.ground.frame(), rod.frame())
    m.revolute("B", rod.frame((L, 0, 0)), m.body("light", position=(L, 0, 0)).frame())
    with pytest.raises(cd.ModelError, match="needs masses"):
        m.linearize()


def swing(stiffness=5.0):
    """A rod that is clamped, and beside it a part of 1e-3 kg m² that turns on a spring."""
    m, rod = mechanism(bending=1, stretch=0)
    m.fixed("clamp", m.ground.frame(), rod.frame())
    part = m.body("part", mass=1.0, inertia=(1e-3, 1e-3, 1e-3))
    m.revolute("A", m.ground.frame((0, 1, 0)), part.frame())
    m.spring("coil", m["A"], stiffness=stiffness)
    return m


def test_the_mass_of_a_rigid_part_may_be_a_parameter():
    plain, _ = cantilever(0.0, bending=2)
    plain["tip"].mass = 0.3
    m, _ = cantilever(0.0, bending=2)
    k = m.parameter("k", 0.15)
    m["tip"].mass = 2.0 * k
    assert m.linearize().frequencies == pytest.approx(plain.linearize().frequencies, rel=1e-12)
    k.value = 0.3
    plain["tip"].mass = 0.6
    assert m.linearize().frequencies == pytest.approx(plain.linearize().frequencies, rel=1e-12)


def test_friction_may_be_a_parameter_where_an_equilibrium_is_found():
    m = swing()
    m.friction("rub", m["A"], coulomb=m.parameter("k", 0.5), viscous=1.0)
    assert any("'rub' has no force at rest" in note for note in m.equilibrium().notes)


@pytest.mark.parametrize("speed", [1e-3, 1e-4, 1.0])
def test_friction_beside_a_flexible_body_has_its_slope_at_rest(speed):
    """The closed form of I ẍ + (viscous + coulomb/speed) ẋ + k x = 0."""
    m = swing()
    m.friction("rub", m["A"], coulomb=1e-3, speed=speed, viscous=0.01)
    found = m.linearize().eigenvalues
    for root in np.roots([1e-3, 0.01 + 1e-3 / speed, 5.0]):
        assert np.abs(found - root).min() < 1e-6 * abs(root)


@pytest.mark.parametrize(
    ("f", "of"),
    [
        (lambda t, x, v: -abs(v), "rates"),
        (lambda t, x, v: -0.1 * cd.tanh(v / 1e-13), "rates"),
        (lambda t, x, v: -2.0 * abs(x), "coordinates"),
    ],
)
def test_corners_of_loads_beside_a_flexible_body_are_refused_by_name(f, of):
    m = swing()
    m.actuator("kink", m["A"], f)
    assert m.equilibrium().ok
    with pytest.raises(cd.ModelError, match=f"not smooth functions of the {of} .* look at the loads 'kink'"):
        m.linearize()
