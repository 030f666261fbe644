"""Laws of motion under forces: the equations against independent ones, convergence, closure, invariance, bad input.

The equations of motion are written here a second time, in the velocities of the body origins, with derivatives by
differences of residuals; and a third time in Euler parameters (:mod:`cardan.dynamics.quaternion_form`).
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cardan as cd
from cardan import examples
from cardan.coordinates import formulations
from cardan.dynamics import quaternion_form
from fuzz.case import build
from fuzz.sketch import Sketch, close, grow
from layers import sampled
from mechanisms import matrix, planar_4r, product, random_rotation, rsur, stewart_ups

X, Y, Z = np.eye(3)
CLOSED = 1e-12  # relative to the extent, rad
SMALL = [name for name in examples.REGISTRY if name != "strandbeest"]  # 217 bodies


def tilde(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def add_masses(m, rng, size=1.0):
    """Random masses, centres of mass and inertias."""
    for body in m.bodies.values():
        body.mass = rng.uniform(0.5, 2.0)
        body.center = 0.2 * size * rng.normal(size=3)
        points = rng.normal(size=(5, 3)) * 0.3 * size
        inertia = sum(p @ p * np.eye(3) - np.outer(p, p) for p in points) / 5
        body.inertia = body.mass * inertia
    return m


def gallery(name, rng, *, drivers=False):
    """A mechanism of the gallery without limits, with random masses."""
    m = examples.REGISTRY[name].build()
    for joint in list(m.joints.values()):
        if joint.kind.name == "limit" or (joint.kind.name == "drive" and not drivers):
            m.remove(joint.name)
    return add_masses(m, rng)


def random_mechanism(rng, loops):
    """A random tree with loops, in a pose that satisfies its joints, with random masses, gravity and origins."""
    sketch = Sketch()
    grow(rng, sketch, int(rng.integers(2, 6)))
    close(rng, sketch, loops)
    case = sketch.finish(rng, "dynamics", "random", start="exact", origins=0.3)
    drawn = build(case)
    drawn = drawn[0] if isinstance(drawn, tuple) else drawn
    m = add_masses(drawn, rng)
    m.gravity = tuple(rng.normal(size=3) * 5)
    return m


def instant(m, rng, time=None):
    """A simulation of one short step from an assembled pose with random velocities."""
    found = m.assemble(time=time)
    assert found.ok, found.text()
    simulation = m.simulate(1e-7, found.state.with_rates(rng.normal(size=(len(m.bodies), 6))), step=1e-7)
    assert simulation.ok, simulation.text()
    return simulation


# --- the equations -------------------------------------------------------------------------------------------------


def moved(coordinates, velocities, s):
    """Poses after a time s at constant ṙ and constant ω in body axes."""
    out = coordinates.copy()
    out[:, :3] += s * velocities[:, :3]
    for k, w in enumerate(s * velocities[:, 3:]):
        angle = np.linalg.norm(w)
        half = np.array([np.cos(angle / 2), *(0.5 * np.sinc(angle / (2 * np.pi)) * w)])
        out[k, 3:] = product(coordinates[k, 3:], half)
    return out


FIRST = {-3: -1 / 60, -2: 3 / 20, -1: -3 / 4, 1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
SECOND = {-3: 1 / 90, -2: -3 / 20, -1: 3 / 2, 0: -49 / 18, 1: 3 / 2, 2: -3 / 20, 3: 1 / 90}
H = 2e-3


def difference(function, weights, power):
    return sum(weight * function(k * H) for k, weight in weights.items()) / H**power


def independent_accelerations(m, state, rows):
    """r̈ of the body origins and ω̇ in body axes; rows: which residuals are equations."""
    system = m.system
    problem = formulations.problem(system, "manifold", time=state.time)
    near = np.array([state.angles[key] for key in system.counted_angles])

    def residual(coordinates):
        return problem.residual(formulations.to_reference(system, coordinates, near))[rows]

    count = len(m.bodies)
    q, v = np.array(state.coordinates), np.array(state.velocities)
    mass, force = np.zeros((6 * count, 6 * count)), np.zeros(6 * count)
    for k, body in enumerate(m.bodies.values()):
        A, c, w = matrix(q[k, 3:]), np.array(body.center), v[k, 3:]
        own = np.array(body.inertia) - body.mass * tilde(c) @ tilde(c)  # about the origin
        at = slice(6 * k, 6 * k + 6)
        cross = -body.mass * A @ tilde(c)
        mass[at, at] = np.block([[body.mass * np.eye(3), cross], [cross.T, own]])
        weight = body.mass * np.array(m.gravity)
        force[at][:3] = weight - body.mass * A @ np.cross(w, np.cross(w, c))
        force[at][3:] = np.cross(c, A.T @ weight) - np.cross(w, own @ w)
    columns = []
    for k in range(6 * count):
        direction = np.zeros((count, 6))
        direction.flat[k] = 1.0
        columns.append(difference(lambda s, d=direction: residual(moved(q, d, s)), FIRST, 1))
    J = np.column_stack(columns)
    gamma = -difference(lambda s: residual(moved(q, v, s)), SECOND, 2)
    size = 1 / np.linalg.norm(J, axis=1)
    J, gamma = J * size[:, None], gamma * size
    n = len(gamma)
    whole = np.block([[mass, J.T], [J, np.zeros((n, n))]])
    solution, *_ = np.linalg.lstsq(whole, np.concatenate([force, gamma]), rcond=1e-8)
    return solution[: 6 * count].reshape(count, 6), np.abs(J @ v.ravel()).max(initial=0.0)


@pytest.mark.parametrize("seed", range(40))
def test_accelerations_of_random_mechanisms_are_those_of_dense_equations(seed):
    rng = np.random.default_rng(seed)
    m = random_mechanism(rng, seed % 4)
    simulation = instant(m, rng)
    state = simulation.states[0]
    expected, slip = independent_accelerations(m, state, simulation._equations.equations)
    assert slip <= 1e-10
    assert np.abs(state.accelerations - expected).max() <= 1e-8 * (1 + np.abs(expected).max())


@pytest.mark.parametrize("drivers", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_euler_parameters_give_the_same_accelerations(name, drivers):
    """M_p = 4GᵀJG, Q_v and the rows of normalisation, at random velocities, for every mechanism of the gallery."""
    rng = np.random.default_rng(7)
    simulation = instant(gallery(name, rng, drivers=drivers), rng)
    e = simulation._equations
    q, v, a = (
        np.ascontiguousarray(x[0]).ravel() for x in (simulation._results[:, 1:], *map(simulation._rates, (0, 1)))
    )
    found, multipliers = quaternion_form.accelerations(e, q[: e.coordinates], v)
    assert np.abs(found - a).max() <= 1e-10 * (1 + np.abs(a).max())
    if examples.REGISTRY[name].redundant == 0:
        own = simulation._multipliers()[0]
        assert np.abs(multipliers - own).max() <= 1e-10 * (1 + np.abs(own).max())


# --- convergence and closure ----------------------------------------------------------------------------------------


ORDERS = {"adams": (5, 0.02), "rk4": (4, 0.02), "dopri5": (5, 0.04)}  # and the longest step [s]


def moving(name):
    """A mechanism in fast motion, and its state: with redundant equations that depend on the pose, or without any."""
    if name == "bricard":
        m = gallery(name, np.random.default_rng(2))
    else:
        m = {"planar 4R": planar_4r, "RSUR": rsur}[name]().build().mechanism
        for body in m.bodies.values():
            body.mass, body.center, body.inertia = 1.0, (0.3, 0.1, 0.05), np.diag([0.02, 0.05, 0.06])
    start = m.assemble().state.with_rates(15 * np.random.default_rng(3).normal(size=(len(m.bodies), 6)))
    return m, m.simulate(0.05, start, rtol=1e-12).states[-1]


@pytest.mark.parametrize("name", ["RSUR", "planar 4R", "bricard"])
@pytest.mark.parametrize("method", ORDERS)
def test_errors_decrease_with_the_order_of_the_method_also_if_equations_are_redundant(method, name):
    """The largest error in 0.8 s."""
    m, start = moving(name)
    order, longest = ORDERS[method]

    def path(step, method):
        found = m.simulate(0.8, start, step=step, method=method)
        assert found.ok, found.text()
        return found._coordinates[:: round(0.08 / step)]

    exact = path(2.5e-4, "dopri5")
    errors = [np.abs(path(longest / part, method) - exact).max() for part in (1, 2, 4)]
    assert errors[-1] <= 1e-6
    assert 0.5 * np.log2(errors[0] / errors[-1]) >= order - 0.3, errors


@pytest.mark.parametrize("name", ["RSUR", "planar 4R", "bricard"])
def test_tighter_tolerances_give_smaller_errors(name):
    """The error after 1 s stays within 100 times the tolerance, and a tolerance of 1e-11 gives 1e-9."""
    m, start = moving(name)
    exact = m.simulate(1.0, start, step=5e-4, method="dopri5").states[-1].coordinates
    for rtol in (1e-5, 1e-7, 1e-9, 1e-11):
        found = m.simulate(1.0, start, rtol=rtol)
        assert found.ok, found.text()
        assert np.abs(found.states[-1].coordinates - exact).max() <= 100 * rtol


@pytest.mark.parametrize("name", SMALL)
def test_joints_stay_closed(name):
    """Over 2 s from rest, without drivers and limits, at rtol 1e-7; the energy is kept to 1e-4."""
    m = gallery(name, np.random.default_rng(5))
    m.gravity = (2.0, -8.0, -5.0)
    simulation = m.simulate(2.0, rtol=1e-7)
    assert simulation.ok, simulation.text()
    assert simulation.drift.max() <= CLOSED
    total, kinetic = simulation.energy.total, simulation.energy.kinetic
    assert np.abs(total - total[0]).max() <= 1e-4 * kinetic.max() + 1e-12 * np.abs(total[0])


SINGULAR = ("delta_robot",)  # released, it comes to poses where reactions grow without bound, and may stop there


@pytest.mark.parametrize("options", [{"step": 1e-3}, {"rtol": 1e-8}], ids=str)
def test_a_run_that_ends_at_a_singular_pose_says_so(options):
    """A released delta robot: its parallelograms become flat, and one singular value of J tends to zero."""
    m = gallery("delta_robot", np.random.default_rng(5))
    m.gravity = (2.0, -8.0, -5.0)
    simulation = m.simulate(20.0, **options)
    assert not simulation.ok and simulation.drift.max() <= CLOSED
    assert "singular pose" in simulation.reason and "'cross_" in simulation.reason, simulation.text()
    sigma = [
        np.linalg.svd(m.constraint_equations(state).jacobian, compute_uv=False)
        for state in (simulation.states[0], simulation.states[-1])
    ]
    assert sigma[1][56] < 0.1 * sigma[0][56]  # 57 equations


def test_a_step_that_is_too_large_is_not_called_singular():
    m = gallery("rsur", np.random.default_rng(5))
    m.gravity = (2.0, -8.0, -5.0)
    found = m.simulate(4.0, step=0.5)
    assert not found.ok and "singular" not in found.reason


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"step": 1e-2}, {"rtol": 1e-6}], ids=str)
def test_redundant_joints_stay_closed_far_away(options):
    """Two bodies on two hinges of one axis fall for 1000 s, millions of extents: joints are closed to rounding."""
    m = cd.Mechanism(gravity=(3.0, -5.0, -8.0))
    a = m.body("a", mass=1.0, inertia=np.diag([1.0, 2.0, 2.5]))
    b = m.body("b", mass=1.0, inertia=np.diag([0.5, 0.6, 0.7]), center=(0.2, 0.1, 0.3))
    for name, height in (("low", 0.3), ("high", 1.3)):
        m.revolute(name, a.frame((0.1, 0.2, height)), b.frame((0.1, 0.2, height)))
    velocities = np.tile([0.0, 0.0, 0.0, 0.3, 0.5, 0.2], (2, 1))
    simulation = m.simulate(1000.0, m.state.with_rates(velocities), times=np.linspace(0.0, 1000.0, 101), **options)
    assert simulation.ok, simulation.text()
    far = np.abs(simulation._coordinates).max() / simulation._equations.system.judged_length
    assert simulation.drift.max() <= 64 * np.finfo(float).eps * far


@pytest.mark.long
@pytest.mark.parametrize("driven", [False, True], ids=["released", "driven"])
@pytest.mark.parametrize("name", examples.REGISTRY)
def test_joints_stay_closed_for_100_s(name, driven):
    """Under gravity that is oblique to every plane of motion, with the drivers of the gallery and without them.

    A platform without drivers falls thousands of its extents: there a coordinate is rounded to more than the bar.
    """
    m = gallery(name, np.random.default_rng(5), drivers=driven)
    if driven and not any(joint.kind.name == "drive" for joint in m.joints.values()):
        return
    m.gravity = (2.0, -8.0, -5.0)
    simulation = m.simulate(100.0, rtol=1e-6)
    is_singular = name in SINGULAR and not driven and "singular pose" in simulation.reason
    assert simulation.ok or is_singular, simulation.text()
    assert simulation.steps > 1 or examples.REGISTRY[name].dof == 0
    far = np.abs(simulation._coordinates).max() / simulation._equations.system.judged_length
    assert simulation.drift.max() <= max(CLOSED, 4 * np.finfo(float).eps * far)


@pytest.mark.long
@pytest.mark.parametrize("driven", [False, True], ids=["released", "driven"])
@pytest.mark.parametrize("name", examples.CONTACTS)
def test_contacts_stay_closed_for_100_s_or_until_one_ends(name, driven):
    """As above; a mechanism that rolls or slides off the edge of a shape ends there, and says so."""
    m = examples.CONTACTS[name].build()
    for joint in list(m.joints.values()):
        if joint.kind.name in ("limit", "drive") and not driven:
            m.remove(joint.name)
    m.gravity = (2.0, -8.0, -5.0)
    simulation = m.simulate(100.0, rtol=1e-6)
    assert simulation.ok or simulation.status == "contact", simulation.text()
    assert simulation.ok or "reaches the edge of a shape" in simulation.reason
    assert simulation.times[-1] > 0.3 and simulation.drift.max() <= CLOSED


# --- invariance -----------------------------------------------------------------------------------------------------


def outcome(m, start=None):
    """The results of one run as bytes, of constant and of variable steps."""
    runs = [m.simulate(0.5, start, **options) for options in ({"step": 1e-3}, {"rtol": 1e-7})]
    assert all(run.ok for run in runs), [run.text() for run in runs]
    return b"".join(run._results.tobytes() for run in runs)


@pytest.mark.parametrize("name", ["rsur", "bricard", "stewart_ups", "lead_screw"])
def test_equal_runs_are_equal_to_the_bit(name):
    """The same run twice, in threads, of a copy and of an unpickled mechanism; with and without drivers."""
    for drivers in (False, True):
        m = gallery(name, np.random.default_rng(1), drivers=drivers)
        first = outcome(m)
        assert outcome(m) == first
        assert outcome(m.copy()) == first
        assert outcome(pickle.loads(pickle.dumps(m))) == first
        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(outcome, [m] * 4)) == {first}


MODELS = {"RSUR": rsur, "planar 4R": planar_4r, "Stewart UPS": stewart_ups}


def fall(model, *, unit=1.0, motion=None, **order):
    """A model under gravity with masses that are the same in any unit of length; positions over 1 s."""
    R, t = (np.eye(3), np.zeros(3)) if motion is None else motion
    built = model.build(unit=unit, motion=motion, **order)
    m = built.mechanism
    m.gravity = tuple(R @ np.array([0.3, -9.0, -4.0]) * unit)
    for name in m.bodies:
        m[name].mass, m[name].center = 1.0, np.array([0.3, 0.1, 0.05]) * unit
        m[name].inertia = np.diag([0.02, 0.05, 0.06]) * unit**2
    found = m.simulate(0.4, step=1e-3)
    assert found.ok and found.drift.max() <= CLOSED, found.text()
    places = {name: ((found.positions(name) - t) @ R) / unit for name in m.bodies}
    turns = {name: np.einsum("ji,tjk->tik", R, [matrix(p) for p in found.quaternions(name)[::40]]) for name in m.bodies}
    return places, turns


@pytest.mark.parametrize("name", MODELS)
def test_motion_does_not_depend_on_units_order_and_place(name):
    """In µm and km, with bodies and joints shuffled, moved rigidly: equal to 1e-9 of the size, 1e-9 rad."""
    model, rng = MODELS[name](), np.random.default_rng(4)
    bodies, bonds = list(rng.permutation(list(model.bodies))), list(rng.permutation([b.name for b in model.bonds]))
    away = random_rotation(rng), np.array([3.0, -5.0, 2.0])
    places, turns = fall(model)
    for change in ({"unit": 1e6}, {"unit": 1e-3}, {"bodies": bodies, "bonds": bonds}, {"motion": away}):
        others, other_turns = fall(model, **change)
        for body, path in places.items():
            assert np.abs(others[body] - path).max() <= 1e-9, (change, body)
            assert np.abs(other_turns[body] - turns[body]).max() <= 1e-9, (change, body)


def test_motion_does_not_depend_on_origins():
    """Body origins at other places, with the centres of mass where they were."""
    rng = np.random.default_rng(9)
    m = add_masses(rsur().build().mechanism, rng)
    shifts = {name: rng.normal(size=3) for name in m.bodies}
    other = rsur().build(origins=shifts).mechanism
    for name in m.bodies:
        other[name].mass, other[name].inertia = m[name].mass, m[name].inertia
        other[name].center = np.array(m[name].center) - shifts[name]
    a, b = m.simulate(1.0, step=1e-3), other.simulate(1.0, step=1e-3)
    for name in m.bodies:
        ends = [run.states[-1][name] for run in (a, b)]
        assert np.abs(ends[0].position - ends[1].point(-shifts[name])).max() <= 1e-9


# --- bad input -------------------------------------------------------------------------------------------------------


def pendulum(**body):
    m = cd.Mechanism(gravity=(0.0, -9.81, 0.0))
    bob = m.body("bob", position=(-1.0, 0.0, 0.0), **{"inertia": 0.01 * np.eye(3), "mass": 1.0, **body})
    m.revolute("A", m.ground.frame(z=Z), bob.frame((1.0, 0.0, 0.0), z=Z))
    return m


def test_an_impossible_mass_is_refused_by_name():
    for mass in (-1.0, np.nan, np.inf):
        with pytest.raises(cd.ModelError, match="mass of body 'bob'"):
            pendulum(mass=mass)
    with pytest.raises(cd.ModelError, match=r"'bob' has no mass.*mass= and inertia=.*density=.*joint"):
        pendulum(mass=0.0, inertia=None).simulate(1.0)


@pytest.mark.parametrize("inertia", [np.zeros((3, 3)), np.diag([0.0, 1.0, 1.0]), np.diag([1e-14, 1.0, 1.0])])
def test_a_singular_inertia_is_simulated(inertia):
    """About z, where the moment is J, from the horizontal: θ̈ = m g l/(J + m l²)."""
    found = pendulum(inertia=inertia).simulate(1e-3, step=1e-3, method="rk4")
    assert abs(found.accelerations("bob")[0, 5]) == pytest.approx(9.81 / (inertia[2, 2] + 1.0), rel=1e-13)


@pytest.mark.parametrize(
    "inertia",
    [np.diag([1.0, 1.0, 3.0]), np.diag([-1.0, 1.0, 1.0]), np.full((3, 3), np.nan), [[1, 2, 0], [0, 1, 0], [0, 0, 1]]],
)
def test_impossible_inertia_is_refused_by_name(inertia):
    with pytest.raises(cd.ModelError, match="inertia of body 'bob'"):
        pendulum(inertia=inertia)


def test_bodies_of_unknown_mass_or_inertia_are_named():
    m = pendulum(inertia=None)
    assert any("bob" in note and "inertia" in note for note in m.simulate(0.1).notes)
    assert not pendulum().simulate(0.1).notes
    m = pendulum(mass=None)
    assert any("bob" in note and "no mass" in note and "0 kg" in note for note in m.simulate(0.1).notes)
    assert any("no mass" in note for note in m.copy().simulate(0.1).notes)
    m["bob"].mass = 1.0
    assert not m.simulate(0.1).notes


def test_inconsistent_velocities_are_projected_and_it_is_said():
    """The projection is that of least change of kinetic energy: the angular velocity is (J ω + m L v)/(J + m L²)."""
    m = pendulum()
    given = np.array([[0.3, 2.0, 0.1, 0.2, 0.4, 1.0]])
    found = m.simulate(0.1, m.state.with_rates(given))
    spin = (0.01 * 1.0 - 2.0) / (0.01 + 1.0)
    assert any("velocities" in note and "contradict" in note for note in found.notes)
    assert found.velocities("bob")[0] == pytest.approx([0, -spin, 0, 0, 0, spin], abs=1e-12)
    consistent = m.simulate(0.1, m.state.with_rates(np.array([[0, -spin, 0, 0, 0, spin]])))
    assert not consistent.notes


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_velocities_that_are_not_finite_are_refused(bad):
    m = pendulum()
    velocities = np.zeros((1, 6))
    velocities[0, 5] = bad
    with pytest.raises(cd.ModelError, match=r"velocit"):
        m.simulate(0.1, m.state.with_rates(velocities))


@pytest.mark.parametrize(
    "options",
    [
        {"step": 0.0},
        {"step": np.nan},
        {"step": -1.0},
        {"rtol": 0.0},
        {"rtol": np.nan},
        {"step": 0.1, "rtol": 1e-6},
        {"method": "rk4"},
        {"method": "euler"},
        {"times": [0.2, 0.1]},
        {"times": [0.0, 2.0]},
        {"times": [np.nan]},
        {"times": []},
    ],
    ids=str,
)
def test_bad_options_are_refused(options):
    with pytest.raises(cd.ModelError):
        pendulum().simulate(1.0, **options)
    for duration in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(cd.ModelError, match="duration"):
            pendulum().simulate(duration)


@pytest.mark.parametrize("method", ORDERS)
@sampled("step", [0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
def test_a_step_that_is_too_large_is_flagged(step, method):
    """Where the run says that it is done, its result is right to 2 % of the size."""
    silent = []
    for name in ("RSUR", "planar 4R", "Stewart UPS", "bricard", "bent_chain", "double_cardan", "four_cylinder"):
        if name in MODELS:
            m = MODELS[name]().build().mechanism
            m.gravity = (0.0, -9.81, 0.0) if name == "planar 4R" else m.gravity
            for body in m.bodies.values():
                body.mass, body.center, body.inertia = 1.0, (0.3, 0.1, 0.05), np.diag([0.02, 0.05, 0.06])
        else:
            m = gallery(name, np.random.default_rng(2))
        found = m.simulate(4.0, step=step, method=method)
        if found.ok:
            right = m.simulate(4.0, rtol=1e-9).states[-1]
            off = np.abs(found.states[-1].positions - right.positions).max() / found._equations.system.judged_length
            if not off <= 0.02:
                silent.append((name, off, found.error))
        else:
            assert found.reason
    assert not silent


@pytest.mark.parametrize("options", [{"step": 1e-3}, {"step": 1e-3, "method": "rk4"}, {"rtol": 1e-6}], ids=str)
def test_a_driver_that_jumps_is_not_silently_wrong(options):
    """A stroke that jumps by .2 m, and a crank that jumps by .5 rad in a redundant linkage."""
    slide = cd.Mechanism(gravity=(0.0, 0.0, 0.0))
    slider = slide.body("slider", mass=1.0, inertia=np.eye(3))
    slide.prismatic("D", slide.ground.frame(z=X), slider.frame(z=X))
    slide.drive("motor", slide["D"], lambda t: 0.1 * t + 0.1 * cd.sqrt((t - 0.4503) ** 2) / (t - 0.4503))
    linkage = planar_4r().build().mechanism
    crank = linkage["A"].coordinate(linkage.assemble().state)
    linkage.drive("motor", linkage["A"], lambda t: crank + 0.25 + 0.25 * cd.sqrt((t - 0.4503) ** 2) / (t - 0.4503))
    for m in (slide, linkage):
        found = m.simulate(1.0, **options)
        assert not found.ok, found.text()
        assert found.status in ("step too large", "step too small")
        assert "motor" in found.reason


def test_a_fast_driver_is_not_stepped_over():
    """A stroke of .2 m within some 5 ms, in the middle of 2 s without motion."""
    m = cd.Mechanism(gravity=(0.0, 0.0, 0.0))
    slider = m.body("slider", mass=1.0, inertia=np.eye(3))
    m.prismatic("D", m.ground.frame(z=X), slider.frame(z=X))
    m.drive("motor", m["D"], lambda t: 0.1 * cd.tanh(1000 * (t - 1.003)))
    found = m.simulate(2.0, rtol=1e-6)
    assert found.ok, found.text()
    assert np.abs(found.positions("slider")[:, 0] - 0.1 * np.tanh(1000 * (found.times - 1.003))).max() <= 1e-9


def test_contradicting_drivers_are_named():
    m = pendulum()
    m.drive("one", m["A"], lambda t: 1.0 * t)
    m.drive("two", m["A"], lambda t: 2.0 * t)
    found = m.simulate(1.0, step=1e-3)
    assert not found.ok
    assert "'one'" in found.reason or "'two'" in found.reason, found.text()
