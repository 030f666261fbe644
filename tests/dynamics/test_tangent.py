"""Derivatives of forces against differences, for every joint and load; null spaces; the time of large equilibria."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import subspace_angles

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cardan as cd
from cardan import examples
from cardan.analysis.equilibrium import assembled, released
from cardan.coordinates import formulations
from cardan.dynamics.build import equations_of
from cardan.dynamics.functions import Called
from cardan.dynamics.static_forces import null_space
from cardan.dynamics.tangent import Curvature, LoadTangent, Rows
from fuzz.oracles.joints import JOINTS
from fuzz.oracles.loads import LOADS, TIME, Rig
from gallery.checks import without_drivers
from layers import sampled
from mechanisms import change_point, planar_4r, random_quaternion, random_rotation
from timing import slowness

H = 3e-3  # of nine-point differences: their error is of the order H⁸, and rounding over H
FIRST = {
    k * sign: sign * weight
    for k, weight in zip((1, 2, 3, 4), (4 / 5, -1 / 5, 4 / 105, -1 / 280), strict=True)
    for sign in (1, -1)
}
CASES = [case for row in LOADS.values() for case in row.cases]
Y, Z = np.eye(3)[1:]


def slopes(force, motions, h=H):
    """Derivatives of a force along motions, as columns."""
    return np.array([sum(weight * force(k * h * motion) for k, weight in FIRST.items()) / h for motion in motions.T]).T


def check_curvature(m, state, rng):
    """D(Jᵀλ) of all equations of poses, and D(J v), in a state."""
    e = equations_of(m._model.drawing)[0]
    p, system = e.problem, e.system
    angles = np.array([state.angles.get(key, 0.0) for key in system.counted_angles])
    q = formulations.to_reference(system, state.coordinates, angles)
    units = p.scales[p.rows :]
    weights = np.zeros(p.rows)
    weights[e.equations] = rng.uniform(-1, 1, e.equations.size)
    for row in system.rows:
        if row.primitive.of_rates:
            weights[row.start : row.start + row.primitive.rows] = 0.0
    own = weights != 0.0
    curvature = Curvature(p, Rows(p, units), q)
    jacobian = p.jacobian(q)[1]
    # J of a contact is the derivative of its gap where that is zero, so along motions that keep it
    motions = units[:, None] * (null_space((jacobian * units)[own]) if system.contacts else np.eye(p.unknowns))
    found = curvature.between(weights, motions, motions)
    wanted = motions.T @ slopes(lambda step: p.jacobian(p.retract(q, step))[1].T @ weights, motions)
    size = np.abs(weights) @ np.abs(jacobian) @ units
    assert np.abs(found - wanted).max(initial=0.0) <= 1e-9 * max(size, np.abs(wanted).max(initial=0.0))
    v = motions @ rng.uniform(-1, 1, motions.shape[1])
    rates = slopes(lambda step: p.jacobian(p.retract(q, step))[1] @ v, motions)[own]
    size = max(1.0, np.abs(rates).max(initial=0.0))
    assert np.abs((curvature.rates(v) @ motions)[own] - rates).max(initial=0.0) <= 1e-9 * size


@pytest.mark.parametrize("kind", JOINTS)
def test_the_stiffness_of_reactions_is_that_of_differences_for_every_joint(kind):
    """Between two bodies, and to the ground; open joints too."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        m, ends = cd.Mechanism(), []
        for name in ("a", "b"):
            pose = {"position": rng.uniform(-1, 1, 3), "orientation": random_quaternion(rng)}
            body = m.ground if seed == 1 and name == "a" else m.body(name, mass=1.0, inertia=np.eye(3), **pose)
            R = random_rotation(rng)
            ends.append(body.frame(rng.uniform(-1, 1, 3), z=R[:, 2], x=R[:, 0]))
        getattr(m, kind)("it", *ends, **JOINTS[kind].pose(rng)[3])
        check_curvature(m, m.state, rng)


@sampled("name", examples.GALLERY, 8)
def test_the_stiffness_of_reactions_is_that_of_differences_in_the_gallery(name):
    """Couplings, drivers, contacts and paths too."""
    m = examples.GALLERY[name].build()
    m = without_drivers(m) if m.system.contacts else m
    check_curvature(m, m.assemble().state, np.random.default_rng(3))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_derivatives_of_loads_are_those_of_differences(case):
    """By poses and by velocities, while everything moves; functions that Python calls are left to differences."""
    rig = Rig(1)
    case(rig)
    forces = equations_of(rig.m._model.drawing)[0].forces
    q = formulations.to_reference(forces.system, rig.m.state.coordinates)
    v = rig.solver_velocities(forces.system, rig.velocities)
    retract, units = formulations.problem(forces.system, "manifold").retract, np.ones(v.size)
    tangent = LoadTangent(forces, Rows(forces.coordinates, units), TIME, q, v)
    eye = np.eye(v.size)
    if any(isinstance(item.function, Called) for item in (*forces.laws, *forces.wrenches)):
        assert not tangent.stiffness(eye, eye).any() and not tangent.damping(eye, eye).any()
        return
    by_rate = slopes(lambda step: forces.total(TIME, q, v + step), eye, 1e-4)
    damping = tangent.damping(eye, eye)
    if tangent.of_rates:
        v = np.zeros_like(v)
        tangent = LoadTangent(forces, Rows(forces.coordinates, units), TIME, q, v)
    by_pose = slopes(lambda step: forces.total(TIME, retract(q, step), v), eye)
    for found, wanted in ((tangent.stiffness(eye, eye), by_pose), (damping, by_rate)):
        assert np.abs(found + wanted).max() <= 2e-8 * max(1.0, np.abs(wanted).max()), case.__name__


def at_rest(m, state=None):
    drawing = m._model.begin("equilibrium", state)
    return released(equations_of(drawing)[0], assembled(drawing.system, state, 1e-12).state, state)


@pytest.mark.parametrize("name", ["planar_4r", "bricard", "watt", "delta_robot", "cam_flat", "barrel_cam"])
def test_the_stiffness_along_free_motions_is_that_of_projected_poses(name):
    """Away from equilibrium too, with redundant equations and contacts."""
    rest = at_rest(without_drivers(examples.GALLERY[name].build()))
    free = rest.free_motions()
    wanted = rest.differences(free, free)[0]
    assert not rest.is_singular(free)
    assert np.abs(rest.stiffness(free) - wanted).max() <= 1e-8 * max(np.abs(wanted).max(), rest.load())


def test_the_stiffness_of_loads_without_a_formula_is_that_of_projected_poses():
    """Functions that Python calls, parallel axes with a torsion spring between them, and loaded rate rows."""
    m = cd.Mechanism("sled", gravity=(0, 1.0, -9.81))
    sled = m.body("sled", mass=1.0, inertia=np.diag([0.1, 0.2, 0.3]))
    m.planar("ice", m.ground.frame(), sled.frame())
    m.knife_edge("blade", sled.frame(z=Y))
    rod = m.body("rod", mass=1.0, inertia=0.01 * np.eye(3), center=(0.1, 0, 1), orientation=(Y, 0.4))
    m.spherical("ball", sled.point(), rod.point())
    m.spring("upright", cd.coordinate(m.ground.frame(), sled.frame(), "inclination"), stiffness=3.0)
    m.spring(
        "joystick",
        cd.coordinate(sled.frame(), rod.frame(z=(-np.sin(0.4), 0, np.cos(0.4))), "inclination"),
        stiffness=50.0,
    )
    m.force("wind", rod.point((0, 0, 1)), lambda t, state: np.sin(3.0 * state["rod"].position) + state["sled"].position)
    rest = at_rest(m)
    free, poses = rest.free_motions(), rest.free_motions(with_rate_rows=False)
    assert free.shape[1] == 5 and poses.shape[1] == 6
    found, (wanted, corner) = rest.stiffness(free, poses), rest.differences(free, poses)
    assert np.abs(wanted).max() > 10.0 and corner < 1e-3
    assert np.abs(found - wanted).max() <= 1e-8 * np.abs(wanted).max()


def test_a_pose_where_motions_branch_is_singular_and_not_linear():
    rest = at_rest(change_point().build().mechanism)
    assert rest.is_singular(rest.free_motions())
    flat = change_point().build().mechanism
    flat.gravity = (0, 0, -9.81)  # across the plane: every pose is an equilibrium
    for body in flat.bodies.values():
        body.mass, body.inertia = 1.0, np.eye(3)
    with pytest.raises(cd.ModelError, match="the pose is singular"):
        flat.linearize()
    found = flat.equilibrium()
    assert found.ok and found.stable is None and "singular" in found.text()
    regular = planar_4r().build().mechanism
    assert not at_rest(regular).is_singular(at_rest(regular).free_motions())


@pytest.mark.parametrize("seed", range(4))
def test_null_spaces_are_those_of_singular_values(seed):
    """Rows that are sparse, dense, or that depend on each other."""
    rng = np.random.default_rng(seed)
    rows, columns = (12, 20) if seed % 2 else (20, 24)
    matrix = rng.standard_normal((rows, columns))
    matrix[rng.uniform(size=matrix.shape) < 0.6] = 0.0
    if seed >= 2:
        matrix[rows // 2 :] = rng.standard_normal((rows - rows // 2, rows // 2)) @ matrix[: rows // 2]
    found = null_space(matrix)
    _, sigma, right = np.linalg.svd(matrix)
    wanted = right[int((sigma > 1e-9 * sigma[0]).sum()) :].T
    assert found.shape == wanted.shape
    assert np.abs(found.T @ found - np.eye(found.shape[1])).max() < 1e-13
    assert subspace_angles(found, wanted).max() < 1e-7 and np.abs(matrix @ found).max() < 1e-12
    near = matrix.copy()
    near[-1] = near[0] + 1e-8 * rng.standard_normal(columns)  # neither dependent nor independent: by singular values
    assert null_space(near).shape[1] == columns - np.linalg.matrix_rank(near, rtol=1e-9)
    assert null_space(np.zeros((0, 5))).shape == (5, 5)


def hanging_chain(count, kind):
    """Links of 0.1 m in a horizontal line, held at one end."""
    m = cd.Mechanism("chain", gravity=(0, 0, -9.81))
    last = m.ground
    for k in range(count):
        link = m.body(f"{k}", position=(0.1 * k + 0.05, 0, 0), mass=0.1, inertia=np.diag([1e-5, 1e-4, 1e-4]))
        ends = last.frame((0.05, 0, 0) if k else (0, 0, 0), z=Y), link.frame((-0.05, 0, 0), z=Y)
        getattr(m, kind)(f"J{k}", *ends)
        last = link
    return m


@pytest.mark.parametrize("kind, stable", [("revolute", True), ("spherical", None)])
def test_a_hanging_chain_of_60_links_takes_half_a_second(kind, stable):
    """Of the processor, on an idle machine; the second time, when kernels are loaded."""
    hanging_chain(60, kind).equilibrium()
    m = hanging_chain(60, kind)
    began = time.process_time()
    found = m.equilibrium()
    seconds = time.process_time() - began
    assert found.ok and found.stable is stable, found.text()
    assert np.abs(found.state.positions[:, :2]).max() < 1e-10
    assert np.abs(found.state.positions[:, 2] + 0.1 * np.arange(60) + 0.05).max() < 1e-10
    assert seconds <= 0.5 * slowness()
