"""Assemblies of CadQuery, beside its own solver.  Run by ``make cad`` in an environment that has CadQuery."""

from __future__ import annotations

import math
import time

import cadquery as cq
import numpy as np
import pytest

import cardan as cd


def box_on_box() -> cq.Assembly:
    """The example of the documentation of CadQuery with stacked parts."""
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


CASES = {"box on box": box_on_box, "thirty parts": lambda: chain(30), "every kind": every_kind}


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
            worst = max(worst, np.linalg.norm(np.cross(d, xyz(line.Direction()))))
        elif kind == "FixedPoint":
            worst = max(worst, np.linalg.norm(xyz(moved[0]) - np.array(param)))
        elif kind == "FixedAxis":
            n = np.array(param) / np.linalg.norm(param)
            worst = max(worst, np.linalg.norm(np.cross(xyz(moved[0]), n)))
        elif kind == "FixedRotation":
            from scipy.spatial.transform import Rotation

            q = locations[0].GetRotation()
            wanted = Rotation.from_euler("xyz", param).as_quat()
            worst = max(worst, 1.0 - abs(np.array([q.X(), q.Y(), q.Z(), q.W()]) @ wanted))
    return worst


@pytest.mark.parametrize("name", CASES)
def test_every_constraint_is_met_and_faster_than_by_cadquery(name):
    cd.solve_cadquery(CASES[name]())  # kernels
    seconds = []
    for _ in range(5):
        ours = CASES[name]()
        m = cd.from_cadquery(ours)
        began = time.perf_counter()
        result = m.assemble()
        seconds.append(time.perf_counter() - began)
    result = cd.solve_cadquery(ours)
    assert result.ok
    size = ours.toCompound().BoundingBox().DiagonalLength
    assert max(value(c, ours.objects) for c in ours.constraints) <= 1e-9 * size
    theirs = CASES[name]()
    began = time.perf_counter()
    theirs.solve()
    peer = time.perf_counter() - began
    misfit = max(value(c, theirs.objects) for c in theirs.constraints) / size
    print(f"{name}: ours {1e3 * min(seconds):.2f} ms, CadQuery {1e3 * peer:.1f} ms, misfit {misfit:.1e}")
    assert peer >= 20.0 * min(seconds)


def test_an_impossible_assembly_is_reported_and_left_alone():
    found = box_on_box()
    found.constrain("a@faces@>Z", "b@faces@>Z", "Point")
    before = found.objects["b"].loc.toTuple()
    result = cd.solve_cadquery(found)
    assert not result.ok and result.worst
    np.testing.assert_allclose(found.objects["b"].loc.toTuple(), before, atol=1e-9)


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
