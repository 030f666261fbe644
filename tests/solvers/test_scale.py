"""Laws of large systems: sparse linear algebra against NumPy, connected pieces, rank without a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan import examples
from cardan.coordinates import formulations
from cardan.diagnosis import freedom
from cardan.solvers import linear, methods
from cardan.solvers.tables import FACTOR, LEAST, Projection
from mechanisms import stewart_ups


def chain(count, *, loops=False, names=None):
    """Links on ball joints from the origin to x = 0.6·count; loops: rods tie every tenth link to the third next."""
    m = cd.Mechanism("chain")
    names = names or [f"link {k:05d}" for k in range(count)]
    up, down = (0.8, 0.0, 0.6, 0.0), (0.8, 0.0, -0.6, 0.0)
    links = []
    for k, name in enumerate(names):
        links.append(m.body(name, position=(0.6 * k, 0.05 * (k % 3), 0.0), orientation=up if k % 2 else down))
    m.spherical("first", m.ground.point(), links[0].point())
    for k in range(1, count):
        m.spherical(f"joint {k}", links[k - 1].point((1, 0, 0)), links[k].point())
    m.spherical("last", m.ground.point((0.6 * count, 0, 0)), links[-1].point((1, 0, 0)))
    if loops:
        for k in range(0, count - 3, 10):
            m.distance(f"tie {k}", links[k].point((0.5, 0, 0)), links[k + 3].point((0.5, 0, 0)), 1.8)
    return m


def ends_meet(m, state, count):
    """Largest gap [m] between consecutive links, by rotating their ends with quaternions in NumPy."""
    tips = []
    for name in m.bodies:
        pose = state[name]
        w, e = pose.quaternion[0], pose.quaternion[1:]
        x = np.array([1.0, 0.0, 0.0])
        tips.append(pose.position + x + 2 * w * np.cross(e, x) + 2 * np.cross(e, np.cross(e, x)))
    starts = [state[name].position for name in m.bodies]
    gaps = [np.linalg.norm(starts[0]), np.linalg.norm(tips[-1] - [0.6 * count, 0, 0])]
    gaps += [np.linalg.norm(tip - start) for tip, start in zip(tips[:-1], starts[1:], strict=True)]
    return max(gaps)


def scattered(m, seed, span):
    rng = np.random.default_rng(seed)
    poses = {}
    for name, body in m.bodies.items():
        p = rng.normal(size=4)
        poses[name] = (np.array(body.position) + rng.uniform(-span, span, 3), p / np.linalg.norm(p))
    return poses


SYSTEMS = {
    "chain": lambda: chain(30).system,
    "chain with loops": lambda: chain(47, loops=True).system,
    "stewart": lambda: stewart_ups().build().mechanism.system,
    "bricard": lambda: examples.REGISTRY["bricard"].build().system,
}


@pytest.mark.parametrize("formulation", list(formulations.REGISTRY))
@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("damping", [1e-6, 1.0])
def test_sparse_and_dense_normal_equations_give_numpys_answer(name, formulation, damping):
    system = SYSTEMS[name]()
    problem = formulations.problem(system, formulation)
    r, J = problem.jacobian(formulations.to_reference(system, system.authored))
    _, entries = problem.entries(formulations.to_reference(system, system.authored))
    expected = np.linalg.solve(J.T @ J + damping * np.eye(problem.unknowns), J.T @ r)
    from cardan.solvers import _dense_normal

    room = _dense_normal.linear_work(problem.unknowns)
    dense = linear.Algebra(_dense_normal.ALGEBRA, problem.structure, room, 0.0)
    for algebra in (dense, linear.sparse(problem.structure)):
        control = Projection.new(epsilon=damping).as_floats
        x, gradient = np.concatenate([np.full(problem.unknowns, np.nan), r]), np.empty(problem.unknowns)
        arguments = (algebra.pattern, control, x, gradient, gradient, entries, np.empty(algebra.work))
        assert problem._call(algebra.address, FACTOR, *arguments) == 0
        problem._call(algebra.address, LEAST, *arguments)
        step = x[: problem.unknowns]
        assert np.abs(gradient - J.T @ r).max() <= 1e-13 * np.abs(J.T @ r).max()
        assert np.abs(step - expected).max() <= 1e-8 * np.abs(expected).max()


def test_an_indefinite_matrix_is_not_factorised():
    system = chain(12).system
    problem = formulations.problem(system, "manifold")
    _, entries = problem.entries(formulations.to_reference(system, system.authored))
    algebra = linear.sparse(problem.structure)
    control, x = Projection.new(epsilon=-5.0).as_floats, np.zeros(problem.unknowns + problem.rows)
    arguments = (algebra.pattern, control, x, x, x, entries)
    assert problem._call(algebra.address, FACTOR, *arguments, np.empty(algebra.work)) == 1


def test_the_order_of_elimination_leaves_a_chain_without_fill_and_a_star_too():
    star = cd.Mechanism()
    hub = star.body("hub")
    for k in range(40):
        star.spherical(f"arm {k}", hub.point((1, k, 0)), star.body(f"part {k}").point())
    for m, links in ((chain(200), 199), (star, 40)):
        structure = formulations.problem(m.system, "manifold").structure
        _, rows = linear._best_order(structure, len(m.bodies))[1]
        assert rows.size == len(m.bodies) + links  # one block per body and one per link: no fill


@pytest.mark.parametrize("loops", [False, True])
def test_a_chain_of_300_closes_from_anywhere(loops):
    m = chain(300, loops=loops)
    for seed in range(3):
        result = m.assemble(scattered(m, seed, 180.0))
        assert result.ok, result.text()
        assert ends_meet(m, result.state, 300) <= 1e-11 * 180


def test_work_per_iteration_grows_with_the_number_of_bodies_only():
    """The numbers of floats and integers of a solve per body are the same for 100 and 2,000 links."""
    sizes = []
    for count in (100, 2000):
        problem = formulations.problem(chain(count, loops=True).system, "manifold")
        sizes.append((problem.algebra.work + problem.algebra.pattern.size) / count)
    assert abs(sizes[1] / sizes[0] - 1) <= 0.1


@pytest.mark.parametrize("method", list(methods.REGISTRY))
def test_every_method_works_on_a_large_system(method):
    m = chain(120)
    if method == "newton_lu":
        with pytest.raises(cd.ModelError, match="363 × 720 entries"):
            m.assemble(method=method)
        return
    result = m.assemble(method=method, tolerance=1e-6 if method == "gradient" else 1e-12)
    if method == "gradient":  # slow on a long chain: only the residual decreases
        assert result.residual < m.assemble(method=method, max_iterations=1, tolerance=1e-6).residual
    else:
        assert result.ok, result.text()
        assert ends_meet(m, result.state, 120) <= 1e-11 * 72


def pair(m, k, origin, length=0.5):
    """A hinged arm and a link tied by a rod, at ``origin``."""
    origin = np.asarray(origin, dtype=float)
    a = m.body(f"a{k}", position=origin + np.array((0.3, 0.2, 0.1)))
    b = m.body(f"b{k}", position=origin + np.array((1.2, 0.1, 0.0)))
    m.revolute(f"A{k}", m.ground.frame(origin), a.frame())
    m.spherical(f"B{k}", a.point((1, 0, 0)), b.point())
    m.distance(f"d{k}", b.point((1, 0, 0)), m.ground.point(origin + np.array((2, 1, 0))), length)


def test_pieces_are_solved_as_if_each_were_alone():
    together = cd.Mechanism()
    for k in range(5):
        pair(together, k, (10.0 * k, 0, 0))
    together.body("lonely", position=(1, 2, 3))
    result = together.assemble()
    assert result.ok and result.unconnected == ("lonely",)
    assert len(together.system.pieces) == 5
    assert result.state["lonely"].position.tolist() == [1, 2, 3]
    total = 0
    for k in range(5):
        alone = cd.Mechanism()
        pair(alone, k, (10.0 * k, 0, 0))
        single = alone.assemble()
        total += single.iterations
        for name in (f"a{k}", f"b{k}"):
            assert np.abs(single.state[name].position - result.state[name].position).max() <= 1e-12 * 50
            assert np.abs(single.state[name].quaternion - result.state[name].quaternion).max() <= 1e-12
    assert result.iterations == total


def test_only_the_piece_that_was_moved_is_solved_again():
    m = cd.Mechanism()
    for k in range(6):
        pair(m, k, (10.0 * k, 0, 0))
    first = m.assemble()
    moved = first.state.moved({"b3": (first.state["b3"].position + 0.1, first.state["b3"].quaternion)})
    again = m.assemble(moved)
    assert again.ok and 0 < again.iterations < first.iterations
    for name in m.bodies:
        same = np.array_equal(again.state[name].position, first.state[name].position)
        assert same == (name not in ("a3", "b3"))


def test_one_impossible_piece_does_not_stop_the_others_and_is_named():
    m = cd.Mechanism()
    for k in range(4):
        pair(m, k, (10.0 * k, 0, 0), length=50.0 if k == 2 else 0.5)
    result = m.assemble()
    assert not result.ok
    assert {v.name for v in result.worst[:3]} == {"A2", "B2", "d2"}
    assert all(v.residual <= 1e-11 for v in result.residuals if v.name[1:] != "2")


def test_a_small_piece_beside_a_large_one_is_judged_by_its_own_size():
    m = cd.Mechanism()
    pair(m, 0, (0, 0, 0))
    tower = m.body("tower")
    m.fixed("base", m.ground.frame((1e4, 0, 0)), tower.frame())
    m.spherical("guy", m.ground.point((1e4, 0, 1e3)), tower.point((0, 0, 1e3)))
    a, b = m.body("watch", position=(0, 5, 0)), m.body("hand", position=(1e-3, 5, 0))
    m.fixed("case", m.ground.frame((0, 5, 0)), a.frame())
    m.spherical("pin", a.point((1e-3, 0, 0)), b.point())
    m.distance("tip", a.point(), b.point((1e-3, 0, 0)), 2.000001e-3)  # too long by 1e-9 m: negligible for a tower
    result = m.assemble()
    assert not result.ok
    assert {v.name for v in result.worst if v.residual > 1e-10} <= {"case", "pin", "tip"}


@pytest.mark.parametrize("name", list(examples.REGISTRY))
def test_elimination_finds_the_same_freedom_and_redundancy_as_singular_values(name, monkeypatch):
    m = examples.REGISTRY[name].build()
    state = m.assemble().state
    whole = m.diagnose(state)
    monkeypatch.setattr(freedom, "DENSE_UNKNOWNS", 0)
    parts = m.diagnose(state)
    assert (parts.dof, parts.rank, parts.redundant) == (whole.dof, whole.rank, whole.redundant)
    assert parts.gap >= 1e6


def test_freedom_of_a_long_chain_is_its_count_and_a_doubled_joint_is_named():
    m = chain(250)
    report = m.diagnose(m.assemble().state)
    assert (report.dof, report.gruebler, len(report.redundant)) == (6 * 250 - 3 * 251, 6 * 250 - 3 * 251, 0)
    m.spherical("again", m["link 00100"].point((1, 0, 0)), m["link 00101"].point())
    report = m.diagnose(m.assemble().state)
    assert report.dof == 6 * 250 - 3 * 251
    assert [e.constraint for e in report.redundant] == ["again"] * 3
    with pytest.raises(cd.ModelError, match="250 bodies"):
        _ = report.free


def test_the_names_of_the_links_do_not_change_the_answer():
    rng = np.random.default_rng(4)
    names = [f"link {k}" for k in rng.permutation(90)]
    one, other = chain(90), chain(90, names=names)
    a, b = one.assemble(), other.assemble()
    assert a.ok and b.ok and a.iterations == b.iterations
    assert np.abs(a.state.positions - b.state.positions).max() <= 1e-9 * 54
