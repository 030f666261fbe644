"""Contacts of random pairs from uniform starts, judged by implicit equations and SciPy's splines; trains of contacts.

The sample of every test run asserts that no answer is wrong and that a failure names its contact.  The bars on the
share of pairs that assemble are asserted over 1,000 pairs, by ``make long``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest

import cardan as cd
import distance_judge as judge

G = cd.geometry
FIRST = 0.95  # share of pairs that assemble without a restart
RESTARTS = 30
HUNG = 30.0  # s of one pair: its first try, and all restarts
EXPONENT = 1.1  # of cost over size, trains of 10 … 200 contacts
REASONS = ("no pair of points", "at the edge", "the shapes cross", "other side", "do not touch in a point")


@dataclass
class Count:
    pairs: int = 0
    first: int = 0
    solved: int = 0
    refused: int = 0
    reachable: int = 0  # of those that are refused: the judge knows that a contact exists
    slowest: float = 0.0  # s of the processor

    def __str__(self) -> str:
        return (
            f"{self.first} of {self.pairs} at the first try, {self.solved} with up to {RESTARTS} restarts, "
            f"{self.refused} refused with a reason, of which {self.reachable} have a contact; slowest pair "
            f"{self.slowest:.2g} s"
        )


def assembled(m: cd.Mechanism, count: Count) -> cd.State | None:
    """The state, or None with a reason that names the contact."""
    count.pairs += 1
    began = time.process_time()
    result = m.assemble(restarts=0)
    count.first += result.ok
    if not result.ok:
        result = m.assemble(restarts=RESTARTS)
    count.slowest = max(count.slowest, time.process_time() - began)
    if result.ok:
        count.solved += 1
        return result.state
    text = result.text()
    assert "contact 'c'" in text and any(reason in text for reason in REASONS), text
    count.refused += 1
    return None


class Implicit:
    """A closed smooth surface F(x) = 0, an ellipsoid or a torus, with its gradient; F is positive outside."""

    def __init__(self, rng):
        self.is_torus = rng.uniform() < 0.3
        self.axes = rng.uniform(0.4, 1.2, 3)
        self.major, self.minor = rng.uniform(0.8, 1.2), rng.uniform(0.2, 0.5)
        self.shape = G.torus(self.major, self.minor) if self.is_torus else G.ellipsoid(*self.axes)

    def value(self, x):
        if not self.is_torus:
            return (x**2 / self.axes**2).sum(axis=-1) - 1.0
        return (np.hypot(x[..., 0], x[..., 1]) - self.major) ** 2 + x[..., 2] ** 2 - self.minor**2

    def gradient(self, x):
        if not self.is_torus:
            return 2.0 * x / self.axes**2
        d = np.hypot(x[..., 0], x[..., 1])
        share = (d - self.major) / d
        return 2.0 * np.stack([share * x[..., 0], share * x[..., 1], x[..., 2]], axis=-1)

    def near(self, x, rng, size):
        """Points of the surface near one of its points, by Newton's method along the gradient."""
        points = x + size * rng.normal(size=(200, 3))
        for _ in range(8):
            g = self.gradient(points)
            points = points - (self.value(points) / (g**2).sum(axis=1))[:, None] * g
        return points


def check_closed(a: Implicit, b: Implicit, state: cd.State, rng) -> None:
    """The point is on both surfaces, the normals are opposed, and the surfaces do not cross near the point."""
    point, R, r = state.contact("c").point, state["b"].matrix, state["b"].position
    own = R.T @ (point - r)
    assert abs(a.value(point)) < 1e-8 and abs(b.value(own)) < 1e-8
    n, m = a.gradient(point), R @ b.gradient(own)
    assert np.linalg.norm(n / np.linalg.norm(n) + m / np.linalg.norm(m)) < 1e-7
    around = b.near(own, rng, 1e-3) @ R.T + r
    assert a.value(around).min() > -1e-8


def closed_pairs(pairs: int) -> Count:
    rng, count = np.random.default_rng(18), Count()
    for _ in range(pairs):
        a, b = Implicit(rng), Implicit(rng)
        p = rng.normal(size=4)
        m = cd.Mechanism("closed")
        body = m.body("b", position=rng.uniform(-3, 3, 3), orientation=p / np.linalg.norm(p))
        m.contact("c", m.ground.attach(a.shape), body.attach(b.shape))
        state = assembled(m, count)
        if state is None:
            count.reachable += 1  # convex points, which both have, can always touch
        else:
            check_closed(a, b, state, rng)
    return count


def curvatures(rows) -> np.ndarray:
    """Principal curvatures (n, 2), ascending, positive where the surface bends away from its normal."""
    _, su, sv, suu, suv, svv = rows
    normal = np.cross(su, sv)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    first, second = (
        np.stack([(x * y).sum(axis=1) for x, y in products], axis=1).reshape(-1, 2, 2)
        for products in (
            ((su, su), (su, sv), (su, sv), (sv, sv)),
            ((suu, normal), (suv, normal), (suv, normal), (svv, normal)),
        )
    )
    return np.sort(np.linalg.eigvals(np.linalg.solve(first, -second)).real, axis=1)


def can_touch(a: judge.Judged, b: judge.Judged) -> bool:
    """Whether the free patches touch in some pose without crossing, at points of a grid within both.

    With the directions of the larger curvature of one along the smaller of the other, the curvatures of the gap are
    κ₁ᵃ + κ₂ᵇ and κ₂ᵃ + κ₁ᵇ: both must be positive.
    """
    k, l = (curvatures(own(inner, 2)) for own in (a, b) for inner in [own.low + (own.high - own.low) * GRID])
    return bool((np.minimum(k[:, None, 0] + l[None, :, 1], k[:, None, 1] + l[None, :, 0]) > 1e-3).any())


GRID = np.stack([g.ravel() for g in np.meshgrid(*[np.linspace(0.1, 0.9, 9)] * 2)], axis=1)


def heights(rows, n) -> np.ndarray:
    """Second derivatives (2, 2) of the height along n over the tangent plane, in axes that depend on n alone."""
    axes = np.linalg.svd(n[None])[2][1:]
    inverse = np.linalg.inv(axes @ np.array(rows[1:3]).T)
    second = np.array([[rows[3] @ n, rows[4] @ n], [rows[4] @ n, rows[5] @ n]])
    return inverse.T @ second @ inverse


def check_patches(own, state: cd.State) -> None:
    """Both points are within their patches and equal, normals are opposed, and the gap has a minimum there."""
    contact, R, r = state.contact("c"), state["b"].matrix, state["b"].position
    rows = []
    for patch, parameters in zip(own, contact.parameters, strict=True):
        assert (parameters >= patch.low - 1e-12).all() and (parameters <= patch.high + 1e-12).all()
        rows.append([row[0] for row in patch(parameters, 2)])
    rows[1] = [R @ row for row in rows[1]]
    assert np.abs(rows[0][0] - rows[1][0] - r).max() < 1e-9
    n, o = (normal / np.linalg.norm(normal) for normal in (np.cross(row[1], row[2]) for row in rows))
    assert np.linalg.norm(n + o) < 1e-7
    assert np.linalg.eigvalsh(heights(rows[1], n) - heights(rows[0], n))[0] > -1e-7


def patches(pairs: int) -> Count:
    """Bumpy bicubic patches with edges, from random poses."""
    rng, count = np.random.default_rng(19), Count()
    for _ in range(pairs):
        shapes = [G.Surface(*judge.bumps(rng)) for _ in range(2)]
        pose = judge.random_pose(rng, rng.uniform(0.2, 1.5))
        m = cd.Mechanism("patches")
        body = m.body("b", position=pose[:3], orientation=pose[3:])
        m.contact("c", m.ground.attach(shapes[0]), body.attach(shapes[1]))
        state, own = assembled(m, count), [judge.judged(shape) for shape in shapes]
        if state is None:
            count.reachable += can_touch(*own)
        else:
            check_patches(own, state)
    return count


@pytest.mark.parametrize("family", [closed_pairs, patches])
def test_no_contact_of_random_pairs_is_wrong(family):
    """Some assemble; what does not is refused by name."""
    count = family(20)
    assert count.solved > 0 and count.solved + count.refused == count.pairs


def test_restarts_are_made_where_the_equations_are_met_without_a_contact():
    """From this start= the gap of an ellipsoid and a torus closes where they cross; many starts answer as one does."""
    m = cd.Mechanism("crossing")
    p = np.array([0.198, -0.961, 0.186, 0.051])
    body = m.body("b", position=(0.631, -0.312, -0.073), orientation=p / np.linalg.norm(p))
    faces = m.ground.attach(G.ellipsoid(1.1, 0.76, 0.67)), body.attach(G.torus(1.08, 0.44))
    m.contact("c", *faces, start=((0, 1, 0), (3.0, np.pi)))
    once, more = m.assemble(restarts=0), m.assemble(restarts=RESTARTS)
    assert not once.ok and once.residual <= once.tolerance and more.ok
    assert 0 < more.restarts <= RESTARTS and more.state.contact("c").status == "regular"
    many = m.assemble_many([m.state, more.state], restarts=RESTARTS)
    assert many.ok.all() and many.restarts.tolist() == [more.restarts, 0]
    assert np.array_equal(many.coordinates[0], more.state.coordinates)
    assert np.array_equal(many.coordinates[1], more.state.coordinates)


@pytest.mark.long
@pytest.mark.parametrize("family", [closed_pairs, patches])
def test_random_pairs_assemble_at_the_first_try_and_all_with_restarts(family):
    """A refusal is right only where the judge knows of no contact."""
    family(3)  # kernels are compiled
    count = family(1000)
    print(count)
    assert count.solved + count.refused == count.pairs == 1000, str(count)
    assert count.slowest < HUNG, str(count)
    assert count.first >= FIRST * count.pairs, str(count)
    assert count.reachable == 0, str(count)


def train(size: int) -> cd.Mechanism:
    """Discs on eccentric pivots; each touches the next one."""
    m = cd.Mechanism("train", gravity=(0, -9.81, 0))
    for k in range(size + 1):
        turned = ("xyz", (0, 0, 0.3 if k % 2 else np.pi - 0.3))
        body = m.body(f"d{k}", position=(k, 0, 0), orientation=turned, mass=1.0, inertia=0.1 * np.eye(3))
        m.revolute(f"p{k}", m.ground.frame((k, 0, 0)), body.frame())
    faces = [m[f"d{k}"].attach(G.circle(0.5), m[f"d{k}"].frame((0.1, 0.02, 0))) for k in range(size + 1)]
    for k in range(size):
        m.contact(f"c{k}", faces[k], faces[k + 1])
    return m


def test_a_train_of_contacts_assembles_and_moves():
    """Centres of neighbours stay a diameter apart."""
    m = train(40)
    result = m.assemble()
    assert result.ok, result.text()
    assert m.diagnose(result.state).dof == 1
    simulation = m.simulate(0.05, result.state, step=1e-3)
    assert simulation.ok, simulation.text()
    assert simulation.drift.max() < 1e-11
    for state in (result.state, simulation.state):
        poses = [state[f"d{k}"] for k in range(41)]
        centers = np.array([pose.position + pose.matrix @ (0.1, 0.02, 0) for pose in poses])
        assert np.abs(np.linalg.norm(np.diff(centers, axis=0), axis=1) - 1.0).max() < 1e-10


def seconds(calls) -> list[float]:
    """Least time of the processor of each call, of interleaved runs."""
    found = [np.inf] * len(calls)
    for _ in range(9):
        for k, call in enumerate(calls):
            began = time.process_time()
            call()
            found[k] = min(found[k], time.process_time() - began)
    return found


@pytest.mark.long
def test_the_cost_of_a_train_is_linear_in_its_contacts():
    """log(t₂₀₀/t₁₀)/log 20, of an assembly from displaced poses and of a step."""
    sizes, calls = (10, 200), []
    for size in sizes:
        m = train(size)
        state = m.assemble().state
        start = state.moved(
            {n: (state[n].position + 1e-3 * np.sin(k), state[n].quaternion) for k, n in enumerate(m.bodies)}
        )
        assert m.assemble(start).ok and m.simulate(0.02, state, step=1e-3).ok
        calls += (lambda m=m, s=start: m.assemble(s), lambda m=m, s=state: m.simulate(0.02, s, step=1e-3))
    spent = np.reshape(seconds(calls), (2, 2))
    exponents = np.log(spent[1] / spent[0]) / np.log(sizes[1] / sizes[0])
    print(f"exponents: assembly {exponents[0]:.2f}, step {exponents[1]:.2f}")
    assert (exponents <= EXPONENT).all(), exponents
