"""Scenes: every joint and every mechanism of the gallery is drawn, and a scene survives as bytes."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan import shapes
from cardan.examples import CONTACTS, GALLERY
from cardan.joints import REGISTRY as KINDS
from cardan.math import euler
from cardan.view.hardware import teeth_of
from cardan.view.palette import colors_of
from cardan.view.render import render
from cardan.view.scene import scene, strut_matrix, unpack
from tests.mechanism.test_capabilities import CAPABILITIES, base

JOINTS = [name for name, kind in KINDS.items() if kind.is_between_places]
_scenes: dict = {}


def gallery(name):
    if name not in _scenes:
        m = GALLERY[name].build()
        state = m.assemble().state
        _scenes[name] = m, state, scene(m, state)
    return _scenes[name]


def world(drawn, poses=None):
    """All vertices in world, by part."""
    poses = drawn.poses if poses is None else poses
    found = {}
    for part, pose in zip(drawn.parts, poses, strict=True):
        rows = [pose[:3] + euler.rotate(pose[3:], mesh.vertices.astype(float)) for mesh in part.meshes]
        found[part.name] = np.concatenate(rows) if rows else np.empty((0, 3))
    return found


@pytest.mark.parametrize("name", GALLERY)
def test_every_mechanism_of_the_gallery_is_drawn(name):
    m, _, drawn = gallery(name)
    assert [part.name for part in drawn.parts] == ["ground", *m.bodies]
    points = world(drawn)
    for part in drawn.parts:
        assert part.meshes, part.name
        for mesh in part.meshes:
            assert np.isfinite(mesh.vertices).all() and np.isfinite(mesh.normals).all()
            assert mesh.faces.max() < len(mesh.vertices) and (
                mesh.edges.size == 0 or mesh.edges.max() < len(mesh.vertices)
            )
            assert np.abs(np.linalg.norm(mesh.normals, axis=1) - 1.0).max() < 1e-2
    every = np.concatenate(list(points.values()))
    assert np.linalg.norm(np.ptp(every, axis=0)) <= drawn.extent * (1 + 1e-6)
    assert np.linalg.norm(every - drawn.center, axis=1).max() <= 0.5 * drawn.extent * (1 + 1e-6)
    # The length of a system does not contain the sizes of the shapes of its contacts.
    largest = max(np.linalg.norm(np.ptp(points[body], axis=0)) for body in m.bodies) if name in CONTACTS else 0.0
    assert drawn.extent < 10.0 * max(m.system.judged_length, largest)  # not lost in empty space
    assert len(drawn.joints) == len(m.joints)


@pytest.mark.parametrize("name", GALLERY)
def test_parts_reach_their_joints(name):
    """Both bodies of a joint are drawn around or near it, so that the mechanism holds together to the eye."""
    m, _, drawn = gallery(name)
    parts = {part.name: np.concatenate([mesh.vertices for mesh in part.meshes]) for part in drawn.parts}
    size = 0.08 * drawn.extent
    for joint in m.joints.values():
        if joint.kind.name not in JOINTS or joint.kind.name in ("point_on_line", "prismatic", "cylindrical"):
            continue
        for end in (joint.a, joint.b):
            at = np.array(end.feature().value)
            low, high = parts[end.body.name].min(axis=0), parts[end.body.name].max(axis=0)
            assert (low - size < at).all() and (at < high + size).all(), (joint.name, end.body.name)


@pytest.mark.parametrize("kind", JOINTS)
def test_every_kind_of_joint_has_something_to_see(kind):
    m = base()
    CAPABILITIES[kind](m)
    without = base()
    part = m["part"]
    without.body("part", position=part.position, orientation=part.orientation)
    drawn, bare = (scene(x, x.assemble().state) for x in (m, without))
    count = {part.name: sum(len(mesh.faces) for mesh in part.meshes) for part in drawn.parts}
    other = {part.name: sum(len(mesh.faces) for mesh in part.meshes) for part in bare.parts}
    assert count["crank"] > other["crank"] or count["part"] > other["part"] or drawn.struts
    assert count["part"] > 0
    mark = next(joint for joint in drawn.joints if joint.name == "new")
    assert mark.kind == kind and set(mark.bodies) == {"crank", "part"}
    assert mark.coordinates.keys() == KINDS[kind].coordinates.keys()
    joint = m["new"]
    for place, end in ((mark.frame_a, joint.a), (mark.frame_b, joint.b)):
        assert place.origin == end.feature().value


@pytest.mark.parametrize("coupling", ["gear", "belt", "rack"])
def test_couplings_are_toothed_wheels_and_pulleys(coupling):
    m = base()
    plain = scene(m, m.assemble().state)
    CAPABILITIES[coupling](m)
    drawn = scene(m, m.assemble().state)
    faces = [sum(len(mesh.faces) for part in s.parts for mesh in part.meshes) for s in (plain, drawn)]
    assert faces[1] > faces[0] + 100


def test_generated_gears_have_the_ratio_and_touch():
    """Radii from ratio and centre distance; the numbers of teeth have exactly the ratio."""
    m = cd.Mechanism("pair")
    one, two = m.body("one"), m.body("two", position=(0.25, 0, 0))
    a = m.revolute("A", m.ground.frame(), one.frame())
    b = m.revolute("B", m.ground.frame((0.25, 0, 0)), two.frame())
    m.gear("mesh", a, b, ratio=-1.5)
    drawn = scene(m, m.assemble().state)
    points = world(drawn)
    r1, r2 = 0.25 * 1.5 / 2.5, 0.25 / 2.5
    z1, z2 = teeth_of(1.5, 60.0)
    assert z1 / z2 == 1.5
    module = 2 * r1 / z1
    assert module == pytest.approx(2 * r2 / z2)
    reach_1 = np.hypot(*points["one"][:, :2].T).max()
    reach_2 = np.hypot(*(points["two"][:, :2] - [0.25, 0.0]).T).max()
    assert reach_1 == pytest.approx(r1 + module, rel=1e-4)
    assert reach_2 == pytest.approx(r2 + module, rel=1e-4)


@pytest.mark.slow
def test_links_that_share_a_pin_lie_in_different_layers():
    """No two drawn links of a flat mechanism overlap along the hinges where they are pinned together."""
    for name in ("planar_4r", "peaucellier", "watt", "five_bar", "hoberman_ring"):
        m, state, drawn = gallery(name)
        points = world(drawn)
        colors = colors_of(m)
        spans = {}
        for part in drawn.parts[1:]:
            own = [mesh for mesh in part.meshes if mesh.color == colors[part.name]]
            pose = state[part.name]
            z = np.concatenate([pose.position[2] + (mesh.vertices @ pose.matrix.T)[:, 2] for mesh in own])
            spans[part.name] = z.min(), z.max()
        for joint in m.joints.values():
            if joint.kind.name == "revolute" and "ground" not in (b.name for b in joint.bodies):
                (low, high), (low_2, high_2) = (spans[body.name] for body in joint.bodies)
                assert high < low_2 or high_2 < low, (name, joint.name)
        assert points


@pytest.mark.slow
def test_neighbours_have_different_colours():
    for name in GALLERY:
        m, _, _ = gallery(name)
        colors = colors_of(m)
        for joint in m.joints.values():
            if joint.kind.name in JOINTS:
                a, b = (body.name for body in joint.bodies)
                assert colors[a] != colors[b], (name, joint.name)


@pytest.mark.parametrize("name", ["stewart_distance", "slider_crank", "strandbeest"])
def test_a_scene_survives_as_bytes(name):
    m, _, drawn = gallery(name)
    data = drawn.pack()
    header, blob = unpack(data)

    def read(entry, kind, width):
        offset, count = entry
        return np.frombuffer(blob, kind, count * width, offset).reshape(count, width)

    assert header["name"] == name and header["extent"] == drawn.extent
    assert len(header["parts"]) == len(drawn.parts)
    for packed, part in zip(header["parts"], drawn.parts, strict=True):
        assert packed["name"] == part.name
        for (index, color), mesh in zip(packed["meshes"], part.meshes, strict=True):
            stored = header["meshes"][index]
            assert np.array_equal(read(stored["vertices"], "<f4", 3), mesh.vertices)
            assert np.array_equal(read(stored["normals"], "<f4", 3), mesh.normals)
            assert np.array_equal(read(stored["faces"], "<u4", 3), mesh.faces)
            assert np.array_equal(read(stored["edges"], "<u4", 2), mesh.edges)
            assert tuple(color) == mesh.color
    assert np.array_equal(read(header["poses"], "<f4", 7), drawn.poses.astype(np.float32))
    assert [j["name"] for j in header["joints"]] == list(m.joints)
    assert len(header["struts"]) == len(drawn.struts) == sum(j.kind.name == "distance" for j in m.joints.values())
    arrays = ("vertices", "normals", "faces", "edges")
    total = sum(getattr(mesh, word).nbytes for part in drawn.parts for mesh in part.meshes for word in arrays)
    if name == "strandbeest":
        assert len(data) < 0.5 * total  # equal meshes are stored once


def test_struts_end_at_their_points():
    _, state, drawn = gallery("stewart_distance")
    strut = drawn.struts[2]
    a = np.array(strut.points[0])
    b = state["platform"].point(strut.points[1])
    matrix = strut_matrix(b - a)
    assert np.linalg.det(matrix) == pytest.approx(np.linalg.norm(b - a))
    assert matrix[:, 2] == pytest.approx(b - a)
    ends = a + strut.mesh.vertices @ matrix.T
    along = (ends - a) @ (b - a) / ((b - a) @ (b - a))
    assert along.min() == pytest.approx(0.0, abs=1e-6) and along.max() == pytest.approx(1.0, abs=1e-6)


def test_attached_shapes_replace_generated_ones():
    m = base()
    m["crank"].attach(shapes.box(1, 2, 3), m["crank"].frame((5, 0, 0)), color="#102030")
    drawn = scene(m, m.assemble().state)
    (mesh,) = next(part.meshes for part in drawn.parts if part.name == "crank")
    assert mesh.color == pytest.approx((16 / 255, 32 / 255, 48 / 255, 1.0))
    assert mesh.vertices.min(axis=0) == pytest.approx([4.5, -1, -1.5])
    assert mesh.vertices.max(axis=0) == pytest.approx([5.5, 1, 1.5])
    assert len(mesh.edges) == 12


def test_looks_scale_with_the_unit_and_follow_a_rigid_motion():
    """In other units, and moved as a whole, a mechanism looks the same."""

    def linkage(unit, position, p):
        m = cd.Mechanism(gravity=(0, 0, 0))
        base_frame = {"z": euler.rotate(p, np.array([0, 0, 1.0])), "x": euler.rotate(p, np.array([1.0, 0, 0]))}
        place = [position + unit * euler.rotate(p, np.array(q)) for q in ((0, 0, 0), (0.6, 0.8, 0), (3.0, 0, 0))]
        bodies = [m.body(name, position=q, orientation=p) for name, q in zip(("a", "b"), place, strict=False)]
        m.revolute("A", m.ground.frame(place[0], **base_frame), bodies[0].frame(x=(1, 0, 0)))
        m.revolute("B", bodies[0].frame(unit * np.array([0.6, 0.8, 0]), x=(1, 0, 0)), bodies[1].frame(x=(1, 0, 0)))
        m.spherical("C", bodies[1].point(unit * np.array([2.4, -0.8, 0])), m.ground.point(place[2]))
        return scene(m, m.state)

    rng = np.random.default_rng(7)
    reference = linkage(1.0, np.zeros(3), np.array([1.0, 0, 0, 0]))
    for unit in (1e-3, 50.0):
        moved = linkage(unit, rng.normal(size=3) * unit, euler.from_axis_angle((0, 0, 1), 0.4))
        for one, two in zip(reference.parts[1:], moved.parts[1:], strict=True):
            for a, b in zip(one.meshes, two.meshes, strict=True):
                assert a.faces.shape == b.faces.shape
                assert np.abs(a.vertices - b.vertices / unit).max() < 1e-5


def test_looks_follow_design_parameters():
    """Points, lengths and ratios that are parameters are drawn at their values in the state."""

    def linkage(length, ratio):
        m = cd.Mechanism()
        crank, wheel, bob = m.body("crank"), m.body("wheel"), m.body("bob", position=(0, 2, 0))
        p = m.parameter("L", length) if length != 1.5 else 1.5
        k = m.parameter("k", ratio) if length != 1.5 else ratio
        a = m.revolute("A", m.ground.frame(), crank.frame())
        b = m.revolute("B", crank.frame((p, 0, 0)), wheel.frame())
        m.gear("mesh", a, b, ratio=k)
        m.distance("rod", crank.point((p, 0, 0)), bob.point(), p)
        return m

    free, plain = linkage(1.0, -2.0), linkage(1.5, -3.0)
    free.parameters["L"].value, free.parameters["k"].value = 1.5, -3.0
    one, two = (scene(m, m.assemble().state) for m in (free, plain))
    assert one.pack() == two.pack()
    crank = free["crank"]
    with pytest.raises(cd.ModelError, match="was given a frame with parameters"):
        crank.attach(shapes.sphere(0.1), crank.frame((free.parameters["L"], 0, 0)))


def test_a_state_of_another_mechanism_is_refused():
    _, _, drawn = gallery("slider_crank")
    _, other, _ = gallery("watt")
    with pytest.raises(cd.ModelError, match="is not of the mechanism 'slider_crank'"):
        drawn.poses_of(other)


def test_a_shape_without_opacity_is_not_drawn_and_hides_nothing():
    m = cd.Mechanism()
    body = m.body("b")
    body.attach(shapes.box(1, 1, 1), color="#ff0000")
    seen = scene(m).parts[1].meshes
    body.attach(shapes.sphere(3), color="#00ff0000")
    assert len(scene(m).parts[1].meshes) == len(seen) == 1
    body.attach(shapes.sphere(2), color="#00ff0080")
    middle = render(scene(m), size=(40, 40))[20, 20].astype(int)
    assert middle[0] > middle[2] + 40, "the red box is not seen through the green glass"
    assert middle[1] > middle[2] + 20, "the glass is not seen"


@pytest.mark.parametrize("name", ["ball_in_bowl", "coin", "rattleback"])
def test_contacts_need_no_pedestal(name):
    assert len(scene(gallery(name)[0], gallery(name)[1]).parts[0].meshes) == 1


@pytest.mark.parametrize("kind", ["distance", "rack", "gear"])
def test_a_parameter_that_is_a_function_of_time_is_drawn_by_its_value(kind):
    """As the same number at the time of the state."""

    def drawn(value, time=0.0):
        m = cd.Mechanism("timed")
        crank, slide, wheel = (m.body(name, position=(k, 0, 0)) for k, name in enumerate(("crank", "slide", "wheel")))
        a = m.revolute("A", m.ground.frame(), crank.frame())
        p = m.prismatic("P", m.ground.frame(), slide.frame(z=(1, 0, 0)))
        w = m.revolute("W", m.ground.frame((2, 0, 0)), wheel.frame())
        if kind == "distance":
            m.distance("new", m.ground.point((0, 3, 0)), wheel.point((0, 1, 0)), value)
        else:
            word, other = ("radius", p) if kind == "rack" else ("ratio", w)
            getattr(m, kind)("new", a, other, **{word: value})
        return scene(m, m.state.with_time(time)).pack()

    assert drawn(lambda t: 2.0 + 0.5 * t, time=1.0) == drawn(2.5, time=1.0)
