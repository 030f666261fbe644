"""Inertias of joints (armature): closed forms, Lagrange's equations of chains, bodies with the same inertia."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.dynamics import quaternion_form
from cardan.dynamics.build import equations_of
from cardan.files import reader, writer

G = 9.81
Z = (0, 0, 1)


def chain(inertias: list[float], angles: list[float] | None = None, length: float = 0.5) -> cd.Mechanism:
    """A planar chain of bars on hinges, each of which may have an inertia; angles [rad]: of the bars to the x axis."""
    m = cd.Mechanism("chain", gravity=(0, -G, 0))
    before, at = m.ground, np.zeros(3)
    for k, inertia in enumerate(inertias):
        turn = 0.0 if angles is None else angles[k]
        q = (math.cos(turn / 2), 0, 0, math.sin(turn / 2))
        bar = m.body(
            f"bar{k}",
            position=at,
            orientation=q,
            mass=1.0 + 0.3 * k,
            center=(0.6 * length, 0, 0),
            inertia=np.diag([0.01, 0.02, 0.025]),
        )
        joint = m.revolute(f"j{k}", before.frame((0 if k == 0 else length, 0, 0), z=Z), bar.frame(z=Z))
        joint.inertia = inertia
        before, at = bar, at + length * np.array([math.cos(turn), math.sin(turn), 0])
    return m


def lagrange(inertias: list[float], angle: np.ndarray, rate: np.ndarray, length: float = 0.5) -> np.ndarray:
    """Angular accelerations of the bars of a chain, in minimal coordinates."""
    n = len(inertias)
    mass, arm = 1.0 + 0.3 * np.arange(n), 0.6 * length
    c = np.zeros((n, n))
    gravity = np.zeros(n)
    for k in range(n):  # each bar's centre is at the sum of l_i (cos θ_i, sin θ_i)
        reach = np.where(np.arange(n) < k, length, np.where(np.arange(n) == k, arm, 0.0))
        c += mass[k] * np.outer(reach, reach)
        gravity -= mass[k] * G * reach * np.cos(angle)
    apart = angle[:, None] - angle[None, :]
    relative = np.eye(n) - np.eye(n, k=-1)
    matrix = c * np.cos(apart) + 0.025 * np.eye(n) + relative.T @ np.diag(inertias) @ relative
    return np.linalg.solve(matrix, gravity - (c * np.sin(apart)) @ rate**2)


@pytest.mark.parametrize("count", [2, 24], ids=["dense", "sparse"])
def test_accelerations_of_a_chain_are_those_of_lagrange(count):
    """The small one is solved by the dense algebra, the large one by the block-sparse one; both from a moving state."""
    rng = np.random.default_rng(count)
    inertias = rng.uniform(0.0, 0.4, count).tolist()
    inertias[count // 2] = 0.0
    angles = rng.uniform(-2, 2, count)
    m = chain(inertias, angles.tolist())
    wanted = dict(zip([f"j{k}" for k in range(count)], rng.uniform(-3, 3, count), strict=True))
    start = m.solve_rates(m.assemble().state, wanted)
    sim = m.simulate(1e-3, start, times=[0.0, 1e-3])
    state = sim.states[0]
    expected = lagrange(inertias, angles, np.cumsum(list(wanted.values())))
    assert np.abs(state.accelerations[:, 5] - expected).max() < 1e-11 * np.abs(expected).max() * count


@pytest.mark.parametrize(
    ("options", "bar"),
    [
        ({"rtol": 1e-10}, 1e-8),
        ({"step": 1e-3, "method": "rk4"}, 1e-7),
        ({"step": 1e-3, "stabilization": "baumgarte"}, 1e-5),
        ({"step": 2e-4, "method": "generalized_alpha"}, 2e-5),
    ],
    ids=["adams", "rk4", "baumgarte", "generalized_alpha"],
)
def test_every_method_follows_lagrange_and_keeps_the_energy(options, bar):
    """The reference is integrated by SciPy in minimal coordinates."""
    from scipy.integrate import solve_ivp

    inertias, angles = [0.2, 0.05], np.array([0.3, -0.8])
    m = chain(inertias, angles.tolist())
    sim = m.simulate(0.4, **options)
    assert sim.status == "done", sim.text()

    def slope(_: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[2:], lagrange(inertias, y[:2], y[2:])])

    exact = solve_ivp(slope, (0, 0.4), [*angles, 0, 0], rtol=1e-12, atol=1e-12, method="DOP853").y[:, -1]
    assert sim.state.velocities[:, 5] == pytest.approx(exact[2:], abs=20 * bar)
    assert sim.coordinate(m["j1"])[-1] == pytest.approx(exact[1] - exact[0], abs=bar)
    total = sim.energy.kinetic + sim.energy.potential
    assert np.ptp(total) < 10 * bar
    rates = sim.state.velocities[:, 5]
    kinetic = 0.5 * (0.2 * rates[0] ** 2 + 0.05 * (rates[1] - rates[0]) ** 2)
    bare = chain([0, 0], angles.tolist())
    assert sim.energy.kinetic[-1] - bare.simulate(1e-6, sim.state).energy.kinetic[0] == pytest.approx(kinetic, rel=1e-9)


def geared(as_inertia: bool) -> cd.Mechanism:
    """An arm that a motor turns through a gear: rotor and gear are modelled, or are the inertia J n² of the joint."""
    m = cd.Mechanism("geared", gravity=(0, -G, 0))
    arm = m.body("arm", mass=2.0, center=(0.3, 0, 0), inertia=np.diag([0.01, 0.1, 0.1]))
    joint = m.revolute("shoulder", m.ground.frame(z=Z), arm.frame(z=Z))
    if as_inertia:
        joint.inertia = 2e-4 * 50.0**2
        return m
    rotor = m.body("rotor", mass=0.1, inertia=np.diag([1.5e-4, 1.5e-4, 2e-4]), position=(0, 0, 0.1))
    m.revolute("shaft", m.ground.frame((0, 0, 0.1), z=Z), rotor.frame(z=Z))
    m.gear("gear", joint, m["shaft"], ratio=50.0)
    return m


def test_steps_of_generalized_alpha_are_judged_by_it():
    """A stiff spring at the start: whether a body or its hinge has the inertia, the same steps are divided."""
    ends = []
    for of_body, of_joint in ((1.0, 0.0), (1e-9, 1.0)):
        m = cd.Mechanism(gravity=(0, 0, 0))
        hinge = m.revolute("h", m.ground.frame(), m.body("rotor", mass=1e-6, inertia=of_body * np.eye(3)).frame())
        hinge.inertia = of_joint
        m.spring("s", hinge, stiffness=4000.0, rest=1.0)
        ends.append(m.simulate(0.2, step=0.01, method="generalized_alpha"))
    assert ends[0].refused > 0
    assert ends[1].refused == ends[0].refused
    assert ends[1].error == pytest.approx(ends[0].error, rel=1e-6)
    assert ends[1].coordinate("h") == pytest.approx(ends[0].coordinate("h"), abs=1e-6)


def test_a_rotor_behind_a_gear_is_an_inertia_of_its_square():
    sims = [geared(kind).simulate(0.5, rtol=1e-11) for kind in (False, True)]
    angle = [sim.coordinate("shoulder") for sim in sims]
    assert np.abs(angle[0] - angle[1]).max() < 1e-9
    assert np.abs(sims[0].energy.kinetic - sims[1].energy.kinetic).max() < 1e-8
    alpha = -2.0 * G * 0.3 / (0.1 + 2.0 * 0.09 + 0.5)
    assert sims[1].states[0].accelerations[0, 5] == pytest.approx(alpha, rel=1e-13)


def test_efforts_of_a_driven_motion_contain_it():
    m = geared(as_inertia=True)
    m.drive("motor", m["shoulder"], lambda t: 0.3 * cd.sin(4.0 * t))
    times = np.linspace(0.0, 1.0, 11)
    angle, growth = 0.3 * np.sin(4 * times), -16 * 0.3 * np.sin(4 * times)
    effort = (0.1 + 2.0 * 0.09 + 0.5) * growth + 2.0 * G * 0.3 * np.cos(angle)
    assert m.move(times).effort("motor") == pytest.approx(effort, abs=1e-10)
    assert m.simulate(1.0, times=times, rtol=1e-10).effort("motor") == pytest.approx(effort, abs=1e-8)


def test_frequencies_contain_it_and_equilibria_do_not():
    plain, heavy = chain([0.0], [-1.2]), chain([0.7], [-1.2])
    rest = [m.equilibrium() for m in (plain, heavy)]
    assert all(one.ok for one in rest)
    assert np.abs(rest[0].state.coordinates - rest[1].state.coordinates).max() < 1e-9
    f = math.sqrt(G * 0.3 / (0.025 + 0.09 + 0.7)) / (2 * math.pi)
    assert heavy.linearize(rest[1].state).frequencies == pytest.approx([f], rel=1e-7)


def four_bar(as_inertia: bool, limited: bool = False) -> cd.Mechanism:
    """A planar four-bar of spatial hinges, so that equations are redundant; its crank has a flywheel of 0.3 kg m²."""
    m = cd.Mechanism("four-bar", gravity=(0, -G, 0))
    points = {"A": (0, 0), "B": (0.2, 0.3), "C": (0.9, 0.5), "D": (1.0, 0)}
    bodies = {}
    for name, (a, b) in {"crank": "AB", "coupler": "BC", "rocker": "DC"}.items():
        (x, y), (u, v) = points[a], points[b]
        turn, far = math.atan2(v - y, u - x), math.hypot(u - x, v - y)
        moment = 0.02 + (0.3 if name == "crank" and not as_inertia else 0.0)
        q = (math.cos(turn / 2), 0, 0, math.sin(turn / 2))
        inertia = np.diag([0.2, 0.2, moment])
        bodies[name] = (
            m.body(name, position=(x, y, 0), orientation=q, mass=1.0, center=(far / 2, 0, 0), inertia=inertia),
            far,
        )
    (crank, ab), (coupler, bc), (rocker, dc) = bodies.values()
    joint = m.revolute("A", m.ground.frame(z=Z), crank.frame(z=Z))
    m.revolute("B", crank.frame((ab, 0, 0), z=Z), coupler.frame(z=Z))
    m.revolute("C", coupler.frame((bc, 0, 0), z=Z), rocker.frame((dc, 0, 0), z=Z))
    m.revolute("D", m.ground.frame((1, 0, 0), z=Z), rocker.frame(z=Z))
    if as_inertia:
        joint.inertia = 0.3
    if limited:
        m.limit("stop", joint, lower=0.6)
    return m


def test_a_joint_to_the_ground_with_an_inertia_is_a_flywheel_on_its_body():
    """Motions, impacts at limits, reactions and which of their components are unique are the same."""
    for limited in (False, True):
        sims = [four_bar(kind, limited).simulate(1.0, rtol=1e-10) for kind in (False, True)]
        assert [sim.status for sim in sims] == ["done", "done"]
        assert np.abs(sims[0].state.coordinates - sims[1].state.coordinates).max() < 1e-7
        assert np.abs(sims[0].energy.kinetic - sims[1].energy.kinetic).max() < 1e-6
        if limited:
            assert len(sims[0].events) == len(sims[1].events) > 0
            assert [e.time for e in sims[0].events] == pytest.approx([e.time for e in sims[1].events], abs=1e-8)
        for name in "ABCD":
            mine, other = (sim.reaction(name) for sim in sims)
            size = float(np.abs(other.force).max())
            assert mine.force == pytest.approx(other.force, abs=1e-5 * size), name
            assert mine.torque == pytest.approx(other.torque, abs=1e-5 * size), name
            assert (mine.determined == other.determined).all()
        assert sims[1].drift.max() < 1e-11
        assert sims[1].rate_drift.max() < 1e-9


def test_a_driven_loop_with_redundant_equations_has_the_same_efforts():
    found = []
    for kind in (False, True):
        m = four_bar(kind)
        m.drive("motor", m["A"], lambda t: 0.98 + t + t**2)
        found.append(m.move(np.linspace(0, 0.3, 4)))
    assert found[0].effort("motor") == pytest.approx(found[1].effort("motor"), abs=1e-9)
    for name in "ABCD":
        assert found[0].reaction(name).force == pytest.approx(found[1].reaction(name).force, abs=1e-8)


def test_a_slide_has_one_in_kilograms_and_its_carrier_moves_too():
    """Two carts, of which one carries the other: ½ I (ẋ₂ − ẋ₁)² couples them."""
    m = cd.Mechanism("carts", gravity=(G, 0, 0))
    one, two = (m.body(name, mass=mass, inertia=np.eye(3)) for name, mass in (("one", 2.0), ("two", 1.0)))
    m.prismatic("rail", m.ground.frame(z=(1, 0, 0)), one.frame(z=(1, 0, 0)))
    slide = m.prismatic("slide", one.frame(z=(1, 0, 0)), two.frame(z=(1, 0, 0)))
    slide.inertia = 5.0
    m.force("pull", two.point(), (7.0, 0, 0))
    matrix = np.array([[2.0 + 5.0, -5.0], [-5.0, 1.0 + 5.0]])
    expected = np.linalg.solve(matrix, [2.0 * G, G + 7.0])
    state = m.simulate(1e-3, times=[0.0, 1e-3]).states[0]
    assert state.accelerations[:, 0] == pytest.approx(expected, rel=1e-13)


def test_rate_rows_and_inertias_are_solved_together():
    """A sled on a knife edge that carries a flywheel about a skew axis, by the equations in Euler parameters."""
    m = cd.Mechanism("sled", gravity=(0, -G, 0))
    sled = m.body("sled", mass=2.0, inertia=np.diag([0.2, 0.3, 0.4]), center=(0.1, 0, 0))
    wheel = m.body("wheel", mass=0.5, inertia=np.diag([0.02, 0.03, 0.04]), position=(0.2, 0.1, 0))
    m.planar("table", m.ground.frame(), sled.frame())
    m.knife_edge("edge", sled.frame((0.3, 0, 0)))
    axle = m.revolute("axle", sled.frame((0.2, 0.1, 0), z=(0, 1, 1)), wheel.frame(z=(0, 1, 1)))
    axle.inertia = 0.15
    start = m.solve_rates(m.assemble().state, {"axle": 5.0, "table.angle": 2.0, "table.x": 1.0})
    sim = m.simulate(0.5, start, rtol=1e-10)
    assert sim.status == "done"
    assert np.ptp(sim.energy.kinetic + sim.energy.potential) < 1e-8
    equations = equations_of(m._model.drawing)[0]
    row = sim._results[-1]
    n, w = int(equations.coordinates), 12
    q, v, a = row[1 : 1 + n], row[1 + n : 1 + n + w], row[1 + n + w : 1 + n + 2 * w]
    assert quaternion_form.accelerations(equations, q, v)[0] == pytest.approx(a, abs=1e-9)


def test_a_session_with_dynamics_has_it():
    m = chain([0.4, 0.1], [0.2, -0.5])
    session = m.session(mode="dynamic", rate=1000.0)
    before = session.energy
    for _ in range(200):
        session.step()
    sim = m.simulate(0.2, rtol=1e-11)
    assert session.state.coordinates == pytest.approx(sim.state.coordinates, abs=1e-8)
    assert session.energy == pytest.approx(before, abs=1e-7)


def test_the_start_of_a_motion_keeps_its_momentum_where_a_stop_is_hit():
    """A bar at a stop of the next joint: the velocities after the impact are those of Lagrange, with the inertia."""
    m = chain([0.0, 0.6], [0.0, 0.0])
    m.limit("stop", m["j1"], upper=0.0)
    free = chain([0.0, 0.6], [0.0, 0.0])
    moving = free.solve_rates(free.assemble().state, {"j0": 1.0, "j1": 2.0})
    sim = m.simulate(1e-4, moving, times=[0.0, 1e-4])
    mass, arm, length = np.array([1.0, 1.3]), 0.3, 0.5
    matrix = np.array(
        [[mass[0] * arm**2 + mass[1] * length**2 + 0.025, mass[1] * length * arm], [0, mass[1] * arm**2 + 0.025]]
    )
    matrix[1, 0] = matrix[0, 1]
    matrix += 0.6 * np.array([[1, -1], [-1, 1]])
    momentum = matrix @ [1.0, 3.0]
    after = momentum.sum() / matrix.sum()  # both bars turn together
    assert sim.states[0].velocities[:, 5] == pytest.approx([after, after], rel=1e-12)


def test_it_is_kept_by_files_copies_and_pickles_and_goes_with_its_joint():
    m = chain([0.3, 0.0])
    text = writer.dumps(m)
    again = reader.read(text, "x", False)
    assert again == m and again["j0"].inertia == 0.3 and writer.dumps(again) == text
    assert pickle.loads(pickle.dumps(m)) == m
    other = m.copy()
    other["j0"].inertia = 0.5
    assert m["j0"].inertia == 0.3 and other != m
    other["j0"].inertia = 0.0
    assert "inertia = 0.5" not in writer.dumps(other) and not other._model.inertias
    joint = m["j0"]
    m.remove("j0")
    m.revolute("j0", m.ground.frame(z=Z), m["bar0"].frame(z=Z))
    assert m["j0"].inertia == 0.0
    with pytest.raises(cd.ModelError, match="was removed"):
        joint.inertia = 1.0


def test_a_result_does_not_change_with_it():
    m = chain([0.3])
    before = m.simulate(0.1)
    kinetic = before.energy.kinetic.copy()
    m["j0"].inertia = 9.0
    assert (before.energy.kinetic == kinetic).all()
    assert m.simulate(0.1) != before


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("spherical", 1.0, "only joints of one coordinate have"),
        ("cylindrical", 1.0, "give inertia= to a body"),
        ("revolute", -1.0, "'J' is -1.0; it must be zero or more"),
        ("revolute", math.nan, "'J' is nan"),
    ],
)
def test_a_wrong_one_is_refused_by_name(kind, value, words):
    m = cd.Mechanism("m")
    joint = getattr(m, kind)("J", m.ground.frame(), m.body("b").frame())
    with pytest.raises(cd.ModelError, match=words):
        joint.inertia = value
    text = writer.dumps(m).replace(f'kind = "{kind}"', f'kind = "{kind}"\ninertia = {value}')
    with pytest.raises(cd.FileError, match="inertia"):
        reader.read(text, "x", False)
