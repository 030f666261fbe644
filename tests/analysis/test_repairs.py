"""Laws of repairs: a usual mistake is found and undone, in words; nothing is offered that does not close."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.repair_changes import changed, changes
from cardan.cli import main
from cardan.coordinates import verdict
from cardan.math import euler
from mechanisms import random_quaternion, rotation

Z = np.array([0.0, 0.0, 1.0])


def linkage(rng, count, mistake=None):
    """A planar loop of links in random axes of every body, drawn closed, with a mistake that is made in one joint.

    mistake(k, side, place, z) → place, z: of joint k on the link before (side 0) and after it (side 1).
    """
    m = cd.Mechanism("linkage")
    R = rotation(rng.normal(size=3), rng.uniform(0, 3))
    corners = [R @ [np.cos(t), np.sin(t), 0.1 * np.sin(5 * t)] for t in np.sort(rng.uniform(0, 6.2, count))]
    turns = [np.array([1.0, 0.0, 0.0, 0.0]), *[random_quaternion(rng) for _ in range(count - 1)]]
    origins = [np.zeros(3), *[c + rng.uniform(-0.3, 0.3, 3) for c in corners[1:]]]
    bodies = [m.ground]
    bodies += [m.body(f"link {k}", position=origins[k], orientation=turns[k]) for k in range(1, count)]
    for k in range(count):  # joint k is at corner k, between link k and link k + 1
        ends = []
        for side, link in enumerate((k, (k + 1) % count)):
            inverse = euler.conjugate(turns[link])
            place, z = euler.rotate(inverse, corners[k] - origins[link]), euler.rotate(inverse, R @ Z)
            if mistake is not None:
                place, z = mistake(k, side, place, z)
            ends.append(bodies[link].frame(place, z=z))
        m.revolute(f"J{k}", *ends)
    return m


def reversed_at(joint, side):
    return lambda k, s, place, z: (place, -z if (k, s) == (joint, side) else z)


def scaled_at(joint, side, factor):
    return lambda k, s, place, z: (place * factor if (k, s) == (joint, side) else place, z)


@pytest.mark.parametrize("seed", range(3))
def test_a_reversed_axis_in_a_planar_loop_is_found(seed):
    rng = np.random.default_rng(seed)
    count, joint, side = int(rng.integers(4, 8)), int(rng.integers(4)), seed % 2
    assert linkage(np.random.default_rng(seed + 50), count).assemble().ok
    m = linkage(np.random.default_rng(seed + 50), count, reversed_at(joint, side))
    before = m.copy()
    result = m.assemble()
    assert result.status is cd.Status.CONFLICT
    first = result.repairs[0]
    assert (first.kind, first.names, first.size) == ("reverse axis", (f"J{joint}",), 0.0) and first.apart < 1e-6
    assert f"it can be assembled with one change: {first.text}" in result.text()
    assert first.text.startswith(f"reverse axis z of 'J{joint}' on ")
    assert result.repairs == m.assemble().repairs  # the same again
    assert m == before and [r.size for r in result.repairs] == sorted([r.size for r in result.repairs])
    assert result.as_dict()["repairs"][0]["names"] == [f"J{joint}"]
    json.dumps(result.as_dict())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_a_length_in_another_unit_is_found(seed, factor):
    rng = np.random.default_rng(seed)
    count, joint, side = int(rng.integers(4, 7)), int(rng.integers(4)), seed % 2
    m = linkage(np.random.default_rng(seed + 80), count, scaled_at(joint, side, factor))
    result = m.assemble()
    if result.ok:  # a link that is too short may fit
        assert factor < 1.0 and result.repairs == []
        return
    assert [(r.kind, r.names) for r in result.repairs if r.apart < 1e-6] == [("scale length", (f"J{joint}",))]
    words = "divide the place" if factor > 1.0 else "multiply the place"
    (found,) = [r for r in result.repairs if r.apart < 1e-6]
    assert found.text.startswith(words) and "by 1000" in found.text


def crank_slider(length=2.0, stroke=2.0, place=(1.0, 0, 0)):
    """A crank of 1 m with a rod of 2 m to a block on a rail that is 0.5 m aside; the block is held."""
    m = cd.Mechanism("crank and slider")
    crank, block = m.body("crank"), m.body("block", position=(2.0, 0.5, 0))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.prismatic("P", m.ground.frame((0, 0.5, 0), z=(1, 0, 0)), block.frame(z=(1, 0, 0)))
    m.distance("rod", crank.point(place), block.point(), length)
    m.drive("hold", m["P"], stroke)
    return m


def test_the_length_of_a_rod_a_parameter_and_a_single_coordinate_are_found():
    assert crank_slider().assemble().ok
    (repair,) = crank_slider(2000.0).assemble().repairs
    assert (repair.kind, repair.names, repair.size) == ("scale length", ("rod",), 1998.0)
    assert repair.text == "divide length of 'rod' by 1000: 2000 mm instead of 2e+06 mm"
    m = cd.Mechanism("with a parameter")
    length = m.parameter("length", 2000.0)
    arm = m.body("arm")
    m.revolute("A", m.ground.frame(), arm.frame())
    m.distance("rod", arm.point((1, 0, 0)), m.ground.point((2.5, 0, 0)), length)
    repairs = m.assemble().repairs
    assert [repair.names for repair in repairs] == [("length",)]
    assert repairs[0].text == "divide parameter 'length' by 1000: 2 instead of 2000"
    assert m.parameters["length"].value == 2000.0
    repair = crank_slider(place=(0.8, 600.0, 0)).assemble().repairs[0]
    assert repair.names == ("rod",) and repair.text.startswith("divide y of the place of 'rod' on 'crank' by 1000")
    assert repair.text.endswith("(800 mm, 600 mm, 0 mm) instead of (800 mm, 600000 mm, 0 mm)")


def test_exchanged_places_are_found():
    """A tripod of rods whose feet are far from each other: two of them exchanged, and the two ends of one exchanged."""

    def tripod(feet, tops):
        m = cd.Mechanism("tripod")
        top = m.body("top", position=(0.2, 0.1, 2.0))
        m.fixed("guide", m.ground.frame((0.2, 0.1, 2.0)), top.frame())
        for k, (foot, at) in enumerate(zip(feet, tops, strict=True)):
            m.spherical(f"foot {k}", m.ground.point(foot), m.body(f"leg {k}", position=foot).point())
            reach = np.array([0.2, 0.1, 2.0]) + GOOD[1][k] - GOOD[0][k]
            m.spherical(f"top {k}", m[f"leg {k}"].point(reach), top.point(at))
        return m

    GOOD = (
        np.array([[3.0, 0, 0], [-1, 1.5, 0], [-1, -1.5, 0.3]]),
        np.array([[0.5, 0, 0], [-0.3, 0.4, 0.1], [-0.2, -0.4, 0]]),
    )
    assert tripod(*GOOD).assemble().ok
    m = tripod(GOOD[0][[1, 0, 2]], GOOD[1])
    found = {repair.names for repair in m.assemble().repairs}
    assert ("foot 0", "foot 1") in found or ("foot 1", "foot 0") in found
    # a hinge with its places on the two bodies exchanged: (0.3, 0, 1) on the ground and (0, 0, 1.7) on the arm
    m = cd.Mechanism("hinges")
    arm = m.body("arm")
    m.revolute("A", m.ground.frame((0.3, 0, 0)), arm.frame((0, 0, 0.7)))
    m.revolute("B", m.ground.frame((0, 0, 1.7)), arm.frame((0.3, 0, 1.0)))
    assert "exchange the places of 'B' on 'ground' and on 'arm'" in [repair.text for repair in m.assemble().repairs]


def test_no_repair_is_offered_if_none_closes_or_nothing_is_wrong():
    m = cd.Mechanism()
    arm = m.body("arm")
    m.revolute("A", m.ground.frame(), arm.frame())
    m.distance("rod", m.ground.point((3, 0, 0)), arm.point((1, 0, 0)), 0.5)
    result = m.assemble()
    assert result.status is cd.Status.CONFLICT and result.repairs == [] and "one change" not in result.text()
    assert "seem to contradict each other" in result.text()
    assert crank_slider().assemble().repairs == [] and crank_slider(9.0).assemble(restarts=0).repairs == []


KINDS = {
    "revolute": {},
    "prismatic": {},
    "cylindrical": {},
    "spherical": {},
    "universal": {},
    "planar": {},
    "fixed": {},
    "screw": {"pitch": 0.3, "offset": 0.1},
    "distance": {"length": 1.3},
    "angle": {"angle": 0.7},
    "parallel": {},
    "perpendicular": {},
    "orientation": {},
    "point_on_line": {},
    "point_in_plane": {},
    "line_distance": {"distance": 0.4},
    "plane_distance": {"distance": 0.4},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_system_is_that_of_the_mechanism_built_with_the_change(kind):
    """The oracle is the model built again with other frames or options: equal residuals in random poses, of the joint
    and of drivers, limits and couplings of its coordinates."""
    rng = np.random.default_rng(3)
    frames = [(rng.normal(size=3), random_quaternion(rng)) for _ in range(2)]
    other = rng.normal(size=3)

    def built(places, other, options):
        m = cd.Mechanism(kind)
        a, b = m.body("a", position=(0.1, 0.2, 0.3)), m.body("b")
        ends = [
            body.frame(p, z=euler.matrix(q)[:, 2], x=euler.matrix(q)[:, 0])
            for body, (p, q) in zip((a, b), places, strict=True)
        ]
        joint = getattr(m, kind)("J", *ends, **options)
        m.revolute("other", m.ground.frame((1, 2, 3)), a.frame(other))
        for word in joint.kind.coordinates:
            coordinate = joint.of(word)
            m.drive(f"drive {word}", coordinate, lambda t: 0.3 + t)
            m.limit(f"limit {word}", coordinate, lower=3.0)
            if coordinate.kind == "angle":
                m.gear(f"gear {word}", m["other"], coordinate, ratio=2.0)
        return m

    m = built(frames, other, KINDS[kind])
    drawing = m._model.drawing
    tried = list(changes(drawing, [m["J"]], [m["other"]]))
    assert {change.kind for change in tried} >= {"exchange places", "scale length"}
    for change in tried:
        places, moved_other, options = [list(frame) for frame in frames], other, dict(KINDS[kind])
        for move in change.moves:
            if move.joint == "J":
                at = euler.canonical(euler.multiply(quaternion_of(move.M), places[move.end][1]))
                places[move.end] = [move.to, at]
            elif move.end == 1:
                moved_other = move.to
            else:
                break  # the hinge on the ground is not built with parameters here
        else:
            if change.option is not None:
                _, word, factor = change.option
                options[word] *= factor
            made = changed(drawing, m.system, change)
            expected = built(places, moved_other, options)
            state = m.state.moved({name: (rng.normal(size=3), random_quaternion(rng)) for name in ("a", "b")})
            near = np.zeros(len(made.counted_angles))
            found, wanted = (
                verdict.judge_system(s, state.coordinates, near, 1e-12, 0.2)[1] for s in (made, expected.system)
            )
            assert np.allclose(found, wanted, atol=1e-9), (change.text, found - wanted)
            assert made.length == pytest.approx(expected.system.length, rel=1e-9)


def quaternion_of(M):
    from cardan.system.parts import quaternion_from_columns

    return np.array(quaternion_from_columns(*M.T))


def test_the_command_line_tells_repairs(tmp_path, capsys):
    m = crank_slider(2000.0)
    m.save(tmp_path / "slider.cardan.toml")
    for verb in ("check", "solve"):
        assert main([verb, str(tmp_path / "slider.cardan.toml")]) == 1
        assert "it can be assembled with one change: divide length of 'rod' by 1000" in capsys.readouterr().out
        assert main([verb, str(tmp_path / "slider.cardan.toml"), "--json"]) == 1
        (repair,) = json.loads(capsys.readouterr().out)["repairs"]
        assert repair["kind"] == "scale length" and repair["names"] == ["rod"] and repair["size"] == 1998.0


def test_a_conflict_is_pickled_whatever_the_loads_are():
    """Repairs need the mechanism; a function that cannot be pickled must not keep the result from another process."""
    m = crank_slider(2000.0)
    again = pickle.loads(pickle.dumps(m.assemble()))
    assert [repair.text for repair in again.repairs] == [repair.text for repair in m.assemble().repairs] != []
    body = next(iter(m.bodies.values()))
    m.force("gust", body.point(), lambda t, state: (1.0, 0.0, 0.0))
    again = pickle.loads(pickle.dumps(m.assemble()))
    assert again.status == "conflict" and again.repairs == []
