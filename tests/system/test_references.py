"""The reference frames that solvers work with change no physical answer: residuals, J, γ, rates, assembly, freedom."""

from __future__ import annotations

import pickle
from zlib import crc32

import numpy as np
import pytest

import cardan as cd
from cardan import examples, joints
from cardan.coordinates import formulations, rates, tree
from cardan.dynamics.mass import principal_frame
from fuzz.oracles.joints import JOINTS
from mechanisms import matrix, random_quaternion

pytestmark = pytest.mark.nojit

OPTIONS = {kind: {**row.pose(np.random.default_rng(3)).options, **row.forms} for kind, row in JOINTS.items()}
KINDS = [name for name, kind in joints.REGISTRY.items() if kind.is_between_places]


def polynomial(t):
    return 0.3 + 0.2 * t + 0.4 * t * t


def random_frame(body, rng):
    return body.frame(rng.normal(size=3), z=rng.normal(size=3), x=rng.normal(size=3))


def references(m, rng):
    return [(*rng.normal(size=3), *random_quaternion(rng)) for _ in m.bodies]


def in_references(m, rng):
    """The mechanism, and a copy that is solved in random reference frames."""
    other = m.copy()
    drawing = other._model.drawing
    drawing._system = drawing.packed(references(m, rng))
    return m, other


def pair(kind, rng):
    """Two bodies on a joint of that kind, one also on the ground, with a coordinate that is driven if there is any."""
    m = cd.Mechanism()
    a, b = (m.body(k, position=rng.normal(size=3), orientation=random_quaternion(rng)) for k in "ab")
    m.revolute("post", random_frame(m.ground, rng), random_frame(a, rng))
    joint = getattr(m, kind)("it", random_frame(a, rng), random_frame(b, rng), **OPTIONS[kind])
    for name in joint.kind.coordinates:
        m.drive(f"drive {name}", joint.of(name), polynomial)
    return m


def solver_rates(system, coordinates, velocities):
    """Per body (ṙ, ω) of the reference frames from those of the bodies, flat, and the part of their acceleration that
    stems from the velocity alone."""
    axes = system.reference_axes
    found, bias = velocities.copy(), np.zeros_like(velocities)
    for k, (w, c, p) in enumerate(zip(velocities[:, 3:], system.reference_points, coordinates[:, 3:], strict=True)):
        found[k, :3] += matrix(p) @ np.cross(w, c)
        bias[k, :3] = matrix(p) @ np.cross(w, np.cross(w, c))
        if axes is not None:
            found[k, 3:] = matrix(axes[k]).T @ w
    return found.ravel(), bias.ravel()


@pytest.mark.parametrize("kind", KINDS)
def test_residuals_jacobian_and_gamma_of_every_joint_are_the_same_in_any_reference_frames(kind):
    rng = np.random.default_rng(crc32(kind.encode()))
    coordinates = np.array([(*rng.normal(size=3), *random_quaternion(rng)) for _ in range(2)])
    velocities = rng.normal(size=(2, 6))
    found = []
    for m in in_references(pair(kind, rng), rng):
        for system in (m.system, m.system.judged(), pickle.loads(pickle.dumps(m.system))):
            q = formulations.to_reference(system, coordinates)
            problem = formulations.problem(system, "manifold")
            residual, jacobian = problem.jacobian(q)
            v, bias = solver_rates(system, coordinates, velocities)
            gamma = formulations.gamma(system, "manifold", q, v) - jacobian @ bias
            found.append((residual, jacobian @ v, gamma, formulations.angles(system, q)))
            assert np.abs(formulations.from_reference(system, q) - coordinates).max() < 1e-14
    for k in range(3):
        for mine, other in zip(found[k], found[k + 3], strict=True):
            assert np.abs(mine - other).max(initial=0.0) <= 1e-12 * max(1.0, np.abs(mine).max(initial=0.0))


@pytest.mark.parametrize("name", ["slider_crank", "lead_screw", "differential", "double_cardan"])
@pytest.mark.parametrize("formulation", ["manifold", "euler_parameters", "relative"])
def test_assembly_rates_and_freedom_are_the_same_in_any_reference_frames(name, formulation):
    rng = np.random.default_rng(3)
    m, other = in_references(examples.REGISTRY[name].build(), rng)
    mine, theirs = (x.assemble(formulation=formulation) for x in (m, other))
    assert mine.ok
    assert theirs.ok
    close = np.abs(mine.state.coordinates - _same_signs(theirs.state.coordinates, mine.state.coordinates)).max()
    report = m.diagnose(mine.state)
    if not report.undriven:  # else the free motions end where the solver's metric leaves them
        assert close <= 1e-12
    same = other.diagnose(mine.state)
    assert (report.dof, report.rank, report.redundant) == (same.dof, same.rank, same.redundant)
    if report.undriven:
        return
    motions = []
    for x in (m, other):
        near = np.array([mine.state.angles[key] for key in x.system.counted_angles])
        q = formulations.to_reference(x.system, mine.state.coordinates, near)
        problem = formulations.problem(x.system, "manifold", x.system.length)
        motions.append(rates.at_origins(x.system, q, *rates.solver_rates(x.system, problem, q, 0.0)))
    for one, two in zip(*motions, strict=True):
        assert np.abs(one - two).max() <= 1e-11 * max(1.0, np.abs(one).max())


def _same_signs(coordinates, like):
    found = coordinates.copy()
    found[(found[:, 3:] * like[:, 3:]).sum(axis=1) < 0.0, 3:] *= -1.0
    return found


def test_many_starts_are_assembled_in_any_reference_frames():
    rng = np.random.default_rng(5)
    m, other = in_references(examples.REGISTRY["slider_crank"].build(), rng)
    starts = np.repeat(m.state.coordinates[None], 4, axis=0) + 0.01 * rng.normal(size=(4, len(m.bodies), 7))
    starts[..., 3:] /= np.linalg.norm(starts[..., 3:], axis=-1, keepdims=True)
    mine, theirs = (x.assemble_many(starts) for x in (m, other))
    assert mine.ok.all()
    assert theirs.ok.all()


def test_pieces_and_trees_keep_the_reference_frames():
    rng = np.random.default_rng(7)
    m = pair("cylindrical", rng)
    c, d = (m.body(k, position=rng.normal(size=3)) for k in "cd")
    m.screw("thread", random_frame(c, rng), random_frame(d, rng), 0.3)
    m, other = in_references(m, rng)
    for x in (m, other):
        whole = x.system
        assert [piece.bodies.tolist() for piece in whole.pieces] == [[0, 1], [2, 3]]
        rows = np.concatenate([piece.rows_in(whole) for piece in whole.pieces])
        assert sorted(rows) == list(range(whole.powers.size))
        coordinates = np.array([(*rng.normal(size=3), *random_quaternion(rng)) for _ in range(4)])
        put = np.empty_like(coordinates)
        for piece in whole.pieces:
            assert [whole.counted_angles[k] for k in piece.angles] == list(piece.system.counted_angles)
            mine = formulations.problem(piece.system, "manifold").residual(
                formulations.to_reference(piece.system, piece.take(coordinates))
            )
            q = formulations.to_reference(whole, coordinates)
            expected = formulations.problem(whole, "manifold").residual(q)[piece.rows_in(whole)]
            assert np.abs(mine - expected).max() <= 1e-13
            piece.put(piece.take(coordinates), put)
        assert np.array_equal(put, coordinates)
    assert tree.spanning_tree(m.system).joints == tree.spanning_tree(other.system).joints


def test_a_system_in_one_piece_is_its_own_piece():
    (piece,) = (system := examples.REGISTRY["rsur"].build().system).pieces
    assert piece.system is system
    assert piece.take(system.authored) is system.authored
    assert piece.bodies.tolist() == list(range(len(system.names)))
    assert piece.rows_in(system).tolist() == list(range(system.powers.size))


def test_the_principal_frame_makes_inertia_diagonal():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(3, 3))
    masses = A @ A.T
    inertia = np.trace(masses) * np.eye(3) - masses
    m = cd.Mechanism()
    body = m.body("b", inertia=inertia, center=(1, 2, 3))
    c, p = np.split(np.array(principal_frame(body)), [3])
    assert c.tolist() == [1, 2, 3]
    turned = matrix(p).T @ inertia @ matrix(p)
    assert np.abs(turned - np.diag(np.diag(turned))).max() < 1e-13
    assert principal_frame(m.body("ball"))[3:] == (1.0, 0.0, 0.0, 0.0)
    assert principal_frame(m.body("plate", inertia=np.diag([1, 2, 3])))[3:] == (1.0, 0.0, 0.0, 0.0)
