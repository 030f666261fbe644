"""Joints of a CAD file that are accepted, refused, or made from picked faces."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

import cardan as cd
from cardan.math import euler
from later import Later
from tests.cad.test_step import four_bar

steps = Later("tests.cad.steps")


@pytest.fixture(scope="module")
def linkage(tmp_path_factory):
    path = tmp_path_factory.mktemp("draft") / "four bar.step"
    steps.write(path, four_bar())
    return cd.load_step(path)


@pytest.fixture(scope="module")
def scattered(tmp_path_factory):
    """The same parts, anywhere."""
    rng = np.random.default_rng(4)
    path = tmp_path_factory.mktemp("draft") / "scattered.step"
    tree = [[n, s, (rng.uniform(-300, 300, 3), steps.unit_quaternion(rng)), c] for n, s, _, c in four_bar()]
    steps.write(path, tree)
    return cd.load_step(path)


@pytest.mark.slow
def test_every_triangle_belongs_to_a_face_and_a_point_on_it_picks_that_face(linkage):
    rng = np.random.default_rng(2)
    for part in linkage.parts:
        vertices, corners, owners = part.mesh.vertices, part.mesh.faces, part.triangle_faces
        assert owners.shape == (len(corners),) and set(owners) == set(range(len(part.faces)))
        for k in rng.integers(len(corners), size=20):
            weights = rng.dirichlet((3.0, 3.0, 3.0))
            at = weights @ vertices[corners[k]]
            assert part.face_at(at.astype(np.float32)).number == owners[k]
            assert len(part.faces[int(owners[k])].triangles) == np.count_nonzero(owners == owners[k])


def test_distances_to_triangles_are_those_of_many_points_on_them():
    from cardan.cad.parts import distances

    rng = np.random.default_rng(9)
    triangles = rng.standard_normal((20, 3, 3))
    grid = np.array([(a, b) for a in np.linspace(0, 1, 80) for b in np.linspace(0, 1 - a, 80)])
    weights = np.column_stack([grid, 1.0 - grid.sum(axis=1)])
    for point in rng.standard_normal((10, 3)):
        brute = np.linalg.norm(weights @ triangles - point, axis=2).min(axis=1)
        found = distances(point, triangles)
        assert np.all(found <= brute + 1e-12) and np.abs(found - brute).max() < 0.03


def test_refused_joints_are_left_out_and_the_rest_is_saved(linkage, tmp_path):
    draft = cd.cad.Draft(linkage)
    assert draft.ground == "base" and draft.diagnose().dof == 1
    draft.refuse("coupler - rocker")
    assert draft.diagnose().dof == 3 and not any(p.mark for p in draft.proposals.values())
    draft.save(tmp_path / "open.cardan.toml")
    assert {*cd.load(tmp_path / "open.cardan.toml").joints} == {"base.fixed", *draft.proposals} - {"coupler - rocker"}
    draft.accept("coupler - rocker")
    assert draft.diagnose().dof == 1
    told = json.loads(json.dumps(draft.as_dict()))
    assert [one["name"] for one in told["joints"]] == list(draft.proposals)
    for one in told["joints"]:
        for f, g in one["faces"]:
            assert draft.pick(one["a"], f).kind == draft.pick(one["b"], g).kind
    with pytest.raises(cd.UnknownNameError, match="coupler - rocker"):
        draft.refuse("coupler - roker")
    with pytest.raises(cd.ModelError, match="number of a face of part 'base'"):
        draft.pick("base", 99)


def hinge(draft, assembly, a, at_a, b, at_b, **options):
    """A hinge on the cylinders nearest to two points [m], each in the axes of its part."""
    f, g = assembly[a].cylinders().nearest(at_a), assembly[b].cylinders().nearest(at_b)
    return draft.join(f, g, "revolute", **options)


@pytest.mark.slow
def test_scattered_parts_are_hinged_on_picked_cylinders_and_close(scattered):
    draft = cd.cad.Draft(scattered)
    assert not draft.proposals
    hinge(draft, scattered, "base", (0, 0, 0), "crank", (0, 0, 0))
    hinge(draft, scattered, "crank", (0.03, 0, 0), "coupler", (0, 0, 0.003))
    hinge(draft, scattered, "coupler", (0.09, 0, 0.003), "rocker", (0.07, 0, 0))
    hinge(draft, scattered, "rocker", (0, 0, 0), "base", (0.1, 0, 0))
    m = draft.mechanism()
    result = m.assemble()
    assert result.ok and result.residual <= 1e-9
    ends = [("base", (0, 0, 0.003), "crank", (0, 0, 0.003)), ("base", (0.1, 0, 0.003), "rocker", (0, 0, 0.003))]
    for a, p, b, q in ends:
        world = [
            result.state[n].position + euler.rotate(result.state[n].quaternion, np.array(x))
            for n, x in ((a, p), (b, q))
        ]
        np.testing.assert_allclose(*world, atol=1e-10)
    assert draft.diagnose().dof == 1


def test_a_picked_joint_that_cannot_be_met_is_marked_as_contradictory(scattered):
    draft = cd.cad.Draft(scattered)
    hinge(draft, scattered, "base", (0, 0, 0), "crank", (0, 0, 0))
    wrong = hinge(draft, scattered, "crank", (0.03, 0, 0), "base", (0.1, 0, 0), flip=False)  # 30 mm is not 100
    assert wrong.name == "crank - base"
    draft.diagnose()
    assert draft["base - crank"].mark == "" and draft["crank - base"].mark.startswith("contradictory")
    draft.refuse("crank - base")
    draft.diagnose()
    assert wrong.mark == ""


def test_picks_that_give_no_joint_are_refused_by_name(linkage, scattered):
    draft = cd.cad.Draft(linkage)
    base, crank = linkage["base"], linkage["crank"]
    assert cd.cad.kinds_of(base.cylinders()[0], crank.cylinders()[0])[0] == "cylindrical"
    assert cd.cad.kinds_of(base.planes()[0], crank.planes()[0]) == ("planar", "fixed")
    assert draft.join(base.planes()[0], crank.planes()[0]).name == "base - crank 2"
    with pytest.raises(cd.ModelError, match="a plane of part 'base' and a cylinder of 'crank' give no joint"):
        draft.join(base.planes()[0], crank.cylinders()[0])
    with pytest.raises(cd.ModelError, match="both picks are on part 'base'"):
        draft.join(base.cylinders()[0], base.cylinders()[1])
    with pytest.raises(cd.ModelError, match="kind='gear'; it must be one of"):
        draft.join(base.cylinders()[0], crank.cylinders()[0], "gear")
    with pytest.raises(cd.ModelError, match="of another assembly"):
        draft.join(base.cylinders()[0], scattered["crank"].cylinders()[0])
    with pytest.raises(cd.ModelError, match="there is a joint 'base - crank' already"):
        draft.join(base.cylinders()[0], crank.cylinders()[0], name="base - crank")


def pair(tmp_path, first, second, placement=((100, 0, 30),)):
    """Two parts, the second elsewhere."""
    path = tmp_path / "pair.step"
    steps.write(path, [["first", first, (), None], ["second", second, placement, None]])
    return cd.load_step(path)


def test_planes_with_one_normal_become_flush_and_others_face_each_other(tmp_path):
    """Where the normals agree, in the file or in a state, no part is turned over."""
    parts = pair(tmp_path, steps.box((80, 60, 10)), steps.box((40, 40, 20)))
    up, top = (
        next(f for f in parts[name].planes().parallel((0, 0, 1)) if f.z[2] > 0.0) for name in ("first", "second")
    )
    down = next(f for f in parts["second"].planes().parallel((0, 0, 1)) if f.z[2] < 0.0)
    turned = (0.0, 1.0, 0.0, 0.0)  # half a turn about x
    for face, orientation, is_flush in (
        (top, None, True),
        (down, None, False),
        (top, turned, False),
        (down, turned, True),
    ):
        draft = cd.cad.Draft(parts, ground="first")
        state = None if orientation is None else draft.mechanism().state.moved({"second": ((0.1, 0, 0.1), orientation)})
        made = draft.join(up, face, state=state)
        assert ("flush" in made.reason) == is_flush
        m = draft.mechanism()
        result = m.assemble(m.state if state is None else m.state.moved({"second": ((0.1, 0, 0.1), orientation)}))
        normal = euler.rotate(result.state["second"].quaternion, face.z)
        level = result.state["second"].point(face.center)[2]
        assert result.ok and normal[2] == pytest.approx(1.0 if is_flush else -1.0, abs=1e-9)
        assert level == pytest.approx(5e-3, abs=1e-9)
        same = np.array([1.0, 0, 0, 0] if orientation is None else orientation)
        assert abs(result.state["second"].quaternion @ same) == pytest.approx(1.0, abs=1e-9)  # nothing was turned


@pytest.mark.parametrize(
    ("pin", "bore", "words"),
    [(6, 5, "the bore of radius 5 mm is smaller than the pin of radius 6 mm"), (5, 5, ""), (5, 6, "")],
)
def test_a_bore_that_is_smaller_than_its_pin_is_told(tmp_path, pin, bore, words):
    plate = steps.cut(steps.box((40, 40, 10)), steps.cylinder(bore, 40, (0, 0, -20)))
    parts = pair(tmp_path, steps.fuse(steps.box((80, 60, 10)), steps.cylinder(pin, 30, (0, 0, 5))), plate)
    draft = cd.cad.Draft(parts, ground="first")
    for a, b in (("first", "second"), ("second", "first")):
        made = draft.join(parts[a].cylinders()[0], parts[b].cylinders()[0], "revolute")
        assert made.misfit == made.mark == words
        assert ("a radial clearance of 1 mm" in made.reason) == (bore > pin)
        draft.diagnose()
        assert made.mark.startswith(words)
        draft.refuse(made.name)


def test_a_ball_and_a_cone_that_do_not_fit_are_told(tmp_path):
    block = steps.box((40, 40, 40))
    socket = pair(tmp_path, steps.sphere(10), steps.cut(block, steps.sphere(8, (0, 0, 20))))
    made = cd.cad.Draft(socket).join(socket["first"].spheres()[0], socket["second"].spheres()[0])
    assert made.misfit == "the socket of radius 8 mm is smaller than the ball of radius 10 mm"
    seat = pair(tmp_path, steps.cone(8, 4, 10), steps.cut(block, steps.cone(8, 2, 10)))
    made = cd.cad.Draft(seat).join(seat["first"].cones()[0], seat["second"].cones()[0])
    assert made.misfit == "the cone has a half angle of 21.8°, its seat 30.96°"


def test_saved_models_have_no_rounding_noise(tmp_path):
    """Parts that are turned, and joints on their faces: zeros are zeros."""
    plate = steps.cut(steps.box((120, 24, 12), (48, 0, 0)), steps.cylinder(8, 40, (0, 0, -20)))
    parts = pair(tmp_path, steps.fuse(steps.box((80, 60, 10)), steps.cylinder(8, 30, (0, 0, 5))), plate,
                 ((0, 0, 11), (np.cos(0.6), 0.0, 0.0, np.sin(0.6))))  # fmt: skip
    draft = cd.cad.Draft(parts)
    assert draft.proposals
    draft.join(parts["first"].planes()[0], parts["second"].planes()[0])
    draft.save(tmp_path / "model.cardan.toml")
    assert not noise(tmp_path / "model.cardan.toml")


def noise(path):
    """Numbers of a model file that are smaller than rounding leaves of the largest of their list."""
    found = []

    def look(value):
        if isinstance(value, dict):
            for one in value.values():
                look(one)
        elif isinstance(value, list) and value and not isinstance(value[0], dict):
            try:
                numbers = np.abs(np.array(value, dtype=float))
            except ValueError:
                return
            found.extend(numbers[(numbers > 0.0) & (numbers < 1e-14 * numbers.max())])
        elif isinstance(value, list):
            for one in value:
                look(one)

    look(tomllib.loads(path.read_text(encoding="utf-8")))
    return found


def test_planes_face_each_other_unless_they_are_flipped(scattered):
    for flip in (False, True):
        draft = cd.cad.Draft(scattered)
        f, g = (scattered[name].planes().parallel((0, 0, 1)).largest() for name in ("base", "crank"))
        draft.join(f, g, flip=flip)
        result = draft.mechanism().assemble()
        normals = [euler.rotate(result.state[n].quaternion, p.z) for n, p in (("base", f), ("crank", g))]
        assert result.ok and float(normals[0] @ normals[1]) == pytest.approx(1.0 if flip else -1.0, abs=1e-9)
