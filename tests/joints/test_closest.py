"""Contacts by closest points and differences: against exact ones, meshes, a user's query, and refusals."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.coordinates.rate_rows import RateRows
from cardan.joints.closest import CLEARANCE
from papers.contact import Papers

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
    a = m.body("a", mass=1.0, inertia=np.eye(3))
    b = m.body("b", position=at, orientation=("xyz", (0.3, 0.5, 0.1)), mass=1.0, inertia=np.eye(3))
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
    with pytest.raises(cd.ModelError, match=r"equations of 'c' are not numbers.*draw the bodies apart"):
        m.diagnose(m.state)
    with pytest.raises(cd.ModelError, match=r"contact 'c'.*overlap"):
        m.solve_rates(m.state)


@pytest.mark.parametrize(("ball", "left"), [(G.sphere(0.3), (5, 3)), (G.circle(0.3), (5, 3))])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_plane_without_end_by_differences(ball, left, swapped):
    """Its own size is that of the other shape."""
    m = cd.Mechanism("floor")
    body = m.body("b", position=(0.1, 0.2, 0.5), orientation=((1, 0, 0), 1.2))
    faces = m.ground.attach(G.plane()), body.attach(ball)
    m.contact("c", *(faces[::-1] if swapped else faces), mode="roll", jacobian="differences")
    state = m.assemble().state
    found = m.diagnose(state)
    assert (found.dof, found.velocity_dof) == left
    assert abs(state.contact("c").point[2]) < 1e-5 and state.contact("c").gap < 1e-5


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


def rolling_rows(m: cd.Mechanism, state: cd.State, v=None) -> tuple[np.ndarray, np.ndarray]:
    """The rate rows, and γ at velocities v."""
    rows = RateRows(m.system)
    known = np.array([state.angles.get(key, 0.0) for key in rows.system.counted_angles])
    q = formulations.to_reference(rows.system, state.coordinates, known)
    return rows.matrix(q), rows.gamma(q, np.zeros(12) if v is None else v)


def projector(rows: np.ndarray) -> np.ndarray:
    """Onto the row space, whatever the tangents are."""
    return np.linalg.pinv(rows) @ rows


@pytest.mark.parametrize(("mode", "left"), [("roll", 9), ("roll_without_spin", 8)])
def test_rolling_by_differences_agrees_with_the_exact_rows(mode, left):
    """At positive gaps to 1e-7, as the closest points do; at contact to the clearance, which is between the poses."""
    exact, near = ellipsoids(mode=mode), ellipsoids(mode=mode, jacobian="differences")
    for height in (2.1, 1.8, 1.65):
        for m in (exact, near):
            m["b"].position = (0.1, 0.2, height)
        found = [projector(rolling_rows(m, m.state)[0]) for m in (exact, near)]
        assert np.linalg.matrix_rank(found[0]) == 11 - left
        assert np.abs(found[1] - found[0]).max() <= 1e-7
    state = near.assemble().state
    closed = exact.assemble(state).state
    for m, at in ((near, state), (exact, closed)):
        report = m.diagnose(at)
        assert (report.dof, report.velocity_dof, len(report.redundant_rates)) == (11, left, 0)
    rows = [rolling_rows(m, at)[0] for m, at in ((near, state), (exact, closed))]
    assert np.abs(projector(rows[0]) - projector(rows[1])).max() < 1e-5
    p = formulations.motion_problem(exact.system, "manifold")
    known = np.array([closed.angles[key] for key in exact.system.counted_angles])
    gap = p.jacobian(formulations.to_reference(exact.system, closed.coordinates, known))[1][:1]
    v = np.random.default_rng(2).normal(size=12)
    v -= projector(np.vstack([gap, rows[1]])) @ v
    bends = [np.linalg.pinv(A) @ rolling_rows(m, at, v)[1]
             for A, m, at in zip(rows, (near, exact), (state, closed), strict=True)]  # fmt: skip
    assert np.abs(bends[1]).max() > 0.1 and np.abs(bends[0] - bends[1]).max() < 1e-4


def test_the_papers_rolling_is_these_rows_less_the_gap_times_the_rate_of_the_normal():
    """Ċ^roll = t·u − g t·ṅ with a at rest, and ∂n by differences of the papers' own closest points."""
    m = ellipsoids(mode="roll", jacobian="differences")
    papers = Papers(m, tuple(m[name].attachments[0] for name in "ab"))
    q = papers.start(m.system.authored)
    S, dS = papers.points(q), papers.derivatives(q)
    g, n = np.linalg.norm(S[1] - S[0]), (S[1] - S[0]) / np.linalg.norm(S[1] - S[0])
    across = np.eye(3) - np.outer(n, n)
    turns = across @ (dS[1] - dS[0]) / g
    wanted = across @ papers.rolling(q) + g * turns
    assert g > 0.3 and np.abs(g * turns).max() > 0.1
    found = rolling_rows(m, m.state)[0][:, 6:]
    assert np.abs(projector(found) - projector(wanted[:, 6:])).max() < 1e-6


def rolled(floor, ball, *, swapped=False, **options) -> cd.Mechanism:
    """A ball on a carriage, over a floor of the ground."""
    m = cd.Mechanism("rolled")
    carriage, body = m.body("carriage", position=(0, 0, 0.5)), m.body("ball", position=(0, 0, 0.5))
    m.prismatic("along", m.ground.frame((0, 0, 0.5), z=(1, 0, 0)), carriage.frame(z=(1, 0, 0)))
    m.cylindrical("up", carriage.frame(), m.body("fork", position=(0, 0, 0.5)).frame())
    m.spherical("pin", m["fork"].frame(), body.frame())
    faces = m.ground.attach(floor), body.attach(ball)
    m.contact("on", *(faces[::-1] if swapped else faces), **options)
    return m


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("floor", "ball", "error"),
    [(G.ellipsoid(4, 4, 0.02), G.sphere(0.4), 1e-4), (cd.shapes.box(2.0, 2.0, 0.04), cd.shapes.sphere(0.4), 2e-2)],
)
def test_rates_of_a_ball_that_rolls_by_differences(floor, ball, error, swapped):
    """ω = v/r about the axis across, and no spin; a meshed ball within the chord error."""
    m = rolled(floor, ball, swapped=swapped, mode="roll_without_spin", jacobian="differences")
    state = m.assemble().state
    report = m.diagnose(state)
    moving = m.solve_rates(state, {"along": 0.6})
    rates = moving["ball"].matrix @ moving["ball"].angular_velocity
    assert report.velocity_dof == report.dof - 3
    assert rates == pytest.approx((0.0, 0.6 / 0.4, 0.0), abs=error * 0.6 / 0.4)


def test_meshes_that_touch_with_their_corners_do_not_slip_either():
    """Pole to pole: closest points do not move on their bodies, and the papers' own rows vanish."""
    m = cd.Mechanism("poles")
    a, b = m.body("a"), m.body("b", position=(0, 0, 1.0))
    m.contact("c", a.attach(cd.shapes.sphere(0.5)), b.attach(cd.shapes.sphere(0.3)), mode="roll",
              jacobian="differences")  # fmt: skip
    state = m.assemble().state
    assert state.contact("c").gap == pytest.approx(CLEARANCE * 0.6, rel=1e-3)
    assert np.abs(state.contact("c").normal - (0, 0, 1)).max() < 1e-9
    report = m.diagnose(state)
    assert (report.dof, report.velocity_dof, len(report.redundant_rates)) == (11, 9, 0)


@pytest.mark.nojit
def test_freedoms_of_rolling_of_a_query_of_the_user():
    solids = cd.shapes.sphere(0.5), cd.shapes.sphere(0.3)
    m = pair(*solids, jacobian="differences", query=Balls(0.5, 0.3), mode="roll_without_spin")
    report = m.diagnose(m.assemble().state)
    assert (report.dof, report.velocity_dof) == (11, 8)


def test_rolling_of_a_query_of_the_user():
    m = pair(cd.shapes.sphere(0.5), cd.shapes.sphere(0.3), jacobian="differences", query=Balls(0.5, 0.3), mode="roll")
    exact = pair(G.sphere(0.5), G.sphere(0.3), mode="roll")
    state = m.assemble().state
    found = [projector(rolling_rows(one, one.assemble(state).state)[0]) for one in (m, exact)]
    assert np.abs(found[0] - found[1]).max() < 1e-5
    assert m == m.copy() == pickle.loads(pickle.dumps(m))
    assert m != pair(cd.shapes.sphere(0.5), cd.shapes.sphere(0.3), jacobian="differences", query=Balls(0.5, 0.3))
    m.remove("c")
    assert not m.rate_rows


def test_curves_in_a_plane_roll_by_differences_with_one_row():
    """Wheels on parallel axles: ω₂ = −ω₁ r₁/r₂, as of the exact contact."""
    found = []
    for options in ({}, {"jacobian": "differences"}):
        m = cd.Mechanism("wheels")
        for name, x in (("a", 0.0), ("b", 0.85)):
            m.revolute(f"r{name}", m.ground.frame((x, 0, 0)), m.body(name, position=(x, 0, 0)).frame())
        m.remove("rb")
        m.planar("rb", m.ground.frame(), m["b"].frame())
        m.contact("c", m["a"].attach(G.circle(0.5)), m["b"].attach(G.circle(0.3)), mode="roll", **options)
        state = m.assemble().state
        report = m.diagnose(state)
        assert (report.dof, report.velocity_dof, len(report.redundant_rates)) == (3, 2, 0)
        m.revolute("axle", m.ground.frame(tuple(state["b"].position)), m["b"].frame())
        found.append(m.solve_rates(state, {"ra": 1.0})["b"].angular_velocity[2])
    assert found == pytest.approx([-0.5 / 0.3, -0.5 / 0.3], rel=1e-5)


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
@pytest.mark.parametrize("mode", ["slide", "roll"])
def test_motions_refuse_differences_by_name(verb, mode):
    m = ellipsoids(jacobian="differences", mode=mode)
    m.solve_rates(m.assemble().state)
    with pytest.raises(cd.ModelError, match=r"contact 'c' has derivatives by differences.*jacobian='exact'"):
        verb(m)


def test_files_have_smooth_shapes_and_refuse_meshes(tmp_path):
    m = ellipsoids(jacobian="differences", mode="roll_without_spin")
    m.save(tmp_path / "m.toml")
    again = cd.load(tmp_path / "m.toml")
    assert again == m and list(again.rate_rows) == ["c.roll"]
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
        (cd.shapes.sphere(0.3), {"jacobian": "differences", "mode": "spin"}, "mode is 'spin'"),
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
