"""Broken and hostile STEP files, and parts that are not what a mechanism wants."""

from __future__ import annotations

import time

import numpy as np
import pytest

import cardan as cd
from cardan.cad import step
from later import Later
from tests.cad.test_step import four_bar

steps = Later("tests.cad.steps")

HERE = ((0, 0, 0), (1, 0, 0, 0))
SECONDS = 20.0
MEMORY = 300.0  # MB of the process that reads a file; OCP alone takes 170


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("step") / "four bar.step"
    steps.write(path, four_bar())
    return path.read_bytes()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Two parts, in a quarter of the size."""
    path = tmp_path_factory.mktemp("step") / "small.step"
    plate = steps.cut(steps.box((40, 30, 20)), steps.cylinder(4, 50, (0, 0, -25)))
    steps.write(path, [["plate", plate, HERE, None], ["pin", steps.cylinder(3, 30), HERE, None]])
    return path.read_bytes()


def mutated(content, rng):
    """Truncated; bytes changed, removed or inserted; or records changed: numbers, references, names of entities."""
    kind = int(rng.integers(6))
    data = bytearray(content)
    if kind == 0:
        return bytes(data[: int(rng.integers(len(data)))])
    if kind >= 4:
        return _with_wrong_records(content, rng, kind == 4)
    for _ in range(int(rng.integers(1, 30))):
        at = int(rng.integers(len(data)))
        if kind == 1:
            data[at] = int(rng.integers(256))
        elif kind == 2:
            del data[at : at + int(rng.integers(1, 40))]
        else:
            data[at:at] = b"#%d=" % rng.integers(10**6) if rng.random() < 0.5 else b"(" * int(rng.integers(200))
    return bytes(data)


WRONG_NUMBERS = (b"0.", b"-1.", b"1.E308", b"-1.E308", b"1.E-320", b"9" * 400, b"NAN", b"$", b"*", b"1.E12")


def _with_wrong_records(content, rng, numbers):
    """Some numbers replaced by extreme ones, or some references by others (cycles, wrong types)."""
    import re

    words = list(re.finditer(rb"-?\d+\.(?:\d*)(?:E-?\d+)?" if numbers else rb"#\d+", content))
    chosen = sorted(int(k) for k in rng.choice(len(words), size=int(rng.integers(1, 12)), replace=False))
    out, last = bytearray(), 0
    for k in chosen:
        word = words[k]
        other = WRONG_NUMBERS[int(rng.integers(len(WRONG_NUMBERS)))] if numbers else b"#%d" % rng.integers(1, 2500)
        out += content[last : word.start()] + other
        last = word.end()
    return bytes(out + content[last:])


def check_mutated(path, content, seed):
    """Read a mutated file: 1 if it has parts, 0 if it is an error that names the file."""
    path.write_bytes(mutated(content, np.random.default_rng(seed)))
    began = time.monotonic()
    try:
        found = cd.load_step(path, seconds=SECONDS)
    except cd.ModelError as error:
        assert str(path) in str(error) and "\n" not in str(error), seed
        return 0
    finally:
        assert time.monotonic() - began <= SECONDS + 10.0, seed
    assert len(found) >= 1
    for part in found.parts:  # what was read is numbers
        assert np.isfinite(part.mesh.vertices).all() and np.isfinite([part.volume, *part.center]).all(), seed
    return 1


@pytest.mark.slow
def test_broken_files_are_errors_that_name_the_file(content, tmp_path):
    for seed in range(2):
        check_mutated(tmp_path / "broken.step", content, seed)
    for text in (b"", b"hello", b"ISO-10303-21;\nEND-ISO-10303-21;\n"):
        (tmp_path / "no.step").write_bytes(text)
        with pytest.raises(cd.ModelError, match="cannot be read as STEP"):
            cd.load_step(tmp_path / "no.step")
    with pytest.raises(cd.ModelError, match="no such file"):
        cd.load_step(tmp_path / "missing.step")
    with pytest.raises(cd.ModelError, match="no such file"):
        cd.load_step(tmp_path)


@pytest.mark.slow
def test_no_part_of_a_broken_file_is_left_out_silently(content, tmp_path):
    """OCP reads such files, without the records that are wrong and the parts that need them."""
    path, text = tmp_path / "broken.step", content.decode()
    instance = next(line for line in text.splitlines() if "= NEXT_ASSEMBLY_USAGE_OCCURRENCE(" in line)
    number = 1 + text.splitlines().index(instance)
    path.write_text(text.replace(instance, instance.replace("= NEXT", "= ?NEXT")))
    with pytest.raises(cd.ModelError, match=rf"broken.step cannot be read as STEP: it is broken: Line {number + 1}: "):
        cd.load_step(path)
    face = next(line for line in text.splitlines() if "= ADVANCED_FACE(" in line)
    plane, point = (
        next(line.partition(" ")[0] for line in text.splitlines() if f"= {what}(" in line)
        for what in ("PLANE", "CARTESIAN_POINT")
    )
    path.write_text(text.replace(face, face.replace(f",{plane},", f",{point},")))
    with pytest.raises(cd.ModelError, match=r"it is broken in a record AdvancedFace: .*face_geometry"):
        cd.load_step(path)


@pytest.mark.slow
def test_parts_without_faces_are_read_and_give_no_joints(tmp_path):
    from OCP.BRep import BRep_Builder
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakePolygon
    from OCP.gp import gp_Pnt
    from OCP.TopoDS import TopoDS_Compound

    empty = TopoDS_Compound()
    BRep_Builder().MakeCompound(empty)
    wire = BRepBuilderAPI_MakePolygon(gp_Pnt(0, 0, 0), gp_Pnt(1, 0, 0), gp_Pnt(1, 1, 0)).Wire()
    tree = [["empty", empty, HERE, None], ["wire", wire, HERE, None]]
    for more in ([], [["box", steps.box((3, 3, 3)), HERE, None]]):
        steps.write(tmp_path / "empty.step", [*tree, *more])
        found = cd.load_step(tmp_path / "empty.step")
        assert list(found)[:2] == ["empty", "wire"] and found["wire"].edges.largest().kind == "line"
        assert cd.cad.propose_joints(found) == []
        draft = cd.cad.Draft(found)
        assert draft.diagnose().dof == 6 * (len(found) - 1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [b"1.E13", b"-4.E20"])
def test_a_part_that_extends_too_far_is_an_error(number, small, tmp_path):
    path, corner = tmp_path / "far.step", b"(20.,15.,10.)"
    assert corner in small
    path.write_bytes(small.replace(corner, b"(" + number + b",15.,10.)"))
    with pytest.raises(cd.ModelError, match=r"far.step cannot be read as STEP: a part extends to \S+ m, so numbers"):
        cd.load_step(path)


@pytest.mark.slow
def test_a_part_without_a_finite_volume_is_an_error(content, tmp_path, monkeypatch):
    """As seed 3 below, whose volume takes twenty seconds."""
    (tmp_path / "endless.step").write_bytes(content)
    read = step._with_arrays
    monkeypatch.setattr(step, "_with_arrays", lambda part, table: read(part, table) | {"volume": np.inf})
    with pytest.raises(cd.ModelError, match=r"endless.step cannot be read as STEP: the volume of part '.*' is inf m³"):
        cd.load_step(tmp_path / "endless.step")


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_two_thousand_broken_files_are_errors_or_models(part, content, small, tmp_path, forks):
    """In parts of a hundred, each file in a process with the limits of the reader; most are small, so read further."""
    read = []
    for seed in range(100 * part, 100 * (part + 1)):
        read.append(check_mutated(tmp_path / "broken.step", content if seed % 5 == 3 else small, seed))
    used = [] if forks is None else forks.used[-100:]
    slow = [f"{seconds:.1f} s" for seconds, _ in used if seconds > 1.0]
    most = max((megabytes for _, megabytes in used), default=0.0)
    print(f"part {part}: {sum(read)} of 100 were read; at most {most:.0f} MB; above 1 s: {slow}")
    assert sum(read) < 100 and most < MEMORY


@pytest.mark.slow
def test_assemblies_that_mean_more_parts_than_memory_are_refused(tmp_path):
    """Four levels of twelve."""
    tree = [["box", steps.box((1, 1, 1)), HERE, None]]
    steps.write(tmp_path / "many.step", tree, levels=4, times=12)
    with pytest.raises(cd.ModelError, match="more than 20,000 parts"):
        cd.load_step(tmp_path / "many.step")


@pytest.mark.slow
def test_the_same_part_many_times_is_described_once_and_named_apart(tmp_path):
    ball = steps.sphere(3)
    tree = [["ball", ball, ((10.0 * k, 0, 0), (1, 0, 0, 0)), None] for k in range(40)]
    steps.write(tmp_path / "balls.step", tree)
    found = cd.load_step(tmp_path / "balls.step")
    assert list(found) == ["ball", *[f"ball {k}" for k in range(2, 41)]]
    assert len({id(part._data) for part in found.parts}) == 1
    np.testing.assert_allclose([part.position[0] for part in found.parts], 0.01 * np.arange(40), atol=1e-12)
    m = cd.Mechanism("balls")
    assert len(m.add(found, density=1000.0)) == 40


@pytest.mark.slow
def test_a_mirrored_part_is_read_as_it_is_drawn(tmp_path):
    """A mirror is in the shape, not in the placement: frames are right-handed, masses positive, normals outward."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
    from OCP.gp import gp_Trsf

    mirror = gp_Trsf()
    mirror.SetMirror(steps.axes((0, 0, 0), (1, 0, 0)))
    shape = steps.cut(steps.box((40, 30, 20), (30, 0, 0)), steps.cylinder(4, 50, (20, 0, -25)))
    tree = [["right", shape, HERE, None], ["left", BRepBuilderAPI_Transform(shape, mirror, True).Shape(), HERE, None]]
    steps.write(tmp_path / "pair.step", tree)
    found = cd.load_step(tmp_path / "pair.step")
    right, left = found["right"], found["left"]
    assert left.volume == pytest.approx(right.volume, rel=1e-12)
    np.testing.assert_allclose(left.center, right.center * (-1, 1, 1), atol=1e-12)
    hole = left.cylinders(radius=4 * cd.mm)[0]
    assert hole.is_hole
    np.testing.assert_allclose(hole.middle, right.cylinders()[0].middle * (-1, 1, 1), atol=1e-12)
    for face in left.planes():
        a, b, c = face.triangles[0]
        assert np.cross(b - a, c - a) @ face.z > 0.0  # out of the part, as the triangles


def test_scaled_and_mirrored_placements_are_refused_by_name():
    from OCP.gp import gp_Pnt, gp_Trsf

    from cardan.cad.kernel.common import Failure
    from cardan.cad.kernel.document import _placement

    class Location:
        def __init__(self, moved):
            self.moved = moved

        def IsIdentity(self):
            return False

        def Transformation(self):
            return self.moved

    scaled, mirrored = gp_Trsf(), gp_Trsf()
    scaled.SetScale(gp_Pnt(0, 0, 0), 2.0)
    mirrored.SetMirror(steps.axes())
    for moved in (scaled, mirrored):
        with pytest.raises(Failure, match="part 'gear' is placed with a mirror or the scale"):
            _placement(Location(moved), "gear")


@pytest.mark.slow
def test_parts_without_solids_are_looks_without_mass(tmp_path):
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeFace
    from OCP.gp import gp_Pln

    sheet = BRepBuilderAPI_MakeFace(gp_Pln(), -10.0, 10.0, -5.0, 5.0).Face()
    steps.write(tmp_path / "sheet.step", [["sheet", sheet, HERE, None], ["box", steps.box((5, 5, 5)), HERE, None]])
    found = cd.load_step(tmp_path / "sheet.step")
    sheet = found["sheet"]
    assert sheet.volume == 0.0 and len(sheet.faces) == 1 and sheet.planes().largest().size == pytest.approx(200e-6)
    m = cd.Mechanism("sheet")
    with pytest.raises(cd.ModelError, match="'sheet' encloses no volume"):
        m.add(sheet, density=1000.0)
    assert m.add(sheet).name == "sheet"
    draft = cd.cad.Draft(found)
    assert draft.ground == "box" and draft.mechanism()["sheet"].mass == 0.0  # as that of a body without a given mass


@pytest.mark.slow
def test_picks_that_are_empty_or_have_no_axis_say_so(tmp_path):
    part_shape = steps.cut(steps.box((40, 30, 20)), *[steps.cylinder(3, 50, (x, 0, -25)) for x in (-10, 10)])
    steps.write(tmp_path / "part.step", [["part", part_shape, HERE, None], ["ring", steps.torus(9, 2), HERE, None]])
    found = cd.load_step(tmp_path / "part.step")
    part = found["part"]
    with pytest.raises(cd.ModelError, match="there are no spheres"):
        part.spheres().largest()
    with pytest.raises(cd.ModelError, match=r"there are no parallel to \(1, 1, 1\) among cylinders"):
        part.cylinders().parallel((1, 1, 1)).nearest((0, 0, 0))
    with pytest.raises(cd.ModelError, match=r"2 cylinders of radius 0\.003 m .* fit; .*nearest"):
        part.cylinders(radius=3 * cd.mm).only()
    assert part.cylinders().where(lambda face: face.middle[0] > 0).only().middle[0] == pytest.approx(0.01)
    with pytest.raises(cd.ModelError, match="has no radius; it is a plane"):
        _ = part.planes()[0].radius
    with pytest.raises(cd.ModelError, match="has no axis"):
        part.vertices[0].frame(cd.Mechanism("m").body("b"))
    with pytest.raises(cd.ModelError, match="a point"):
        part.faces.nearest((0, np.nan, 0))
    with pytest.raises(cd.ModelError, match="radius"):
        part.cylinders(radius=-1.0)
    with pytest.raises(cd.ModelError, match="the kind of a pick is 'plan'; it must be one of plane, "):
        part.faces.of_kind("plan")
    with pytest.raises(cd.UnknownNameError, match="part"):
        found["prat"]
