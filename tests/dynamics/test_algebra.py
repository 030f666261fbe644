"""Linear algebra of the equations of motion: dense and block-sparse, against NumPy, in every order of elimination."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan import examples
from cardan.coordinates import formulations
from cardan.dynamics import algebra, tables
from cardan.dynamics._equations import ACCURATE, EPSILON, PROXIMAL, REGULAR
from cardan.solvers import _blocks
from cardan.solvers import tables as solvers_abi
from cardan.solvers.linear import band_order, minimum_degree
from layers import sampled

REDUNDANT = 1e-9  # singular values of redundant rows, relative to the largest


def chain(count, closed):
    m = cd.Mechanism("chain")
    before = m.ground.point((0, 0, 0))
    for k in range(count):
        b = m.body(f"b{k}", position=(0.6 * k, 0.1 * k % 0.7, 0.8 * (k % 2)))
        (m.spherical if k % 3 else m.universal)(f"j{k}", *ends(m, k, before, b))
        before = b.point((0.6, 0.1, 0.8))
    if closed:
        m.spherical("end", before, m.ground.point((0.6 * count, 0.0, 0.0)))
    return m


def ends(m, k, before, b):
    if k % 3:
        return before, b.point((0, 0, 0))
    return before.body.frame(before.position, z=(0, 0, 1)), b.frame((0, 0, 0), z=(0, 1, 0.1))


def tree(count, floating):
    """A random tree of hinges, ball joints and fixed joints, on the ground or not."""
    rng = np.random.default_rng(count)
    m = cd.Mechanism("tree")
    bodies = [m.body("root")] if floating else [m.ground]
    for k in range(count):
        on = bodies[rng.integers(len(bodies))]
        b = m.body(f"b{k}", position=rng.normal(size=3))
        kind = (m.revolute, m.spherical, m.fixed, m.prismatic)[k % 4]
        point = rng.normal(size=3)
        if kind == m.spherical:
            kind(f"j{k}", on.point(point), b.point(-point))
        else:
            kind(f"j{k}", on.frame(point, z=(0, 0, 1), x=(1, 0, 0)), b.frame(-point, z=(0, 0, 1), x=(1, 0, 0)))
        bodies.append(b)
    return m


def hub(count):
    """Arms on a body that nothing holds, each a hinge with a driver."""
    m = cd.Mechanism("hub")
    h = m.body("hub")
    for k in range(count):
        b = m.body(f"arm {k}", position=(np.cos(k), np.sin(k), 0.0))
        j = m.revolute(f"j{k}", h.frame((np.cos(k), np.sin(k), 0), z=(0, 0, 1)), b.frame((0, 0, 0), z=(0, 0, 1)))
        m.drive(f"d{k}", j, 0.1 * k)
    return m


def pieces():
    """A grounded chain, a free body, a floating pair, two wheels whose gear counts from the ground, and a loop."""
    m = chain(9, closed=True)
    m.body("free")
    a, b = m.body("a"), m.body("b", position=(0, 0, 1))
    m.revolute("ab", a.frame((0, 0, 1), z=(0, 1, 0)), b.frame((0, 0, 0), z=(0, 1, 0)))
    wheels = []
    for k in range(2):
        w = m.body(f"w{k}", position=(k, 0, 0))
        wheels.append(m.revolute(f"axle {k}", m.ground.frame((k, 0, 0), z=(0, 0, 1)), w.frame(z=(0, 0, 1))))
    m.gear("gear", *wheels, ratio=-2.0)
    corners = [m.body(f"c{k}", position=(k % 2, k // 2, 0.3 * k)) for k in range(4)]
    for k in range(4):
        near, far = corners[k], corners[(k + 1) % 4]
        m.spherical(f"s{k}", near.point((0.3, 0.2, k)), far.point((-0.4, 0.1, 0.2)))
    return m


def carriage():
    """Four-bar linkages on a body that moves: loops whose nearest body to the ground is that one."""
    m = cd.Mechanism("carriage")
    base = m.body("base")
    m.prismatic("rail", m.ground.frame(z=(1, 0, 0), x=(0, 1, 0)), base.frame(z=(1, 0, 0), x=(0, 1, 0)))
    for k in range(8):
        names = [f"{part} {k}" for part in ("crank", "coupler", "rocker")]
        at = [(0, 0, k), (0.0, 1.0, k), (2.0, 1.5, k), (2.5, 0.0, k)]
        bodies = [base, *[m.body(name, position=p) for name, p in zip(names, at, strict=False)], base]
        for i, p in enumerate(at):
            a, b = bodies[i], bodies[i + 1]
            m.spherical(f"joint {i} {k}", a.point(np.subtract(p, a.position)), b.point(np.subtract(p, b.position)))
    return m


def doubled():
    """Rows that are redundant: two hinges on one axis, and a chain with a fixed joint on top of a hinge."""
    m = chain(12, closed=True)
    a, b = m.body("door"), m.body("leaf", position=(1, 0, 0))
    for k in range(2):
        m.revolute(f"hinge {k}", m.ground.frame((0, 0, k), z=(0, 0, 1)), a.frame((0, 0, k), z=(0, 0, 1)))
    m.revolute("inner", a.frame((1, 0, 0), z=(0, 1, 0)), b.frame((0, 0, 0), z=(0, 1, 0)))
    m.fixed("weld", a.frame((1, 0, 0), z=(0, 1, 0), x=(1, 0, 0)), b.frame((0, 0, 0), z=(0, 1, 0), x=(1, 0, 0)))
    return m


def free(count):
    m = cd.Mechanism("free")
    for k in range(count):
        m.body(f"b{k}")
    return m


GALLERY = {name: example.build for name, example in examples.REGISTRY.items()}
OTHERS = {
    "open chain": lambda: chain(30, closed=False),
    "closed chain": lambda: chain(31, closed=True),
    "tree": lambda: tree(40, floating=False),
    "floating tree": lambda: tree(41, floating=True),
    "hub": lambda: hub(25),
    "pieces": pieces,
    "carriage": carriage,
    "doubled": doubled,
    "nothing": lambda: free(3),
}
ALL = {**GALLERY, **OTHERS}


class Case:
    """Ĵ of a mechanism with random masses, its rows of length one, as kernels and as NumPy have it."""

    def __init__(self, m, seed):
        self.rng = np.random.default_rng(seed)
        system = m.system
        state = m.assemble(max_iterations=200).state
        problem = formulations.motion_problem(system, "manifold")
        self.bodies = len(system.names)
        self.strips = algebra.read_strips(system, problem.structure)
        rows, unknowns, entries, _, size = problem.sizes
        q = formulations.to_reference(system, state.coordinates)
        jacobian = np.empty(entries)
        arguments = (problem.ints, system.floats_at(0.0), q, np.zeros(unknowns), np.empty(2 * rows), jacobian)
        _blocks.call_at(problem.evaluate, solvers_abi.MOTION, *arguments, np.empty(size))
        place = np.zeros(rows * unknowns)
        _blocks.spread(problem.structure, np.arange(1.0, entries + 1), place)
        found = np.flatnonzero(place)
        entry = place[found].astype(int) - 1
        row, column = np.divmod(found, max(unknowns, 1))
        scale = 10.0 ** self.rng.uniform(-1, 1, unknowns)
        length = np.sqrt(np.bincount(row, (jacobian[entry] * scale[column]) ** 2, minlength=rows))
        jacobian[entry] *= scale[column] / np.where(length > 0, length, 1.0)[row]
        self.jacobian, self.dense = jacobian, np.zeros((rows, unknowns))
        self.dense[row, column] = jacobian[entry]

    def solve(self, linear, b, c, epsilon=0.0, iterations=0):
        """(u, λ of each row, pivot)."""
        control = tables.Control.new(epsilon=epsilon, proximal=iterations)
        x = np.concatenate([b, c[linear.equations]])
        scratch, matrix = np.full(2 * x.size, np.nan), np.full(linear.algebra.work, np.nan)
        for op in (tables.FACTOR, tables.SOLVE):
            floats = control.as_floats
            arguments = (linear.algebra.pattern, floats, x, scratch, floats, self.jacobian, matrix)
            assert _blocks.call_at(linear.algebra.address, op, *arguments) == 0
        multipliers = np.zeros(len(c))
        multipliers[linear.equations] = x[b.size :]
        return x[: b.size], multipliers, control.pivot

    def reference(self, b, c, rows):
        """u and the λ of least norm by the singular values of Ĵ; the smallest that is not zero."""
        J = self.dense[rows]
        left, sigma, _ = np.linalg.svd(J, full_matrices=False)
        kept = sigma > REDUNDANT * sigma.max(initial=0.0)
        multipliers = np.zeros(len(c))
        values = (left.T @ (J @ b - c[rows]))[kept] / sigma[kept] ** 2
        multipliers[rows] = left[:, kept] @ values
        return b - J.T @ multipliers[rows], multipliers, sigma[kept].min(initial=1.0), kept.sum() < rows.size

    def data(self):
        """A random b, and a c that the rows can meet."""
        b, u = self.rng.normal(size=(2, self.dense.shape[1]))
        return b, self.dense @ u


def orders(case):
    """All orders that the library knows, and all bodies first, with the joints at random."""
    _, _, graph = algebra.grouped(case.strips, case.bodies)
    linked = graph.incidence @ graph.incidence.T
    yield algebra.tree_order(graph)
    yield algebra.dual_order(graph, band_order(linked.indptr, linked.indices))
    yield algebra.dual_order(graph, minimum_degree(linked.indptr, linked.indices))
    joints = graph.count + case.rng.permutation(graph.heights.size)
    yield np.concatenate([case.rng.permutation(graph.count), joints])


def variants(case):
    yield algebra.dense(case.strips, case.bodies)
    yield algebra.sparse(case.strips, case.bodies)
    if case.strips.rows.size:
        for order in orders(case):
            yield algebra.sparse(case.strips, case.bodies, order)


@sampled("name", ALL, 10)
def test_every_algebra_and_order_gives_the_solution_of_least_norm(name):
    case = Case(ALL[name](), seed=1)
    b, c = case.data()
    rows = np.sort(algebra.dense(case.strips, case.bodies).equations)
    u, multipliers, least, redundant = case.reference(b, c, rows)
    largest = np.abs(multipliers).max(initial=1.0)
    for linear in variants(case):
        assert np.array_equal(np.sort(linear.equations), rows)
        _, _, pivot = case.solve(linear, b, c)
        assert (pivot <= REGULAR) == redundant  # no order has a singular pivot of its own
        # as integrators solve
        options = (EPSILON, PROXIMAL) if redundant else (0.0, 1.0 if pivot < ACCURATE else 0.0)
        found, *_ = case.solve(linear, b, c, *options)
        np.testing.assert_allclose(found, u, rtol=0, atol=1e-10 * np.abs(b).max(initial=1.0))
        # (ε/(ε + σ²))⁵ is left of the error; rounding of c along redundant rows is divided by ε
        epsilon = 1e-3 * least**2 if redundant else 0.0
        _, found, _ = case.solve(linear, b, c, epsilon, 4)
        noise = 1e-14 / epsilon if redundant else 0.0
        np.testing.assert_allclose(found, multipliers, rtol=0, atol=(1e-10 + noise) * largest)


@pytest.mark.parametrize("name", ["rsur", "stewart_ups", "bricard", "planetary_gear", *OTHERS])
def test_the_same_problem_gives_the_same_bits(name):
    case = Case(ALL[name](), seed=2)
    b, c = case.data()
    for make in (algebra.dense, algebra.sparse):
        first, second = (case.solve(make(case.strips, case.bodies), b, c, 1e-10, 2) for _ in range(2))
        assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.nojit
@pytest.mark.parametrize("name", ["rsur", "stewart_ups", "pieces", "carriage", "hub"])
def test_rows_of_zeros_are_left_out(name):
    """Stops that are not reached are such rows."""
    case = Case(ALL[name](), seed=3)
    b, c = case.data()
    off = np.zeros(case.strips.rows.size, dtype=bool)
    off[::3] = True
    for row, rows, entry, slots, _, _ in np.array(list(zip(*case.strips, strict=True)), dtype=object)[off]:
        case.jacobian[entry : entry + 6 * slots * rows] = 0.0
        case.dense[row : row + rows] = c[row : row + rows] = 0.0
    for linear in variants(case):
        found, multipliers, _ = case.solve(linear, b, c)
        rows = np.array([row for row in linear.equations if case.dense[row].any()])
        u, expected, _, redundant = case.reference(b, c, rows)
        assert not redundant
        np.testing.assert_allclose(found, u, rtol=0, atol=1e-9)
        np.testing.assert_allclose(multipliers, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        assert not multipliers[np.setdiff1d(linear.equations, rows)].any()


def random_graph(rng):
    """A few bodies with random joints of up to four bodies, some on the ground."""
    count = rng.integers(1, 12)
    wide = rng.integers(0, 5, size=rng.integers(1, 16))
    bodies = np.full((wide.size, 4), -1)
    for own, n in zip(bodies, wide, strict=True):
        own[: min(n, count)] = np.sort(rng.choice(count, min(n, count), replace=False))
    fixed = (rng.random(wide.size) < 0.3) | (wide == 0)
    joint, slot = np.nonzero(bodies >= 0)
    return algebra.Graph(count, rng.integers(1, 7, wide.size), (joint, bodies[joint, slot]), bodies, fixed)


@pytest.mark.parametrize("seed", range(100))
def test_in_tree_order_a_part_that_is_eliminated_touches_one_body_at_the_most(seed):
    graph = random_graph(np.random.default_rng(seed))
    order = algebra.tree_order(graph)
    assert sorted(order) == list(range(graph.nodes))
    ground = -1
    for step in range(graph.nodes + 1):
        gone = set(order[:step].tolist())
        parts = []  # bodies that are left, joints and bodies that are gone, of each connected part
        for k in sorted(gone):
            if k < graph.count:
                continue
            own = {int(b) for b in graph.bodies[k - graph.count] if b >= 0} | (
                {ground} if graph.fixed[k - graph.count] else set()
            )
            joined = [part for part in parts if part & own & gone]
            parts = [part for part in parts if part not in joined] + [own.union(*joined)]
        assert all(len(part - gone) <= 1 for part in parts)


@pytest.mark.parametrize("make", [lambda n: chain(n, True), lambda n: chain(n, False), hub, lambda n: tree(n, False)])
def test_the_factor_grows_with_the_number_of_bodies_and_no_faster(make):
    sizes = []
    for count in (100, 200):
        m = make(count)
        structure = formulations.motion_problem(m.system, "manifold").structure
        linear = algebra.linear_algebra(m.system, structure)
        sizes.append((linear.algebra.work, linear.algebra.pattern.size))
    assert np.all(np.divide(*sizes[::-1]) < 2.2)


@pytest.mark.slow
def test_the_cheapest_order_is_chosen():
    for name, build in ALL.items():
        m = build()
        strips = algebra.read_strips(m.system, formulations.motion_problem(m.system, "manifold").structure)
        if strips.rows.size:
            _, _, graph = algebra.grouped(strips, len(m.system.names))
            linked = graph.incidence @ graph.incidence.T
            known = [algebra.tree_order(graph), algebra.dual_order(graph, band_order(linked.indptr, linked.indices))]
            costs = [algebra.symbolic(graph, order).cost for order in known]
            assert algebra.best_factor(graph).cost <= min(costs), name
