"""Meshes through the interface of other shapes: closed tessellations, sides, pairs with smooth shapes."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
import distance_judge as judge
from distance_judge import random_pose, rotation

g = cd.geometry
TETRAHEDRON = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], dtype=float)
OUTWARDS = np.array([(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)])


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (g.torus(2.0, 0.5), 2.0 * np.pi**2 * 2.0 * 0.25),
        (g.sphere(1.0), 4.0 * np.pi / 3.0),
        (g.ellipsoid(1.0, 2.0, 0.5), 4.0 * np.pi / 3.0),
    ],
)
def test_the_tessellation_of_a_closed_surface_is_a_closed_mesh(shape, volume):
    mesh = g.Mesh(*g.tessellate(shape, 0.01))
    assert mesh.is_closed and mesh.open_edge() is None
    assert mesh.mass_properties().volume == pytest.approx(volume, rel=0.03)
    assert mesh.mass_properties().volume < volume


@pytest.mark.parametrize("chord", [0.05, 0.005])
@pytest.mark.parametrize("kind", ["bumpy", "cone", "ellipsoid"])
def test_no_place_of_a_tessellation_or_of_its_shape_is_farther_than_the_chord_error(kind, chord):
    rng = np.random.default_rng(3)
    shape = {"bumpy": g.Surface(*judge.bumps(rng)), "cone": g.cone(1.0, 0.4, (0.0, 2.0))}.get(
        kind, g.ellipsoid(1.0, 0.7, 0.5).to_nurbs()
    )
    vertices, faces = g.tessellate(shape, chord)
    mesh, query = g.Mesh(vertices, faces), g.Distance(shape, (0.0, 0.0, 0.0))
    some = faces[rng.choice(len(faces), min(len(faces), 20), replace=False)]
    inside = np.einsum("sk,fkc->fsc", rng.dirichlet(np.ones(3), 4), vertices[some]).reshape(-1, 3)
    assert max(query.closest(p).distance for p in inside) <= chord
    low, high = np.array(shape.bounds).T
    assert max(mesh.closest_point(p).distance for p in shape.evaluate(rng.uniform(low, high, (200, 2)))) <= chord


def test_meshes_without_an_inside_are_named():
    turned = OUTWARDS.copy()
    turned[3] = turned[3, ::-1]
    thrice = np.vstack([OUTWARDS, [(0, 2, 1)]])
    for faces, words in (
        (OUTWARDS[:3], r"has a hole at the edge \(2, 0\) of face 0|has a hole at the edge \(0, 2\) of face 0"),
        (turned, r"faces 0 and 3 of the mesh have opposite orientations at their edge"),
        (thrice, r"faces 0 and 4 and 1 of the mesh do not close|faces 0 and \d and \d of the mesh do not close"),
        (OUTWARDS[:, ::-1], "the mesh is inside out"),
    ):
        for ask in (lambda m: m.mass_properties(), lambda m: m.closest_point((0.1, 0.1, 0.1), signed=True)):
            with pytest.raises(cd.ModelError, match=words):
                ask(g.Mesh(TETRAHEDRON, faces))
    mesh = g.Mesh(TETRAHEDRON, OUTWARDS)
    assert mesh.closest_point((0.1, 0.1, 0.1), signed=True).gap == pytest.approx(-0.1, abs=1e-15)
    assert mesh.mass_properties().volume == pytest.approx(1.0 / 6.0, rel=1e-14)


def test_two_bodies_that_share_an_edge_have_an_inside():
    other = OUTWARDS + 4
    other[other == 4] = 0
    other[other == 5] = 1  # the edge from vertex 0 to vertex 1 belongs to both
    vertices = np.vstack([TETRAHEDRON, TETRAHEDRON * (1, -1, -1)])
    mesh = g.Mesh(vertices, np.vstack([OUTWARDS, other]))
    assert mesh.mass_properties().volume == pytest.approx(1.0 / 3.0, rel=1e-14)


def test_a_query_of_a_mesh_is_like_that_of_other_shapes():
    a, b = g.Mesh(TETRAHEDRON, OUTWARDS), g.Mesh(TETRAHEDRON * 0.5, OUTWARDS)
    pose = np.array([0.2, 0.1, 2.0, 1.0, 0.0, 0.0, 0.0])
    query = g.Distance(a, b)
    assert isinstance(query, g.Distance)
    assert query.closest(pose).distance == a.closest_pair(b, pose).distance == g.closest_pair(a, b, pose).distance
    assert query.track(pose).distance == query.closest(pose).distance
    p = (1.0, 1.0, 1.0)
    assert g.Distance(a, p).closest().distance == pytest.approx(2.0 / np.sqrt(3.0), abs=1e-15)
    turned = g.Distance(p, a).closest()
    assert turned.points[0] == pytest.approx(p) and turned.points[1] == pytest.approx(np.full(3, 1.0 / 3.0))
    found = g.differences(query, pose, scheme="central", h=1e-4)[1] - g.differences(query, pose, h=1e-4)[0]
    assert np.isfinite(found).all()
    for bad, words in (
        (lambda: query.closest(pose, signed=True), "two meshes have no signed gap"),
        (lambda: g.closest_pair(a, g.sphere(1.0), (3, 0, 0), signed=True), "a mesh and a smooth shape have no signed"),
        (lambda: query.minima(pose), "local minima of a mesh"),
        (lambda: query.regular(pose, query.closest(pose)), "no regular pairs"),
        (lambda: g.exact(query, pose, query.closest(pose)), "no exact derivatives"),
        (lambda: a.closest_pair(g.sphere(1.0)), "is no mesh"),
    ):
        with pytest.raises(cd.ModelError, match=words):
            bad()


@pytest.mark.slow
def test_a_mesh_and_smooth_shapes_have_the_distance_of_closed_forms():
    mesh = g.Mesh(TETRAHEDRON, OUTWARDS)
    third = np.full(3, 1.0 / 3.0)
    n = np.ones(3) / np.sqrt(3.0)
    for gap in (0.5, 1e-3):
        centre = third + (gap + 0.3) * n
        pair = g.closest_pair(mesh, g.sphere(0.3), centre)
        assert pair.distance == pytest.approx(gap, abs=1e-9) and pair.margin < 1e-7
        assert pair.points[0] == pytest.approx(third, abs=1e-6)
        assert int(pair.parameters[0][0]) == 2
        back = g.closest_pair(g.sphere(0.3), mesh, -centre)
        assert back.distance == pytest.approx(gap, abs=1e-9)
        assert back.points[0] == pytest.approx(-0.3 * n, abs=1e-6)
    assert g.closest_pair(mesh, g.sphere(0.3), (1.5, 0, 0)).distance == pytest.approx(0.2, abs=1e-9)  # a corner
    assert g.closest_pair(mesh, g.sphere(0.3), (0.5, -0.6, -0.8)).distance == pytest.approx(0.7, abs=1e-9)  # an edge
    assert g.closest_pair(mesh, g.plane(), (0, 0, -2.0)).distance == pytest.approx(2.0, abs=1e-9)
    assert g.closest_pair(mesh, g.line(), (0, -1.0, -1.0)).distance == pytest.approx(np.sqrt(2.0), abs=1e-9)
    assert g.closest_pair(mesh, g.sphere(0.3), (0.2, 0.2, 0.2)).distance < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_mesh_and_a_bumpy_surface_against_samples(seed):
    rng = np.random.default_rng(seed)
    s, mesh = g.Surface(*judge.bumps(rng)), g.Mesh(*g.tessellate(g.torus(0.5, 0.2), 0.05))
    pose = random_pose(rng, 1.5)
    pair = g.closest_pair(s, mesh, pose)
    R, t = rotation(pose[3:]), pose[:3]
    samples = (judge.judged(s).grid(121)[1] - t) @ R
    least = min(mesh.closest_point(p).distance for p in samples)
    assert least - 2e-3 < pair.distance <= least + 1e-9
    assert np.linalg.norm(pair.points[0] - pair.points[1]) == pytest.approx(pair.distance, abs=1e-12)
    assert pair.margin < 1e-6
    assert mesh.closest_point((pair.points[1] - t) @ R).distance < 1e-9


def test_the_tessellation_of_a_rational_patch_is_not_much_finer_than_its_chord_error():
    """Bounds of second derivatives over whole rational spans are 40 times too large, so that 5 million faces result."""
    x, y = np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-1, 1, 6), indexing="ij")
    weights = np.random.default_rng(0).uniform(0.44, 2.8, (6, 6))
    patch = g.Surface(np.stack([x, y, 0.3 * np.sin(3 * x + y)], axis=-1), weights)
    chord = 0.003
    vertices, faces = g.tessellate(patch, chord)
    assert len(faces) < 50_000
    query = g.Distance(patch, (0.0, 0.0, 0.0))
    t = vertices[faces]
    largest = np.argsort(np.linalg.norm(np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]), axis=1))[-100:]
    some = np.concatenate([largest, np.random.default_rng(1).integers(len(faces), size=100)])
    far = [query.closest(p).distance for p in np.concatenate([t[some].mean(axis=1), t[some, :2].mean(axis=1)])]
    assert 1e-5 < max(far) <= chord
