"""Flexible bodies in assemblies: closed forms, SciPy's constrained minimum, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.optimize import root

import cardan as cd
from cardan.elastic import beam, modal_data
from cardan.math import euler

L, A, I_Y, I_Z, E, RHO = 1.6, 3e-4, 2e-9, 5e-9, 7e10, 2700.0
SECTION = {"area": A, "second_moments": (I_Y, I_Z), "young": E, "density": RHO}
X, Y, Z = np.eye(3)


def with_rod(**counts):
    m = cd.Mechanism("rod")
    rod = m.body("rod")
    rod.flexible(beam(L, **SECTION, **counts))
    return m, rod


def solved(m):
    """The state of least energy, and the energy."""
    result = m.assemble()
    assert result.ok, result.text()
    energy = 0.0
    for body in m.bodies.values():
        if body.elastic is not None:
            eta = np.array([result.state.variables[one.name] for one in body.elastic.coordinates])
            energy += 0.5 * eta @ body.elastic.modes.stiffness @ eta
    return result.state, energy


def tip(state, rod):
    """Of the end of the rod in world."""
    return state["rod"].point(rod.point((L, 0, 0)).feature().at(state.variables))


@pytest.mark.parametrize("clamped", [0.0, L])
@pytest.mark.parametrize(("axis", "stiff"), [(Y, E * I_Z), (Z, E * I_Y)])
def test_a_cantilever_that_is_pushed_has_the_energy_of_the_textbook(clamped, axis, stiff):
    """Clamped at the body frame, and at the other end, where the frame moves."""
    m, rod = with_rod(bending=4, stretch=1, twist=1)
    m.fixed("clamp", m.ground.frame((clamped, 0, 0)), rod.frame((clamped, 0, 0)))
    push, end = 1e-4, L - clamped
    m.point_in_plane("push", rod.point((end, 0, 0)), m.ground.frame(push * axis, z=axis))
    state, energy = solved(m)
    assert energy == pytest.approx(0.5 * 3 * stiff / L**3 * push**2, rel=1e-7)
    slope = state["rod"].matrix @ np.array(rod.frame((end, 0, 0), z=X).axis("z").at(state.variables))
    assert slope @ axis == pytest.approx((1 if clamped == 0 else -1) * 1.5 * push / L, rel=1e-6)


def test_a_bar_between_two_balls_is_stretched():
    m, rod = with_rod(bending=2, stretch=2)
    m.spherical("A", m.ground.point((1, 2, 0)), rod.point())
    far = np.array([1, 2, 0]) + (L + 1e-4) * np.array([0.6, 0.0, 0.8])
    m.spherical("B", m.ground.point(far), rod.point((L, 0, 0)))
    state, energy = solved(m)
    assert energy == pytest.approx(0.5 * E * A / L * 1e-8, rel=1e-9)
    assert np.abs(tip(state, rod) - far).max() < 1e-12


def test_two_rods_share_a_gap_as_springs_in_series():
    m = cd.Mechanism()
    for name, at, n in (("one", 0.0, 2), ("two", L, 3)):
        m.body(name, position=(at, 0, 0)).flexible(beam(L, **SECTION, bending=n, stretch=1))
    m.fixed("a", m.ground.frame(), m["one"].frame())
    m.fixed("b", m["one"].frame((L, 0, 0)), m["two"].frame())
    m.point_in_plane("c", m["two"].point((L, 0, 0)), m.ground.frame((0, 1e-4, 0), z=Y))
    _, energy = solved(m)
    assert energy == pytest.approx(0.5 * 3 * E * I_Z / (2 * L) ** 3 * 1e-8, rel=1e-6)


def test_nothing_is_deformed_where_the_joints_allow_the_rest_shape():
    m, rod = with_rod(bending=2, stretch=1)
    m.revolute("A", m.ground.frame(), rod.frame())
    m.parameter("idle", 1.0)
    start = m.state.with_variables({"rod.bending_y_1": 1e-3, "rod.stretch_1": 1e-4})
    result = m.assemble(start)
    assert result.ok
    assert np.abs([value for name, value in result.state.variables.items() if name != "idle"]).max() < 1e-12
    assert "determines" not in result.text()


def reference(n, turn, offset):
    """A rod between two clamps in the plane, by SciPy: the coefficients of v and s, and the pose, at least energy.

    The energy is that of polynomials, with integrals by NumPy.  The clamp at its end is at ``offset`` and turned.
    """
    powers = [Polynomial([0.0] * (k + 2) + [1.0]) for k in range(n)]

    def field(z):
        v = sum((z[3 + k] * powers[k] / L ** (k + 1) for k in range(n)), Polynomial([0.0]))
        return v, z[3 + n] * Polynomial([0.0, 1.0 / L]) * 1.0

    def energy(z):
        v, s = field(z)
        bend, pull = (v.deriv(2) ** 2).integ(), (s.deriv(1) ** 2).integ()
        return 0.5 * E * I_Z * (bend(L) - bend(0)) + 0.5 * E * A * (pull(L) - pull(0))

    def closed(z):
        """The clamps at x = 0 and at the end; z = (x, y, angle, coefficients)."""
        v, s = field(z)
        short = 0.5 * (v.deriv(1) ** 2).integ()
        c, w = np.cos(z[2]), np.sin(z[2])
        at = np.array([L + s(L) - short(L) + short(0), v(L)])
        slope = v.deriv(1)(L)
        axis = np.array([1 - 0.5 * slope * slope, slope])
        end = z[:2] + np.array([c * at[0] - w * at[1], w * at[0] + c * at[1]])
        turned = np.array([c * axis[0] - w * axis[1], w * axis[0] + c * axis[1]])
        miss = -np.sin(turn) * turned[0] + np.cos(turn) * turned[1]
        return np.array([z[0], z[1], z[2], end[0] - L - offset[0], end[1] - offset[1], miss])

    size = 4 + n
    scale = 1e3  # energies and multipliers of order one

    def derivatives(z):
        step = 1e-30
        sides = [z + 1j * step * one for one in np.eye(size)]
        return np.array([energy(s) for s in sides]).imag / step, np.array([closed(s) for s in sides]).imag / step

    def stationary(x):
        z, multipliers = x[:size], x[size:]
        g, J = derivatives(z)
        return np.concatenate([(g + J @ (multipliers * scale)) / scale, closed(z.astype(complex)).real])

    found = root(stationary, np.zeros(size + 6), method="hybr", options={"xtol": 1e-15, "maxfev": 100000})
    assert np.abs(found.fun).max() < 1e-11
    return energy(found.x[:size]), field(found.x[:size])


@pytest.mark.parametrize(("n", "turn", "offset"), [(2, 0.02, (0.0, 0.01)), (3, -0.03, (-1e-4, 0.02))])
def test_the_least_energy_is_that_of_scipy(n, turn, offset):
    m, rod = with_rod(bending=(n, 0), stretch=1)
    m.fixed("a", m.ground.frame(), rod.frame())
    end = m.ground.frame((L + offset[0], offset[1], 0), x=(np.cos(turn), np.sin(turn), 0))
    m.fixed("b", end, rod.frame((L, 0, 0), x=X))
    state, energy = solved(m)
    known, (v, _) = reference(n, turn, offset)
    assert energy == pytest.approx(known, rel=1e-9)
    for x in (0.3, 0.8, 1.3):
        assert rod.point((x, 0, 0)).feature().at(state.variables)[1] == pytest.approx(v(x), abs=1e-9 * L)


def test_frames_are_those_of_the_modes():
    _, rod = with_rod(bending=2, stretch=1, twist=1)
    rng = np.random.default_rng(1)
    eta = 1e-3 * rng.uniform(-1, 1, 6)
    values = dict(zip([one.name for one in rod.elastic.coordinates], eta, strict=True))
    place = (1.1, 0.02, -0.03)
    local = rod.elastic.modes.at(place)
    frame = rod.frame(place, z=(1, 2, 3), x=Y)
    point = place + local.displacement @ eta + 0.5 * np.einsum("inm,n,m->i", local.second, eta, eta)
    assert frame.feature().at(values) == pytest.approx(tuple(point), abs=1e-15)
    theta = local.rotation @ eta
    turned = euler.rotate(euler.exp(theta), np.array([1, 2, 3]) / np.sqrt(14))
    assert frame.axis("z").at(values) == pytest.approx(tuple(turned), abs=np.linalg.norm(theta) ** 3)
    assert rod.point().position == (0.0, 0.0, 0.0)  # clamped to the body frame: numbers
    assert (rod.mass, rod.center) == (rod.elastic.modes.mass, tuple(rod.elastic.modes.center))


def test_a_flexible_mechanism_is_copied_and_pickled():
    m, rod = with_rod(bending=2)
    m.fixed("clamp", m.ground.frame(), rod.frame())
    m.point_in_plane("push", rod.point((L, 0, 0)), m.ground.frame((0, 0.01, 0), z=Y))
    for again in (m.copy(), pickle.loads(pickle.dumps(m))):
        assert again == m
        assert again.assemble().state == m.assemble().state
    other, _ = with_rod(bending=3)
    assert other != m
    with pytest.raises(cd.ModelError, match="elastic coordinate of body 'rod'"):
        m.remove("rod.bending_y_1")
    m.remove("rod", joints=True)
    assert not m.parameters


def data(**changes):
    given = {"places": [X, 2 * X], "displacements": np.ones((2, 3, 1)), "stiffness": [[2.0]], "masses": [1.0, 1.0]}
    return modal_data(**{**given, **changes})


def test_modal_data_carry_points_at_nodes():
    m = cd.Mechanism()
    part = m.body("part")
    part.flexible(data())
    m.spherical("a", m.ground.point((1.01, 0.01, 0.01)), part.point(X))
    m.point_in_plane("b", part.point(2 * X), m.ground.frame((0, 0.01, 0), z=Y))
    _, energy = solved(m)
    assert energy == pytest.approx(0.0, abs=1e-20)
    with pytest.raises(cd.ModelError, match=r"'part'.*no rotation.*rotations= to modal_data"):
        part.frame(X)
    with pytest.raises(cd.ModelError, match="nearest node"):
        part.point((1.5, 0, 0))


def test_what_a_flexible_body_cannot_have_is_refused_by_name():
    m, rod = with_rod(bending=1)
    modes = beam(L, **SECTION)
    for call, words in (
        (lambda: rod.flexible(modes), "body 'rod' is flexible already"),
        (lambda: rod.flexible(3), "body 'rod' was given 3; it must be modes"),
        (lambda: m.ground.flexible(modes), "ground cannot be flexible"),
        (lambda: rod.vector(1, 0, 0), "vector on flexible body 'rod'"),
        (lambda: rod.attach(cd.shapes.sphere(0.1)), "attach of body 'rod', which is flexible"),
        (lambda: setattr(rod, "mass", 1.0), "the mass of body 'rod' follows from its modes"),
        (lambda: rod.point((2.0, 0, 0)), "between 0 and its length, 1.6 m"),
        (lambda: rod.point((m["rod.stretch_1"], 0, 0)), "a parameter is not allowed here"),
        (lambda: m.body("b", mass=1.0).flexible(modes), r"body 'b' was given mass=, but its modes give"),
        (lambda: m.assemble(least="nearest"), r"least is 'nearest', but with flexible bodies \('rod'\)"),
        (lambda: m.assemble(free="rod.stretch_1"), "must be a list of parameters"),
        (lambda: m.assemble(formulation="relative"), "formulation 'relative' cannot solve for parameters"),
    ):
        with pytest.raises(cd.ModelError, match=words):
            call()
    joined = m.body("joined")
    m.revolute("A", m.ground.frame(), joined.frame())
    with pytest.raises(cd.ModelError, match="body 'joined' has 'A', made when it was rigid"):
        joined.flexible(modes)
    shaped = m.body("shaped")
    shaped.attach(cd.shapes.sphere(0.1))
    with pytest.raises(cd.ModelError, match="body 'shaped' has shapes attached"):
        shaped.flexible(modes)
    assert not [name for name in m.parameters if not name.startswith("rod.")]
    state = m.state
    for word, call in {
        "assemble_many": lambda: m.assemble_many([state]),
        "constraint_equations": m.constraint_equations,
        "diagnose": m.diagnose,
        "jacobian": lambda: m.jacobian(joined),
        "mass_matrix": m.mass_matrix,
        "motion_equations": m.motion_equations,
        "move": lambda: m.move([0.0, 1.0]),
        "move_many": lambda: m.move_many([0.0, 1.0], values={}),
        "sensitivity": lambda: m.sensitivity(state, ["A"]),
        "session": m.session,
        "simulate_many": lambda: m.simulate_many(1.0, values={}),
        "solve_rates": lambda: m.solve_rates(state),
        "state_at": m.state_at,
        "study": lambda: m.study({"rod.stretch_1": [0.0]}, ["A"], duration=1.0, contacts="steps"),
        "tolerances": lambda: m.tolerances(state, ["A"], {}),
    }.items():
        with pytest.raises(cd.ModelError, match="'rod' is one"):
            call()
        assert word in dir(m)
