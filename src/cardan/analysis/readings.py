"""What motions and simulations read alike from the motion of their bodies: rates, traces, columns, files, pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.ownership import check_own, chosen_coordinate
from cardan.calls import explains
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint
from cardan.joints.coordinates import Course, course, still
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system import check
from cardan.system.html import as_html, table_of
from cardan.system.parts import GROUND, Body, Feature, Frame, Point
from cardan.system.state import FloatArray

if TYPE_CHECKING:
    from cardan.analysis.clashes import Clashes
    from cardan.dynamics.reactions import Connection, ConstraintForces
    from cardan.system.system import System

_clashes = LazyModule("cardan.analysis.clashes")
_output = LazyModule("cardan.analysis.output")


@explains()
class Readings:
    """Methods of motions and simulations, which have the poses and the rates of every body as arrays."""

    __slots__ = ()

    if TYPE_CHECKING:
        _system: System
        _source: tuple[Any, int] | None
        times: Any

        def positions(self, body: str | Body) -> FloatArray: ...
        def quaternions(self, body: str | Body) -> FloatArray: ...
        def velocities(self, body: str | Body) -> FloatArray: ...
        def accelerations(self, body: str | Body) -> FloatArray: ...
        def coordinate(self, joint: str | Joint | Coordinate, of: str | None = None) -> FloatArray: ...
        def effort(self, driver: str | Joint) -> FloatArray: ...
        def _acting(self) -> tuple[ConstraintForces, Mapping[str, Connection]]: ...
        def text(self) -> str: ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bodies."""
        return self._system.names

    def rate(self, joint: str | Joint | Coordinate, of: str | None = None) -> FloatArray:
        """The rate of a coordinate of a joint, shape (times,): [m/s], or [rad/s].

        joint, of: as in :meth:`coordinate`.  NaN where it is undefined, as for a distance of zero.
        """
        return self._rates_of("rate", joint, of)[0]

    def acceleration(self, joint: str | Joint | Coordinate, of: str | None = None) -> FloatArray:
        """The acceleration of a coordinate of a joint, shape (times,): [m/s²], or [rad/s²]; as :meth:`rate`."""
        return self._rates_of("acceleration", joint, of)[1]

    def _rates_of(self, what: str, joint: Any, of: str | None) -> tuple[FloatArray, FloatArray]:
        chosen = chosen_coordinate(what, joint, of, self._source, self._system)
        return chosen.rates_in_world([self._course(feature) for feature in chosen.features])

    def _course(self, feature: Feature) -> Course:
        """A point or direction in world with its derivatives, over the times."""
        local = np.broadcast_to(np.array(feature.at(self._system.values)), (len(self.times), 3))
        body = feature.body
        assert isinstance(body, Body)
        if body.is_ground:
            return still(local)
        return course(feature, local, self._poses_of(body), self.velocities(body.name), self.accelerations(body.name))

    def trace(
        self, point: Point | Frame | Body | str, place: Any = None, *, relative_to: Frame | Body | str | None = None
    ) -> FloatArray:
        """The path of a point [m], shape (times, 3), in world, or as it is seen from a body or frame.

        point: ``body.point(…)``; a frame, for its origin; or a body, or its name, with a place [m] in its axes, its
        origin where none is given.
        relative_to: a body, its name, or a frame: the path is then in the axes of that body or frame, from its origin.
        """
        what = "trace"
        check_own(what, point, self._source)
        check_own(what, relative_to, self._source)
        if isinstance(point, Point | Frame):
            if place is not None:
                raise ModelError(f"trace was given {point!r} and the place {place!r}; a place belongs to a body")
            body: str | Body = point.body
            local = np.array(point.feature().at(self._system.values))
        else:
            body = point
            local = np.array(check.vector((0.0, 0.0, 0.0) if place is None else place, "the place of trace"))
        poses = self._poses_of(body)
        path: FloatArray = poses[:, :3] + euler.rotate(poses[:, 3:], np.broadcast_to(local, (len(poses), 3)))
        if relative_to is None:
            return path
        frame = relative_to if isinstance(relative_to, Frame) else None
        own = self._poses_of(relative_to.body if isinstance(relative_to, Frame) else relative_to)
        seen: FloatArray = np.asarray(euler.rotate(euler.conjugate(own[:, 3:]), path - own[:, :3]))
        if frame is None:
            return seen
        values = self._system.values
        axes = np.array([frame.axis(axis).at(values) for axis in "xyz"])
        return (seen - np.array(frame.feature().at(values))) @ axes.T

    def _poses_of(self, body: Any) -> FloatArray:
        """r and p of a body, or of the ground, shape (times, 7)."""
        name = getattr(body, "name", body)
        if not isinstance(name, str) or (name not in self._system.index and name != GROUND):
            raise check.unknown(name, "body of this result", (*self._system.names, GROUND))
        if name == GROUND:
            return np.tile([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (len(self.times), 1))
        return np.hstack([self.positions(name), self.quaternions(name)])

    def clashes(
        self,
        pairs: Any = "all",
        clearance: float = 0.0,
        *,
        mechanism: Any = None,
        max_seconds: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Clashes:
        """When which bodies overlap, or are nearer than a clearance [m], between the outputs too.

        pairs: "all" but those that a joint, contact or coupling joins; or a list of pairs of bodies or their names.
        clearance [m]: a negative one allows for overlaps of that depth, such as press fits.
        Between outputs, a driven motion is solved again where that is needed; the poses of a simulation are those of
        polynomials of fifth degree, with the poses and rates of the outputs.  Overlaps of less than 1e-9 of the sizes
        of two shapes count as touching.  See docs/collision.md.
        mechanism: whose shapes are compared, if the result was pickled.
        max_seconds: for the whole call.  progress: called with the part done.  If it is interrupted by the keyboard,
        the result has what was found, and names what is undecided.
        """
        return _clashes.clashes(self, pairs, clearance, mechanism, max_seconds, progress)

    def table(self, *columns: str | Joint | Coordinate) -> dict[str, FloatArray]:
        """Columns by title, with units, for ``pandas.DataFrame(result.table())``; the first is the time [s].

        columns: without them poses and velocities of the bodies, and the energies of a simulation.  Otherwise each is a
        joint, a coordinate, or a text: the name of a joint, or "joint.coordinate", for its coordinates; "rate(name)"
        and "acceleration(name)" of these; "effort(name)" of a driver, limit or load.  "coordinates", "rates",
        "accelerations" and "efforts" stand for those of all joints and drivers, "poses", "velocities" and "energies"
        for the columns named above.
        """
        return _output.columns(self, columns)

    def plot(self, *columns: str | Joint | Coordinate) -> Any:
        """A matplotlib figure over time, one panel for each unit; columns: as of :meth:`table`.

        Without columns: the positions of all bodies.  A simulation has its energies in the last panel.
        """
        return _output.draw(self, columns)

    def save(
        self, path: str | Path, *, mechanism: Any = None, columns: Iterable[str | Joint | Coordinate] = ()
    ) -> None:
        """Write a file, by the ending of its name; what was there before is replaced when the new file is complete.

        ``.npz``, ``.json``: the result itself, for :func:`cardan.load_result`.
        ``.html``: a page that plays and scrubs it in a browser, from disk.  ``.csv``: as :meth:`table`.  ``.svg``,
        ``.pdf``: charts over time, as :meth:`plot`.  ``.png``: a picture of the mechanism in the last state.  ``.gif``:
        an animation.  ``.glb``: an animated model for other programs.
        columns: of a table or chart.  mechanism: whose parts are drawn or saved, if the result was pickled.
        """
        _output.save(self, path, mechanism, columns)

    def _repr_html_(self) -> str:
        return as_html(self.text(), table_of(self.table()))
