"""Contacts in model files: every sort of shape, by value and in a file of its own; names of faces; errors."""

from __future__ import annotations

import os
import pickle
from math import inf
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.files import faces, reader, writer

g = cd.geometry
NET = [[(x, y, 0.3 * (x * x + y * y)) for y in (-1.0, 0.0, 1.0)] for x in (-1.0, 0.0, 1.0)]
SHAPES = {
    "point": g.analytic.Point((0.1, -0.2, 0.3)),
    "line": g.line((-0.5, 2.0)),
    "endless line": g.line(),
    "circle": g.circle(0.3),
    "ellipse": g.ellipse(0.3, 0.2),
    "plane": g.plane(1.0, (-1.0, 3.0)),
    "endless plane": g.plane(),
    "strip": g.plane(None, 0.1),
    "sphere": g.sphere(0.1),
    "ellipsoid": g.ellipsoid(0.1, 0.2, 0.3),
    "cylinder": g.cylinder(0.1, 0.7),
    "endless cylinder": g.cylinder(0.1),
    "cone": g.cone(0.2, -0.1, (0.0, 1.5)),
    "torus": g.torus(1.0 / 3.0, 0.1),
    "curve": g.Curve([(0, 0), (1, 0.1), (2, 0), (3, 1.0 / 3.0)], (1, 2, 1.5, 1)),
    "closed curve": g.Curve([(0, 0, 1), (1, 0, 0), (1, 1, 0), (0, 1, 0)], degree=2, periodic=True),
    "surface": g.Surface(NET, degree=2),
    "rational surface": g.sphere(0.3).to_nurbs(),
    "traced curve": g.traced(lambda u: (cd.cos(u) + u * cd.sin(u), cd.sin(u) - u * cd.cos(u)), (0.1, 2.0)),
    "traced surface": g.traced(
        lambda u, v: ((2.0 + cd.cos(v)) * cd.cos(u), (2.0 + cd.cos(v)) * cd.sin(u), 0.1 * cd.exp(-u) - 1.5),
        (0.0, 2 * cd.pi),
        (-1.0, 1.0),
        period=(2 * cd.pi, 0.0),
    ),
}


def loaded(content: str, **options) -> cd.Mechanism:
    return reader.read(content, "model.cardan.toml", False, **options)


@pytest.mark.parametrize("name", SHAPES)
def test_every_curve_and_surface_is_carried_to_the_last_bit(name: str) -> None:
    m = cd.Mechanism("m")
    m.body("b").attach(SHAPES[name], color="#102030")
    m.body("c").attach(SHAPES[name], m["c"].frame((0.1, 0, 0), z=(0, 1, 0)))
    for options in ({}, {"as_json": True}, {"units": {"length": "mm", "angle": "deg"}}):
        content = writer.dumps(m, **options)
        first = reader.read(content, "m", options.get("as_json", False))
        assert writer.dumps(first, as_json=options.get("as_json", False)) == content
        second = reader.read(content, "m", options.get("as_json", False))
        assert second == first
        shape = first["b"].attachments[0].shape.geometry
        assert (shape.freedoms, shape.bounds, shape.periods) == (
            SHAPES[name].freedoms,
            SHAPES[name].bounds,
            SHAPES[name].periods,
        )
        if "traced" not in name:
            assert shape.key() == SHAPES[name].key()
            continue
        q = SHAPES[name].sample(7)
        assert np.allclose(shape._evaluate(q, 3), SHAPES[name]._evaluate(q, 3), rtol=1e-12, atol=1e-12)


def test_samples_of_a_traced_shape_are_those_of_its_kernel() -> None:
    """Before the kernel is compiled, they are interpreted."""
    shape = g.traced(lambda u, v: (u * cd.cos(v), u * cd.sin(v) ** 2, cd.sqrt(u) + v**3), (0.5, 2.0), (-1.0, 1.0))
    q = shape.sample(5)
    for order in range(4):
        assert not shape._address
        interpreted = shape._evaluate(q, order)
        assert not shape._address
        compiled = pickle.loads(pickle.dumps(shape)).evaluate(q, order)
        assert np.allclose(interpreted.reshape(compiled.shape), compiled, rtol=1e-12, atol=1e-12)


def test_a_shape_with_one_bound_is_refused_by_name() -> None:
    m = cd.Mechanism("m")
    m.body("b").attach(g.plane((-inf, 1.0)))
    with pytest.raises(cd.ModelError, match="a shape of body 'b' cannot be saved: a plane has one bound only"):
        writer.dumps(m)


BOWL = """cardan = 1
[bodies.ground]
shapes = [{ geometry = "file", path = "parts/bowl.json", name = "bowl" }]
[bodies.ball]
position = [0.2, 0.1, 0.2]
mass = 1.0
shapes = [{ geometry = "sphere", radius = "50*mm" }]
[joints.on]
kind = "contact"
face_a = "ground.bowl"
face_b = "ball"
"""


def test_a_surface_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    part = tmp_path / "parts" / "bowl.json"
    part.write_text(g.to_json(SHAPES["surface"]))
    file, other = tmp_path / "m.cardan.toml", tmp_path / "other" / "m.cardan.toml"
    other.parent.mkdir()
    file.write_text(BOWL)
    m = cd.load(file)
    assert m.assemble().ok
    for one in (m, m.copy(), pickle.loads(pickle.dumps(m))):
        one.save(file)
        assert 'geometry = "file", path = "parts/bowl.json", name = "bowl"' in file.read_text()
        assert cd.load(file) == m
    m.save(other)  # the shape would not be found from there
    assert "file" not in other.read_text()
    assert cd.load(other) == m
    part.write_text(g.to_json(SHAPES["rational surface"]))
    m.save(file)  # the part is not that of this mechanism any more
    assert cd.load(file) == m
    part.unlink()
    file.write_text(BOWL)
    with pytest.raises(
        cd.FileError, match=r"line 3, bodies.ground.shapes.0.path: the path of a shape 'parts/bowl.json' is not a file"
    ):
        cd.load(file)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ('"../bowl.json"', "must be in the folder of the model"),
        ('"/etc/passwd"', "must be in the folder of the model"),
        ('"parts/link.json"', "must be in the folder of the model"),
        ('"parts"', "is not a file"),
        ('"pipe"', "is not a file"),
        ('""', "must be that of a JSON file"),
        ("3", "must be that of a JSON file"),
        ('"deep.json"', "is not JSON"),
        ('"other.json"', "has no curve or surface"),
        ('"wrong.json"', "points of a curve must be lists of coordinates"),
        (f'"{5000 * "a"}.json"', "is not a file"),  # longer than a name of the system may be
    ],
    ids=lambda value: value[:40],
)
def test_files_of_shapes_are_in_the_folder_of_the_model(path: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bowl.json").write_text(g.to_json(SHAPES["surface"]))
    folder = tmp_path / "model"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "link.json").symlink_to(tmp_path / "bowl.json")
    os.mkfifo(folder / "pipe")  # reading it would wait forever
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "other.json").write_text('{"kind": "solid"}')
    (folder / "wrong.json").write_text('{"kind": "curve", "points": [1, 2], "knots": [[0, 1]], "degrees": [1]}')
    file = folder / "m.cardan.toml"
    file.write_text(BOWL.replace('"parts/bowl.json"', path))
    with pytest.raises(cd.FileError, match=message) as caught:
        cd.load(file)
    assert [problem.line for problem in caught.value.problems] == [3]  # not the contact too


def test_a_path_of_a_shape_that_cannot_be_encoded_is_not_a_file(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    shape = '{"geometry": "file", "path": "\\ud800.json"}'
    file.write_text(f'{{"cardan": 1, "bodies": {{"ground": {{"shapes": [{shape}]}}}}}}')
    with pytest.raises(cd.FileError, match="is not a file; it must be a regular file"):
        cd.load(file)


def test_a_wheel_is_a_short_form_of_a_contact() -> None:
    content = """cardan = 1
    [units]
    length = "mm"
    [bodies.disc]
    position = [0, 0, 300]
    mass = 1.0
    [joints.rolls]
    kind = "wheel"
    frame = { body = "disc", z = [0, 1, 0] }
    radius = 300
    """
    m = loaded(content)
    expected = cd.Mechanism("mechanism")
    disc = expected.body("disc", position=(0, 0, 0.3), mass=1.0)
    expected.wheel("rolls", disc.frame(z=(0, 1, 0)), 0.3)
    assert m == expected
    again = loaded(writer.dumps(m))
    assert again == m
    assert writer.dumps(again) == writer.dumps(m)
    assert list(again.rate_rows) == ["rolls.roll"]
    assert again.diagnose(again.assemble().state).dof == m.diagnose(m.assemble().state).dof


def test_contact_coordinates_of_a_saved_pose_have_no_unit() -> None:
    m = cd.Mechanism("m")
    ball = m.body("ball", position=(0.3, 0.1, 0.2), mass=1.0)
    hinge = m.revolute("hinge", m.ground.frame((5, 0, 0)), m.body("arm", position=(5, 0, 0)).frame())
    m.contact("on", m.ground.attach(SHAPES["surface"]), ball.attach(g.ellipsoid(0.05, 0.06, 0.07)))
    m.poses["resting"] = state = m.assemble().state
    assert hinge.name in state.angles
    for units in ({}, {"length": "mm", "angle": "deg"}):
        again = loaded(writer.dumps(m, units=units)).poses["resting"]
        assert again.angles == state.angles
    found = m.assemble(again).state.contact("on").parameters
    assert np.allclose(found[1], state.contact("on").parameters[1], rtol=0, atol=1e-12)


CONTACT = """cardan = 1
[bodies.ground]
shapes = [{ geometry = "plane", name = "floor" }]
[bodies.ball]
shapes = [{ geometry = "sphere", radius = 0.1, name = "skin" }, { geometry = "circle", radius = 0.1, name = "rim" }]
[joints.on]
kind = "contact"
face_a = "ground.floor"
face_b = "ball.skin"
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message"),
    [
        (
            '"plane"',
            '"plain"',
            3,
            "bodies.ground.shapes.0.geometry",
            "no curve or surface is named 'plain'; did you mean 'plan",
        ),
        ('"plane"', '"plane", radius = 1', 3, "bodies.ground.shapes.0.radius", "no key of a plane is named 'radius'"),
        (
            '"plane"',
            '"plane", density = 1',
            3,
            "bodies.ground.shapes.0.density",
            "no key of a plane is named 'density'",
        ),
        ('"plane"', '"plane", width = [1.0, 0.0]', 3, "bodies.ground.shapes.0.width", "the lower bound must be below"),
        ('"plane"', '"plane", width = [0.0, nan]', 3, "bodies.ground.shapes.0.width", "must be .*finite"),
        ("radius = 0.1, name", 'radius = "1/0", name', 5, "bodies.ball.shapes.0", "division"),
        ("radius = 0.1, name", "radius = -1.0, name", 5, "bodies.ball.shapes.0.radius", "must be above zero"),
        ("radius = 0.1, name", "name", 5, "bodies.ball.shapes.0", "the key 'radius' of a sphere is missing"),
        ('"rim"', '"skin"', 5, "bodies.ball.shapes.1", "two faces with the name 'skin'"),
        ('"rim"', "7", 5, "bodies.ball.shapes.1.name", "the name of a face"),
        ('"ball.skin"', '"ball.skn"', 9, "joints.on.face_b", "no face is named 'ball.skn'; did you mean 'ball.skin'"),
        ('"ball.skin"', '"ball"', 9, "joints.on.face_b", "body 'ball' has 2 curves and surfaces; choose one"),
        ('"ball.skin"', '{ body = "ball" }', 9, "joints.on.face_b", "it must be the name of a face"),
        ('"ball.skin"', '"ball.skin"\nmode = "glide"', 10, "joints.on.mode", "mode is 'glide'"),
        ('"ball.skin"', '"ball.skin"\nmode = 3', 10, "joints.on.mode", "must be a string"),
        ('"ground.floor"', '"ball.rim"', 6, "joints.on", "connects body 'ball' to itself"),
    ],
)
def test_errors_of_contacts_name_line_and_key(old: str, new: str, line: int, key: str, message: str) -> None:
    assert old in CONTACT
    with pytest.raises(cd.FileError, match=message) as caught:
        loaded(CONTACT.replace(old, new, 1))
    assert [(problem.line, problem.key) for problem in caught.value.problems] == [(line, key)]


SQUARE = (
    '"surface", points = [[[0, 0, 0], [0, 1, 0]], [[1, 0, 0], [1, 1, 0]]], knots = [[0, 0, 1, 1], [0, 0, 1, 1]], '
    "degree = 1"
)
RING = (
    "{ degree = 2, points = [[0.5, 0.1], [0.9, 0.1], [0.9, 0.5], [0.5, 0.5], [0.1, 0.5], [0.1, 0.1], [0.5, 0.1]], "
    "knots = [0, 0, 0, 1, 2, 3, 4, 5, 5, 5] }"
)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ('"curve", points = [[0, 0], [1, 1]], knots = [0, 0, 1, 1], degree = 99', "must be from 1 to 9"),
        ('"curve", points = [[0, 0], [1, 1]], knots = [0, 0, 1, 1], degree = true', "must be from 1 to 9"),
        ('"curve", points = [[0, 0], [1, 1]], knots = [0, 0, 1], degree = 1', "3 knots"),
        ('"curve", points = [[0, 0], ["1", 1]], knots = [0, 0, 1, 1], degree = 1', "lists of finite numbers"),
        ('"curve", points = [[0, 0], [inf, 1]], knots = [0, 0, 1, 1], degree = 1', "lists of finite numbers"),
        ('"curve", points = [[0, 0], [1]], knots = [0, 0, 1, 1], degree = 1', "lists of finite numbers"),
        ('"curve", points = [[0, 0], [1, 1]], degree = 1', "the key 'knots' of a curve is missing"),
        ('"surface", points = [[[0, 0, 0]]], knots = [0, 1], degree = 1', "lists of finite numbers"),
        ('"surface", points = [[[0, 0, 0]]], knots = [[0, 1]], degree = 1', "two lists of knots"),
        ('"traced", point = ["u", "v", 0], bounds = [[0, 1]]', "v"),
        ('"traced", point = ["u", "u"], bounds = [[0, 1]]', "three expressions"),
        ('"traced", point = ["u", "u", 0], bounds = [[1, 0]]', "lower one must be below"),
        ('"traced", point = ["u", "u", 0], bounds = [[0, 1]], periods = [3.0]', "the period is 3.0"),
        ('"traced", point = ["u", "u", 0], bounds = [0, 1]', r"must be \[lower, upper\]"),
        ('"traced", point = ["abs(u)", "u", 0], bounds = [[0, 1]]', "abs"),
        (f'"traced", point = ["u{"+u" * 150}", "u{"+u" * 150}", 0], bounds = [[0, 1]]', "more than 200 operations"),
        ('"file", path = "x.json"', "a text has no folder"),
        ('"point", position = [1, 2]', "must be three lengths"),
        ('"point"', "must be three lengths"),
        ('"curve", points = [[0, 0], [1, 1]], knots = [0, 0, 1, 1], degree = 1, loops = []', "loops"),
        (f"{SQUARE}, loops = 3", "must be lists of curves"),
        (f"{SQUARE}, loops = []", "at least one loop"),
        (f"{SQUARE}, loops = [[]]", "loop 0 has no curves"),
        (f"{SQUARE}, loops = [[{{ points = 1 }}]]", "must be lists of curves"),
        (f"{SQUARE}, loops = [[{{ point = [], points = [] }}]]", "no key of a loop is named 'point'"),
        (f"{SQUARE}, loops = [[{RING.replace('0.9', '9.0')}]]", "leaves the domain"),
        (f"{SQUARE}, loops = [[{RING.replace('0.9', '1e300')}]]", "chords"),
        (f"{SQUARE}, loops = [{', '.join([f'[{RING}]'] * 9)}]", "9 loops with 63 control points; a file can contain 8"),
    ],
)
def test_wrong_shapes_are_refused_with_their_place(shape: str, message: str) -> None:
    with pytest.raises(cd.FileError, match=message) as caught:
        loaded(
            f"cardan = 1\n[bodies.b]\nshapes = [{{ geometry = {shape} }}]\n"
            '[joints.on]\nkind = "point_on_curve"\npoint = "ground"\nface = "b"\n'
        )
    assert [problem.line for problem in caught.value.problems] == [3]


def test_the_face_of_a_contact_of_a_file_is_not_detached() -> None:
    m = loaded(CONTACT)
    ball = m["ball"]
    with pytest.raises(cd.ModelError, match=r"detach of body 'ball' got .* a face of contact 'on'; remove"):
        ball.detach(ball.attachments[0])
    again = loaded(writer.dumps(m))
    assert again == m
    m.remove("on")
    face, *others = ball.attachments
    ball.detach(face)
    assert ball.attachments == tuple(others)


def test_the_contact_of_the_documentation_is_valid() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    m = loaded(page.partition("## Contacts")[2].partition("```toml\n")[2].partition("```")[0])
    result = m.assemble()
    assert result.ok
    assert result.state.contact("rolls").status == "regular"


@pytest.mark.slow
def test_large_nurbs_are_refused() -> None:
    m = cd.Mechanism("m")
    points = np.random.default_rng(1).random((faces.MOST_POINTS + 1, 2))
    m.body("b").attach(g.Curve(points, degree=1))
    with pytest.raises(cd.ModelError, match="20,001 control points; a file can contain 20,000"):
        writer.dumps(m)
    m["b"].detach(m["b"].attachments[0])
    m["b"].attach(g.Curve(points[:20], degree=10))
    with pytest.raises(cd.ModelError, match="the degree 10; a file can contain 9"):
        writer.dumps(m)
