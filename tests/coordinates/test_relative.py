"""Laws of joint coordinates: the tree, the derivatives, the poses that solvers find with them.

Derivatives are compared with the Cartesian ones times the tree's tangent map, which is written here a second time in
NumPy, with the paper's recursions, and with differences.
"""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import permutations

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import minimum_spanning_tree

import cardan as cd
from cardan import examples
from cardan.constraints import primitives
from cardan.constraints.indifference import is_indifferent
from cardan.constraints.registry import REGISTRY, FeatureKind
from cardan.coordinates import _tree_poses, formulations, relative, tree
from cardan.examples.starts import random_start
from cardan.joints import REGISTRY as KINDS
from cardan.kernel.jit import jit
from cardan.math import euler
from cardan.solvers import methods
from cardan.solvers.tables import Structure
from cardan.system import tables as layout
from cardan.system.parts import Feature
from cardan.system.relations import Bundle, Relation
from cardan.system.system import System
from fuzz.oracles.joints import JOINTS as ORACLES
from layers import sampled
from mechanisms import BENCHMARKS, planar_4r, random_quaternion, rsur, unit
from recursion import Recursion

FORMS = ["relative", "relative_euler_parameters"]
VIRTUAL = "relative_virtual_rotation"  # the comparator: a derivative along the unit sphere only
EXACT = 1e-12  # relative, of the size of the Jacobian
DIFFERENCE = 1e-9  # of five-point differences with h = 1e-3: their own error is some 1e-11

JOINTS = tuple(kind for kind in ORACLES if KINDS[kind].motion is not None)
CUT_ONLY = tuple(kind for kind in ORACLES if KINDS[kind].motion is None)


# --- random mechanisms ----------------------------------------------------------------------------------------------


def random_frame(body, rng):
    return body.frame(rng.uniform(-1, 1, 3), z=unit(rng.normal(size=3)), x=unit(rng.normal(size=3)))


def add(m, kind, name, a, b, rng):
    ends = random_frame(a, rng), random_frame(b, rng)
    getattr(m, kind)(name, *ends, **ORACLES[kind].options(rng))


def random_mechanism(seed, bodies=12, loops=9):
    """A random tree of joints of every kind, one body that nothing but loops hold, and loops of every kind."""
    rng = np.random.default_rng(seed)
    m = cd.Mechanism()
    made = [m.ground]
    for k in range(bodies):
        body = m.body(f"body {k}", position=rng.uniform(-1, 1, 3), orientation=random_quaternion(rng))
        if k != 3:
            add(m, JOINTS[(seed + k) % len(JOINTS)], f"limb {k}", made[rng.integers(len(made))], body, rng)
        made.append(body)
    for k in range(loops):
        a, b = rng.choice(len(made), 2, replace=False)
        add(m, (JOINTS + CUT_ONLY)[(3 * seed + k) % len(ORACLES)], f"loop {k}", made[a], made[b], rng)
    return m


def triple(seed):
    """A tree with constraints of three bodies each, one of them with a feature on the ground."""
    m = random_mechanism(seed, loops=0)
    rng = np.random.default_rng([seed, 5])
    bodies = list(m.bodies.values())
    for name, (a, b, c) in {
        "over": (bodies[2], bodies[7], bodies[11]),
        "under": (m.ground, bodies[5], bodies[9]),
    }.items():
        ends = a.vector(rng.normal(size=3)), b.point(rng.normal(size=3)), c.point(rng.normal(size=3))
        m.constrain(name, primitives.dot_2, **dict(zip("vpq", ends, strict=True)), offset=0.3)
    return m.system


def one_piece(seed):
    """The largest piece of a random mechanism."""
    return max((piece.system for piece in random_mechanism(seed).system.pieces), key=lambda s: len(s.names))


def behind_a_ball(seed):
    """A ball joint on the ground carries a tree; all loops are within the tree."""
    rng = np.random.default_rng([seed, 9])
    m = cd.Mechanism()
    made = [m.ground]
    for k in range(8):
        body = m.body(f"body {k}", position=rng.uniform(-1, 1, 3), orientation=random_quaternion(rng))
        joint = "spherical" if k in (0, 3) else JOINTS[(seed + k) % len(JOINTS)]
        add(m, joint, f"limb {k}", made[rng.integers(1, len(made)) if k else 0], body, rng)
        made.append(body)
    for k in range(4):
        a, b = rng.choice(np.arange(1, len(made)), 2, replace=False)
        add(m, ["distance", "angle", "spherical", "universal"][k], f"loop {k}", made[a], made[b], rng)
    return m.system


SYSTEMS = {
    **{f"behind a ball {seed}": lambda seed=seed: behind_a_ball(seed) for seed in range(4)},
    **{f"random {seed}": lambda seed=seed: random_mechanism(seed).system for seed in range(10)},
    **{f"tree {seed} and a loop": lambda seed=seed: random_mechanism(seed, loops=2).system for seed in range(4)},
    **{f"piece {seed}": lambda seed=seed: one_piece(seed) for seed in (2, 5)},
    **{f"three bodies {seed}": lambda seed=seed: triple(seed) for seed in range(3)},
    **{name: lambda name=name: examples.REGISTRY[name].build().system for name in examples.REGISTRY},
}


def random_coordinates(system, form, seed):
    """Joint coordinates of poses drawn anyhow; Euler parameters off the unit sphere where the form knows them."""
    rng = np.random.default_rng(seed)
    q = np.array([[*rng.uniform(-1, 1, 3), *random_quaternion(rng)] for _ in system.names]).ravel()
    q = np.append(q, np.zeros(len(system.counted_angles)))
    x = formulations.enter(system, form, formulations.with_angles_of_poses(system, q))
    if relative.FORMULATIONS[form]:
        at = 0
        for limb in tree.spanning_tree(system).limbs:
            end = at + limb.motion.coordinates()
            if limb.motion.rotation == layout.ANYHOW:
                x[end - 4 : end] *= rng.uniform(0.8, 1.25)
            at = end
    return x


def poses_of(system, form, x):
    q = np.empty(7 * len(system.names) + len(system.counted_angles))
    formulations.leave(system, form, x, q)
    return q


def cut_rows(system):
    """Rows of the Cartesian problem that are left, in the order of the relative one."""
    starts = dict(zip(system.starts[:-1].tolist(), system.rows, strict=True))
    rows = [starts[path.record] for path in tree.spanning_tree(system).paths]
    return np.array([row.start + i for row in rows for i in range(row.primitive.rows)], dtype=int)


def first_difference(f, h=1e-3):
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def close(value, expected, tolerance):
    __tracebackhide__ = True
    assert value.shape == expected.shape
    error = np.abs(value - expected).max(initial=0.0)
    assert error <= tolerance * max(1.0, np.abs(expected).max(initial=0.0)), f"off by {error:.1e}"


# --- the tangent maps, in NumPy ---------------------------------------------------------------------------------------


def tangent_map(system, x):
    """(δr in world, δθ in body) of every body per unknown of ``relative``: each body turns by z about its own joint's
    axis as seen from its reference."""
    grown = tree.spanning_tree(system)
    poses = Recursion(system, x)
    n = sum(limb.motion.unknowns(False) for limb in grown.limbs)
    bodies = [limb.body for limb in grown.limbs]
    v, w = {tree.GROUND: np.zeros((3, n))}, {tree.GROUND: np.zeros((3, n))}
    T = np.zeros((len(system.names), 6, n))
    at, k = 0, 0
    for limb, ref in zip(grown.limbs, grown.references, strict=True):
        C, _, _, s_i = poses.frames(limb.body)
        A, W = poses.A[limb.body], poses.A[limb.parent] @ C
        count, rotation = limb.motion
        w_ref = w[tree.GROUND if ref == tree.GROUND else bodies[ref]]
        z = np.zeros((6, n))
        z[range(limb.motion.unknowns(False)), range(k, k + limb.motion.unknowns(False))] = 1.0
        away = w[limb.parent] - w_ref
        axes = [2] if count == 1 else list(range(count))
        slide = W[:, axes] @ z[:count]
        if rotation == layout.STILL:
            own = w[limb.parent]
        elif rotation == layout.ABOUT_Z:
            rate = z[count] - W[:, 2] @ away
            own = w[limb.parent] + np.outer(W[:, 2], rate)
            slide = slide + limb.pitch * np.outer(W[:, 2], rate)
        elif rotation == layout.CROSSED:
            alpha = x[at + count]
            b = W @ [np.cos(alpha), np.sin(alpha), 0.0]
            own = w[limb.parent] + np.outer(W[:, 2], z[count] - W[:, 2] @ away)
            own = own - np.outer(b, z[count + 1] + b @ away)
        else:
            own = w_ref + A @ z[count : count + 3]
        arm = A @ s_i
        point = poses.r[limb.body] + arm
        to_point = point - poses.r[limb.parent]
        w[limb.body] = own
        v[limb.body] = v[limb.parent] + euler.tilde(-to_point) @ w[limb.parent] + slide - euler.tilde(-arm) @ own
        T[limb.body] = np.vstack([v[limb.body], A.T @ own])
        at += limb.motion.coordinates()
        k += limb.motion.unknowns(False)
    return T.reshape(-1, n)


def euler_tangent_map(system, x):
    """∂(r, p)/∂q of every body: r by the paper's recursion, p_j = p_i ⊗ c_ij ⊗ p″ ⊗ c_ji* factor by factor."""
    grown = tree.spanning_tree(system)
    poses = Recursion(system, x)
    n = poses.size
    p, dp = {tree.GROUND: np.array([1.0, 0, 0, 0])}, {tree.GROUND: np.zeros((4, n))}
    T = np.zeros((len(system.names), 7, n))
    at = 0
    for limb in grown.limbs:
        count, rotation = limb.motion
        c = x[at + count : at + limb.motion.coordinates()]
        inner, d_inner = np.array([1.0, 0, 0, 0]), np.zeros((4, n))

        def about_z(angle):
            return np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])

        def rate(angle):
            return 0.5 * about_z(angle + np.pi)

        if rotation == layout.ABOUT_Z:
            inner, d_inner[:, at + count] = about_z(c[0]), rate(c[0])
        elif rotation == layout.CROSSED:
            swap = np.array([0, np.sqrt(0.5), 0, np.sqrt(0.5)])
            first, last = about_z(c[0]), about_z(-c[1])
            inner = euler.multiply(euler.multiply(first, swap), last)
            d_inner[:, at + count] = euler.multiply(euler.multiply(rate(c[0]), swap), last)
            d_inner[:, at + count + 1] = -euler.multiply(euler.multiply(first, swap), rate(-c[1]))
        elif rotation == layout.ANYHOW:
            inner, d_inner[:, at + count : at + count + 4] = c, np.eye(4)
        left, right = np.array(limb.frames[:4]), euler.conjugate(np.array(limb.frames[7:11]))

        def outer(a, b, left=left, right=right):
            return euler.multiply(euler.multiply(euler.multiply(a, left), b), right)

        p[limb.body] = outer(p[limb.parent], inner)
        dp[limb.body] = np.column_stack(
            [outer(dp[limb.parent][:, k], inner) + outer(p[limb.parent], d_inner[:, k]) for k in range(n)]
        )
        T[limb.body] = np.vstack([poses.Jr(limb.body), dp[limb.body]])
        at += limb.motion.coordinates()
    return T.reshape(-1, n)


def virtual_map(system, x):
    """(δr, δp) of every body by virtual rotations: a ball joint rotates all behind it by 2 R E(c) δc, whatever |c|."""
    grown = tree.spanning_tree(system)
    poses = Recursion(system, x)
    q = poses_of(system, VIRTUAL, x)[: 7 * len(system.names)].reshape(-1, 7)
    v, w = {tree.GROUND: np.zeros((3, poses.size))}, {tree.GROUND: np.zeros((3, poses.size))}
    T = np.zeros((len(system.names), 7, poses.size))
    at = 0
    for limb in grown.limbs:
        C, _, _, s_i = poses.frames(limb.body)
        W = poses.A[limb.parent] @ C
        R = W / np.cbrt(np.linalg.det(W))
        (count, rotation), end = limb.motion, at + limb.motion.coordinates()
        own = np.eye(poses.size)[at:end]
        slide = W[:, [2] if count == 1 else list(range(count))] @ own[:count]
        turn = np.zeros((3, poses.size))
        if rotation == layout.ABOUT_Z:
            turn, slide = np.outer(R[:, 2], own[count]), slide + limb.pitch * np.outer(W[:, 2], own[count])
        elif rotation == layout.CROSSED:
            b = R @ [np.cos(x[at + count]), np.sin(x[at + count]), 0.0]
            turn = np.outer(R[:, 2], own[count]) - np.outer(b, own[count + 1])
        elif rotation == layout.ANYHOW:
            turn = R @ (2 * euler.E(x[end - 4 : end])) @ own[count:]
        arm = poses.A[limb.body] @ s_i
        to_point = poses.r[limb.body] + arm - poses.r[limb.parent]
        w[limb.body] = w[limb.parent] + turn
        v[limb.body] = v[limb.parent] - euler.tilde(to_point) @ w[limb.parent] + slide + euler.tilde(arm) @ w[limb.body]
        p = q[limb.body, 3:]
        half = [0.5 * euler.multiply(np.append(0.0, column), p) for column in w[limb.body].T]
        T[limb.body] = np.vstack([v[limb.body], np.column_stack(half)])
        at = end
    return T.reshape(-1, poses.size)


# --- derivatives ------------------------------------------------------------------------------------------------------


def are_behind_a_ball(system):
    """For each cut constraint, whether a ball joint is at or above its ancestor."""
    grown = tree.spanning_tree(system)
    number = {limb.body: k for k, limb in enumerate(grown.limbs)}
    found = []
    for path in grown.paths:
        k, balls = path.ancestor, 0
        while k != tree.GROUND:
            balls += grown.motions[k].rotation == layout.ANYHOW
            k = number.get(grown.parents[k], tree.GROUND)
        found.append(balls > 0)
    return found


def seen_by_the_ancestor(system, poses, f, J, turns, from_ground=()):
    """Cartesian rows as the relative problem states them: Q − P is a vector, and has the axes of the lowest common
    ancestor c there.  turns: ω of every body in world per unknown.  δ(A_cᵀf) = A_cᵀ(δf − ω_c × f).
    from_ground: for each constraint, whether it is stated in world anyway."""
    f, J = f.copy(), J.copy()
    starts = dict(zip(system.starts[:-1].tolist(), system.rows, strict=True))
    grown = tree.spanning_tree(system)
    at = 0
    for path, in_world in zip(grown.paths, from_ground or [False] * len(grown.paths), strict=True):
        row = starts[path.record]
        mine = slice(at, at + row.primitive.rows)
        at += row.primitive.rows
        if row.primitive.name == "coincidence" and path.ancestor != tree.GROUND and not in_world:
            c = grown.limbs[path.ancestor].body
            A = poses.A[c]
            J[mine] = A.T @ (J[mine] + euler.tilde(f[mine]) @ turns[c])
            f[mine] = A.T @ f[mine]
    return f, J


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_jacobian_is_the_cartesian_one_times_the_tangent_map(name):
    system = SYSTEMS[name]()
    for seed in range(2):
        x = random_coordinates(system, "relative", seed)
        T = tangent_map(system, x)
        f, J = formulations.problem(system, "relative").jacobian(x)
        cartesian, J_cartesian = formulations.problem(system, "manifold").jacobian(poses_of(system, "relative", x))
        rows, poses = cut_rows(system), Recursion(system, x)
        turns = [poses.A[k] @ T.reshape(-1, 6, T.shape[1])[k, 3:] for k in range(len(system.names))]
        expected = seen_by_the_ancestor(system, poses, cartesian[rows], J_cartesian[rows] @ T, turns)
        close(f, expected[0], EXACT)
        close(J, expected[1], EXACT)


@sampled("name", SYSTEMS, 16)
def test_the_papers_jacobian_is_that_of_euler_parameters_times_the_papers_recursion(name):
    form = "relative_euler_parameters"
    system = SYSTEMS[name]()
    rows = cut_rows(system)
    for scaled in (True, False):
        x = random_coordinates(system, form if scaled else "relative", 3)
        poses, T = Recursion(system, x), euler_tangent_map(system, x)
        f, J = formulations.problem(system, form).jacobian(x)
        cartesian, J_cartesian = formulations.problem(system, "euler_parameters").jacobian(poses_of(system, form, x))
        behind = are_behind_a_ball(system)
        if scaled:
            kept = rows_of(system, [p.ancestor == tree.GROUND for p in tree.spanning_tree(system).paths])
            kept |= rows_of(system, behind)  # (20) has the dilation by every ball joint, also above the ancestor
            close(f[: rows.size][kept], cartesian[rows][kept], EXACT)
            close(J[: rows.size][kept], (J_cartesian[rows] @ T)[kept], EXACT)
            continue
        along_sphere = np.eye(poses.size)  # a step that leaves lengths as they are
        at = 0
        for limb in tree.spanning_tree(system).limbs:
            at += limb.motion.coordinates()
            if limb.motion.rotation == layout.ANYHOW:
                c = x[at - 4 : at]
                along_sphere[at - 4 : at, at - 4 : at] -= np.outer(c, c)
        T = T @ along_sphere
        rates = T.reshape(-1, 7, poses.size)[:, 3:]
        q = poses_of(system, form, x)[: 7 * len(system.names)].reshape(-1, 7)
        turns = [2 * euler.E(q[k, 3:]) @ rates[k] for k in range(len(system.names))]
        expected = seen_by_the_ancestor(system, poses, cartesian[rows], J_cartesian[rows] @ T, turns, behind)
        close(f[: rows.size], expected[0], EXACT)
        close(J[: rows.size] @ along_sphere, expected[1], EXACT)


def rows_of(system, chosen):
    """Which rows of the cut constraints belong to the chosen ones."""
    starts = dict(zip(system.starts[:-1].tolist(), system.rows, strict=True))
    sizes = [starts[path.record].primitive.rows for path in tree.spanning_tree(system).paths]
    return np.repeat(np.asarray(chosen, dtype=bool), np.asarray(sizes, dtype=int))


@pytest.mark.slow
def test_ball_joints_above_the_ancestor_are_among_these_mechanisms():
    counts = [sum(are_behind_a_ball(make())) for make in SYSTEMS.values()]
    assert sum(count > 0 for count in counts) >= 5


@sampled("name", SYSTEMS, 16)
def test_virtual_rotation_is_what_it_says_and_a_derivative_along_the_unit_sphere_only(name):
    """[Liu2013] 2.2: with Euler parameters in a ball joint, virtual rotation "will yield erroneous formulae"."""
    system = SYSTEMS[name]()
    rows, grown = cut_rows(system), tree.spanning_tree(system)
    in_world = [p.ancestor == tree.GROUND for p in grown.paths]
    kept = rows_of(system, in_world) | rows_of(system, are_behind_a_ball(system))
    x = random_coordinates(system, VIRTUAL, 3)
    f, J = formulations.problem(system, VIRTUAL).jacobian(x)
    right, exact = formulations.problem(system, "relative_euler_parameters").jacobian(x)
    assert np.array_equal(f, right)
    assert np.array_equal(J[rows.size :], exact[rows.size :])  # the normalisations
    _, J_cartesian = formulations.problem(system, "euler_parameters").jacobian(poses_of(system, VIRTUAL, x))
    close(J[: rows.size][kept], (J_cartesian[rows] @ virtual_map(system, x))[kept], EXACT)
    kinds = [limb.motion.rotation for limb in grown.limbs for _ in range(limb.motion.coordinates())]
    of_balls = exact[: rows.size, np.array(kinds) == layout.ANYHOW]
    difference = np.abs(exact[: rows.size] - J[: rows.size]).max(initial=0.0)
    assert difference > 1e-3 if np.abs(of_balls).max(initial=0.0) > 1e-2 else difference < 1e-12
    x = random_coordinates(system, "relative", 3)  # on the sphere
    J, exact = (formulations.problem(system, form).jacobian(x)[1] for form in (VIRTUAL, "relative_euler_parameters"))
    along, at = np.eye(x.size - len(system.counted_angles)), 0
    for limb in grown.limbs:
        at += limb.motion.coordinates()
        if limb.motion.rotation == layout.ANYHOW:
            along[at - 4 : at, at - 4 : at] -= np.outer(x[at - 4 : at], x[at - 4 : at])
    close(J[: rows.size] @ along, exact[: rows.size] @ along, EXACT)


def test_virtual_rotation_of_a_free_body_is_that_of_poses():
    system = examples.REGISTRY["stewart_distance"].build().system
    x = random_coordinates(system, VIRTUAL, 1)
    joints = formulations.problem(system, VIRTUAL).jacobian(x)
    poses = formulations.problem(system, "virtual_rotation").jacobian(poses_of(system, VIRTUAL, x))
    close(joints[0], poses[0], EXACT)
    close(joints[1], poses[1], EXACT)


def test_virtual_rotation_in_joint_coordinates_assembles_near_a_solution():
    m = examples.REGISTRY["rsur"].build()
    found = m.assemble(formulation=VIRTUAL)
    assert found.ok and found.formulation == VIRTUAL


@pytest.mark.nojit
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["random 0", "random 4", "three bodies 1", "stewart_ups"])
def test_the_jacobian_is_the_derivative_along_retract(name, form):
    system = SYSTEMS[name]()
    problem = formulations.problem(system, form)
    x = random_coordinates(system, form, 1)
    _, J = problem.jacobian(x)
    columns = [
        first_difference(lambda t, v=v: problem.residual(problem.retract(x, t * v))) for v in np.eye(problem.unknowns)
    ]
    close(J, np.column_stack(columns), DIFFERENCE)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_jacobian_by_differences_in_every_mechanism(name, form):
    system = SYSTEMS[name]()
    problem = formulations.problem(system, form)
    x = random_coordinates(system, form, 2)
    _, J = problem.jacobian(x)
    rng = np.random.default_rng(0)
    for _ in range(3):
        v = rng.normal(size=problem.unknowns) / max(1, problem.unknowns)
        expected = first_difference(lambda t, v=v: problem.residual(problem.retract(x, t * v)))
        close(J @ v, expected, DIFFERENCE)


@pytest.mark.slow
def test_these_mechanisms_have_every_joint_in_the_tree_and_every_constraint_cut():
    in_tree, cut = set(), set()
    mechanisms = [random_mechanism(seed, loops=loops) for seed in range(10) for loops in (2, 9)]
    for m in mechanisms + [example.build() for example in examples.REGISTRY.values()]:
        names = set(tree.spanning_tree(m.system).joints)
        in_tree |= {j.kind.name for j in m.joints.values() if j.name in names}
        cut |= {j.kind.name for j in m.joints.values() if j.name not in names}
    assert in_tree == set(JOINTS)
    assert cut >= {*CUT_ONLY, "revolute", "cylindrical", "spherical", "universal", "planar", "parallel"}


@pytest.mark.parametrize("form", FORMS)
def test_features_on_one_path_and_on_two_are_seen_and_common_ancestors_are_not(form):
    """A chain of hinges with a branch: a rod between two bodies depends only on the joints between them."""
    m = cd.Mechanism()
    rng = np.random.default_rng(1)
    bodies = [m.ground]
    parents = [0, 1, 2, 3, 4, 3, 6]  # of bodies 1…7: a chain to 5, and 6, 7 beside 4, 5
    for k, parent in enumerate(parents, start=1):
        bodies.append(m.body(f"{k}", position=rng.uniform(-1, 1, 3), orientation=random_quaternion(rng)))
        add(m, "revolute", f"hinge {k}", bodies[parent], bodies[k], rng)
    add(m, "distance", "up", bodies[3], bodies[5], rng)
    add(m, "distance", "across", bodies[5], bodies[7], rng)
    add(m, "distance", "down", bodies[0], bodies[2], rng)
    system = m.system
    x = random_coordinates(system, form, 0)
    problem = formulations.problem(system, form)
    _, J = problem.jacobian(x)
    number = [limb.body + 1 for limb in tree.spanning_tree(system).limbs]
    touched = [path.limbs for path in tree.spanning_tree(system).paths]
    assert [{number[k] for k in np.flatnonzero(row)} for row in J] == [{4, 5}, {4, 5, 6, 7}, {1, 2}]
    assert {frozenset(number[k] for k in limbs) for limbs in touched} == {
        frozenset(s) for s in ({4, 5}, {4, 5, 6, 7}, {1, 2})
    }
    # and by differences nothing else matters
    for k in range(problem.unknowns):
        v = np.eye(problem.unknowns)[k]
        moved = first_difference(lambda t, v=v: problem.residual(problem.retract(x, t * v)))
        close(J[:, k], moved, DIFFERENCE)


# --- the paper's equations, and its errata ----------------------------------------------------------------------------


def branched(seed):
    """A mechanism with ball joints and hinges, and the recursion at random coordinates off the unit sphere."""
    system = random_mechanism(seed, loops=0).system
    x = random_coordinates(system, "relative_euler_parameters", seed)
    return system, x, Recursion(system, x)


def along(system, x, value):
    """Derivative of value(recursion) with respect to every coordinate, by differences."""
    return np.column_stack(
        [
            first_difference(lambda t, v=v: value(Recursion(system, x + t * v)))
            for v in np.eye(x.size)[: Recursion(system, x).size]
        ]
    )


@pytest.mark.slow
@sampled("seed", range(3), 1)
def test_recursion_13_is_the_derivative_of_a_turned_vector(seed):
    system, x, poses = branched(seed)
    u = np.array([0.3, -0.7, 0.5])
    for body in range(len(system.names)):
        close(poses.J(body, u), along(system, x, lambda r, body=body: r.A[body] @ u), DIFFERENCE)


@pytest.mark.slow
@sampled("seed", range(3), 1)
def test_recursion_16_holds_with_the_place_on_the_body_before_and_not_as_printed(seed):
    """The second term is J_{i−1}(s′_{i−1,i}): s_{i−1,i} is fixed on body i−1.  Printed: J_i."""
    system, x, poses = branched(seed)
    wrong = 0.0
    for body in range(len(system.names)):
        expected = along(system, x, lambda r, body=body: r.r[body])
        close(poses.Jr(body), expected, DIFFERENCE)
        _, s, _, _ = poses.frames(body)
        printed = poses.Jr(body) - poses.J(poses.parent(body), s) + poses.J(body, s)
        wrong = max(wrong, np.abs(printed - expected).max())
    assert wrong > 0.1


def test_equation_17_takes_each_vectors_own_body():
    """f = v_i·v_j: with the J of another body, as the index is printed, it is no derivative."""
    system, x, poses = branched(1)
    i, j = 4, 9
    u, v = unit([1, 2, 3]), unit([-2, 1, 0.5])

    def f(r):
        return np.array([(r.A[i] @ u) @ (r.A[j] @ v)])

    expected = along(system, x, f)[0]
    row = (poses.A[j] @ v) @ poses.J(i, u) + (poses.A[i] @ u) @ poses.J(j, v)
    close(row, expected, DIFFERENCE)
    printed = (poses.A[j] @ v) @ poses.J(i, u) + (poses.A[i] @ u) @ poses.J(i, v)
    assert np.abs(printed - expected).max() > 0.1


@pytest.mark.parametrize("which", ["dot_1", "dot_2", "distance_squared"])
def test_equations_20_are_the_rows_of_the_evaluator(which):
    """With Jʳ for the J′ of (20b), and the point Q of body j where s_j^P is printed in (20b) and (20c)."""
    m = cd.Mechanism()
    rng = np.random.default_rng(8)
    bodies = [m.body(f"{k}", position=rng.uniform(-1, 1, 3), orientation=random_quaternion(rng)) for k in range(4)]
    for kind, a, b in (("spherical", -1, 0), ("revolute", 0, 1), ("spherical", -1, 2), ("universal", 2, 3)):
        add(m, kind, f"{a}{b}", m.ground if a < 0 else bodies[a], bodies[b], rng)
    i, j = 1, 3
    u, P, Q = (tuple(unit(v)) for v in ([1, 2, 3], [0.3, -1, 0.4], [-0.6, 0.2, 1]))
    v = tuple(unit([2, -1, 1]))
    vector, point = FeatureKind.VECTOR, FeatureKind.POINT
    features = {
        "dot_1": (Feature(vector, bodies[i], u), Feature(vector, bodies[j], v)),
        "dot_2": (Feature(vector, bodies[i], u), Feature(point, bodies[i], P), Feature(point, bodies[j], Q)),
        "distance_squared": (Feature(point, bodies[i], P), Feature(point, bodies[j], Q)),
    }[which]
    parameters = (0.0,) * len(REGISTRY[which].parameters)
    bundles = [*m.joints.values(), Bundle("it", [Relation(REGISTRY[which], features, parameters)])]
    system = System([body._record for body in bodies], bundles)
    form = "relative_euler_parameters"
    x = random_coordinates(system, form, 1)
    poses = Recursion(system, x)
    (path,) = [p for p in tree.spanning_tree(system).paths if p.record == system.starts[-2]]
    row = formulations.problem(system, form).jacobian(x)[1][len(tree.spanning_tree(system).paths) - 1]
    assert path is tree.spanning_tree(system).paths[-1]
    P, Q = (np.array(local) - system.reference_points[body] for local, body in ((P, i), (Q, j)))
    v_i, v_j = poses.A[i] @ u, poses.A[j] @ v
    d = poses.r[j] + poses.A[j] @ Q - poses.r[i] - poses.A[i] @ P
    between = poses.Jr(j) + poses.J(j, Q) - poses.Jr(i) - poses.J(i, P)
    as_printed = poses.Jr(j) + poses.J(j, P) - poses.Jr(i) - poses.J(i, P)
    without_r = poses.J(j, Q) - poses.J(i, P)
    turned = d @ poses.J(i, np.array(u))
    forms = {
        "dot_1": (v_j @ poses.J(i, np.array(u)) + v_i @ poses.J(j, np.array(v)), None, None),
        "dot_2": (turned + v_i @ between, turned + v_i @ as_printed, turned + v_i @ without_r),
        "distance_squared": (2 * d @ between, 2 * d @ as_printed, 2 * d @ without_r),
    }
    right, *wrong = forms[which]
    close(row, right, EXACT)
    for other in wrong:
        assert other is None or np.abs(other - right).max() > 0.05


# --- the tree ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_the_tree_leaves_fewest_equations(seed):
    """SciPy's minimum spanning tree of the negative weights, with a free joint of weight zero to every body."""
    m = random_mechanism(seed, loops=25)
    system = m.system
    grown = tree.spanning_tree(system)
    count = len(m.bodies)
    index = {name: k for k, name in enumerate(system.names)} | {"ground": count}
    best = {}
    for j in m.joints.values():
        if j.kind.name in JOINTS:
            key = tuple(sorted((index[j.a.body.name], index[j.b.body.name])))
            best[key] = max(best.get(key, 0), j.equations)
    for k in range(count):
        best.setdefault((k, count), 0)
    edges = np.array(list(best))
    weights = 10.0 - np.array(list(best.values()))  # positive: a zero is no edge to SciPy
    graph = coo_matrix((weights, edges.T), shape=(count + 1, count + 1))
    expected = 10.0 * count - minimum_spanning_tree(graph.tocsr()).sum()
    assert sum(m[name].equations for name in grown.joints) == expected
    assert {limb.body for limb in grown.limbs} == set(range(count))
    seen = {tree.GROUND}
    for limb in grown.limbs:
        assert limb.parent in seen
        seen.add(limb.body)


def test_the_order_of_writing_does_not_choose_the_tree():
    model = rsur()
    found = set()
    for order in permutations(("A", "B", "C", "D")):
        system = model.build(bonds=list(order)).mechanism.system
        found.add(frozenset(tree.spanning_tree(system).joints))
    for order in permutations(("crank", "coupler", "rocker")):
        system = model.build(bodies=list(order)).mechanism.system
        found.add(frozenset(tree.spanning_tree(system).joints))
    assert found == {frozenset("ACD")}  # the ball joint, which has fewest equations, is cut


def test_a_long_chain_is_cut_in_the_middle():
    m = cd.Mechanism()
    links = [m.body(f"link {k:03d}") for k in range(9)]
    ends = [m.ground.point(), *(p for link in links for p in (link.point(), link.point((1, 0, 0))))]
    ends.append(m.ground.point((5, 0, 0)))
    for k in range(10):
        m.spherical(f"joint {k}", ends[2 * k], ends[2 * k + 1])
    grown = tree.spanning_tree(m.system)
    assert set(m.joints) - set(grown.joints) == {"joint 5"}
    assert len(grown.paths[0].limbs) == 9


def test_a_bundle_that_declares_no_motion_stays_a_constraint():
    m = cd.Mechanism()
    a, b = m.body("a"), m.body("b")
    hinge = m.revolute("hinge", a.frame(), b.frame())
    assert tree.spanning_tree(m.system).joints == ("hinge",)
    grown = tree.spanning_tree(System([a._record, b._record], [Bundle("own", hinge.relations)]))
    assert grown.joints == ()
    assert len(grown.paths) == len(hinge.relations)


@pytest.mark.parametrize("name", list(REGISTRY))
def test_no_built_in_primitive_knows_of_the_world(name):
    """What the tree relies on for bodies with common ancestors; found out as it is for the user's own primitives."""
    primitive = REGISTRY[name]
    graph, _, rows = primitive.trace()
    assert primitive.indifferent
    assert is_indifferent(graph, primitive.features, rows)


# --- poses and coordinates --------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["random 1", "random 7", "stewart_ups"])
def test_poses_of_coordinates_are_those_of_equations_9_and_10(name, form):
    system = SYSTEMS[name]()
    x = random_coordinates(system, form, 5)
    q = poses_of(system, form, x)[: 7 * len(system.names)].reshape(-1, 7)
    poses = Recursion(system, x)
    for body, row in enumerate(q):
        close(row[:3], poses.r[body], 1e-13)
        close(euler.E(row[3:]) @ euler.G(row[3:]).T, poses.A[body], 1e-13)


@pytest.mark.nojit
@pytest.mark.parametrize("name", ["random 1", "random 3", "bricard", "slider_crank"])
def test_coordinates_of_poses_of_coordinates_are_these_again(name):
    system = SYSTEMS[name]()
    x = random_coordinates(system, "relative", 6)
    q = poses_of(system, "relative", x)
    again = formulations.enter(system, "relative", q)
    close(poses_of(system, "relative", again), q, 1e-12)
    close(np.abs(again), np.abs(x), 1e-12)  # a quaternion may come back with its other sign


def test_tree_joints_are_met_by_every_pose_of_coordinates():
    for seed in range(4):
        system = random_mechanism(seed).system
        residual = formulations.problem(system, "manifold").residual(
            poses_of(system, "relative", random_coordinates(system, "relative", seed))
        )
        left = np.ones(residual.size, dtype=bool)
        left[cut_rows(system)] = False
        assert np.abs(residual[left]).max() <= 1e-14
        assert np.abs(residual[~left]).max() > 0.1


def test_a_part_is_put_as_near_to_where_it_was_as_its_joint_lets_it_be():
    """A slide drawn turned and beside its axis: its displacement is that of its middle, its turn that of the guide."""
    m = cd.Mechanism()
    slide = m.body("slide", position=(0.2, -0.1, 1.7), orientation=euler.exp([0.1, 0.2, 0.3]))
    m.prismatic("guide", m.ground.frame(z=(0, 0, 1)), slide.frame())
    crank = m.body("crank", position=(1, 1, 0.3), orientation=euler.exp([0.4, -0.3, 0.9]))
    m.revolute("hinge", m.ground.frame((1, 1, 0)), crank.frame())
    result = m.assemble(formulation="relative")
    assert result.ok and result.iterations == 0
    np.testing.assert_allclose(result.state["slide"].position, (0, 0, 1.7), atol=1e-15)
    np.testing.assert_allclose(result.state["slide"].quaternion, (1, 0, 0, 0), atol=1e-15)
    np.testing.assert_allclose(result.state["crank"].position, (1, 1, 0), atol=1e-15)
    p = euler.exp([0.4, -0.3, 0.9])
    about_z = 2 * np.arctan2(p[3], p[0])  # the twist of swing and twist
    np.testing.assert_allclose(m["hinge"].coordinate(result.state), about_z, atol=1e-15)


@jit
def nearest_turn(angle, wanted):
    return _tree_poses.nearest_turn(angle, wanted)


@pytest.mark.nojit
def test_whole_turns_are_added_to_an_angle_as_long_as_they_can_be_counted():
    for angle, wanted in ((0.5, 0.4), (-3.0, 3.0), (1.0, -100.0), (2.0, 1e6)):
        found = nearest_turn(angle, wanted)
        assert abs(found - wanted) <= np.pi + 1e-9
        assert (found - angle) / (2 * np.pi) == pytest.approx(round((found - angle) / (2 * np.pi)), abs=1e-9)
    for angle, wanted in ((np.nan, 0.0), (0.0, np.nan), (0.0, np.inf), (-np.inf, 0.0), (0.0, 1e17), (0.0, -1e300)):
        assert np.isnan(nearest_turn(angle, wanted))


# --- assembly ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_pure_tree_has_no_equations_and_assembles_at_once(form):
    m = random_mechanism(5, loops=0)
    problem = formulations.problem(m.system, form)
    balls = sum(limb.motion.rotation == layout.ANYHOW for limb in tree.spanning_tree(m.system).limbs)
    assert problem.rows == (balls if relative.FORMULATIONS[form] else 0)  # normalisations, which the start meets
    for method in ("auto", *methods.REGISTRY):
        result = m.assemble(formulation=form, method=method)
        assert result.ok and result.iterations == 0 and result.restarts == 0
    assert not m.assemble(formulation="manifold", method="levenberg_marquardt", max_iterations=1).ok


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", list(examples.REGISTRY))
def test_the_gallery_assembles_and_shows_what_it_says(name, form):
    example = examples.REGISTRY[name]
    m = example.build()
    for start in (None, random_start(m, 1), random_start(m, 2)):
        result = m.assemble(start, formulation=form)
        assert result.ok, result.text()
        assert result.residual <= 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_uniform_starts_assemble_and_another_judge_agrees(name, form):
    built = BENCHMARKS[name]().build()
    for seed in range(5):
        result = built.mechanism.assemble(built.uniform_start(seed), formulation=form)
        assert result.ok, result.text()
        assert built.judge(result.state) <= 1e-11


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", list(methods.REGISTRY))
def test_every_method_works(method, form):
    for model in (rsur(), planar_4r()):
        built = model.build()
        tolerance = 1e-8 if method == "gradient" else 1e-12
        result = built.mechanism.assemble(
            built.near_start(3), formulation=form, method=method, tolerance=tolerance, max_iterations=50_000
        )
        assert result.ok, result.text()
        assert built.judge(result.state) <= 10 * tolerance


@pytest.mark.parametrize("form", FORMS)
def test_the_pose_is_that_of_the_manifold_where_there_is_only_one(form):
    locked = rsur()
    locked.bond("distance", "lock", "ground", "crank", (1, 1, 1), point_b=locked.bonds[1].point_a, length=0.0)
    bond = locked.bonds[-1]
    length = float(np.linalg.norm(bond.point_a - bond.point_b))
    bond.options["length"] = length
    for model in (BENCHMARKS["Stewart"](), locked):
        built = model.build()
        for seed in range(3):
            start = built.near_start(seed, 0.05)
            one = built.mechanism.assemble(start).state
            other = built.mechanism.assemble(start, formulation=form).state
            np.testing.assert_allclose(other.positions, one.positions, atol=1e-11 * model.size)
            same = np.abs(np.einsum("ij,ij->i", one.quaternions, other.quaternions))
            assert np.abs(same - 1).max() <= 1e-14  # 1 − cos of half the angle between them


@pytest.mark.parametrize("form", FORMS)
def test_what_is_met_at_the_start_keeps_its_poses_to_the_last_bit(form):
    built = BENCHMARKS["Stewart UPS"]().build()
    first = built.mechanism.assemble(built.uniform_start(1)).state
    again = built.mechanism.assemble(first, formulation=form)
    assert again.ok and again.iterations == 0
    assert np.array_equal(again.state.coordinates, first.coordinates)


@pytest.mark.parametrize("form", FORMS)
def test_every_joint_is_judged_those_of_the_tree_too(form):
    m = random_mechanism(8, loops=0)
    result = m.assemble(formulation=form)
    assert {v.name for v in result.residuals} == set(m.joints)
    assert result.ok and all(v.residual <= 1e-12 for v in result.residuals)


def test_a_contradiction_is_called_one():
    m = cd.Mechanism()
    a, b = m.body("a", position=(0.1, 0, 0)), m.body("b", position=(1, 0.2, 0))
    m.revolute("A", m.ground.frame(), a.frame())
    m.spherical("B", a.point((1, 0, 0)), b.point())
    m.distance("too far", m.ground.point(), b.point((1, 0, 0)), 3.0)
    result = m.assemble(formulation="relative", restarts=20)
    assert result.status is cd.Status.CONFLICT
    assert result.worst[0].name == "too far"


def test_loops_of_rigid_parts_have_rows_and_no_unknowns():
    m = cd.Mechanism()
    a, b = m.body("a"), m.body("b")
    m.fixed("A", m.ground.frame(), a.frame())
    m.fixed("B", a.frame((1, 0, 0)), b.frame())
    m.fixed("C", m.ground.frame((1, 0, 0)), b.frame())
    assert formulations.problem(m.system, "relative").unknowns == 0
    assert m.assemble({"a": ((1, 1, 1), (1, 0, 0, 0))}, formulation="relative").ok
    m.remove("C")
    m.fixed("C", m.ground.frame((1, 0, 0.5)), b.frame())
    assert not m.assemble(formulation="relative", restarts=3).ok


def test_a_body_beside_the_joints_of_others_hangs_free_on_the_ground():
    m = cd.Mechanism()
    a, b = m.body("a", position=(3, 0, 0)), m.body("b", position=(4, 1, 0))
    m.revolute("hinge", a.frame(), b.frame((0, 0, 1)))
    m.distance("rod", a.point((1, 0, 0)), b.point((0, 1, 0)), 2.0)
    result = m.assemble(formulation="relative")
    assert result.ok
    limbs = tree.spanning_tree(m.system).limbs
    assert [(limb.joint, limb.parent) for limb in limbs] == [("", -1), ("hinge", 0)]
    assert result.state["a"].position.tolist() == [3, 0, 0]  # the loop does not touch the free joint
    _, J = formulations.problem(m.system, "relative").jacobian(random_coordinates(m.system, "relative", 1))
    assert J.shape == (1, 7) and not J[0, :6].any() and J[0, 6] != 0.0


def test_a_session_closes_in_joint_coordinates():
    built = BENCHMARKS["RSUR"]().build()
    session = built.mechanism.session(built.near_start(2), closed=False, formulation="relative")
    while (status := session.step()) == cd.SessionStatus.MOVING:
        pass
    assert status == cd.SessionStatus.IDLE
    assert built.judge(session.state) <= 1e-11


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["auto", "newton"])
def test_many_starts_are_answered_as_each_of_them_alone(form, method):
    carrier = on_carrier()
    pair = cd.Mechanism()
    for k in range(2):  # two pieces, one of them cannot be assembled from everywhere by Newton
        arm, rod = pair.body(f"arm {k}", position=(5 * k, 0, 0)), pair.body(f"rod {k}", position=(5 * k + 1, 0.1, 0))
        pair.revolute(f"A{k}", pair.ground.frame((5 * k, 0, 0)), arm.frame())
        pair.spherical(f"B{k}", arm.point((1, 0, 0)), rod.point())
        pair.distance(f"d{k}", rod.point((1, 0, 0)), pair.ground.point((5 * k + 2, 1, 0)), 0.5)
    for m in (BENCHMARKS["RSUR"]().build().mechanism, pair, carrier):
        starts = [m.state] + [m.state.moved(random_start(m, seed)) for seed in range(4)]
        starts.append(m.assemble().state)
        many = m.assemble_many(starts, formulation=form, method=method, workers=2)
        for k, start in enumerate(starts):
            alone = m.assemble(start, formulation=form, method=method)
            assert (many.ok[k], many.iterations[k], many.restarts[k]) == (alone.ok, alone.iterations, alone.restarts)
            assert many.status[k] == alone.status
            assert np.array_equal(many.coordinates[k], alone.state.coordinates)
            assert many.residual[k] == alone.residual


# --- couplings, drivers, limits, constraints of the user's own --------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_driven_mechanism_has_the_pose_of_the_manifold(form):
    built = planar_4r().build()
    m = built.mechanism
    m.drive("motor", m["A"], lambda t: 1.0 + 0.4 * t)
    for t in (0.0, 0.5, 1.0):
        one, other = (m.assemble(time=t, formulation=f) for f in ("manifold", form))
        assert one.ok and other.ok and other.state.time == t
        np.testing.assert_allclose(other.state.positions, one.state.positions, atol=1e-11)
        assert other.state.angles.keys() == one.state.angles.keys()
        for key, angle in one.state.angles.items():
            assert abs(other.state.angles[key] - angle) <= 1e-11


def on_carrier():
    """A carrier on the ground, two gears on it, a rack on the ground, a nut on a screw that turns with a gear."""
    m = cd.Mechanism()
    rng = np.random.default_rng(7)
    names = ("carrier", "sun", "planet", "bar", "nut")
    carrier, sun, planet, bar, nut = (m.body(n, position=0.3 * rng.normal(size=3)) for n in names)
    arm = m.revolute("arm", m.ground.frame(), carrier.frame())
    first = m.revolute("first", carrier.frame(x=(1, 0, 0)), sun.frame(x=(1, 0, 0)))
    second = m.revolute("second", carrier.frame((1, 0, 0)), planet.frame())
    slide = m.prismatic("slide", m.ground.frame((0, 2, 0), z=(1, 0, 0)), bar.frame(z=(1, 0, 0)))
    thread = m.screw("thread", planet.frame((0.2, 0, 0)), nut.frame(), pitch=0.1, offset=0.05)
    m.gear("mesh", first, second, ratio=-2.0, phase=0.3)
    m.rack("pinion", arm, slide, radius=0.4)
    m.couple("cam", slide, cd.coordinate(m.ground.point(), bar.point(), "distance"), lambda s: cd.sqrt(s * s + 4.0))
    m.drive("motor", first, lambda t: 5.0 * t)
    m.drive("hand", arm, lambda t: t)
    m.drive("spin", thread, lambda t: 20.0 * t, of="angle")
    return m


@pytest.mark.parametrize("form", FORMS)
def test_gears_on_a_carrier_racks_and_screws_keep_their_whole_turns(form):
    m = on_carrier()
    system = m.system
    assert "thread" in tree.spanning_tree(system).joints
    paths = {path.record: path for path in tree.spanning_tree(system).paths}
    (mesh,) = [
        paths[record] for record, row in zip(system.starts.tolist(), system.rows, strict=False) if row[0] == "mesh"
    ]
    assert {tree.spanning_tree(system).limbs[k].joint for k in mesh.limbs} == {"first", "second"}  # not the arm
    state = m.assemble(formulation=form, time=0.0).state
    for t in np.linspace(0.0, 1.0, 9):  # whole turns are those of the state before
        result = m.assemble(state, formulation=form, time=float(t))
        assert result.ok and result.restarts == 0, result.text()
        state = result.state
    assert 3 in state.turns.values()
    assert abs(m["second"].coordinate(state) - (-10.0 + 0.3)) <= 1e-9
    assert abs(m["slide"].coordinate(state) - 0.4) <= 1e-9
    assert abs(m["thread"].coordinate(state, "displacement") - (0.1 * 20.0 / (2 * np.pi) + 0.05)) <= 1e-9


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_screw_is_a_limb_from_either_side(form, reverse):
    """Ten turns at once, and the nut has gone ten pitches: with the nut hung on the thread, and the other way round."""
    m = cd.Mechanism()
    thread, nut = m.body("thread"), m.body("nut", position=(0, 0, 0.03))
    held = nut if reverse else thread
    m.fixed("held", m.ground.frame(), held.frame())
    screw = m.screw("screw", thread.frame(), nut.frame(), pitch=0.01)
    m.drive("hand", screw, lambda t: 20 * cd.pi * t, of="angle")
    limbs = tree.spanning_tree(m.system).limbs
    assert [limb.joint for limb in limbs] == ["held", "screw"] and limbs[1].counted in (1, -1)
    assert (limbs[1].counted < 0) == reverse
    result = m.assemble(formulation=form, time=1.0, max_iterations=300)
    assert result.ok, result.text()
    between = result.state["nut"].position - result.state["thread"].position
    np.testing.assert_allclose(between, (0, 0, 0.1), atol=1e-12)
    assert list(result.state.turns.values()) == [10]


def test_limits_are_kept():
    built = planar_4r().build()
    m = built.mechanism
    m.limit("stop", m["A"], lower=1.3, upper=2.0)
    result = m.assemble(formulation="relative")
    assert result.ok and 1.3 - 1e-11 <= m["A"].coordinate(result.state) <= 2.0


@cd.primitive(i="point", j="point", up="vector of i")
def above(i, j, up, *, height=0.2):
    """What i sees: the same in all axes."""
    return cd.dot(up, j - i) - height


@cd.primitive(i="point", j="point")
def level(i, j):
    """The world's own z: known from the ground only."""
    return j.z - i.z


@cd.primitive(i="point", j="point", k="point")
def halfway(i, j, k):
    """A vector of three bodies, turned along with them."""
    return j - 0.5 * (i + k)


@pytest.mark.parametrize("form", FORMS)
def test_constraints_of_ones_own_that_know_of_the_world_go_to_the_ground(form):
    m = cd.Mechanism()
    rng = np.random.default_rng(2)
    a, b, c, d = (m.body(n, position=rng.normal(size=3), orientation=random_quaternion(rng)) for n in "abcd")
    for name, parent, child in (("A", m.ground, a), ("B", a, b), ("C", a, c), ("D", b, d)):
        add(m, "revolute" if name != "D" else "spherical", name, parent, child, rng)
    m.constrain("above", above, i=b.point((1, 0, 0)), j=c.point((0, 1, 0)), up=b.vector(0, 0, 1))
    m.constrain("level", level, i=b.point(), j=c.point((0.2, 0, 0)))
    m.constrain("halfway", halfway, i=b.point((0, 1, 0)), j=c.point((0, 0, 1)), k=d.point((0, 0, 0.3)))
    system = m.system
    grown = tree.spanning_tree(system)
    names = {row.constraint: record for record, row in zip(system.starts.tolist(), system.rows, strict=False)}
    seen = {path.record: {grown.limbs[k].joint for k in path.limbs} for path in grown.paths}
    assert seen[names["above"]] == {"B", "C"}
    assert seen[names["level"]] == {"A", "B", "C"}
    assert seen[names["halfway"]] == {"B", "C", "D"}
    problem = formulations.problem(system, form)
    x = random_coordinates(system, form, 4)
    _, J = problem.jacobian(x)
    columns = [
        first_difference(lambda t, v=v: problem.residual(problem.retract(x, t * v))) for v in np.eye(problem.unknowns)
    ]
    close(J, np.column_stack(columns), DIFFERENCE)


@cd.primitive(i="point", j="point")
def longer_above(i, j):
    """Knows of the world's z only where i stands between 5 and 8 m."""
    return cd.norm(j - i) - 1.0 - cd.clip(i.z, 5.0, 8.0)


@cd.primitive(i="point", j="point")
def longer_upwards(i, j):
    """Knows of the world's axes only where j is between 5 and 8 m above i."""
    return cd.norm(j - i) - 1.0 - cd.clip((j - i).z, 5.0, 8.0)


@pytest.mark.parametrize("form", [*FORMS, "manifold"])
@pytest.mark.parametrize("own", [longer_above, longer_upwards], ids=lambda own: own.name)
def test_constraints_that_know_of_the_world_in_one_place_only(own, form):
    m = cd.Mechanism()
    a, b, c = m.body("a", position=(0, 0, 6)), m.body("b", position=(0, 0, 6)), m.body("c", position=(3, 0, 6))
    m.fixed("mount", m.ground.frame((0, 0, 6.5), z=(0, 0.6, 0.8)), a.frame())
    m.prismatic("B", a.frame(z=(1, 0, 0)), b.frame(z=(1, 0, 0)))
    m.prismatic("C", a.frame((0, 0, 0.5), z=(0, 0.6, 0.8)), c.frame(z=(0, 0.6, 0.8)))
    m.constrain("own", own, i=b.point(), j=c.point())
    result = m.assemble(formulation=form)
    i, j = (np.array(result.state[name].position) for name in "bc")
    known = i[2] if own is longer_above else (j - i)[2]
    assert result.ok, result.text()
    assert np.linalg.norm(j - i) == pytest.approx(1.0 + min(max(known, 5.0), 8.0), rel=1e-11)


# --- long chains ------------------------------------------------------------------------------------------------------


def chain(count, kind="spherical"):
    """Unit links from the origin to x = 0.6·count, drawn scattered."""
    m = cd.Mechanism()
    rng = np.random.default_rng(count)
    before = m.ground.frame()
    for k in range(count):
        link = m.body(f"link {k:06d}", position=rng.uniform(-1, 1, 3), orientation=random_quaternion(rng))
        z = (0, 1, 0) if k % 2 else (0, 0, 1)
        if kind == "revolute":
            before = before.body.frame(before.origin, z=z)
        getattr(m, kind)(f"joint {k:06d}", before, link.frame(z=z))
        before = link.frame((1, 0, 0))
    m.spherical("last", before, m.ground.point((0.6 * count, 0, 0)))
    return m


@pytest.mark.parametrize("kind", ["spherical", "revolute"])
def test_a_closed_chain_of_1000_links_closes_from_anywhere(kind):
    m = chain(1000, kind)
    problem = formulations.problem(m.system, "relative")
    assert problem.rows == 3  # of the joint that is cut
    result = m.assemble(formulation="relative", restarts=0)
    assert result.ok and result.iterations <= 30, result.text()


def test_tables_grow_with_the_chain_and_not_with_its_square():
    sizes = []
    for count in (100, 2000):
        p = formulations.problem(chain(count).system, "relative")
        tables = p.ints.size + p.floats.size + p.structure.size + p.algebra.pattern.size + p.algebra.work
        sizes.append((tables + Structure(p.structure).work + Structure(p.structure).jacobian_size) / count)
    assert sizes[1] <= 1.05 * sizes[0]


@pytest.mark.slow
def test_time_of_evaluation_is_linear_in_the_chain():
    seconds = []
    for count in (500, 4000):
        system = chain(count).system
        problem = formulations.problem(system, "relative")
        x = formulations.enter(system, "relative", formulations.to_reference(system, system.authored))
        problem.entries(x)
        taken = []
        for _ in range(15):
            began = time.perf_counter()
            problem.entries(x)
            taken.append(time.perf_counter() - began)
        seconds.append(min(taken) / count)
    assert seconds[1] <= 2.0 * seconds[0]  # a square would make it eight times


def test_euler_parameters_in_long_chains_have_a_sparse_arrow():
    """1,000 normalisations and one closing joint: nothing is filled in."""
    m = chain(1000)
    problem = formulations.problem(m.system, "relative_euler_parameters")
    assert problem.rows == 1003 and problem.unknowns == 4000
    assert problem.algebra.work + problem.algebra.pattern.size <= 150 * 1000
    built = chain(40)
    assert built.assemble(formulation="relative_euler_parameters").ok


def test_loops_along_a_chain_stay_local():
    m = chain(300)
    links = list(m.bodies.values())
    for k in range(0, 290, 10):
        m.distance(f"tie {k}", links[k].point((0.5, 0, 0)), links[k + 3].point((0.5, 0, 0)), 1.8)
    paths = tree.spanning_tree(m.system).paths
    assert sorted(len(path.limbs) for path in paths)[:-2] == [3] * (len(paths) - 2)  # one spans the cut
    result = m.assemble(formulation="relative")
    assert result.ok and result.restarts == 0, result.text()


# --- what is compiled -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_kernels_of_joint_coordinates_load_only_when_asked_for():
    code = """
import sys
import cardan as cd
m = cd.Mechanism()
bar = m.body("bar", position=(0.1, 0.2, 0.3))
m.revolute("hinge", m.ground.frame(), bar.frame())
m.distance("rod", m.ground.point((1, 0, 0)), bar.point((0, 1, 0)), 1.2)
assert m.assemble().ok
mine = {"cardan.coordinates._relative", "cardan.coordinates._tree_poses", "cardan.solvers._dual_normal"}
assert not mine & set(sys.modules), mine & set(sys.modules)
assert m.assemble(formulation="relative").ok
assert "cardan.coordinates._relative" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
