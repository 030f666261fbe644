"""Solve assemblies of CadQuery: each of its constraints becomes a joint of Cardan.

    Point           the points coincide, or have a distance
    Axis            the angle between directions; 180° where none is given, as in CadQuery
    Plane           Axis and Point
    PointInPlane    the point in the plane, which is moved along its normal by the parameter
    PointOnLine     the point on the line, or at a distance from it
    Fixed, FixedPoint, FixedAxis, FixedRotation      the same, against the ground

Two meanings differ.  The parameter of PointOnLine is a distance here; CadQuery 2.8 compares it with the squared
distance over the squared size of the assembly.  If every object has a FixedPoint, FixedAxis or FixedRotation and none
is Fixed, CadQuery fixes the first one where it is, which contradicts its constraint; here none is fixed.

CadQuery minimises a sum of squares and returns the minimum even if it is not zero.  Here the result of such an assembly
is not ok, and names the constraints that are not satisfied.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cardan.cad.locations import MM, placement, transformation
from cardan.calls import explained
from cardan.errors import ModelError

if TYPE_CHECKING:
    from cardan.analysis.result import AssemblyResult
    from cardan.mechanism import Mechanism


@explained
def solve_cadquery(assembly: Any, **options: Any) -> AssemblyResult:
    """Solve the constraints of a ``cadquery.Assembly``, in place of its own ``solve()``; locations are written back.

    options: as of :meth:`cardan.Mechanism.assemble`.  Locations are written only where the result is ok.
    """
    m = from_cadquery(assembly)
    result = m.assemble(**options)
    if result.ok:
        _write_back(assembly, result)
    return result


@explained
def from_cadquery(assembly: Any) -> Mechanism:
    """The mechanism of an assembly: a body for each object that has a constraint, and its constraints as joints.

    Bodies have the names of the objects, except that an object "ground" becomes "ground 2": the fixed body has the name
    "ground".
    """
    from cardan.mechanism import Mechanism

    if not hasattr(assembly, "constraints") or not hasattr(assembly, "objects"):
        raise ModelError(f"the assembly is {assembly!r:.80}; it must be a cadquery.Assembly")
    if not assembly.constraints:
        raise ModelError("the assembly has no constraints; add some with assembly.constrain(…)")
    m = Mechanism(assembly.name)
    bodies = _bodies(assembly)
    names = list(bodies)
    fixed = _fixed(assembly, names)
    for name in names:
        own = assembly.objects[name].loc
        # locations of children are relative to that of the root; if the root is constrained, all are solved in world
        is_child = assembly.name in names and name != assembly.name
        position, quaternion = placement(assembly.loc * own if is_child else own)
        m.body(bodies[name], position=position, orientation=quaternion, fixed=name in fixed)
    for k, constraint in enumerate(assembly.constraints):
        for j, (markers, kind, value) in enumerate(constraint.toPODs()):
            if kind != "Fixed":
                name = f"{k + 1} {constraint.kind}" + (f" {kind} {j + 1}" if kind != constraint.kind else "")
                _add(m, name, kind, [m[bodies[one]] for one in constraint.objects], markers, value)
    return m


def _bodies(assembly: Any) -> dict[str, str]:
    """Names of bodies by the names of the objects that have a constraint."""
    names = dict.fromkeys(name for constraint in assembly.constraints for name in constraint.objects)
    found = {name: name for name in names}
    if "ground" in found:
        count = 2
        while f"ground {count}" in found:
            count += 1
        found["ground"] = f"ground {count}"
    return found


def _fixed(assembly: Any, names: list[str]) -> set[str]:
    """Names of fixed objects: those with Fixed, and the root.

    Without these: among the first objects of constraints between two objects, the first that has no constraint to the
    ground; none if all have one.
    """
    held = {c.objects[0] for c in assembly.constraints if c.kind == "Fixed"}
    held |= {name for name in names if name == assembly.name}
    if held:
        return held
    single = {c.objects[0] for c in assembly.constraints if len(c.objects) == 1}
    pairs = [c.objects[0] for c in assembly.constraints if len(c.objects) == 2]
    return set([name for name in pairs if name not in single][:1])


def _add(m: Mechanism, name: str, kind: str, bodies: list[Any], markers: Any, value: Any) -> None:
    """One simple constraint of CadQuery as a joint."""
    a = bodies[0]
    if kind == "Point":
        b = bodies[1]
        m.distance(name, a.point(_point(markers[0])), b.point(_point(markers[1])), abs(value or 0.0) * MM)
    elif kind == "Axis":
        angle = math.pi if value is None else float(value)
        angle = abs(math.remainder(angle, 2.0 * math.pi))
        m.angle(name, a.frame(z=_direction(markers[0])), bodies[1].frame(z=_direction(markers[1])), angle)
    elif kind == "PointInPlane":
        axis = markers[1].Axis()
        frame = bodies[1].frame(_point(axis.Location()), z=_direction(axis.Direction()))
        m.plane_distance(name, a.point(_point(markers[0])), frame, float(value or 0.0) * MM)
    elif kind == "PointOnLine":
        line = markers[1]
        frame = bodies[1].frame(_point(line.Location()), z=_direction(line.Direction()))
        m.line_distance(name, a.point(_point(markers[0])), frame, abs(value or 0.0) * MM)
    elif kind == "FixedPoint":
        m.spherical(name, m.ground.point([c * MM for c in value]), a.point(_point(markers[0])))
    elif kind == "FixedAxis":
        m.angle(name, m.ground.frame(z=tuple(value)), a.frame(z=_direction(markers[0])), 0.0)
    elif kind == "FixedRotation":
        ground = m.ground.frame(z=_turned(value, (0, 0, 1)), x=_turned(value, (1, 0, 0)))
        m.orientation(name, ground, a.frame(x=(1, 0, 0)))
    else:
        raise ModelError(f"constraint {name!r} of CadQuery has the kind {kind!r}, which is not known here")


def _turned(angles: Any, axis: Any) -> tuple[float, float, float]:
    """An axis turned about the fixed axes x, y and z in this order; angles [rad]."""
    x, y, z = axis
    a, b, c = angles
    y, z = math.cos(a) * y - math.sin(a) * z, math.sin(a) * y + math.cos(a) * z
    x, z = math.cos(b) * x + math.sin(b) * z, -math.sin(b) * x + math.cos(b) * z
    x, y = math.cos(c) * x - math.sin(c) * y, math.sin(c) * x + math.cos(c) * y
    return x, y, z


def _point(p: Any) -> tuple[float, float, float]:
    return p.X() * MM, p.Y() * MM, p.Z() * MM


def _direction(d: Any) -> tuple[float, float, float]:
    return d.X(), d.Y(), d.Z()


def _write_back(assembly: Any, result: AssemblyResult) -> None:
    """New locations of the objects; the root keeps its own, and all others follow it."""
    from cadquery import Location

    found = {name: Location(transformation(result.state[body])) for name, body in _bodies(assembly).items()}
    root = found.pop(assembly.name, None)
    for name, location in found.items():
        assembly.objects[name].loc = location if root is None else root.inverse * location
