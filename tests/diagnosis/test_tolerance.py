"""Laws of freedom and tolerance: rounded data, misfits, shaky structures.

A mechanism is *typed* with some digits: its frames are given in body axes that are turned at random, so that no
coordinate is a round number, and then rounded.
"""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.options import RESTARTS
from cardan.diagnosis import second_order
from cardan.diagnosis.freedom import REACH
from cardan.examples import REGISTRY, random_start
from cardan.math import euler
from cardan.mechanism import Mechanism
from cardan.system.parts import Body
from mechanisms import change_point, planar_4r, random_quaternion, rotation, stretched
from tests.analysis.test_batch import check_same

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fuzz.case import build
from fuzz.generate import generate

DIGITS = (3, 4, 5, 6)


# --- mechanisms typed with some digits --------------------------------------------------------------------------------


def random_mechanisms(count, families=("consistent", "redundant")):
    """(name, builder, poses that satisfy every joint) of fuzz cases that can be assembled."""
    index = 0
    while count:
        case = generate(11, index)
        index += 1
        if case.family in families and case.expect == "ok" and not case.options:
            count -= 1
            poses = {name: tuple(map(np.array, pose)) for name, pose in case.reference.items()}
            yield f"{case.family}/{case.variant} {index - 1}", lambda case=case: build(case), poses


def gallery(names=None):
    """Mechanisms of the gallery, made by their scripts: a reader of files does not call Body.frame."""
    for name in names or REGISTRY:
        yield name, REGISTRY[name].script().build, None


@contextmanager
def typing(digits, unit, turns):
    """Within it, frames and lengths are built in turned body axes, rounded to a number of digits (None: not)."""
    frame, point, distance = Body.frame, Body.point, Mechanism.distance

    def rounded(values):
        return [float(v) if digits is None else round(float(v), digits) for v in values]

    def turned(body, v):
        return euler.rotate(turns["ground" if body.is_ground else body.name], np.asarray(v, dtype=float))

    def place(body, v):
        return tuple(unit * c for c in rounded(turned(body, v) / unit))

    def typed_frame(self, origin=(0.0, 0.0, 0.0), *, z=(0.0, 0.0, 1.0), x=None):
        exact = frame(self, origin, z=z, x=x)
        z, x = (rounded(turned(self, axis)) for axis in (exact.z, exact.x))
        return frame(self, place(self, origin), z=z, x=x)

    def typed_distance(self, name, a, b, length, **options):
        return distance(self, name, a, b, unit * rounded([length / unit])[0], **options)

    Body.frame, Mechanism.distance = typed_frame, typed_distance
    Body.point = lambda self, position=(0.0, 0.0, 0.0): point(self, place(self, position))
    try:
        yield
    finally:
        Body.frame, Body.point, Mechanism.distance = frame, point, distance


class Typed:
    """A mechanism in an assembled pose, and the same mechanism typed with some digits."""

    def __init__(self, make, poses, seed=0):
        self.make = make
        self.exact = make()
        self.state = self.exact.assemble(poses).state
        self.report = self.exact.diagnose(self.state)
        assert self.report.assembled
        extent = max(piece.system.length for piece in self.exact.system.pieces) or 1.0
        self.unit = 10.0 ** math.floor(math.log10(extent))
        rng = np.random.default_rng(seed)
        self.turns = {name: random_quaternion(rng) for name in ("ground", *self.exact.bodies)}

    def build(self, digits):
        with typing(digits, self.unit, self.turns):
            return self.make()

    @property
    def start(self):
        """The assembled pose, in turned axes."""
        ground = self.turns["ground"]
        found = {}
        for name, pose in self.state.items():
            turned = euler.multiply(euler.multiply(ground, pose.quaternion), euler.conjugate(self.turns[name]))
            found[name] = euler.rotate(ground, pose.position), turned
        return found

    def exact_dof(self, tolerance):
        return self.exact.diagnose(self.state, tolerance=tolerance).dof


def check_typed(name, typed, digits):
    """The law; returns whether the exact mechanism has more freedoms at a matching tolerance than exactly."""
    m, start = typed.build(digits), typed.start
    first = m.assemble(start, restarts=0)
    matching = {10.0**-digits: typed.exact_dof(10.0**-digits)}
    is_softer = matching[10.0**-digits] != typed.report.dof
    least = typed.report.singular_values[typed.report.rank - 1] if typed.report.rank else 1.0
    assert not is_softer or least < 10.0**-digits / REACH
    if not first.ok and first.residual <= 1e-3:
        said = first.text().splitlines()[-1]
        assert "misses by" in said, (name, digits, first.text())
        accepting = float(said.split("tolerance=")[1].split()[0])
        assert first.residual <= accepting <= 10.0 * first.residual
        nearly = m.diagnose(first.state).nearly
        if nearly is not None:  # otherwise another pose may fit exactly
            assert nearly[0] == accepting
            matching[accepting] = typed.exact_dof(accepting)
    for tolerance, expected in matching.items():
        result = m.assemble(start, tolerance=tolerance)
        assert result.ok and result.restarts == 0, (name, digits, tolerance, result.text())
        report = m.diagnose(result.state, tolerance=tolerance)
        assert report.assembled
        assert report.dof == expected, (name, digits, tolerance, report.text())
        assert report.motions is None or report.motions.shape[0] == report.dof
        assert report.equations == report.rank + len(report.redundant)
        strict = m.diagnose(result.state)
        if strict.nearly is not None and strict.nearly[0] == tolerance:
            assert strict.nearly[1] == expected
            assert f"tolerance={tolerance:.0e} it has {expected} degree" in strict.text()
            assert strict.dof == expected or not strict.certain
    return is_softer


@pytest.mark.parametrize("digits", DIGITS)
def test_rounded_data_have_the_freedoms_of_exact_data_at_the_matching_tolerance(digits):
    """A sample of the 500 mechanisms of the next test, which is long."""
    names = ("planar_4r", "bricard", "hoberman_ring", "scissor_lift", "cardan_joint", "stewart_ups")
    for name, make, poses in (*gallery(names), *random_mechanisms(8)):
        check_typed(name, Typed(make, poses), digits)


@pytest.mark.long
@pytest.mark.parametrize("digits", DIGITS)
def test_500_rounded_mechanisms_have_the_freedoms_of_the_exact_ones(digits):
    """Close to a singular pose the exact mechanism itself is softer at a tolerance of 1e-3: 8 of 500."""
    softer = [
        check_typed(name, Typed(make, poses), digits)
        for name, make, poses in (*gallery(), *random_mechanisms(500 - len(REGISTRY)))
    ]
    assert len(softer) == 500
    assert sum(softer) <= (8 if digits == 3 else 0)


def test_the_frames_of_a_typed_mechanism_are_those_of_the_exact_one():
    for _, make, poses in gallery(("planar_4r", "delta_robot", "planetary_gear")):
        typed = Typed(make, poses)
        m = typed.build(None)
        report = m.diagnose(m.assemble(typed.start).state)
        assert report.assembled and report.dof == typed.report.dof


# --- misfits ----------------------------------------------------------------------------------------------------------


def door(offset, height=1.0):
    """A door on two hinges; the upper pin is off the lower axis by offset [m], on the door and not on the frame."""
    m = cd.Mechanism("door")
    leaf = m.body("leaf")
    m.revolute("lower", m.ground.frame(), leaf.frame())
    m.revolute("upper", m.ground.frame((0, 0, height)), leaf.frame((offset, 0.3 * offset, height)))
    return m


def test_a_door_with_hinges_out_of_line_opens_within_the_tolerance():
    for offset in (1e-6, 1e-5, 1e-4, 5e-4):
        m = door(offset)
        result = m.assemble(tolerance=1e-3)
        assert result.ok and result.restarts == 0
        report = m.diagnose(result.state, tolerance=1e-3)
        assert report.dof == 1 and report.assembled and report.free == ("leaf",)
        strict = m.diagnose(result.state)
        assert not strict.assembled and not (strict.dof == 0 and strict.certain)
        assert strict.nearly is not None and strict.nearly[1] == 1
        assert f"assembled with tolerance={strict.nearly[0]:.0e} it has 1 degree of freedom" in strict.text()
        # the motion that is reported: half a turn about the lower hinge misses by twice the offset, at most
        assert abs(report.motions[0, 0, 3:]).max() > 0.9


def test_the_report_says_what_a_freedom_rests_on():
    m = door(2e-4)
    state = m.assemble(tolerance=1e-3).state
    loose, strict = m.diagnose(state, tolerance=1e-3), m.diagnose(state)
    assert (loose.dof, loose.by_tolerance, strict.dof, strict.by_tolerance) == (1, 1, 0, 0)
    assert loose.tolerance == 1e-3 and strict.tolerance == 1e-12
    assert "at tolerance 1e-03: singular values below 5e-03 count as zero" in loose.text()
    assert "at the default tolerance it has 0 degrees of freedom" in loose.text()


def test_a_pose_that_is_merely_not_assembled_does_not_nearly_close():
    """A part that is moved aside by 1e-4 fits exactly elsewhere."""
    m = planar_4r().build().mechanism
    pose = m.state["coupler"]
    aside = m.state.moved({"coupler": (pose.position + np.array([1e-4, 2e-4, 0]), pose.quaternion)})
    report = m.diagnose(aside)
    assert not report.assembled and report.nearly is None
    assert "not assembled" in report.text() and "nearly" not in report.text()


@pytest.mark.slow
@pytest.mark.parametrize("number", [6, pytest.param(25, marks=pytest.mark.long)])
@pytest.mark.parametrize("digits", [7, 8, 9])
def test_rounded_redundant_data_say_the_tolerance_after_all_restarts_or_a_contradiction(digits, number):
    """Also from far away, and in a batch."""
    count = 0
    for name, make, poses in random_mechanisms(number, ("redundant",)):
        typed = Typed(make, poses)
        m = typed.build(digits)
        result = m.assemble(typed.start)
        if result.ok:
            continue
        count += 1
        assert result.restarts == RESTARTS or result.status is cd.Status.CONFLICT, (name, result.text())
        said = result.text().splitlines()[-1]
        assert "misses by" in said and "start nearer" not in result.text()
        tolerance = float(said.split("tolerance=")[1].split()[0])
        again = m.assemble(result.state, tolerance=tolerance)
        assert again.ok and again.restarts == 0 and m.assemble(typed.start, tolerance=tolerance).ok
        check_same(m, [m.state.moved(typed.start), m.state])
    assert count >= 0.4 * number


def schmidt_coupling():
    """Three discs on parallel axes, joined by three parallel links each: 1 degree of freedom, 2 with the middle disc's
    position given by the two rows of links."""
    m = cd.Mechanism("Schmidt coupling")
    centres = [np.array([0.0, 0.0, 0.0]), np.array([0.4, 0.5, 0.2]), np.array([0.9, 0.0, 0.4])]
    discs = [m.body(f"disc {k}", position=c) for k, c in enumerate(centres)]
    for k in (0, 2):
        m.revolute(f"shaft {k}", m.ground.frame(centres[k]), discs[k].frame())
    for row in range(2):
        for j in range(3):
            pin = 0.8 * np.array([np.cos(2.1 * j + row), np.sin(2.1 * j + row), 0.0])
            link = m.body(f"link {row}{j}", position=centres[row] + pin)
            m.revolute(f"a{row}{j}", discs[row].frame(pin), link.frame())
            m.revolute(f"b{row}{j}", link.frame(centres[row + 1] - centres[row]), discs[row + 1].frame(pin))
    return m


def test_a_schmidt_coupling_in_rounded_axes_is_accepted_at_the_tolerance_that_the_result_names():
    typed = Typed(schmidt_coupling, None)
    assert typed.report.dof == 1 and typed.report.infinitesimal == 0
    m = typed.build(7)
    result = m.assemble(typed.start)
    assert not result.ok and result.restarts <= 3 and 1e-9 < result.residual < 1e-6
    tolerance = float(result.text().splitlines()[-1].split("tolerance=")[1].split()[0])
    again = m.assemble(typed.start, tolerance=tolerance)
    assert again.ok and again.restarts == 0 and again.iterations <= 10
    assert m.diagnose(again.state, tolerance=tolerance).dof == 1


def platform(seed, off):
    """A platform on seven rods that closes in a pose B, and misses by about off in a pose A; both poses.

    Each foot is equally far from the two places of its point, but for that of the last rod, which is moved by off.
    """
    rng = np.random.default_rng(seed)
    poses = [(rng.uniform(-0.5, 0.5, 3) + np.array([0, 0, 1]), random_quaternion(rng)) for _ in range(2)]
    m = cd.Mechanism("platform")
    top = m.body("top", position=poses[0][0], orientation=poses[0][1])
    for k in range(7):
        point = rng.uniform(-0.4, 0.4, 3)
        at = [r + euler.rotate(q, point) for r, q in poses]
        n = (at[1] - at[0]) / np.linalg.norm(at[1] - at[0])
        aside = np.cross(n, rng.normal(size=3))
        foot = 0.5 * (at[0] + at[1]) + rng.uniform(0.5, 1.2) * aside / np.linalg.norm(aside) + off * (k == 6) * n
        m.distance(f"rod {k}", m.ground.point(foot), top.point(point), float(np.linalg.norm(at[1] - foot)))
    return m, [{"top": pose} for pose in poses]


@pytest.mark.parametrize("seed", range(6))
def test_a_pose_that_nearly_fits_does_not_hide_one_that_fits(seed):
    m, (nearly, exactly) = platform(seed, 4e-6)
    assert m.assemble(exactly, restarts=0).ok
    near = m.assemble(nearly, restarts=0)
    assert not near.ok and 1e-8 < near.residual < 1e-5
    assert "rounded data" not in near.text() and "there may be a better one" in near.text()
    starts = [m.state.moved(nearly), *[random_start(m, k) for k in range(20)]]
    assert m.assemble_many(starts, workers=1).ok.all()
    check_same(m, starts[:4])


def test_a_bound_that_is_nearly_enough_is_the_reason_and_not_rounded_data():
    """Of a free parameter, of a limit, or the value of a driver: a rod of 1.2 m where 1.2 m and a little is needed."""

    def mechanism(gap, length):
        m = cd.Mechanism()
        a, b = m.body("a"), m.body("b", position=(2, 0, 0))
        m.revolute("A", m.ground.frame(), a.frame())
        m.revolute("B", m.ground.frame((2.2 + gap, 0, 0)), b.frame())
        ends = a.point((0.5, 0, 0)), b.point((-0.5, 0, 0))
        if length is not None:
            m.distance("rod", *ends, length(m))
        return m, ends

    for gap in (1e-8, 1e-6, 1e-4):
        m, _ = mechanism(gap, lambda m: m.parameter("l", 1.0, lower=0.5, upper=1.2))
        result = m.assemble(free=["l"])
        assert not result.ok and result.residual < 1e-3
        (line,) = [line for line in result.text().splitlines() if "beyond the bounds" in line]
        needed = float(line.split("'l' = ")[1].split(" mm")[0])
        assert needed > 1200.0 and needed == pytest.approx(1e3 * (1.2 + gap), abs=0.2e3 * gap)
        assert "rounded data" not in result.text()
        m, ends = mechanism(gap, None)
        m.limit("stop", cd.coordinate(*ends, of="distance"), upper=1.2)
        text = m.assemble().text()
        assert "without limit 'stop' it can be assembled" in text and "rounded data" not in text
        m, ends = mechanism(gap, None)
        m.drive("motor", cd.coordinate(*ends, of="distance"), 1.2)
        text = m.assemble().text()
        assert "without driver 'motor' it can be assembled" in text and "rounded data" not in text


def test_restarts_that_were_asked_for_are_made():
    typed = Typed(next(make for name, make, _ in random_mechanisms(25, ("redundant",)) if "bennett" in name), None)
    m = typed.build(7)
    assert m.assemble(typed.start).restarts == RESTARTS
    few = m.assemble(typed.start, restarts=8)
    assert few.restarts == 8 and "rounded data" not in few.text()


def test_a_loose_tolerance_needs_no_restarts():
    """The least residual is between the target of the solver and the tolerance."""
    for offset in (2e-3, 3e-3, 4e-3):
        m = door(offset)
        m.revolute("middle", m.ground.frame((0, 0, 0.5)), m.bodies["leaf"].frame((-offset, 0, 0.5)))
        result = m.assemble(tolerance=5e-3)
        assert result.ok and result.restarts == 0


# --- shaky structures -------------------------------------------------------------------------------------------------


def collinear(lengths, hinged, rng):
    """Bars along one line between two points of the ground; a negative length: a bar that points back."""
    R, at = rotation(rng.normal(size=3), rng.uniform(0, 3)), rng.normal(size=3)
    m = cd.Mechanism("bars")
    ends = [at + R[:, 0] * x for x in (0.0, *np.cumsum(lengths))]
    bodies = [m.ground, *(m.body(f"bar {k}", position=ends[k]) for k in range(len(lengths))), m.ground]
    for k, p in enumerate(ends):
        a, b = bodies[k], bodies[k + 1]
        p_a, p_b = (p if body.is_ground else p - np.array(body.position) for body in (a, b))
        if hinged:
            m.revolute(f"J{k}", a.frame(p_a, z=R[:, 2]), b.frame(p_b, z=R[:, 2]))
        else:
            m.spherical(f"J{k}", a.point(p_a), b.point(p_b))
    return m


def form_of(lengths):
    """Shortening of the bars by sideways displacements y of the inner joints: Σ (yₖ₊₁ − yₖ)²/(2 lₖ), signed lengths."""
    n = len(lengths) - 1
    D = np.zeros((n + 1, n))
    for k in range(n + 1):
        if k < n:
            D[k, k] = 1.0
        if k:
            D[k, k - 1] = -1.0
    return D.T @ (D / np.array(lengths)[:, None])


@pytest.mark.parametrize("hinged", [True, False])
def test_collinear_bars_are_shaky_exactly_if_their_form_is_definite(hinged):
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(60):
        count = int(rng.integers(2, 6))
        lengths = rng.uniform(0.5, 2.0, count) * rng.choice([1.0, 1.0, -1.0], count)
        values = np.linalg.eigvalsh(form_of(lengths))
        if abs(sum(lengths)) < 0.3 or np.abs(values).min() < 0.05:
            continue
        m = collinear(lengths, hinged, rng)
        report = m.diagnose()
        sideways, spins = (count - 1, 0) if hinged else (2 * (count - 1), count)
        is_definite = values.min() > 0 or values.max() < 0
        assert report.assembled and report.dof == (0 if is_definite else sideways) + spins
        assert report.infinitesimal == (sideways if is_definite else 0), lengths
        assert report.dof + report.infinitesimal == 6 * count - report.rank
        assert report.motions.shape == (report.dof, count, 6) and len(report.free_motions) == report.dof
        assert report.branches == (not is_definite)
        text = report.text()
        assert ("shaky" in text) == is_definite and ("several motions begin here" in text) == (not is_definite)
        seen.add(is_definite)
    assert seen == {True, False}


def test_a_shaky_part_of_a_moving_mechanism_is_told():
    """Two collinear bars on a crank: it turns, but they do not move on it."""
    m = cd.Mechanism()
    crank, a, b = m.body("crank"), m.body("a"), m.body("b", position=(1, 0, 0))
    m.revolute("turn", m.ground.frame(), crank.frame())
    m.revolute("A", crank.frame(), a.frame())
    m.revolute("B", a.frame((1, 0, 0)), b.frame())
    m.revolute("C", b.frame((1, 0, 0)), crank.frame((2, 0, 0)))
    report = m.diagnose()
    assert (report.dof, report.infinitesimal, report.branches) == (1, 1, False)
    assert "shaky: 2 degrees of freedom to first order, but second order excludes 1 of them" in report.text()
    assert "degrees of freedom: 1 (18 unknowns − rank 16 − 1 infinitesimal;" in report.text()
    # the motion that is left is that of the crank: all bodies rotate with it as one
    assert np.allclose(report.motions[0, :, 3:], [[0, 0, 1]] * 3, atol=1e-9)
    assert report.free == ("crank", "a", "b")


def test_dead_points_and_change_points_are_told_apart():
    dead, change = (model().build().mechanism.diagnose() for model in (stretched, change_point))
    assert (dead.dof, dead.infinitesimal, dead.branches) == (0, 2, False)
    assert (change.dof, change.infinitesimal, change.branches) == (2, 0, True)


def test_drivers_and_rate_rows_count_motions_only():
    """A blade on a trolley, and one on collinear bars, which are rigid; and a slider-crank driven at a dead point."""
    m = collinear([1.0, 1.0], True, np.random.default_rng(1))
    trolley = m.body("trolley")
    m.planar("floor", m.ground.frame(), trolley.frame())
    blades = {"of the trolley": trolley, "of a bar": m[next(iter(m.bodies))]}
    first = m.diagnose()
    assert (first.dof, first.velocity_dof, first.infinitesimal) == (3, 3, 1)
    for name, body in blades.items():
        m.knife_edge(name, body.frame((0.2, 0.1, 0.0), z=(1, 0.3, 0)))
        report = m.diagnose()
        assert (report.dof, report.velocity_dof, report.infinitesimal) == (3, 2, 1)

    m = cd.Mechanism()
    crank, rod, block = m.body("crank"), m.body("rod", position=(1, 0, 0)), m.body("block", position=(3, 0, 0))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((1, 0, 0)), rod.frame())
    m.revolute("C", rod.frame((2, 0, 0)), block.frame())
    m.prismatic("slide", m.ground.frame(z=(1, 0, 0)), block.frame(z=(1, 0, 0)))
    m.drive("push", m["slide"], 3.0)
    report = m.diagnose()  # the slider at its outermost place: nothing moves, but a first-order freedom is left
    assert (report.dof, report.undriven) == (1, 0)


@pytest.mark.parametrize("name", REGISTRY)
def test_the_freedoms_of_the_gallery_are_motions(name):
    m = REGISTRY[name].build()
    report = m.diagnose(m.assemble().state)
    if report.motions is None:
        assert report.infinitesimal is None and "not examined" in report.text()
    else:
        assert report.infinitesimal == 0 and not report.branches


@cd.primitive(p="point", o="point")
def cubic(p, o, *, height):
    """A surface that touches its tangent plane to third order."""
    x = p.x - o.x
    return p.z - o.z - x * x * x - height


def test_where_second_order_does_not_decide_it_is_said():
    """A point in a plane and on a surface: to second order it can move along x, but to third order it cannot."""
    m = cd.Mechanism()
    block = m.body("block")
    m.planar("flat", m.ground.frame(), block.frame())
    m.prismatic("guide", m.ground.frame(z=(1, 0, 0)), block.frame(z=(1, 0, 0)))
    m.constrain("surface", cubic, p=block.point(), o=m.ground.point(), height=0.0)
    report = m.diagnose()
    assert report.dof == 1 and report.infinitesimal is None
    assert "unknown whether all of these are motions" in report.text()


def test_forms_agree_with_gamma():
    """s·H(n, n) by differences of J is −s·γ."""
    from cardan.coordinates import formulations

    m = change_point().build().mechanism
    system = m.system
    q = formulations.to_reference(system, m.state.coordinates)
    problem = formulations.problem(system, "manifold")
    rows = [start + i for _, p, start in system.rows for i in range(p.rows) if i not in p.guards]
    at = second_order.Linearised(problem, q, rows)
    rank = at.rank(0.0)
    forms = at.forms(rank)
    null = at.v[rank:]
    unit = np.linalg.norm(null.reshape(-1, 6), axis=1).max()
    for k, n in enumerate(null / unit):
        gamma = formulations.gamma(system, "manifold", q, n * problem.scales[problem.rows :])
        expected = -at.u[:, rank:].T @ (gamma[rows] * problem.scales[rows])
        assert np.abs(forms.values[:, k, k] - expected).max() <= 1e-7
