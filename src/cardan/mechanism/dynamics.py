"""The equations of motion of a mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cardan import joints
from cardan.dynamics.loads import Load
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint
from cardan.lazy import LazyModule
from cardan.mechanism.touching import Touching
from cardan.system import check
from cardan.system.check import Triple
from cardan.system.formulas import plain
from cardan.system.parts import Direction
from cardan.system.relations import Bundle
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.dynamics.equations import Equations
    from cardan.dynamics.mass import Masses
    from cardan.dynamics.model import Model
    from cardan.dynamics.reactions import Connection

# Loaded on first use, so that building a model does not wait for them.
_equations = LazyModule("cardan.dynamics.equations")
_forces = LazyModule("cardan.dynamics.forces")
_mass = LazyModule("cardan.dynamics.mass")
_model = LazyModule("cardan.dynamics.model")
_reactions = LazyModule("cardan.dynamics.reactions")


class Dynamics(Touching):
    """The equations of motion: masses, gravity and loads, packed."""

    def _equations(self) -> tuple[Equations, list[str]]:
        """The equations of motion, and what they assume; kept with the system, if there are no loads."""
        if self._loads:
            return self._new_equations()
        equations, notes = self.system.cached(("equations of motion", self._gravity), self._new_equations)
        return equations, list(notes)

    def _new_equations(self, follow: bool = True) -> tuple[Equations, list[str]]:
        """The equations of motion, and what they assume.  follow: False for one pose: contacts are not followed."""
        bodies = list(self._bodies.values())
        found = _mass.masses(bodies, self._points(), self.system.judged_length)
        moving = [(k, body) for k, body in enumerate(bodies) if not body.fixed]
        told = {
            "no inertia was given for {}: solid balls are assumed; give inertia= to m.body": [
                body.name for _, body in moving if body.name in found.assumed
            ],
            "no mass was given for {}: 1 kg is assumed; give mass= to m.body": [
                body.name for _, body in moving if not body.has_mass
            ],
            "the largest principal moment of {} exceeds the sum of the others, as in no real body: check inertia=": [
                body.name for k, body in moving if not check.are_moments(found.diagonal[k, 3:])
            ],
        }
        notes = [
            note.format(", ".join(names[:8]) + (" …" if len(names) > 8 else ""))
            for note, names in told.items()
            if names
        ]
        return self._pack_equations(found, self._gravity, list(self._loads.values()), follow), notes

    def _metric_equations(self) -> Equations:
        """The equations with a ball of the size of each body, of 1 kg at the centroid of its joint points, for it."""
        centroids = self.system.centroids.tolist()
        parts = [_mass.Part(name, 1.0, tuple(c), None) for name, c in zip(self._bodies, centroids, strict=True)]
        found = _mass.masses(parts, self._points(), self.system.judged_length)
        return self._pack_equations(found, (0.0, 0.0, 0.0), [])

    def _pack_equations(self, found: Masses, gravity: Triple, loads: list[Load], follow: bool = True) -> Equations:
        """The equations of motion with these masses, gravity and loads."""
        bodies = list(self._bodies.values())
        limits = [joint for joint in self._joints.values() if joint.kind.role is joints.Role.LIMIT]
        stops = [
            _equations.Stop(joint.name, *joint.relations[0].parameters, is_turn=joint.ends[0].is_turn)
            for joint in limits
        ]
        bundles = [joints.held(joint) if joint in limits else joint for joint in self._joints.values()]
        bundles += self._rate_rows.values()
        bundles = [_followed(bundle) for bundle in bundles] if follow else bundles
        angles = self._counted_angles(with_loads=bool(loads))
        system = System(bodies, bundles, angles, found.frames, formulas=self._own_book())
        forces = _forces.Forces(system, bodies, loads, angles) if loads else None
        equations: Equations = _equations.Equations(system, found.diagonal, gravity, stops, forces)
        return equations

    def _points(self) -> dict[str, list[Any]]:
        """Where each body is joined [m], in its axes, by its name."""
        points: dict[str, list[Any]] = {}
        for joint in self._joints.values():
            for end in joint.ends:
                for place in (end.a, end.b) if isinstance(end, Coordinate) else (end,):
                    if not isinstance(place, Direction):
                        points.setdefault(place.body.name, []).append(plain(place.feature().value))
        return points

    def _connections(self) -> dict[str, Connection]:
        """Where each constraint is attached; kept with the system."""
        constraints = (self._joints | self._rate_rows).items()
        found: dict[str, Connection] = self.system.cached(
            "connections", lambda: {name: _reactions.connection(joint) for name, joint in constraints}
        )
        return found

    def _model(self) -> Model:
        """What reactions need in addition to the system, as plain values."""
        parts = tuple(_mass.Part(b.name, b.mass, b.center, b.inertia) for b in self._bodies.values())
        loaded = self.copy() if self._loads else None
        model: Model = _model.Model(parts, self._points(), self._gravity, self._connections(), loaded)
        return model

    def _probe(self, of: Any, axis: Any) -> tuple[str, Equations, str]:
        """The metric equations with one more coordinate: the name of a limit without bounds, and the unit.

        of: a joint, its name, or a coordinate, and the name of one of several; or a hand, and a direction.
        """
        if self._rate_rows:
            rows = ", ".join(map(repr, self._rate_rows))
            raise ModelError(
                f"range cannot consider rate rows ({rows}), because they exclude no pose; explore without them"
            )
        m = self.copy()
        name = "range"
        while name in m:
            name += "'"
        if hasattr(of, "local"):
            frame = m._bodies[of.body].frame(of.local, z=axis)
            chosen = joints.coordinate(m.ground.frame(z=axis), frame, "displacement")
        elif isinstance(of, Coordinate):
            if of.joint not in m._joints:
                raise ModelError(
                    f"range was given {of!r}; it must be a joint of this mechanism, or a coordinate of one"
                )
            chosen = m._joints[of.joint].of(of.name)
        else:
            key = getattr(of, "name", of)
            joint = m._joints.get(key) if isinstance(key, str) else None
            if joint is None:
                raise check.unknown(key, "joint of this session", m._joints)
            chosen = m._chosen(f"range of {key!r}", joint, axis)
        m._add(joints.limit, name, (chosen,), {"lower": -1e300, "upper": 1e300})
        unit = "m" if chosen.kind in ("displacement", "distance") else "rad"
        return name, m._metric_equations(), unit


def _followed(bundle: Joint | Bundle) -> Joint | Bundle:
    """The same for motions, in which contacts stay near where they were."""
    if not any([relation.primitive.is_contact for relation in bundle.relations]):
        return bundle
    return Bundle(bundle.name, [relation.followed() for relation in bundle.relations])
