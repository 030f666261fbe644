"""Assemblies of CadQuery, beside its own solver.  Run by ``make cad`` in an environment that has CadQuery."""

from __future__ import annotations

import math
import time

import cadquery as cq
import numpy as np
import pytest

import cardan as cd
from cad.published import EXAMPLES


def box_on_box() -> cq.Assembly:
    """A box on another one."""
    a, b = cq.Workplane().box(10, 10, 2), cq.Workplane().box(4, 4, 6)
    found = cq.Assembly(a, name="a").add(b, name="b", loc=cq.Location((20, 5, 30), (1, 0, 0), 40))
    found.constrain("a@faces@>Z", "b@faces@<Z", "Plane")
    return found


def chain(count: int, seed: int = 1) -> cq.Assembly:
    """Boxes stacked by planes, from scattered places."""
    rng = np.random.default_rng(seed)
    found = cq.Assembly(cq.Workplane().box(10, 10, 10), name="n0")
    for k in range(1, count):
        place = cq.Location(tuple(rng.uniform(-50, 50, 3)), tuple(rng.standard_normal(3)), float(rng.uniform(0, 60)))
        found.add(cq.Workplane().box(10, 10, 10), name=f"n{k}", loc=place)
        found.constrain(f"n{k - 1}@faces@>Z", f"n{k}@faces@<Z", "Plane")
        found.constrain(f"n{k - 1}@faces@>X", f"n{k}@faces@>X", "Axis", 0)
    return found


def every_kind() -> cq.Assembly:
    b = cq.Workplane().box(10, 20, 30)
    found = cq.Assembly(b, name="base")
    for name in ("p", "q", "r", "s"):
        found.add(b, name=name, loc=cq.Location((30, 10, 5), (1, 1, 0), 25))
    found.constrain("base", "Fixed")
    found.constrain("p", "FixedRotation", (20, -30, 40))
    found.constrain("p@faces@>X", "FixedPoint", (5, 40, 3))
    found.constrain("q@faces@>Z", "FixedAxis", (1, 2, 3))
    found.constrain("q@vertices@>X and >Y and >Z", "base@faces@>X", "PointInPlane", 12)
    found.constrain("q@faces@>X", "base@edges@>Y and >X", "PointOnLine")
    found.constrain("r@faces@>Z", "base@faces@>Z", "Axis", 35)
    found.constrain("r@faces@>X", "base@faces@<X", "Point", 25)
    found.constrain("s@faces@<Z", "base@faces@>Z", "Plane")
    return found


CASES = {**EXAMPLES, "box on box": box_on_box, "thirty parts": lambda: chain(30), "every kind": every_kind}


def value(constraint, objects):
    """The misfit of a constraint [mm, rad], by the locations of the objects; independent of both solvers."""
    worst = 0.0
    for markers, kind, param in constraint.toPODs():
        locations = [objects[name].loc.wrapped.Transformation() for name in constraint.objects]
        moved = [None if m is None else m.Transformed(t) for m, t in zip(markers, locations, strict=True)]

        def xyz(p):
            return np.array([p.X(), p.Y(), p.Z()])

        if kind == "Point":
            worst = max(worst, abs(np.linalg.norm(xyz(moved[0]) - xyz(moved[1])) - (param or 0.0)))
        elif kind == "Axis":
            a, b = map(xyz, moved)
            angle = math.atan2(np.linalg.norm(np.cross(a, b)), a @ b)
            worst = max(worst, abs(angle - (math.pi if param is None else param)))
        elif kind == "PointInPlane":
            p, plane = moved
            n, o = xyz(plane.Axis().Direction()), xyz(plane.Axis().Location())
            worst = max(worst, abs((xyz(p) - o) @ n - (param or 0.0)))
        elif kind == "PointOnLine":
            p, line = moved
            d = xyz(p) - xyz(line.Location())
            worst = max(worst, abs(np.linalg.norm(np.cross(d, xyz(line.Direction()))) - (param or 0.0)))
        elif kind == "FixedPoint":
            worst = max(worst, np.linalg.norm(xyz(moved[0]) - np.array(param)))
        elif kind == "FixedAxis":
            a, n = xyz(moved[0]), np.array(param)
            worst = max(worst, math.atan2(np.linalg.norm(np.cross(a, n)), a @ n))
        elif kind == "FixedRotation":
            from scipy.spatial.transform import Rotation

            q = locations[0].GetRotation()
            wanted = Rotation.from_euler("xyz", param).as_quat()
            worst = max(worst, 1.0 - abs(np.array([q.X(), q.Y(), q.Z(), q.W()]) @ wanted))
    return worst


@pytest.mark.parametrize("name", CASES)
def test_every_constraint_is_met_and_faster_than_by_cadquery(name, monkeypatch):
    cd.solve_cadquery(CASES[name]())  # kernels
    inner = timing(monkeypatch)
    alone, first, whole, theirs = [], [], [], []
    for _ in range(3):  # interleaved, so that all see the same machine
        ours, peer = CASES[name](), CASES[name]()
        m = cd.from_cadquery(ours)
        first.append(timed(m.assemble))
        alone.append(timed(m.assemble))  # the same work from the same poses, without packing the system
        whole.append(timed(lambda: cd.solve_cadquery(ours)))  # noqa: B023 (called at once)
        theirs.append(timed(peer.solve))
    result = cd.solve_cadquery(ours)
    assert result.ok, result.text()
    size = ours.toCompound().BoundingBox().DiagonalLength
    misfit, other = (max(value(c, one.objects) for c in one.constraints) / size for one in (ours, peer))
    a, b, c, d, e = (1e3 * min(some) for some in (alone, first, whole, inner, theirs))
    print(f"{name}: ours {a:.2f} ms (first {b:.2f}, with translation {c:.2f}), misfit {misfit:.0e}; "
          f"CadQuery {d:.1f} ms (with preparation {e:.1f}), misfit {other:.0e}: {d / a:.0f} times")  # fmt: skip
    assert misfit <= 1e-9
    assert min(inner) >= 20.0 * min(alone)


def timing(monkeypatch):
    """Seconds of every run of CadQuery's solver from here on, without its preparation."""
    from cadquery.occ_impl.solver import ConstraintSolver

    seconds, solve = [], ConstraintSolver.solve

    def run(self, *options):
        began = time.perf_counter()
        found = solve(self, *options)
        seconds.append(time.perf_counter() - began)
        return found

    monkeypatch.setattr(ConstraintSolver, "solve", run)
    return seconds


def timed(call) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def test_the_parameter_of_point_on_line_is_a_distance():
    b = cq.Workplane().box(10, 20, 30)
    found = cq.Assembly(name="whole").add(b, name="a").add(b, name="b", loc=cq.Location((50, 0, 0), (1, 2, 3), 50))
    found.constrain("a", "Fixed").constrain("b@faces@>Z", "a@edges@>X and >Y", "PointOnLine", param=7.0)
    assert cd.solve_cadquery(found).ok
    assert max(value(c, found.objects) for c in found.constraints) <= 1e-9


def test_the_root_may_have_a_location_and_solving_twice_changes_nothing():
    b = cq.Workplane().box(10, 20, 30)
    found = cq.Assembly(b, name="root", loc=cq.Location((5, 60, 7), (1, 2, 3), 50))
    found.add(b, name="b", loc=cq.Location((50, 0, 0), (1, 0, 1), 30)).constrain("root@faces@>Z", "b@faces@<Z", "Plane")
    assert cd.solve_cadquery(found).ok
    first = found.objects["b"].loc
    z, o = (first.wrapped.Transformation().Value(k, 3) for k in (1, 2)), first.toTuple()[0]
    np.testing.assert_allclose([*z], 0.0, atol=1e-9)  # in the axes of the root: on its face, the axes z parallel
    np.testing.assert_allclose(o, (0, 0, 30), atol=1e-9)
    assert cd.solve_cadquery(found).ok
    np.testing.assert_allclose(found.objects["b"].loc.toTuple(), first.toTuple(), atol=1e-9)


def test_an_object_may_be_named_ground():
    b = cq.Workplane().box(10, 20, 30)
    found = cq.Assembly(name="whole").add(b, name="ground").add(b, name="b", loc=cq.Location((50, 0, 0)))
    found.constrain("ground@faces@>Z", "b@faces@<Z", "Plane")
    result = cd.solve_cadquery(found)
    assert result.ok and set(result.state) == {"ground 2", "b"}
    assert max(value(c, found.objects) for c in found.constraints) <= 1e-9


def test_objects_with_constraints_of_their_own_need_no_fixed_one():
    b = cq.Workplane().box(10, 20, 30)
    found = cq.Assembly(name="whole").add(b, name="a").add(b, name="b", loc=cq.Location((50, 0, 0)))
    for name in "ab":
        found.constrain(f"{name}@faces@>Z", "FixedPoint", (1, 2, 3))
    assert cd.solve_cadquery(found).ok
    assert max(value(c, found.objects) for c in found.constraints) <= 1e-9


def test_an_impossible_assembly_is_reported_and_left_alone():
    found = box_on_box()
    found.constrain("a@faces@>Z", "b@faces@>Z", "Point")
    before = found.objects["b"].loc.toTuple()
    result = cd.solve_cadquery(found)
    assert not result.ok and result.worst
    np.testing.assert_allclose(found.objects["b"].loc.toTuple(), before, atol=1e-9)


IMPOSSIBLE = {  # constraints added to a published example that cannot be met with the others
    "the door": ("left@faces@<Z", "top_left?X", "Plane"),
    "Axis: a cone in a plate": ("plate@faces@<Z", "cone@faces@<Z", "Point"),
    "PointInPlane: a box in a bracket": ("box@faces@>Z", "bracket?floor", "PointInPlane"),
    "PointOnLine: a ball on two edges": ("other", "cube@edges@<<Z and <<X", "PointOnLine"),
    "FixedPoint": ("other", "third", "Point"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_published_examples_that_are_made_impossible_are_reported(name):
    """CadQuery returns them without an error."""
    ours, theirs = EXAMPLES[name](), EXAMPLES[name]()
    for one in (ours, theirs):
        one.constrain(*IMPOSSIBLE[name])
    before = {key: one.loc.toTuple() for key, one in ours.objects.items()}
    result = cd.solve_cadquery(ours)
    assert not result.ok and result.worst and str(result.status) != "ok"
    assert {key: one.loc.toTuple() for key, one in ours.objects.items()} == before
    theirs.solve()
    misfit = max(value(c, theirs.objects) for c in theirs.constraints)
    print(f"{name}, impossible: ours {result.status}, worst {result.worst}; CadQuery: no error, misfit {misfit:.2g}")
    assert misfit > 1e-3


def test_thirty_nested_parts_of_cadquery_are_read(tmp_path):
    rng = np.random.default_rng(6)
    for unit, word, scale in (("MM", "milli", 1.0), ("INCH", "inch", 25.4)):
        whole, wanted = cq.Assembly(name="whole"), {}
        for g in range(6):
            group = cq.Assembly(name=f"group {g}")
            place = cq.Location(tuple(rng.uniform(-50, 50, 3)), tuple(rng.standard_normal(3)), rng.uniform(-170, 170))
            for k in range(5):
                own = cq.Location(tuple(rng.uniform(-50, 50, 3)), tuple(rng.standard_normal(3)), rng.uniform(-170, 170))
                color, sizes = np.round(rng.random(3), 2).tolist(), (2 + k, 3, 4 + g)
                group.add(cq.Workplane().box(*sizes), name=f"part {g}.{k}", loc=own, color=cq.Color(*color))
                wanted[f"part {g}.{k}"] = (place * own, color, math.prod(sizes) * 1e-9)
            whole.add(group, loc=place)
        path = tmp_path / f"{word}.step"
        whole.export(str(path), unit=unit)
        seconds = timed(lambda: cd.load_step(path))  # noqa: B023 (called at once)
        found = cd.load_step(path)
        print(f"30 parts of CadQuery in {found.unit}: {seconds:.2f} s")
        assert found.unit.lower().startswith(word) and seconds <= 5.0 and list(found) == list(wanted)
        for name, (place, color, volume) in wanted.items():
            moved = place.wrapped.Transformation()
            p, q = moved.TranslationPart(), moved.GetRotation()
            np.testing.assert_allclose(found[name].position, 1e-3 * scale * np.array([p.X(), p.Y(), p.Z()]), atol=1e-12)
            assert abs(abs(found[name].quaternion @ [q.W(), q.X(), q.Y(), q.Z()]) - 1.0) < 1e-12
            assert found[name].volume == pytest.approx(scale**3 * volume, rel=1e-9)
            np.testing.assert_allclose(found[name].color, color, atol=2e-3)
            assert found[name].path == ("whole", f"group {name[5]}", name)


def test_faces_that_cadquery_names_are_picked_by_name(tmp_path):
    from cadquery.occ_impl.exporters.assembly import exportStepMeta

    plate = cq.Workplane().box(40, 30, 8).faces(">Z").workplane().hole(10)
    whole = cq.Assembly(name="whole").add(plate, name="plate")
    whole["plate"].addSubshape(plate.faces(">Z").val(), name="seat")
    whole["plate"].addSubshape(plate.faces("%CYLINDER").val(), name="bore")
    exportStepMeta(whole, str(tmp_path / "named.step"))
    found = cd.load_step(tmp_path / "named.step")
    part = found["plate"]
    assert part.faces.named("bore").kind == "cylinder" and part.faces.named("bore").is_hole
    np.testing.assert_allclose(part.faces.named("seat").z, (0, 0, 1), atol=1e-12)
    with pytest.raises(cd.ModelError, match=r"no faces of part 'plate' is named 'sead'; the file has 'bore', 'seat'"):
        part.faces.named("sead")
    again = cd.load_step(cd.cad.save_step(found, tmp_path / "again.step"))
    assert again["plate"].faces.named("bore").kind == "cylinder"


def test_a_file_of_cadquery_is_read_with_names_and_colours(tmp_path):
    lever = cq.Workplane().box(80, 20, 8).faces(">Z").workplane().pushPoints([(0, 0), (30, 0)]).hole(10)
    pin = cq.Workplane().cylinder(30, 5)
    inner = cq.Assembly(name="inner").add(pin, name="pin", color=cq.Color(1, 0, 0)).add(lever, name="lever")
    base = cq.Workplane().box(90, 30, 8).faces(">Z").workplane().pushPoints([(-30, 0)]).hole(10)
    outer = cq.Assembly(name="outer").add(base, name="base").add(inner, name="group", loc=cq.Location((-30, 0, 8)))
    path = tmp_path / "x.step"
    outer.export(str(path))
    found = cd.load_step(path)
    assert list(found) == ["base", "pin", "lever"]
    np.testing.assert_allclose(found["pin"].color, (1, 0, 0), atol=2e-3)
    np.testing.assert_allclose(found["pin"].position, (-0.03, 0, 0.008), atol=1e-12)
    assert {p.name: p.kind for p in cd.cad.propose_joints(found)} == {
        "base - pin": "cylindrical",
        "base - lever": "planar",
        "pin - lever": "cylindrical",
    }
