"""Shapes: mass properties against closed forms and fine meshes, closed surfaces, and what is refused."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import cardan as cd
from cardan import shapes
from cardan.errors import ModelError
from cardan.math import euler
from cardan.shapes.region import triangulate
from cardan.shapes.registry import KINDS, MAKERS
from cardan.shapes.shape import combined, is_closed, solid_properties
from cardan.view.shading import mesh_of
from fuzz.oracles.shapes import SHAPES as ROWS
from fuzz.oracles.shapes import TRIANGLE, H

EVERY = {name: shape for row in ROWS.values() for name, shape in row.samples.items()}
SHAPES = {name: shape for row in ROWS.values() if row.bounded for name, shape in row.samples.items()}
named = pytest.mark.parametrize("name", SHAPES)


@named
def test_the_surface_is_closed_and_faces_outwards(name):
    for segments in (12, 48):
        vertices, faces = SHAPES[name].triangles(segments)
        assert is_closed(faces)
        assert solid_properties(vertices, faces).volume > 0.0
        p = vertices[faces]
        areas = np.linalg.norm(np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]), axis=1)
        assert areas.min() > 0.0  # no face is degenerate, so every normal is defined


@named
def test_mass_properties_agree_with_a_fine_mesh(name):
    """By the divergence theorem, which shares no formula with the closed forms."""
    exact = SHAPES[name].properties()
    fine = solid_properties(*SHAPES[name].triangles(360))
    size = np.cbrt(exact.volume)
    assert abs(fine.volume / exact.volume - 1.0) < 1e-3
    assert np.abs(fine.center - exact.center).max() < 1e-3 * size
    assert np.abs(fine.inertia - exact.inertia).max() < 1e-3 * np.abs(exact.inertia).max()


@named
def test_meshes_converge_to_the_closed_form_with_the_square_of_the_segments(name):
    """A wrong term in a closed form would leave an error that does not decrease."""
    exact = SHAPES[name].properties()
    errors = []
    for segments in (96, 192, 384):
        found = solid_properties(*SHAPES[name].triangles(segments))
        errors.append([abs(found.volume / exact.volume - 1.0), np.abs(found.inertia / np.trace(exact.inertia)
                       - exact.inertia / np.trace(exact.inertia)).max()])  # fmt: skip
    errors = np.array(errors)
    assert ((errors[1:] < 0.35 * errors[:-1]) | (errors[1:] < 1e-12)).all(), errors


def test_every_maker_has_a_row_and_every_class_a_sample():
    assert set(ROWS) == set(MAKERS) <= set(shapes.__all__)
    assert {type(shape) for shape in EVERY.values()} == set(KINDS.values())


def test_a_half_space_has_no_volume_and_is_drawn_saved_and_compared(tmp_path):
    ground = shapes.half_space(2.0)
    vertices, faces = ground.triangles()
    assert is_closed(faces) and vertices[:, 2].max() == 0.0 and np.ptp(vertices[:, 0]) == 2.0
    m = cd.Mechanism()
    with pytest.raises(ModelError, match="a half-space has no volume"):
        m.body("part").attach(ground, density=1.0)
    m.ground.attach(ground)
    m["part"].attach(shapes.box(1, 1, 1), m["part"].frame((0, 0, 0.6)))
    m.save(tmp_path / "model.cardan.toml", units={"length": "mm"})
    read = cd.load(tmp_path / "model.cardan.toml")
    assert read.ground.attachments[0].shape == ground != shapes.half_space()
    assert read.distance_between("ground", "part").gap == pytest.approx(0.1, abs=1e-15)
    assert read.interference().pairs == 1 and read.interference().ok
    lowered = read.state.moved({"part": ((0, 0, -0.3), (1, 0, 0, 0))})
    (found,) = read.interference(lowered)
    assert found.depth == pytest.approx(0.2, abs=1e-15) and found.volume == pytest.approx(0.2, abs=1e-12)
    with pytest.raises(ModelError, match="size of a half-space"):
        shapes.half_space(0.0)


@pytest.mark.parametrize("maker", [name for name, row in ROWS.items() if row.exact])
def test_closed_forms(maker):
    for shape, volume, center, inertia in ROWS[maker].exact:
        found = shape.properties()
        assert found.volume == pytest.approx(volume, rel=1e-12)
        assert np.abs(found.center - center).max() < 1e-12 * H
        assert np.abs(found.inertia - np.diag(inertia)).max() < 1e-12 * np.abs(inertia).max()


@named
@pytest.mark.parametrize("units", [{}, {"length": "mm", "angle": "deg"}], ids=["SI", "mm"])
def test_files_have_every_shape(name, units, tmp_path):
    """Read back bitwise."""
    m = cd.Mechanism()
    m.body("part").attach(SHAPES[name], density=1000.0)
    m.save(tmp_path / "model.cardan.toml", units=units)
    assert cd.load(tmp_path / "model.cardan.toml")["part"].attachments[0].shape == SHAPES[name]


def test_a_frustum_has_the_textbook_moments():
    """Of a pyramid with the base a × a, cut at the scale k: V = a²h(1 + k + k²)/3, J_zz = a⁴h(1 + k + k² + k³ + k⁴)/30,
    and J_xx as the difference of two pyramids."""
    a, h, k = 2.0, 1.3, 0.4
    found = shapes.extrusion([(-1, -1), (1, -1), (1, 1), (-1, 1)], h, taper=k).properties()
    assert found.volume == pytest.approx(a * a * h * (1 + k + k * k) / 3, rel=1e-12)
    assert found.inertia[2, 2] == pytest.approx(a**4 * h * (1 + k + k**2 + k**3 + k**4) / 30, rel=1e-12)

    def pyramid(side: float, height: float) -> tuple[float, float, float]:
        """Volume, height of its centre above the base, and J_xx about the centre."""
        v = side * side * height / 3
        return v, height / 4, v * (side**2 / 20 + 3 / 80 * height**2)

    whole, top = pyramid(a, h / (1 - k)), pyramid(k * a, k * h / (1 - k))
    v = whole[0] - top[0]
    z = (whole[0] * whole[1] - top[0] * (h + top[1])) / v
    across = whole[2] + whole[0] * (whole[1] - z) ** 2 - top[2] - top[0] * (h + top[1] - z) ** 2
    assert found.center == pytest.approx([0, 0, z - h / 2], abs=1e-12)
    assert np.abs(np.diag(found.inertia)[:2] - across).max() < 1e-12 * across


def test_a_link_is_a_bar_two_half_discs_and_two_holes():
    """Assembled by hand from a rectangle and discs with the parallel-axis law."""
    length, w, t, hole = 0.9, 0.2, 0.1, 0.06
    found = shapes.link((0, 0), (length, 0), width=w, thickness=t, hole=hole).properties()
    bar = length * w * t
    disc, gap = math.pi * (w / 2) ** 2 * t, math.pi * hole**2 * t
    assert found.volume == pytest.approx(bar + disc - 2 * gap, rel=1e-12)
    half = disc / 2
    shift = 4 * (w / 2) / (3 * math.pi)  # of the centre of a half disc from its diameter
    about_z = bar * (length**2 + w**2) / 12
    about_z += 2 * (half * ((w / 2) ** 2 / 2 - shift**2) + half * (length / 2 + shift) ** 2)
    about_z -= 2 * (gap * hole**2 / 2 + gap * (length / 2) ** 2)
    assert found.inertia[2, 2] == pytest.approx(about_z, rel=1e-12)
    assert found.center == pytest.approx([length / 2, 0, 0], abs=1e-13)


def test_gears_mesh():
    """At the pitch radius teeth and gaps are equal up to the backlash; a tooth is on the x axis; two gears of one
    module roll on each other without their profiles crossing."""
    m, z1, z2 = 0.01, 17, 31
    one, two = shapes.gear(m, z1, 0.02), shapes.gear(m, z2, 0.02)
    outline = [np.array(g.region().points(200)[0]) for g in (one, two)]
    for turn in np.linspace(0.0, 2 * math.pi / z1, 9):
        c, s = math.cos(turn), math.sin(turn)
        first = outline[0] @ np.array([[c, -s], [s, c]]).T
        other = -turn * z1 / z2 + math.pi + math.pi / z2
        c, s = math.cos(other), math.sin(other)
        second = outline[1] @ np.array([[c, -s], [s, c]]).T + [0.5 * m * (z1 + z2), 0.0]
        near = second[np.linalg.norm(second, axis=1) < 0.5 * m * z1 + 1.2 * m]
        assert len(near) > 10
        assert not any(_inside(first, p) for p in near), turn
    radii = np.linalg.norm(outline[0], axis=1)
    assert radii.max() == pytest.approx(0.5 * m * z1 + m, rel=1e-9)
    assert radii.min() == pytest.approx(0.5 * m * z1 - 1.25 * m, rel=1e-9)


def _inside(polygon, p):
    a, b = polygon, np.roll(polygon, -1, axis=0)
    across = (a[:, 1] > p[1]) != (b[:, 1] > p[1])
    a, b = a[across], b[across]
    return (a[:, 0] + (p[1] - a[:, 1]) * (b[:, 0] - a[:, 0]) / (b[:, 1] - a[:, 1]) > p[0]).sum() % 2 == 1


@named
def test_shapes_copy_compare_and_pickle(name):
    shape = SHAPES[name]
    assert pickle.loads(pickle.dumps(shape)) == shape == copy.deepcopy(shape)
    assert hash(pickle.loads(pickle.dumps(shape))) == hash(shape)
    assert [other for other, it in SHAPES.items() if it == shape] == [name]


@named
def test_drawn_normals_point_outwards_and_edges_are_sharp(name):
    mesh = mesh_of(SHAPES[name])
    v, f = mesh.vertices.astype(float), mesh.faces
    n = np.cross(v[f[:, 1]] - v[f[:, 0]], v[f[:, 2]] - v[f[:, 0]])
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    for k in range(3):
        assert (np.einsum("ij,ij->i", mesh.normals[f[:, k]], n) > 0.7).all()
    assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1.0, abs=1e-3)
    assert (len(mesh.edges) == 0) == any(name in row.samples for row in ROWS.values() if row.smooth)


def test_feature_edges_of_a_box_and_of_a_cylinder():
    assert len(mesh_of(shapes.box(1, 2, 3)).edges) == 12
    assert len(mesh_of(shapes.box(1, 2, 3)).vertices) == 24  # three normals at each corner
    assert len(mesh_of(shapes.cylinder(1, 2)).edges) == 2 * 48  # two circles, and no line along the side


def test_mass_properties_follow_a_rigid_motion():
    """Placed properties equal those of the moved triangles."""
    rng = np.random.default_rng(3)
    for shape in SHAPES.values():
        position, matrix = rng.normal(size=3), euler.matrix(euler.random(rng))
        vertices, faces = shape.triangles(24)
        still, moved = solid_properties(vertices, faces), solid_properties(position + vertices @ matrix.T, faces)
        placed = still.placed(position, matrix)
        assert placed.center == pytest.approx(moved.center, abs=1e-9)
        assert np.abs(placed.inertia - moved.inertia).max() < 1e-9 * max(np.abs(moved.inertia).max(), moved.volume)


def test_two_halves_are_the_whole():
    """The parallel-axis law: a box of two densities and of two halves."""
    half = shapes.box(0.5, 0.2, 0.3).properties()
    left, right = (half.placed(np.array([x, 0.0, 0.0]), np.eye(3)) for x in (-0.25, 0.25))
    mass, center, inertia = combined([(800.0, left), (800.0, right)])
    whole = shapes.box(1.0, 0.2, 0.3).properties()
    assert mass == pytest.approx(800.0 * whole.volume, rel=1e-14)
    assert center == pytest.approx(np.zeros(3), abs=1e-15)
    assert inertia == pytest.approx(800.0 * whole.inertia, rel=1e-13)


@pytest.mark.parametrize("made, text", [
    (lambda: shapes.box(1, 0, 1), "edge y of a box is 0.0; it must be above zero"),
    (lambda: shapes.sphere(math.nan), "radius of a sphere is nan"),
    (lambda: shapes.cylinder("a", 1), "radius of a cylinder is 'a'"),
    (lambda: shapes.tube(1, 1, 1), "inner must be smaller"),
    (lambda: shapes.link((0, 0), (0, 0), width=1, thickness=1), "must differ"),
    (lambda: shapes.link((0, 0), (1, 0), width=0.1, thickness=1, hole=0.05), "hole of a link has radius 0.05"),
    (lambda: shapes.plate([(0, 0), (1, 0)], thickness=1), "there are 2; there must be 3"),
    (lambda: shapes.plate([(0, 0), (1, 1), (1, 0), (0, 1)], thickness=1), "crosses or touches itself"),
    (lambda: shapes.plate(TRIANGLE, thickness=1, holes=[(5, 5, 0.1)]), "is not inside"),
    (lambda: shapes.plate(TRIANGLE, thickness=1, holes=[(0.4, 0.3, 0.1), (0.4, 0.3, 0.05)]), "is not inside"),
    (lambda: shapes.plate(TRIANGLE, thickness=1, holes=[(0.4, 0.3, 0.4)]), "crosses or touches itself"),
    (lambda: shapes.plate(TRIANGLE, thickness=1, holes=[(0.4, 0.3, 5.0)]), "is not inside"),
    (lambda: shapes.plate(7, thickness=1), "pairs"),
    (lambda: shapes.extrusion([(0, 0), (1, 0), (2, 0)], 1), "no area|crosses"),
    (lambda: shapes.revolution([(-1, 0), (1, 0), (0, 1)]), "ρ must be zero or more"),
    (lambda: shapes.gear(0.01, 4, 0.02), "teeth of a gear is 4"),
    (lambda: shapes.gear(0.01, 20, 0.02, bore=0.2), "bore of a gear"),
    (lambda: shapes.gear(0.01, 20, 0.02, internal=True, outer=0.1), "outer radius of an internal gear"),
    (lambda: shapes.gear(0.01, 20, 0.02, outer=0.1), "only internal gears"),
    (lambda: shapes.thread(0.1, 0.0, 1.0), "pitch of a thread is 0"),
    (lambda: shapes.mesh([(0, 0, 0)], [(0, 0, 1)]), "corner 1; corners must be from 0 to 0"),
    (lambda: shapes.mesh([(0, 0)], [(0, 0, 0)]), "shape"),
    (lambda: shapes.mesh([(0, 0, math.inf)] * 3, [(0, 1, 2)]), "not finite"),
    (lambda: shapes.mesh(np.zeros((3, 3)), np.zeros((0, 3))), "no triangles"),
    (lambda: shapes.mesh(np.zeros((3, 3)), [(0, 1, 0.5)]), "faces of a mesh"),
    (lambda: shapes.mesh(SHAPES, [(0, 1, 2)]), "vertices of a mesh"),
])  # fmt: skip
def test_bad_shapes_are_refused_by_name(made, text):
    with pytest.raises(ModelError, match=text):
        made()


# -- meshes from files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "glb"])
def test_meshes_are_read_from_files(tmp_path, suffix):
    trimesh = pytest.importorskip("trimesh")
    solid = shapes.gear(10.0, 24, 20.0, bore=20.0)
    vertices, faces = solid.triangles(240)
    path = tmp_path / f"part.{suffix}"
    trimesh.Trimesh(vertices, faces, process=False).export(path)
    read = shapes.mesh(path, scale=0.001)
    assert read.is_closed
    exact = shapes.gear(0.01, 24, 0.02, bore=0.02).properties()
    found = read.properties()
    assert found.volume == pytest.approx(exact.volume, rel=1e-3)
    assert np.abs(found.inertia - exact.inertia).max() < 1e-3 * exact.inertia.max()
    body = cd.Mechanism().body("part")
    body.attach(read, density=7850.0)
    assert body.mass == pytest.approx(7850.0 * found.volume)


def test_files_that_cannot_be_read_say_so(tmp_path):
    with pytest.raises(ModelError, match=r"missing\.stl' cannot be read: No such file"):
        shapes.mesh(tmp_path / "missing.stl")
    with pytest.raises(ModelError, match=r"ending '\.txt'; it must be \.stl"):
        shapes.mesh(tmp_path / "part.txt")
    for name, content in (("broken.stl", b"solid x\nfacet"), ("broken.glb", b"glTF\0\0"), ("empty.obj", b""),
                          ("broken.ply", b"ply\nnonsense")):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError, match=f"{name}' (cannot be read|has no triangles)"):
            shapes.mesh(tmp_path / name)
    with pytest.raises(ModelError, match="omit faces"):
        shapes.mesh(tmp_path / "part.stl", [(0, 1, 2)])


def test_an_open_mesh_is_drawn_but_has_no_mass():
    vertices, faces = shapes.box(1, 1, 1).triangles()
    body = cd.Mechanism().body("cover")
    sheet = shapes.mesh(vertices, faces[:-1])
    body.attach(sheet)
    with pytest.raises(ModelError, match=r"is not closed.*omit density="):
        body.attach(sheet, density=1000.0)
    assert len(body.attachments) == 1
    with pytest.raises(ModelError, match="counter-clockwise"):
        body.attach(shapes.mesh(vertices, faces[:, ::-1]), density=1000.0)


@pytest.mark.parametrize("count", [3, 6, 12, 24, 30, 90, 96, 192])
def test_rings_with_vertices_on_new_diagonals_are_triangulated(count):
    """cos(jπ/n): a diagonal of the outer polygon touches vertices of the inner one, up to rounding."""
    angles = 2.0 * np.pi * np.arange(count) / count
    unit = np.column_stack([np.cos(angles), np.sin(angles)])
    for ratio in (0.5, *np.cos(np.pi * np.array([2, 3, 7]) / count)):
        if not 0.05 < ratio < np.cos(np.pi / count):
            continue
        for turn in (0.0, 0.3):
            R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
            p = np.concatenate([unit, ratio * unit[::-1]]) @ R.T
            corners = p[triangulate([p[:count], p[count:]])]
            (x, y), (u, v) = (corners[:, 1] - corners[:, 0]).T, (corners[:, 2] - corners[:, 0]).T
            areas = 0.5 * (x * v - y * u)
            assert areas.min() > 0.0 and len(areas) == 2 * count
            assert areas.sum() == pytest.approx(0.5 * count * np.sin(2 * np.pi / count) * (1 - ratio**2), rel=1e-12)
