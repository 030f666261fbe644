"""Building a mechanism: contacts, wheels, points on curves and surfaces, paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from cardan import joints
from cardan.errors import ModelError
from cardan.joints import Joint, JointKind
from cardan.lazy import LazyModule
from cardan.mechanism.building import Building
from cardan.quantities import InSI, Quantity
from cardan.system import check
from cardan.system.formulas import Formula
from cardan.system.parts import Frame, Point

if TYPE_CHECKING:
    from cardan.system.attachments import Attachment

_contacts = LazyModule("cardan.joints.contacts")
_geometry = LazyModule("cardan.geometry")


class Touching(Building):
    """Adds contacts, wheels, points on curves and surfaces, and paths."""

    def contact(
        self,
        name: str,
        face_a: Attachment,
        face_b: Attachment,
        *,
        mode: Literal["slide", "roll", "roll_without_spin"] = "slide",
        side: Literal["outside", "inside", "crossing"] = "outside",
        start: Annotated[tuple[Any, Any] | None, Quantity("")] = None,
        unilateral: bool = False,
        jacobian: Literal["exact", "differences"] = "exact",
        query: Any = None,
    ) -> Joint:
        """Two faces that touch in a point: ``face = body.attach(cd.geometry.sphere(0.1))``.

        Surfaces, trimmed faces, a curve or a point on a surface, or two curves.  It removes one degree of freedom.
        mode: "roll" adds two rows of velocities (one for curves): the bodies do not slip; "roll_without_spin" a third:
        they do not turn about the common normal.  These are the rate row ``f"{name}.roll"``.
        side: "inside" where face_b is within face_a, as a ball in a socket: outward normals are then equal, not
        opposed.  Curves in the xy planes of their frames have a common plane; other curves cross in space, and so do
        all curves with "crossing": the normal is perpendicular to both tangents.
        start: parameters on both faces near which the contact is searched for, if it is not known from a state; it
        chooses one of several contacts.  Contact coordinates are in the states; ``state.contact(name)`` gives point,
        normal, gap and parameters.
        unilateral: contacts are bilateral, so only False is accepted; the results note contacts that pull.
        jacobian: "differences" finds the closest points of the faces, and the derivatives by differences, as the papers
        do.  It serves solids and meshes (``body.attach(cd.shapes.sphere(0.1))``), and with ``query`` any object whose
        ``closest_pair(pose)`` gives ``points``, shape (2, 3) [m], on a and b in the axes of face_a, for a pose
        (x, y, z, e0, e1, e2, e3) of face_b relative to face_a.  Such faces are outside each other, with a clearance of
        1e-6 of their size, and slide or roll in assemblies, diagnoses and :meth:`solve_rates`; motions refuse them.
        """
        name = self._new_name(name, "a contact")
        what = f"contact {name!r}"
        check.choice(mode, f"{what}: mode", ("slide", "roll", "roll_without_spin"))
        check.choice(side, f"{what}: side", ("outside", "inside", "crossing"))
        check.choice(jacobian, f"{what}: jacobian", ("exact", "differences"))
        if check.flag(unilateral, f"{what}: unilateral"):
            raise ModelError(
                f"{what}: unilateral is True, but contacts do not open yet; leave it out, and read the notes of the "
                "result, which name contacts that pull"
            )
        if jacobian == "differences":
            near = _contacts.closest_pair(what, (face_a, face_b), side, mode, start, query)
            ends = (face_a.frame, face_b.frame)
            given = (("mode", mode), ("jacobian", jacobian))
            return self._add_contact(joints.contact, name, near, ends, mode, given)
        if query is not None:
            raise ModelError(f"{what} was given a query, which needs jacobian='differences'")
        pair = _contacts.pair_of(what, (face_a, face_b), side, mode, start)
        options: tuple[tuple[str, Any], ...] = (("mode", mode), ("side", side))
        if start is not None:
            options += (("start", pair.in_order(pair.start)),)
        return self._add_contact(joints.contact, name, pair, (face_a.frame, face_b.frame), mode, options)

    def wheel(
        self, name: str, frame: Frame, radius: Annotated[float, Quantity("length")], face: Attachment | None = None
    ) -> Joint:
        """A thin disc that rolls without slipping: its centre is the origin of the frame, its axle the z axis.

        radius [m].  face: the surface on which it rolls; without it, the xy plane of the ground.  A short form of
        :meth:`contact` between this face and a circle.
        """
        self._check_end(f"wheel {name!r}", "frame", frame)
        name = self._new_name(name, "a wheel")
        radius = check.positive(radius, f"the radius of wheel {name!r}")
        road = self._ground.attach(_geometry.plane()) if face is None else face
        disc = frame.body.attach(_geometry.circle(radius), frame)
        try:
            return self.contact(name, road, disc, mode="roll")
        except ModelError:
            frame.body.detach(disc)
            if face is None:
                self._ground.detach(road)
            raise

    def point_on_surface(self, name: str, point: Point, face: Attachment) -> Joint:
        """A point of a body stays on a surface of another: ``face = body.attach(cd.geometry.torus(1.0, 0.2))``."""
        name = self._new_name(name, "a point on a surface")
        return self._add_point(joints.point_on_surface, name, point, face, 2)

    def point_on_curve(self, name: str, point: Point, face: Attachment) -> Joint:
        """A point of a body stays on a curve of another: ``face = body.attach(cd.geometry.ellipse(1.0, 0.5))``."""
        name = self._new_name(name, "a point on a curve")
        return self._add_point(joints.point_on_curve, name, point, face, 1)

    def path(
        self,
        name: str,
        frame: Frame,
        face: Attachment,
        *,
        follow: Literal["frenet", "least_turning"] = "least_turning",
        up: InSI = (0.0, 0.0, 1.0),
    ) -> Joint:
        """A frame that follows a curve of another body: one freedom, along the curve.  ``face = body.attach(curve)``.

        Its origin is on the curve, and its x axis along the tangent.  follow: "frenet": y is along the principal
        normal, z along the binormal; the curve must be curved everywhere.  "least_turning": the frame does not rotate
        about the tangent; where the parameter begins, its z axis is along ``up`` (in the frame of the face), as far as
        the tangent allows.  Along a curve in a plane, with ``up`` across it, z stays across.  Round a closed curve in
        space such a frame comes back turned about the tangent, and turns further with each round.
        """
        name = self._new_name(name, "a path")
        what = f"path {name!r}"
        self._check_end(what, "frame", frame)
        check.choice(follow, f"{what}: follow", ("frenet", "least_turning"))
        shape = _contacts.face_geometry(what, face, example="circle(0.1)")
        if shape.freedoms != 1:
            raise ModelError(f"{what} was given {shape!r:.120}; it must be a curve that is attached to a body")
        if not np.isfinite(shape.bounds[0]).all():
            raise ModelError(f"{what} was given a line without end; use m.prismatic")
        if any(isinstance(value, Formula) for value in (*frame.origin, *frame.x, *frame.z)):
            raise ModelError(f"{what} was given a frame with parameters; a frame on a curve is fixed: give it numbers")
        direction = check.vector(up, f"{what}: up")
        pair = _contacts.path_pair(what, shape, follow, tuple(direction))
        options = (("follow", follow), ("up", tuple(direction)))
        return self._add_contact(joints.path, name, pair, (frame, face.frame), "slide", options)

    def _contacts_on(self, face: Attachment) -> list[Joint]:
        """The contacts, points on curves or surfaces, and paths that use a face."""
        contacts = [
            joint for joint in self._joints.values() if any(one.template.pair is not None for one in joint.relations)
        ]
        return [joint for joint in contacts if _contacts.uses(joint, face)]

    def _add_point(self, kind: JointKind[Any], name: str, point: Any, face: Attachment, freedoms: int) -> Joint:
        what = f"{kind.name} {name!r}"
        self._check_end(what, "point", point)
        shape = _contacts.face_geometry(what, face, example="sphere(0.1)" if freedoms == 2 else "circle(0.1)")
        if shape.freedoms != freedoms:
            wanted = "surface" if freedoms == 2 else "curve"
            raise ModelError(f"{what} was given {shape!r:.120}; it must be a {wanted} that is attached to a body")
        _contacts.check_regular(what, shape)
        position = point.feature().value
        if any(isinstance(value, Formula) for value in position):
            raise ModelError(f"{what} was given a point with parameters; a point on a shape is fixed: give it numbers")
        of_pair = {"across": freedoms == 1, "exchanged": True, "trims": (_contacts.trim_of(face), None)}
        pair = _contacts.Pair(shape, _contacts.point_shape(), **of_pair)
        ends = (_contacts.frame_of(point.body, position), face.frame)
        return self._add_contact(kind, name, pair, ends, "slide", ())

    def _add_contact(
        self,
        kind: JointKind[Any],
        name: str,
        pair: Any,
        ends: tuple[Frame, Frame],
        mode: Any,
        options: tuple[tuple[str, Any], ...],
    ) -> Joint:
        what = f"{kind.name} {name!r}"
        for end in ends:
            self._check_place(what, end)
        if ends[0].body is ends[1].body:
            raise ModelError(f"{what} connects body {ends[0].body.name!r} to itself; it needs two different bodies")
        frames = ends[::-1] if pair.exchanged else ends
        coordinates = _contacts.coordinates_of(name, pair, frames, self)
        touching, rolling = _contacts.relations(pair, frames, coordinates, mode)
        parameters = (*options, ("shapes", pair.description()))
        if rolling is not None:
            rate = self._new_name(f"{name}.roll", "the rolling of a contact")
            self._keep_rate_row(Joint(rate, joints.rolling, ends, parameters, (rolling,)))
        return self._keep(Joint(name, kind, ends, parameters, (touching,)))
