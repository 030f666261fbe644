"""Contacts by closest points and differences: against exact ones, meshes, a user's query, and refusals."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.joints.closest import CLEARANCE

G = cd.geometry


class Balls:
    """The closest points of two balls, in closed form."""

    def __init__(self, first: float, second: float) -> None:
        self.radii = first, second
        self.size = 2.0 * min(first, second)

    def closest_pair(self, pose):
        n = pose[:3] / np.linalg.norm(pose[:3])
        if np.linalg.norm(pose[:3]) < sum(self.radii):
            return SimpleNamespace(points=np.zeros((2, 3)))
        return SimpleNamespace(points=np.array([self.radii[0] * n, pose[:3] - self.radii[1] * n]))

    def __eq__(self, other):
        return isinstance(other, Balls) and self.radii == other.radii

    def __hash__(self):
        return hash(self.radii)


def pair(first, second, at=(0.1, 0.2, 2.1), **options) -> cd.Mechanism:
    m = cd.Mechanism("pair")
    a = m.body("a", inertia=np.eye(3))
    b = m.body("b", position=at, orientation=("xyz", (0.3, 0.5, 0.1)), inertia=np.eye(3))
    faces = a.attach(first, a.frame((0.1, 0, 0))), b.attach(second, b.frame((0.05, 0.02, 0.0)))
    m.contact("c", *faces, **options)
    return m


def ellipsoids(**options) -> cd.Mechanism:
    return pair(G.ellipsoid(1, 0.8, 0.9), G.ellipsoid(0.7, 1.1, 0.6), **options)


def test_differenced_jacobian_agrees_with_the_exact_one_at_a_positive_gap():
    """To 1e-7 relative, at gaps down to the clearance; γ by a second difference."""
    exact, near = ellipsoids(), ellipsoids(jacobian="differences")
    for height in (2.1, 1.8, 1.65):
        rows, bends = [], []
        for m in (exact, near):
            m["b"].position = (0.1, 0.2, height)
            p = formulations.motion_problem(m.system, "manifold")
            q = formulations.to_reference(m.system, m.system.authored)
            f, J = p.jacobian(q)
            rows.append((f[0], J[0]))
            v = np.random.default_rng(1).normal(size=12)
            bends.append(formulations.gamma(m.system, "manifold", q, v)[0])
        clearance = CLEARANCE * near.joints["c"].relations[0].record.pair.size
        assert rows[0][0] > 0.01 and rows[1][0] == pytest.approx(rows[0][0] - clearance, abs=1e-9)
        assert np.linalg.norm(rows[1][1] - rows[0][1]) <= 1e-7 * np.linalg.norm(rows[0][1])
        assert bends[1] == pytest.approx(bends[0], rel=1e-3)


def test_smooth_shapes_assemble_to_the_clearance():
    m = ellipsoids(jacobian="differences")
    result = m.assemble()
    assert result.ok, result.text()
    contact = result.state.contact("c")
    own = m.joints["c"].relations[0].record.pair
    assert contact.gap == pytest.approx(own.clearance, rel=1e-4) and contact.status == "regular"
    exact = ellipsoids()
    assert abs(exact.assemble(result.state).state.contact("c").gap) < 1e-11
    found = m.diagnose(result.state)
    assert (found.dof, found.gruebler) == (11, 11)


def test_meshed_spheres_touch_within_the_chord_error():
    """The distance of the centres is between the sums of the radii of the inscribed and circumscribed spheres."""
    radii = (0.5, 0.3)
    solids = [cd.shapes.sphere(radius) for radius in radii]
    m = pair(*solids, at=(0.3, 0.2, 1.5), jacobian="differences")
    result = m.assemble()
    assert result.ok, result.text()
    inner = 0.0
    for solid in solids:
        t = np.array(solid.triangles().vertices)[np.array(solid.triangles().faces)]
        n = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
        size = np.linalg.norm(n, axis=1)
        inner += ((n * t[:, 0]).sum(axis=1)[size > 1e-12] / size[size > 1e-12]).min()
    state = result.state
    apart = np.linalg.norm(state["b"].point((0.05, 0.02, 0)) - state["a"].point((0.1, 0, 0)))
    assert inner < apart <= sum(radii) * (1 + 2e-6)
    assert sum(radii) - inner < 0.02
    many = m.assemble_many([m.state, state], workers=2)
    assert many.ok.all() and np.array_equal(many.coordinates[0], state.coordinates)


def test_a_query_of_the_user_is_assembled():
    m = pair(cd.shapes.sphere(0.5), cd.shapes.sphere(0.3), jacobian="differences", query=Balls(0.5, 0.3))
    result = m.assemble()
    assert result.ok, result.text()
    state = result.state
    apart = np.linalg.norm(state["b"].point((0.05, 0.02, 0)) - state["a"].point((0.1, 0, 0)))
    assert apart == pytest.approx(0.8 + CLEARANCE * 0.6, abs=1e-11)
    assert m == m.copy() == pickle.loads(pickle.dumps(m))
    assert pickle.loads(pickle.dumps(m)).assemble() == result


def test_shapes_that_overlap_are_reported_by_name():
    m = pair(cd.shapes.sphere(0.5), cd.shapes.sphere(0.3), at=(0, 0, 0.6), jacobian="differences")
    result = m.assemble(restarts=0)
    assert not result.ok
    assert m.state.contact("c").status == "overlap" and "draw the bodies apart" in m.state.contact("c").reason
    assert "contact 'c'" in result.text() and "overlap" in result.text()


@pytest.mark.parametrize(
    "shapes", [(cd.shapes.sphere(0.5), cd.shapes.sphere(0.2)), (G.sphere(0.5), G.ellipsoid(0.2, 0.15, 0.1))]
)
def test_a_shape_inside_the_other_is_on_the_wrong_side(shapes):
    m = pair(*shapes, at=(0, 0, 0.2), jacobian="differences")
    result = m.assemble(restarts=0)
    assert not result.ok and "other side" in result.text()


def test_a_query_that_fails_is_reported_by_name():
    class Broken:
        def closest_pair(self, pose):
            raise ValueError("no licence")

    with pytest.raises(cd.ModelError, match=r"contact 'c': closest_pair failed: .*no licence"):
        pair(cd.shapes.sphere(0.5), cd.shapes.sphere(0.3), jacobian="differences", query=Broken())


def driven(m: cd.Mechanism) -> cd.Mechanism:
    m.drive("motor", m.revolute("r", m.ground.frame(), m["a"].frame()), lambda t: 0.1 * t)
    return m


@pytest.mark.parametrize(
    "verb",
    [
        lambda m: m.simulate(0.1, step=1e-2),
        lambda m: driven(m).move([0.0, 0.1]),
        lambda m: m.session(m.assemble().state),
    ],
)
def test_motions_refuse_differences_by_name(verb):
    m = ellipsoids(jacobian="differences")
    with pytest.raises(cd.ModelError, match=r"contact 'c' has derivatives by differences.*jacobian='exact'"):
        verb(m)


def test_files_have_smooth_shapes_and_refuse_meshes(tmp_path):
    m = ellipsoids(jacobian="differences")
    m.save(tmp_path / "m.toml")
    again = cd.load(tmp_path / "m.toml")
    assert again.joints["c"].relations[0].record.pair == m.joints["c"].relations[0].record.pair
    other = pair(cd.shapes.sphere(0.5), cd.shapes.sphere(0.3), jacobian="differences")
    with pytest.raises(cd.ModelError, match="contact 'c' cannot be saved: it is between meshes"):
        other.save(tmp_path / "other.toml")


class Given:
    """A query whose result is given; where bodies are near, another one."""

    def __init__(self, far, near) -> None:
        self.far, self.near = far, near

    def closest_pair(self, pose):
        return self.far if np.linalg.norm(pose[:3]) > 2.5 else self.near


GOOD = SimpleNamespace(points=np.eye(3)[:2])
NO_NUMBERS = SimpleNamespace(points=np.full((2, 3), np.nan))


@pytest.mark.parametrize(
    ("found", "words"),
    [(NO_NUMBERS, "gives the points .*nan.*they must be finite"), (3, ".*of type 'int'; it must have points"),
     (SimpleNamespace(points="x"), ".*must have points")],
)  # fmt: skip
def test_what_a_query_must_give_is_told(found, words):
    with pytest.raises(cd.ModelError, match=f"contact 'c': closest_pair {words}"):
        pair(cd.shapes.sphere(0.5), cd.shapes.sphere(0.3), jacobian="differences", query=Given(found, found))
    m = pair(cd.shapes.sphere(0.5), cd.shapes.sphere(0.3), jacobian="differences", query=Given(GOOD, found))
    with pytest.raises(cd.ModelError, match=f"contact 'c': closest_pair {words}"):
        m.state.contact("c")


def test_the_reason_of_an_overlap_has_a_way_out_for_solids():
    m = pair(cd.shapes.sphere(0.5), cd.shapes.sphere(0.5), at=(0.0, 0.0, 0.6), jacobian="differences")
    reason = m.state.contact("c").reason
    assert reason.endswith("draw the bodies apart, or use curves or surfaces with jacobian='exact'")


@pytest.mark.parametrize(
    ("second", "options", "words"),
    [
        (cd.shapes.sphere(0.3), {}, "it must be a face.*solids and meshes need jacobian='differences'"),
        (cd.shapes.sphere(0.3), {"jacobian": "differences", "mode": "roll"}, "mode='roll' .*jacobian='exact'"),
        (cd.shapes.sphere(0.3), {"jacobian": "differences", "side": "inside"}, "side='inside'"),
        (G.sphere(0.3), {"jacobian": "differences"}, "give both as solids"),
        (cd.shapes.sphere(0.3), {"jacobian": "differences", "query": 3}, "no closest_pair"),
        (G.sphere(0.3), {"query": Balls(1, 1)}, "needs jacobian='differences'"),
        (G.sphere(0.3), {"jacobian": "numeric"}, "jacobian is 'numeric'"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(second, options, words):
    with pytest.raises(cd.ModelError, match=f"contact 'c'.*{words}"):
        pair(cd.shapes.sphere(0.5), second, **options)
