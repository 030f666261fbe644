"""STEP files: what is read, picked, assembled, proposed and written again."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import cardan as cd
from cardan.cad import step
from cardan.cli import main
from later import Later
from layers import sampled

steps = Later("tests.cad.steps")

HERE = ((0, 0, 0), (1, 0, 0, 0))


def four_bar(ground=100.0, crank=30.0, coupler=90.0, rocker=70.0):
    """Tree of a four-bar with pins in its links, closed at a crank angle of 60°; and its joints."""
    a, angle = np.zeros(2), math.pi / 3
    p = crank * np.array([math.cos(angle), math.sin(angle)])
    b = np.array([ground, 0.0])
    d = b - p
    far = float(np.linalg.norm(d))
    along = (coupler**2 - rocker**2 + far**2) / (2 * far)
    up = math.sqrt(coupler**2 - along**2)
    q = p + along * d / far + up * np.array([-d[1], d[0]]) / far
    base = steps.fuse(
        steps.box((ground + 40, 30, 8), (ground / 2, 0, -4)),
        *[steps.cylinder(5.0, 6.0, (x, 0, 0)) for x in (0.0, ground)],
    )
    pins = [steps.cylinder(5.0, 6.0, (x, 0, 6)) for x in (0.0, coupler)]
    middle = steps.fuse(steps.box((coupler + 20, 20, 6), (coupler / 2, 0, 15)), *pins)
    middle = steps.moved(middle, (0, 0, -6))

    def turn(v):
        return steps.about_z(math.atan2(v[1], v[0]))

    return [
        ["base", base, HERE, (0.5, 0.5, 0.5)],
        ["crank", steps.link(crank), ((*a, 0), turn(p)), (0.8, 0.1, 0.1)],
        ["coupler", middle, ((*p, 0), turn(q - p)), (0.1, 0.6, 0.1)],
        ["rocker", steps.link(rocker), ((*b, 0), turn(q - b)), (0.1, 0.1, 0.8)],
    ]


@pytest.fixture(scope="module")
def linkage(tmp_path_factory):
    path = tmp_path_factory.mktemp("step") / "four bar.step"
    steps.write(path, four_bar())
    return cd.load_step(path)


@pytest.mark.slow
def test_names_colours_placements_and_units_of_a_nested_file_are_read(tmp_path):
    rng = np.random.default_rng(21)
    for unit in ("MM", "INCH"):
        groups, wanted = [], {}
        for g in range(6):
            pose = (rng.uniform(-50, 50, 3), steps.unit_quaternion(rng))
            children = []
            for k in range(5):
                own = (rng.uniform(-20, 20, 3), steps.unit_quaternion(rng))
                color = tuple(np.round(rng.random(3), 2))
                children.append([f"part {g}.{k}", steps.box((2 + k, 3, 4 + g)), own, color])
                wanted[f"part {g}.{k}"] = (pose, own, color, (2 + k) * 3 * (4 + g) * 1e-9)
            groups.append([f"group {g}", children, pose, None])
        path = tmp_path / f"{unit}.step"
        steps.write(path, groups, unit)
        found = cd.load_step(path)
        assert list(found) == list(wanted) and found.unit.lower().startswith("inch" if unit == "INCH" else "milli")
        for name, ((p, q), (r, s), color, volume) in wanted.items():
            part = found[name]
            np.testing.assert_allclose(part.position, 1e-3 * (p + _rotated(q, r)), atol=1e-12)
            q_found, q_wanted = part.quaternion, _product(q, s)
            assert abs(abs(float(q_found @ q_wanted)) - 1.0) < 1e-12
            np.testing.assert_allclose(part.color, color, atol=2e-3)
            assert part.volume == pytest.approx(volume, rel=1e-9)
            assert part.path[:-1] == ("assembly", "group " + name[5])


def _rotated(q, v):
    w, u = q[0], q[1:]
    return 2 * (u @ v) * u + (w * w - u @ u) * v + 2 * w * np.cross(u, v)


def _product(p, q):
    return np.array([p[0] * q[0] - p[1:] @ q[1:], *(p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:]))])


@pytest.mark.slow
def test_mass_properties_are_the_closed_forms(tmp_path):
    solids = {
        "box": (steps.box((20, 30, 40)), 24e-6, np.diag([30**2 + 40**2, 20**2 + 40**2, 20**2 + 30**2]) * 1e-6 / 12),
        "cylinder": (
            steps.cylinder(5, 40),
            math.pi * 1e-6,
            np.diag([25 / 4 + 1600 / 12, 25 / 4 + 1600 / 12, 25 / 2]) * 1e-6,
        ),
        "sphere": (steps.sphere(10), 4 / 3 * math.pi * 1e-6, np.eye(3) * 0.4 * 1e-4),
        "torus": (
            steps.torus(20, 5),
            2 * math.pi**2 * 20 * 25 * 1e-9,
            np.diag([0.5 * 400 + 0.625 * 25, 0.5 * 400 + 0.625 * 25, 400 + 0.75 * 25]) * 1e-6,
        ),
    }
    path = tmp_path / "solids.step"
    steps.write(path, [[name, shape, HERE, None] for name, (shape, *_) in solids.items()])
    found = cd.load_step(path)
    for name, (_, volume, inertia) in solids.items():
        m = cd.Mechanism("one")
        body = m.add(found[name], density=2700.0)
        assert body.mass == pytest.approx(2700.0 * volume, rel=1e-9), name
        np.testing.assert_allclose(body.inertia, 2700.0 * volume * inertia, atol=1e-9 * 2700.0 * volume * inertia.max())


@pytest.mark.slow
def test_measures_of_rational_splines_and_of_parts_far_away_are_those_of_the_same_shapes(tmp_path):
    from scipy.special import ellipe

    bored = steps.cut(steps.box((40, 40, 40)), steps.cylinder(15, 60, (0, 0, -30)))
    ball = steps.cut(steps.sphere(10), steps.cylinder(2, 40, (0, 0, -20)))
    solids = {
        "sphere": (steps.rational(steps.sphere(10)), 4 / 3 * math.pi * 1e-6),
        "torus": (steps.rational(steps.torus(20, 5)), 2 * math.pi**2 * 500e-9),
        "bore": (steps.rational(bored), (64000 - math.pi * 225 * 40) * 1e-9),
        "oval": (steps.elliptic(10, 5, 20), math.pi * 1e-6),
        "ball": (ball, 4 / 3 * math.pi * (100 - 4) ** 1.5 * 1e-9),
        "far": (steps.moved(ball, (1e6, -2e6, 3e6)), 4 / 3 * math.pi * (100 - 4) ** 1.5 * 1e-9),
    }
    steps.write(tmp_path / "solids.step", [[name, shape, HERE, None] for name, (shape, _) in solids.items()])
    found = cd.load_step(tmp_path / "solids.step")
    for name, (_, volume) in solids.items():
        assert found[name].volume == pytest.approx(volume, rel=1e-9), name
    near, far = found["ball"], found["far"]
    np.testing.assert_allclose(far.inertia, near.inertia, atol=1e-9 * near.inertia.max())
    np.testing.assert_allclose(far.center - near.center, (1e3, -2e3, 3e3), rtol=1e-12)
    oval, length = found["oval"], 40e-3 * float(ellipe(0.75))
    for edge in oval.edges.of_kind("ellipse"):
        assert edge.size == pytest.approx(length, rel=1e-9)
    assert oval.faces.of_kind("nurbs").only().size == pytest.approx(20e-3 * length, rel=1e-3)
    for plane in oval.planes():
        assert plane.size == pytest.approx(math.pi * 50e-6, rel=1e-9)
    assert sum(face.size for face in found["sphere"].faces) == pytest.approx(4 * math.pi * 1e-4, rel=1e-3)


@pytest.mark.slow
def test_trimmed_faces_of_threads_are_those_of_the_kernel(tmp_path):
    """Curves along the border of a helical face leave its domain by 1e-7; the face is trimmed all the same."""
    from OCP.BRepClass import BRepClass_FaceClassifier
    from OCP.gp import gp_Pnt
    from OCP.TopAbs import TopAbs_State

    from cardan.cad.kernel.common import explored
    from cardan.cad.kernel.document import open_step

    steps.write(tmp_path / "ridge.step", [["ridge", steps.ridge(4, 5, 1.5, 6), HERE, None]])
    part = cd.load_step(tmp_path / "ridge.step")["ridge"]
    document = open_step(str(tmp_path / "ridge.step"))
    kernel = list(explored(document.shapes.GetShape_s(document.roots[0]), "FACE"))
    rng, compared = np.random.default_rng(5), 0
    for face, own in zip(part.faces, kernel, strict=True):
        trimmed, ((a, b), (c, d)) = face.geometry, face.nurbs.bounds
        at = np.column_stack([rng.uniform(a, b, 40), rng.uniform(c, d, 40)])
        for (u, v), p in zip(at, 1e3 * face.nurbs.evaluate(at), strict=True):
            state = BRepClass_FaceClassifier(own, gp_Pnt(*p.tolist()), 1e-4).State()
            if state != TopAbs_State.TopAbs_ON:
                assert trimmed.contains(u, v) == (state == TopAbs_State.TopAbs_IN)
                compared += 1
    assert compared > 100


@pytest.mark.slow
def test_a_part_has_the_colour_of_most_of_its_area(tmp_path):
    """As the file of a box, of which one face is red, another box has red faces alone."""
    steps.write(tmp_path / "box.step", [["box", steps.box((20, 10, 5)), HERE, (1.0, 0.0, 0.0)]])
    text = (tmp_path / "box.step").read_text()
    (styled,) = [line for line in text.splitlines() if "= STYLED_ITEM(" in line]
    solid = styled.rpartition(",")[2].rstrip(";)")
    faces = [line.partition(" ")[0] for line in text.splitlines() if "= ADVANCED_FACE(" in line]
    for chosen, wanted in ((faces[:1], None), (faces, (1.0, 0.0, 0.0))):
        items = [styled.replace(f"{solid});", f"{face});").partition("=")[2] for face in chosen]
        numbered = [f"#{9000 + k} ={item}" for k, item in enumerate(items)]
        listed = ",".join(f"#{9000 + k}" for k in range(len(items)))
        number = styled.partition(" ")[0]
        changed = text.replace(styled, "\n".join(numbered)).replace(f"({number})", f"({listed})")
        (tmp_path / "painted.step").write_text(changed)
        found = cd.load_step(tmp_path / "painted.step")["box"].color
        assert found is None if wanted is None else found == pytest.approx(wanted, abs=2e-3)


@pytest.mark.slow
def test_faces_and_edges_are_those_of_the_kernel(tmp_path):
    """1,000 points on faces, by the kernel's own evaluation of the surface that our NURBS must be."""
    from OCP.BRep import BRep_Tool
    from OCP.BRepBuilderAPI import BRepBuilderAPI_NurbsConvert
    from OCP.STEPControl import STEPControl_Reader
    from OCP.TopAbs import TopAbs_ShapeEnum
    from OCP.TopExp import TopExp_Explorer
    from OCP.TopoDS import TopoDS

    rng = np.random.default_rng(3)
    body = steps.cut(steps.fuse(steps.box((40, 30, 20)), steps.cone(12, 6, 30)), steps.cylinder(4, 50, (0, 0, -10)))
    path = tmp_path / "faces.step"
    parts = {"body": body, "ring": steps.torus(20, 5), "ball": steps.sphere(7)}
    steps.write(path, [[name, shape, HERE, None] for name, shape in parts.items()])
    found = cd.load_step(path)
    reader = STEPControl_Reader()
    reader.ReadFile(str(path))
    reader.TransferRoots()
    shape = reader.OneShape()
    changed = BRepBuilderAPI_NurbsConvert(shape, True)
    explorer, compared = TopExp_Explorer(shape, TopAbs_ShapeEnum.TopAbs_FACE), 0
    for face in [face for part in found.parts for face in part.faces]:
        kernel = BRep_Tool.Surface_s(TopoDS.Face_s(changed.ModifiedShape(explorer.Current())))
        ours = face.nurbs
        (a, b), (c, d) = ours.bounds
        at = np.column_stack([rng.uniform(a, b, 100), rng.uniform(c, d, 100)])
        theirs = np.array([[p.X(), p.Y(), p.Z()] for p in (kernel.Value(u, v) for u, v in at)]) * 1e-3
        assert np.abs(ours.evaluate(at) - theirs).max() <= 1e-12
        compared += 100
        explorer.Next()
    assert not explorer.More() and compared >= 1000
    edges = _edges_of(shape, found)
    each = math.ceil(1000 / len(edges))
    for edge, kernel in edges:
        ours = edge.geometry
        at = rng.uniform(*ours.bounds[0], each)
        theirs = np.array([[p.X(), p.Y(), p.Z()] for p in map(kernel.Value, at)]) * 1e-3
        assert np.abs(ours.evaluate(at) - theirs).max() <= 1e-12
        np.testing.assert_allclose(ours.evaluate(np.array(ours.bounds[0])), edge.ends, atol=1e-12)
    hole = found["body"].cylinders(radius=4 * cd.mm)[0]
    assert hole.is_hole and hole.is_parallel((0, 0, 1))
    (a, b), (c, d) = hole.nurbs.bounds
    points = hole.nurbs.evaluate(np.column_stack([rng.uniform(a, b, 50), rng.uniform(c, d, 50)]))
    np.testing.assert_allclose(np.hypot(points[:, 0], points[:, 1]), 4e-3, atol=1e-15)
    top = found["body"].planes().parallel((0, 0, 1))
    holed = [face for face in top if len(face.geometry.loops) == 2]
    assert holed and not holed[0].geometry.contains(*_parameters(holed[0], (0.0, 0.0)))


def _edges_of(shape, found):
    """Edges of ours, each with the curve of the kernel: both are B-splines with the same parameter."""
    from OCP.BRep import BRep_Tool
    from OCP.Geom import Geom_TrimmedCurve
    from OCP.GeomConvert import GeomConvert

    from cardan.cad.kernel.common import explored

    theirs = []
    for edge in explored(shape, "EDGE", True):
        if not BRep_Tool.Degenerated_s(edge):
            curve = BRep_Tool.Curve_s(edge, 0.0, 1.0)
            first, last = BRep_Tool.Range_s(edge)
            theirs.append(GeomConvert.CurveToBSplineCurve_s(Geom_TrimmedCurve(curve, first, last, True, False)))
    ours = [edge for part in found.parts for edge in part.edges]
    return list(zip(ours, theirs, strict=True))


def _parameters(face, point):
    """Parameters of a plane face at x, y, from its bilinear NURBS."""
    surface = face.nurbs
    (a, b), (c, d) = surface.bounds
    o, pu, pv = surface.evaluate([[a, c], [b, c], [a, d]])
    e, f = (pu - o)[:2], (pv - o)[:2]
    s, t = np.linalg.solve(np.column_stack([e, f]), np.array(point) - o[:2])
    return a + s * (b - a), c + t * (d - c)


@pytest.mark.slow
def test_picks_are_by_kind_size_place_and_direction(linkage):
    base = linkage["base"]
    assert len(base.cylinders()) == 2 and {f.radius for f in base.cylinders(radius=5 * cd.mm)} == {5e-3}
    assert base.planes().largest().size == max(face.size for face in base.planes())
    left = base.cylinders().nearest((0, 0, 0))
    np.testing.assert_allclose(left.middle[:2], 0.0, atol=1e-12)
    assert not left.is_hole and linkage["crank"].cylinders()[0].is_hole
    assert base.edges.of_kind("circle").largest().radius == pytest.approx(5e-3)
    assert len(base.vertices) >= 8
    with pytest.raises(cd.ModelError, match=r"no cylinders of radius 0\.001 m"):
        base.cylinders(radius=1 * cd.mm)[0]


def test_parts_hinged_on_their_cylinders_assemble_from_scattered_poses(linkage):
    rng = np.random.default_rng(5)
    m = cd.Mechanism("hinged")
    bodies = {part.name: m.add(part, density=7850.0, fixed=part.name == "base") for part in linkage.parts}
    pairs = [("base", "crank"), ("crank", "coupler"), ("coupler", "rocker"), ("rocker", "base")]
    for a, b in pairs:
        fits = [
            (f, g)
            for f in linkage[a].cylinders()
            for g in linkage[b].cylinders()
            if f.is_hole != g.is_hole and _distance(linkage, a, f, b, g) < 1e-9
        ]
        (f, g) = fits[0]
        m.revolute(f"{a} {b}", f.frame(bodies[a]), g.frame(bodies[b]))
    assert m.diagnose(m.assemble().state).dof == 1
    start = {name: (rng.uniform(-0.2, 0.2, 3), steps.unit_quaternion(rng)) for name in bodies if name != "base"}
    result = m.assemble(start)
    assert result.ok and result.residual <= 1e-9


def test_a_pick_of_one_part_is_refused_on_the_body_of_another(linkage):
    m = cd.Mechanism("mixed")
    crank, rocker = (m.add(linkage[name]) for name in ("crank", "rocker"))
    face = linkage["crank"].cylinders()[0]
    for use in (face.frame, face.point, face.vector, face.attach_to, linkage["crank"].vertices[0].point):
        with pytest.raises(cd.ModelError, match="of part 'crank', but body 'rocker' is made of part 'rocker'; give"):
            use(rocker)
        use(crank)
        use(m.copy()["crank"])
    assert face.point(m.ground).body is m.ground  # not made of a part: the user's own choice
    assert face.point(m.body("plain")).body.name == "plain"
    assert face.point(m.add(linkage["crank"], "second crank")).body.name == "second crank"


def _distance(assembly, a, f, b, g):
    """Distance of the axes of two faces, both along z, as placed."""
    from cardan.math import euler

    world = [assembly[n].position + euler.rotate(assembly[n].quaternion, x.middle) for n, x in ((a, f), (b, g))]
    return float(np.linalg.norm((world[0] - world[1])[:2]))


def shoulder():
    return steps.fuse(steps.cylinder(5, 30), steps.cylinder(9, 5, (0, 0, -5)))


def slot():
    return steps.cut(steps.box((60, 40, 20)), steps.box((60, 10, 12), (0, 0, 6)))


def pocket():
    return steps.cut(steps.box((60, 40, 20)), steps.box((20, 10, 12), (0, 0, 4)))


def block():
    return steps.cut(steps.box((40, 40, 20), (0, 0, 10)), steps.cylinder(5, 60, (0, 0, -10)))


def socket():
    return steps.cut(steps.box((40, 40, 20)), steps.sphere(12, (0, 0, 4)))


def plate():
    return steps.box((100, 80, 10), (0, 0, -5))


def dowelled():
    pins = [steps.cylinder(3, 12, (x, 0, -10)) for x in (-20, 20)]
    return steps.fuse(steps.box((60, 20, 5), (0, 0, 2.5)), *pins)


def keyed():
    return steps.fuse(steps.cylinder(5, 60, (0, 0, -15)), steps.box((4, 14, 60), (0, 0, 15)))


def countersunk(angle=1.0):
    """A plate with a countersink, and a screw head in it; angle: of the head, relative to that of the sink."""
    sink = steps.moved(steps.cone(4, 10, 6), (0, 0, -6))
    head = steps.moved(steps.cone(10 - 5 * angle, 10, 5), (0, 0, -5))
    return [steps.cut(plate(), sink), head]


ASSEMBLIES = {
    "countersink": (countersunk, {"ab": "revolute"}),
    "countersink of another angle": (lambda: countersunk(0.8), {}),
    "pin": (lambda: [block(), steps.cylinder(5, 60, (0, 0, -15))], {"ab": "cylindrical"}),
    "shoulder screw": (lambda: [block(), shoulder()], {"ab": "revolute"}),
    "slide": (lambda: [slot(), steps.box((20, 10, 12), (0, 0, 6))], {"ab": "prismatic"}),
    "pocket": (lambda: [pocket(), steps.box((20, 10, 12), (0, 0, 4))], {"ab": "fixed"}),
    "ball": (lambda: [socket(), steps.sphere(12, (0, 0, 4))], {"ab": "spherical"}),
    "table": (lambda: [plate(), steps.box((20, 20, 20), (5, 3, 10))], {"ab": "planar"}),
    "dowels": (
        lambda: [steps.cut(plate(), *[steps.cylinder(3, 30, (x, 0, -15)) for x in (-20, 20)]), dowelled()],
        {"ab": "fixed"},
    ),
    "key": (lambda: [steps.cut(block(), steps.box((4, 14, 60), (0, 0, 10))), keyed()], {"ab": "prismatic"}),
    "train": (
        lambda: [
            steps.fuse(plate(), steps.cylinder(5, 6)),
            steps.fuse(steps.link(40), steps.cylinder(4, 8, (20, 0, 6))),
            steps.moved(steps.link(30, radius=4), (20, 0, 6), steps.about_z(1.0)),
        ],
        {"ab": "revolute", "bc": "revolute"},
    ),
}


def test_the_joints_of_known_assemblies_are_proposed(tmp_path):
    """All in one file, each turned, and at a place of its own."""
    rng = np.random.default_rng(13)
    tree, wanted = [], {}
    for k, (name, (make, joints)) in enumerate(ASSEMBLIES.items()):
        parts = [[f"{name} {part}", shape, HERE, None] for part, shape in zip("abc", make(), strict=False)]
        tree.append([name, parts, ((300 * k, 0, 0), steps.unit_quaternion(rng)), None])
        wanted |= {f"{name} {a} - {name} {b}": kind for (a, b), kind in joints.items()}
    path = tmp_path / "known.step"
    steps.write(path, tree)
    found = cd.cad.propose_joints(cd.load_step(path), fit=1e-7)
    assert {p.name: p.kind for p in found} == wanted
    assert all(p.reason for p in found)


def test_the_joints_of_a_four_bar_are_proposed_and_move(linkage, tmp_path):
    found = cd.cad.propose_joints(linkage)
    assert {p.name: p.kind for p in found} == {
        "base - crank": "revolute",
        "base - rocker": "revolute",
        "crank - coupler": "revolute",
        "coupler - rocker": "revolute",
    }
    draft = cd.cad.Draft(linkage)
    assert draft.diagnose().dof == 1
    marks = [p.mark for p in draft.proposals.values()]
    assert sum("redundant: 3" in mark for mark in marks) == 1  # four parallel axes: three equations too many


def test_the_command_line_writes_a_model_of_a_step_file(linkage, tmp_path, capsys):
    target = tmp_path / "model.cardan.toml"
    assert main(["import", str(linkage.path), "-o", str(target), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["parts"] == ["base", "crank", "coupler", "rocker"] and len(said["joints"]) == 4
    loaded = cd.load(target)
    assert loaded.assemble().ok and loaded.diagnose(loaded.assemble().state).dof == 1
    assert loaded["crank"].mass == pytest.approx(7850.0 * linkage["crank"].volume, rel=1e-9)


def nested(rng):
    """Groups in groups, a group and a part that are used twice, colours of parts and of instances."""
    plate, pin = steps.box((20, 10, 5)), steps.cylinder(2, 12)

    def pose():
        return rng.uniform(-50, 50, 3), steps.unit_quaternion(rng)

    pair = [["plate", plate, pose(), (0.8, 0.1, 0.1)], ["pin", pin, pose(), (0.1, 0.2, 0.9)]]
    return [
        ["left", pair, pose(), None],
        ["right", [["inner", pair, pose(), None], ["cap", steps.sphere(4), pose(), (0.2, 0.7, 0.3)]], pose(), None],
        ["lid", plate, pose(), None],
    ]


@pytest.mark.slow
@sampled("unit", ["MM", "INCH", "MIL"], 1)
def test_hierarchy_names_colours_and_unit_survive_writing_in_another_pose(tmp_path, unit):
    rng = np.random.default_rng(11)
    steps.write(tmp_path / "nested.step", nested(rng), unit)
    first = cd.load_step(tmp_path / "nested.step")
    assert len(first) == 6 and len({part.path for part in first.parts}) == 6
    m = cd.Mechanism("posed")
    m.add(first)
    state = m.state.moved({name: (rng.uniform(-0.1, 0.1, 3), steps.unit_quaternion(rng)) for name in first})
    for given in (None, state) if unit == "MM" else (state,):
        again = cd.load_step(cd.cad.save_step(first, tmp_path / "again.step", given))
        assert again.unit == first.unit and list(again) == list(first)
        for name, part in first.items():
            pose = part if given is None else given[name]
            assert again[name].path == part.path
            assert (again[name].color is None) == (part.color is None)
            np.testing.assert_allclose(again[name].color or (), part.color or (), atol=2e-3)
            np.testing.assert_allclose(again[name].position, pose.position, atol=1e-12)
            assert abs(abs(float(again[name].quaternion @ pose.quaternion)) - 1.0) < 1e-12
            assert again[name].volume == pytest.approx(part.volume, rel=1e-12)
    (tmp_path / "nested.step").unlink()
    with pytest.raises(cd.ModelError, match="does not exist any more"):
        cd.cad.save_step(first, tmp_path / "again.step")


@pytest.mark.slow
def test_a_pose_is_written_and_read_again(linkage, tmp_path):
    rng = np.random.default_rng(8)
    m = cd.Mechanism("posed")
    m.add(linkage)
    state = m.state.moved({name: (rng.uniform(-0.1, 0.1, 3), steps.unit_quaternion(rng)) for name in linkage})
    again = cd.load_step(cd.cad.save_step(linkage, tmp_path / "posed.step", state))
    assert list(again) == list(linkage)
    for name in linkage:
        np.testing.assert_allclose(again[name].position, state[name].position, atol=1e-12)
        assert abs(abs(float(again[name].quaternion @ state[name].quaternion)) - 1.0) < 1e-12
        assert again[name].volume == pytest.approx(linkage[name].volume, rel=1e-12)
        np.testing.assert_allclose(again[name].color, linkage[name].color, atol=2e-3)


@pytest.mark.slow
def test_the_pose_of_a_renamed_body_is_written_to_its_part_or_refused_by_name(linkage, tmp_path):
    m = cd.Mechanism("renamed")
    for name in ("base", "crank", "coupler"):
        m.add(linkage[name], name="lever" if name == "crank" else name)
    pose = ((1.0, 2.0, 3.0), steps.about_z(0.3))
    state, target = m.state.moved({"lever": pose}), tmp_path / "posed.step"
    with pytest.raises(
        cd.ModelError, match=r"parts 'crank', 'rocker', .* bodies 'lever'; .* bodies={'crank': 'lever'}"
    ):
        cd.cad.save_step(linkage, target, state)
    other = m.copy()
    other.body("other")
    with pytest.raises(cd.ModelError, match=r"parts 'rocker', .* bodies 'other'; .*{'rocker': None}"):
        cd.cad.save_step(linkage, target, other.state, bodies={"crank": "lever"})
    assert not target.exists()
    again = cd.load_step(cd.cad.save_step(linkage, target, state, bodies={"crank": "lever", "rocker": None}))
    np.testing.assert_allclose(again["crank"].position, pose[0], atol=1e-12)
    assert abs(again["crank"].quaternion @ pose[1]) == pytest.approx(1.0, abs=1e-12)
    for name in ("base", "coupler", "rocker"):
        np.testing.assert_allclose(again[name].position, linkage[name].position, atol=1e-12)


@pytest.mark.slow
def test_a_body_beside_the_assembly_and_a_part_without_a_body_are_no_errors_alone(linkage, tmp_path):
    m = cd.Mechanism("more")
    m.add(linkage["crank"])
    fewer = m.state.moved({"crank": ((0.1, 0.2, 0.3), (1, 0, 0, 0))})
    again = cd.load_step(cd.cad.save_step(linkage, tmp_path / "fewer.stp", fewer))
    np.testing.assert_allclose(again["crank"].position, (0.1, 0.2, 0.3), atol=1e-12)
    np.testing.assert_allclose(again["rocker"].position, linkage["rocker"].position, atol=1e-12)
    m = cd.Mechanism("all")
    m.add(linkage)
    m.body("beside")
    more = m.state.moved({"rocker": ((0.1, 0.2, 0.3), (1, 0, 0, 0))})
    again = cd.load_step(cd.cad.save_step(linkage, tmp_path / "MORE.STEP", more))
    np.testing.assert_allclose(again["rocker"].position, (0.1, 0.2, 0.3), atol=1e-12)


def test_wrong_bodies_of_parts_and_states_without_a_part_are_refused(linkage, tmp_path):
    m = cd.Mechanism("wrong")
    for name in ("crank", "rocker"):
        m.add(linkage[name])
    other = cd.Mechanism("other")
    other.body("other")
    cases = (
        (m.state, {"crnk": "rocker"}, "no part of this assembly is named 'crnk'"),
        (m.state, {"crank": "lever"}, "no body of the state is named 'lever'"),
        (m.state, {"crank": "rocker"}, "parts 'crank' and 'rocker' would both have the pose of body 'rocker'"),
        (m.state, ["crank"], "it must be as"),
        (m.state, {"crank": None, "rocker": None}, "parts 'base', 'coupler', .* bodies 'crank', 'rocker'"),
        (m.state, {"crank": m["crank"]}, "no body of the state is named <Body 'crank'>"),
        (m.state, dict.fromkeys(linkage), "no body of this assembly"),
        (None, {"crank": "rocker"}, "no state"),
        (other.state, None, "parts 'base', 'crank', 'coupler', 'rocker', .* bodies 'other'"),
    )
    for state, bodies, message in cases:
        with pytest.raises(cd.ModelError, match=message):
            cd.cad.save_step(linkage, tmp_path / "out.step", state, bodies=bodies)
    for name in ("out.stl", "out", "out.step.gz"):
        with pytest.raises(cd.ModelError, match=rf"{name}'; it writes STEP: end it in \.step or \.stp"):
            cd.cad.save_step(linkage, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_file_is_read_and_written_by_a_new_process(linkage, tmp_path, monkeypatch):
    """The other tests fork a process that has loaded OCP, see forks.py."""
    monkeypatch.setattr(step, "subprocess", subprocess)
    cd.cad.save_step(linkage, tmp_path / "again.step")
    again = cd.load_step(tmp_path / "again.step")
    assert [part.name for part in again.parts] == [part.name for part in linkage.parts]
    for part, same in zip(linkage.parts, again.parts, strict=True):
        assert same.volume == pytest.approx(part.volume, rel=1e-9)
        assert len(same.faces) == len(part.faces)


def test_the_reader_is_ended_after_its_time(linkage, monkeypatch):
    monkeypatch.setattr(step, "subprocess", subprocess)
    with pytest.raises(cd.ModelError, match=r"not read within 0\.01 s"):
        cd.load_step(linkage.path, seconds=0.01)


def test_a_crash_of_the_kernel_is_an_error(linkage, tmp_path, monkeypatch):
    crash = tmp_path / "crash.py"
    crash.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", encoding="utf-8")
    monkeypatch.setattr(step.child, "__file__", str(crash))
    with pytest.raises(cd.ModelError, match="ended with signal 11"):
        cd.load_step(linkage.path)


def test_without_the_extra_the_message_says_what_to_install(linkage, monkeypatch):
    monkeypatch.setattr(step, "find_spec", lambda name: None)
    with pytest.raises(cd.ModelError, match=r"pip install 'cardan\[cad\]'"):
        cd.load_step(linkage.path)
    with pytest.raises(cd.ModelError, match=r"pip install 'cardan\[cad\]'"):
        cd.cad.save_step(linkage, "out.step")


LOADED = "{name.partition('.')[0] for name in sys.modules} & {'OCP', 'cadquery', 'build123d', 'casadi'}"


@pytest.mark.slow
def test_without_cad_nothing_of_it_is_loaded(tmp_path):
    """So `import cardan` and `cardan solve` are as fast with the extra as without it."""
    code = (
        "import sys, cardan; from cardan.cli import main; code = main(['solve', 'rsur'])\n"
        f"found = {LOADED} | {{name for name in sys.modules if name.startswith('cardan.cad.')}}\n"
        "sys.exit(code or (str(found) if found else 0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", ["import", "view"])
def test_a_process_without_the_extra_says_what_to_install(linkage, verb):
    call = f"sys.exit(main({[verb, str(linkage.path)]}))"
    code = f"import sys; sys.modules['OCP'] = None; from cardan.cli import main; {call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode and "Traceback" not in done.stderr
    assert "pip install 'cardan[cad]'" in done.stderr


def test_only_parts_and_assemblies_are_added(linkage):
    m = cd.Mechanism("wrong")
    with pytest.raises(cd.ModelError, match="it must be a part or an assembly"):
        m.add(3)
    with pytest.raises(cd.ModelError, match="the names of its parts"):
        m.add(linkage, "name")


def test_frames_of_faces_are_at_their_centres_and_faces_attach_where_they_are(tmp_path):
    bored = steps.cut(steps.box((40, 40, 10), (0, 0, 5)), steps.cylinder(5, 40, (0, 0, -15)))
    path = tmp_path / "placed.step"
    steps.write(path, [["bored", bored, HERE, None], ["ball", steps.sphere(40, (100, 200, 300)), HERE, None]])
    found = cd.load_step(path)
    m = cd.Mechanism("placed")
    block, ball = m.add(found["bored"], fixed=True), m.add(found["ball"], fixed=True)
    np.testing.assert_allclose(found["bored"].cylinders()[0].frame(block).origin, (0, 0, 5e-3), atol=1e-12)
    other = m.body("other", position=(0.1, 0.2, 0.36))
    m.contact("on", found["ball"].spheres()[0].attach_to(ball), other.attach(cd.geometry.sphere(0.01)))
    result = m.assemble()
    assert result.ok
    assert np.linalg.norm(result.state["other"].position - (0.1, 0.2, 0.3)) == pytest.approx(0.05, abs=1e-12)
    with pytest.raises(cd.ModelError, match="density= and mass="):
        m.add(found["ball"], "heavy", density=1000.0, mass=3.0)


def test_parts_assemblies_and_picks_are_read_only(linkage):
    crank = linkage["crank"]
    for item, word in (
        (crank, "name"),
        (crank, "position"),
        (crank, "nme"),
        (linkage, "unit"),
        (crank.faces[0], "center"),
        (crank.edges[0], "ends"),
        (crank.vertices[0], "name"),
    ):
        with pytest.raises(cd.ReadOnlyError, match=f"'{word}' of <?{type(item).__name__}.* cannot be set"):
            setattr(item, word, (1.0, 1.0, 1.0))
    with pytest.raises(cd.ReadOnlyError, match=r"'name' of <Part 'crank'.*m\.add\(part"):
        del crank.name
    for array in (crank.position, crank.quaternion, crank.center, crank.inertia, crank.triangle_faces):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    copied = pickle.loads(pickle.dumps(crank))
    assert copied.name == "crank" and copied.position.tolist() == crank.position.tolist()
    assert cd.Mechanism("kept").add(copied).position == tuple(crank.position)


def test_mass_and_density_of_a_part_are_not_given_together(linkage):
    """As for attached shapes: a mass of its own would leave the inertia of another mass."""
    m = cd.Mechanism("heavy")
    body = m.add(linkage["crank"], density=7850)
    before = body.mass, body.center, body.inertia
    for one in (body, m.copy()["crank"]):
        for word, value in (("mass", 3.0), ("center", (0, 0, 1)), ("inertia", np.eye(3))):
            with pytest.raises(
                cd.ModelError, match=f"{word} of body 'crank' follows from density=7850 of part 'crank'"
            ):
                setattr(one, word, value)
        assert (one.mass, one.center, one.inertia) == before
    body.position = (1.0, 0.0, 0.0)
    light = m.add(linkage["rocker"], mass=2.0)
    light.mass = 3.0
    assert light.mass == 3.0


def test_a_proposal_is_added_to_a_mechanism(linkage):
    m = cd.Mechanism("added")
    m.add(linkage)
    (first, *_) = cd.cad.propose_joints(linkage)
    assert m.add(first, "hinge").name == "hinge" and "hinge" in m.joints
    with pytest.raises(cd.ModelError, match="options of a body"):
        m.add(first, density=1.0)
    with pytest.raises(cd.ModelError, match="it must be an assembly"):
        cd.cad.propose_joints("four bar.step")
    with pytest.raises(cd.ModelError, match="it must be an assembly"):
        cd.cad.save_step("four bar.step", "out.step")
    with pytest.raises(cd.ModelError, match="it must be a State"):
        cd.cad.save_step(linkage, "out.step", 3)


@pytest.mark.slow
def test_faces_edges_and_vertices_are_picked_by_the_names_of_the_file(tmp_path):
    path = tmp_path / "named.step"
    steps.write(path, [["block", steps.box((20, 10, 5)), HERE, None]])
    text = path.read_text()
    for entity, name in (("ADVANCED_FACE", "seat"), ("EDGE_CURVE", "rim"), ("VERTEX_POINT", "tip")):
        assert f"{entity}(''," in text
        text = text.replace(f"{entity}('',", f"{entity}('{name}',", 1).replace(f"{entity}('',", f"{entity}('NONE',")
    path.write_text(text)
    part = cd.load_step(path)["block"]
    seat = part.faces.named("seat")
    assert seat.kind == "plane" and [face.name for face in part.faces].count("") == 5
    assert part.edges.named("rim").kind == "line" and part.vertices.named("tip").kind == "vertex"
    with pytest.raises(cd.ModelError, match=r"no faces of part 'block' is named 'seta'; the file has 'seat'"):
        part.faces.named("seta")
    again = cd.load_step(cd.cad.save_step(cd.load_step(path), tmp_path / "again.step"))["block"]
    np.testing.assert_allclose(again.faces.named("seat").center, seat.center, atol=1e-12)


def test_a_cone_of_a_file_is_a_cone_and_a_pointed_one_ends_at_its_apex(tmp_path):
    path = tmp_path / "cones.step"
    tree = [["blunt", steps.cone(12, 6, 30), HERE, None], ["pointed", steps.cone(0, 8, 20), HERE, None]]
    steps.write(path, tree)
    found = cd.load_step(path)
    rng = np.random.default_rng(1)
    for part in found.parts:
        m = cd.Mechanism("cone")
        body = m.add(part, fixed=True)
        (face,) = part.cones()
        attached = face.attach_to(body)
        shape = attached.shape.geometry
        assert shape.name == "cone"
        (a, b), (c, d) = face.nurbs.bounds
        for p in face.nurbs.evaluate(np.column_stack([rng.uniform(a, b, 50), rng.uniform(c, d, 50)])):
            x, y, z = _in_frame(attached.frame, p)
            assert math.hypot(x, y) == pytest.approx(shape.numbers[0] + shape.numbers[1] * z, abs=1e-12)
            assert shape.bounds[1][0] - 1e-12 <= z <= shape.bounds[1][1] + 1e-12


def _in_frame(frame, p):
    z, x = np.array(frame.z), np.array(frame.x)
    return np.array([x, np.cross(z, x), z]) @ (p - np.array(frame.origin))


@pytest.mark.slow
@pytest.mark.parametrize("trimmed", [False, True])
def test_contacts_are_outside_of_the_material(tmp_path, trimmed):
    """In a bowl, in a bore, and below a plate, whose face the kernel has turned; mirrored parts too."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
    from OCP.gp import gp_Trsf

    mirror = gp_Trsf()
    mirror.SetMirror(steps.axes((0, 0, 0), (1, 0, 0)))
    bowl = steps.cut(steps.box((60, 60, 30), (0, 0, -15)), steps.sphere(20))
    bore = steps.cut(steps.box((60, 60, 60)), steps.cylinder(20, 100, (0, 0, -50)))
    tree = [[name, shape, HERE, None] for name, shape in (("bowl", bowl), ("bore", bore), ("ball", steps.sphere(5)))]
    tree += [
        [f"{name} 2", BRepBuilderAPI_Transform(shape, mirror, True).Shape(), HERE, None] for name, shape, *_ in tree[:2]
    ]
    steps.write(tmp_path / "holes.step", tree)
    found = cd.load_step(tmp_path / "holes.step")
    low = min(found["bowl"].planes(), key=lambda face: face.center[2])
    cases = [(found[name].spheres().only(), (3, 2, -8), "bowl") for name in ("bowl", "bowl 2")]
    cases += [(found[name].cylinders().only(), (9, 3, 4), "bore") for name in ("bore", "bore 2")]
    cases += [(face, (0.5 * (face.center + face.z * 0.03) * 1e3).tolist(), "plane") for face in (low,)]
    for face, at, kind in cases:
        m = cd.Mechanism("hole")
        base, ball = m.add(face.part, fixed=True), m.add(found["ball"], position=[1e-3 * x for x in at])
        m.contact("on", face.attach_to(base, trimmed=trimmed), found["ball"].spheres().only().attach_to(ball))
        result = m.assemble()
        x, y, z = result.state["ball"].position
        far = {"bowl": math.hypot(x, y, z), "bore": math.hypot(x, y), "plane": -z}[kind]
        assert result.ok and far == pytest.approx({"bowl": 15e-3, "bore": 15e-3, "plane": 35e-3}[kind], abs=1e-9)


@pytest.mark.slow
def test_a_contact_on_a_trimmed_face_ends_at_its_hole_and_is_saved(tmp_path):
    """A ball slides on a plate to a hole of 8 mm radius: the contact ends at the edge of the hole."""
    plate = steps.cut(steps.box((80, 60, 10), (0, 0, -5)), steps.cylinder(8, 40, (0, 0, -20)))
    steps.write(tmp_path / "plate.step", [["plate", plate, HERE, None], ["ball", steps.sphere(3), HERE, None]])
    found = cd.load_step(tmp_path / "plate.step")
    top = max(found["plate"].planes().parallel((0, 0, 1)), key=lambda face: face.center[2])
    m = cd.Mechanism("trimmed", gravity=(0, 0, 0))
    base, ball = m.add(found["plate"], fixed=True), m.add(found["ball"], density=7850.0)
    m.contact("on", top.attach_to(base, trimmed=True), found["ball"].spheres().only().attach_to(ball))
    m.save(tmp_path / "trimmed.cardan.toml")
    again = cd.load(tmp_path / "trimmed.cardan.toml")
    assert again == m
    for one in (m, again):
        start = one.assemble(one.state.moved({"ball": ((0.02, 0.001, 0.003), (1, 0, 0, 0))})).state
        rates = np.zeros((2, 6))
        rates[1, 0] = -0.05
        run = one.simulate(1.0, start.with_rates(rates), rtol=1e-8)
        assert run.status == "contact" and "trimmed face" in run.reason
        x, y, _ = run.state["ball"].position
        assert math.hypot(x, y) == pytest.approx(8e-3, abs=1e-8)


def test_parts_collide_as_their_meshes_with_the_chord_that_was_asked_for(tmp_path):
    """A pin in a bore of 5 mm: its clearance within the stated error."""
    path = tmp_path / "link.step"
    steps.write(path, [["link", steps.link(40.0), HERE, None]])
    place, errors = (0, 0, 0, 1, 0, 0, 0), []
    for chord in (2e-4, 2e-5):
        part = cd.load_step(path, chord=chord)["link"]
        link = cd.collide.solid(part.mesh)
        pin = cd.shapes.cylinder(0.003, 0.02)
        for shift, clearance in ((0.0, 2e-3), (1e-3, 1e-3), (3e-3, -1e-3)):
            found = cd.collide.gap(link, place, pin, (shift, 0, 0.003, 1, 0, 0, 0))
            assert found.error == chord and abs(found.gap - clearance) <= chord
        errors.append(abs(found.gap - clearance))
    assert errors[1] < errors[0]
