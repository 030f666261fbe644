"""Laws of messages: causes of a failure in words, only constraints that are not met, wrong calls."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import verdict
from cardan.diagnosis.causes import causes, rings


def wheels(count):
    m = cd.Mechanism()
    for k in range(count):
        at = (np.cos(k), np.sin(k), 0.0)
        m.revolute(f"A{k}", m.ground.frame(at), m.body(f"wheel {k}", position=at).frame())
    return m


def ring(rng, count, ratio=0.0, phase=0.0):
    """Wheels in a ring: each gear in a random direction, ratios and phases of random angles; then two errors."""
    m = wheels(count + 1)
    size, shift = rng.choice([-1.0, 1.0], count) * rng.uniform(0.5, 2.0, count), rng.uniform(-1, 1, count)
    for k in range(count):  # wheel k rotates by size[k]·θ + shift[k]
        i, j = (k, (k + 1) % count) if rng.random() < 0.5 else ((k + 1) % count, k)
        r = size[j] / size[i]
        wrong = k == count - 1
        error = 1.0 + ratio if wrong else 1.0
        m.gear(f"g{k}", m[f"A{i}"], m[f"A{j}"], ratio=r * error, phase=shift[j] - r * shift[i] + phase * wrong)
    m.gear("branch", m["A0"], m[f"A{count}"], ratio=3.0)  # not part of the ring
    return m


@pytest.mark.parametrize("seed", range(20))
def test_a_ring_of_gears_is_named_if_its_ratios_or_phases_do_not_close(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 9))
    assert rings(ring(rng, count).system) == []
    for error in (1e-7, -1e-3, 0.5):
        (text,) = rings(ring(rng, count, ratio=error).system)
        assert "total ratio of 1 " in text and "branch" not in text
        assert all(f"'g{k}'" in text for k in range(count))
        stated = float(text.split("ratio of 1 ")[1].split(";")[0].replace("− ", "-").replace("+ ", ""))
        assert min(abs(stated - error), abs(stated - (1 / (1 + error) - 1))) <= 6e-3 * abs(error)  # either way around
        (text,) = rings(ring(rng, count, phase=error).system)
        assert "phases add up to" in text and all(f"'g{k}'" in text for k in range(count))


def test_a_ring_of_gears_that_is_wrong_by_1e_7_is_named_in_every_report():
    m = ring(np.random.default_rng(3), 4, ratio=1e-7)
    assert "form a ring with a total ratio of 1 " in m.diagnose().text()
    assert m.diagnose().notes == tuple(rings(m.system))
    m.drive("motor", m["A0"], lambda t: 1.0 + t)
    result = m.assemble()
    assert not result.ok and "form a ring with a total ratio of 1 " in result.text()
    m = wheels(3)
    for k in range(3):
        m.gear(f"g{k}", m[f"A{k}"], m[f"A{(k + 1) % 3}"], ratio=1.0 + 1e-7 * (k == 0))
    m.drive("motor", m["A0"], lambda t: t)
    motion = m.move([0.0, 1.0])
    assert not motion.ok and motion.states and "form a ring with a total ratio of 1 " in motion.text()
    assert ring(np.random.default_rng(3), 4).diagnose().notes == ()


def crank_and_slide():
    m = cd.Mechanism()
    crank, block = m.body("crank"), m.body("block", position=(2, 0, 0))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.prismatic("P", m.ground.frame(z=(1, 0, 0)), block.frame(z=(1, 0, 0)))
    m.distance("rod", crank.point((1, 0, 0)), block.point(), 2.0)
    return m


def two_drivers(m):
    m.drive("d1", m["A"], 0.3)
    m.drive("d2", m["A"], lambda t: 0.5 + t)
    return "driver 'd1' and driver 'd2' contradict each other: they set the same coordinate to 0.3 rad and to 0.5 rad"


def driven_rod(m):
    m.drive("d", m["rod"], 2.5)
    return "contradict each other: they set the same coordinate to 2 m and to 2.5 m; to drive it, remove 'rod'"


def driven_squared_rod(m):
    m.remove("rod")
    m.distance("rod", m["crank"].point((1, 0, 0)), m["block"].point(), 2.0, squared=True)
    return driven_rod(m)


def driven_beyond_a_limit(m):
    m.limit("stop", m["A"], lower=-0.2, upper=0.2)
    m.drive("d", m["A"], 0.3)
    return "driver 'd' sets its coordinate to 0.3 rad, above the upper bound 0.2 rad of limit 'stop'"


def driven_far_away(m):
    m.remove("rod")
    m.distance("loose", m["crank"].point((1, 0, 0)), m.ground.point(), 1.0)
    m.body("arm", position=(2, 0, 0))
    m.revolute("B", m["block"].frame(), m["arm"].frame((0.5, 0, 0)))
    m.revolute("C", m["block"].frame((0, 1, 0)), m["arm"].frame((0.5, 1, 0)))
    m.drive("d", m["P"], 1e9)
    return "driver 'd' sets its coordinate to 1e+09 m, but the extent of the mechanism is"


def driven_out_of_reach(m):
    m.drive("d", m["P"], 9.0)
    return "without driver 'd' it can be assembled: the joints do not allow its value"


def one_of_two_out_of_reach(m):
    m.drive("d1", m["A"], 0.3)
    m.drive("d2", m["P"], 9.0)
    return "contradict the joints or each other; it suffices to remove 'd2'"


CAUSES = [two_drivers, driven_rod, driven_squared_rod, driven_beyond_a_limit, driven_far_away]


@pytest.mark.parametrize("cause", [*CAUSES, driven_out_of_reach, one_of_two_out_of_reach])
def test_a_cause_is_named_in_words(cause):
    m = crank_and_slide()
    assert m.assemble().ok and causes(m.system, 0.0) == []
    expected = cause(m)
    result = m.assemble()
    assert not result.ok
    assert expected in result.text()
    if cause in CAUSES:
        assert any(expected in text for text in causes(m.system, 0.0))


def test_a_slide_without_a_size_that_is_driven_far_away_is_named():
    m = cd.Mechanism()
    m.drive("d", m.prismatic("P", m.ground.frame(), m.body("b").frame()), lambda t: 1e9 * t)
    assert m.assemble(time=0.0).ok
    (text,) = causes(m.system, 1.0)
    assert text == "driver 'd' sets its coordinate to 1e+09 m, but the model has no other length; check the unit"


def test_equal_values_are_no_cause():
    m = crank_and_slide()
    m.drive("d1", m["A"], 0.3)
    m.drive("d2", m["A"], lambda t: 0.1 + 0.2 + t)
    m.limit("stop", m["A"], lower=0.3, upper=1.0)
    m.distance("again", m["crank"].point((1, 0, 0)), m["block"].point(), 2.0)
    assert causes(m.system, 0.0) == []
    assert len(causes(m.system, 1.0)) == 2  # the drivers differ, and one is beyond the limit


@pytest.mark.parametrize("seed", range(10))
def test_worst_lists_what_is_not_met_and_nothing_else(seed):
    """Two pieces of very different size, one of which cannot be assembled; judged row by row in NumPy."""
    rng = np.random.default_rng([seed, 1])
    m = cd.Mechanism()
    for tag, u in (("small", 1e-3), ("large", 10.0)):
        a, b = (m.body(f"{name} {tag}", position=rng.normal(size=3) * u) for name in "ab")
        m.revolute(f"A {tag}", m.ground.frame(), a.frame())
        m.spherical(f"S {tag}", a.point((u, 0, 0)), b.point())
        m.distance(f"D {tag}", b.point((2 * u, 0, 0)), m.ground.point((3 * u, 0, 0)), 1.5 * u)
    bad = ("small", "large")[seed % 2]
    u = {"small": 1e-3, "large": 10.0}[bad]
    m.distance(f"E {bad}", m[f"b {bad}"].point(), m.ground.point(), 50 * u)
    result = m.assemble()
    assert not result.ok and result.worst
    lengths = {row.constraint: piece.system.length for piece in m.system.pieces for row in piece.system.rows}
    listed = {(v.name, v.unit) for v in result.worst}
    found = verdict.residuals(m.system, result.state.coordinates)
    unmet = set()
    for name, primitive, start in m.system.rows:
        for i in range(primitive.rows):
            bound = 1e-12 * (lengths[name] if primitive.units[i] == "m" else 1.0)
            if abs(found[start + i]) > bound:
                unmet.add((name, primitive.units[i]))
    assert listed == unmet
    assert all(bad in v.name for v in result.worst)
    assert {v.name for v in result.residuals} == set(m.joints)
    report = m.diagnose(result.state)
    assert report.worst == result.worst and report.residuals == result.residuals
    assert m.assemble(tolerance=0.9).worst == []


def test_counts_of_one_are_singular():
    m = crank_and_slide()
    assert "0 restarts" in m.assemble().text()
    found = set()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        start = {name: (rng.normal(size=3), rng.normal(size=4)) for name in m.bodies}
        result = m.assemble(start)
        found.add(result.restarts)
        assert (", 1 restart," in result.text()) == (result.restarts == 1) == (", 1 restart," in repr(result))
        if 1 in found:
            break
    result = m.assemble({"crank": ((1e-8, 0, 0), (1, 0, 0, 0))}, max_iterations=1, restarts=0)
    assert result.iterations == 1 and ", 1 iteration, 0 restarts," in result.text()


# --- wrong calls ------------------------------------------------------------------------------------------------------


def shaft():
    m = cd.Mechanism()
    shaft, ball = m.body("shaft"), m.body("ball")
    m.cylindrical("C", m.ground.frame(), shaft.frame())
    m.spherical("S", shaft.point((1, 0, 0)), ball.point())
    return m


@pytest.mark.parametrize("use", ["assemble", "assemble_many", "session", "diagnose"])
def test_a_state_too_far_away_to_square_is_refused(use):
    """A dict of poses was refused, a state was not."""
    m = shaft()
    for axis in range(3):
        coordinates = m.state.coordinates.copy()
        coordinates[1, axis] = -1e160
        far = m.system.state(coordinates)
        with pytest.raises(cd.ModelError, match=r"'ball'.*-1e\+160.*exceed 1e\+150"):
            getattr(m, use)([m.state, far] if use == "assemble_many" else far)


@pytest.mark.parametrize("far", [1e20, 1e80, 1e149])
def test_a_diagnosis_far_away_has_motions_too(far):
    m = shaft()
    coordinates = m.state.coordinates.copy()
    coordinates[:, 0] = far
    report = m.diagnose(m.system.state(coordinates))
    assert len(report.motions) == len(report.free_motions) == report.dof
    assert np.isfinite(report.motions).all() and report.text()


def test_an_error_says_which_start_of_a_list_is_wrong():
    m = shaft()
    broken = m.state.coordinates.copy()
    broken[0, 2] = np.nan
    fine = [None, m.state, {}]
    for wrong, error, text in (
        (m.system.state(broken), cd.ModelError, "'shaft'.*finite"),
        ({"ball": ((0, 0, 0), (0, 0, 0, 0))}, cd.ModelError, "'ball'.*zero"),
        ({"bal": ((0, 0, 0), (1, 0, 0, 0))}, cd.UnknownNameError, "'bal'.*'ball'"),
    ):
        for k in range(4):
            with pytest.raises(error, match=rf"^start {k}: .*{text}"):
                m.assemble_many([*fine[:k], wrong, *fine[k:]])


def test_the_coordinate_of_a_joint_that_has_two_must_be_named():
    m = shaft()
    with pytest.raises(cd.ModelError, match=r"'C' \(cylindrical\) has 2 coordinates, 'angle', 'displacement'; name"):
        m["C"].coordinate(m.state)
    with pytest.raises(cd.ModelError, match=r"'S' \(spherical\) has no coordinates; use cd.coordinate"):
        m["S"].coordinate(m.state)
    with pytest.raises(cd.ModelError, match="has no coordinate 'turn'; it has 'angle', 'displacement'"):
        m["C"].coordinate(m.state, "turn")


def test_an_unknown_option_is_refused_with_a_suggestion():
    with pytest.raises(cd.UnknownNameError, match="'tolerence'; did you mean 'tolerance'"):
        cd.AssemblyOptions(tolerence=1e-9)
    options = cd.AssemblyOptions("newton", tolerance=1e-9)
    assert pickle.loads(pickle.dumps(options)) == copy.deepcopy(options) == options
    assert dataclasses.replace(options, seed=3) == cd.AssemblyOptions(method="newton", tolerance=1e-9, seed=3)
