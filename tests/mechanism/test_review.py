"""Wrong answers that once looked right, and calls that once ended in a bare traceback: each stays mended."""

from __future__ import annotations

import copy
import inspect
import math
import pickle

import numpy as np
import pytest

import cardan as cd


def four_bar(m, tag="", size=1.0, origin=(0, 0, 0)):
    origin = np.asarray(origin, dtype=float)
    turn = (math.cos(0.4), 0, 0, math.sin(0.4))
    crank = m.body(f"crank{tag}", position=origin, orientation=turn)
    coupler = m.body(f"coupler{tag}", position=origin + size * np.array([1.0, 0.3, 0.1]))
    rocker = m.body(f"rocker{tag}", position=origin + size * np.array([3.0, 0, 0]), orientation=turn)
    s = size
    m.revolute(f"A{tag}", m.ground.frame(origin), crank.frame())
    m.revolute(f"B{tag}", crank.frame((s, 0, 0)), coupler.frame())
    m.revolute(f"C{tag}", coupler.frame((3 * s, 0, 0)), rocker.frame((2 * s, 0, 0)))
    m.revolute(f"D{tag}", m.ground.frame(origin + np.array([3 * s, 0, 0])), rocker.frame())
    return m


def test_a_point_too_far_away_to_square_is_refused_not_called_assembled():
    m = cd.Mechanism()
    b = m.body("b", position=(3, 0, 0))
    with pytest.raises(cd.ModelError, match="1e\\+160"):
        b.point((0, 1e160, 0))
    m.spherical("s", m.ground.point(), b.point((1, 0, 0)))
    m.point_in_plane("wall", b.point((0, 1e120, 0)), m.ground.frame())
    with pytest.raises(cd.ModelError, match="extent"):
        m.assemble()


@pytest.mark.parametrize("size", [1e-90, 1e-6, 1e6, 1e90])
def test_extreme_sizes_are_solved(size):
    m = four_bar(cd.Mechanism(), size=size)
    result = m.assemble()
    assert result.ok and result.iterations > 0
    assert m.diagnose(result.state).dof == 1


def test_a_mechanism_too_small_to_square_is_refused():
    with pytest.raises(cd.ModelError, match="extent"):
        four_bar(cd.Mechanism(), size=1e-170).assemble()


def test_diagnosis_and_assembly_share_one_verdict():
    m = four_bar(cd.Mechanism())
    m.distance("brace", m.ground.point(), m["coupler"].point((3, 0, 0)), 5 + 1e-8)
    result = m.assemble()
    assert m.diagnose(result.state).assembled == result.ok
    far = four_bar(cd.Mechanism(), origin=(1e9, 0, 0))
    result = far.assemble()
    assert m is not far and result.ok == far.diagnose(result.state).assembled


def test_freedom_of_a_tiny_mechanism_beside_a_huge_one():
    m = cd.Mechanism()
    four_bar(m, "small", 1e-6)
    four_bar(m, "large", 1e3, (0, 0, 10))
    report = m.diagnose(m.assemble().state)
    assert (report.dof, len(report.redundant), report.certain) == (2, 6, True)


def test_a_freedom_that_rounding_could_hide_is_not_called_certain():
    m = cd.Mechanism()
    boom, part = m.body("boom"), m.body("part", position=(100, 0, 0))
    m.revolute("hinge", m.ground.frame(), boom.frame())
    for k, offset in enumerate(((0, 0, 0), (1e-8, 0, 0), (0, 1e-8, 0))):
        m.spherical(f"pin {k}", boom.point((100 + offset[0], offset[1], 0)), part.point(offset))
    report = m.diagnose(m.assemble().state)
    assert report.dof == 1 or not report.certain


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.0, math.pi / 2])
def test_a_missed_right_angle_is_told_as_the_angle_it_is_missed_by(angle):
    m = cd.Mechanism()
    b = m.body("b", orientation=(math.cos(angle / 2), math.sin(angle / 2), 0, 0))
    m.perpendicular("square", m.ground.frame(), b.frame())
    worst = m.diagnose().residuals[0]
    assert worst.residual == pytest.approx(math.pi / 2 - angle, abs=1e-7)


def test_few_restarts_do_not_make_a_contradiction():
    """The drivers put the ends of the coupler, which is 3 m long, 4 m apart; no triangle inequality tells."""
    m = four_bar(cd.Mechanism())
    m.drive("crank angle", m["A"], 0.0)
    m.drive("rocker angle", m["D"], 0.0)
    assert m.assemble(restarts=4).status is cd.Status.STALLED
    assert m.assemble().status is cd.Status.CONFLICT


def test_names_do_not_change():
    m = cd.Mechanism("m")
    b = m.body("b")
    for item, attribute in ((b, "name"), (b, "is_ground"), (m, "name")):
        with pytest.raises(AttributeError):
            setattr(item, attribute, "q")


CALLS = {
    "a mass beyond floats": lambda m: m.body("c", mass=10**400),
    "a mass of True": lambda m: m.body("c", mass=True),
    "numbers as text": lambda m: m.body("c", position=("1", "2", "3")),
    "a set for a position": lambda m: m.body("c", position={1, 2, 3}),
    "a name that is no text": lambda m: m.body("\ud800"),
    "removal of a number": lambda m: m.remove(5),
    "removal of the ground": lambda m: m.remove(m.ground),
    "a list as a key": lambda m: m[["b"]],
    "a list as a key of a state": lambda m: m.state[["b"]],
    "coordinates of a result": lambda m: m["s"].coordinate(m.assemble()),
    "a point of two numbers": lambda m: m.state["b"].point((1, 2)),
    "squared by a word": lambda m: m.distance("d", m.ground.point(), m["b"].point(), 1.0, squared="no"),
    "a body given twice": lambda m: m.assemble({"b": ((0, 0, 0), (1, 0, 0, 0)), m["b"]: ((1, 0, 0), (1, 0, 0, 0))}),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_call_ends_in_a_clear_error(call):
    m = cd.Mechanism()
    m.spherical("s", m.ground.point(), m.body("b").point((1, 0, 0)))
    before = m.description()
    with pytest.raises(cd.ModelError) as caught:
        CALLS[call](m)
    assert str(caught.value) and m.description() == before


def test_help_shows_what_a_joint_takes():
    from cardan.joints.registry import REGISTRY

    assert list(inspect.signature(cd.Mechanism.distance).parameters) == ["self", "name", "a", "b", "length", "squared"]
    assert "at=" not in (cd.Mechanism.distance.__doc__ or "")
    for kind in REGISTRY.values():
        if kind.implied:  # it has no method
            continue
        shown = list(inspect.signature(getattr(cd.Mechanism, kind.name)).parameters)
        placed = kind.name != "distance" and kind.is_between_places
        assert (shown[-3:] == ["at", "axis", "x"]) == placed, kind.name
        assert ("at" in shown) == placed, kind.name


def test_poses_compare_by_value_and_half_turns_read_plus_pi():
    m = cd.Mechanism()
    b = m.body("b", orientation=(-1e-17, 0, 0, 1))
    m.revolute("hinge", m.ground.frame(), b.frame())
    assert m.state["b"] == m.state["b"] == pickle.loads(pickle.dumps(m.state))["b"]
    assert m["hinge"].coordinate(m.state) == math.pi
    assert copy.copy(m) == m


@pytest.mark.parametrize(("kind", "high"), [("point_in_plane", (0, 0, 2)), ("point_on_line", (2, 0, 0))])
def test_residuals_say_what_b_exceeds_a_by(kind, high):
    from cardan.coordinates import formulations

    m = cd.Mechanism()
    b = m.body("b", position=high)
    getattr(m, kind)("it", m.ground.point(), b.frame())
    q = formulations.to_reference(m.system, m.system.authored)
    assert formulations.problem(m.system, "manifold").residual(q).max() == 2.0


def test_redundancy_of_a_long_planar_linkage_is_found_in_time():
    """A scissor of 300 bars: 6 × 300 unknowns, all hinges parallel, one degree of freedom."""
    m = cd.Mechanism()
    bars = []
    half, c, s = 150, math.cos(0.5), math.sin(0.5)
    for k in range(half):
        for side in (1, -1):
            turn = (math.cos(side * 0.25), 0, 0, math.sin(side * 0.25))
            bars.append(m.body(f"bar {k} {side}", position=(2 * c * k, 0, 0), orientation=turn))
    for k in range(half):
        m.revolute(f"middle {k}", bars[2 * k].frame(), bars[2 * k + 1].frame())
        if k:
            m.revolute(f"top {k}", bars[2 * k - 2].frame((1, 0, 0)), bars[2 * k + 1].frame((-1, 0, 0)))
            m.revolute(f"bottom {k}", bars[2 * k - 1].frame((1, 0, 0)), bars[2 * k].frame((-1, 0, 0)))
    m.revolute("foot", m.ground.frame((-c, -s, 0)), bars[0].frame((-1, 0, 0)))
    m.point_on_line("slide", bars[1].point((-1, 0, 0)), m.ground.frame((-c, 0, 0), z=(0, 1, 0)))
    result = m.assemble()
    assert result.ok, result.text()
    report = m.diagnose(result.state)
    assert report.dof == 1
    assert len(report.redundant) == report.dof - report.gruebler
