"""Laws of the diagnosis: degrees of freedom by rank, redundant equations, residuals in millimetres and degrees."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations
from cardan.examples import REGISTRY, random_start
from mechanisms import (
    BENCHMARKS,
    bricard,
    change_point,
    planar_4r,
    product,
    random_rotation,
    rotation,
    rsur,
    stretched,
    unit,
)

# Freedom, Grübler's count and redundant equations, from the literature or by hand.
KNOWN = {
    "planar 4R": (1, -2, 3),
    "RSUR": (1, 1, 0),
    "Stewart": (0, 0, 0),
    "Stewart UPS": (6, 6, 0),
    "Bricard": (1, 0, 1),
}


@pytest.mark.parametrize("model", BENCHMARKS)
def test_freedom_grueblers_count_and_redundancy_have_known_values(model):
    assert set(KNOWN) == set(BENCHMARKS)
    built = BENCHMARKS[model]().build()
    for seed in range(5):
        result = built.mechanism.assemble(built.near_start(seed, 0.3))
        report = built.mechanism.diagnose(result.state)
        assert (report.dof, report.gruebler, len(report.redundant)) == KNOWN[model]
        assert report.rank == 6 * len(built.drawn) - report.dof
        assert report.equations == report.rank + len(report.redundant)
        assert report.gruebler == 6 * len(built.drawn) - report.equations
        assert report.assembled and report.certain


@pytest.mark.parametrize("model", BENCHMARKS)
def test_the_drawn_pose_is_diagnosed_where_no_state_is_given(model):
    m = BENCHMARKS[model]().build().mechanism
    assert m.diagnose().text() == m.diagnose(m.state).text()


@pytest.mark.parametrize("model", BENCHMARKS)
def test_freedom_does_not_depend_on_unit_place_order_or_origins(model):
    drawn = BENCHMARKS[model]()
    rng = np.random.default_rng(1)
    names, bonds = list(drawn.bodies), [bond.name for bond in drawn.bonds]
    variants = [
        drawn.build(unit=1e-6),
        drawn.build(unit=1e6),
        drawn.build(motion=(random_rotation(rng), 100 * drawn.size * unit([1, -2, 2]))),
        drawn.build(bodies=rng.permutation(names).tolist(), bonds=rng.permutation(bonds).tolist()),
        drawn.build(origins={name: 100 * drawn.size * unit(rng.normal(size=3)) for name in names}),
    ]
    first = drawn.build().mechanism.diagnose()
    for variant in variants:
        report = variant.mechanism.diagnose()
        assert (report.dof, report.gruebler, len(report.redundant)) == KNOWN[model]
        assert report.certain
        kept = report.singular_values[: report.rank]
        assert np.abs(kept - first.singular_values[: first.rank]).max() <= 1e-9


@pytest.mark.parametrize("model", ["RSUR", "planar 4R", "Bricard", "Stewart UPS"])
def test_every_free_motion_keeps_the_joints_to_first_order(model):
    """A step h along a motion gives residuals of order h²; and the motions are independent."""
    built = BENCHMARKS[model]().build()
    m = built.mechanism
    result = m.assemble(built.near_start(3, 0.2))
    report = m.diagnose(result.state)
    assert report.motions.shape == (report.dof, len(built.drawn), 6)
    assert np.linalg.matrix_rank(report.motions.reshape(report.dof, -1)) == report.dof
    h = 1e-5
    for motion in report.motions:
        state = stepped(result.state, motion, h)
        size = max(np.abs(motion).max(), 1.0)
        assert built.judge(state) <= 100 * (h * size) ** 2
        assert max(np.abs(state[n].position - result.state[n].position).max() for n in state) > 1e-2 * h


def stepped(state, motion, h):
    """The poses after a step h along a motion: metres of body origins in world axes, radians in body axes."""
    moved = {}
    for name, step in zip(state.names, h * motion, strict=True):
        pose = state[name]
        moved[name] = (pose.position + step[:3], product(pose.quaternion, [1.0, *(0.5 * step[3:])]))
    return state.moved(moved)


def every_joint_free(m, u, rng):
    """A tree of all kinds of joints that declare a motion; every coordinate is free."""
    kinds = ("revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "parallel", "perpendicular")
    before = m.ground
    for kind in rng.permutation(kinds):
        body = m.body(f"{kind} part", position=rng.normal(size=3) * u, orientation=unit(rng.normal(size=4)))
        ends = [part.frame(rng.normal(size=3) * u, z=rng.normal(size=3)) for part in (before, body)]
        if kind == "spherical":
            ends = [end.point() for end in ends]
        getattr(m, str(kind))(str(kind), *ends)
        before = before if rng.random() < 0.3 else body


@pytest.mark.slow
@pytest.mark.parametrize("u", [1e-3, 1.0, 1e3])
def test_each_free_motion_changes_one_coordinate_by_one_and_no_other(u):
    """Of a tree with all joints: by finite differences of the coordinates that its words name."""
    h = 1e-6
    signs = set()
    for seed in range(6):
        m = cd.Mechanism()
        every_joint_free(m, u, np.random.default_rng([seed, 50]))
        result = m.assemble()
        assert result.ok
        report = m.diagnose(result.state)
        assert report.dof == len(report.free_motions) == 1 + 1 + 2 + 2 + 3 + 3 + 4 + 5
        told = [motion.does for motion in report.free_motions]
        assert len(set(told)) == report.dof
        readers = {"turns about revolute": ("revolute", "angle"), "turns about cylindrical": ("cylindrical", "angle")}
        readers |= {"turns about planar": ("planar", "angle"), "turns about parallel": ("parallel", "angle")}
        readers |= {"moves along prismatic": ("prismatic", "displacement")}
        readers |= {"moves along cylindrical": ("cylindrical", "displacement")}
        read = {words: [k for k, does in enumerate(told) if does.split(" relative")[0] == words] for words in readers}
        for k, motion in enumerate(report.motions):
            states = [stepped(result.state, motion, step) for step in (h, -h)]
            for words, (joint, of) in readers.items():
                if of in m[joint].coordinates(result.state):
                    plus, minus = (m[joint].coordinate(state, of) for state in states)
                    rate = np.remainder(plus - minus + np.pi, 2 * np.pi) - np.pi if of == "angle" else plus - minus
                    expected = 1.0 if k in read[words] else 0.0
                    assert abs(rate / (2 * h) - expected) <= 1e-6 * max(u if of != "angle" else 1.0, 1.0, 1 / u)
                    signs.add((joint, of))
    assert len(signs) >= 4


def test_free_motions_are_told_in_words():
    m = cd.Mechanism()
    crank, coupler, rocker = (m.body(name, position=(k, 0, 0)) for k, name in enumerate(("crank", "coupler", "rocker")))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((1, 0, 0)), coupler.frame())
    m.revolute("C", coupler.frame((2.5, 0, 0)), rocker.frame((2, 0, 0)))
    m.revolute("D", m.ground.frame((3, 0, 0)), rocker.frame())
    state = m.assemble().state
    report = m.diagnose(state)
    assert "crank turns about A; coupler, rocker move with it" in report.text()
    assert report.free_motions[0].unit == "rad" and report.free == m.system.names
    (motion,) = report.motions
    assert motion[0] == pytest.approx([0, 0, 0, 0, 0, 1], abs=1e-9)
    first = m["A"].coordinate(state)
    m.drive("motor", m["A"], lambda t: first + t)
    assert np.abs(m.move([0.0, 1e-3], start=state).states[0].velocities - motion).max() <= 1e-9
    m = cd.Mechanism()
    slider = m.body("slider")
    m.cylindrical("rail", m.ground.frame(z=(1, 0, 0)), slider.frame(z=(1, 0, 0)))
    told = [motion.text() for motion in m.diagnose().free_motions]
    assert told == ["slider turns about rail", "slider moves along rail"]
    m = cd.Mechanism()
    m.spherical("ball", m.ground.point(), m.body("b").point())
    m.body("loose", orientation=(0.5, 0.5, 0.5, 0.5))
    report = m.diagnose()
    assert [motion.text() for motion in report.free_motions] == [
        *(f"b turns about {k} of ball" for k in "xyz"),
        *(f"loose moves along {k}" for k in "xyz"),
        *(f"loose turns about {k}" for k in "xyz"),
    ]
    assert report.motions[6, 1] == pytest.approx([0, 0, 0, 0, 0, 1])  # about the world's x, which is the body's z
    assert "and 3 more" in report.text()


def test_a_free_body_has_six_degrees_of_freedom_and_is_unconnected():
    m = cd.Mechanism()
    m.body("free", position=(1, 2, 3))
    report = m.diagnose()
    assert (report.dof, report.gruebler, report.rank, report.equations) == (6, 6, 0, 0)
    assert report.redundant == [] and report.residuals == [] and report.singular_values.size == 0
    assert report.unconnected == ("free",) and report.free == ("free",)
    assert report.assembled and report.certain
    assert "degrees of freedom: 6" in report.text() and "not connected to the ground: 'free'" in report.text()


def test_a_fixed_body_has_none():
    m = cd.Mechanism()
    block = m.body("block")
    m.fixed("weld", m.ground.frame(), block.frame())
    report = m.diagnose()
    assert (report.dof, report.gruebler, report.rank, len(report.redundant)) == (0, 0, 6, 0)
    assert report.free == () and report.unconnected == ()
    assert report.motions.shape == (0, 1, 6) and report.free_motions == ()
    assert math.isinf(report.gap) and "no singular value is zero" in report.text()


def test_a_joint_made_twice_is_redundant_under_its_second_name():
    m = cd.Mechanism()
    block = m.body("block", position=(1, 2, 3))
    for name in ("first", "second"):
        m.revolute(name, m.ground.frame((1, 2, 3)), block.frame())
    report = m.diagnose()
    assert (report.dof, report.gruebler, report.rank, report.equations) == (1, -4, 5, 10)
    assert [e.constraint for e in report.redundant] == ["second"] * 5
    assert {(e.primitive, e.row) for e in report.redundant} == {
        ("coincidence", 0),
        ("coincidence", 1),
        ("coincidence", 2),
        ("aligned", 0),
        ("aligned", 1),
    }
    text = report.text()
    assert "redundant:          5" in text and text.count("second: ") == 5
    assert "no singular value is zero" not in text  # half of the equations were dropped


def test_guard_rows_count_neither_as_equations_nor_as_redundant():
    m = cd.Mechanism()
    block = m.body("block")
    m.parallel("level", m.ground.frame(), block.frame())
    report = m.diagnose()
    assert (report.dof, report.equations, report.rank, len(report.redundant)) == (4, 2, 2, 0)
    assert report.singular_values.size == 2


def test_redundant_equations_depend_on_earlier_ones():
    """The other rows are independent with full rank; the redundant ones belong to the joint that closes the loop."""
    for drawn in (planar_4r(), bricard()):
        m = drawn.build().mechanism
        report = m.diagnose()
        assert {e.constraint for e in report.redundant} == {drawn.bonds[-1].name}
        _, J = formulations.problem(m.system, "manifold").jacobian(
            formulations.to_reference(m.system, m.state.coordinates)
        )
        kept = [
            start + i
            for name, primitive, start in m.system.rows
            for i in range(primitive.equations)  # the guard comes last
            if (name, primitive.name, i) not in report.redundant
        ]
        assert (
            len(kept) == report.rank == np.linalg.matrix_rank(J[kept], tol=1e-9) == np.linalg.matrix_rank(J, tol=1e-9)
        )


def test_a_change_point_has_one_more_motion_and_one_more_redundant_equation():
    """Both branches of the flat parallelogram are motions there."""
    m = change_point().build().mechanism
    flat = m.diagnose()
    assert (flat.dof, flat.gruebler, len(flat.redundant)) == (2, -2, 4)
    half = 0.25
    aside = m.state.moved(
        {
            "crank": ((0, 0, 0), (np.cos(half), 0, 0, np.sin(half))),
            "coupler": ((np.cos(2 * half), np.sin(2 * half), 0), (1, 0, 0, 0)),
            "rocker": ((2, 0, 0), (np.cos(half), 0, 0, np.sin(half))),
        }
    )
    general = m.diagnose(aside)
    assert general.assembled
    assert (general.dof, general.gruebler, len(general.redundant)) == (1, -2, 3)


def test_a_dead_point_has_its_instantaneous_freedom():
    """The stretched links cannot move, but to first order each of the two middle hinges can move sideways."""
    report = stretched().build().mechanism.diagnose()
    assert (report.dof, report.infinitesimal, report.rank) == (0, 2, 6 * len(report.names) - 2) and report.certain
    assert len(report.motions) == 0 and report.free_motions == () and report.free == ()


def test_a_nearly_singular_pose_is_uncertain():
    """Residuals of 1e-12 leave errors of 1e-6 at a dead point: whether σ = 1e-7 is zero cannot be decided."""
    built = stretched().build()
    for seed in range(5):
        result = built.mechanism.assemble(built.near_start(seed, 0.3))
        assert result.ok
        report = built.mechanism.diagnose(result.state)
        assert report.dof == 2 or not report.certain


def test_the_gap_is_the_ratio_of_the_singular_values_on_both_sides_of_the_cut():
    for model in ("planar 4R", "Bricard"):
        report = BENCHMARKS[model]().build().mechanism.diagnose()
        values = report.singular_values
        assert np.all(np.diff(values) <= 0)
        dropped = values[report.rank]
        assert report.gap == values[report.rank - 1] / dropped > 1e12
        assert f"gap {report.gap:.1e}" in report.text()


def test_singular_values_without_a_gap_are_uncertain():
    """A point in three planes at angles of 1e-8 and 3e-10: the rank is between one and three."""
    m = cd.Mechanism()
    block = m.body("block")
    tilt = rotation([1, 0, 0], 1e-8)
    third = rotation([0, 1, 0], 3e-10)
    m.point_in_plane("floor", block.point(), m.ground.frame(z=(0, 0, 1)))
    m.point_in_plane("almost", block.point(), m.ground.frame(z=tilt[:, 2]))
    m.point_in_plane("nearly", block.point(), m.ground.frame(z=third[:, 2]))
    report = m.diagnose()
    assert not report.certain
    assert "uncertain" in report.text()


def test_residuals_are_printed_in_millimetres_and_degrees_worst_first():
    m = cd.Mechanism()
    arm = m.body("arm", position=(0.001, 0, 0), orientation=(np.cos(np.pi / 360), np.sin(np.pi / 360), 0, 0))
    m.revolute("hinge", m.ground.frame(), arm.frame())
    m.distance("rod", m.ground.point((0, 0, 2)), arm.point(), 1.75)
    report = m.diagnose()
    assert not report.assembled
    assert [(v.name, v.unit) for v in report.residuals] == [("rod", "m"), ("hinge", "rad"), ("hinge", "m")]
    assert report.residuals[0].residual == pytest.approx(np.hypot(2, 0.001) - 1.75, abs=1e-15)
    assert report.residuals[1].residual == pytest.approx(np.pi / 180, abs=1e-15)
    assert report.residuals[2].residual == pytest.approx(0.001, abs=1e-15)
    assert [v.text() for v in report.residuals] == ["250 mm", "1°", "1 mm"]
    text = report.text()
    assert "not assembled" in text and "rod: 250 mm" in text and "hinge: 1°" in text and "hinge: 1 mm" in text


def test_residuals_at_an_assembled_pose_are_not_printed():
    built = rsur().build()
    report = built.mechanism.diagnose(built.mechanism.assemble(built.uniform_start(1)).state)
    assert report.assembled and "not assembled" not in report.text()
    assert {v.name for v in report.residuals} == {"A", "B", "C", "D"}
    assert max(v.residual for v in report.residuals) <= 1e-11


def test_unconnected_bodies_are_named_and_keep_six_degrees_of_freedom():
    built = rsur().build()
    m = built.mechanism
    one, two = m.body("one"), m.body("two")
    m.fixed("pair", one.frame(), two.frame())
    report = m.diagnose()
    assert (report.dof, report.gruebler) == (7, 7)
    assert report.unconnected == ("one", "two")
    assert "not connected to the ground: 'one', 'two'" in report.text()
    assert set(report.free) == {"crank", "coupler", "rocker", "one", "two"}


def test_only_bodies_that_can_move_are_called_free():
    m = cd.Mechanism()
    post, door = m.body("post"), m.body("door")
    m.fixed("foot", m.ground.frame(), post.frame())
    m.revolute("hinge", post.frame((0, 0, 1)), door.frame((0, 0, 1)))
    report = m.diagnose()
    assert report.dof == 1 and report.free == ("door",)


def test_a_diagnosis_is_that_of_the_given_state():
    built = planar_4r().build()
    m = built.mechanism
    before = m.state.coordinates.copy()
    open_state = m.state.moved({"crank": ((5, 5, 5), (1, 0, 0, 0))})
    assert not m.diagnose(open_state).assembled
    assert m.diagnose().assembled
    assert np.array_equal(m.state.coordinates, before)


# --- parts without a size -------------------------------------------------------------------------------------------


def rack_and_pinion(m, u):
    pinion, bar = m.body("pinion"), m.body("bar", position=(0, 0, 0.1 * u))
    turn = m.revolute("A", m.ground.frame(), pinion.frame())
    slide = m.prismatic("S", m.ground.frame(z=(1, 0, 0)), bar.frame(z=(1, 0, 0)))
    m.rack("r", turn, slide, radius=0.1 * u)
    m.drive("d", turn, lambda t: t)


def jack(m, u):
    spindle, nut = m.body("spindle"), m.body("nut")
    m.revolute("R", m.ground.frame(), spindle.frame())
    m.screw("W", spindle.frame(), nut.frame(), 0.02 * u)
    m.prismatic("P", m.ground.frame(), nut.frame())


def pulleys(m, u):
    first, second = (m.revolute(name, m.ground.frame(), m.body(f"wheel {name}").frame()) for name in "AB")
    m.belt("belt", first, second, radius_1=0.2 * u, radius_2=0.5 * u)
    m.drive("d", first, 0.3)


def fixed_slide(m, u):
    m.drive("d", m.prismatic("P", m.ground.frame(), m.body("b").frame()), 0.3 * u)


def points(m, u):
    for k, name in enumerate("ab"):
        m.spherical(f"on {name}", m.ground.point(), m.body(name, position=(k * u, 0.2 * u, 0)).point())


def resting_slide(m, u):
    m.drive("d", m.prismatic("P", m.ground.frame(), m.body("b").frame()), 0.0)


def swinging_slide(m, u):
    m.drive("d", m.prismatic("P", m.ground.frame(), m.body("b").frame()), lambda t: 0.3 * u * cd.sin(t))


# Function that builds it, dof, dof with drivers, and its length in the unit, or None if the model has none.
SIZELESS = {
    rack_and_pinion: (1, 0, 0.1),
    jack: (1, 1, 0.02 / (2 * math.pi)),
    pulleys: (1, 0, 0.5),
    fixed_slide: (1, 0, 0.3),
    points: (6, 6, None),
    resting_slide: (1, 0, None),
    swinging_slide: (1, 0, None),
}


@pytest.mark.parametrize("time", [0.0, 1e-9, 2.0, math.pi])
@pytest.mark.parametrize("build", SIZELESS)
def test_parts_without_a_size_are_diagnosed_as_assembled(build, time):
    """With all parts in one point, where the spread is only rounding, as in any other pose."""
    dof, undriven, length = SIZELESS[build]
    for u in (1e-6, 1.0, 1e3):
        m = cd.Mechanism()
        build(m, u)
        rng = np.random.default_rng(3)
        thrown = {name: (rng.normal(size=3) * u, unit(rng.normal(size=4))) for name in m.bodies}
        for start in (None, thrown):
            result = m.assemble(start, time=time)
            report = m.diagnose(result.state)
            assert result.ok and report.assembled and report.certain
            assert (report.dof, report.undriven) == (dof, undriven)
            assert report.residual <= result.tolerance
        if length is not None:
            assert abs(m.system.length - length * u) <= 1e-12 * u


@pytest.mark.parametrize("build", [rack_and_pinion, jack, pulleys, fixed_slide, points])
def test_parts_without_a_size_take_the_same_iterations_in_every_unit(build):
    counts = set()
    for u in (1e-6, 1.0, 1e3):
        m = cd.Mechanism()
        build(m, u)
        rng = np.random.default_rng(4)
        thrown = {name: (rng.normal(size=3) * u, unit(rng.normal(size=4))) for name in m.bodies}
        counts.add(m.assemble(thrown).iterations)
    assert len(counts) == 1


def bead(m, u):
    """A point on a line of the ground: only its position has a length."""
    body = m.body("bead", position=(2.1 * u, -2.8 * u, -0.2 * u), orientation=unit([0.3, 0.62, 0.7, -0.19]))
    wire = m.ground.frame((-0.8 * u, -1.1 * u, -0.9 * u), z=(0.65, -0.23, 0.72))
    m.point_on_line("wire", body.point((0.9 * u, -0.1 * u, -0.4 * u)), wire)


@pytest.mark.parametrize("build", [jack, points, bead])
def test_parts_without_a_size_are_judged_by_their_own_spread(build):
    """Below 1e-12 m the verdict was in metres: ok without a step, although the error was as large as the part."""
    found = set()
    for u in (1e-80, 1e-49, 1e-14, 1e-13, 1.0, 1e30):
        m = cd.Mechanism()
        build(m, u)
        rng = np.random.default_rng(4)
        thrown = {name: (rng.normal(size=3) * u, unit(rng.normal(size=4))) for name in m.bodies}
        for start in (None, thrown):
            result = m.assemble(start)
            assert result.ok and m.diagnose(result.state).assembled
            assert all(violation.residual <= 1e-11 * u for violation in result.residuals if violation.unit == "m")
        found.add((result.iterations, m.diagnose(result.state).dof, round(m.system.length / u, 9)))
    assert len(found) == 1


@pytest.mark.parametrize("far", [0.0, 3.0, 6e3])
def test_a_frame_that_only_gives_a_direction_gives_its_part_a_size(far):
    """Parts of a millimetre that started metres apart were judged relative to metres."""
    m = cd.Mechanism()
    a, b = m.body("a"), m.body("b", position=(far, -far, far), orientation=unit([0.8, -0.4, 0.3, 0.4]))
    m.parallel("along", a.frame((-1e-3, 0, 0), z=(0, 1, 0)), b.frame((3e-4, 0, 0)))
    m.point_on_line("on", b.point((2e-4, 3e-4, 2e-4)), a.frame((-5e-4, 8e-4, 0), z=(0.5, 0.1, -0.4)))
    assert 5e-4 < m.system.length < 2e-3
    for method in ("auto", "hybrid", "newton"):
        result = m.assemble(method=method)
        assert result.ok
        rounding = 64 * 2.3e-16 * (3 * far + 1e-3)
        assert all(violation.residual <= 2e-15 + rounding for violation in result.residuals if violation.unit == "m")
    m.remove("along")
    assert m.system.length == pytest.approx(0.0 if far == 0.0 else far * np.sqrt(3.0), abs=3e-3)


@cd.primitive(i="point", j="point")
def mean_height(i, j, *, height):
    """Mean height above the world's origin."""
    return 0.5 * (i.z + j.z) - height


@pytest.mark.parametrize("far", [0.0, 7.0])
def test_the_worlds_origin_is_not_a_point_of_the_ground(far):
    """If a constraint uses world coordinates, solvers measure from the origin; a frame at the ground adds no size."""
    m = cd.Mechanism()
    body = m.body("body", position=(far, far, far + 2.0))
    m.constrain("mean", mean_height, i=m.ground.point((far, far, far)), j=body.point(), height=far)
    before = m.system.length
    m.parallel("upright", m.ground.frame((far, far, far)), body.frame())
    assert m.system.length == before
    assert m.assemble().ok


@pytest.mark.parametrize("u", [1e-120, 1e-165, 1e-250])
def test_a_spread_whose_square_overflows_or_underflows_is_refused(u):
    m = cd.Mechanism()
    bead(m, u)
    with pytest.raises(cd.ModelError, match=r"the extent of the mechanism is .* choose another unit"):
        m.assemble()


def test_with_lengths_from_drivers_a_spread_of_rounding_is_ignored():
    """cos ½π is 6e-17: a part at this position has no size."""
    m = cd.Mechanism()
    part = m.body("b", position=(math.cos(math.pi / 2), 0, 0))
    m.drive("d", m.prismatic("P", m.ground.frame(), part.frame()), lambda t: 0.3 * cd.sin(t))
    assert m.system.length == 0.0
    assert m.assemble(time=2.0).ok


def ball_in_box(m, rng, noise, placed):
    """A ball in a box by two of its features; each centre was computed by a CAD kernel, so that it is off by noise."""
    box, ball = (m.body(name, position=placed()) for name in ("box", "ball"))
    m.fixed("base", m.ground.frame(noise()), box.frame(noise()))
    for name in ("hole", "slot"):
        m.spherical(name, box.point(noise()), ball.point(noise()))


def ball_and_parallel(m, rng, noise, placed):
    part = m.body("part", position=placed(), orientation=unit(rng.normal(size=4)))
    m.spherical("ball", m.ground.point(noise()), part.point(noise()))
    m.parallel("upright", m.ground.frame(noise()), part.frame(noise()))


@pytest.mark.parametrize("placed", ["at the origin", "apart", "one apart"])
@pytest.mark.parametrize(("build", "dof"), [(ball_in_box, 3), (ball_and_parallel, 1)])
def test_an_extent_that_is_rounding_of_drawn_coordinates_is_none(build, dof, placed):
    """Points at 1e-17 instead of 0 were a conflict, or needed restarts: the noise became the characteristic length."""
    rng = np.random.default_rng(40)
    for u in (1e-6, 1e-3, 1.0, 1e3):
        for relative in (1e-16, 1e-17, 1e-20):

            def noise(size=relative * u):
                return size * rng.normal(size=3)

            poses = {"at the origin": lambda: np.zeros(3), "apart": lambda u=u: u * rng.uniform(-50, 50, 3)}
            m = cd.Mechanism()
            build(m, rng, noise, poses.get(placed, noise))
            if placed == "one apart":  # the others are off by rounding
                m[next(iter(m.bodies))].position = u * rng.uniform(-50, 50, 3)
            for _ in range(3):
                thrown = {name: (rng.uniform(-1, 1, 3) * u, unit(rng.normal(size=4))) for name in m.bodies}
                for start in (None, thrown):
                    result = m.assemble(start)
                    assert result.ok and result.restarts == 0
                    report = m.diagnose(result.state)
                    assert report.assembled and report.certain and report.dof == dof
            if placed != "at the origin":
                assert u < m.system.length < 200 * u
            else:
                assert m.system.length == 0.0


def test_rounding_of_far_coordinates_is_no_extent_and_a_small_part_is_one():
    """Above 45 ulps of the coordinates an extent counts, however small; whether the piece is alone or not."""
    for far in (1.0, 1e3, 1e6):
        for alone in (True, False):
            for size, counts in ((1e-16 * far, False), (2e-11 * far, True)):
                m = cd.Mechanism()
                a = m.body("a", position=(far, -far, far))
                for k, end in enumerate(((0, 0, 0), (size, 0, 0))):
                    m.spherical(f"s{k}", m.ground.point(np.array([far, -far, far]) + end), a.point(end))
                if not alone:
                    m.revolute("other", m.ground.frame((1.0, 0, 0)), m.body("b").frame((2.0, 0, 0)))
                lengths = [piece.system.length for piece in m.system.pieces]
                assert (lengths[0] > 0.0) == counts
                if counts:
                    assert size / 2 < lengths[0] < 2 * size
                else:
                    assert m.assemble().ok


@pytest.mark.parametrize("name", REGISTRY)
def test_a_diagnosis_is_assembled_exactly_if_the_assembly_is(name):
    m = REGISTRY[name].build()
    options = [{}, {"tolerance": 1e-3}, {"max_iterations": 1, "restarts": 0}]
    if len(m.bodies) > 40:
        options = options[:1]
    for k, option in enumerate(options):
        result = m.assemble(random_start(m, k) if k else None, **option)
        report = m.diagnose(result.state, tolerance=option.get("tolerance", 1e-12))
        assert report.assembled == result.ok
        assert report.residual == result.residual


def test_a_diagnosis_judges_by_the_tolerance_it_is_given():
    m = rsur().build().mechanism
    state = m.assemble().state
    pose = state["coupler"]
    bent = state.moved({"coupler": (pose.position + np.array([1e-4, 0, 0]), pose.quaternion)})
    assert not m.diagnose(bent).assembled
    assert m.diagnose(bent, tolerance=1e-2).assembled
    for wrong in (0.0, -1.0, 1.0, math.nan, "small", None):
        with pytest.raises(cd.ModelError, match="tolerance"):
            m.diagnose(bent, tolerance=wrong)


def test_a_state_may_have_its_bodies_in_another_order():
    drawn = rsur()
    m, other = drawn.build().mechanism, drawn.build(bodies=list(drawn.bodies)[::-1]).mechanism
    state = other.assemble().state
    assert state.names != m.system.names
    report, expected = m.diagnose(state), other.diagnose(state)
    assert report.assembled and (report.dof, report.rank) == (expected.dof, expected.rank)
    assert report.names == m.system.names
