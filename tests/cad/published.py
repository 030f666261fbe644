"""The assemblies of CadQuery's documentation (doc/assy.rst): parts of our own, with the constraints of each example."""

from __future__ import annotations

from math import cos, pi, sin

import cadquery as cq

WIDTH, HEIGHT, GROOVE = 200.0, 400.0, 6.0  # of the door [mm]


def profile(length: float) -> cq.Workplane:
    """A bar of 20 × 20 mm along z with a groove in each side; the bottom of the groove at +x is tagged."""
    bar = cq.Workplane().rect(20, 20).extrude(length)
    for angle in (0, 90, 180, 270):
        slot = cq.Workplane().box(GROOVE, GROOVE, length, centered=(False, True, False)).translate((10 - GROOVE, 0, 0))
        bar = bar.cut(slot.rotate((0, 0, 0), (0, 0, 1), angle))
    bar.faces(cq.selectors.NearestToPointSelector((10 - GROOVE, 0, length / 2))).tag("groove")
    return bar


def corner() -> cq.Workplane:
    """A cube with stepped bores along x and z, whose ends are tagged."""
    block = cq.Workplane().box(20, 20, 20)
    for axis in ("YZ", "XY"):
        for radius, depth in ((3, 20), (7.5, 18)):
            block = block.cut(cq.Workplane(axis).workplane(offset=-10).circle(radius).extrude(depth))
    block.faces(">X").tag("X")
    block.faces(">Z").tag("Z")
    return block


def door() -> cq.Assembly:
    """The tutorial: a door of four profiles, four corners, a panel in a groove and a handle on the panel."""
    panel = cq.Workplane("XZ").rect(WIDTH + 2 * GROOVE, HEIGHT + 2 * GROOVE).extrude(3)
    for x in (-1, 1):
        for z in (-1, 1):
            at = (x * (WIDTH / 2 + GROOVE), -1.5, z * (HEIGHT / 2 + GROOVE))
            panel = panel.cut(cq.Workplane().box(2 * GROOVE, 9, 2 * GROOVE).translate(at))
    for z in (25, -25):
        panel = panel.cut(cq.Workplane("XZ").center(-WIDTH / 3, z).circle(1.5).extrude(3))
    panel.faces(">Y").edges("%CIRCLE").edges(">Z").tag("upper")
    panel.faces(">Y").edges("%CIRCLE").edges("<Z").tag("lower")
    handle = cq.Workplane().box(20, 54, 4).cut(cq.Workplane().box(16, 46, 4).translate((-2, 0, 0)))
    handle.faces("<X").faces(">Y").tag("upper")
    handle.faces("<X").faces("<Y").tag("lower")
    found = cq.Assembly()
    for name, length in (("left", HEIGHT), ("right", HEIGHT), ("top", WIDTH), ("bottom", WIDTH)):
        found.add(profile(length), name=name)
    for name in ("top_left", "top_right", "bottom_left", "bottom_right"):
        found.add(corner(), name=name)
    found.add(panel, name="panel").add(handle, name="handle")
    for a, b, kind in (
        ("left@faces@<Z", "bottom_left?Z", "Plane"),
        ("left@faces@<X", "bottom_left?X", "Axis"),
        ("left@faces@>Z", "top_left?Z", "Plane"),
        ("left@faces@<X", "top_left?X", "Axis"),
        ("top@faces@<Z", "top_left?X", "Plane"),
        ("top@faces@<Y", "top_left@faces@>Y", "Axis"),
        ("bottom@faces@<Y", "bottom_left@faces@>Y", "Axis"),
        ("bottom@faces@>Z", "bottom_left?X", "Plane"),
        ("top@faces@>Z", "top_right@faces@>X", "Plane"),
        ("bottom@faces@<Z", "bottom_right@faces@>X", "Plane"),
        ("left@faces@>Z", "top_right?Z", "Axis"),
        ("left@faces@<Z", "bottom_right?Z", "Axis"),
        ("right@faces@>Z", "top_right@faces@>Z", "Plane"),
        ("right@faces@<X", "left@faces@<X", "Axis"),
        ("left?groove", "panel@faces@<X", "Plane"),
        ("left@faces@>Z", "panel@faces@>Z", "Axis"),
        ("panel?upper", "handle?upper", "Plane"),
        ("panel?lower", "handle?lower", "Point"),
    ):
        found.constrain(a, b, kind)
    return found


def on_an_arc() -> cq.Assembly:
    """Point: boxes at the centre of an arc, on it, and at a distance from a point of it."""
    arc, box = cq.Edge.makeCircle(10, angle1=0, angle2=90), cq.Workplane().box(1, 1, 1)
    found = cq.Assembly().add(arc, name="line")
    on = arc.positionAt(0.8)
    found.add(box, name="centre").constrain("line", "centre", "Point")
    for name, point, far in (("on", on, 0), ("any side", on, 2), ("beside", on + cq.Vector(2, 0, 0), 0)):
        found.add(box, name=name)
        vertex = cq.Vertex.makeVertex(*point.toTuple())
        found.constrain("line", vertex, name, box.val(), "Point", param=far)
    return found


def two_cones() -> cq.Assembly:
    """Axis: flat faces point in opposite directions."""
    cone = cq.Solid.makeCone(1, 0, 2)
    found = cq.Assembly().add(cone, name="first").add(cone, name="second")
    return found.constrain("first@faces@<Z", "second@faces@<Z", "Axis")


def cone_in_a_plate() -> cq.Assembly:
    """Point, and Axis with 0: both faces point in one direction."""
    plate = cq.Workplane().box(10, 10, 1).cut(cq.Workplane().circle(1).extrude(9, both=True))
    found = cq.Assembly().add(plate, name="plate").add(cq.Solid.makeCone(0.8, 0, 4), name="cone")
    found.constrain("plate@faces@>Z", "cone@faces@<Z", "Point")
    return found.constrain("plate@faces@>Z", "cone@faces@<Z", "Axis", param=0)


def cone_on_a_wave() -> cq.Assembly:
    """Axis and Point on a surface of free form."""
    rows = [[cq.Vector(u, v, 5 * sin(pi * u / 10) * cos(pi * v / 10)) for v in range(21)] for u in range(21)]
    wave, cone = cq.Face.makeSplineApprox(rows), cq.Workplane().add(cq.Solid.makeCone(1, 0.1, 2))
    cone.faces(">Z").tag("tip")
    found = cq.Assembly().add(wave, name="wave").add(cone, name="cone")
    return found.constrain("wave", "cone?tip", "Axis").constrain("wave", "cone?tip", "Point")


def plane_on_a_wave() -> cq.Assembly:
    """Plane: both constraints of the example before in one."""
    found = cone_on_a_wave()
    found.constraints.clear()
    return found.constrain("wave", "cone?tip", "Plane")


def box_in_a_bracket() -> cq.Assembly:
    """PointInPlane: three distances to planes, two directions."""
    outline = [(0, 0), (1, 0), (1, 0.1), (0.2, 0.1), (0.2, 1), (0, 1)]
    bracket = cq.Workplane("YZ").polyline(outline).close().extrude(1)
    bracket.faces(">Y[1]").tag("wall")
    bracket.faces(">Z[1]").tag("floor")
    found = cq.Assembly().add(bracket, name="bracket").add(cq.Workplane().box(0.5, 0.5, 0.5), name="box")
    for way in (">Z", ">X"):
        found.constrain(f"bracket@faces@{way}", f"box@faces@{way}", "Axis", param=0)
    found.constrain("box@faces@<Z", "bracket?floor", "PointInPlane")
    found.constrain("box@faces@<Y", "bracket?wall", "PointInPlane", param=0.2)
    return found.constrain("box@faces@>X", "bracket@faces@>X", "PointInPlane", param=-0.1)


def _cube_and(second: cq.Workplane) -> cq.Assembly:
    found = cq.Assembly().add(cq.Workplane().box(1, 1, 1), name="cube")
    found.add(second, name="other", loc=cq.Location((0, 0, 4)))
    return found.constrain("cube", "Fixed")


def ball_on_two_edges() -> cq.Assembly:
    """PointOnLine: a ball where two edges meet."""
    found = _cube_and(cq.Workplane().sphere(0.15))
    for edge in (">>Z and >>Y", ">>Z and >>X"):
        found.constrain("other", f"cube@edges@{edge}", "PointOnLine")
    return found


def fixed_points() -> cq.Assembly:
    """FixedPoint: a ball, and a vertex of a box."""
    found = _cube_and(cq.Workplane().sphere(0.15))
    found.add(cq.Workplane().box(1, 1, 1), name="third", loc=cq.Location((-2, 0, 0)))
    found.constrain("other", "FixedPoint", (0.5, 0.5, 0.5))
    return found.constrain("third@vertices@<X and <Y and <Z", "FixedPoint", (0.5, 0.5, 0.5))


def fixed_rotation() -> cq.Assembly:
    """FixedRotation of a tapered bar that stands on a point."""
    found = _cube_and(cq.Workplane().rect(0.1, 0.1).extrude(1, taper=-15))
    found.constrain("other@faces@<Z", "FixedPoint", (0, 0, 0.5))
    return found.constrain("other", "FixedRotation", (45, 0, 45))


def fixed_axis() -> cq.Assembly:
    """FixedAxis of the same bar."""
    found = _cube_and(cq.Workplane().rect(0.1, 0.1).extrude(1, taper=-15))
    found.constrain("other@faces@<Z", "FixedPoint", (0, 0, 0.5))
    return found.constrain("other@faces@>Z", "FixedAxis", (1, 0, 2))


EXAMPLES = {
    "the door": door,
    "Point: boxes on an arc": on_an_arc,
    "Axis: two cones": two_cones,
    "Axis: a cone in a plate": cone_in_a_plate,
    "Axis: a cone on a wave": cone_on_a_wave,
    "Plane: a cone on a wave": plane_on_a_wave,
    "PointInPlane: a box in a bracket": box_in_a_bracket,
    "PointOnLine: a ball on two edges": ball_on_two_edges,
    "FixedPoint": fixed_points,
    "FixedRotation": fixed_rotation,
    "FixedAxis": fixed_axis,
}
